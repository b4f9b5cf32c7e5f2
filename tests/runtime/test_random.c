/* test_random.c - random graphs over all operations: the engine against the double-precision reference, for several
 * numbers of virtual processors and both gradient strategies. A failing case is made smaller and printed.
 *
 * VPPS_TEST_SEED draws other cases; VPPS_TEST_CASES=FIRST:END runs only those; VPPS_TEST_UNVERIFIED=1 runs scripts that
 * `verify` might refuse. */
#include "common/episode.h"
#include "common/gpu_tests.h"

/* ---------------------------------------------------------------- how a case is run */

typedef struct configuration {
    vpps_options options;
    int ways; /* of episode_check */
} configuration;

static vpps_optimizer draw_optimizer(uint64_t *random) {
    static const float rates[] = {
        [VPPS_SGD] = 0.1f, [VPPS_MOMENTUM] = 0.05f, [VPPS_ADAGRAD] = 0.05f, [VPPS_ADAM] = 0.01f, [VPPS_ADAMW] = 0.01f};
    const uint32_t kind = vpps_random_below(random, VPPS_OPTIMIZERS);
    vpps_optimizer o = {.kind = (vpps_optimizer_kind)kind,
                        .lr = kind < VPPS_COUNT(rates) ? rates[kind] : 0.01f,
                        .momentum = 0.9f,
                        .beta1 = 0.9f,
                        .beta2 = 0.999f,
                        .epsilon = kind == VPPS_ADAGRAD ? 1e-6f : 1e-8f};
    if (vpps_random_below(random, 3) == 0) o.weight_decay = 0.02f;
    if (vpps_random_below(random, 3) == 0) o.clip = 0.5f;
    return o;
}

/* Returns configuration number k of a case: four in a row for each number of virtual processors, eight for each strategy. */
static configuration configuration_of(const rg_case *c, uint32_t k) {
    static const uint32_t vps[] = {1, 2, 3, 8};
    static const char *const policies[] = {"depth", "share", "ratio", "fsm"};
    uint64_t random = vpps_mix64(c->seed + 5);
    const vpps_optimizer optimizer = draw_optimizer(&random);
    const uint64_t bits = vpps_random(&random) + k * 11;
    configuration f = {.ways = (bits / 4 % 2 ? EPISODE_FORWARD : 0) | (bits >> 18 & 1 ? EPISODE_PARTS : 0) |
                               (bits >> 19 & 1 ? EPISODE_REQUEST : 0) | (bits >> 20 & 1 ? EPISODE_ROWS : 0) |
                               (vpps_mix64(c->seed + 6) % 4 ? 0 : EPISODE_HALVES)}; /* equal for every k */
    vpps_options *o = &f.options;
    vpps_options_default(o);
    o->optimizer = optimizer;
    o->seed = 1234;
    o->pool_bytes = 64u << 20;
    o->vps = vps[k % 4];
    o->gradients = (k / 4 + k + (bits >> 40)) % 2 ? VPPS_GRADIENTS_ACCUMULATE : VPPS_GRADIENTS_DEFERRED;
    o->portable = bits % 3 == 0;
    o->verify = !getenv("VPPS_TEST_UNVERIFIED");
    o->waves = (uint32_t)(bits >> 8) % 4; /* 0: by the number of kept words */
    o->slices = (uint32_t)(bits >> 14) % 4;
    o->groups = bits >> 10 & 1 ? o->vps : 0;
    o->policy = policies[(bits >> 12) % 4];
    o->caller = bits / 16 % 2 ? VPPS_CALLER_WORKS : VPPS_CALLER_FREE;
    return f;
}

/* ---------------------------------------------------------------- the cases */

static char finding[1024]; /* description of what is wrong; empty: nothing */

static bool note(const char *text) {
    snprintf(finding, sizeof finding, "%s", text ? text : "");
    return !text;
}

/* Builds a case anew, since scripts must not depend on what ran before. */
static bool run_engine(const rg_case *c, const configuration *f, const expectation *e) {
    AT_END(rg_destroy) rg_built built;
    if (rg_build(&built, c, NULL) != VPPS_OK) return note(vpps_error_message());
    AT_END(episode_forget) episode x = episode_of(&built, f->ways);
    return note(episode_check(&x, e, &f->options, f->ways));
}

