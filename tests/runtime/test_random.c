/* test_random.c - random graphs over all operations: the engine against the double-precision reference, for several
 * numbers of virtual processors and both gradient strategies. A failing case is made smaller and printed.
 *
 * VPPS_TEST_SEED draws other cases; VPPS_TEST_CASES=FIRST:END runs only those; VPPS_TEST_UNVERIFIED=1 runs scripts that
 * `verify` might refuse. */
#include "common/random_graph.h"
#include "common/reference.h"
#include "common/testing.h"

#include <math.h>
#include <stdarg.h>

/* ---------------------------------------------------------------- how a case is run */

typedef struct configuration {
    uint32_t vps, groups, waves, slices;
    vpps_gradients gradients;
    bool portable, verify, forward, parts; /* parts: vpps_backward and vpps_update for vpps_fb */
    vpps_caller caller;
    const char *policy;
    vpps_optimizer optimizer;
    vpps_precision precision;
} configuration;

static const uint64_t dropout_seed = 1234;

static vpps_optimizer draw_optimizer(uint64_t *random) {
    static const float rates[] = {
        [VPPS_SGD] = 0.1f, [VPPS_MOMENTUM] = 0.05f, [VPPS_ADAGRAD] = 0.05f, [VPPS_ADAM] = 0.01f, [VPPS_ADAMW] = 0.01f};
    const uint32_t kind = vpps_random_below(random, VPPS_ADAMW + 1);
    vpps_optimizer o = {.kind = (vpps_optimizer_kind)kind,
                        .lr = rates[kind],
                        .momentum = 0.9f,
                        .beta1 = 0.9f,
                        .beta2 = 0.999f,
                        .epsilon = kind == VPPS_ADAGRAD ? 1e-6f : 1e-8f};
    if (vpps_random_below(random, 3) == 0) o.weight_decay = 0.02f;
    if (vpps_random_below(random, 3) == 0) o.clip = 0.5f;
    return o;
}

/* Configuration number k of a case: four in a row give each number of VPs, eight each with both strategies. */
static configuration configuration_of(const rg_case *c, uint32_t k) {
    static const uint32_t vps[] = {1, 2, 3, 8};
    static const char *const policies[] = {"depth", "agenda", "ratio", "fsm"};
    uint64_t random = vpps_mix64(c->seed + 5);
    configuration f = {.optimizer = draw_optimizer(&random)};
    const uint64_t bits = vpps_random(&random) + k * 11;
    f.vps = vps[k % 4];
    f.gradients = (k / 4 + k + (bits >> 40)) % 2 ? VPPS_GRADIENTS_ACCUMULATE : VPPS_GRADIENTS_DEFERRED;
    f.portable = bits % 3 == 0;
    f.verify = !getenv("VPPS_TEST_UNVERIFIED");
    f.forward = bits / 4 % 2;
    f.parts = bits >> 18 & 1;
    f.waves = (uint32_t)(bits >> 8) % 4; /* 0: by what they keep */
    f.slices = (uint32_t)(bits >> 14) % 4;
    f.groups = bits >> 10 & 1 ? f.vps : 0;
    f.policy = policies[(bits >> 12) % 4];
    f.caller = bits / 16 % 2 ? VPPS_CALLER_WORKS : VPPS_CALLER_FREE;
    return f;
}

static vpps_options options_of(const configuration *f) {
    vpps_options o;
    vpps_options_default(&o);
    o.vps = f->vps;
    o.groups = f->groups;
    o.waves = f->waves;
    o.slices = f->slices;
    o.policy = f->policy;
    o.gradients = f->gradients;
    o.portable = f->portable;
    o.verify = f->verify;
    o.caller = f->caller;
    o.optimizer = f->optimizer;
    o.seed = dropout_seed;
    o.precision = f->precision;
    o.pool_bytes = 64u << 20;
    return o;
}

/* ---------------------------------------------------------------- what a case must give */

/* Exact results with their spread under noise: deviations as in reference.h. */
typedef struct expectation {
    ref_model *model; /* after the last batch */
    double *deviation, *state_deviation[2];
    double loss[2], loss_deviation[2];
    ref_run *inference; /* of the first batch's graph, before any update */
    double *inference_deviation;
    bool usable; /* the numbers stayed moderate */
} expectation;

static double *doubles(size_t n) {
    double *d = calloc(n + 1, sizeof *d);
    if (!d) abort();
    return d;
}

