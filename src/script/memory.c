/* memory.c - where a batch's tensors lie in the pool. A tensor lives from the phase that first writes it to the last that reads
 * it, and two lie in the same words only if their lives do not meet (allocate.c). Tensors are
 *
 *   the records of a block's kept values, of every domain: they live until the block, its readers and the parameters'
 *     gradients have read them
 *   the passing records of a level, or of all of a block's vertices: from the first stage of their pass that needs them to the
 *     last one
 *   what a task contributes: a level's contributions live until the vertices that they go to have added them up, or, where
 *     some go to tables' entries, until the slice's end
 *   the gradients of tables' entries: from the first slice's end on
 *
 * Groups have phases of their own, so what two of them use may meet at any time: each has a part of the pool. */
#include "script/work.h"

static uint64_t rounded(uint64_t words) { return (words + 15) & ~(uint64_t)15; }

static vpps_tensor_life *add_life(vpps_batch_work *w, uint32_t *n, uint64_t words, uint32_t first, uint32_t last,
                                  uint32_t *offset) {
    *offset = 0;
    if (!words) return NULL;
    w->lives[*n] = (vpps_tensor_life){rounded(words), first, last, 0, offset};
    return &w->lives[(*n)++];
}

/* ---------------------------------------------------------------- kept values */

/* Notes the blocks that hold something the host reads. */
static void find_requested(const vpps_batch_work *w) {
    for (uint32_t i = 0; i < w->n_blocks; i++) w->blocks[i].requested = false;
    for (uint32_t i = 0; i < w->n_requested + w->n_asked; i++) {
        const uint32_t vertex = w->requested[i].vertex;
        if (w->needed[vertex]) w->blocks[vpps_block_of(w, vertex)].requested = true;
    }
}

static bool is_term(const vpps_batch_work *w, uint32_t block) {
    for (uint32_t i = 0; i < w->n_seeds; i++)
        if (vpps_block_of(w, w->seeds[i].to.vertex) == block) return true;
    return false;
}

/* The block of another type, which b's type reads, in the same wave and group; and slice, if it has slices. */
static const vpps_block_work *read_by(const vpps_batch_work *w, const vpps_block_work *b, uint32_t type) {
    const uint32_t slice = w->used[type].head ? b->slice : vpps_last_slice(w, b->slice);
    return &w->blocks[w->used[type].first_block + slice * w->n_groups + b->group];
}

static uint32_t last_of(const vpps_block_work *b) { return vpps_max_u32(b->last_forward, b->last_backward); }

/* The last phase of a type in the same wave and group; of heads that read another head, in the same slice. */
static uint32_t last_of_readers(const vpps_batch_work *w, const vpps_block_work *b, uint32_t type) {
    const bool slices = w->used[type].head && !w->used[b->type].head;
    uint32_t last = 0;
    for (uint32_t slice = slices ? b->slice + 1 - w->n_slices : b->slice; slice <= b->slice; slice++)
        last = vpps_max_u32(last, last_of(&w->blocks[w->used[type].first_block + slice * w->n_groups + b->group]));
    return last;
}

/* The last phase that reads a block's kept values. The update may read the factors of parameters' gradients, where there is
 * one slice; what the loss is the sum of is read where a slice ends. */
static uint32_t last_of_kept(const vpps_batch_work *w, uint32_t block) {
    const vpps_block_work *b = &w->blocks[block];
    uint32_t last = last_of(b);
    bool factors = w->used[b->type].cell->n_outers > 0;
    for (uint32_t t = 0; t < w->n_used; t++) {
        if (!vpps_reads(w, t, b->type)) continue;
        last = vpps_max_u32(last, last_of_readers(w, b, t));
        factors |= w->used[t].cell->n_outers > 0;
    }
    if (b->requested) return UINT32_MAX;
    if (!w->training) return last;
    if (factors) return vpps_all_slices(w) == 1 ? UINT32_MAX : b->slice_end;
    return is_term(w, block) ? b->slice_end : last;
}

