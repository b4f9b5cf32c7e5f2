/* records.c - compares what the batch's program (script) has for each vertex and each lookup table with the graph. */
#include "script/verify/checker.h"

#include <inttypes.h>

static bool check_source(vpps_checker *c, vpps_checked_block *b, uint32_t p, uint32_t i, uint32_t item, vpps_node x) {
    const vpps_signature *s = vpps_check_signature(c->g, x);
    if (s->rows != b->cell->input_rows[i] || s->cols != b->cell->input_cols[i])
        return VPPS_REFUSE(c, "block %u (cell %s), vertex %u, input %u: shape mismatch: %u x %u, expected %u x %u",
                           (uint32_t)(b - c->blocks), b->cell->c->name, p, i, s->rows, s->cols, b->cell->input_rows[i],
                           b->cell->input_cols[i]);
    const uint32_t output = vpps_check_output(c, x);
    if (output == VPPS_NONE) return false;
    b->sources[i][item] = output;
    const vpps_location at = vpps_check_location(c, output);
    const int64_t from = b->view.inputs[i][item], offset = from + b->view.shifts[i];
    /* List inputs whose values lie at a fixed distance can share an array of offsets, each adding its shift; not parameters (below `batch`). */
    if (offset == at.offset && (from == offset || (from >= c->target->batch && offset >= c->target->batch)))
        return true;
    return VPPS_REFUSE(c, "block %u (cell %s), vertex %u: input %u is at %" PRId64 "; node %u lies at %u",
                       (uint32_t)(b - c->blocks), b->cell->c->name, p, i, offset, x, at.offset);
}

static bool check_inputs(vpps_checker *c, vpps_checked_block *b, uint32_t p, const vpps_record_view *view) {
    const vpps_compiled_cell *cell = b->cell->c;
    /* how many nodes have been read so far, by single inputs (or an op's arguments), and by list inputs */
    uint64_t own = 0, listed = 0;
    for (uint32_t d = 1; d <= cell->n_lists; d++) {
        const uint32_t first = b->view.lists[d][p], end = b->view.lists[d][p + 1];
        if (end < first || end - first != view->members[d - 1] || end > b->block->members[d - 1])
            return vpps_refuse_vertex(c, b, p, "wrong number of list members");
    }
    for (uint32_t i = 0; i < cell->n_inputs; i++) {
        const uint32_t axis = cell->input_axis[i];
        const uint32_t n = vpps_members(view->members, axis), first = axis ? b->view.lists[axis][p] : p;
        const bool list = axis && view->cell;
        uint64_t *at = list ? &listed : &own;
        if (*at + n > (list ? view->n_listed : view->n_args))
            return vpps_refuse_vertex(c, b, p, "the graph gives the vertex fewer inputs");
        for (uint32_t m = 0; m < n; m++)
            if (!check_source(c, b, p, i, first + m, (list ? view->listed : view->args)[(*at)++])) return false;
    }
    return own + listed == view->n_args + view->n_listed ||
           vpps_refuse_vertex(c, b, p, "the graph gives the vertex more inputs");
}

/* Finds an integer of vertex r of the graph. kind VPPS_WORD_DROPOUT: number of the vertex's first dropout element; IMM:
 * its op's integer; INDEX: index number `value` that the caller gave for the vertex. False: there is none. */
static bool word_of(const vpps_checker *c, uint32_t r, const vpps_record_view *view, uint32_t kind, uint32_t value,
                    uint32_t *word) {
    if (kind == VPPS_WORD_DROPOUT) return *word = c->dropout[r], true;
    if (kind == VPPS_WORD_IMM && view->op) return *word = view->op->imm, true;
    if (kind != VPPS_WORD_INDEX || !view->cell || value >= view->cell->n_indices) return false;
    return *word = view->indices[value], true;
}

static bool check_lookups(vpps_checker *c, vpps_checked_block *b, uint32_t p, const vpps_record_view *view) {
    for (uint32_t i = 0; i < b->cell->c->n_lookups; i++) {
        const vpps_cell_lookup *l = &b->cell->c->lookups[i];
        if (l->table == VPPS_NO_PARAM) {
            if (!view->op || b->view.lookups[i][p] != view->op->imm)
                return vpps_refuse_vertex(c, b, p, "reads another kept value");
            continue;
        }
        const vpps_parameter_data *table = &c->g->model->params[l->table];
        uint32_t row = l->value;
        if (l->kind != VPPS_WORD_DROPOUT && !word_of(c, b->view.vertices[p], view, l->kind, l->value, &row))
            return vpps_refuse_vertex(c, b, p, "no such index");
        if (row >= table->count) return vpps_refuse_vertex(c, b, p, "lookup of an entry beyond the table");
        b->rows[i][p] = row;
        if (b->view.lookups[i][p] != c->target->values[l->table] + (uint64_t)row * table->rows * table->cols)
            return vpps_refuse_vertex(c, b, p, "lookup of another entry");
    }
    return true;
}

