/* phases.c - tasks: which stage runs over which vertices, and between which two barriers of its group.
 *
 * Forward goes through the strongly connected parts in order, backward in reverse. A task runs in the first phase in which all
 * that it reads or overwrites is done: what other VPs do of that, in an earlier phase, what the VP does itself, in the same one
 * at the earliest (cell/order.c). What runs in a phase stands in the order in which it was added.
 *
 * Slices of a wave run one after the other: heads forward and backward in each, everything else forward in the first and
 * backward in the last.
 */
#include "script/work.h"

/* The first phases in which something may be read: by VPs of what they have made themselves, and of what others have. */
typedef struct ready {
    uint32_t own, others;
} ready;

static ready later(ready a, ready b) { return (ready){vpps_max_u32(a.own, b.own), vpps_max_u32(a.others, b.others)}; }

/* What vertices make for others: outputs, and parts of these others' gradients. */
typedef struct links {
    ready outputs, contributions;
} links;

static links latest(links a, links b) {
    return (links){later(a.outputs, b.outputs), later(a.contributions, b.contributions)};
}

/* Of a type, in the slice of the group at hand. */
typedef struct progress {
    links made;
    links other_parts; /* of the types that it reads, and that read it */
    uint32_t *stages;  /* last phase of each */
} progress;

typedef struct phases {
    vpps_batch_work *w;
    progress *types;
    uint32_t *of_part, n_of_part; /* types of the strongly connected part at hand */
    uint32_t begin;               /* of the slice */
    bool ok;
} phases;

static uint32_t after(uint32_t phase, const vpps_stage_set *set, uint64_t which, ready r) {
    if (set->whole & which) return vpps_max_u32(phase, r.others);
    return set->own & which ? vpps_max_u32(phase, r.own) : phase;
}

static ready make(ready r, const vpps_stage_set *set, uint64_t which, uint32_t phase) {
    if (set->whole & which) return later(r, (ready){phase + 1, phase + 1});
    return set->own & which ? later(r, (ready){phase, phase + 1}) : r;
}

/* The phase of a stage of type t; `part`: what levels before have made. */
static uint32_t phase_of(const phases *p, uint32_t t, uint32_t stage, const links *part) {
    const vpps_used_type *u = &p->w->used[t];
    const progress *of = &p->types[t];
    const vpps_cell_stage *s = &u->cell->stages[stage];
    uint32_t phase = p->begin;
    if (s->backward) phase = vpps_max_u32(phase, 1); /* the loss's factors are stored in phase 0 */
    if (stage) phase = vpps_max_u32(phase, of->stages[stage - 1]);
    if (s->behind != VPPS_NONE) phase = vpps_max_u32(phase, of->stages[s->behind] + 1);
    phase = after(phase, &s->inputs, UINT64_MAX, of->other_parts.outputs);
    phase = after(phase, &s->inputs, u->needs.recurrent_in, part->outputs);
    phase = after(phase, &s->gradients, u->linked, of->other_parts.contributions);
    return after(phase, &s->gradients, u->needs.recurrent_out, part->contributions);
}

static void add_task(phases *p, uint32_t block, uint32_t stage, uint32_t level, const links *part) {
    vpps_batch_work *w = p->w;
    const vpps_block_work *b = &w->blocks[block];
    const uint32_t first = level == VPPS_NONE ? 0 : vpps_level_first(w, b, level);
    const uint32_t n = (level == VPPS_NONE ? b->n : vpps_level_first(w, b, level + 1)) - first;
    if (!n) return;
    p->ok = p->ok && VPPS_RESERVE(w->tasks, w->tasks_capacity, w->n_tasks + 1u);
    if (!p->ok) return;
    const uint32_t phase = phase_of(p, b->type, stage, part);
    const vpps_cell_stage *s = &w->used[b->type].cell->stages[stage];
    progress *of = &p->types[b->type];
    w->tasks[w->n_tasks++] = (vpps_task_work){b->group, phase, block, stage, first, n, level, 0, 0};
    w->group_phases[b->group] = vpps_max_u32(w->group_phases[b->group], phase + 1);
    of->stages[stage] = vpps_max_u32(of->stages[stage], phase);
    of->made.outputs = make(of->made.outputs, &s->outputs, w->used[b->type].linked, phase);
    of->made.contributions = make(of->made.contributions, &s->contributions, UINT64_MAX, phase);
}

static void list_types(phases *p, uint32_t part) {
    p->n_of_part = 0;
    for (uint32_t t = 0; t < p->w->n_used; t++)
        if (p->w->used[t].part == part && p->w->used[t].first_block != VPPS_NONE) p->of_part[p->n_of_part++] = t;
}

