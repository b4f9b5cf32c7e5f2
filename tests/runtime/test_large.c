/* test_large.c - batches with more of something than an instruction's length can count (2^22 - 1): nothing is cut off. */
#include "common/training.h"

enum { LIMIT = 1 << 22, MOST_ARGUMENTS = 1 << 20 };

static vpps_options options(void) {
    vpps_options o = default_options();
    o.vps = 1; /* counts do not depend on the number */
    o.optimizer.lr = 0.5f;
    return o;
}

static vpps_init constant(float value) { return (vpps_init){.kind = VPPS_INIT_CONSTANT, .a = value}; }

static void expect_all(const float *values, uint32_t n, float want, const char *what) {
    for (uint32_t i = 0; i < n; i++) { /* an assertion for each would take seconds */
        if (values[i] != want) ck_abort_msg("%s %u is %g, not %g", what, i, (double)values[i], (double)want);
    }
}

TEST_GROUP("large", .seconds = 120);

/* Two products of one matrix with more columns than that in total; all numbers are sums of few powers of two. */
TEST_EACH(more_vectors_of_one_matrix, 0, 2) {
    enum { COLS = LIMIT / 2 + 1 };
    const vpps_init two = constant(2), small = constant(0x1p-10f);
    vpps_options o = options();
    vpps_param W, E;
    o.gradients = _i ? VPPS_GRADIENTS_ACCUMULATE : VPPS_GRADIENTS_DEFERRED;
    AT_END(training_end) training t = training_of(1);
    TEST_OK(vpps_add_matrix(t.model, &W, "W", 1, 1, &two));
    TEST_OK(vpps_add_lookup(t.model, &E, "E", 2, 1, COLS, &small));
    training_start(&t, &o);
    vpps_node y[2], sum[2];
    for (uint32_t i = 0; i < 2; i++) {
        y[i] = vpps_matvec(t.g, W, vpps_lookup(t.g, E, i));
        sum[i] = vpps_sum_elements(t.g, y[i]);
    }
    const vpps_node loss = vpps_add(t.g, sum[0], sum[1]);
    float *values[2] = {malloc(COLS * sizeof(float)), malloc(COLS * sizeof(float))}, got;
    ck_assert(values[0] && values[1]);
    TEST_OK(vpps_forward(t.h, t.g, 2, y, values));
    for (uint32_t i = 0; i < 2; i++) expect_all(values[i], COLS, 0x1p-9f, "element of a product");

    got = train_batch(t.h, t.g, loss);
    ck_assert_float_eq(got, 2.0f * COLS * 0x1p-9f);
    TEST_OK(vpps_read_parameters(t.h));
    ck_assert_float_eq(vpps_param_values(t.model, W)[0], 2 - 0.5f * (2.0f * COLS * 0x1p-10f));
    expect_all(vpps_param_values(t.model, E), 2 * COLS, 0x1p-10f - 0.5f * 2, "element of the table");
    for (int i = 0; i < 2; i++) free(values[i]);
}

/* More entries of one table than that. */
TEST(more_rows_of_one_table) {
    enum { ROWS = LIMIT + 1, SUMS = LIMIT / MOST_ARGUMENTS + 1 };
    const vpps_init small = constant(0x1p-10f);
    vpps_options o = options();
    vpps_param E;
    o.optimizer.clip = 1024; /* nearly half of the gradient's norm */
    AT_END(training_end) training t = training_of(1);
    TEST_OK(vpps_add_lookup(t.model, &E, "E", ROWS, 1, 1, &small));
    training_start(&t, &o);
    vpps_node *rows = malloc(MOST_ARGUMENTS * sizeof *rows), sums[SUMS];
    ck_assert_ptr_nonnull(rows);
    for (uint32_t first = 0, n; first < ROWS; first += n) {
        n = ROWS - first < MOST_ARGUMENTS ? ROWS - first : MOST_ARGUMENTS;
        for (uint32_t i = 0; i < n; i++) rows[i] = vpps_lookup(t.g, E, first + i);
        sums[first / MOST_ARGUMENTS] = vpps_sum(t.g, n, rows);
    }
    free(rows);
    const float loss = train_batch(t.h, t.g, vpps_sum(t.g, SUMS, sums));
    ck_assert_float_eq(loss, ROWS * 0x1p-10f);
    TEST_OK(vpps_read_parameters(t.h));
    const float *values = vpps_param_values(t.model, E), step = 0x1p-10f - values[0];
    ck_assert_float_eq_tol(step, 0.25f, 1e-6f);
    expect_all(values, ROWS, values[0], "entry");
}

/* Sums so long that a phase has more words of script than that. */
TEST(more_words_in_a_phase) {
    enum { SUMS = LIMIT / MOST_ARGUMENTS + 1, ROWS = 32 };
    const vpps_options o = options();
    float x[ROWS], values[SUMS][ROWS], *outs[SUMS];
    vpps_node sums[SUMS], *terms = malloc(MOST_ARGUMENTS * sizeof *terms);
    ck_assert_ptr_nonnull(terms);
    for (uint32_t i = 0; i < ROWS; i++) x[i] = 0x1p-20f;
    AT_END(training_end) training t = training_of(1);
    training_start(&t, &o);
    terms[0] = vpps_input(t.g, ROWS, 1, x);
    for (uint32_t i = 1; i < MOST_ARGUMENTS; i++) terms[i] = terms[0];
    for (uint32_t i = 0; i < SUMS; i++) {
        sums[i] = vpps_sum(t.g, MOST_ARGUMENTS, terms);
        outs[i] = values[i];
    }
    free(terms);
    TEST_OK(vpps_forward(t.h, t.g, SUMS, sums, outs));
    for (uint32_t i = 0; i < SUMS; i++) expect_all(values[i], ROWS, 1, "element of a sum");
}
