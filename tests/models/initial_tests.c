/* initial_tests.c - the initial values of parameters. */
#include "fixture.h"

/* ---------------------------------------------------------------- what is documented */

/* Kinds of initial values: those of named parameters; else those of vpps.h: vectors are zero, all else is Glorot. */
typedef enum beginning {
    BY_DEFAULT,
    SMALL,        /* uniform in +-0.05 */
    OPEN,         /* one: the forget gate is open */
    NEAR_WHOLE_I, /* the identity plus normal noise of 0.01 */
    NEAR_HALF_I,  /* half the identity plus the same noise */
} beginning;

/* The first row that holds counts. network NULL: any. A parameter NAME.x also stands for NAME2.x of the second layer, .x
 * for every NAME.x. */
static const struct {
    const char *network, *parameter;
    beginning how;
} rows[] = {
    {"mv-rnn", "vectors", BY_DEFAULT},
    {"mv-rnn", "matrices", NEAR_WHOLE_I},
    {"mv-rnn", "W_M_l", NEAR_HALF_I},
    {"mv-rnn", "W_M_r", NEAR_HALF_I},
    {"td-rnn", "embedding", BY_DEFAULT},
    {"td-lstm", "embedding", BY_DEFAULT},
    {"td-lstm", "b_f", BY_DEFAULT}, /* half open: a cell is the mean of its neighbours', not their sum */
    {"tree-fc", "embedding", BY_DEFAULT},
    {"act", "b_p", OPEN}, /* few turns at the start */
    {"transformer-tagger", "gain", OPEN},
    {"transformer-tagger", "layer.gain_1", OPEN},
    {"transformer-tagger", "layer.gain_2", OPEN},
    {NULL, "embedding", SMALL},
    {NULL, "characters", SMALL},
    {NULL, "words", SMALL},
    {NULL, "source", SMALL},
    {NULL, "target", SMALL},
    {NULL, "round.forward", SMALL},
    {NULL, "round.backward", SMALL},
    {NULL, "round.a", SMALL},
    {NULL, "b_f", OPEN},
    {NULL, ".b_f", OPEN},
    {"tree-lstm-2type", "b_f_1", OPEN},
    {"tree-lstm-2type", "b_f_2", OPEN},
};

static bool stands_for(const char *row, const char *parameter) {
    const size_t n = strcspn(row, ".");
    if (strncmp(row, parameter, n) != 0) return false;
    parameter += n ? n : strcspn(parameter, ".");
    if (row[n] == '.') parameter += strspn(parameter, "0123456789");
    return strcmp(row + n, parameter) == 0;
}

static bool holds(size_t i, const network *n, const char *parameter) {
    return (!rows[i].network || strcmp(rows[i].network, n->name) == 0) && stands_for(rows[i].parameter, parameter);
}

static beginning beginning_of(const network *n, const vpps_param_info *info) {
    for (size_t i = 0; i < VPPS_COUNT(rows); i++)
        if (holds(i, n, info->name)) return rows[i].how;
    ck_assert_msg(info->kind != VPPS_LOOKUP, "%s: how does %s begin? Say so here", n->name, info->name);
    return BY_DEFAULT;
}

/* ---------------------------------------------------------------- samples
 *
 * A right sample fails by accident once in some 100,000 times. */

static double power_mean(const double *x, size_t n, int power) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += pow(x[i], power);
    return sum / (double)n;
}

static bool is_constant(const double *x, size_t n, double value) {
    for (size_t i = 0; i < n; i++)
        if (x[i] != value) return false;
    return true;
}

/* Checks for a uniform distribution in +-bound, whose powers 2 and 4 have means bound^2 / 3 and bound^4 / 5: all inside, some near both ends. */
static bool is_uniform(const double *x, size_t n, double bound) {
    const double root = sqrt((double)n), near = bound * (1 - 30 / (double)n);
    double lowest = x[0], highest = x[0];
    for (size_t i = 0; i < n; i++) {
        lowest = fmin(lowest, x[i]);
        highest = fmax(highest, x[i]);
    }
    return highest <= bound * (1 + 1e-6) && highest >= near && lowest >= -bound * (1 + 1e-6) && lowest <= -near &&
           fabs(power_mean(x, n, 1)) < 5 * bound / sqrt(3) / root &&
           fabs(power_mean(x, n, 2) / pow(bound, 2) - 1.0 / 3) < 5 * sqrt(4.0 / 45) / root;
}

