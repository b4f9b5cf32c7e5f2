/* memory.c - chooses where each tensor of a batch lies in the device's memory (the pool). Tensors that are never in use
 * at the same time share words (allocate.c). Time is counted in phases: a phase is what a group of threads (GPU: CTAs)
 * does between two barriers. A block is the vertices of one cell in one group; a task, a part of its work. Tensors:
 *
 *   values that a block keeps: in use until its tasks, blocks that read it, and parameters' gradients have read them
 *   values that only forward or only backward of a block uses (pass records): from that pass's first to its last task
 *   gradients that a task computes for vertices that it reads: until these vertices have added them up; gradients of
 *     table rows: until the end of the slice (a part of the batch)
 *   sums of table rows' gradients: from the end of the first slice to the end of the batch's program
 *
 * Nothing orders the phases of different groups, so each group has its own range of the pool. */
#include "script/memory.h"

#include "script/allocate.h"

typedef struct placer {
    const vpps_tasks *tasks;
    const vpps_steps *s;
    const vpps_contributions *contributions;
    vpps_arena *arena;
    vpps_placement *out;
    vpps_block_memory *blocks;
    uint32_t *pass_record, *contributed;
    vpps_tensor_life *lives;
    uint32_t n_lives;
    bool (*all_levels)[2];
    /* for each block (vertices of one type): whether the host reads a value or gradient of the block */
    bool *requested;
    uint32_t *level_ends;
    uint32_t *last_reads;
    uint32_t *pass_record_at, *pass_record_life;
    const uint32_t **ends_of_type;
} placer;

static uint64_t rounded(uint64_t words) { return (words + 15) & ~(uint64_t)15; }

static void add_life(placer *p, uint64_t words, uint32_t first, uint32_t last, uint32_t *offset) {
    *offset = 0;
    if (words) p->lives[p->n_lives++] = (vpps_tensor_life){rounded(words), first, last, 0, offset};
}

static const vpps_compiled_cell *cell_of(const placer *p, uint32_t block) {
    return vpps_cell_of_block(p->s, &p->s->blocks[block]);
}

static const vpps_cell_stage *stage_of(const placer *p, const vpps_stage_task *t) {
    return &cell_of(p, t->block)->stages[t->stage];
}

/* ---------------------------------------------------------------- kept values */

static void find_requested(placer *p) {
    const vpps_reading *r = p->s->reading;
    for (uint32_t i = 0; i < r->n_requested + r->n_asked; i++) {
        const uint32_t v = i < r->n_requested ? r->requested[i].vertex : r->asked[i - r->n_requested].vertex;
        if (p->s->needs->needed[v]) p->requested[vpps_block_of(p->s, v)] = true;
    }
}

static bool is_term(const vpps_steps *s, uint32_t block) {
    for (uint32_t i = 0; i < s->reading->n_seeds; i++)
        if (vpps_block_of(s, s->reading->seeds[i].to.vertex) == block) return true;
    return false;
}

/* Returns the number of the block with the vertices of this type in this slice (part of the batch) and in b's group of processors. */
static uint32_t block_beside(const vpps_steps *s, const vpps_step_block *b, uint32_t type, uint32_t slice) {
    return s->first_block[type] + slice * s->batching->n_groups + b->group;
}

/* Block b (vertices of one cell) reads vertices of type `type` (another cell). Returns the number of their block. A batch runs in parts
 * (waves), a wave's classifiers (vertices that only the loss reads) in parts of their own (slices). Classifiers are read in b's slice. The
 * wave's other vertices are not divided: their blocks count as the last slice's. */
static uint32_t read_by(const vpps_steps *s, const vpps_step_block *b, uint32_t type) {
    return block_beside(s, b, type, s->batching->heads[type] ? b->slice : vpps_last_slice(s, b->slice));
}

static uint32_t last_of(const vpps_block_phases *b) { return vpps_max_u32(b->last_forward, b->last_backward); }

/* Returns the last phase (time between two barriers) in which vertices of type `type` may read block b (vertices of one cell). A batch runs
 * in parts (waves), a wave's classifiers (vertices that only the loss reads) in slices. If `type` is a classifier and b's cell is not,
 * vertices of `type` in all slices of b's wave may read b; else only those in b's slice. */
