/* contributions.c - a vertex computes a gradient for each value (output of a vertex, table entry) that it reads: a contribution.
 * The value's gradient is the sum of its contributions. Counts them, and writes their offsets into the batch's program. */
#include "script/contributions.h"

/* A contribution: the gradient that each vertex of a block (vertices of one type) computes for what it reads through one input or lookup. */
typedef struct contribution {
    const vpps_step_block *block;
    const vpps_compiled_cell *cell;
    const vpps_cell_contribution *to;
    /* for each output of the cell: the inputs (or table lookups) on which the output depends, as bits */
    const uint64_t *reads;
    /* whether all vertices of `block` compute this gradient; false: only those of which an output with a gradient depends on the input */
    bool all;
    uint32_t number, stage, stride, shares;
    /* The gradient of item i (vertex, or node of a list) of the current task lies at offset at + i * stride. If each thread
     * or CTA computes a partial sum, two partial sums are share_words words apart. */
    uint32_t at, share_words;
    /* gradient for node i that vertex p reads: scalar at offset at + i * stride, times vector at of + p * of_stride */
    uint32_t of, of_stride;
    uint32_t *next_run; /* where the next vpps_pair_run (many terms of a gradient) goes; NULL: terms go one by one */
} contribution;

/* Returns whether many vertices read the same lists of nodes: n_reads counts a common list for each of its vertices,
 * n_sources once. Gradients' terms scalar * vector are then stored as runs (vpps_pair_run): a run of several terms takes
 * fewer words than the terms, a run of one takes four words more. */
static bool share_long_lists(const vpps_reading *r) { return 4 * r->n_reads > 5 * r->n_sources; }

static contribution contribution_of(const vpps_steps *s, uint32_t block, uint32_t j) {
    const vpps_step_block *b = &s->blocks[block];
    const vpps_type *type = s->reading->types[b->type].type;
    const vpps_compiled_cell *c = vpps_cell_of_block(s, b);
    const vpps_cell_contribution *to = &c->contributions[j];
    const uint64_t *reads = to->lookup ? type->reads_lookups : type->reads_inputs;
    return (contribution){.block = b,
                          .cell = c,
                          .to = to,
                          .reads = reads,
                          .all = vpps_reached(reads, b->gradients) >> to->index & 1,
                          .number = j,
                          .stage = c->values[to->value].stage,
                          .stride = vpps_value_words(&c->values[to->value]),
                          .shares = vpps_shares_of(&c->values[to->value])};
}

/* Adds a term to the list by which a value's gradient is summed up: writes to words[*cursor] the term's memory offset
 * or, if each thread or CTA has a partial sum of it, their offsets. Advances *cursor. words NULL: only counts. */
static inline void take_shares(contribution x, uint32_t item, uint32_t *words, uint32_t *cursor) {
    const uint32_t at = *cursor;
    if (words && at == VPPS_NONE) return; /* the output that is read has no gradient, so nothing is added */
    *cursor = at + x.shares;
    for (uint32_t s = 0; words && s < x.shares; s++) words[at + s] = x.at + s * x.share_words + item * x.stride;
}

/* Finds the task that computes gradient x for a level (vertices that run together) of a block (vertices of one type).
 * Sets x->at to the offset from which the gradients lie in memory, and x->share_words to the distance between the
 * partial sums of two threads or CTAs. Returns the end of the range of the task's vertices. */
static uint32_t find_run(const vpps_contributions *all, const uint32_t *offsets, uint32_t block, contribution *x,
                         uint32_t level) {
    const vpps_steps *s = all->tasks->steps;
    const uint32_t at = x->cell->stages[x->stage].pass == VPPS_PASS_BACK_MAIN ? level : 0;
    const uint32_t run = all->runs[all->blocks[block].runs + x->stage * vpps_max_u32(x->block->n_levels, 1) + at];
    const vpps_stage_task *t = &all->tasks->all[run];
    const uint32_t axis = x->cell->values[x->to->value].axis;
    uint32_t items[VPPS_AXES];
    vpps_items_of_task(s, t, items);
    const uint32_t first = axis ? vpps_first_member(s, x->block, t->first, axis) : t->first;
    x->at = offsets[run] + (uint32_t)vpps_contribution_at(x->cell, x->stage, items, x->number) - first * x->stride;
    x->share_words = (uint32_t)(vpps_contribution_words(x->cell, items[axis], x->number) / x->shares);
    return t->first + t->n;
}

