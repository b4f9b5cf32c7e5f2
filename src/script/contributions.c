/* contributions.c - gradients that vertices contribute to what they read: how many each output and each table's entry gets,
 * and the lists of where they lie. */
#include "script/work.h"

/* Do a vertex's outputs with a gradient need what the block's other vertices may need? */
static bool reaches(const vpps_batch_work *w, const uint64_t *reads, uint32_t vertex, uint32_t index) {
    return vpps_reached(reads, w->vertices[vertex].gradients) >> index & 1;
}

/* A block's contributions to what one of its inputs or lookups reads; `at`, of the vertices that a task runs over. */
typedef struct contribution {
    const vpps_block_work *block;
    const vpps_compiled_cell *cell;
    const vpps_cell_contribution *to;
    const uint64_t *reads; /* see vpps_reached */
    bool all;              /* every vertex makes it */
    uint32_t number, stage, stride, shares;
    uint32_t at, share_words; /* at: as if there were items from 0 on */
} contribution;

static contribution contribution_of(const vpps_batch_work *w, uint32_t i, uint32_t j) {
    const vpps_block_work *b = &w->blocks[i];
    const vpps_type *type = w->used[b->type].type;
    const vpps_compiled_cell *c = w->used[b->type].cell;
    const vpps_cell_contribution *to = &c->contributions[j];
    const uint64_t *reads = to->lookup ? type->reads_lookups : type->reads_inputs;
    const uint32_t shares = to->partial ? c->needs.group : 1;
    return (contribution){.block = b,
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
    if (at == VPPS_NONE) return;
    *cursor = at + x.shares;
    for (uint32_t s = 0; words && s < x.shares; s++) words[at + s] = x.at + s * x.share_words + item * x.stride;
}

/* Every block's tasks, by stage and level. */
static bool note_runs(vpps_batch_work *w) {
    size_t n = 0;
    for (uint32_t i = 0; i < w->n_blocks; i++) {
        vpps_block_work *b = &w->blocks[i];
        b->runs = (uint32_t)n;
        n += (size_t)w->used[b->type].cell->n_stages * vpps_max_u32(b->n_levels, 1);
    }
    if (!VPPS_RESERVE(w->runs, w->runs_capacity, n + 1)) return false;
    for (uint32_t i = 0; i < w->n_tasks; i++) {
        const vpps_task_work *t = &w->tasks[i];
        const vpps_block_work *b = &w->blocks[t->block];
        const uint32_t level = t->level == VPPS_NONE ? 0 : t->level;
        w->runs[b->runs + t->stage * vpps_max_u32(b->n_levels, 1) + level] = i;
    }
    return true;
}

/* The task that makes the contributions of a level's vertices, and where they lie: then, the end of the task's vertices. */
static uint32_t find_run(const vpps_batch_work *w, contribution *x, uint32_t level) {
    const uint32_t at = x->cell->stages[x->stage].part == VPPS_PART_BACK_MAIN ? level : 0;
    const vpps_task_work *t = &w->tasks[w->runs[x->block->runs + x->stage * vpps_max_u32(x->block->n_levels, 1) + at]];
    const uint32_t domain = x->cell->values[x->to->value].domain;
    uint32_t items[VPPS_DOMAINS], first = t->first;
    vpps_items_of_task(w, t, items);
    if (domain) first = w->rests[vpps_vertices_of(w, x->block)[t->first].vertex].first_member[domain - 1];
    x->at = t->contributions + (uint32_t)vpps_contribution_at(x->cell, x->stage, items, x->number) - first * x->stride;
    x->share_words = (uint32_t)(vpps_contribution_words(x->cell, items[domain], x->number) / x->shares);
    return t->first + t->n;
}

/* Contributions to other vertices' outputs, of vertices [first, end). */
static inline void each_input_of(vpps_batch_work *w, const contribution *x, uint32_t first, uint32_t end,
                                 uint32_t *words) {
    const vpps_ordered_vertex *v = vpps_vertices_of(w, x->block);
    const vpps_input_place place = vpps_place_of_input(x->cell, x->to->index);
    const uint32_t *sources = w->source_outputs + place.n[0];
    uint32_t *users = w->users;
    if (x->all && !x->cell->n_lists) { /* nearly always */
        for (uint32_t p = first; p < end; p++) take_shares(*x, p, words, &users[sources[v[p].first_source]]);
        return;
    }
    const uint32_t domain = x->cell->values[x->to->value].domain;
    for (uint32_t p = first; p < end; p++) {
        if (!x->all && !reaches(w, x->reads, v[p].vertex, x->to->index)) continue;
        const vpps_vertex_rest *rest = &w->rests[v[p].vertex];
        const uint32_t *read = w->source_outputs + vpps_source_at(w, &v[p], place);
        const uint32_t item = domain ? rest->first_member[domain - 1] : p;
        for (uint32_t m = 0; m < vpps_members(rest->members, domain); m++)
            take_shares(*x, item + m, words, &users[read[m]]);
    }
}

/* Writes a block's contributions to an input, level by level. */
static void write_input(vpps_batch_work *w, contribution x, uint32_t *words) {
    for (uint32_t level = 0, p = 0; p < x.block->n; level++) {
        if (vpps_level_first(w, x.block, level + 1) == p) continue;
        const uint32_t first = p;
        p = find_run(w, &x, level);
        each_input_of(w, &x, first, p, words);
    }
}

/* Outputs with a gradient have no users yet. */
static void open_users(vpps_batch_work *w) {
    for (uint32_t i = 0; i < w->n_blocks; i++) {
        const vpps_block_work *b = &w->blocks[i];
        const vpps_ordered_vertex *v = vpps_vertices_of(w, b);
        for (uint64_t k = 0, left = w->used[b->type].needs.gradient_out; left; k++, left >>= 1) {
            if (!(left & 1)) continue;
            const bool all = b->gradients >> k & 1;
            for (uint32_t p = 0; p < b->n; p++)
                if (all || w->vertices[v[p].vertex].gradients >> k & 1) w->users[v[p].first_output + k] = 0;
        }
    }
}

/* ---------------------------------------------------------------- entries of tables */

static bool open_tables(vpps_batch_work *w) {
    const uint32_t n = (uint32_t)w->g->model->n_params;
    w->stamp++;
    if (w->n_tables >= n) return true;
    vpps_row_work **rows = realloc(w->rows, n * sizeof *rows);
    if (!rows) return false;
    w->rows = rows;
    for (; w->n_tables < n; w->n_tables++) rows[w->n_tables] = NULL;
    return true;
}

/* Finds the entries that a block's lookups contribute to. */
static bool find_entries_of(vpps_batch_work *w, const contribution *x) {
    const vpps_cell_lookup *l = &x->cell->lookups[x->to->index];
    const vpps_ordered_vertex *v = vpps_vertices_of(w, x->block);
    vpps_row_work **rows = &w->rows[l->table];
    if (!*rows) *rows = calloc(w->g->model->params[l->table].count, sizeof **rows);
    if (!*rows || !VPPS_RESERVE(w->entry_uses, w->entry_uses_capacity, w->n_entry_uses + (size_t)x->block->n))
        return false;
    for (uint32_t p = 0; p < x->block->n; p++) {
        if (!x->all && !reaches(w, x->reads, v[p].vertex, x->to->index)) continue;
        const uint32_t number = vpps_row_of(w, &v[p], l);
        vpps_row_work *row = &(*rows)[number];
        if (row->stamp != w->stamp) {
            if (!VPPS_RESERVE(w->entries, w->entries_capacity, w->n_entries + 1u)) return false;
            *row = (vpps_row_work){w->stamp, w->n_entries};
            w->entries[w->n_entries++] = (vpps_entry){.table = l->table, .row = number, .slice = VPPS_NONE};
        }
        w->entry_uses[w->n_entry_uses++] = row->entry;
    }
    return true;
}

/* The entries that get gradients, in the order of their first use. */
static bool find_entries(vpps_batch_work *w) {
    if (!open_tables(w)) return false;
    for (uint32_t i = 0; i < w->n_blocks; i++) {
        w->blocks[i].first_use = w->n_entry_uses;
        for (uint32_t j = 0; j < w->used[w->blocks[i].type].cell->n_contributions; j++) {
            const contribution x = contribution_of(w, i, j);
            if (x.to->lookup && !find_entries_of(w, &x)) return false;
        }
    }
    return VPPS_RESERVE(w->touched, w->touched_capacity, w->n_entries + 1u);
}

/* ---------------------------------------------------------------- both passes */

/* How many contributions every output with a gradient gets, and which entries get some. */
vpps_status vpps_count_contributions(vpps_batch_work *w) {
    w->n_entries = w->n_entry_uses = 0;
    if (!VPPS_RESERVE(w->users, w->users_capacity, w->n_outputs + 1u)) return vpps_no_memory();
    memset(w->users, 0xff, w->n_outputs * sizeof *w->users);
    if (!w->training) return VPPS_OK;
    open_users(w);
    if (!find_entries(w) || !note_runs(w)) return vpps_no_memory();
    for (uint32_t i = 0; i < w->n_blocks; i++) {
        for (uint32_t j = 0; j < w->used[w->blocks[i].type].cell->n_contributions; j++) {
            const contribution x = contribution_of(w, i, j);
            if (!x.to->lookup) each_input_of(w, &x, 0, x.block->n, NULL);
        }
    }
    for (uint32_t i = 0; i < w->n_seeds; i++) {
        uint32_t *users = &w->users[w->seeds[i].to.output];
        if (*users != VPPS_NONE) ++*users;
    }
    return VPPS_OK;
}

/* Writes them at the cursors that counts have become. */
void vpps_write_contributions(vpps_batch_work *w, uint32_t *words) {
    for (uint32_t i = 0; i < w->n_blocks; i++) {
        for (uint32_t j = 0; j < w->used[w->blocks[i].type].cell->n_contributions; j++) {
            const contribution x = contribution_of(w, i, j);
            if (!x.to->lookup) write_input(w, x, words);
        }
    }
}

/* ---------------------------------------------------------------- entries, slice by slice */

/* Counts what a block contributes to entries; or, where `words` is not NULL, writes it at their cursors. In the order in which the
 * entries were found. */
static inline void use_entries_of(vpps_batch_work *w, uint32_t i, uint32_t *words) {
    const vpps_block_work *b = &w->blocks[i];
    const vpps_ordered_vertex *v = vpps_vertices_of(w, b);
    const uint32_t *use = w->entry_uses + b->first_use;
    for (uint32_t j = 0; j < w->used[b->type].cell->n_contributions; j++) {
        contribution x = contribution_of(w, i, j);
        for (uint32_t level = 0, p = 0, end = b->n; x.to->lookup && p < b->n; level++) {
            if (words && vpps_level_first(w, b, level + 1) == p) continue;
            if (words) end = find_run(w, &x, level);
            for (; p < end; p++) {
                if (!x.all && !reaches(w, x.reads, v[p].vertex, x.to->index)) continue;
                vpps_entry *e = &w->entries[*use];
                if (words) {
                    take_shares(x, p, words, &e->at);
                } else if (e->slice == b->slice) {
                    e->count += x.shares;
                } else {
                    e->slice = b->slice;
                    e->count = e->made + x.shares;
                    w->touched[w->n_touched++] = *use;
                }
                use++;
            }
        }
    }
}

/* Finds the entries that a slice contributes to, and counts how much to each. Where there is one slice, they are all, in their order:
 * then, who adds an entry's gradient up is who owns it. */
void vpps_touch_entries(vpps_batch_work *w, uint32_t slice) {
    w->n_touched = 0;
    for (uint32_t i = vpps_first_of_slice(w, slice); i < w->n_blocks; i = vpps_next_of_slice(w, i))
        use_entries_of(w, i, NULL);
}

/* Writes the slice's contributions to entries at their cursors. */
void vpps_write_entries(vpps_batch_work *w, uint32_t slice, uint32_t *words) {
    for (uint32_t i = vpps_first_of_slice(w, slice); i < w->n_blocks; i = vpps_next_of_slice(w, i))
        use_entries_of(w, i, words);
    for (uint32_t i = 0; i < w->n_touched; i++) w->entries[w->touched[i]].made = true;
}
