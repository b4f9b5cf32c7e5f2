/* schedule.c - the steps from a graph to a script, one after the other. */
#include "script/scopes.h"

vpps_status vpps_batch_create(vpps_batch **out) {
    *out = calloc(1, sizeof **out);
    if (*out) (*out)->work = calloc(1, sizeof *(*out)->work);
    if (*out && (*out)->work) return VPPS_OK;
    free(*out);
    *out = NULL;
    return vpps_no_memory();
}

void vpps_batch_destroy(vpps_batch *b) {
    if (!b) return;
    vpps_batch_work *w = b->work;
    for (uint32_t i = 0; i < w->n_tables; i++) free(w->rows[i]);
    void *parts[] = {w->vertices,
                     w->rests,
                     w->sources,
                     w->output_of_node,
                     w->sums,
                     w->seeds,
                     w->requested,
                     w->used,
                     w->used_of_type,
                     w->used_of_cell,
                     w->edges,
                     w->place,
                     w->blocks,
                     w->order,
                     w->unsorted,
                     w->level_starts,
                     w->tasks,
                     w->users,
                     w->group_phases,
                     w->rows,
                     w->entries,
                     w->entry_uses,
                     w->touched,
                     w->stack,
                     w->output_at,
                     w->runs,
                     w->lives,
                     w->level_ends,
                     w->passing_at,
                     w->passing_life,
                     w->ends_of_type,
                     w,
                     b->script,
                     b->cells,
                     b};
    for (size_t i = 0; i < VPPS_COUNT(parts); i++) free(parts[i]);
}

static vpps_status check_graph(const vpps_graph *g) {
    VPPS_TRY(vpps_graph_status(g));
    if (g->recording) return vpps_fail(VPPS_STATE, "graph: the cell %s is still being recorded", g->recording->name);
    return VPPS_OK;
}

/* Words that all vertices keep. */
static uint64_t kept_words(const vpps_batch_work *w) {
    uint64_t words = 0;
    for (uint32_t t = 0; t < w->n_used; t++) {
        const vpps_used_type *u = &w->used[t];
        for (uint32_t r = 0; r < VPPS_RECORDS && u->needed; r++)
            words += u->items[vpps_domain_of(r)] * u->cell->kept_words[r];
    }
    return words;
}

/* In one wave, or in as many as the machine wants for so much; and in more where the pool is too small for that. */
static vpps_status make_script(vpps_batch *b) {
    vpps_batch_work *w = b->work;
    const uint64_t most = w->machine->wave_words;
    uint32_t waves = w->request->waves, before = 0;
    if (!waves) waves = most ? (uint32_t)(kept_words(w) / most) + 1 : 1;
    for (vpps_status status = VPPS_OK;; waves = 2 * w->n_waves) {
        w->n_waves = waves;
        w->next_word = w->machine->batch;
        VPPS_TRY(vpps_choose_steps(w));
        if (w->n_waves <= before) return status; /* there are no more components */
        before = w->n_waves;
        VPPS_TRY(vpps_choose_phases(w));
        VPPS_TRY(vpps_count_contributions(w));
        VPPS_TRY(vpps_place_blocks(w));
        status = vpps_encode_batch(b);
        if (status != VPPS_POOL) return status;
    }
}

vpps_status vpps_schedule_batch(vpps_batch *b, vpps_types *types, const vpps_task_plan *machine, vpps_graph *g,
                                const vpps_batch_request *request) {
    vpps_batch_work *w = b->work;
    VPPS_TRY(check_graph(g));
    w->machine = machine;
    w->request = request;
    w->n_requested = 0;
    w->g = g;
    w->types = types;
    w->training = request->loss != VPPS_NO_NODE;
    VPPS_TRY(vpps_read_graph(w));
    VPPS_TRY(vpps_choose_cells(w, b));
    VPPS_TRY(make_script(b));
    b->n_levels = w->n_levels;
    b->n_phases = w->n_phases;
    b->n_steps = w->n_steps;
    b->gathered_words = 0;
    for (uint32_t t = 0; t < w->n_used; t++)
        if (w->used[t].needed) b->gathered_words += w->used[t].items[0] * vpps_gathered_words(w->used[t].cell);
    b->n_choices = 0;
    for (uint32_t part = 0; part < w->n_parts; part++) b->n_choices += vpps_types_of_part(w, part) > 1;
    b->parameter_words = w->machine->batch;
    b->live_words = w->live_words;
    b->n_groups = w->n_groups;
    b->n_waves = w->n_waves;
    b->n_vertices = w->n_vertices;
    b->n_nodes = w->g->n_nodes;
    w->request = NULL; /* the caller's */
    return VPPS_OK;
}
