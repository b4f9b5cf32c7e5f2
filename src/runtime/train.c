/* train.c - public calls for training steps (whole, or backward and update apart), for reading losses, and for inference. */
#include "runtime/handle.h"

#include <math.h>

void vpps_handle_note_flight(vpps_handle *h, uint64_t number, vpps_goal goal) {
    h->latest_number = number;
    h->latest_goal = goal;
    h->in_flight = true;
    h->next ^= 1;
}

/* Adds the size of the new script (list of tasks) for this graph, and the time that making it took, to the handle's statistics. */
static void count_script(vpps_handle *h, const vpps_graph *g) {
    vpps_stats *stats = &h->stats;
    const vpps_batch *b = h->programs[h->next];
    stats->nodes = g->size;
    stats->levels = b->n_levels;
    stats->phases = b->n_phases;
    stats->instructions = b->n_tasks;
    stats->script_bytes = b->script_words * 4;
    stats->pool_bytes = (uint64_t)(b->pool_words - h->plan.sharded) * 4;
    stats->live_bytes = 4 * (b->parameter_words + b->live_words - h->plan.sharded);
    stats->groups = b->n_groups;
    stats->waves = b->n_waves;
    stats->slices = b->n_slices;
    stats->steps = b->n_steps;
    stats->policy = h->policy->name;
    stats->gradients = vpps_gradient_makers[vpps_profile_current(&h->device->profile)->gradients];
    /* all batching policies would run this batch's vertices alike, so timing them would tell nothing */
    if (!b->n_choices && vpps_profile_goes_on(&h->batching)) h->batching.n = 0;
    stats->host_ns = h->script_ns;
    stats->total_nodes += g->size;
    stats->total_host_ns += h->script_ns;
    if (stats->pool_bytes > stats->peak_pool_bytes) stats->peak_pool_bytes = stats->pool_bytes;
}

vpps_status vpps_handle_train(vpps_handle *h, vpps_graph *g, vpps_batch_request *request, float *stale_loss) {
    /* while gradients are accumulated, the device keeps its settings: it tries no other variant of the kernel */
    if (!h->n_backward) VPPS_TRY(vpps_handle_tune(h));
    VPPS_TRY(vpps_handle_report(h));
    VPPS_TRY(vpps_keep_ask(h, g, request));
    VPPS_TRY(vpps_handle_start(h, g, request, h->model->batches + 1, stale_loss));
    count_script(h, g);
    vpps_handle_foresee(h, g, request);
    return VPPS_OK;
}

/* Starts forward and backward of a graph: with an update if `goal` is VPPS_GOAL_STEP, else with the results requested in h->asked. */
static vpps_status train(vpps_handle *h, vpps_graph *g, vpps_node loss, vpps_goal goal, float *stale_loss) {
    const char *call = goal == VPPS_GOAL_STEP ? "fb" : "backward";
    VPPS_TRY(vpps_graph_status(g));
    VPPS_TRY(vpps_handle_whole(h));
    if (loss == VPPS_NO_NODE && h->stats.processes > 1) { /* a process without a loss also exchanges gradients */
        vpps_graph_clear(g);
        loss = vpps_zeros(g, 1, 1);
        VPPS_TRY(vpps_graph_status(g));
    }
    if (loss == VPPS_NO_NODE) return vpps_fail(VPPS_ARGUMENT, "%s: no loss given", call);
    if (goal == VPPS_GOAL_STEP && h->n_backward)
        return vpps_fail(VPPS_STATE,
                         "fb: gradients of %u calls of vpps_backward are there; expected vpps_update or "
                         "vpps_zero_gradients before",
                         h->n_backward);
    vpps_batch_request request = vpps_handle_request(h, loss, goal);
    if (goal != VPPS_GOAL_STEP) vpps_handle_ask(h, &request);
    VPPS_TRY(vpps_handle_train(h, g, &request, stale_loss));
    vpps_keep_launched(h, g, h->programs[h->next]);
    return VPPS_OK;
}

vpps_status vpps_fb(vpps_handle *h, vpps_graph *g, vpps_node loss, float *stale_loss) {
    VPPS_TRY(vpps_handle_trains(h, "vpps_fb"));
    VPPS_NEED(g);
    if (stale_loss) *stale_loss = NAN;
    VPPS_TRY(train(h, g, loss, VPPS_GOAL_STEP, stale_loss));
    vpps_handle_note_flight(h, ++h->model->batches, VPPS_GOAL_STEP);
    return VPPS_OK;
}

static vpps_status read_asked(vpps_handle *h, const vpps_graph *g) {
    VPPS_TRY(vpps_handle_idle(h, "vpps_backward"));
    vpps_asked_place(&h->asked, h->programs[h->next ^ 1], g);
    const vpps_status status = vpps_asked_read(&h->asked, h->device, h->latest.loss);
    return vpps_handle_break(h, status, h->latest_number, vpps_error_message());
}

