/* blocks.c - a block is the vertices that it claims to be, and every word of its arrays is what the graph says. */
#include "script/verify/checker.h"

#include <inttypes.h>

static bool refuse(vpps_checker *c, const vpps_checked_block *b, uint32_t p, const char *what) {
    return VPPS_REFUSE(c, "block %u (cell %s), vertex %u: %s", (uint32_t)(b - c->blocks), b->cell->c->name, p, what);
}

/* ---------------------------------------------------------------- finding the arrays */

typedef struct cursor {
    vpps_checker *c;
    uint64_t at;
    bool ok;
} cursor;

static const uint32_t *take(cursor *at, uint64_t n) {
    const uint32_t *words = at->ok ? vpps_check_words(at->c, at->at, n, "a block's arrays") : NULL;
    at->ok = words != NULL;
    at->at += n;
    return words;
}

static const uint32_t **pointers(vpps_checker *c, uint32_t n) {
    return vpps_check_zeros(c, n, sizeof(const uint32_t *));
}

static bool find_arrays(vpps_checker *c, vpps_checked_block *b) {
    const vpps_compiled_cell *cell = b->cell->c;
    const uint32_t n = b->block->n;
    b->inputs = pointers(c, cell->n_inputs);
    b->lookups = pointers(c, cell->n_lookups);
    b->words = pointers(c, cell->n_words);
    b->gradient_starts = pointers(c, cell->n_outputs);
    b->gradients = pointers(c, cell->n_outputs);
    if (!b->inputs || !b->lookups || !b->words || !b->gradient_starts || !b->gradients) return false;
    cursor at = {c, b->block->arrays, true};
    b->vertices = take(&at, n);
    for (uint32_t i = 0; i < cell->n_inputs; i++)
        if (!cell->input_is_list[i]) b->inputs[i] = take(&at, n);
    for (uint32_t i = 0; i < cell->n_lookups; i++) b->lookups[i] = take(&at, n);
    for (uint32_t i = 0; i < cell->n_words; i++) b->words[i] = take(&at, n);
    if (cell->is_data) b->data = take(&at, n);
    if (cell->list_inputs) {
        b->list = take(&at, (uint64_t)n + 1);
        for (uint32_t i = 0; i < cell->n_inputs; i++)
            if (cell->input_is_list[i]) b->inputs[i] = take(&at, b->block->members);
    }
    for (uint32_t k = 0; k < cell->n_outputs; k++) {
        if (!c->training || !(cell->needs.gradient_out >> k & 1)) continue;
        b->gradient_starts[k] = take(&at, (uint64_t)n + 1);
        b->gradients[k] = take(&at, at.ok ? b->gradient_starts[k][n] : 0);
        for (uint32_t p = 0; at.ok && p < n; p++)
            if (b->gradient_starts[k][p] > b->gradient_starts[k][p + 1])
                return refuse(c, b, p, "its list of contributions has a negative length");
    }
    return at.ok;
}

/* ---------------------------------------------------------------- tensors */

uint32_t vpps_check_add_tensor(vpps_checker *c, vpps_tensor t) {
    const uint64_t end = t.items ? t.offset + (uint64_t)(t.items - 1) * t.stride + t.words : 0;
    if (t.items && (t.offset < c->plan->batch || end > c->pool_words)) {
        vpps_check_record(c, "words %u to %" PRIu64 " of the pool are asked for; the batch has %u to %u", t.offset, end,
                          c->plan->batch, c->pool_words);
        return VPPS_NONE;
    }
    if (!VPPS_RESERVE(c->tensors, c->tensors_capacity, c->n_tensors + 1u)) {
        c->status = VPPS_MEMORY;
        return VPPS_NONE;
    }
    c->tensors[c->n_tensors] = t;
    return c->n_tensors++;
}

static uint32_t items(const vpps_checked_block *b, uint32_t domain) { return domain ? b->block->members : b->block->n; }

