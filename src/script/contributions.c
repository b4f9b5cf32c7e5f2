/* contributions.c - see contributions.h. */
#include "script/contributions.h"

/* Do a vertex's outputs with a gradient need what the block's other vertices may need? */
static bool reaches(const vpps_batch_work *w, const uint64_t *reads, uint32_t vertex, uint32_t index) {
    return vpps_reached(reads, w->vertices[vertex].gradients) >> index & 1;
}

/* A block's contributions to what one of its inputs or lookups reads; `at`, of the vertices that a task runs over. */
typedef struct contribution {
    const vpps_block_work *block;
    const vpps_block_uses *uses;
    const vpps_compiled_cell *cell;
    const vpps_cell_contribution *to;
    const uint64_t *reads; /* see vpps_reached */
    bool all;              /* every vertex makes it */
    uint32_t number, stage, stride, shares;
    uint32_t at, share_words; /* at: where the contribution of item 0 would lie; the task may begin at a later item */
} contribution;

static contribution contribution_of(const vpps_batch_work *w, const vpps_contributions *all, uint32_t i, uint32_t j) {
    const vpps_block_work *b = &w->blocks[i];
    const vpps_type *type = w->used[b->type].type;
    const vpps_compiled_cell *c = w->used[b->type].cell;
    const vpps_cell_contribution *to = &c->contributions[j];
    const uint64_t *reads = to->lookup ? type->reads_lookups : type->reads_inputs;
    const uint32_t shares = to->partial ? c->needs.group : 1;
    return (contribution){.block = b,
                          .uses = &all->blocks[i],
                          .cell = c,
                          .to = to,
                          .reads = reads,
                          .all = vpps_reached(reads, b->gradients) >> to->index & 1,
                          .number = j,
                          .stage = c->values[to->value].stage,
                          .stride = vpps_value_words(&c->values[to->value]),
                          .shares = shares};
}

/* An item's shares: counted, where `words` is NULL, else written at the cursor. */
static inline void take_shares(contribution x, uint32_t item, uint32_t *words, uint32_t *cursor) {
    const uint32_t at = *cursor;
    if (words && at == VPPS_NONE) return; /* nobody wants the gradient */
    *cursor = at + x.shares;
    for (uint32_t s = 0; words && s < x.shares; s++) words[at + s] = x.at + s * x.share_words + item * x.stride;
}

/* Every block's tasks, by stage and level. */
static bool note_runs(const vpps_batch_work *w, vpps_contributions *all) {
    size_t n = 0;
    for (uint32_t i = 0; i < w->n_blocks; i++) {
        const vpps_block_work *b = &w->blocks[i];
        all->blocks[i].runs = (uint32_t)n;
        n += (size_t)w->used[b->type].cell->n_stages * vpps_max_u32(b->n_levels, 1);
    }
    if (!VPPS_RESERVE(all->runs, all->runs_capacity, n + 1)) return false;
    for (uint32_t i = 0; i < w->n_tasks; i++) {
        const vpps_task_work *t = &w->tasks[i];
        const vpps_block_work *b = &w->blocks[t->block];
        const uint32_t level = t->level == VPPS_NONE ? 0 : t->level;
        all->runs[all->blocks[t->block].runs + t->stage * vpps_max_u32(b->n_levels, 1) + level] = i;
    }
    return true;
}

/* The task that makes the contributions of a level's vertices, and where they lie: then, the end of the task's vertices. */
static uint32_t find_run(const vpps_batch_work *w, const uint32_t *runs, contribution *x, uint32_t level) {
    const uint32_t at = x->cell->stages[x->stage].part == VPPS_PART_BACK_MAIN ? level : 0;
    const vpps_task_work *t = &w->tasks[runs[x->uses->runs + x->stage * vpps_max_u32(x->block->n_levels, 1) + at]];
    const uint32_t domain = x->cell->values[x->to->value].domain;
    uint32_t items[VPPS_DOMAINS], first = t->first;
    vpps_items_of_task(w, t, items);
    if (domain) first = w->rests[vpps_vertices_of(w, x->block)[t->first].vertex].first_member[domain - 1];
    x->at = t->contributions + (uint32_t)vpps_contribution_at(x->cell, x->stage, items, x->number) - first * x->stride;
    x->share_words = (uint32_t)(vpps_contribution_words(x->cell, items[domain], x->number) / x->shares);
    return t->first + t->n;
}

