/* phases.c - assigns tasks to phases. A phase is what a group of threads or CTAs (VPs) runs between two barriers.
 *
 * Forward goes through the recurrences (SCCs: strongly connected components of the graph of which cell or op reads which) in order,
 * backward in reverse. A task runs in the first possible phase: later than every phase in which another VP uses data that the task reads or
 * overwrites, not before one in which the same VP does (cell/order.c). Tasks of one phase run in the order in which they were added.
 *
 * A wave is a part of the batch. Its slices run one after the other: classifier heads run forward and backward in each slice, all other
 * types forward in the first slice and backward in the last. A step that pauses after forward has one slice, no phase with tasks of both. */
#include "script/phases.h"

/* The first phase (time between two barriers) in which a virtual processor (thread or CTA) may read rows of a value.
 * own: rows that the same processor computed; others: another processor's rows, readable after a barrier. */
typedef struct ready {
    uint32_t own, others;
} ready;

static ready later(ready a, ready b) { return (ready){vpps_max_u32(a.own, b.own), vpps_max_u32(a.others, b.others)}; }

/* The first phases (times between two barriers) in which other tasks may read what one cell's vertices have computed:
 * their outputs, and the gradients for their inputs (contributions). */
typedef struct links {
    ready outputs, contributions;
} links;

static links latest(links a, links b) {
    return (links){later(a.outputs, b.outputs), later(a.contributions, b.contributions)};
}

/* How far the tasks of one cell's vertices are assigned to phases (times between two barriers), in one part of the
 * batch and one group of threads or CTAs. */
typedef struct progress {
    links made;
    /* first phases (times between barriers) when the cell's vertices may read results from outside their recurrence */
    links other_sccs;
    uint32_t *stages; /* for each part (stage) of the cell: last phase (time between two barriers) in which it runs */
} progress;

typedef struct phases {
    const vpps_steps *s;
    progress *types;
    uint32_t *of_scc, n_of_scc; /* of_scc: the n_of_scc cells or ops of the current SCC (recurrence) */
    /* first phase (time between barriers) of the current slice (batch part) or, after the pause in which the host writes gradients, of backward */
    uint32_t begin;
    vpps_stage_task *tasks; /* all tasks added so far, of all groups of threads or CTAs */
    uint32_t n_tasks;
    uint32_t *group_phases;
    uint32_t *pauses;
    vpps_block_phases *blocks;
} phases;

static uint32_t after(uint32_t phase, const vpps_stage_set *set, uint64_t which, ready r) {
    if (set->whole & which) return vpps_max_u32(phase, r.others);
    return set->own & which ? vpps_max_u32(phase, r.own) : phase;
}

static ready make(ready r, const vpps_stage_set *set, uint64_t which, uint32_t phase) {
    if (set->whole & which) return later(r, (ready){phase + 1, phase + 1});
    return set->own & which ? later(r, (ready){phase, phase + 1}) : r;
}

/* Returns the first phase (time between two barriers) in which a stage (part) of cell t can run. scc: the phases from
 * which results of cells in the same recurrence (cells that read each other) can be read. */
static uint32_t phase_of(const phases *p, uint32_t t, uint32_t stage, const links *scc) {
    const vpps_type_needs *needs = &p->s->needs->types[t];
    const progress *of = &p->types[t];
    const vpps_cell_stage *s = &p->s->batching->cells[t]->stages[stage];
    uint32_t phase = p->begin;
    /* backward begins after the first barrier: before it, the constant gradients of the loss's terms are stored */
    if (s->backward) phase = vpps_max_u32(phase, 1);
    if (stage) phase = vpps_max_u32(phase, of->stages[stage - 1]);
    if (s->after != VPPS_NONE) phase = vpps_max_u32(phase, of->stages[s->after] + 1);
    phase = after(phase, &s->inputs, UINT64_MAX, of->other_sccs.outputs);
    phase = after(phase, &s->inputs, needs->cell.recurrent_in, scc->outputs);
    phase = after(phase, &s->gradients, needs->linked, of->other_sccs.contributions);
    return after(phase, &s->gradients, needs->cell.recurrent_out, scc->contributions);
}

static void add_task(phases *p, uint32_t block, uint32_t stage, uint32_t level, const links *scc) {
    const vpps_step_block *b = &p->s->blocks[block];
    const uint32_t first = level == VPPS_NONE ? 0 : vpps_level_first(p->s, b, level);
    const uint32_t n = (level == VPPS_NONE ? b->n : vpps_level_first(p->s, b, level + 1)) - first;
    if (!n) return;
    const uint32_t phase = phase_of(p, b->type, stage, scc);
    const vpps_cell_stage *s = &vpps_cell_of_block(p->s, b)->stages[stage];
    progress *of = &p->types[b->type];
    p->tasks[p->n_tasks++] = (vpps_stage_task){b->group, phase, block, stage, first, n, level};
    p->group_phases[b->group] = vpps_max_u32(p->group_phases[b->group], phase + 1);
    of->stages[stage] = vpps_max_u32(of->stages[stage], phase);
    of->made.outputs = make(of->made.outputs, &s->outputs, p->s->needs->types[b->type].linked, phase);
    of->made.contributions = make(of->made.contributions, &s->contributions, UINT64_MAX, phase);
}

