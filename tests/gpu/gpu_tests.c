/* gpu_tests.c - see gpu_tests.h. */
#include "gpu_tests.h"

#include "common/random_graph.h"
#include "graph/graph.h"
#include "runtime/simt/fiber.h"
#include "runtime/simt/simt.h"

#include <stdio.h>

bool gpu_is_simulated(void) { return !strcmp(test_gpu_device(), "simt"); }

START_TEST(a_sanitizer_is_refused)
    {
        vpps_simt_kernel *kernel;
        double seconds;
        TEST_FAILS(vpps_simt_load(&kernel, "", "test", &seconds), VPPS_DEVICE, "ThreadSanitizer");
    }
END_TEST

int gpu_main(Suite *(*make)(void)) {
    if (!VPPS_SIMT_TSAN || !gpu_is_simulated()) return test_main(make());
    Suite *suite = suite_create("gpu");
    TCase *tests = tcase_create("refused");
    tcase_add_test(tests, a_sanitizer_is_refused);
    suite_add_tcase(suite, tests);
    TEST_LEFT_OUT("software SIMT: its stacks cannot be followed by ThreadSanitizer");
    return test_main(suite);
}

/* ---------------------------------------------------------------- layouts */

vpps_optimizer gpu_optimizer(vpps_optimizer_kind kind) {
    const bool divides = kind == VPPS_ADAM || kind == VPPS_ADAMW;
    return (vpps_optimizer){.kind = kind,
                            .lr = divides ? 0.01f : 0.05f,
                            .momentum = 0.9f,
                            .beta1 = 0.9f,
                            .beta2 = 0.999f,
                            .epsilon = kind == VPPS_ADAGRAD ? 1e-6f : 1e-8f,
                            .weight_decay = 0.02f,
                            .clip = 0.5f};
}

vpps_options gpu_options(const gpu_layout *layout, vpps_optimizer_kind optimizer) {
    char sms[16];
    vpps_options o;
    snprintf(sms, sizeof sms, "%u", layout->sms);
    setenv("VPPS_SIMT_SMS", sms, 1);
    vpps_options_default(&o);
    o.device = test_gpu_device();
    o.pool_bytes = 64u << 20;
    o.optimizer = gpu_optimizer(optimizer);
    o.seed = 1234;
    o.verify = true;
    o.rpw = layout->rpw;
    o.threads = layout->threads;
    o.groups = layout->groups;
    o.no_tuning = true;
    return o;
}

const char *gpu_layout_text(const gpu_layout *layout) {
    static char text[96];
    snprintf(text, sizeof text, "%u SMs in %u groups, %u threads, rpw %u", layout->sms, layout->groups, layout->threads,
             layout->rpw);
    return text;
}

vpps_handle *gpu_open(vpps_model *model, const vpps_options *options) {
    vpps_handle *h = NULL;
    TEST_OK(vpps_handle_create(&h, model, options));
    return h;
}

/* ---------------------------------------------------------------- what an episode must give */

static double *doubles(size_t n) {
    double *d = calloc(n + 1, sizeof *d);
    ck_assert_ptr_nonnull(d);
    return d;
}

static bool moderate(const double *x, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (!(x[i] < 1e6 && x[i] > -1e6)) return false;
    }
    return true;
}

/* Rounding to bf16 is far above that of sums: there are more ways to be off. */
enum { MOST_RUNS = 3 * REF_NOISE_RUNS };
static uint32_t noisy_runs(const gpu_episode *episode) {
    return episode->precision == VPPS_PRECISION_FP32 ? REF_NOISE_RUNS : MOST_RUNS;
}

/* As stochastic arithmetic does for single precision (reference.h), eight times what rounding makes of an operand at most
 * (runtime/cpu/bf16.h). */
static double product_noise(const gpu_episode *episode) {
    static const double noises[] = {[VPPS_PRECISION_BF16X3] = 8 * 0x1p-17, [VPPS_PRECISION_BF16] = 8 * 0x1p-8};
    return noises[episode->precision];
}

static bool train(ref_model *m, const gpu_episode *episode, double noise, uint64_t noise_seed, double *loss) {
    for (uint32_t k = 0; k < episode->n_batches; k++) {
        const ref_mode mode = {.training = true,
                               .dropout_key = vpps_dropout_key(1234, k + 1),
                               .noise = noise,
                               .product_noise = noise > 0 ? product_noise(episode) : 0,
                               .noise_seed = noise_seed + k};
        ref_run *r = ref_forward(episode->g[k], m, &mode);
        ck_assert_ptr_nonnull(r);
        ref_backward(r, m, episode->loss[k]);
        loss[k] = r->values[r->first[episode->loss[k]]];
        const size_t n = r->n_values;
        const bool good = moderate(r->values, n) && moderate(r->grads, n) && moderate(r->param_grads, r->n_param_elems);
        ref_step(m, r, &episode->optimizer, k + 1);
        ref_run_destroy(r);
        if (!good) return false;
    }
    return true;
}