static bool check_words(vpps_checker *c, vpps_checked_block *b, uint32_t p, const vpps_record_view *view) {
    for (uint32_t i = 0; i < b->cell->c->n_words; i++) {
        const vpps_cell_word *w = &b->cell->c->words[i];
        uint32_t word;
        if (!word_of(c, b->view.vertices[p], view, w->kind, w->value, &word) || word != b->view.words[i][p])
            return vpps_refuse_vertex(c, b, p, "wrong word in the record");
    }
    if (!b->view.data) return true;
    const uint32_t n = view->op && view->signature->op == VPPS_OP_INPUT ? vpps_words(view->signature) : 0;
    const uint32_t *data = vpps_check_words(c, b->view.data[p], n, "an input's data");
    if (!data) return false;
    return (n && !memcmp(data, c->g->data + view->op->imm, n * sizeof *data)) ||
           vpps_refuse_vertex(c, b, p, "wrong data");
}

static uint32_t **take_arrays(vpps_checker *c, const vpps_block *block, uint32_t n, const uint8_t *axes) {
    uint32_t **arrays = vpps_check_zeros(c, n, sizeof *arrays);
    for (uint32_t i = 0; arrays && i < n; i++) {
        const uint32_t items = axes && axes[i] ? block->members[axes[i] - 1] : block->n;
        arrays[i] = vpps_check_zeros(c, items, sizeof **arrays);
        if (!arrays[i]) return NULL;
    }
    return arrays;
}

bool vpps_check_arrays(vpps_checker *c) {
    for (uint32_t i = 0; i < c->header->n_blocks; i++) {
        vpps_checked_block *b = &c->blocks[i];
        const vpps_compiled_cell *cell = b->cell->c;
        if (!b->block->n) continue;
        b->sources = take_arrays(c, b->block, cell->n_inputs, cell->input_axis);
        b->rows = take_arrays(c, b->block, cell->n_lookups, NULL);
        if (!b->sources || !b->rows) return false;
        for (uint32_t d = 1; d <= cell->n_lists; d++)
            if (b->view.lists[d][0] || b->view.lists[d][b->block->n] != b->block->members[d - 1])
                return vpps_refuse_vertex(c, b, 0, "list does not begin or end with the block's members");
        for (uint32_t p = 0; p < b->block->n; p++) {
            const vpps_record_view view = vpps_check_view(c->g, b->view.vertices[p]);
            if (!check_inputs(c, b, p, &view) || !check_lookups(c, b, p, &view) || !check_words(c, b, p, &view))
                return false;
        }
    }
    return true;
}

static bool check_table(vpps_checker *c, uint32_t number, const vpps_table *t) {
    const vpps_parameter_data *table = t->param < c->g->model->n_params ? &c->g->model->params[t->param] : NULL;
    if (!table || table->kind != VPPS_LOOKUP || !c->due_entries[t->param])
        return VPPS_REFUSE(c, "table %u: parameter %u gets no gradients of entries", number, t->param);
    for (uint32_t i = 0; i < number; i++)
        if (vpps_table_at(c->script, i)->param == t->param)
            return VPPS_REFUSE(c, "table %u: duplicate parameter", number);
    const uint32_t *rows = vpps_check_words(c, t->rows, t->n, "a table's entries");
    if (!rows) return false;
    uint32_t *due = c->due_entries[t->param];
    uint8_t *seen = vpps_check_zeros(c, table->count, 1);
    uint32_t n = 0;
    if (!seen) return false;
    for (uint32_t i = 0; i < t->n; i++) {
        if (rows[i] >= table->count || seen[rows[i]] || !due[rows[i]])
            return VPPS_REFUSE(c, "table %u: entry %u is duplicate, or gets no gradient", number, rows[i]);
        seen[rows[i]] = 1;
    }
    for (uint32_t row = 0; row < table->count; row++) n += due[row] != 0;
    if (n != t->n) return VPPS_REFUSE(c, "table %u: %u entries; expected %u with gradients", number, t->n, n);
    const vpps_tensor gradients = {.kind = VPPS_TENSOR_ENTRY,
                                   .stride = table->rows * table->cols,
                                   .words = table->rows * table->cols,
                                   .items = t->n,
                                   .index = number};
    c->entries_made[number] = vpps_check_zeros(c, t->n, sizeof *c->entries_made[number]);
    if (!c->entries_made[number]) return false;
    return (c->table_tensors[number] = vpps_check_add_tensor(c, t->gradients, gradients)) != VPPS_NONE;
}

bool vpps_check_tables(vpps_checker *c) {
    const uint32_t n = c->header->n_tables;
    uint32_t due = 0;
    if (!vpps_check_words(c, c->header->tables, (uint64_t)n * (sizeof(vpps_table) / 4), "the tables")) return false;
    if (n && !c->training) return VPPS_REFUSE(c, "inference has tables with gradients");
    c->table_tensors = vpps_check_zeros(c, n, sizeof *c->table_tensors);
    c->entries_made = vpps_check_zeros(c, n, sizeof *c->entries_made);
    if (!c->table_tensors || !c->entries_made) return false;
    for (uint32_t i = 0; i < n; i++)
        if (!check_table(c, i, vpps_table_at(c->script, i))) return false;
    for (uint32_t p = 0; c->training && p < c->g->model->n_params; p++) due += c->due_entries[p] != NULL;
    return due == n || VPPS_REFUSE(c, "%u tables; expected %u with gradients", n, due);
}