static void list_types(phases *p, uint32_t scc) {
    p->n_of_scc = 0;
    for (uint32_t t = 0; t < p->s->reading->n_types; t++)
        if (p->s->needs->types[t].scc == scc && p->s->first_block[t] != VPPS_NONE) p->of_scc[p->n_of_scc++] = t;
}

static uint32_t last_level(const phases *p, uint32_t place) {
    uint32_t levels = 0;
    for (uint32_t i = 0; i < p->n_of_scc; i++)
        levels = vpps_max_u32(levels, p->s->blocks[p->s->first_block[p->of_scc[i]] + place].n_levels);
    return levels;
}

/* Adds tasks for all cells of the current recurrence (cells that read each other). They run the parts that belong to
 * `pass`, over the vertices of one level (which run together) or, if level is VPPS_NONE, over all. */
static void add_stages(phases *p, uint32_t place, vpps_pass pass, uint32_t level) {
    links made = {0};
    for (uint32_t i = 0; i < p->n_of_scc; i++) made = latest(made, p->types[p->of_scc[i]].made);
    for (uint32_t i = 0; i < p->n_of_scc; i++) {
        const uint32_t t = p->of_scc[i];
        const vpps_compiled_cell *c = p->s->batching->cells[t];
        for (uint32_t s = c->first_stage[pass]; s < c->first_stage[pass + 1]; s++)
            add_task(p, p->s->first_block[t] + place, s, level, &made);
    }
}

/* For each cell of recurrence number scc (cells that read each other): finds from which phase (time between two
 * barriers) its vertices may read results of cells outside the recurrence. */
static void find_others(phases *p, uint32_t scc) {
    const vpps_batch_needs *needs = p->s->needs;
    vpps_compiled_cell *const *cells = p->s->batching->cells;
    for (uint32_t i = 0; i < p->n_of_scc; i++) {
        const uint32_t t = p->of_scc[i];
        links *others = &p->types[t].other_sccs;
        for (uint32_t u = 0; u < p->s->reading->n_types; u++) {
            links made = p->types[u].made;
            if (needs->types[u].scc == scc || !cells[u]) continue;
            /* a cell with an owner is run by one processor, so the other processors own no rows of its values */
            if (cells[t]->needs.owner || cells[u]->needs.owner)
                made.outputs.own = made.outputs.others, made.contributions.own = made.contributions.others;
            if (vpps_reads(needs, t, u)) others->outputs = later(others->outputs, made.outputs);
            if (vpps_reads(needs, u, t)) others->contributions = later(others->contributions, made.contributions);
        }
    }
}

/* Adds the forward or backward tasks of an SCC (a recurrence: cells that read each other): first work for all levels at
 * once, then level by level, then the rest. place: slice (part of the batch) * n_groups + group of threads or CTAs. */
static void add_pass(phases *p, uint32_t scc, uint32_t place, bool backward) {
    const vpps_pass eager = backward ? VPPS_PASS_BACK_EAGER : VPPS_PASS_EAGER;
    const uint32_t levels = last_level(p, place);
    find_others(p, scc);
    add_stages(p, place, eager, VPPS_NONE);
    for (uint32_t i = 0; i < levels; i++) add_stages(p, place, (vpps_pass)(eager + 1), backward ? levels - 1 - i : i);
    add_stages(p, place, (vpps_pass)(eager + 2), VPPS_NONE);
}

static bool is_head(const phases *p) { return p->n_of_scc && p->s->batching->heads[p->of_scc[0]]; }

/* Adds those tasks of a group of threads or CTAs that run in one slice (part of the batch). */
static void add_slice(phases *p, uint32_t slice, uint32_t group) {
    const vpps_steps *s = p->s;
    const uint32_t n_groups = s->batching->n_groups, last = vpps_last_slice(s, slice), own = slice * n_groups + group,
                   others = last * n_groups + group;
    p->begin = p->group_phases[group];
    for (uint32_t scc = 0; scc < s->needs->n_sccs; scc++) {
        list_types(p, scc);
        if (is_head(p) || slice % s->n_slices == 0) add_pass(p, scc, is_head(p) ? own : others, false);
    }
    if (p->pauses) p->begin = p->pauses[group] = p->group_phases[group];
    for (uint32_t scc = s->needs->n_sccs; s->reading->training && scc-- > 0;) {
        list_types(p, scc);
        if (slice == last || is_head(p)) add_pass(p, scc, own, true);
    }
    for (uint32_t i = own; i < s->n_blocks; i += vpps_all_slices(s) * n_groups)
        p->blocks[i].slice_end = p->group_phases[group];
    p->group_phases[group]++;
}