static void expect_inference(gpu_expectation *e, const gpu_episode *episode, const ref_model *start) {
    vpps_graph *g = episode->g[0];
    ref_mode mode = {.training = false};
    e->inference = ref_forward(g, start, &mode);
    ck_assert_ptr_nonnull(e->inference);
    const size_t n = e->inference->n_values;
    e->inference_deviation = doubles(n);
    for (uint32_t k = 0; k < noisy_runs(episode); k++) {
        mode.noise = REF_NOISE;
        mode.product_noise = product_noise(episode);
        mode.noise_seed = k + 100;
        ref_run *r = ref_forward(g, start, &mode);
        ck_assert_ptr_nonnull(r);
        ref_widen(e->inference_deviation, e->inference->values, r->values, n);
        ref_run_destroy(r);
    }
    e->usable = moderate(e->inference->values, n);
}

/* Adagrad and Adam divide a gradient by its own size. Where it is mostly rounding, so is the step's sign: any two steps
 * are then as good. */
static void allow_uncertain_steps(gpu_expectation *e, const gpu_episode *episode) {
    const vpps_optimizer *o = &episode->optimizer;
    if (o->kind == VPPS_SGD || o->kind == VPPS_MOMENTUM) return;
    for (size_t i = 0; i < e->model->first[e->model->n]; i++) {
        if (e->state_deviation[0][i] <=
            0.01 * (e->model->states[0][i] < 0 ? -e->model->states[0][i] : e->model->states[0][i]))
            continue;
        const double any = episode->n_batches * (double)o->lr;
        if (e->deviation[i] < any) e->deviation[i] = any;
    }
}

void gpu_expect(gpu_expectation *e, const gpu_episode *episode) {
    *e = (gpu_expectation){.model = ref_model_create(episode->model)};
    ref_model *noisy[MOST_RUNS];
    const size_t n = e->model->first[e->model->n];
    for (uint32_t k = 0; k < noisy_runs(episode); k++) noisy[k] = ref_model_copy(e->model);
    e->deviation = doubles(n);
    for (int s = 0; s < 2; s++) e->state_deviation[s] = doubles(n);
    expect_inference(e, episode, e->model);
    e->usable = e->usable && train(e->model, episode, 0, 0, e->loss);
    for (uint32_t k = 0; k < noisy_runs(episode); k++) {
        double loss[GPU_BATCHES] = {0};
        if (e->usable) train(noisy[k], episode, REF_NOISE, (k + 1) * 1000, loss);
        ref_widen(e->deviation, e->model->values, noisy[k]->values, n);
        for (int s = 0; s < 2; s++) ref_widen(e->state_deviation[s], e->model->states[s], noisy[k]->states[s], n);
        ref_widen(e->loss_deviation, e->loss, loss, GPU_BATCHES);
        ref_model_destroy(noisy[k]);
    }
    allow_uncertain_steps(e, episode);
}

void gpu_forget(gpu_expectation *e) {
    ref_model_destroy(e->model);
    ref_run_destroy(e->inference);
    free(e->deviation);
    free(e->inference_deviation);
    for (int s = 0; s < 2; s++) free(e->state_deviation[s]);
}

/* ---------------------------------------------------------------- running and comparing */

static void compare(const char *what, const char *of, const float *got, const double *want, const double *deviation,
                    size_t n) {
    double bound = 0;
    const size_t i = ref_compare(got, want, deviation, n, &bound);
    ck_assert_msg(i == n, "%s: %s, element %zu of %zu: %.9g instead of %.9g (allowed: %.3g away)", what, of, i, n,
                  (double)got[i == n ? 0 : i], want[i == n ? 0 : i], bound);
}