static bool add_kept(vpps_checker *c, vpps_checked_block *b, uint32_t number, uint32_t v) {
    const vpps_cell_value *x = &b->cell->c->values[v];
    const uint32_t shares = vpps_makes_shares(x) ? c->group_size : 1;
    b->kept[v] = c->n_tensors;
    for (uint32_t s = 0; s < shares; s++) {
        const uint64_t at = (uint64_t)b->block->kept[x->domain] + x->offset + (uint64_t)s * vpps_share_words(x);
        if (at > UINT32_MAX) return refuse(c, b, 0, "its values lie outside the pool");
        const vpps_tensor t = {.kind = VPPS_TENSOR_KEPT,
                               .offset = (uint32_t)at,
                               .stride = b->cell->c->kept_words[x->domain],
                               .words = vpps_value_words(x),
                               .items = items(b, x->domain),
                               .block = number,
                               .index = v,
                               .share = s};
        if (vpps_check_add_tensor(c, t) == VPPS_NONE) return false;
    }
    return true;
}

/* Contributions lie one after the other, each a list of its items' values, rounded up; shares likewise. */
static bool add_contributions(vpps_checker *c, vpps_checked_block *b, uint32_t number) {
    const vpps_compiled_cell *cell = b->cell->c;
    uint64_t at = b->block->contributions;
    for (uint32_t j = 0; j < cell->n_contributions; j++) {
        const vpps_cell_value *x = &cell->values[cell->contributions[j].value];
        const uint32_t shares = cell->contributions[j].partial ? c->group_size : 1, n = items(b, x->domain);
        b->contributions[j] = c->n_tensors;
        for (uint32_t s = 0; s < shares; s++) {
            if (at > UINT32_MAX) return refuse(c, b, 0, "its contributions lie outside the pool");
            const vpps_tensor t = {.kind = VPPS_TENSOR_CONTRIBUTION,
                                   .offset = (uint32_t)at,
                                   .stride = vpps_value_words(x),
                                   .words = vpps_value_words(x),
                                   .items = n,
                                   .block = number,
                                   .index = j,
                                   .share = s,
                                   .first_bit = c->n_taken};
            if (vpps_check_add_tensor(c, t) == VPPS_NONE) return false;
            c->n_taken += n;
            at += ((uint64_t)n * vpps_value_words(x) + 15) & ~(uint64_t)15;
        }
    }
    return true;
}

static bool add_tensors(vpps_checker *c, vpps_checked_block *b, uint32_t number) {
    const vpps_compiled_cell *cell = b->cell->c;
    b->kept = vpps_check_zeros(c, cell->n_values, sizeof *b->kept);
    b->contributions = vpps_check_zeros(c, cell->n_contributions, sizeof *b->contributions);
    b->stage_bits = vpps_check_zeros(c, cell->n_stages, sizeof *b->stage_bits);
    if (!b->kept || !b->contributions || !b->stage_bits) return false;
    for (uint32_t v = 0; v < cell->n_values; v++) {
        b->kept[v] = VPPS_NONE;
        if (cell->values[v].stage != VPPS_NONE && cell->values[v].kept && !add_kept(c, b, number, v)) return false;
    }
    for (uint32_t s = 0; s < cell->n_stages; s++) {
        b->stage_bits[s] = c->n_ran;
        c->n_ran += b->block->n;
    }
    return add_contributions(c, b, number);
}

/* ---------------------------------------------------------------- vertices */

static bool open_vertices(vpps_checker *c, vpps_checked_block *b, uint32_t number) {
    for (uint32_t p = 0; p < b->block->n; p++) {
        const uint32_t r = b->vertices[p];
        if (r >= c->n_records || !c->needed[r]) return refuse(c, b, p, "it is no vertex that the request needs");
        if (c->block_of[r] != VPPS_NONE) return refuse(c, b, p, "it is there twice");
        c->block_of[r] = number;
        c->position_of[r] = p;
        if (b->cell->record == VPPS_NONE && !vpps_check_cell(c, b->cell, r)) return false;
        if (!vpps_check_alike(c->g, r, b->cell->record)) return refuse(c, b, p, "it is a vertex of another cell");
    }
    return true;
}