/* Returns whether vertex v computes a gradient for an input (x): whether an output that depends on it has one. */
static inline bool contributes(const vpps_steps *s, const contribution *x, const vpps_ordered_vertex *v) {
    return x->all || vpps_reached(x->reads, s->needs->gradients[v->vertex]) >> x->to->index & 1;
}

/* Returns the end of the vertices after p that read the same lists of nodes as p and compute gradients for them. */
static uint32_t end_of_alike(const vpps_steps *s, const contribution *x, uint32_t p, uint32_t end) {
    const vpps_ordered_vertex *v = vpps_vertices_of(s, x->block);
    do p++;
    while (p < end && vpps_repeats(s, &v[p]) && contributes(s, x, &v[p]));
    return p;
}

/* For each gradient that vertices [first, end) of a block (of one cell) compute for an output that they read through
 * one input (contribution x): writes its offset to words[cursors[output]], and advances the cursor. words NULL: counts
 * them in cursors[output]. Consecutive vertices that read equal lists are handled together. */
static inline void each_input_of(const vpps_steps *s, const contribution *x, uint32_t first, uint32_t end,
                                 uint32_t *words, uint32_t *cursors) {
    const vpps_ordered_vertex *v = vpps_vertices_of(s, x->block);
    const vpps_input_place place = vpps_place_of_input(x->cell, x->to->index);
    const uint32_t *sources = s->reading->source_outputs + place.n[0];
    /* usual case: each vertex reads one node and has a gradient for it */
    if (x->all && !x->cell->n_lists) {
        for (uint32_t p = first; p < end; p++) take_shares(*x, p, words, &cursors[sources[v[p].first_source]]);
        return;
    }
    const uint32_t axis = x->cell->values[x->to->value].axis;
    for (uint32_t p = first, next; p < end; p = next) {
        next = p + 1;
        if (!contributes(s, x, &v[p])) continue;
        const uint32_t *read = s->reading->source_outputs + vpps_source_at(s, &v[p], place);
        if (!axis) {
            take_shares(*x, p, words, &cursors[*read]);
            continue;
        }
        next = end_of_alike(s, x, p, end);
        const uint32_t item = s->first_members[v[p].vertex].of[axis - 1], shares = x->shares, stride = x->stride;
        const uint32_t n = s->reading->lists[v[p].vertex].members[axis - 1], n_alike = next - p;
        const uint32_t pairs[VPPS_RUN_WORDS] = {x->of + p * x->of_stride, n * stride, x->of_stride, n_alike};
        const uint32_t run = x->next_run ? *x->next_run : 0;
        if (x->next_run && words) memcpy(words + run, pairs, sizeof pairs);
        if (x->next_run) *x->next_run += VPPS_RUN_WORDS;
        for (uint32_t m = 0; m < n; m++) {
            uint32_t *cursor = &cursors[read[m]], from = x->at + (item + m) * stride;
            /* the node that is read has no gradient, so nothing is added to it */
            if (words && *cursor == VPPS_NONE) continue;
            for (uint32_t i = 0; x->to->scaled && i < (x->next_run ? 1 : n_alike); i++) {
                if (words) words[*cursor] = from + i * n * stride;
                if (words) words[*cursor + 1] = x->next_run ? run : x->of + (p + i) * x->of_stride;
                *cursor += words ? VPPS_PAIR_WORDS : 1;
            }
            if (x->to->scaled) continue;
            const uint32_t at = *cursor;
            *cursor += n_alike * shares;
            for (uint32_t i = 0; words && i < shares; i++, from += x->share_words)
                for (uint32_t k = 0; k < n_alike; k++) words[at + k * shares + i] = from + k * n * stride;
        }
    }
}