/* Contributions to other vertices' outputs, of vertices [first, end). */
static inline void each_input_of(const vpps_batch_work *w, const contribution *x, uint32_t first, uint32_t end,
                                 uint32_t *words, uint32_t *cursors) {
    const vpps_ordered_vertex *v = vpps_vertices_of(w, x->block);
    const vpps_input_place place = vpps_place_of_input(x->cell, x->to->index);
    const uint32_t *sources = w->source_outputs + place.n[0];
    if (x->all && !x->cell->n_lists) { /* nearly always */
        for (uint32_t p = first; p < end; p++) take_shares(*x, p, words, &cursors[sources[v[p].first_source]]);
        return;
    }
    const uint32_t domain = x->cell->values[x->to->value].domain;
    for (uint32_t p = first; p < end; p++) {
        if (!x->all && !reaches(w, x->reads, v[p].vertex, x->to->index)) continue;
        const vpps_vertex_rest *rest = &w->rests[v[p].vertex];
        const uint32_t *read = w->source_outputs + vpps_source_at(w, &v[p], place);
        const uint32_t item = domain ? rest->first_member[domain - 1] : p;
        for (uint32_t m = 0; m < vpps_members(rest->members, domain); m++)
            take_shares(*x, item + m, words, &cursors[read[m]]);
    }
}

/* Writes a block's contributions to an input, level by level. */
static void write_input(const vpps_batch_work *w, const uint32_t *runs, contribution x, uint32_t *words,
                        uint32_t *list_at) {
    for (uint32_t level = 0, p = 0; p < x.block->n; level++) {
        if (vpps_level_first(w, x.block, level + 1) == p) continue;
        const uint32_t first = p;
        p = find_run(w, runs, &x, level);
        each_input_of(w, &x, first, p, words, list_at);
    }
}

/* ---------------------------------------------------------------- entries of tables */

static bool open_tables(const vpps_batch_work *w, vpps_contributions *all) {
    const uint32_t n = (uint32_t)w->g->model->n_params;
    all->stamp++;
    for (uint32_t p = 0; p < all->n_tables; p++) all->tables[p].n = 0;
    if (all->n_tables >= n) return true;
    vpps_table_rows *tables = realloc(all->tables, n * sizeof *tables);
    if (!tables) return false;
    all->tables = tables;
    while (all->n_tables < n) tables[all->n_tables++] = (vpps_table_rows){NULL, 0};
    return true;
}

/* Finds the entries that a block's lookups contribute to. */
static bool find_entries_of(const vpps_batch_work *w, vpps_contributions *all, const contribution *x) {
    const vpps_cell_lookup *l = &x->cell->lookups[x->to->index];
    const vpps_ordered_vertex *v = vpps_vertices_of(w, x->block);
    vpps_table_rows *t = &all->tables[l->table];
    if (!t->rows) t->rows = calloc(w->g->model->params[l->table].count, sizeof *t->rows);
    if (!t->rows || !VPPS_RESERVE(all->uses, all->uses_capacity, all->n_uses + (size_t)x->block->n)) return false;
    for (uint32_t p = 0; p < x->block->n; p++) {
        if (!x->all && !reaches(w, x->reads, v[p].vertex, x->to->index)) continue;
        const uint32_t number = vpps_row_of(w, &v[p], l);
        vpps_row_entry *row = &t->rows[number];
        if (row->stamp != all->stamp) {
            if (!VPPS_RESERVE(all->entries, all->entries_capacity, all->n_entries + 1u)) return false;
            *row = (vpps_row_entry){all->stamp, all->n_entries};
            all->entries[all->n_entries++] = (vpps_entry){.table = l->table, .row = number, .number = t->n++};
        }
        all->uses[all->n_uses++] = row->entry;
    }
    return true;
}

/* The entries that get gradients, in the order of their first use. */
static bool find_entries(const vpps_batch_work *w, vpps_contributions *all) {
    if (!open_tables(w, all)) return false;
    for (uint32_t i = 0; i < w->n_blocks; i++) {
        all->blocks[i].uses = all->n_uses;
        for (uint32_t j = 0; j < w->used[w->blocks[i].type].cell->n_contributions; j++) {
            const contribution x = contribution_of(w, all, i, j);
            if (x.to->lookup && !find_entries_of(w, all, &x)) return false;
        }
    }
    return true;
}

/* ---------------------------------------------------------------- both passes */

