#include "common/episode.h"

static void draw_given(episode *x) {
    for (uint32_t k = 0; k < x->n_batches; k++) {
        uint64_t random = vpps_mix64(x->g[k]->size + k);
        FREED vpps_node *all = need(calloc(4 * (size_t)x->g[k]->size + 1, sizeof *all));
        const uint32_t n_nodes = rg_named_nodes(x->g[k], all), n = 2 + vpps_random_below(&random, EPISODE_NODES - 1);
        x->given[k].n = n;
        for (uint32_t i = 0; i < n; i++) {
            const vpps_node node = i + 1 < n ? all[vpps_random_below(&random, n_nodes)] : x->given[k].nodes[0];
            const size_t elems = vpps_words(vpps_plain_signature(x->g[k], node));
            float *g = i && vpps_random_below(&random, 4) == 0 ? NULL : need(calloc(elems, sizeof *g));
            for (size_t j = 0; g && j < elems; j++) g[j] = vpps_random_unit(&random) - 0.5f;
            x->given[k].nodes[i] = node;
            x->given[k].gradients[i] = g; /* NULL: zeros */
        }
    }
}

episode episode_of(const rg_built *built, int ways) {
    episode x = {.model = built->model};
    for (; x.n_batches < VPPS_COUNT(built->g) && built->g[x.n_batches]; x.n_batches++) {
        x.g[x.n_batches] = built->g[x.n_batches];
        x.loss[x.n_batches] = built->loss[x.n_batches];
    }
    if (ways & EPISODE_HALVES) draw_given(&x);
    return x;
}

void episode_forget(episode *x) {
    for (uint32_t k = 0; k < EPISODE_BATCHES; k++)
        for (uint32_t i = 0; i < x->given[k].n; i++) free(x->given[k].gradients[i]);
}

/* ---------------------------------------------------------------- what an episode must give */

static bool moderate(const double *x, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!(fabs(x[i]) < 1e6)) return false;
    return true;
}

/* Rounding to bf16 is far larger than that of sums, so more runs with noise are needed. */
enum { MOST_RUNS = 3 * REF_NOISE_RUNS };
static uint32_t noisy_runs(const vpps_options *o) {
    return o->precision == VPPS_PRECISION_FP32 ? REF_NOISE_RUNS : MOST_RUNS;
}

/* Returns the reference's mode for run number `number`; 0: exact. As in stochastic arithmetic for single precision (reference.h), products have eight
 * times the noise that rounding causes at most in an operand (runtime/cpu/bf16.h). */
static ref_mode mode_of(const episode *x, const vpps_options *o, uint64_t number) {
    static const double noises[] = {[VPPS_PRECISION_BF16X3] = 8 * 0x1p-17, [VPPS_PRECISION_BF16] = 8 * 0x1p-8};
    if (!number) return (ref_mode){.training = false};
    return (ref_mode){
        .noise = x->noise > 0 ? x->noise : REF_NOISE, .product_noise = noises[o->precision], .noise_seed = number};
}

/* Keeps an exact run of a batch; of a noisy run, how far it deviates. */
static void note_training(expectation *e, uint32_t k, ref_run *r, bool exact) {
    if (!exact) {
        ref_widen(e->value_deviation[k], e->training[k]->values, r->values, r->n_values);
        ref_widen(e->gradient_deviation[k], e->training[k]->grads, r->grads, r->n_values);
        ref_run_destroy(r);
        return;
    }
    e->training[k] = r;
    e->value_deviation[k] = doubles(r->n_values);
    e->gradient_deviation[k] = doubles(r->n_values);
}

/* Trains m; false: its numbers got too large. */
static bool train(ref_model *m, const episode *x, const vpps_options *o, uint64_t number, expectation *e,
                  double *loss) {
    for (uint32_t k = 0; k < x->n_batches; k++) {
        const uint64_t batch = x->model->batches + k + 1;
        ref_mode mode = mode_of(x, o, number ? number + k : 0);
        mode.training = true;
        mode.dropout_key = vpps_dropout_key(o->seed, batch);
        ref_run *r = need(ref_forward(x->g[k], m, &mode));
        if (x->given[k].n)
            ref_backward_from(r, m, x->given[k].n, x->given[k].nodes, x->given[k].gradients);
        else
            ref_backward(r, m, x->loss[k]);
        loss[k] = x->given[k].n ? 0 : r->values[r->first[x->loss[k]]];
        const size_t n = r->n_values;
        const bool good = moderate(r->values, n) && moderate(r->grads, n) && moderate(r->param_grads, r->n_param_elems);
        ref_step(m, r, &o->optimizer);
        note_training(e, k, r, !number);
        if (!good) return false;
    }
    return true;
}