/* Reads some nodes back. */
static void check_forward(vpps_handle *h, const gpu_episode *episode, const gpu_expectation *e, const char *what) {
    enum { NODES = 24 };
    const ref_run *r = e->inference;
    vpps_node *all = calloc(4 * (size_t)r->flat->n_nodes + 1, sizeof *all);
    ck_assert_ptr_nonnull(all);
    const uint32_t n_nodes = rg_named_nodes(episode->g[0], all), n = vpps_min_u32(n_nodes, NODES);
    uint64_t random = n_nodes;
    vpps_node nodes[NODES] = {0};
    float *outs[NODES] = {0};
    for (uint32_t i = 0; i < n; i++) {
        nodes[i] = all[n == n_nodes ? i : vpps_random_below(&random, n_nodes)];
        outs[i] = calloc(r->first[nodes[i] + 1] - r->first[nodes[i]], sizeof(float));
        ck_assert_ptr_nonnull(outs[i]);
    }
    free(all);
    const vpps_status status = vpps_forward(h, episode->g[0], n, nodes, outs);
    ck_assert_msg(status == VPPS_OK, "%s: vpps_forward: %s", what, vpps_error_message());
    for (uint32_t i = 0; i < n; i++) {
        const size_t at = r->first[nodes[i]], elems = r->first[nodes[i] + 1] - at;
        char of[96];
        snprintf(of, sizeof of, "forward value of n%u (%s)", nodes[i],
                 vpps_ops[vpps_plain_signature(r->g, nodes[i])->op].name);
        compare(what, of, outs[i], r->values + at, e->inference_deviation + at, elems);
        free(outs[i]);
    }
}

/* Entries of a lookup table one by one: their gradients differ in size. */
static void check_trained(const vpps_model *model, const gpu_expectation *e, const char *what) {
    for (uint32_t i = 0; i < model->n_params; i++) {
        const vpps_parameter_data *p = &model->params[i];
        const size_t elems = (size_t)p->rows * p->cols;
        for (uint32_t row = 0; row < p->count; row++) {
            const size_t at = row * elems, in_all = e->model->first[i] + at;
            char of[96];
            snprintf(of, sizeof of, "parameter %s%s, row %u", p->name, p->frozen ? " (frozen)" : "", row);
            compare(what, of, p->values + at, e->model->values + in_all, e->deviation + in_all, elems);
            for (int s = 0; s < VPPS_MAX_STATES; s++) {
                snprintf(of, sizeof of, "state %d of parameter %s, row %u", s, p->name, row);
                if (!p->states[s]) continue;
                compare(what, of, p->states[s] + at, e->model->states[s] + in_all, e->state_deviation[s] + in_all,
                        elems);
            }
        }
    }
}

static void restore(gpu_episode *episode) {
    vpps_model *model = episode->model;
    const float *from = episode->before;
    for (uint32_t i = 0; i < model->n_params; i++) {
        vpps_parameter_data *p = &model->params[i];
        memcpy(p->values, from, vpps_param_elems(p) * sizeof *from);
        from += vpps_param_elems(p);
        for (int s = 0; s < VPPS_MAX_STATES; s++) {
            free(p->states[s]);
            p->states[s] = NULL;
        }
    }
    model->batches = 0;
    free(episode->before);
    episode->before = NULL;
}

void gpu_check_episode(gpu_episode *episode, const gpu_expectation *e, vpps_handle *h, bool forward, const char *what) {
    size_t count;
    episode->before = gpu_values(episode->model, &count);
    if (forward) check_forward(h, episode, e, what);
    for (uint32_t k = 0; k <= episode->n_batches; k++) { /* each loss comes with the next call */
        float loss = 0;
        const vpps_status status = k < episode->n_batches ? vpps_fb(h, episode->g[k], episode->loss[k], &loss)
                                                          : vpps_sync_latest_loss(h, &loss);
        ck_assert_msg(status == VPPS_OK, "%s: batch %u: %s", what, k + 1, vpps_error_message());
        if (k) compare(what, "a loss", &loss, &e->loss[k - 1], &e->loss_deviation[k - 1], 1);
    }
    const vpps_status status = vpps_read_parameters(h);
    ck_assert_msg(status == VPPS_OK, "%s: vpps_read_parameters: %s", what, vpps_error_message());
    check_trained(episode->model, e, what);
    vpps_handle_destroy(h);
    restore(episode);
}

float *gpu_values(const vpps_model *model, size_t *count) {
    *count = 0;
    for (uint32_t p = 0; p < model->n_params; p++) *count += vpps_param_elems(&model->params[p]);
    float *values = malloc((*count + 1) * sizeof *values);
    ck_assert_ptr_nonnull(values);
    size_t at = 0;
    for (uint32_t p = 0; p < model->n_params; p++) {
        const size_t elems = vpps_param_elems(&model->params[p]);
        memcpy(values + at, model->params[p].values, elems * sizeof *values);
        at += elems;
    }
    return values;
}