static uint32_t n_unusable, n_graphs;

/* Returns the first of n configurations, which expect the same, in which the case fails; NULL: it does not. */
static const configuration *failing(const rg_case *c, const configuration *fs, uint32_t n) {
    AT_END(rg_destroy) rg_built built;
    if (rg_build(&built, c, NULL) != VPPS_OK) return note(vpps_error_message()), fs;
    AT_END(episode_forget) episode x = episode_of(&built, fs->ways);
    AT_END(forget_expectation) expectation e = expect_of(&x, &fs->options);
    n_graphs++;
    n_unusable += !e.usable;
    for (uint32_t k = 0; k < n && e.usable; k++)
        if (!run_engine(c, &fs[k], &e)) return &fs[k];
    return NULL;
}

/* While a case shrinks, the failure must stay the same: a wrong number must not become a refused script. */
typedef struct failure {
    const configuration *f;
    char kind[12];
} failure;

static bool fails(const rg_case *c, void *context) {
    const failure *failed = context;
    return failing(c, failed->f, 1) && !strncmp(finding, failed->kind, sizeof failed->kind);
}

/* Checks a case in n configurations. */
static void check_case(uint64_t number, const rg_case *c, const configuration *fs, uint32_t n) {
    const configuration *f = failing(c, fs, n);
    if (!f) return;
    const vpps_options *o = &f->options;
    rg_case small = *c;
    failure failed = {.f = f};
    memcpy(failed.kind, finding, sizeof failed.kind);
    fprintf(stderr, "\ncase %llu fails: %s\n", (unsigned long long)number, finding);
    rg_shrink(&small, fails, &failed, 400);
    AT_END(rg_destroy) rg_built built;
    failing(&small, f, 1);
    fprintf(stderr,
            "%u VPs, %u groups, %u waves of %u slices, by %s, precision %d, %s%s%s, optimiser %d, lr %g, decay %g, "
            "clip %g%s%s%s%s%s; a smaller case, which fails by\n    %s\n",
            o->vps, o->groups, o->waves, o->slices, o->policy, (int)o->precision,
            o->gradients == VPPS_GRADIENTS_DEFERRED ? "deferred" : "accumulate", o->portable ? ", portable" : "",
            o->caller == VPPS_CALLER_WORKS ? ", caller works" : ", caller free", (int)o->optimizer.kind,
            (double)o->optimizer.lr, (double)o->optimizer.weight_decay, (double)o->optimizer.clip,
            f->ways & EPISODE_FORWARD ? ", vpps_forward first" : "", f->ways & EPISODE_PARTS ? ", in parts" : "",
            f->ways & EPISODE_REQUEST ? ", with a request" : "", f->ways & EPISODE_HALVES ? ", in halves" : "",
            f->ways & EPISODE_ROWS ? ", rows shared out" : "", finding);
    rg_build(&built, &small, stderr);
    ck_abort_msg("case %llu: %s", (unsigned long long)number, finding);
}

static rg_case draw_case(uint64_t number) {
    rg_case c;
    rg_draw(&c, test_seed() * 1000003 + number, 4 + (uint32_t)(number % 24));
    const vpps_optimizer optimizer = configuration_of(&c, 0).options.optimizer;
    c.empty_lists = optimizer.kind == VPPS_SGD && optimizer.weight_decay <= 0;
    return c;
}

/* Cases are divided into CHUNKS tests, so that each test stays within Check's time limit. */
enum { CASES = 2000, EVERYDAY_CASES = 500, CHUNKS = 20 };

TEST_GROUP("random graphs", .seconds = 120);