vpps_status vpps_backward(vpps_handle *h, vpps_graph *g, vpps_node loss, const vpps_request *request) {
    VPPS_TRY(vpps_handle_trains(h, "vpps_backward"));
    VPPS_NEED(g);
    h->asked.pointers = h->pointers;
    VPPS_TRY(vpps_asked_take(&h->asked, "backward", request, loss));
    if (loss == VPPS_NO_NODE && vpps_asked_nodes(&h->asked))
        return vpps_fail(VPPS_ARGUMENT, "backward: the request names nodes, but no loss is given");
    const vpps_goal goal = h->asked.request.no_parameters ? VPPS_GOAL_NODES : VPPS_GOAL_GRADIENTS;
    VPPS_TRY(vpps_graph_status(g));
    VPPS_TRY(vpps_asked_check(&h->asked, h->device, g));
    VPPS_TRY(train(h, g, loss, goal, NULL));
    h->n_backward += goal == VPPS_GOAL_GRADIENTS;
    vpps_handle_note_flight(h, h->model->batches + 1, goal);
    return vpps_asked_nodes(&h->asked) ? read_asked(h, g) : VPPS_OK;
}

vpps_status vpps_update(vpps_handle *h) {
    VPPS_TRY(vpps_handle_trains(h, "vpps_update"));
    VPPS_TRY(vpps_handle_whole(h));
    if (!h->n_backward) return vpps_fail(VPPS_STATE, "update: there are no gradients; expected vpps_backward before");
    vpps_batch_request request = vpps_handle_request(h, VPPS_NO_NODE, VPPS_GOAL_UPDATE);
    request.groups = h->stats.groups;
    VPPS_TRY(vpps_schedule_update(h->programs[h->next], h->target, h->model, &request));
    vpps_handle_finish(h);
    VPPS_TRY(vpps_handle_report(h));
    VPPS_TRY(vpps_handle_launch(h, h->model->batches + 1));
    h->n_backward = 0;
    vpps_handle_note_flight(h, ++h->model->batches, VPPS_GOAL_UPDATE);
    return VPPS_OK;
}

vpps_status vpps_poll_loss(vpps_handle *h, bool *done, float *loss) {
    VPPS_TRY(vpps_handle_trains(h, "vpps_poll_loss"));
    VPPS_NEED(done);
    *done = false;
    VPPS_TRY(vpps_handle_whole(h));
    if (!h->latest_number) return vpps_fail(VPPS_STATE, "poll: no batch was run yet");
    if (h->in_flight && !h->device->table->finished(h->device)) return VPPS_OK;
    return *done = true, vpps_sync_latest_loss(h, loss);
}

vpps_status vpps_sync_latest_loss(vpps_handle *h, float *loss) {
    VPPS_TRY(vpps_handle_idle(h, "vpps_sync_latest_loss"));
    if (!h->latest_number) return vpps_fail(VPPS_STATE, "sync: no batch was run yet");
    if (loss) *loss = h->latest.loss;
    h->pending = h->latest.status != VPPS_OK;
    return vpps_handle_report(h);
}

vpps_status vpps_forward(vpps_handle *h, vpps_graph *g, uint32_t n, const vpps_node *nodes, float *const *outs) {
    VPPS_TRY(vpps_handle_check(h, "vpps_forward"));
    VPPS_NEED(g);
    if (n) VPPS_NEED(nodes);
    if (n) VPPS_NEED(outs);
    VPPS_TRY(vpps_graph_status(g));
    VPPS_TRY(vpps_handle_whole(h));
    for (uint32_t i = 0; i < n; i++)
        if (!outs[i]) return vpps_fail(VPPS_ARGUMENT, "forward: outs[%u] is NULL", i);
    VPPS_TRY(vpps_check_outs(h->device, &h->pointers, g, n, nodes, outs, "forward: outs"));
    const vpps_request *asked = VPPS_REQUEST(.n_values = n, .values = nodes, .value_outs = outs);
    h->asked.pointers = h->pointers;
    VPPS_TRY(vpps_asked_take(&h->asked, "forward", asked, VPPS_NO_NODE));
    vpps_batch_request request = {.loss = VPPS_NO_NODE, .outputs = nodes, .n_outputs = n};
    VPPS_TRY(vpps_keep_ask(h, g, &request));
    if (!request.n_outputs)
        return vpps_fail(VPPS_ARGUMENT, "forward: no nodes given, and none of the graph's is to be kept");
    VPPS_TRY(vpps_handle_start(h, g, &request, 0, NULL));
    vpps_handle_foresee(h, g, &request);
    uint64_t device_ns;
    return vpps_handle_end_forward(h, g, 0, &device_ns);
}

vpps_status vpps_forward_end(vpps_handle *h) {
    VPPS_TRY(vpps_handle_check(h, "vpps_forward_end"));
    VPPS_TRY(vpps_handle_whole(h));
    const vpps_device_table *table = h->device->table;
    if (!table->forward_end) return VPPS_OK;
    vpps_handle_finish(h);
    const vpps_status status = table->forward_end(h->device);
    return vpps_handle_break(h, status, 0, vpps_error_message());
}