static bool moderate(const double *x, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (!(fabs(x[i]) < 1e6)) return false;
    }
    return true;
}

/* As stochastic arithmetic does for single precision (reference.h), eight times what rounding makes of an operand at most (bf16.h). */
static double product_noise(const configuration *f, double noise) {
    if (noise <= 0 || f->precision == VPPS_PRECISION_FP32) return 0;
    return f->precision == VPPS_PRECISION_BF16 ? 8 * 0x1p-8 : 8 * 0x1p-17;
}

/* Trains `m` on the case's batches; losses to loss[]. */
static bool train(ref_model *m, const rg_built *built, const configuration *f, double noise, uint64_t noise_seed,
                  double *loss) {
    for (uint32_t k = 0; k < 2 && built->g[k]; k++) {
        const ref_mode mode = {.training = true,
                               .dropout_key = vpps_dropout_key(dropout_seed, built->model->batches + k + 1),
                               .noise = noise,
                               .product_noise = product_noise(f, noise),
                               .noise_seed = noise_seed + k};
        ref_run *r = ref_forward(built->g[k], m, &mode);
        if (!r) return false;
        ref_backward(r, m, built->loss[k]);
        loss[k] = r->values[r->first[built->loss[k]]];
        const size_t n = r->n_values;
        const bool good = moderate(r->values, n) && moderate(r->grads, n) && moderate(r->param_grads, r->n_param_elems);
        ref_step(m, r, &f->optimizer, built->model->batches + k + 1);
        ref_run_destroy(r);
        if (!good) return false;
    }
    return true;
}

/* Adagrad and Adam divide a gradient by its own size. Where it is mostly rounding, so is the step's sign, which few runs
 * with noise may miss: any two steps are then as good. */
static void allow_uncertain_steps(expectation *e, const vpps_optimizer *o) {
    if (o->kind == VPPS_SGD || o->kind == VPPS_MOMENTUM) return;
    for (size_t i = 0; i < e->model->first[e->model->n]; i++) {
        if (e->state_deviation[0][i] <= 0.01 * fabs(e->model->states[0][i])) continue;
        e->deviation[i] = fmax(e->deviation[i], (double)o->lr);
    }
}

static void expect(expectation *e, const rg_built *built, const configuration *f) {
    *e = (expectation){.model = ref_model_create(built->model)};
    const ref_model *start = e->model;
    const size_t n = start->first[start->n];
    enum {
        MORE_RUNS = 3 * REF_NOISE_RUNS
    }; /* rounding to bf16 is far above that of sums: there are more ways to be off */
    ref_model *noisy[MORE_RUNS];
    const uint32_t runs = f->precision == VPPS_PRECISION_FP32 ? REF_NOISE_RUNS : MORE_RUNS;
    for (uint32_t k = 0; k < runs; k++) noisy[k] = ref_model_copy(start);
    e->deviation = doubles(n);
    for (int s = 0; s < 2; s++) e->state_deviation[s] = doubles(n);

    ref_mode mode = {.training = false};
    e->inference = ref_forward(built->g[0], start, &mode);
    if (!e->inference) abort();
    const size_t n_values = e->inference->n_values;
    e->inference_deviation = doubles(n_values);
    for (uint32_t k = 0; k < runs; k++) {
        mode.noise = REF_NOISE;
        mode.product_noise = product_noise(f, REF_NOISE);
        mode.noise_seed = k + 100;
        ref_run *r = ref_forward(built->g[0], start, &mode);
        ref_widen(e->inference_deviation, e->inference->values, r->values, n_values);
        ref_run_destroy(r);
    }

    e->usable = train(e->model, built, f, 0, 0, e->loss) && moderate(e->inference->values, n_values);
    for (uint32_t k = 0; k < runs; k++) {
        double loss[2] = {0, 0};
        if (e->usable) train(noisy[k], built, f, REF_NOISE, (k + 1) * 1000, loss);
        ref_widen(e->deviation, e->model->values, noisy[k]->values, n);
        for (int s = 0; s < 2; s++) ref_widen(e->state_deviation[s], e->model->states[s], noisy[k]->states[s], n);
        ref_widen(e->loss_deviation, e->loss, loss, 2);
        ref_model_destroy(noisy[k]);
    }
    allow_uncertain_steps(e, &f->optimizer);
}

static void forget(expectation *e) {
    ref_model_destroy(e->model);
    ref_run_destroy(e->inference);
    free(e->deviation);
    free(e->inference_deviation);
    for (int s = 0; s < 2; s++) free(e->state_deviation[s]);
}