/* make check-kernels runs the other three quarters. */
GPU_EACH(engine_is_the_reference, test_small() ? CHUNKS : CHUNKS / 4, CHUNKS) {
    const uint32_t cases = test_full() ? CASES : test_scaled(EVERYDAY_CASES);
    const uint32_t runs = test_full() ? 3 : 2;
    uint64_t first = (uint64_t)_i * cases / CHUNKS, end = (uint64_t)(_i + 1) * cases / CHUNKS;
    const char *only = getenv("VPPS_TEST_CASES");
    if (only) {
        unsigned long long a, b;
        if (sscanf(only, "%llu:%llu", &a, &b) != 2) ck_abort_msg("VPPS_TEST_CASES is FIRST:END");
        first = _i ? 0 : a;
        end = _i ? 0 : b;
    }
    for (uint64_t i = first; i < end; i++) {
        const rg_case c = draw_case(i);
        configuration fs[3];
        for (uint32_t k = 0; k < runs; k++) fs[k] = configuration_of(&c, (uint32_t)(i * runs % 8) + k);
        check_case(i, &c, fs, runs);
    }
    ck_assert_msg(n_unusable * 20 <= n_graphs, "%u of %u cases have numbers out of range", n_unusable, n_graphs);
}

/* Checks one case, in a precision, for so many virtual processors in groups (0: as drawn). */
static void check_number(uint64_t number, vpps_precision precision, uint32_t vps, uint32_t groups) {
    const rg_case c = draw_case(number);
    configuration f = configuration_of(&c, (uint32_t)number);
    f.options.precision = precision;
    if (vps) f.options.vps = vps, f.options.groups = groups;
    check_case(number, &c, &f, 1);
}

/* Compares with the reference within the error that rounding operands to bf16 may cause in a graph. */
TEST_EACH(precisions_are_near_the_reference, 0, 4) {
    for (uint32_t i = 0; i < test_scaled(test_full() ? 100 : 12); i++)
        check_number(200000 + (uint64_t)_i / 2 * 1000 + i, _i % 2 ? VPPS_PRECISION_BF16 : VPPS_PRECISION_BF16X3, 0, 0);
}

/* Virtual processors and groups, 0: chosen by cost. */
static const uint32_t many[][2] = {{12, 1}, {13, 1}, {16, 2}, {24, 24}, {31, 1},
                                   {40, 2}, {48, 4}, {64, 0}, {64, 1},  {64, 4}};

TEST_EACH(more_vps_than_cores_are_the_reference, 0, VPPS_COUNT(many)) {
    for (uint32_t i = 0; i < test_scaled(6); i++)
        check_number(300000 + i * VPPS_COUNT(many) + (uint32_t)_i, VPPS_PRECISION_FP32, many[_i][0], many[_i][1]);
}

/* ---------------------------------------------------------------- the same bits every time */

static void train_to(const rg_case *c, const configuration *f, float *losses, float **values, size_t *n) {
    AT_END(rg_destroy) rg_built built;
    TEST_OK(rg_build(&built, c, NULL));
    OWNED(vpps_handle) *h = new_handle(built.model, &f->options);
    for (int k = 0; k < 2 && built.g[k]; k++) losses[k] = train_batch(h, built.g[k], built.loss[k]);
    *values = handle_values(built.model, h, n);
}

TEST(equal_runs_give_equal_bits) {
    for (uint32_t i = 0; i < test_scaled(50); i++) {
        const rg_case c = draw_case(100000 + i);
        configuration f = configuration_of(&c, i);
        if (i / 2 % 2)
            f.options.nonfinite = VPPS_NONFINITE_IGNORE; /* no processor needs the others' part of the norm */
        float *a, *b, losses[2][2] = {{0}};
        size_t n, m;
        train_to(&c, &f, losses[0], &a, &n);
        f.options.caller = i % 2 ? VPPS_CALLER_FREE : VPPS_CALLER_WORKS; /* who runs a processor does not matter */
        train_to(&c, &f, losses[1], &b, &m);
        ck_assert_uint_eq(n, m);
        ck_assert_msg(!memcmp(losses[0], losses[1], sizeof losses[0]), "case %u, %u VPs: losses %.9g and %.9g", i,
                      f.options.vps, (double)losses[0][0], (double)losses[1][0]);
        ck_assert_msg(!memcmp(a, b, n * sizeof *a), "case %u, %u VPs: parameters differ between equal runs", i,
                      f.options.vps);
        free(a);
        free(b);
    }
}

int main(void) {
    setenv("VPPS_CACHE_DIR", "/dev/null", 1); /* what a case learns is useless for another */
    return test_main("random graphs");
}
