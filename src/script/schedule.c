/* schedule.c - the steps from a graph to a script, one after the other. */
#include "script/contributions.h"
#include "script/encode.h"
#include "script/scopes.h"

#include <inttypes.h>

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
    vpps_contributions_free(&w->contributions);
    vpps_script_places_free(&w->places);
    void *parts[] = {w->vertices,
                     w->rests,
                     w->needed,
                     w->sources,
                     w->source_outputs,
                     w->sums,
                     w->seeds,
                     w->requested,
                     w->whole,
                     w->used,
                     w->used_of_type,
                     w->used_of_cell,
                     w->edges,
                     w->noted,
                     w->components.of,
                     w->place,
                     w->blocks,
                     w->order,
                     w->unsorted,
                     w->level_starts,
                     w->tasks,
                     w->group_phases,
                     w->stack,
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

/* Words that all vertices of heads, or of the others, keep. */
static uint64_t kept_words(const vpps_batch_work *w, bool heads) {
    uint64_t words = 0;
    for (uint32_t t = 0; t < w->n_used; t++) {
        const vpps_used_type *u = &w->used[t];
        for (uint32_t r = 0; r < VPPS_RECORDS && u->needed && u->head == heads; r++)
            words += u->items[vpps_domain_of(r)] * u->cell->kept_words[r];
    }
    return words;
}

/* Is a batch that finds no room better taken apart into more slices of heads than into more waves? Slices leave everything
 * else as wide as it is, and cost two barriers each, where a wave costs those of all its levels. So they come first, until a
 * slice keeps no more than a quarter of what the rest of its wave does: then twice as many slices would save a tenth at most. */
static bool wants_slices(const vpps_batch_work *w) {
    return kept_words(w, true) / w->n_slices > kept_words(w, false) / 4;
}

/* How a batch may still be taken apart. */
typedef struct parting {
    bool waves, slices; /* into more of these? */
} parting;

/* Takes the batch apart further, into twice as many slices or waves, or as many as there can be. *more: there were more. */
static vpps_status take_apart(vpps_batch_work *w, parting *p, bool *more) {
    for (*more = false; !*more && (p->waves || p->slices);) {
        const bool slices = p->slices && (!p->waves || wants_slices(w));
        uint32_t *n = slices ? &w->n_slices : &w->n_waves;
        const uint32_t before = *n;
        *n = 2 * before;
        VPPS_TRY(vpps_choose_steps(w));
        *more = *n > before;
        if (!*more) *(slices ? &p->slices : &p->waves) = false;
    }
    return VPPS_OK;
}

/* The script for so many waves and slices. POOL: see vpps_encode_batch. */
static vpps_status try_once(vpps_batch *b) {
    vpps_batch_work *w = b->work;
    w->next_word = w->machine->batch;
    VPPS_TRY(vpps_choose_phases(w));
    if (!vpps_count_contributions(w, &w->contributions)) return vpps_no_memory();
    VPPS_TRY(vpps_place_blocks(w));
    return vpps_encode_batch(b);
}

/* In one wave, or in as many as the machine wants for so much; and taken apart further where the pool is too small for that. */
static vpps_status make_script(vpps_batch *b) {
    vpps_batch_work *w = b->work;
    const uint64_t most = w->machine->wave_words;
    const uint32_t waves = w->request->waves, slices = w->request->slices;
    parting p = {true, w->training};
    struct {
        uint64_t words;
        uint32_t waves, slices;
    } least = {.words = UINT64_MAX};
    w->n_waves = 1;
    if (waves) {
        w->n_waves = waves;
    } else if (most) {
        w->n_waves = (uint32_t)((kept_words(w, false) + kept_words(w, true)) / most) + 1;
    }
    w->n_slices = slices && w->training ? slices : 1;
    VPPS_TRY(vpps_choose_steps(w));
    for (bool more = true; more;) {
        const vpps_status status = try_once(b);
        if (status != VPPS_POOL) return status;
        if (w->next_word < least.words) {
            least.words = w->next_word;
            least.waves = w->n_waves;
            least.slices = w->n_slices;
        }
        vpps_find_heads(w);
        VPPS_TRY(take_apart(w, &p, &more));
    }
    return vpps_fail(
        VPPS_POOL,
        "the batch needs %" PRIu64
        " bytes of the pool, parameters included, even in %u wave%s of %u slice%s each; pool_bytes is %" PRIu64
        ". Use smaller batches, or a pool_bytes of %" PRIu64 " or more",
        least.words * 4, least.waves, least.waves == 1 ? "" : "s", least.slices, least.slices == 1 ? "" : "s",
        (uint64_t)w->machine->pool_words * 4, least.words * 4);
}

vpps_status vpps_schedule_batch(vpps_batch *b, vpps_types *types, const vpps_task_plan *machine, vpps_graph *g,
                                const vpps_batch_request *request) {
    vpps_batch_work *w = b->work;
    VPPS_TRY(check_graph(g));
    w->machine = machine;
    w->request = request;
    w->n_requested = w->n_asked = 0;
    w->g = g;
    w->types = types;
    w->training = request->loss != VPPS_NO_NODE;
    types->n_batches++;
    b->part = request->part;
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
    b->n_slices = w->n_slices;
    b->n_vertices = (uint32_t)w->g->n_records;
    b->n_nodes = w->g->size;
    w->request = NULL; /* the caller's */
    return VPPS_OK;
}
