/* flight.c - launches a handle's batches. The outcome of a batch is taken when the next batch is launched, or when a caller asks for it. */
#include "runtime/handle.h"

#include <inttypes.h>
#include <math.h>

static uint64_t trace_clock(const vpps_handle *h) { return h->trace ? vpps_now_ns() : 0; }

vpps_status vpps_handle_break(vpps_handle *h, vpps_status status, uint64_t batch, const char *message) {
    if (status == VPPS_OK) return VPPS_OK;
    char what[32] = "forward";
    if (batch) snprintf(what, sizeof what, "batch %" PRIu64, batch);
    h->broken = status;
    snprintf(h->failure, sizeof h->failure, "%s: %s", what, message);
    return vpps_handle_whole(h);
}

/* Counts a batch whose loss or gradient norm is not finite, and fails if the options say so. The device has skipped the update. */
static void check_finite(vpps_handle *h) {
    const bool loss = !isfinite(h->latest.loss);
    if (!loss && isfinite(h->latest.norm)) return;
    h->stats.skipped++;
    if (h->options.nonfinite != VPPS_NONFINITE_STOP) return;
    h->pending = true;
    h->latest.status = VPPS_NONFINITE;
    snprintf(h->latest.message, sizeof h->latest.message, "%s is %g; parameters are as before this batch",
             loss ? "the loss" : "the gradient's norm", (double)(loss ? h->latest.loss : h->latest.norm));
}

void vpps_handle_wait(vpps_handle *h, vpps_outcome *out) {
    const uint64_t begin = trace_clock(h);
    h->device->table->wait(h->device, out);
    vpps_trace_span(h->trace, "wait for device", begin);
    if (h->trace) vpps_trace_landed(h->trace, out->device_ns);
}

static void count_share(vpps_handle *h) {
    const vpps_share_cost *cost = &h->latest.shared;
    h->stats.total_exchange_ns += cost->exchange_ns + cost->fetch_ns;
    h->stats.total_sent_bytes += cost->sent_bytes;
    h->slowest_ns += cost->slowest_ns;
    h->mean_ns += cost->mean_ns;
    h->stats.imbalance = h->mean_ns ? (double)h->slowest_ns / (double)h->mean_ns - 1 : 0;
}

/* Adds the time in which the device was idle between two training batches to the statistics. */
static void count_gap(vpps_handle *h) {
    vpps_stats *s = &h->stats;
    const uint64_t before = h->latest_end_ns;
    const bool known = before && h->latest.begin_ns >= before && h->latest.end_ns >= h->latest.begin_ns;
    s->wall_ns = known ? h->latest.end_ns - before : 0;
    s->gap_ns = known ? h->latest.begin_ns - before : 0;
    s->total_wall_ns += s->wall_ns;
    s->total_gap_ns += s->gap_ns;
    h->latest_end_ns = h->latest.end_ns;
}

vpps_profile *vpps_profile_of(vpps_handle *h, uint32_t i) {
    vpps_profile *const all[VPPS_PROFILES] = {&h->device->profile, &h->grouping, &h->batching};
    return all[i];
}

vpps_profile *vpps_handle_profile(vpps_handle *h) {
    for (uint32_t i = 0; i < VPPS_PROFILES; i++)
        if (vpps_profile_goes_on(vpps_profile_of(h, i))) return vpps_profile_of(h, i);
    return NULL;
}

/* Records the latest batch's time, if settings are being timed (profile) and it was a whole training step. */
static void note_trial(vpps_handle *h) {
    vpps_profile *p = vpps_handle_profile(h);
    if (!p || h->latest_goal != VPPS_GOAL_STEP) return;
    const uint32_t groups = vpps_profile_current(p)->groups;
    vpps_profile_note(p, !groups || groups == h->stats.groups, h->stats.nodes, h->latest.own_ns);
}

void vpps_handle_finish(vpps_handle *h) {
    if (!h->in_flight || h->process != vpps_process_number()) return;
    vpps_handle_wait(h, &h->latest);
    h->in_flight = false;
    h->latest.device_ns += h->open.forward_ns;
    h->open.forward_ns = 0;
    h->stats.device_ns = h->latest.device_ns;
    h->stats.total_device_ns += h->latest.device_ns;
    count_gap(h);
    count_share(h);
    if (vpps_handle_break(h, h->latest.status, h->latest_number, h->latest.message) != VPPS_OK) return;
    note_trial(h);
    if (vpps_handle_break(h, vpps_keep_finished(h), h->latest_number, vpps_error_message()) != VPPS_OK) return;
    if (h->options.nonfinite != VPPS_NONFINITE_IGNORE && vpps_goal_updates(h->latest_goal)) check_finite(h);
}