static bool open_block(vpps_checker *c, uint32_t number) {
    vpps_checked_block *b = &c->blocks[number];
    b->block = (const vpps_block *)(const void *)(c->script + c->header->blocks) + number;
    if (b->block->cell >= c->n_cells || b->block->group >= c->n_groups)
        return VPPS_REFUSE(c, "block %u is of cell %u and group %u; there are %u and %u", number, b->block->cell,
                           b->block->group, c->n_cells, c->n_groups);
    b->cell = &c->checked[b->block->cell];
    b->first_output = c->n_outputs;
    const vpps_compiled_cell *cell = b->cell->c;
    if (b->block->members && (!cell->list_inputs || !b->block->n))
        return VPPS_REFUSE(c, "block %u: members, but no lists", number);
    if (!b->block->n) return find_arrays(c, b);
    if (cell->needs.training != c->training || cell->needs.group != c->group_size)
        return VPPS_REFUSE(c, "block %u: cell %s was compiled for groups of %u%s", number, cell->name,
                           cell->needs.group, cell->needs.training ? ", for training" : "");
    const uint32_t *vertices = vpps_check_words(c, b->block->arrays, b->block->n, "a block's arrays");
    if (!vertices) return false;
    b->vertices = vertices;
    if (!open_vertices(c, b, number) || !find_arrays(c, b) || !add_tensors(c, b, number)) return false;
    const uint64_t outputs = (uint64_t)c->n_outputs + (uint64_t)b->block->n * cell->n_outputs;
    if (outputs >= VPPS_NONE) return VPPS_REFUSE(c, "the script has too many outputs");
    c->n_outputs = (uint32_t)outputs;
    return true;
}

static bool number_outputs(vpps_checker *c) {
    c->output_block = vpps_check_zeros(c, c->n_outputs, sizeof *c->output_block);
    for (uint32_t i = 0; c->output_block && i < c->header->n_blocks; i++) {
        const uint32_t end = i + 1 < c->header->n_blocks ? c->blocks[i + 1].first_output : c->n_outputs;
        for (uint32_t o = c->blocks[i].first_output; o < end; o++) c->output_block[o] = i;
    }
    return c->output_block != NULL;
}

bool vpps_check_blocks(vpps_checker *c) {
    const uint32_t n = c->header->n_blocks;
    if (!vpps_check_words(c, c->header->blocks, (uint64_t)n * VPPS_BLOCK_WORDS, "the blocks")) return false;
    c->blocks = vpps_check_zeros(c, n, sizeof *c->blocks);
    c->checked = vpps_check_zeros(c, c->n_cells, sizeof *c->checked);
    c->block_of = vpps_check_zeros(c, c->n_records, sizeof *c->block_of);
    c->position_of = vpps_check_zeros(c, c->n_records, sizeof *c->position_of);
    if (!c->blocks || !c->checked || !c->block_of || !c->position_of) return false;
    for (uint32_t i = 0; i < c->n_cells; i++) {
        const vpps_compiled_cell *cell = c->checked[i].c = c->cells[i];
        c->checked[i].record = VPPS_NONE;
        if (cell->n_inputs > VPPS_CELL_MOST || cell->n_outputs > VPPS_CELL_MOST || cell->n_lookups > VPPS_CELL_MOST ||
            cell->n_words > VPPS_CELL_MOST) {
            return VPPS_REFUSE(c, "cell %s: its counts make no sense", cell->name);
        }
    }
    memset(c->block_of, 0xff, c->n_records * sizeof *c->block_of);
    for (uint32_t i = 0; i < n; i++)
        if (!open_block(c, i)) return false;
    for (uint32_t r = 0; r < c->n_records; r++)
        if (c->needed[r] && c->block_of[r] == VPPS_NONE)
            return VPPS_REFUSE(c, "vertex %u is needed, but in no block", r);
    c->ran = vpps_check_zeros(c, vpps_bit_words(c->n_ran), sizeof *c->ran);
    c->taken = vpps_check_zeros(c, vpps_bit_words(c->n_taken), sizeof *c->taken);
    return c->ran && c->taken && number_outputs(c);
}

/* ---------------------------------------------------------------- outputs */

uint32_t vpps_check_block_of(const vpps_checker *c, uint32_t output, uint32_t *k, uint32_t *position) {
    const uint32_t block = c->output_block[output], n = c->blocks[block].block->n;
    *k = (output - c->blocks[block].first_output) / n;
    *position = (output - c->blocks[block].first_output) % n;
    return block;
}

uint32_t vpps_check_output(vpps_checker *c, vpps_node x) {
    uint32_t record, node;
    if (vpps_check_resolve(c->g, x, &record, &node) && c->block_of[record] != VPPS_NONE) {
        const vpps_checked_block *b = &c->blocks[c->block_of[record]];
        for (uint32_t k = 0; k < b->cell->c->n_outputs; k++)
            if (b->cell->c->outputs[k].node == node && vpps_offers(b->cell->c, k))
                return b->first_output + k * b->block->n + c->position_of[record];
    }
    vpps_check_record(c, "node %u is no output that its vertex's cell was compiled to offer", x);
    return VPPS_NONE;
}