static void expect_inference(expectation *e, const episode *x, const vpps_options *o) {
    ref_mode mode = mode_of(x, o, 0);
    e->inference = need(ref_forward(x->g[0], e->model, &mode));
    const size_t n = e->inference->n_values;
    e->inference_deviation = doubles(n);
    for (uint32_t k = 0; k < noisy_runs(o); k++) {
        mode = mode_of(x, o, k + 100);
        OWNED(ref_run) *r = need(ref_forward(x->g[0], e->model, &mode));
        ref_widen(e->inference_deviation, e->inference->values, r->values, n);
    }
    e->usable = moderate(e->inference->values, n);
}

/* Adagrad and Adam divide a gradient by its own size. If a gradient is mostly rounding, so is the step's sign, which few noisy runs may miss: then
 * any two possible steps count as right. */
static void allow_uncertain_steps(expectation *e, const vpps_optimizer *o) {
    if (o->kind == VPPS_SGD || o->kind == VPPS_MOMENTUM) return;
    for (size_t i = 0; i < e->model->first[e->model->n]; i++)
        if (e->state_deviation[0][i] > 0.01 * fabs(e->model->states[0][i]))
            e->deviation[i] = fmax(e->deviation[i], (double)o->lr);
}

expectation expect_of(const episode *x, const vpps_options *o) {
    expectation e = {.model = ref_model_create(x->model)};
    ref_model *noisy[MOST_RUNS];
    const size_t n = e.model->first[e.model->n];
    for (uint32_t k = 0; k < noisy_runs(o); k++) noisy[k] = ref_model_copy(e.model);
    e.deviation = doubles(n);
    for (int s = 0; s < 2; s++) e.state_deviation[s] = doubles(n);
    expect_inference(&e, x, o);
    e.usable = e.usable && train(e.model, x, o, 0, &e, e.loss);
    for (uint32_t k = 0; k < noisy_runs(o); k++) {
        double loss[EPISODE_BATCHES] = {0};
        if (e.usable) train(noisy[k], x, o, (k + 1) * 1000, &e, loss);
        ref_widen(e.deviation, e.model->values, noisy[k]->values, n);
        for (int s = 0; s < 2; s++) ref_widen(e.state_deviation[s], e.model->states[s], noisy[k]->states[s], n);
        ref_widen(e.loss_deviation, e.loss, loss, EPISODE_BATCHES);
        ref_model_destroy(noisy[k]);
    }
    allow_uncertain_steps(&e, &o->optimizer);
    return e;
}

void forget_expectation(expectation *e) {
    ref_model_destroy(e->model);
    ref_run_destroy(e->inference);
    free(e->deviation);
    free(e->inference_deviation);
    for (int s = 0; s < 2; s++) free(e->state_deviation[s]);
    for (int k = 0; k < EPISODE_BATCHES; k++) {
        ref_run_destroy(e->training[k]);
        free(e->value_deviation[k]);
        free(e->gradient_deviation[k]);
    }
}

/* ---------------------------------------------------------------- running and comparing */

static char finding[1024]; /* what is wrong */

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

/* Nodes that are read back, some of them neighbours, and where their values go. */
enum { NODES = 24 };
typedef struct some_nodes {
    vpps_node nodes[EPISODE_READ];
    float *outs[EPISODE_READ];
    uint32_t n;
} some_nodes;