static uint32_t last_of_readers(const placer *p, const vpps_step_block *b, uint32_t type) {
    const bool *heads = p->s->batching->heads, slices = heads[type] && !heads[b->type];
    uint32_t last = 0;
    for (uint32_t slice = slices ? b->slice + 1 - p->s->n_slices : b->slice; slice <= b->slice; slice++)
        last = vpps_max_u32(last, last_of(&p->tasks->blocks[block_beside(p->s, b, type, slice)]));
    return last;
}

/* A vertex may store its gradient for a vertex that it reads as two factors, scalar and vector, which the vertex that
 * is read multiplies in backward. Returns the last phase (time between two barriers) in which factors from this block
 * (vertices of one cell) are multiplied. 0: it has none. */
static uint32_t last_of_scaled(const placer *p, uint32_t block) {
    const vpps_step_block *b = &p->s->blocks[block];
    uint32_t last = 0;
    if (!vpps_has_scaled(cell_of(p, block))) return 0;
    for (uint32_t u = 0; u < p->s->reading->n_types; u++)
        if (vpps_reads(p->s->needs, b->type, u))
            last = vpps_max_u32(last, p->tasks->blocks[read_by(p->s, b, u)].last_backward);
    return last;
}

/* Returns the last phase (time between two barriers) that reads the values which a block (vertices of one cell) keeps.
 * Terms of the loss and factors of parameters' gradients are read at the end of a slice (part of the batch).
 * UINT32_MAX: at the end of the batch's program, by the host or, if there is one slice, by the update. */
static uint32_t last_of_kept(const placer *p, uint32_t block) {
    const vpps_steps *s = p->s;
    const vpps_step_block *b = &s->blocks[block];
    uint32_t last = last_of(&p->tasks->blocks[block]);
    bool factors = vpps_n_outers(cell_of(p, block)) > 0;
    for (uint32_t t = 0; t < s->reading->n_types; t++) {
        if (!vpps_reads(s->needs, t, b->type)) continue;
        last = vpps_max_u32(last, last_of_readers(p, b, t));
        factors |= vpps_n_outers(s->batching->cells[t]) > 0;
    }
    if (p->requested[block]) return UINT32_MAX;
    if (!s->reading->training) return last;
    last = vpps_max_u32(last, last_of_scaled(p, block));
    const uint32_t slice_end = vpps_max_u32(last, p->tasks->blocks[block].slice_end);
    if (factors) return vpps_all_slices(s) == 1 ? UINT32_MAX : slice_end;
    return is_term(s, block) ? slice_end : last;
}

static void add_kept(placer *p, uint32_t block) {
    const vpps_step_block *b = &p->s->blocks[block];
    const vpps_compiled_cell *c = cell_of(p, block);
    const uint32_t begin = p->tasks->blocks[block].first, first = begin == VPPS_NONE ? 0 : begin,
                   last = last_of_kept(p, block);
    for (uint32_t d = 0; d < VPPS_AXES; d++)
        add_life(p, (uint64_t)(d ? b->members[d - 1] : b->n) * c->kept_words[d], first, vpps_max_u32(first, last),
                 &p->blocks[block].kept[d]);
}

/* ---------------------------------------------------------------- pass records */

/* Values that a block (one cell's vertices) uses in forward only, or backward only, lie in one array if a part of the
 * cell that uses them runs once for all vertices, else in one per level (vertices that run together). Finds which. */
static void find_all_levels(placer *p, uint32_t block) {
    const vpps_compiled_cell *c = cell_of(p, block);
    for (uint32_t s = 0; s < c->n_stages; s++)
        p->all_levels[block][c->stages[s].backward] |=
            c->stages[s].uses_pass_record && !vpps_by_levels(c->stages[s].pass);
}

/* Returns the index, in pass_record_at and pass_record_life, of the values that only the pass (forward or backward) of the task uses. */
static uint32_t pass_record_of(const placer *p, const vpps_stage_task *t) {
    const bool backward = stage_of(p, t)->backward;
    const uint32_t level = t->level == VPPS_NONE || p->all_levels[t->block][backward] ? 0 : t->level;
    return 2 * (p->s->blocks[t->block].levels + level) + backward;
}