static uint32_t last_level(const phases *p, uint32_t place) {
    uint32_t levels = 0;
    for (uint32_t i = 0; i < p->n_of_part; i++)
        levels = vpps_max_u32(levels, p->w->blocks[p->w->used[p->of_part[i]].first_block + place].n_levels);
    return levels;
}

/* A part of the part's cells over a level, or all of them (VPPS_NONE). */
static void add_stages(phases *p, uint32_t place, vpps_part part, uint32_t level) {
    links made = {0};
    for (uint32_t i = 0; i < p->n_of_part; i++) made = latest(made, p->types[p->of_part[i]].made);
    for (uint32_t i = 0; i < p->n_of_part; i++) {
        const vpps_used_type *u = &p->w->used[p->of_part[i]];
        for (uint32_t s = u->cell->first_stage[part]; s < u->cell->first_stage[part + 1]; s++)
            add_task(p, u->first_block + place, s, level, &made);
    }
}

/* What the types of other parts have made for those of this one. */
static void find_others(phases *p, uint32_t part) {
    const vpps_batch_work *w = p->w;
    for (uint32_t i = 0; i < p->n_of_part; i++) {
        const uint32_t t = p->of_part[i];
        links *others = &p->types[t].other_parts;
        for (uint32_t u = 0; u < w->n_used; u++) {
            const links *made = &p->types[u].made;
            if (w->used[u].part == part) continue;
            if (vpps_reads(w, t, u)) others->outputs = later(others->outputs, made->outputs);
            if (vpps_reads(w, u, t)) others->contributions = later(others->contributions, made->contributions);
        }
    }
}

/* One of the two passes over the part for a slice of a group. */
static void add_pass(phases *p, uint32_t part, uint32_t place, bool backward) {
    const vpps_part eager = backward ? VPPS_PART_BACK_EAGER : VPPS_PART_EAGER;
    const uint32_t levels = last_level(p, place);
    find_others(p, part);
    add_stages(p, place, eager, VPPS_NONE);
    for (uint32_t i = 0; i < levels; i++) add_stages(p, place, (vpps_part)(eager + 1), backward ? levels - 1 - i : i);
    add_stages(p, place, (vpps_part)(eager + 2), VPPS_NONE);
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

static bool is_head(const phases *p) { return p->n_of_part && p->w->used[p->of_part[0]].head; }

/* One slice of a group. */
static void add_slice(phases *p, uint32_t slice, uint32_t group) {
    vpps_batch_work *w = p->w;
    const uint32_t last = vpps_last_slice(w, slice), own = slice * w->n_groups + group,
                   others = last * w->n_groups + group;
    p->begin = w->group_phases[group];
    for (uint32_t part = 0; part < w->n_parts; part++) {
        list_types(p, part);
        if (is_head(p) || slice % w->n_slices == 0) add_pass(p, part, is_head(p) ? own : others, false);
    }
    for (uint32_t part = w->n_parts; w->training && part-- > 0;) {
        list_types(p, part);
        if (slice == last || is_head(p)) add_pass(p, part, own, true);
    }
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

static uint32_t stages_of(const vpps_used_type *u) { return u->needed ? u->cell->n_stages : 0; }

static bool add_group(vpps_batch_work *w, uint32_t group) {
    uint32_t n = w->n_used;
    for (uint32_t t = 0; t < w->n_used; t++) n += stages_of(&w->used[t]);
    phases p = {.w = w, .types = calloc(1, (w->n_used + 1u) * sizeof *p.types + n * sizeof(uint32_t)), .ok = true};
    if (!p.types) return false;
    p.of_part = (uint32_t *)(void *)(p.types + w->n_used);
    uint32_t *stages = p.of_part + w->n_used;
    for (uint32_t t = 0; t < w->n_used; stages += stages_of(&w->used[t++])) p.types[t].stages = stages;
    for (uint32_t slice = 0; slice < vpps_all_slices(w); slice++) add_slice(&p, slice, group);
    free(p.types);
    return p.ok;
}

vpps_status vpps_choose_phases(vpps_batch_work *w) {
    w->n_tasks = 0;
    w->n_phases = 0;
    if (!VPPS_RESERVE(w->group_phases, w->group_phases_capacity, w->n_groups)) return vpps_no_memory();
    memset(w->group_phases, 0, w->n_groups * sizeof *w->group_phases);
    for (uint32_t g = 0; g < w->n_groups; g++) {
        if (!add_group(w, g)) return vpps_no_memory();
        w->n_phases = vpps_max_u32(w->n_phases, w->group_phases[g] - vpps_all_slices(w));
    }
    note_phases(w);
    return sort_tasks(w) ? VPPS_OK : vpps_no_memory();
}