static void add_kept(vpps_batch_work *w, uint32_t block, uint32_t *n) {
    vpps_block_work *b = &w->blocks[block];
    const vpps_compiled_cell *c = w->used[b->type].cell;
    const vpps_block view = vpps_block_made(w, block);
    const uint32_t first = b->first_phase == VPPS_NONE ? 0 : b->first_phase, last = last_of_kept(w, block);
    for (uint32_t d = 0; d < VPPS_DOMAINS; d++)
        add_life(w, n, (uint64_t)vpps_items(&view, d) * c->kept_words[d], first, vpps_max_u32(first, last),
                 &b->kept[d]);
}

/* ---------------------------------------------------------------- what passes */

/* Does a stage that runs over all levels need passing records? */
static void find_wide(const vpps_batch_work *w, vpps_block_work *b) {
    const vpps_compiled_cell *c = w->used[b->type].cell;
    b->wide[0] = b->wide[1] = false;
    for (uint32_t s = 0; s < c->n_stages; s++)
        b->wide[c->stages[s].backward] |= c->stages[s].passing && !vpps_by_levels(c->stages[s].part);
}

/* Where the task's passing records are noted. */
static uint32_t passing_of(const vpps_batch_work *w, const vpps_task_work *t) {
    const vpps_block_work *b = &w->blocks[t->block];
    const vpps_compiled_cell *c = w->used[b->type].cell;
    const bool backward = c->stages[t->stage].backward;
    const uint32_t level = t->level == VPPS_NONE || b->wide[backward] ? 0 : t->level;
    return 2 * (b->levels + level) + backward;
}

static void add_passing(vpps_batch_work *w, const vpps_task_work *t, uint32_t *n) {
    const vpps_block_work *b = &w->blocks[t->block];
    const vpps_compiled_cell *c = w->used[b->type].cell;
    if (!c->stages[t->stage].passing) return;
    const uint32_t at = passing_of(w, t);
    if (w->passing_life[at] == VPPS_NONE) {
        const uint64_t words = (uint64_t)(b->wide[c->stages[t->stage].backward] ? b->n : t->n) *
                               c->kept_words[vpps_passing_record(c, t->stage)];
        w->passing_life[at] = *n;
        add_life(w, n, words, t->phase, t->phase, &w->passing_at[at]);
    }
    vpps_tensor_life *life = &w->lives[w->passing_life[at]];
    life->last = vpps_max_u32(life->last, t->phase);
}

static void set_passing(const vpps_batch_work *w, vpps_task_work *t) {
    const vpps_block_work *b = &w->blocks[t->block];
    const vpps_compiled_cell *c = w->used[b->type].cell;
    t->passing = 0;
    if (!c->stages[t->stage].passing) return;
    t->passing = w->passing_at[passing_of(w, t)];
    if (b->wide[c->stages[t->stage].backward]) t->passing += t->first * c->kept_words[vpps_passing_record(c, t->stage)];
}

/* ---------------------------------------------------------------- contributions */

/* Does the block's cell add a gradient up after the levels? */
static bool sums_late(const vpps_compiled_cell *c) {
    bool late = false;
    for (uint32_t v = c->n_forward; v < c->n_values; v++)
        late |= c->values[v].kind == VPPS_VALUE_GRADIENT && c->values[v].part == VPPS_PART_BACK_LAZY;
    return late;
}

/* Of every level of every block, the phase that ends its backward pass. */
static bool note_ends(vpps_batch_work *w) {
    if (!VPPS_RESERVE(w->level_ends, w->level_ends_capacity, 2 * w->n_level_starts + 1) ||
        !VPPS_RESERVE(w->ends_of_type, w->ends_of_type_capacity, w->n_used)) {
        return false;
    }
    memset(w->level_ends, 0, 2 * w->n_level_starts * sizeof *w->level_ends);
    for (uint32_t i = 0; i < w->n_tasks; i++) {
        const vpps_task_work *t = &w->tasks[i];
        const vpps_block_work *b = &w->blocks[t->block];
        const vpps_compiled_cell *c = w->used[b->type].cell;
        if (t->level == VPPS_NONE || c->stages[t->stage].part != VPPS_PART_BACK_MAIN) continue;
        uint32_t *end = &w->level_ends[b->levels + t->level];
        *end = vpps_max_u32(*end, t->phase);
    }
    for (uint32_t i = 0; i < w->n_blocks; i++) {
        const vpps_block_work *b = &w->blocks[i];
        const bool late = sums_late(w->used[b->type].cell);
        for (uint32_t l = 0; l < b->n_levels; l++)
            if (late || !w->level_ends[b->levels + l]) w->level_ends[b->levels + l] = b->last_backward;
    }
    return true;
}