void vpps_handle_vote(vpps_handle *h, uint32_t vote) { h->vote = vote; }
uint32_t vpps_handle_votes(const vpps_handle *h) { return h->latest.shared.votes; }

vpps_status vpps_handle_report(vpps_handle *h) {
    VPPS_TRY(vpps_handle_whole(h));
    if (!h->pending) return VPPS_OK;
    h->pending = false;
    return vpps_fail(h->latest.status, "batch %" PRIu64 ": %s", h->latest_number, h->latest.message);
}

vpps_status vpps_handle_tune(vpps_handle *h) {
    /* while settings are compared by speed, the running batch must end, and be timed, before the setting changes */
    if (vpps_handle_profile(h)) vpps_handle_finish(h);
    return h->device->table->tune ? h->device->table->tune(h->device) : VPPS_OK;
}

vpps_status vpps_handle_launch(vpps_handle *h, uint64_t batch) {
    const vpps_batch *b = h->programs[h->next];
    const vpps_device_table *table = h->device->table;
    const uint64_t begin = trace_clock(h);
    if (h->trace) vpps_trace_launch(h->trace, batch, b->n_vertices, b->n_tasks);
    h->device->vote = h->vote;
    h->device->unstarted = false;
    const vpps_status status = table->launch(h->device, b);
    if (h->target->most_cells) vpps_remember_kernel(&h->history, b->n_cells, b->cells, status == VPPS_OK);
    vpps_trace_span(h->trace, "launch", begin);
    if (status == VPPS_MEMORY || (status == VPPS_POOL && !table->host_vps) || h->device->unstarted) return status;
    return vpps_handle_break(h, status, batch, vpps_error_message());
}

/* Returns whether the device may get the new batch already while another one runs. A trace, and values that stay on the
 * device for later batches, forbid this: they need the running batch's end. */
static bool may_queue(vpps_handle *h, const vpps_graph *g) {
    const vpps_device_table *table = h->device->table;
    return h->in_flight && !h->infers && !h->n_backward && !h->trace && !h->kept.n_copies && !g->n_keeps &&
           !vpps_handle_profile(h) && table->queues && table->queues(h->device, h->programs[h->next]);
}

/* Gives the device the new batch, then waits for the running one: *stale_loss becomes the running batch's loss. If the
 * running batch fails, returns that failure, and the device skips the new batch. */
static vpps_status queue(vpps_handle *h, uint64_t batch, float *stale_loss) {
    vpps_outcome none;
    const vpps_status launched = vpps_handle_launch(h, batch);
    vpps_handle_finish(h);
    const vpps_status before = vpps_handle_report(h);
    if (before != VPPS_OK && launched == VPPS_OK) vpps_handle_wait(h, &none);
    VPPS_TRY(before);
    if (stale_loss) *stale_loss = h->latest.loss;
    return launched;
}

vpps_status vpps_handle_start(vpps_handle *h, vpps_graph *g, const vpps_batch_request *request, uint64_t batch,
                              float *stale_loss) {
    VPPS_TRY(vpps_handle_script(h, h->target, g, request));
    if (batch && may_queue(h, g)) return queue(h, batch, stale_loss);
    vpps_handle_finish(h);
    VPPS_TRY(vpps_handle_report(h));
    VPPS_TRY(vpps_handle_refresh(h));
    const vpps_status kept = vpps_keep_parameters(h, g, h->programs[h->next]);
    VPPS_TRY(kept == VPPS_MEMORY ? kept : vpps_handle_break(h, kept, batch, vpps_error_message()));
    if (stale_loss) *stale_loss = h->latest.loss;
    vpps_status status;
    while ((status = vpps_handle_launch(h, batch)) == VPPS_POOL && vpps_profile_goes_on(&h->device->profile) &&
           !h->n_backward) {
        VPPS_TRY(vpps_handle_tune(h));
        VPPS_TRY(vpps_handle_script(h, h->target, g, request));
    }
    return status;
}