bool vpps_count_contributions(const vpps_batch_work *w, vpps_contributions *out) {
    out->n_entries = out->n_uses = 0;
    if (!VPPS_RESERVE(out->counts, out->counts_capacity, w->n_outputs + 1u) ||
        !VPPS_RESERVE(out->blocks, out->blocks_capacity, w->n_blocks + 1u)) {
        return false;
    }
    memset(out->counts, 0, w->n_outputs * sizeof *out->counts);
    if (!w->training) return true;
    if (!find_entries(w, out) || !note_runs(w, out)) return false;
    for (uint32_t i = 0; i < w->n_blocks; i++) {
        for (uint32_t j = 0; j < w->used[w->blocks[i].type].cell->n_contributions; j++) {
            const contribution x = contribution_of(w, out, i, j);
            if (!x.to->lookup) each_input_of(w, &x, 0, x.block->n, NULL, out->counts);
        }
    }
    for (uint32_t i = 0; i < w->n_seeds; i++) out->counts[w->seeds[i].to.output]++;
    return true;
}

void vpps_contributions_free(vpps_contributions *c) {
    for (uint32_t p = 0; p < c->n_tables; p++) free(c->tables[p].rows);
    void *parts[] = {c->counts, c->entries, c->uses, c->runs, c->blocks, c->tables};
    for (size_t i = 0; i < VPPS_COUNT(parts); i++) free(parts[i]);
    *c = (vpps_contributions){0};
}

void vpps_write_contributions(const vpps_batch_work *w, const vpps_contributions *all, uint32_t *list_at,
                              uint32_t *words) {
    for (uint32_t i = 0; i < w->n_blocks; i++) {
        for (uint32_t j = 0; j < w->used[w->blocks[i].type].cell->n_contributions; j++) {
            const contribution x = contribution_of(w, all, i, j);
            if (!x.to->lookup) write_input(w, all->runs, x, words, list_at);
        }
    }
}

/* ---------------------------------------------------------------- entries, slice by slice */

/* Counts what a block contributes to entries; or, where `words` is not NULL, writes it at their cursors. In the order in which the
 * entries were found. */
static inline void use_entries_of(const vpps_batch_work *w, const vpps_contributions *all, uint32_t i,
                                  vpps_entry_lists *lists, uint32_t *words) {
    const vpps_block_work *b = &w->blocks[i];
    const vpps_ordered_vertex *v = vpps_vertices_of(w, b);
    const uint32_t *use = all->uses + all->blocks[i].uses;
    for (uint32_t j = 0; j < w->used[b->type].cell->n_contributions; j++) {
        contribution x = contribution_of(w, all, i, j);
        for (uint32_t level = 0, p = 0, end = b->n; x.to->lookup && p < b->n; level++) {
            if (words && vpps_level_first(w, b, level + 1) == p) continue;
            if (words) end = find_run(w, all->runs, &x, level);
            for (; p < end; p++) {
                if (!x.all && !reaches(w, x.reads, v[p].vertex, x.to->index)) continue;
                vpps_entry_list *e = &lists->of[*use];
                if (words) {
                    take_shares(x, p, words, &e->at);
                } else if (e->slice == b->slice) {
                    e->count += x.shares;
                } else {
                    e->slice = b->slice;
                    e->count = e->made + x.shares;
                    lists->touched[lists->n_touched++] = *use;
                }
                use++;
            }
        }
    }
}

bool vpps_open_entries(const vpps_contributions *all, vpps_entry_lists *lists) {
    if (!VPPS_RESERVE(lists->of, lists->of_capacity, all->n_entries + 1u) ||
        !VPPS_RESERVE(lists->touched, lists->touched_capacity, all->n_entries + 1u)) {
        return false;
    }
    lists->n_touched = 0;
    for (uint32_t i = 0; i < all->n_entries; i++) lists->of[i] = (vpps_entry_list){.slice = VPPS_NONE};
    return true;
}

void vpps_touch_entries(const vpps_batch_work *w, const vpps_contributions *all, uint32_t slice,
                        vpps_entry_lists *lists) {
    lists->n_touched = 0;
    for (uint32_t i = vpps_first_of_slice(w, slice); i < w->n_blocks; i = vpps_next_of_slice(w, i))
        use_entries_of(w, all, i, lists, NULL);
}

void vpps_write_entries(const vpps_batch_work *w, const vpps_contributions *all, uint32_t slice,
                        vpps_entry_lists *lists, uint32_t *words) {
    for (uint32_t i = vpps_first_of_slice(w, slice); i < w->n_blocks; i = vpps_next_of_slice(w, i))
        use_entries_of(w, all, i, lists, words);
    for (uint32_t i = 0; i < lists->n_touched; i++) lists->of[lists->touched[i]].made = true;
}