/* ---------------------------------------------------------------- counting */

typedef struct counter {
    const vpps_tasks *tasks;
    const vpps_steps *s;
    vpps_row_marks *marks;
    vpps_arena *arena;
    vpps_contributions *out;
    uint32_t *counts, *pairs, *of_table, *uses, *runs;
    vpps_entry *entries;
    vpps_block_uses *blocks;
    uint32_t n_uses;
} counter;

static bool note_runs(counter *c) {
    const vpps_steps *s = c->s;
    size_t n = 0;
    for (uint32_t i = 0; i < s->n_blocks; i++) {
        const vpps_step_block *b = &s->blocks[i];
        c->blocks[i].runs = (uint32_t)n;
        n += (size_t)vpps_cell_of_block(s, b)->n_stages * vpps_max_u32(b->n_levels, 1);
    }
    if (!VPPS_TAKE(c->arena, c->runs, n)) return false;
    for (uint32_t i = 0; i < c->tasks->n; i++) {
        const vpps_stage_task *t = &c->tasks->all[i];
        const uint32_t level = t->level == VPPS_NONE ? 0 : t->level;
        c->runs[c->blocks[t->block].runs + t->stage * vpps_max_u32(s->blocks[t->block].n_levels, 1) + level] = i;
    }
    return true;
}

static bool open_tables(counter *c) {
    const size_t n = c->s->reading->g->model->n_params;
    vpps_row_marks *m = c->marks;
    m->stamp++;
    if (!VPPS_RESERVE(m->tables, n)) return false;
    while (m->n < n) m->tables[m->n++] = NULL;
    return VPPS_TAKE_ZEROS(c->arena, c->of_table, n);
}

static bool open_uses(counter *c) {
    size_t n = 0;
    for (uint32_t i = 0; i < c->s->n_blocks; i++) {
        const vpps_compiled_cell *cell = vpps_cell_of_block(c->s, &c->s->blocks[i]);
        for (uint32_t j = 0; j < cell->n_contributions; j++) n += cell->contributions[j].lookup ? c->s->blocks[i].n : 0;
    }
    return VPPS_TAKE(c->arena, c->uses, n) && VPPS_TAKE(c->arena, c->entries, n);
}

/* Appends to c->uses the table row for which each vertex computes a gradient (x), and adds new rows to c->entries. */
static bool find_entries_of(counter *c, const contribution *x) {
    const vpps_cell_lookup *l = &x->cell->lookups[x->to->index];
    const vpps_ordered_vertex *v = vpps_vertices_of(c->s, x->block);
    vpps_row_mark **rows = &c->marks->tables[l->table];
    if (!*rows) *rows = calloc(c->s->reading->g->model->params[l->table].count, sizeof **rows);
    if (!*rows) return false;
    for (uint32_t p = 0; p < x->block->n; p++) {
        if (!contributes(c->s, x, &v[p])) continue;
        const uint32_t number = vpps_row_of(c->s, &v[p], l);
        vpps_row_mark *row = &(*rows)[number];
        if (row->stamp != c->marks->stamp) {
            *row = (vpps_row_mark){c->marks->stamp, c->out->n_entries};
            c->entries[c->out->n_entries++] = (vpps_entry){l->table, number, c->of_table[l->table]++};
        }
        c->uses[c->n_uses++] = row->entry;
    }
    return true;
}

/* Finds the table entries that get gradients, in the order of their first use. */
static bool find_entries(counter *c) {
    if (!open_tables(c) || !open_uses(c)) return false;
    for (uint32_t i = 0; i < c->s->n_blocks; i++) {
        c->blocks[i].uses = c->n_uses;
        for (uint32_t j = 0; j < vpps_cell_of_block(c->s, &c->s->blocks[i])->n_contributions; j++) {
            const contribution x = contribution_of(c->s, i, j);
            if (x.to->lookup && !find_entries_of(c, &x)) return false;
        }
    }
    return true;
}