/* ---------------------------------------------------------------- running and comparing */

static char finding[1024]; /* what is wrong; empty when nothing */

static bool wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));
static bool wrong(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(finding, sizeof finding, format, arguments);
    va_end(arguments);
    return false;
}

static bool fine(vpps_status status, const char *what) {
    return status == VPPS_OK || wrong("%s: %s: %s", what, vpps_status_name(status), vpps_error_message());
}

static bool compare(const char *what, const float *got, const double *want, const double *deviation, size_t n) {
    double bound = 0;
    const size_t i = ref_compare(got, want, deviation, n, &bound);
    return i == n || wrong("%s, element %zu of %zu: %.9g instead of %.9g (off by %.3g, allowed %.3g)", what, i, n,
                           (double)got[i], want[i], fabs((double)got[i] - want[i]), bound);
}

/* Reads some nodes back, neighbours of each other among them. */
static bool check_forward(vpps_handle *h, const rg_built *built, const expectation *e, uint64_t seed) {
    const ref_run *r = e->inference;
    uint64_t random = seed;
    vpps_node nodes[24];
    float *outs[24];
    vpps_node *all = calloc(4 * (size_t)r->flat->n_nodes + 1, sizeof *all);
    if (!all) abort();
    const uint32_t n_nodes = rg_named_nodes(built->g[0], all), n = vpps_min_u32(n_nodes, 24);
    for (uint32_t i = 0; i < n; i++) {
        nodes[i] = all[n == n_nodes ? i : vpps_random_below(&random, n_nodes)];
        outs[i] = calloc(r->first[nodes[i] + 1] - r->first[nodes[i]], sizeof(float));
        if (!outs[i]) abort();
    }
    free(all);
    bool good = fine(vpps_forward(h, built->g[0], n, nodes, outs), "vpps_forward");
    for (uint32_t i = 0; i < n; i++) {
        const size_t at = r->first[nodes[i]], elems = r->first[nodes[i] + 1] - at;
        char what[64];
        snprintf(what, sizeof what, "forward value of n%u (%s)", nodes[i],
                 vpps_ops[vpps_plain_signature(r->g, nodes[i])->op].name);
        if (good) good = compare(what, outs[i], r->values + at, e->inference_deviation + at, elems);
        free(outs[i]);
    }
    return good;
}

/* One row of a table, or a whole parameter, with its optimiser state. */
static bool check_row(const vpps_parameter_data *p, uint32_t row, const expectation *e, size_t first) {
    const size_t elems = (size_t)p->rows * p->cols, at = row * elems;
    char what[96];
    snprintf(what, sizeof what, "parameter %s%s, row %u, after training", p->name, p->frozen ? " (frozen)" : "", row);
    if (!compare(what, p->values + at, e->model->values + first + at, e->deviation + first + at, elems)) return false;
    for (int s = 0; s < VPPS_MAX_STATES; s++) {
        snprintf(what, sizeof what, "state %d of parameter %s, row %u,", s, p->name, row);
        if (p->states[s] && !compare(what, p->states[s] + at, e->model->states[s] + first + at,
                                     e->state_deviation[s] + first + at, elems)) {
            return false;
        }
    }
    return true;
}

static bool check_trained(const vpps_model *model, const expectation *e) {
    for (uint32_t p = 0; p < vpps_param_count(model); p++) {
        for (uint32_t row = 0; row < model->params[p].count; row++) {
            if (!check_row(&model->params[p], row, e, e->model->first[p])) return false;
        }
    }
    return true;
}

/* Trains batch number k; *stale: the loss of the batch before. */
static bool step(vpps_handle *h, const rg_built *built, const configuration *f, uint32_t k, float *stale) {
    if (!f->parts) return fine(vpps_fb(h, built->g[k], built->loss[k], stale), k ? "second vpps_fb" : "first vpps_fb");
    if (k && !fine(vpps_sync_latest_loss(h, stale), "vpps_sync_latest_loss")) return false;
    return fine(vpps_backward(h, built->g[k], built->loss[k]), "vpps_backward") && fine(vpps_update(h), "vpps_update");
}