/* Draws at most `most` nodes of a run's graph. */
static some_nodes draw_nodes(const ref_run *r, vpps_graph *g, uint32_t most, uint64_t random) {
    some_nodes s = {.n = 0};
    FREED vpps_node *all = need(calloc(4 * (size_t)r->flat->n_nodes + 1, sizeof *all));
    const uint32_t n_nodes = rg_named_nodes(g, all);
    s.n = vpps_min_u32(n_nodes, most);
    for (uint32_t i = 0; i < s.n; i++) {
        s.nodes[i] = all[s.n == n_nodes ? i : vpps_random_below(&random, n_nodes)];
        s.outs[i] = need(calloc(r->first[s.nodes[i] + 1] - r->first[s.nodes[i]], sizeof(float)));
    }
    return s;
}

/* Compares what was read with `want`, and forgets the nodes. */
static bool check_nodes(some_nodes *s, bool good, const char *what, const ref_run *r, const double *want,
                        const double *deviation) {
    for (uint32_t i = 0; i < s->n; i++) {
        const size_t at = r->first[s->nodes[i]], elems = r->first[s->nodes[i] + 1] - at;
        char text[96];
        snprintf(text, sizeof text, "%s of n%u (%s)", what, s->nodes[i],
                 vpps_ops[vpps_plain_signature(r->g, s->nodes[i])->op].name);
        good = good && compare(text, s->outs[i], want + at, deviation + at, elems);
        free(s->outs[i]);
    }
    return good;
}

static bool check_forward(vpps_handle *h, const episode *x, const expectation *e) {
    const ref_run *r = e->inference;
    some_nodes s = draw_nodes(r, x->g[0], x->most_read ? x->most_read : NODES, r->flat->n_nodes);
    const bool good = fine(vpps_forward(h, x->g[0], s.n, s.nodes, s.outs), "vpps_forward");
    return check_nodes(&s, good, "forward value", r, r->values, e->inference_deviation);
}

/* Compares parameters, lookup-table entries one by one, since their gradients differ in size. */
static bool check_trained(const vpps_model *model, const expectation *e) {
    for (uint32_t i = 0; i < model->n_params; i++) {
        const vpps_parameter_data *p = &model->params[i];
        const size_t elems = (size_t)p->rows * p->cols;
        for (uint32_t row = 0; row < p->count; row++) {
            const size_t at = row * elems, in_all = e->model->first[i] + at;
            char of[96];
            snprintf(of, sizeof of, "parameter %s%s, row %u", p->name, p->frozen ? " (frozen)" : "", row);
            if (!compare(of, p->values + at, e->model->values + in_all, e->deviation + in_all, elems)) return false;
            for (int s = 0; s < VPPS_MAX_STATES; s++) {
                snprintf(of, sizeof of, "state %d of parameter %s, row %u", s, p->name, row);
                if (p->states[s] && !compare(of, p->states[s] + at, e->model->states[s] + in_all,
                                             e->state_deviation[s] + in_all, elems))
                    return false;
            }
        }
    }
    return true;
}

/* Runs backward of batch number k with a request for a few nodes or many. */
static bool request_nodes(vpps_handle *h, const episode *x, const expectation *e, uint32_t k, bool no_parameters) {
    const ref_run *r = e->training[k];
    uint64_t random = vpps_mix64(r->n_values + k + no_parameters);
    const uint32_t most =
        1 + vpps_random_below(&random, NODES); /* often few, so that few cells have a requested node */
    some_nodes values = draw_nodes(r, x->g[k], vpps_random_below(&random, most), random),
               gradients = draw_nodes(r, x->g[k], 1 + vpps_random_below(&random, most), random + 1);
    const vpps_request request = {sizeof request,  values.n,       values.nodes,  values.outs, gradients.n,
                                  gradients.nodes, gradients.outs, no_parameters, 0,           false};
    const bool good = fine(vpps_backward(h, x->g[k], x->loss[k], &request), "vpps_backward");
    const bool equal = check_nodes(&values, good, "training value", r, r->values, e->value_deviation[k]);
    return check_nodes(&gradients, equal, "gradient", r, r->grads, e->gradient_deviation[k]);
}