vpps_location vpps_check_location(const vpps_checker *c, uint32_t output) {
    uint32_t k, p;
    const vpps_checked_block *b = &c->blocks[vpps_check_block_of(c, output, &k, &p)];
    return vpps_check_operand(c, b, b->cell->c->outputs[k].value, p);
}

/* ---------------------------------------------------------------- what records say */

static bool check_source(vpps_checker *c, vpps_checked_block *b, uint32_t p, uint32_t i, uint32_t item, vpps_node x) {
    const vpps_signature *s = vpps_check_signature(c->g, x);
    if (s->rows != b->cell->input_rows[i] || s->cols != b->cell->input_cols[i])
        return refuse(c, b, p, "what it reads has another shape");
    const uint32_t output = vpps_check_output(c, x);
    if (output == VPPS_NONE) return false;
    b->sources[i][item] = output;
    const vpps_location at = vpps_check_location(c, output);
    if (b->inputs[i][item] == at.offset) return true;
    return VPPS_REFUSE(c, "block %u (cell %s), vertex %u: input %u is at %u; node %u lies at %u",
                       (uint32_t)(b - c->blocks), b->cell->c->name, p, i, b->inputs[i][item], x, at.offset);
}

static bool check_inputs(vpps_checker *c, vpps_checked_block *b, uint32_t p, const vpps_record_view *view) {
    const vpps_compiled_cell *cell = b->cell->c;
    const uint32_t members = view->cell ? view->children : view->n_args;
    uint32_t at = 0;
    if (cell->list_inputs &&
        (b->list[p + 1] < b->list[p] || b->list[p + 1] - b->list[p] != members || b->list[p + 1] > b->block->members)) {
        return refuse(c, b, p, "its list has another length");
    }
    for (uint32_t i = 0; i < cell->n_inputs; i++) {
        const bool list = cell->input_is_list[i];
        const uint32_t n = list ? members : 1, first = list ? b->list[p] : p;
        if (at + (uint64_t)n > view->n_args) return refuse(c, b, p, "it has fewer inputs");
        for (uint32_t m = 0; m < n; m++)
            if (!check_source(c, b, p, i, first + m, view->args[at + m])) return false;
        at += n;
    }
    return at == view->n_args || refuse(c, b, p, "it has more inputs");
}

/* Word `value` of some kind that the record holds; false: it holds none. */
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
        const vpps_parameter_data *table = &c->g->model->params[l->table];
        uint32_t row = l->value;
        if (l->kind != VPPS_WORD_DROPOUT && !word_of(c, b->vertices[p], view, l->kind, l->value, &row))
            return refuse(c, b, p, "it has no such index");
        if (row >= table->count) return refuse(c, b, p, "it looks up an entry that its table has not");
        b->rows[i][p] = row;
        if (b->lookups[i][p] != c->plan->values[l->table] + (uint64_t)row * table->rows * table->cols)
            return refuse(c, b, p, "it looks up another entry");
    }
    return true;
}

static bool check_words(vpps_checker *c, vpps_checked_block *b, uint32_t p, const vpps_record_view *view) {
    for (uint32_t i = 0; i < b->cell->c->n_words; i++) {
        const vpps_cell_word *w = &b->cell->c->words[i];
        uint32_t word;
        if (!word_of(c, b->vertices[p], view, w->kind, w->value, &word) || word != b->words[i][p])
            return refuse(c, b, p, "a word of its record is another");
    }
    if (!b->data) return true;
    const uint32_t n = view->op ? vpps_words(view->signature) : 0;
    const uint32_t *data = vpps_check_words(c, b->data[p], n, "an input's data");
    if (!data) return false;
    return (n && !memcmp(data, c->g->data + view->op->imm, n * sizeof *data)) || refuse(c, b, p, "its data are others");
}

static uint32_t **take_arrays(vpps_checker *c, uint32_t n, uint32_t words, const bool *lists, uint32_t list_words) {
    uint32_t **arrays = vpps_check_zeros(c, n, sizeof *arrays);
    for (uint32_t i = 0; arrays && i < n; i++) {
        arrays[i] = vpps_check_zeros(c, lists && lists[i] ? list_words : words, sizeof **arrays);
        if (!arrays[i]) return NULL;
    }
    return arrays;
}