static uint32_t stages_of(const vpps_compiled_cell *c) { return c ? c->n_stages : 0; }

static bool add_group(phases *p, vpps_arena *arena, uint32_t group) {
    const uint32_t n_types = p->s->reading->n_types;
    uint32_t n = 0, *stages;
    for (uint32_t t = 0; t < n_types; t++) n += stages_of(p->s->batching->cells[t]);
    if (!VPPS_TAKE_ZEROS(arena, p->types, n_types) || !VPPS_TAKE(arena, p->of_scc, n_types) ||
        !VPPS_TAKE_ZEROS(arena, stages, n))
        return false;
    for (uint32_t t = 0; t < n_types; stages += stages_of(p->s->batching->cells[t++])) p->types[t].stages = stages;
    for (uint32_t slice = 0; slice < vpps_all_slices(p->s); slice++) add_slice(p, slice, group);
    return true;
}

static size_t most_tasks(const vpps_steps *s) {
    size_t n = 0;
    for (uint32_t i = 0; i < s->n_blocks; i++) {
        const vpps_compiled_cell *c = vpps_cell_of_block(s, &s->blocks[i]);
        for (uint32_t k = 0; k < c->n_stages; k++) n += vpps_by_levels(c->stages[k].pass) ? s->blocks[i].n_levels : 1;
    }
    return n;
}

static void note_phases(const phases *p) {
    for (uint32_t i = 0; i < p->s->n_blocks; i++) p->blocks[i].first = p->blocks[i].first_backward = VPPS_NONE;
    for (uint32_t i = 0; i < p->n_tasks; i++) {
        const vpps_stage_task *t = &p->tasks[i];
        vpps_block_phases *b = &p->blocks[t->block];
        b->first = vpps_min_u32(b->first, t->phase);
        if (vpps_cell_of_block(p->s, &p->s->blocks[t->block])->stages[t->stage].backward) {
            b->first_backward = vpps_min_u32(b->first_backward, t->phase);
            b->last_backward = vpps_max_u32(b->last_backward, t->phase);
        } else {
            b->last_forward = vpps_max_u32(b->last_forward, t->phase);
        }
    }
}

/* Sorts tasks by group of threads or CTAs, then by phase (time between two barriers), then as they were added. */
static const vpps_stage_task *sort_tasks(const phases *p, vpps_arena *arena) {
    const uint32_t n_groups = p->s->batching->n_groups;
    uint32_t slots = 1, *starts, *base;
    vpps_stage_task *sorted;
    for (uint32_t g = 0; g < n_groups; g++) slots += p->group_phases[g];
    if (!VPPS_TAKE_ZEROS(arena, starts, slots + 1u) || !VPPS_TAKE(arena, base, n_groups + 1u) ||
        !VPPS_TAKE(arena, sorted, p->n_tasks))
        return NULL;
    base[0] = 0;
    for (uint32_t g = 0; g < n_groups; g++) base[g + 1] = base[g] + p->group_phases[g];
    for (uint32_t i = 0; i < p->n_tasks; i++) starts[base[p->tasks[i].group] + p->tasks[i].phase + 1]++;
    for (uint32_t i = 1; i <= slots; i++) starts[i] += starts[i - 1];
    for (uint32_t i = 0; i < p->n_tasks; i++)
        sorted[starts[base[p->tasks[i].group] + p->tasks[i].phase]++] = p->tasks[i];
    return sorted;
}

bool vpps_choose_phases(const vpps_steps *s, vpps_arena *arena, vpps_tasks *out) {
    const uint32_t n_groups = s->batching->n_groups;
    phases p = {.s = s};
    *out = (vpps_tasks){.steps = s};
    if (!VPPS_TAKE_ZEROS(arena, p.group_phases, n_groups) || !VPPS_TAKE_ZEROS(arena, p.blocks, s->n_blocks) ||
        !VPPS_TAKE(arena, p.tasks, most_tasks(s)) ||
        (s->reading->halves && !VPPS_TAKE_ZEROS(arena, p.pauses, n_groups)))
        return false;
    for (uint32_t g = 0; g < n_groups; g++) {
        if (!add_group(&p, arena, g)) return false;
        out->n_phases = vpps_max_u32(out->n_phases, p.group_phases[g] - vpps_all_slices(s));
    }
    note_phases(&p);
    out->all = sort_tasks(&p, arena);
    out->n = p.n_tasks;
    out->blocks = p.blocks;
    out->group_phases = p.group_phases;
    out->pauses = p.pauses;
    return out->all != NULL;
}