static void add_pass_record(placer *p, const vpps_stage_task *t) {
    const vpps_cell_stage *stage = stage_of(p, t);
    if (!stage->uses_pass_record) return;
    const vpps_compiled_cell *c = cell_of(p, t->block);
    const uint32_t at = pass_record_of(p, t);
    if (p->pass_record_life[at] == VPPS_NONE) {
        const uint64_t words = (uint64_t)(p->all_levels[t->block][stage->backward] ? p->s->blocks[t->block].n : t->n) *
                               c->kept_words[vpps_pass_record(c, t->stage)];
        p->pass_record_life[at] = p->n_lives;
        add_life(p, words, t->phase, t->phase, &p->pass_record_at[at]);
    }
    vpps_tensor_life *life = &p->lives[p->pass_record_life[at]];
    life->last = vpps_max_u32(life->last, t->phase);
}

static uint32_t offset_of_pass_record(const placer *p, const vpps_stage_task *t) {
    const vpps_cell_stage *stage = stage_of(p, t);
    const vpps_compiled_cell *c = cell_of(p, t->block);
    if (!stage->uses_pass_record) return 0;
    const uint32_t before = p->all_levels[t->block][stage->backward] ? t->first : 0;
    return p->pass_record_at[pass_record_of(p, t)] + before * c->kept_words[vpps_pass_record(c, t->stage)];
}

/* ---------------------------------------------------------------- contributions */

/* Returns whether a lazy stage (part of the cell; runs last, once for all levels) sums up an output's gradient. */
static bool sums_late(const vpps_compiled_cell *c) {
    bool late = false;
    for (uint32_t v = c->n_forward; v < c->n_values; v++)
        late |= c->values[v].kind == VPPS_VALUE_GRADIENT && c->values[v].pass == VPPS_PASS_BACK_LAZY;
    return late;
}

/* Sets level_ends, zero on entry: for each level (vertices of one cell that are computed at once), the last phase (time
 * between two barriers) in which backward runs for the level. */
static void note_ends(placer *p) {
    for (uint32_t i = 0; i < p->tasks->n; i++) {
        const vpps_stage_task *t = &p->tasks->all[i];
        if (t->level == VPPS_NONE || stage_of(p, t)->pass != VPPS_PASS_BACK_MAIN) continue;
        uint32_t *end = &p->level_ends[p->s->blocks[t->block].levels + t->level];
        *end = vpps_max_u32(*end, t->phase);
    }
    for (uint32_t i = 0; i < p->s->n_blocks; i++) {
        const vpps_step_block *b = &p->s->blocks[i];
        const bool late = sums_late(cell_of(p, i));
        for (uint32_t l = 0; l < b->n_levels; l++)
            if (late || !p->level_ends[b->levels + l]) p->level_ends[b->levels + l] = p->tasks->blocks[i].last_backward;
    }
}

/* Returns, as bits, the set of the cell's inputs whose gradients are computed for one level of the graph after the other, not for all at once. */
static uint64_t inputs_of_levels(const vpps_compiled_cell *c) {
    uint64_t inputs = 0;
    for (uint32_t j = 0; j < c->n_contributions; j++) {
        const vpps_cell_contribution *to = &c->contributions[j];
        if (!to->lookup && c->values[to->value].pass == VPPS_PASS_BACK_MAIN) inputs |= (uint64_t)1 << to->index;
    }
    return inputs;
}

/* For each type of vertices (cell) that block b's vertices read: lets ends_of_type point to the last phases (times
 * between two barriers) of these vertices' backward, level by level. Returns the last of all these phases. */
static uint32_t find_ends(placer *p, const vpps_step_block *b) {
    uint32_t latest = 0;
    for (uint32_t t = 0; t < p->s->reading->n_types; t++) {
        p->ends_of_type[t] = NULL;
        if (!vpps_reads(p->s->needs, b->type, t)) continue;
        const uint32_t to = read_by(p->s, b, t);
        p->ends_of_type[t] = p->level_ends + p->s->blocks[to].levels;
        latest = vpps_max_u32(latest, p->tasks->blocks[to].last_backward);
    }
    return latest;
}