/* Inputs that a block's levels contribute to. */
static uint64_t inputs_of_levels(const vpps_compiled_cell *c) {
    uint64_t inputs = 0;
    for (uint32_t j = 0; j < c->n_contributions; j++) {
        const vpps_cell_contribution *to = &c->contributions[j];
        if (!to->lookup && c->values[to->value].part == VPPS_PART_BACK_MAIN) inputs |= (uint64_t)1 << to->index;
    }
    return inputs;
}

/* For every type, of the block beside one: the phases that end its levels. The last of all. */
static uint32_t find_ends(const vpps_batch_work *w, const vpps_block_work *b) {
    uint32_t latest = 0;
    for (uint32_t t = 0; t < w->n_used; t++) {
        const vpps_block_work *to = vpps_reads(w, b->type, t) ? read_by(w, b, t) : NULL;
        w->ends_of_type[t] = to ? w->level_ends + to->levels : NULL;
        if (to) latest = vpps_max_u32(latest, to->last_backward);
    }
    return latest;
}

/* The last phase in which what vertices [first, end) of a block read by an input adds up what it gets; `last`, if that is
 * later. `latest`: none is later. */
static inline uint32_t last_of_input(const vpps_batch_work *w, const vpps_ordered_vertex *first,
                                     const vpps_ordered_vertex *end, vpps_input_place place, uint32_t domain,
                                     uint32_t latest, uint32_t last) {
    for (const vpps_ordered_vertex *v = first; v < end && last < latest; v++) {
        const vpps_read *read = w->sources + vpps_source_at(w, v, place);
        const uint32_t n = domain ? w->rests[v->vertex].members[domain - 1] : 1;
        for (uint32_t m = 0; m < n; m++) {
            const vpps_vertex_work *to = &w->vertices[read[m].vertex];
            last = vpps_max_u32(last, w->ends_of_type[to->type][to->level]);
        }
    }
    return last;
}

/* Of every level of a block, the last phase that reads what it contributes: input by input, until one is found that is as
 * late as can be. */
static void note_last_reads(const vpps_batch_work *w, const vpps_block_work *b) {
    const vpps_compiled_cell *c = w->used[b->type].cell;
    const uint64_t inputs = inputs_of_levels(c);
    const uint32_t latest = inputs ? find_ends(w, b) : 0;
    uint32_t *lasts = w->level_ends + w->n_level_starts + b->levels;
    memset(lasts, 0, b->n_levels * sizeof *lasts);
    for (uint64_t left = inputs; left; left &= left - 1) {
        const uint32_t k = (uint32_t)__builtin_ctzll(left);
        const vpps_input_place place = vpps_place_of_input(c, k), only = {.n[0] = k};
        const vpps_ordered_vertex *first = vpps_vertices_of(w, b);
        for (uint32_t level = 0; level < b->n_levels; level++) {
            const vpps_ordered_vertex *end = vpps_vertices_of(w, b) + vpps_level_first(w, b, level + 1);
            lasts[level] = c->n_lists ? last_of_input(w, first, end, place, c->input_domain[k], latest, lasts[level])
                                      : last_of_input(w, first, end, only, 0, latest, lasts[level]);
            first = end;
        }
    }
}

/* The last phase that reads what a task contributes: to entries, where its slice ends; to vertices, maybe in a later slice. */
static uint32_t last_of_contributions(const vpps_batch_work *w, const vpps_task_work *t) {
    const vpps_block_work *b = &w->blocks[t->block];
    const vpps_compiled_cell *c = w->used[b->type].cell;
    uint32_t last = t->phase;
    for (uint32_t j = 0; j < c->n_contributions; j++)
        if (c->contributions[j].lookup && c->values[c->contributions[j].value].stage == t->stage) last = b->slice_end;
    if (t->level != VPPS_NONE) return vpps_max_u32(last, w->level_ends[w->n_level_starts + b->levels + t->level]);
    for (uint32_t u = 0; u < w->n_used; u++)
        if (vpps_reads(w, b->type, u)) last = vpps_max_u32(last, read_by(w, b, u)->last_backward);
    return last;
}