static bool count(counter *c) {
    const vpps_reading *r = c->s->reading;
    if (!VPPS_TAKE_ZEROS(c->arena, c->counts, r->n_outputs) || !VPPS_TAKE(c->arena, c->blocks, c->s->n_blocks))
        return false;
    if (!r->training) return true;
    bool scaled = false;
    for (uint32_t i = 0; i < c->s->n_blocks; i++) scaled |= vpps_has_scaled(vpps_cell_of_block(c->s, &c->s->blocks[i]));
    if (scaled && !VPPS_TAKE_ZEROS(c->arena, c->pairs, r->n_outputs)) return false;
    if (!find_entries(c) || !note_runs(c)) return false;
    for (uint32_t i = 0; i < c->s->n_blocks; i++) {
        for (uint32_t j = 0; j < vpps_cell_of_block(c->s, &c->s->blocks[i])->n_contributions; j++) {
            contribution x = contribution_of(c->s, i, j);
            if (x.to->scaled && share_long_lists(r)) x.next_run = &c->out->run_words;
            if (!x.to->lookup) each_input_of(c->s, &x, 0, x.block->n, NULL, x.to->scaled ? c->pairs : c->counts);
        }
    }
    for (uint32_t i = 0; i < r->n_seeds; i++) c->counts[r->seeds[i].to.output]++;
    return true;
}

bool vpps_count_contributions(const vpps_tasks *t, vpps_row_marks *marks, vpps_arena *arena, vpps_contributions *out) {
    *out = (vpps_contributions){.tasks = t};
    counter c = {.tasks = t, .s = t->steps, .marks = marks, .arena = arena, .out = out};
    if (!count(&c)) return false;
    *out = (vpps_contributions){t,      c.counts, c.pairs,  c.entries,      c.of_table,
                                c.uses, c.runs,   c.blocks, out->n_entries, out->run_words};
    return true;
}

void vpps_row_marks_free(vpps_row_marks *m) {
    for (size_t p = 0; p < m->n; p++) free(m->tables[p]);
    VPPS_FREE_ARRAYS(m->tables);
    *m = (vpps_row_marks){0};
}

/* ---------------------------------------------------------------- writing */

/* The vertices of a block (all of one cell) compute gradients for the outputs that they read through input x. Appends
 * each such gradient's memory offset to the list of that output, whose gradient is the sum over its list. */
static void write_input(const vpps_contributions *all, const uint32_t *offsets, uint32_t block, contribution x,
                        uint32_t *words, uint32_t *list_at) {
    const vpps_steps *s = all->tasks->steps;
    for (uint32_t level = 0, end = 0; end < x.block->n; level++) {
        if (vpps_level_first(s, x.block, level + 1) == end) continue;
        const uint32_t first = end;
        end = find_run(all, offsets, block, &x, level);
        each_input_of(s, &x, first, end, words, list_at);
    }
}

/* A block's vertices (of one cell) compute gradients x for one input as two factors, scalar times vector. Writes the offsets of scalar and
 * vector to words[pairs_at[output read]] or, with x.next_run, joins terms at equal distances into a vpps_pair_run. */
static void write_scaled(const vpps_steps *s, contribution x, const vpps_block_memory *placed, uint32_t *words,
                         uint32_t *pairs_at) {
    const vpps_cell_value *vector = &x.cell->values[x.to->vector], *scalar = &x.cell->values[x.to->scalar];
    x.at = placed->kept[scalar->axis] + scalar->offset;
    x.stride = x.cell->kept_words[scalar->axis];
    x.of = placed->kept[0] + vector->offset;
    x.of_stride = x.cell->kept_words[0];
    each_input_of(s, &x, 0, x.block->n, words, pairs_at);
}

