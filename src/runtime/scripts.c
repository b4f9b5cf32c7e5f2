/* scripts.c - makes and checks a batch's script (its tasks, with their data). */
#include "runtime/handle.h"
#include "runtime/log.h"
#include "script/verify/verify.h"

#include <math.h>

static vpps_status verify_batch(const vpps_target *target, const vpps_batch *b, const vpps_graph *g,
                                const vpps_batch_request *request) {
    uint32_t *outputs = malloc((request->n_outputs + (size_t)request->n_gradient_nodes + 1) * sizeof *outputs);
    if (!outputs) return vpps_fail(VPPS_MEMORY, "verify: out of memory");
    uint32_t *gradients = outputs + request->n_outputs;
    for (uint32_t i = 0; i < request->n_outputs; i++) outputs[i] = vpps_batch_output(b, i);
    for (uint32_t i = 0; i < request->n_gradient_nodes; i++) gradients[i] = vpps_batch_gradient(b, i);
    const vpps_status status = vpps_verify_batch(b->script, b->script_words, b->cells, b->n_cells, target, g, request,
                                                 outputs, gradients, request->halves ? vpps_batch_given(b) : NULL);
    free(outputs);
    return status;
}

/* Returns into how many groups a batch divides the virtual processors (threads, CTAs). 0: the scheduler chooses, also
 * while the device still times its settings, such as kernels. */
static uint32_t groups_for(vpps_handle *h, bool training) {
    if (h->options.groups != VPPS_GROUPS_PROFILE) return h->options.groups;
    return training && h->grouping.n && vpps_handle_profile(h) != &h->device->profile
               ? vpps_profile_current(&h->grouping)->groups
               : 0;
}

static const vpps_policy *policy_for(vpps_handle *h, bool training) {
    const vpps_profile *open = vpps_handle_profile(h);
    if (training && h->batching.n && (!open || open == &h->batching))
        h->policy = vpps_policy_find(vpps_profile_current(&h->batching)->policy);
    return h->policy;
}

/* Checks ops whose results decide what later vertices read (argmax, lookup_at): they run in inference only, on devices that can. */
static vpps_status check_decided(const vpps_handle *h, const vpps_graph *g, bool training) {
    if (!g->decides || (!training && h->stats.decides)) return VPPS_OK;
    if (training) return vpps_fail(VPPS_ARGUMENT, "fb: argmax and lookup_at have no gradients; expected vpps_forward");
    return vpps_fail(VPPS_DEVICE,
                     "device %s: does not run argmax and lookup_at; expected cpu, and tables that are not shared out",
                     h->stats.device);
}

/* Drops the least recently used types of vertices (cells, or ops with shapes), with the cells compiled for them, if there are too many, after
 * the running batch has ended. Drops none while gradients accumulate or a trace is recorded: both may need compiled cells of earlier batches. */
static void drop_types(vpps_handle *h) {
    if (!vpps_history_is_full(&h->history) || h->n_backward || h->trace) return;
    vpps_handle_finish(h);
    if (h->device->table->forget_cells) h->device->table->forget_cells(h->device);
    vpps_history_drop(&h->history);
}

/* Returns the caller's request with the handle's decisions: batching policy, groups of CTAs or threads, and so on. */
static vpps_batch_request complete(vpps_handle *h, const vpps_target *target, const vpps_batch_request *asked) {
    const bool training = vpps_request_trains(asked);
    vpps_batch_request request = *asked;
    if (!request.groups) request.groups = groups_for(h, training);
    request.keeps_groups = target->most_cells && h->options.groups != VPPS_GROUPS_PROFILE;
    request.waves = h->options.waves;
    request.slices = h->options.slices;
    request.policy = policy_for(h, training);
    request.learned = &h->learned;
    return request;
}

/* Logs once that gradients=accumulate has no effect, as the batch runs in several groups of CTAs or threads. */
static void tell_deferred(vpps_handle *h, const vpps_batch *b) {
    if (h->options.gradients != VPPS_GRADIENTS_ACCUMULATE || b->n_groups == 1 || h->told_deferred) return;
    vpps_log_line(&h->options,
                  "gradients: deferred: they are accumulated level by level in one group of virtual "
                  "processors, and this batch runs in %u; --groups 1 accumulates them",
                  b->n_groups);
    h->told_deferred = true;
}

vpps_status vpps_handle_script(vpps_handle *h, const vpps_target *target, vpps_graph *g,
                               const vpps_batch_request *asked) {
    const uint64_t start = vpps_now_ns();
    const bool training = vpps_request_trains(asked);
    vpps_batch *b = h->programs[h->next];
    if (g->model != h->model) return vpps_fail(VPPS_ARGUMENT, "the graph belongs to another model than the handle");
    VPPS_TRY(vpps_graph_status(g));
    VPPS_TRY(check_decided(h, g, training));
    VPPS_TRY(vpps_keep_check(h, g));
    drop_types(h);
    const vpps_batch_request request = complete(h, target, asked);
    VPPS_TRY(vpps_schedule_batch(b, &h->history, target, g, &request));
    h->script_ns = vpps_now_ns() - start;
    vpps_trace_span(h->trace, "schedule", start);
    if (training) tell_deferred(h, b);
    return h->options.verify ? verify_batch(target, b, g, &request) : VPPS_OK;
}

/* Chooses the compiled cells (vertex functions) that a batch of graph g with request `asked` would need, so that the device can compile kernels
 * for them ahead. `trained`: for inference, a training batch of g; for training NULL. Ignores failures: they recur when the batch comes. */