/* Checks for a normal distribution with this deviation, whose powers 2 and 4 have means deviation^2 and 3 deviation^4. */
static bool is_normal(const double *x, size_t n, double deviation) {
    const double root = sqrt((double)n);
    return fabs(power_mean(x, n, 1)) < 5 * deviation / root &&
           fabs(power_mean(x, n, 2) / pow(deviation, 2) - 1) < 5 * sqrt(2) / root &&
           fabs(power_mean(x, n, 4) / pow(deviation, 4) - 3) < 5 * sqrt(96) / root;
}

/* Checks for `share` times the n x n identity, repeated as often as it fits, plus normal noise. */
static bool is_near_identity(double *x, size_t elements, size_t n, double share) {
    double diagonal = 0;
    for (size_t i = 0; i < elements; i += n * n) {
        for (size_t j = 0; j < n; j++) {
            x[i + j * (n + 1)] -= share;
            diagonal += x[i + j * (n + 1)] / ((double)elements / (double)n);
        }
    }
    return is_normal(x, elements, 0.01) && fabs(diagonal) < 5 * 0.01 / sqrt((double)elements / (double)n);
}

static bool begins(double *x, size_t n, const vpps_param_info *info, beginning how) {
    switch (how) {
    case BY_DEFAULT: /* each entry of a table, here a vector, counts as a matrix of one column */
        return info->kind == VPPS_VECTOR ? is_constant(x, n, 0)
                                         : is_uniform(x, n, sqrt(6.0 / (info->rows + info->cols)));
    case SMALL: return is_uniform(x, n, 0.05);
    case OPEN: return is_constant(x, n, 1);
    case NEAR_WHOLE_I: return is_near_identity(x, n, info->rows, 1);
    case NEAR_HALF_I: return is_near_identity(x, n, info->rows, 0.5);
    }
    return false;
}

/* ---------------------------------------------------------------- the networks */

/* The sizes give large enough samples, and are all different, so that bounds are. */
static const examples none = {.words = 101, .characters = 83, .classes = 37, .edge_types = 29, .numbers = 31};
enum { WIDE_HIDDEN = 52, WIDE_EMBED = 44 };

TEST_GROUP("initial values");

TEST_EACH(parameters_begin_as_documented, 0, case_count()) {
    AT_END(fixture_close) fixture f;
    double first[128];
    uint32_t n_drawn = 0;
    fixture_open(&f, _i, &none, WIDE_HIDDEN, WIDE_EMBED, 0);
    for (vpps_param p = 0; p < vpps_param_count(f.model); p++) {
        vpps_param_info info = {.size = sizeof info};
        TEST_OK(vpps_param_describe(f.model, p, &info));
        const size_t n = (size_t)info.count * info.rows * info.cols;
        const float *values = vpps_param_values(f.model, p);
        FREED double *x = need(malloc(n * sizeof *x));
        for (size_t i = 0; i < n; i++) x[i] = (double)values[i];
        if (info.kind != VPPS_VECTOR) { /* each parameter has its own random numbers */
            for (uint32_t k = 0; k < n_drawn; k++) ck_assert_msg(first[k] != x[1], "%s: %s", f.name, info.name);
            ck_assert_uint_lt(n_drawn, VPPS_COUNT(first));
            first[n_drawn++] = x[1];
        }
        ck_assert_msg(begins(x, n, &info, beginning_of(f.net, &info)),
                      "%s: %s does not begin as it is documented: from %g, with a mean of %g, of its squares %g",
                      f.name, info.name, x[0], power_mean(x, n, 1), power_mean(x, n, 2));
    }
}

/* No row names a network or parameter that does not exist any more. */
TEST(rows_are_of_parameters) {
    bool used[VPPS_COUNT(rows)] = {false};
    for (int k = 0; k < case_count(); k++) {
        AT_END(fixture_close) fixture f;
        fixture_open(&f, k, NULL, 4, 4, 0);
        for (vpps_param p = 0; p < vpps_param_count(f.model); p++) {
            vpps_param_info info = {.size = sizeof info};
            TEST_OK(vpps_param_describe(f.model, p, &info));
            for (size_t i = 0; i < VPPS_COUNT(rows); i++) used[i] |= holds(i, f.net, info.name);
        }
    }
    for (size_t i = 0; i < VPPS_COUNT(rows); i++)
        ck_assert_msg(used[i], "no parameter %s of a network %s", rows[i].parameter,
                      rows[i].network ? rows[i].network : "any name");
}