/* Vertices [first, end) read other vertices through one input, and compute gradients, which the other vertices add up. Returns the last
 * phase (time between two barriers) in which such a gradient is added up, or `last` if that is later. The search ends at `latest`: no phase
 * is later. */
static inline uint32_t last_of_input(const placer *p, const vpps_ordered_vertex *first, const vpps_ordered_vertex *end,
                                     vpps_input_place place, uint32_t latest, uint32_t last) {
    const vpps_reading *r = p->s->reading;
    const uint32_t *levels = p->s->batching->levels;
    for (const vpps_ordered_vertex *v = first; v < end && last < latest; v++) {
        if (place.axis && v > first && vpps_repeats(p->s, v)) continue;
        const vpps_read *read = r->sources + vpps_source_at(p->s, v, place);
        for (uint32_t m = 0; m < vpps_members(r->lists[v->vertex].members, place.axis); m++)
            last = vpps_max_u32(last, p->ends_of_type[r->vertices[read[m].vertex].type][levels[read[m].vertex]]);
    }
    return last;
}

/* Sets last_reads, zero on entry, for a block of vertices of one type: for each level of the block, the last phase (time between two
 * barriers) that reads the gradients which the level's vertices compute for their inputs. */
static void note_last_reads(placer *p, uint32_t block) {
    const vpps_step_block *b = &p->s->blocks[block];
    const vpps_compiled_cell *c = cell_of(p, block);
    const uint64_t inputs = inputs_of_levels(c);
    const uint32_t latest = inputs ? find_ends(p, b) : 0;
    uint32_t *lasts = p->last_reads + b->levels;
    for (uint64_t left = inputs; left; left &= left - 1) {
        const uint32_t k = (uint32_t)__builtin_ctzll(left);
        const vpps_input_place place = vpps_place_of_input(c, k);
        const vpps_ordered_vertex *first = vpps_vertices_of(p->s, b);
        for (uint32_t level = 0; level < b->n_levels; level++) {
            const vpps_ordered_vertex *end = vpps_vertices_of(p->s, b) + vpps_level_first(p->s, b, level + 1);
            lasts[level] = last_of_input(p, first, end, place, latest, lasts[level]);
            first = end;
        }
    }
}

/* Returns the last phase (time between two barriers) that reads the gradients that a task computes for other vertices and for table
 * entries. Those of table entries are read when the slice (part of the batch) ends. */
static uint32_t last_of_contributions(const placer *p, const vpps_stage_task *t) {
    const vpps_step_block *b = &p->s->blocks[t->block];
    const vpps_compiled_cell *c = cell_of(p, t->block);
    uint32_t last = t->phase;
    for (uint32_t j = 0; j < c->n_contributions; j++)
        if (c->contributions[j].lookup && c->values[c->contributions[j].value].stage == t->stage)
            last = p->tasks->blocks[t->block].slice_end;
    if (t->level != VPPS_NONE) return vpps_max_u32(last, p->last_reads[b->levels + t->level]);
    for (uint32_t u = 0; u < p->s->reading->n_types; u++)
        if (vpps_reads(p->s->needs, b->type, u))
            last = vpps_max_u32(last, p->tasks->blocks[read_by(p->s, b, u)].last_backward);
    return last;
}

static void add_contributions(placer *p, const vpps_stage_task *t, uint32_t *offset) {
    const vpps_compiled_cell *c = cell_of(p, t->block);
    *offset = 0;
    if (!c->n_contributions || !c->stages[t->stage].backward) return;
    uint32_t items[VPPS_AXES];
    vpps_items_of_task(p->s, t, items);
    const uint64_t words = vpps_contribution_at(c, t->stage, items, c->n_contributions);
    if (words) add_life(p, words, t->phase, last_of_contributions(p, t), offset);
}

/* ---------------------------------------------------------------- all tensors */

static uint64_t entry_words(const vpps_model *model, const vpps_contributions *c) {
    uint64_t words = 0;
    for (uint32_t i = 0; i < c->n_entries; i++)
        words += (uint64_t)model->params[c->entries[i].table].rows * model->params[c->entries[i].table].cols;
    return words;
}

