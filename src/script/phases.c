/* phases.c - tasks: which stage runs over which vertices, and between which two barriers of its group.
 *
 * Forward goes through the strongly connected parts in order, backward in reverse. A part's work may begin in the phase
 * after the last one that writes what it reads; parts that do not read each other share phases. Inside a recurrence a
 * level's stages take a phase each.
 *
 * Slices of a wave run one after the other: heads forward and backward in each, everything else forward in the first and
 * backward in the last.
 */
#include "script/work.h"

static bool add_task(vpps_batch_work *w, uint32_t block, uint32_t stage, uint32_t phase, uint32_t level, uint32_t first,
                     uint32_t n) {
    if (!n) return true;
    if (!VPPS_RESERVE(w->tasks, w->tasks_capacity, w->n_tasks + 1u)) return false;
    w->tasks[w->n_tasks++] = (vpps_task_work){w->blocks[block].group, phase, block, stage, first, n, level, 0, 0};
    uint32_t *phases = &w->group_phases[w->blocks[block].group];
    *phases = vpps_max_u32(*phases, phase + 1);
    return true;
}

/* A part of a block's cell over a level, or all of them (VPPS_NONE), from `phase` on; the phase after its last one. */
static uint32_t add_part(vpps_batch_work *w, uint32_t block, vpps_part part, uint32_t phase, uint32_t level, bool *ok) {
    const vpps_block_work *b = &w->blocks[block];
    const uint32_t first = level == VPPS_NONE ? 0 : vpps_level_first(w, b, level);
    const uint32_t n = (level == VPPS_NONE ? b->n : vpps_level_first(w, b, level + 1)) - first;
    const vpps_compiled_cell *c = w->used[w->blocks[block].type].cell;
    for (uint32_t s = 0; s < c->n_stages; s++) {
        if (c->stages[s].part != part || !n) continue;
        *ok = *ok && add_task(w, block, s, phase, level, first, n);
        phase++;
    }
    return phase;
}

static bool has_type(const vpps_batch_work *w, uint32_t t, uint32_t part) {
    return w->used[t].part == part && w->used[t].first_block != VPPS_NONE;
}

static uint32_t last_level(const vpps_batch_work *w, uint32_t part, uint32_t place) {
    uint32_t levels = 0;
    for (uint32_t t = 0; t < w->n_used; t++)
        if (has_type(w, t, part)) levels = vpps_max_u32(levels, w->blocks[w->used[t].first_block + place].n_levels);
    return levels;
}

/* Does a level's backward begin with rows that a VP makes of gradients in its own rows, which it has contributed itself? Then
 * there is no barrier before it. Where a VP makes shares, others' are among what it reads. */
static bool begins_alone(const vpps_batch_work *w, uint32_t part) {
    for (uint32_t t = 0; t < w->n_used; t++) {
        const vpps_compiled_cell *c = w->used[t].cell;
        if (!has_type(w, t, part)) continue;
        uint32_t first = 0;
        while (first < c->n_stages && c->stages[first].part != VPPS_PART_BACK_MAIN) first++;
        if (!c->needs.columns || (first < c->n_stages && c->stages[first].split != VPPS_SPLIT_ROWS)) return false;
        for (uint32_t j = 0; j < c->n_contributions; j++) {
            const vpps_cell_contribution *to = &c->contributions[j];
            const vpps_cell_value *x = &c->values[to->value];
            if (to->lookup || !(c->needs.recurrent_in >> to->index & 1)) continue;
            if (x->split != VPPS_SPLIT_ROWS || !vpps_rows_dealt(&c->needs, x->rows)) return false;
        }
        for (uint32_t v = c->n_forward; v < c->n_values; v++) {
            const vpps_cell_value *x = &c->values[v];
            if (x->kind == VPPS_VALUE_GRADIENT && (c->needs.recurrent_out >> x->index & 1) && x->stage != first)
                return false;
        }
    }
    return true;
}

/* One of the two passes over a strongly connected part for a slice of a group. `start`: earliest phase. */
static uint32_t add_pass(vpps_batch_work *w, uint32_t part, uint32_t place, bool backward, uint32_t start, bool *ok) {
    const vpps_part eager = backward ? VPPS_PART_BACK_EAGER : VPPS_PART_EAGER;
    const uint32_t levels = last_level(w, part, place);
    const bool alone = backward && begins_alone(w, part);
    uint32_t phase = start, end = start;
    for (uint32_t t = 0; t < w->n_used; t++) {
        if (!has_type(w, t, part)) continue;
        const uint32_t block = w->used[t].first_block + place;
        end = vpps_max_u32(end, add_part(w, block, eager, start, VPPS_NONE, ok));
    }
    phase = end;
    for (uint32_t i = 0; i < levels; i++) {
        const uint32_t level = backward ? levels - 1 - i : i;
        end = phase;
        for (uint32_t t = 0; t < w->n_used; t++) {
            if (!has_type(w, t, part)) continue;
            const uint32_t block = w->used[t].first_block + place;
            end = vpps_max_u32(end, add_part(w, block, (vpps_part)(eager + 1), phase, level, ok));
        }
        phase = alone && i + 1 < levels && end > phase ? end - 1 : end;
    }
    for (uint32_t t = 0; t < w->n_used; t++) {
        if (!has_type(w, t, part)) continue;
        const uint32_t block = w->used[t].first_block + place;
        end = vpps_max_u32(end, add_part(w, block, (vpps_part)(eager + 2), phase, VPPS_NONE, ok));
    }
    return end;
}