/* Runs both halves of a step on batch number k: with no_parameters, after a step that is given up. */
static bool step_in_halves(vpps_handle *h, const episode *x, const expectation *e, uint32_t k, bool no_parameters) {
    const ref_run *r = e->training[k];
    some_nodes values = {.n = x->given[k].n}, gradients = draw_nodes(r, x->g[k], NODES, vpps_mix64(r->n_values + k));
    memcpy(values.nodes, x->given[k].nodes, values.n * sizeof *values.nodes);
    for (uint32_t i = 0; i < values.n; i++)
        values.outs[i] = need(calloc(r->first[values.nodes[i] + 1] - r->first[values.nodes[i]], sizeof(float)));
    const vpps_request request = {sizeof request,  values.n,       values.nodes,  values.outs, gradients.n,
                                  gradients.nodes, gradients.outs, no_parameters, 0,           false};
    const float *const *given = (const float *const *)x->given[k].gradients;
    bool good = !no_parameters || (fine(vpps_step_forward(h, x->g[k], &request), "vpps_step_forward") &&
                                   fine(vpps_step_drop(h), "vpps_step_drop"));
    good = good && fine(vpps_step_forward(h, x->g[k], &request), "vpps_step_forward");
    good = check_nodes(&values, good, "forward half's value", r, r->values, e->value_deviation[k]);
    good = good && fine(vpps_step_backward(h, request.n_values, given), "vpps_step_backward");
    return check_nodes(&gradients, good, "gradient from given ones", r, r->grads, e->gradient_deviation[k]);
}

/* Runs backward of batch number k; with requests, first without parameters' gradients, which must have no effect. */
static bool step_backward(vpps_handle *h, const episode *x, const expectation *e, uint32_t k, int ways) {
    if (x->given[k].n)
        return (!(ways & EPISODE_REQUEST) || step_in_halves(h, x, e, k, true)) && step_in_halves(h, x, e, k, false);
    if (!(ways & EPISODE_REQUEST)) return fine(vpps_backward(h, x->g[k], x->loss[k], NULL), "vpps_backward");
    return request_nodes(h, x, e, k, true) && request_nodes(h, x, e, k, false);
}

/* Trains batch number k; each loss comes with the next call: *stale is the preceding batch's loss. */
static bool step(vpps_handle *h, const episode *x, const expectation *e, uint32_t k, int ways, float *stale) {
    if (k == x->n_batches) return fine(vpps_sync_latest_loss(h, stale), "vpps_sync_latest_loss");
    if (!(ways & EPISODE_PARTS) && !x->given[k].n) return fine(vpps_fb(h, x->g[k], x->loss[k], stale), "vpps_fb");
    if (k && !fine(vpps_sync_latest_loss(h, stale), "vpps_sync_latest_loss")) return false;
    return step_backward(h, x, e, k, ways) && fine(vpps_update(h), "vpps_update");
}

static bool run(vpps_handle *h, const episode *x, const expectation *e, int ways) {
    if (ways & EPISODE_FORWARD && !check_forward(h, x, e)) return false;
    for (uint32_t k = 0; k <= x->n_batches && x->n_batches; k++) {
        float loss = NAN;
        if (!step(h, x, e, k, ways, &loss)) return false;
        if (!k && !isnan(loss)) return wrong("the first stale loss is %g", (double)loss);
        if (k && !compare("a loss", &loss, &e->loss[k - 1], &e->loss_deviation[k - 1], 1)) return false;
    }
    return fine(vpps_read_parameters(h), "vpps_read_parameters") && check_trained(x->model, e);
}

static void restore(vpps_model *model, const float *values, uint64_t batches) {
    for (uint32_t i = 0; i < model->n_params; i++) {
        vpps_parameter_data *p = &model->params[i];
        memcpy(p->values, values, vpps_param_elems(p) * sizeof *values);
        values += vpps_param_elems(p);
        for (int s = 0; s < VPPS_MAX_STATES; s++) {
            free(p->states[s]);
            p->states[s] = NULL;
        }
        p->updates = 0;
    }
    model->batches = batches;
}

const char *episode_check(const episode *x, const expectation *e, const vpps_options *o, int ways) {
    vpps_handle *h = NULL;
    size_t count;
    FREED float *before = model_values(x->model, &count);
    const uint64_t batches = x->model->batches;
    bool good = fine(vpps_handle_create(&h, x->model, o), "vpps_handle_create");
    if (good && (ways & EPISODE_ROWS)) share_rows(h);
    good = good && run(h, x, e, ways);
    vpps_handle_destroy(h);
    restore(x->model, before, batches);
    return good ? NULL : finding;
}
