/* statistics.c - a handle's statistics, timed alternatives (trials), and trace, to which callers may add time spans. */
#include "runtime/handle.h"

vpps_status vpps_handle_stats(vpps_handle *h, vpps_stats *out) {
    VPPS_TRY(vpps_handle_here(h, "vpps_handle_stats"));
    VPPS_NEED(out);
    vpps_stats stats = h->stats;
    stats.kept_values = h->kept.n_live;
    stats.kept_bytes = 4 * (uint64_t)h->kept.used_words;
    stats.keep_bytes = 4 * (uint64_t)h->kept.words;
    if (!h->infers) stats.batches = h->model->batches - (h->in_flight && vpps_goal_updates(h->latest_goal));
    return vpps_give_struct(out, &stats, sizeof stats, VPPS_LEAST(vpps_stats, policy), "vpps_stats");
}

/* Writes a trial (a measurement) to element i of the caller's array, whose elements have the size that the caller wrote to element 0. */
static vpps_status give_trial(const vpps_trial *trial, vpps_trial *out, uint32_t i) {
    const size_t size = out->size;
    void *to = (char *)out + i * size;
    memcpy(to, &size, sizeof size);
    return vpps_give_struct(to, trial, sizeof *trial, VPPS_LEAST(vpps_trial, load_seconds), "vpps_trial");
}

vpps_status vpps_handle_trials(vpps_handle *h, vpps_trial *out, uint32_t *n, bool *done) {
    VPPS_TRY(vpps_handle_here(h, "vpps_handle_trials"));
    VPPS_NEED(n, done);
    const uint32_t room = *n;
    if (room) VPPS_NEED(out);
    const vpps_device_table *table = h->device->table;
    vpps_trial t;
    *done = !vpps_handle_profile(h);
    for (*n = 0; table->measured && table->measured(h->device, *n, &t); ++*n)
        if (*n < room) VPPS_TRY(give_trial(&t, out, *n));
    for (uint32_t i = 0; i < VPPS_PROFILES; i++) {
        const vpps_profile *p = vpps_profile_of(h, i);
        for (uint32_t k = 0; k < p->n; k++, ++*n)
            if (*n < room) VPPS_TRY(give_trial(&p->trials[k], out, *n));
    }
    return VPPS_OK;
}

vpps_status vpps_trace_begin(vpps_handle *h, const char *name) {
    VPPS_TRY(vpps_handle_here(h, "vpps_trace_begin"));
    VPPS_NEED(name);
    vpps_trace *t = h->trace;
    if (!t) return VPPS_OK;
    if (t->n_open == VPPS_OPEN_SPANS)
        return vpps_fail(VPPS_STATE, "trace: %.40s begins inside %d others; expected at most that", name, t->n_open);
    vpps_span_note *span = &t->open[t->n_open++];
    if (snprintf(span->name, sizeof span->name, "%s", name) >= (int)sizeof span->name)
        vpps_drop_cut_character(span->name);
    span->begin_ns = vpps_now_ns();
    return VPPS_OK;
}

vpps_status vpps_trace_end(vpps_handle *h) {
    VPPS_TRY(vpps_handle_here(h, "vpps_trace_end"));
    vpps_trace *t = h->trace;
    if (!t) return VPPS_OK;
    if (!t->n_open) return vpps_fail(VPPS_STATE, "trace: nothing to end; expected vpps_trace_begin before");
    const vpps_span_note *span = &t->open[--t->n_open];
    vpps_trace_span(t, span->name, span->begin_ns);
    return VPPS_OK;
}

vpps_status vpps_trace_write(vpps_handle *h, FILE *file) {
    VPPS_TRY(vpps_handle_here(h, "vpps_trace_write"));
    VPPS_NEED(file);
    if (!h->trace) return vpps_fail(VPPS_STATE, "trace: nothing was noted; expected options.trace_events above 0");
    vpps_handle_finish(h);
    return vpps_trace_print(h->trace, h->model, h->options.device, file);
}