/* Where a part's forward, and backward, have ended: phases, by part, for one wave of a group; and where the slice began. */
typedef struct ends {
    uint32_t *forward, *backward;
    uint32_t begin;
} ends;

static uint32_t start_of(const vpps_batch_work *w, uint32_t part, bool backward, const ends *e) {
    uint32_t start = e->begin;
    if (backward)
        start = vpps_max_u32(start, vpps_max_u32(e->forward[part], 1)); /* the loss's factors are stored in phase 0 */
    const uint32_t *ended = backward ? e->backward : e->forward;
    for (uint32_t t = 0; t < w->n_used; t++) {
        if (w->used[t].part != part) continue;
        for (uint32_t u = 0; u < w->n_used; u++) {
            if (w->used[u].part == part || !(backward ? vpps_reads(w, u, t) : vpps_reads(w, t, u))) continue;
            start = vpps_max_u32(start, ended[w->used[u].part]);
        }
    }
    return start;
}

/* Tasks by group and phase. The order inside a phase is that of the parts. */
static bool sort_tasks(vpps_batch_work *w) {
    uint32_t slots = 1;
    for (uint32_t g = 0; g < w->n_groups; g++) slots += w->group_phases[g];
    uint32_t *starts = calloc(slots + 1u, sizeof *starts);
    vpps_task_work *sorted = malloc((w->n_tasks + 1u) * sizeof *sorted);
    uint32_t *base = malloc((w->n_groups + 1u) * sizeof *base);
    const bool ok = starts && sorted && base;
    if (ok) {
        base[0] = 0;
        for (uint32_t g = 0; g < w->n_groups; g++) base[g + 1] = base[g] + w->group_phases[g];
        for (uint32_t i = 0; i < w->n_tasks; i++) starts[base[w->tasks[i].group] + w->tasks[i].phase + 1]++;
        for (uint32_t i = 1; i <= slots; i++) starts[i] += starts[i - 1];
        for (uint32_t i = 0; i < w->n_tasks; i++)
            sorted[starts[base[w->tasks[i].group] + w->tasks[i].phase]++] = w->tasks[i];
        memcpy(w->tasks, sorted, w->n_tasks * sizeof *sorted);
    }
    free(starts);
    free(sorted);
    free(base);
    return ok;
}

static bool is_head(const vpps_batch_work *w, uint32_t part) {
    for (uint32_t t = 0; t < w->n_used; t++)
        if (has_type(w, t, part)) return w->used[t].head;
    return false;
}

/* One slice of a group. */
static void add_slice(vpps_batch_work *w, uint32_t slice, uint32_t group, ends *e, bool *ok) {
    const uint32_t last = vpps_last_slice(w, slice), own = slice * w->n_groups + group,
                   others = last * w->n_groups + group;
    e->begin = w->group_phases[group];
    for (uint32_t part = 0; part < w->n_parts; part++) {
        const bool head = is_head(w, part);
        if (head || slice % w->n_slices == 0)
            e->forward[part] = add_pass(w, part, head ? own : others, false, start_of(w, part, false, e), ok);
    }
    for (uint32_t part = w->n_parts; w->training && part-- > 0;)
        if (slice == last || is_head(w, part))
            e->backward[part] = add_pass(w, part, own, true, start_of(w, part, true, e), ok);
    for (uint32_t i = own; i < w->n_blocks; i += vpps_all_slices(w) * w->n_groups)
        w->blocks[i].slice_end = w->group_phases[group];
    w->group_phases[group]++;
}

/* The phases that blocks have tasks in. */
static void note_phases(vpps_batch_work *w) {
    for (uint32_t i = 0; i < w->n_blocks; i++) w->blocks[i].first_phase = w->blocks[i].first_backward = VPPS_NONE;
    for (uint32_t i = 0; i < w->n_tasks; i++) {
        const uint32_t phase = w->tasks[i].phase;
        vpps_block_work *b = &w->blocks[w->tasks[i].block];
        b->first_phase = vpps_min_u32(b->first_phase, phase);
        if (w->used[b->type].cell->stages[w->tasks[i].stage].backward) {
            b->first_backward = vpps_min_u32(b->first_backward, phase);
            b->last_backward = vpps_max_u32(b->last_backward, phase);
        } else {
            b->last_forward = vpps_max_u32(b->last_forward, phase);
        }
    }
}

vpps_status vpps_choose_phases(vpps_batch_work *w) {
    w->n_tasks = 0;
    w->n_phases = 0;
    if (!VPPS_RESERVE(w->group_phases, w->group_phases_capacity, w->n_groups)) return vpps_no_memory();
    memset(w->group_phases, 0, w->n_groups * sizeof *w->group_phases);
    uint32_t *memory = calloc(2 * (size_t)w->n_parts + 1, sizeof *memory);
    if (!memory) return vpps_no_memory();
    bool ok = true;
    ends e = {memory, memory + w->n_parts, 0};
    for (uint32_t g = 0; g < w->n_groups; g++)
        for (uint32_t slice = 0; ok && slice < vpps_all_slices(w); slice++) add_slice(w, slice, g, &e, &ok);
    for (uint32_t g = 0; g < w->n_groups; g++)
        w->n_phases = vpps_max_u32(w->n_phases, w->group_phases[g] - vpps_all_slices(w));
    free(memory);
    note_phases(w);
    return ok && sort_tasks(w) ? VPPS_OK : vpps_no_memory();
}