/* Runs the case on the engine: false, and `finding` says why, when it is not as expected. */
static bool run_engine(const rg_case *c, const configuration *f, const expectation *e) {
    rg_built built;
    vpps_handle *h = NULL;
    float losses[2] = {NAN, NAN};
    const vpps_options options = options_of(f);
    bool good = fine(rg_build(&built, c, NULL), "building");
    good = good && fine(vpps_handle_create(&h, built.model, &options), "vpps_handle_create");
    if (good && f->forward) good = check_forward(h, &built, e, c->seed);
    float stale = NAN;
    good = good && step(h, &built, f, 0, &stale);
    if (good && !isnan(stale)) good = wrong("the first stale loss is %g", (double)stale);
    uint32_t last = 0;
    if (good && built.g[1]) {
        good = step(h, &built, f, 1, &losses[0]);
        last = 1;
    }
    good = good && fine(vpps_sync_latest_loss(h, &losses[last]), "vpps_sync_latest_loss");
    for (uint32_t k = 0; k <= last && good; k++) {
        good = compare(k ? "second loss" : "first loss", &losses[k], &e->loss[k], &e->loss_deviation[k], 1);
    }
    good = good && fine(vpps_read_parameters(h), "vpps_read_parameters") && check_trained(built.model, e);
    vpps_handle_destroy(h);
    rg_destroy(&built);
    return good;
}

/* ---------------------------------------------------------------- the cases */

static uint32_t n_unusable, n_graphs, n_engine_runs;

static bool check_case(const rg_case *c, const configuration *f) {
    rg_built built;
    if (!fine(rg_build(&built, c, NULL), "building")) {
        rg_destroy(&built);
        return false;
    }
    expectation e;
    expect(&e, &built, f);
    bool good = true;
    if (e.usable) good = run_engine(c, f, &e);
    forget(&e);
    rg_destroy(&built);
    return good;
}

/* Shrinking keeps to one failure: a wrong number must not turn into a refused script on the way. */
typedef struct failure {
    const configuration *f;
    char kind[12];
} failure;

static bool fails(const rg_case *c, void *context) {
    const failure *failed = context;
    return !check_case(c, failed->f) && !strncmp(finding, failed->kind, sizeof failed->kind);
}

static void report(const rg_case *c, const configuration *f) {
    rg_case small = *c;
    failure failed = {.f = f};
    memcpy(failed.kind, finding, sizeof failed.kind);
    fprintf(stderr, "\ncase of seed %llu fails: %s\n", (unsigned long long)c->seed, finding);
    rg_shrink(&small, fails, &failed, 400);
    rg_built built;
    check_case(&small, f);
    fprintf(stderr,
            "%u VPs, %u groups, %u waves of %u slices, by %s, %s%s%s, optimiser %d, lr %g, decay %g, clip %g%s; a "
            "smaller case, which "
            "fails by\n    %s\n",
            f->vps, f->groups, f->waves, f->slices, f->policy,
            f->gradients == VPPS_GRADIENTS_DEFERRED ? "deferred" : "accumulate", f->portable ? ", portable" : "",
            f->caller == VPPS_CALLER_WORKS ? ", caller works" : ", caller free", (int)f->optimizer.kind,
            (double)f->optimizer.lr, (double)f->optimizer.weight_decay, (double)f->optimizer.clip,
            f->forward ? ", vpps_forward first" : "", finding);
    rg_build(&built, &small, stderr);
    rg_destroy(&built);
}

static rg_case draw_case(uint64_t number) {
    rg_case c;
    rg_draw(&c, test_seed() * 1000003 + number, 4 + (uint32_t)(number % 24));
    const vpps_optimizer optimizer = configuration_of(&c, 0).optimizer;
    c.empty_lists = optimizer.kind == VPPS_SGD && optimizer.weight_decay <= 0;
    return c;
}

/* Cases run in CHUNKS tests, so that each stays within Check's time limit. */
enum { CASES = 2000, CHUNKS = 20, RUNS = 3 };

START_TEST(engine_is_the_reference)
    {
        uint64_t first = (uint64_t)_i * test_scaled(CASES) / CHUNKS,
                 end = (uint64_t)(_i + 1) * test_scaled(CASES) / CHUNKS;
        const char *only = getenv("VPPS_TEST_CASES");
        if (only) {
            unsigned long long a, b;
            if (sscanf(only, "%llu:%llu", &a, &b) != 2) ck_abort_msg("VPPS_TEST_CASES is FIRST:END");
            first = _i ? 0 : a;
            end = _i ? 0 : b;
        }
        for (uint64_t i = first; i < end; i++) {
            const rg_case c = draw_case(i);
            configuration f = configuration_of(&c, 0);
            rg_built built;
            finding[0] = 0;
            ck_assert_msg(fine(rg_build(&built, &c, NULL), "building"), "case %llu: %s", (unsigned long long)i,
                          finding);
            expectation e;
            expect(&e, &built, &f);
            n_graphs++;
            n_unusable += !e.usable;
            for (uint32_t k = 0; k < RUNS && e.usable; k++) {
                f = configuration_of(&c, (uint32_t)(i * RUNS % 8) + k);
                n_engine_runs++;
                if (run_engine(&c, &f, &e)) continue;
                report(&c, &f);
                ck_abort_msg("case %llu: %s", (unsigned long long)i, finding);
            }
            forget(&e);
            rg_destroy(&built);
        }
        ck_assert_msg(n_unusable * 20 <= n_graphs, "%u of %u cases have numbers out of range", n_unusable, n_graphs);
    }