bool vpps_check_arrays(vpps_checker *c) {
    for (uint32_t i = 0; i < c->header->n_blocks; i++) {
        vpps_checked_block *b = &c->blocks[i];
        const vpps_compiled_cell *cell = b->cell->c;
        if (!b->block->n) continue;
        b->sources = take_arrays(c, cell->n_inputs, b->block->n, cell->input_is_list, b->block->members);
        b->rows = take_arrays(c, cell->n_lookups, b->block->n, NULL, 0);
        if (!b->sources || !b->rows) return false;
        if (cell->list_inputs && (b->list[0] || b->list[b->block->n] != b->block->members))
            return refuse(c, b, 0, "its list does not begin, or not end, where the block says");
        for (uint32_t p = 0; p < b->block->n; p++) {
            const vpps_record_view view = vpps_check_view(c->g, b->vertices[p]);
            if (!check_inputs(c, b, p, &view) || !check_lookups(c, b, p, &view) || !check_words(c, b, p, &view))
                return false;
        }
    }
    return true;
}

/* ---------------------------------------------------------------- tables */

static bool check_table(vpps_checker *c, uint32_t number, const vpps_table *t) {
    const vpps_parameter_data *table = t->param < c->g->model->n_params ? &c->g->model->params[t->param] : NULL;
    if (!table || table->kind != VPPS_LOOKUP || !c->due_entries[t->param])
        return VPPS_REFUSE(c, "table %u: parameter %u gets no gradients of entries", number, t->param);
    for (uint32_t i = 0; i < number; i++)
        if (vpps_table_at(c->script, i)->param == t->param) return VPPS_REFUSE(c, "table %u is there twice", number);
    if (t->group != UINT32_MAX) return VPPS_REFUSE(c, "table %u is of group %u; expected all", number, t->group);
    const uint32_t *rows = vpps_check_words(c, t->rows, 2 * (uint64_t)t->n + 1, "a table's entries"),
                   *starts = rows + t->n;
    if (!rows || !vpps_check_words(c, t->rows + 2 * (uint64_t)t->n + 1, starts[t->n], "a table's contributions"))
        return false;
    uint32_t *due = c->due_entries[t->param];
    uint8_t *seen = vpps_check_zeros(c, table->count, 1);
    uint32_t n = 0;
    if (!seen) return false;
    for (uint32_t i = 0; i < t->n; i++) {
        if (rows[i] >= table->count || seen[rows[i]] || !due[rows[i]])
            return VPPS_REFUSE(c, "table %u: entry %u is there twice, or gets no gradient", number, rows[i]);
        seen[rows[i]] = 1;
        if (starts[i] > starts[i + 1] || starts[i + 1] > starts[t->n] || starts[i + 1] - starts[i] != due[rows[i]])
            return VPPS_REFUSE(c, "table %u, entry %u: its gradient is the sum of %u contributions; expected %u",
                               number, rows[i], starts[i + 1] - starts[i], due[rows[i]]);
    }
    for (uint32_t row = 0; row < table->count; row++) n += due[row] != 0;
    if (n != t->n) return VPPS_REFUSE(c, "table %u: %u entries; %u get gradients", number, t->n, n);
    const vpps_tensor gradients = {.kind = VPPS_TENSOR_ENTRY,
                                   .offset = t->gradients,
                                   .stride = table->rows * table->cols,
                                   .words = table->rows * table->cols,
                                   .items = t->n,
                                   .index = number};
    return (c->table_tensors[number] = vpps_check_add_tensor(c, gradients)) != VPPS_NONE;
}

bool vpps_check_tables(vpps_checker *c) {
    const uint32_t n = c->header->n_tables;
    uint32_t due = 0;
    if (!vpps_check_words(c, c->header->tables, (uint64_t)n * (sizeof(vpps_table) / 4), "the tables")) return false;
    if (n && !c->training) return VPPS_REFUSE(c, "inference has tables with gradients");
    c->table_tensors = vpps_check_zeros(c, n, sizeof *c->table_tensors);
    if (!c->table_tensors) return false;
    for (uint32_t i = 0; i < n; i++)
        if (!check_table(c, i, vpps_table_at(c->script, i))) return false;
    for (uint32_t p = 0; c->training && p < c->g->model->n_params; p++) due += c->due_entries[p] != NULL;
    return due == n || VPPS_REFUSE(c, "%u tables; %u get gradients", n, due);
}