static void add_contributions(vpps_batch_work *w, vpps_task_work *t, uint32_t *n) {
    const vpps_block_work *b = &w->blocks[t->block];
    const vpps_compiled_cell *c = w->used[b->type].cell;
    t->contributions = 0;
    if (!c->n_contributions || !c->stages[t->stage].backward) return;
    uint32_t items[VPPS_DOMAINS];
    vpps_items_of_task(w, t, items);
    const uint64_t words = vpps_contribution_at(c, t->stage, items, c->n_contributions);
    if (words) add_life(w, n, words, t->phase, last_of_contributions(w, t), &t->contributions);
}

/* ---------------------------------------------------------------- all */

static uint64_t entry_words(const vpps_batch_work *w) {
    uint64_t words = 0;
    for (uint32_t i = 0; i < w->contributions.n_entries; i++) {
        const vpps_parameter_data *p = &w->g->model->params[w->contributions.entries[i].table];
        words += (uint64_t)p->rows * p->cols;
    }
    return words;
}

/* The first group's phase that is the end of the first slice. */
static uint32_t first_slice_end(const vpps_batch_work *w) {
    uint32_t end = w->group_phases[0] - 1;
    for (uint32_t i = 0; i < w->n_blocks; i++)
        if (w->blocks[i].group == 0) end = vpps_min_u32(end, w->blocks[i].slice_end);
    return end;
}

/* Places a group's tensors from `base` on. False: out of memory. */
static bool place_group(vpps_batch_work *w, uint32_t group, uint32_t *task, uint64_t base, uint64_t *words) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < w->n_blocks; i++) {
        if (w->blocks[i].group != group || !w->blocks[i].n) continue;
        find_wide(w, &w->blocks[i]);
        add_kept(w, i, &n);
    }
    const uint32_t first = *task;
    for (; *task < w->n_tasks && w->tasks[*task].group == group; ++*task) {
        add_passing(w, &w->tasks[*task], &n);
        add_contributions(w, &w->tasks[*task], &n);
    }
    if (group == 0) add_life(w, &n, entry_words(w), first_slice_end(w), UINT32_MAX, &w->entry_gradients);
    uint64_t live;
    if (!vpps_allocate(w->lives, n, words, &live)) return false;
    w->live_words += live;
    for (uint32_t i = 0; i < n && base + *words <= UINT32_MAX; i++)
        *w->lives[i].offset = (uint32_t)(base + w->lives[i].at);
    for (uint32_t i = first; i < *task; i++) set_passing(w, &w->tasks[i]);
    return true;
}

vpps_status vpps_place_blocks(vpps_batch_work *w) {
    const size_t most = (size_t)w->n_blocks * VPPS_DOMAINS + 2 * (size_t)w->n_tasks + 1;
    const size_t n_passing = 2 * w->n_level_starts;
    if (!VPPS_RESERVE(w->lives, w->lives_capacity, most) ||
        !VPPS_RESERVE(w->passing_at, w->passing_at_capacity, n_passing + 1) ||
        !VPPS_RESERVE(w->passing_life, w->passing_life_capacity, n_passing + 1)) {
        return vpps_no_memory();
    }
    memset(w->passing_life, 0xff, n_passing * sizeof *w->passing_life);
    if (w->training && !note_ends(w)) return vpps_no_memory();
    for (uint32_t i = 0; i < w->n_blocks && w->training; i++)
        if (w->blocks[i].n) note_last_reads(w, &w->blocks[i]);
    find_requested(w);
    uint32_t task = 0;
    w->live_words = 0;
    w->entry_gradients = 0;
    for (uint32_t g = 0; g < w->n_groups; g++) {
        uint64_t words;
        if (!place_group(w, g, &task, w->next_word, &words)) return vpps_no_memory();
        w->next_word += words;
    }
    return VPPS_OK;
}