END_TEST

/* The same within what rounding operands to bf16 may do to a graph. */
START_TEST(precisions_are_near_the_reference)
    {
        const vpps_precision precision = _i % 2 ? VPPS_PRECISION_BF16 : VPPS_PRECISION_BF16X3;
        for (uint32_t i = 0; i < test_scaled(test_full() ? 100 : 20); i++) {
            const uint64_t number = 200000 + (uint64_t)_i / 2 * 1000 + i;
            const rg_case c = draw_case(number);
            configuration f = configuration_of(&c, i);
            f.precision = precision;
            finding[0] = 0;
            if (check_case(&c, &f)) continue;
            report(&c, &f);
            ck_abort_msg("case %llu in %s: %s", (unsigned long long)number, _i % 2 ? "bf16" : "bf16x3", finding);
        }
    }
END_TEST

/* ---------------------------------------------------------------- the same bits every time */

static void train_to(const rg_case *c, const configuration *f, float *losses, float **values, size_t *n) {
    rg_built built;
    vpps_handle *h;
    const vpps_options options = options_of(f);
    TEST_OK(rg_build(&built, c, NULL));
    TEST_OK(vpps_handle_create(&h, built.model, &options));
    for (int k = 0; k < 2 && built.g[k]; k++) {
        TEST_OK(vpps_fb(h, built.g[k], built.loss[k], NULL));
        TEST_OK(vpps_sync_latest_loss(h, &losses[k]));
    }
    TEST_OK(vpps_read_parameters(h));
    *n = 0;
    for (uint32_t p = 0; p < vpps_param_count(built.model); p++) *n += vpps_param_elems(&built.model->params[p]);
    *values = malloc((*n + 1) * sizeof(float));
    ck_assert_ptr_nonnull(*values);
    size_t at = 0;
    for (uint32_t p = 0; p < vpps_param_count(built.model); p++) {
        const size_t elems = vpps_param_elems(&built.model->params[p]);
        memcpy(*values + at, built.model->params[p].values, elems * sizeof(float));
        at += elems;
    }
    vpps_handle_destroy(h);
    rg_destroy(&built);
}

START_TEST(equal_runs_give_equal_bits)
    {
        for (uint32_t i = 0; i < test_scaled(100); i++) {
            const rg_case c = draw_case(100000 + i);
            configuration f = configuration_of(&c, i);
            float *a, *b, losses[2][2] = {{0}};
            size_t n, m;
            train_to(&c, &f, losses[0], &a, &n);
            f.caller = i % 2 ? VPPS_CALLER_FREE : VPPS_CALLER_WORKS; /* who runs a VP does not matter */
            train_to(&c, &f, losses[1], &b, &m);
            ck_assert_uint_eq(n, m);
            ck_assert_msg(!memcmp(losses[0], losses[1], sizeof losses[0]), "case %u, %u VPs: losses %.9g and %.9g", i,
                          f.vps, (double)losses[0][0], (double)losses[1][0]);
            ck_assert_msg(!memcmp(a, b, n * sizeof *a), "case %u, %u VPs: parameters differ between equal runs", i,
                          f.vps);
            free(a);
            free(b);
        }
    }
END_TEST

int main(void) {
    setenv("VPPS_CACHE_DIR", "/dev/null", 1); /* what is learned of a case is of no use to another */
    Suite *s = suite_create("random graphs");
    TCase *t = tcase_create("random graphs");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, engine_is_the_reference, 0, CHUNKS);
    tcase_add_loop_test(t, precisions_are_near_the_reference, 0, 4);
    tcase_add_test(t, equal_runs_give_equal_bits);
    suite_add_tcase(s, t);
    return test_main(s);
}