void vpps_write_contributions(const vpps_contributions *all, const vpps_block_memory *placed, const uint32_t *offsets,
                              uint32_t *list_at, uint32_t *pairs_at, uint32_t runs_at, uint32_t *words) {
    const vpps_steps *s = all->tasks->steps;
    for (uint32_t i = 0; i < s->n_blocks; i++) {
        for (uint32_t j = 0; j < vpps_cell_of_block(s, &s->blocks[i])->n_contributions; j++) {
            contribution x = contribution_of(s, i, j);
            if (x.to->scaled && all->run_words) x.next_run = &runs_at;
            if (x.to->scaled) write_scaled(s, x, &placed[i], words, pairs_at);
            if (!x.to->lookup && !x.to->scaled) write_input(all, offsets, i, x, words, list_at);
        }
    }
}

/* ---------------------------------------------------------------- entries of tables, slice by slice */

/* Raises a table entry's count of gradients in a slice (part of the batch) by `shares`: 1 or number of partial sums. */
static inline void touch(vpps_entry_lists *lists, uint32_t entry, uint32_t slice, uint32_t shares) {
    vpps_entry_list *e = &lists->of[entry];
    if (e->slice == slice) {
        e->count += shares;
        return;
    }
    e->slice = slice;
    e->count = e->made + shares;
    lists->touched[lists->n_touched++] = entry;
}

/* For each gradient that vertices of block i (of one type) compute for a table's entry (row): counts it or, if words (the batch's program)
 * is not NULL, writes its offset to the entry's list. all->uses has the gradients' entries in the order of these loops. */
static inline void use_entries_of(const vpps_contributions *all, const uint32_t *offsets, uint32_t i,
                                  vpps_entry_lists *lists, uint32_t *words) {
    const vpps_steps *s = all->tasks->steps;
    const vpps_step_block *b = &s->blocks[i];
    const vpps_ordered_vertex *v = vpps_vertices_of(s, b);
    const uint32_t *use = all->uses + all->blocks[i].uses;
    for (uint32_t j = 0; j < vpps_cell_of_block(s, b)->n_contributions; j++) {
        contribution x = contribution_of(s, i, j);
        for (uint32_t level = 0, p = 0, end = b->n; x.to->lookup && p < b->n; level++) {
            if (words && vpps_level_first(s, b, level + 1) == p) continue;
            if (words) end = find_run(all, offsets, i, &x, level);
            for (; p < end; p++) {
                if (!contributes(s, &x, &v[p])) continue;
                if (words)
                    take_shares(x, p, words, &lists->of[*use].at);
                else
                    touch(lists, *use, b->slice, x.shares);
                use++;
            }
        }
    }
}

bool vpps_open_entries(const vpps_contributions *all, vpps_arena *arena, vpps_entry_lists *lists) {
    if (!VPPS_TAKE(arena, lists->of, all->n_entries) || !VPPS_TAKE(arena, lists->touched, all->n_entries)) return false;
    lists->n_touched = 0;
    for (uint32_t i = 0; i < all->n_entries; i++) lists->of[i] = (vpps_entry_list){.slice = VPPS_NONE};
    return true;
}

void vpps_touch_entries(const vpps_contributions *all, uint32_t slice, vpps_entry_lists *lists) {
    const vpps_steps *s = all->tasks->steps;
    lists->n_touched = 0;
    for (uint32_t i = vpps_first_of_slice(s, slice); i < s->n_blocks; i = vpps_next_of_slice(s, i))
        use_entries_of(all, NULL, i, lists, NULL);
}

void vpps_write_entries(const vpps_contributions *all, const uint32_t *offsets, uint32_t slice, vpps_entry_lists *lists,
                        uint32_t *words) {
    const vpps_steps *s = all->tasks->steps;
    for (uint32_t i = vpps_first_of_slice(s, slice); i < s->n_blocks; i = vpps_next_of_slice(s, i))
        use_entries_of(all, offsets, i, lists, words);
    for (uint32_t i = 0; i < lists->n_touched; i++) lists->of[lists->touched[i]].made = true;
}