static void foresee(vpps_handle *h, vpps_graph *g, const vpps_batch_request *asked, const vpps_batch *trained) {
    char text[VPPS_MESSAGE_BYTES];
    const uint32_t n_compiled = h->history.n_compiled;
    vpps_batch *b;
    snprintf(text, sizeof text, "%s", vpps_error_message());
    if (vpps_batch_create(&b) == VPPS_OK) {
        const vpps_batch_request request = complete(h, h->target, asked);
        const vpps_status status = trained
                                       ? vpps_choose_inference_cells(b, trained, &h->history, h->target, g, &request)
                                       : vpps_choose_cells(b, &h->history, h->target, g, &request);
        if (status == VPPS_OK && h->history.n_compiled > n_compiled)
            h->device->table->compile_ahead(h->device, b, vpps_request_trains(&request));
        vpps_batch_destroy(b);
    }
    vpps_restore_message(text);
}

void vpps_handle_foresee(vpps_handle *h, vpps_graph *g, const vpps_batch_request *launched) {
    const bool training = vpps_request_trains(launched);
    if (!h->target->ahead || vpps_handle_profile(h) || vpps_history_is_full(&h->history)) return;
    vpps_batch_request fewer = *launched;
    if (!vpps_has_news(&h->history, training, &fewer.groups)) return;
    if (fewer.groups && !groups_for(h, training)) foresee(h, g, &fewer, NULL);
    if (training) foresee(h, g, &(vpps_batch_request){.loss = VPPS_NO_NODE}, h->programs[h->next]);
    vpps_has_news(&h->history, training, &fewer.groups); /* result unused: marks as seen the cells compiled just now */
}

/* Returns the random key of a batch's dropout masks. Processes have different keys, and so have the calls of vpps_backward between two
 * updates; the first of these calls has the key that vpps_fb, a whole step, would have. */
static uint64_t dropout_key(const vpps_handle *h, uint64_t batch) {
    const uint64_t seed = vpps_mix64(h->stats.rank) ^ vpps_mix64((uint64_t)h->n_backward << 32); /* mix64(0) is 0 */
    return vpps_dropout_key(seed ^ h->options.seed, batch);
}

/* Returns each parameter's learning rate, momentum and weight decay; NULL: the optimizer's numbers apply to all parameters. */
static const vpps_param_step *steps_of_groups(vpps_handle *h) {
    const vpps_optimizer *o = &h->options.optimizer;
    for (size_t p = 0; h->groups && p < h->model->n_params; p++) {
        const vpps_param_group *g = &h->groups[p];
        h->steps[p] = (vpps_param_step){.lr = isnan(g->lr) ? o->lr : g->lr,
                                        .momentum = isnan(g->momentum) ? o->momentum : g->momentum,
                                        .weight_decay = isnan(g->weight_decay) ? o->weight_decay : g->weight_decay};
    }
    return h->steps;
}

void vpps_handle_ask(const vpps_handle *h, vpps_batch_request *request) {
    const vpps_asked *a = &h->asked;
    const uint64_t draw = a->request.draw, rank = vpps_mix64(h->stats.rank);
    request->outputs = a->nodes;
    request->n_outputs = a->n_values;
    request->gradient_nodes = a->nodes + a->n_values;
    request->n_gradient_nodes = a->n_gradients;
    request->no_dropout = a->request.no_dropout;
    /* batch number 0: training batches are numbered from 1, so none of them has this key */
    if (draw) request->dropout_key = vpps_dropout_key(rank ^ vpps_mix64(draw) ^ h->options.seed, 0);
}

vpps_batch_request vpps_handle_request(vpps_handle *h, vpps_node loss, vpps_goal goal) {
    uint64_t batch = h->model->batches + 1;
    return (vpps_batch_request){
        .loss = loss,
        .goal = goal,
        .optimizer = &h->options.optimizer,
        .steps = steps_of_groups(h),
        .gradients = h->options.gradients,
        .guard = h->options.nonfinite != VPPS_NONFINITE_IGNORE,
        .step = (uint32_t)batch,
        .dropout_key = dropout_key(h, batch),
    };
}

vpps_status vpps_handle_batch_for(vpps_handle *h, vpps_graph *g, vpps_node loss, const vpps_target *target,
                                  uint32_t groups, const vpps_batch **out) {
    VPPS_TRY(vpps_graph_status(g));
    if (loss == VPPS_NO_NODE) return vpps_fail(VPPS_ARGUMENT, "script: no loss given");
    vpps_batch_request request = vpps_handle_request(h, loss, VPPS_GOAL_STEP);
    request.groups = groups;
    VPPS_TRY(vpps_handle_script(h, target, g, &request));
    *out = h->programs[h->next];
    return VPPS_OK;
}

vpps_status vpps_handle_batch(vpps_handle *h, vpps_graph *g, vpps_node loss, const vpps_batch **out) {
    return vpps_handle_batch_for(h, g, loss, h->target, 0, out);
}

vpps_status vpps_disassemble(vpps_handle *h, vpps_graph *g, vpps_node loss, FILE *file) {
    VPPS_TRY(vpps_handle_trains(h, "vpps_disassemble"));
    VPPS_NEED(g, file);
    const vpps_batch *b;
    VPPS_TRY(vpps_handle_batch(h, g, loss, &b));
    return vpps_print_batch(b, g->model, file);
}