/* Returns the phase (time between two barriers of group 0 of the threads or CTAs) that follows the first slice (part of
 * the batch): from then on, the sums of the gradients of lookup tables' rows are in memory. */
static uint32_t first_slice_end(const placer *p) {
    uint32_t end = p->tasks->group_phases[0] - 1;
    for (uint32_t i = 0; i < p->s->n_blocks; i++)
        if (p->s->blocks[i].group == 0) end = vpps_min_u32(end, p->tasks->blocks[i].slice_end);
    return end;
}

/* Places the tensors of a group of threads or CTAs, from task *task on; advances *task. False: no memory. */
static bool place_group(placer *p, uint32_t group, uint32_t *task) {
    p->n_lives = 0;
    for (uint32_t i = 0; i < p->s->n_blocks; i++) {
        if (p->s->blocks[i].group != group || !p->s->blocks[i].n) continue;
        find_all_levels(p, i);
        add_kept(p, i);
    }
    const uint32_t first = *task;
    for (; *task < p->tasks->n && p->tasks->all[*task].group == group; ++*task) {
        add_pass_record(p, &p->tasks->all[*task]);
        add_contributions(p, &p->tasks->all[*task], &p->contributed[*task]);
    }
    if (group == 0)
        add_life(p, entry_words(p->s->reading->g->model, p->contributions), first_slice_end(p), UINT32_MAX,
                 &p->out->entry_gradients);
    uint64_t words, live;
    if (!vpps_allocate(p->lives, p->n_lives, &words, &live)) return false;
    p->out->live_words += live;
    for (uint32_t i = 0; i < p->n_lives && p->out->end + words <= UINT32_MAX; i++)
        *p->lives[i].offset = (uint32_t)(p->out->end + p->lives[i].at);
    for (uint32_t i = first; i < *task; i++) p->pass_record[i] = offset_of_pass_record(p, &p->tasks->all[i]);
    p->out->end += words;
    return true;
}

static bool open_placer(placer *p) {
    const vpps_steps *s = p->s;
    vpps_arena *a = p->arena;
    const size_t most = (size_t)s->n_blocks * VPPS_AXES + 2 * (size_t)p->tasks->n + 1,
                 n_pass_records = 2 * s->n_level_starts;
    if (!VPPS_TAKE_ZEROS(a, p->blocks, s->n_blocks) || !VPPS_TAKE(a, p->pass_record, p->tasks->n) ||
        !VPPS_TAKE(a, p->contributed, p->tasks->n) || !VPPS_TAKE(a, p->lives, most) ||
        !VPPS_TAKE_ZEROS(a, p->all_levels, s->n_blocks) || !VPPS_TAKE_ZEROS(a, p->requested, s->n_blocks) ||
        !VPPS_TAKE(a, p->pass_record_at, n_pass_records) || !VPPS_TAKE(a, p->pass_record_life, n_pass_records))
        return false;
    memset(p->pass_record_life, 0xff, n_pass_records * sizeof *p->pass_record_life);
    return !s->reading->training ||
           (VPPS_TAKE_ZEROS(a, p->level_ends, s->n_level_starts) &&
            VPPS_TAKE_ZEROS(a, p->last_reads, s->n_level_starts) && VPPS_TAKE(a, p->ends_of_type, s->reading->n_types));
}

bool vpps_place_tensors(const vpps_tasks *t, const vpps_contributions *c, uint64_t begin, vpps_arena *arena,
                        vpps_placement *out) {
    *out = (vpps_placement){.tasks = t, .end = begin};
    placer p = {.tasks = t, .s = t->steps, .contributions = c, .arena = arena, .out = out};
    if (!open_placer(&p)) return false;
    if (p.s->reading->training) note_ends(&p);
    for (uint32_t i = 0; i < p.s->n_blocks && p.s->reading->training; i++)
        if (p.s->blocks[i].n) note_last_reads(&p, i);
    find_requested(&p);
    uint32_t task = 0;
    for (uint32_t g = 0; g < p.s->batching->n_groups; g++)
        if (!place_group(&p, g, &task)) return false;
    out->blocks = p.blocks;
    out->pass_record = p.pass_record;
    out->contributions = p.contributed;
    return true;
}
