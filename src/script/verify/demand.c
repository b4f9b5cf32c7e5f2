/* demand.c - finds what the caller's request (outputs, gradients, a training step) needs of the graph: vertices, terms
 * of the loss, random numbers for dropout, outputs with gradients, and how many terms each gradient sums up. */
#include "script/verify/checker.h"

#include <inttypes.h>

/* ---------------------------------------------------------------- the graph's records */

vpps_record_view vpps_check_view(const vpps_graph *g, uint32_t r) {
    const vpps_record *record = &g->records[r];
    vpps_record_view view = {0};
    if (record->cell == VPPS_NODE_RECORD) {
        view.op = &g->record_nodes[record->at];
        view.signature = &g->signatures[view.op->signature];
        view.args = g->words + view.op->args;
        view.n_args = view.op->n_args;
        view.members = &view.op->n_args;
        return view;
    }
    view.cell = vpps_cell_of(g, record->cell);
    view.members = g->words + record->at;
    view.args = vpps_own_nodes(view.cell, view.members);
    view.n_args = view.cell->n_own;
    view.listed = vpps_listed_nodes(g, view.cell, view.members);
    view.n_listed = vpps_list_nodes(view.cell, view.members);
    view.indices = vpps_indices_of(view.cell, view.members);
    return view;
}

bool vpps_check_resolve(const vpps_graph *g, vpps_node x, uint32_t *record, uint32_t *node) {
    if (x >= g->n_nodes) return false;
    const uint32_t r = *record = g->node_record[x];
    const vpps_record *of = &g->records[r];
    if (r >= g->n_records || of->first > x || (r + 1 < g->n_records && g->records[r + 1].first <= x)) return false;
    *node = 0;
    if (of->cell == VPPS_NODE_RECORD) return of->first == x;
    const vpps_cell_data *cell = vpps_cell_of(g, of->cell);
    if (x - of->first >= cell->n_outputs) return false;
    *node = cell->outputs[x - of->first];
    return *node < cell->n_nodes;
}

const vpps_signature *vpps_check_signature(const vpps_graph *g, vpps_node x) {
    uint32_t record, node;
    static const vpps_signature none;
    if (!vpps_check_resolve(g, x, &record, &node)) return &none;
    const vpps_record_view view = vpps_check_view(g, record);
    return view.cell ? &view.cell->signatures[view.cell->nodes[node].signature] : view.signature;
}

static bool same_op(const vpps_graph *g, const vpps_record_view *a, const vpps_record_view *b) {
    const vpps_signature *s = a->signature, *t = b->signature;
    if (s->op != t->op || s->rows != t->rows || s->cols != t->cols || s->param != t->param ||
        vpps_float_bits(s->p) != vpps_float_bits(t->p) || s->n_matrices != t->n_matrices ||
        (s->op == VPPS_OP_SLICE && a->op->imm != b->op->imm))
        return false;
    return !s->n_matrices ||
           !memcmp(g->matrices + s->first_matrix, g->matrices + t->first_matrix, s->n_matrices * sizeof *g->matrices);
}

bool vpps_check_alike(const vpps_graph *g, uint32_t a, uint32_t b) {
    const vpps_record_view x = vpps_check_view(g, a), y = vpps_check_view(g, b);
    if (x.cell || y.cell) return x.cell == y.cell;
    return same_op(g, &x, &y); /* numbers and shapes of inputs are compared in records.c */
}

/* ---------------------------------------------------------------- dropout */

static uint64_t dropout_elems(const vpps_record_view *view) {
    if (!view->cell) return view->signature->op == VPPS_OP_DROPOUT ? vpps_words(view->signature) : 0;
    uint64_t n = 0;
    for (uint32_t t = 0; t < view->cell->n_nodes; t++) {
        const vpps_signature *s = &view->cell->signatures[view->cell->nodes[t].signature];
        if (s->op == VPPS_OP_DROPOUT) n += (uint64_t)vpps_words(s) * vpps_members(view->members, view->cell->axis[t]);
    }
    return n;
}

/* ---------------------------------------------------------------- the loss */

/* For a sum, difference, average or scaling: gives the factors of its first argument and of all other arguments. False: another op. */
static bool factors_of(const vpps_record_view *view, float *first, float *others) {
    *first = *others = 1;
    if (view->cell) return false;
    switch (view->signature->op) {
    case VPPS_OP_ADD:
    case VPPS_OP_SUM: return true;
    case VPPS_OP_SUB: *others = -1; return true;
    case VPPS_OP_NEGATE: *first = -1; return true;
    case VPPS_OP_AVERAGE: *first = *others = 1.0f / (float)view->n_args; return true;
    case VPPS_OP_SCALE: *first = vpps_bits_float(view->op->imm); return true;
    default: return false;
    }
}

/* Marks the vertices (records of the graph) whose gradients the request asks for. */
static bool find_whole(vpps_checker *c) {
    uint32_t record, node;
    for (uint32_t i = 0; i < c->request->n_gradient_nodes; i++) {
        if (!vpps_check_resolve(c->g, c->request->gradient_nodes[i], &record, &node))
            return VPPS_REFUSE(c, "node %u is no output of a vertex", c->request->gradient_nodes[i]);
        c->whole[record] = true;
    }
    return true;
}

/* If the caller gives gradients of outputs, between forward and backward: makes these outputs the terms of the loss. */
static bool find_given(vpps_checker *c) {
    const uint32_t n = c->request->n_given;
    if (n > c->request->n_outputs) return VPPS_REFUSE(c, "%u given gradients for %u outputs", n, c->request->n_outputs);
    if (!VPPS_RESERVE(c->terms, n + 1u)) return c->status = VPPS_MEMORY, false;
    for (; c->n_terms < n; c->n_terms++)
        c->terms[c->n_terms] = (vpps_term_of_loss){.node = c->request->outputs[c->n_terms], .given = c->n_terms};
    return true;
}

/* Lists the terms of the loss. A sum inside the loss is replaced by its summands, unless its gradient is requested. A term's factor is the
 * product of the factors on the way from the loss to the term, in this order. */
static bool find_terms(vpps_checker *c) {
    vpps_term_of_loss *stack = NULL;
    size_t depth = 0;
    bool ok = VPPS_RESERVE(stack, 1);
    if (ok) stack[depth++] = (vpps_term_of_loss){.node = c->request->loss, .factor = 1};
    while (ok && depth) {
        const vpps_term_of_loss top = stack[--depth];
        uint32_t record, node;
        float first, others;
        if (!vpps_check_resolve(c->g, top.node, &record, &node)) {
            VPPS_FREE_ARRAYS(stack);
            return VPPS_REFUSE(c, "the loss depends on node %u, which does not exist", top.node);
        }
        const vpps_record_view view = vpps_check_view(c->g, record);
        if (!c->whole[record] && factors_of(&view, &first, &others)) {
            ok = VPPS_RESERVE(stack, depth + view.n_args);
            for (uint32_t i = 0; ok && i < view.n_args; i++)
                stack[depth++] = (vpps_term_of_loss){.node = view.args[i], .factor = top.factor * (i ? others : first)};
        } else if (2 * (size_t)c->n_terms >= c->words) { /* a term of the loss takes two words of the batch's program */
            VPPS_FREE_ARRAYS(stack);
            return VPPS_REFUSE(c, "the loss has more terms than the script has words");
        } else {
            ok = VPPS_RESERVE(c->terms, c->n_terms + 1u);
            if (ok) c->terms[c->n_terms++] = top;
        }
    }
    VPPS_FREE_ARRAYS(stack);
    if (!ok) c->status = VPPS_MEMORY;
    return ok;
}

/* ---------------------------------------------------------------- needed records */

static bool mark(vpps_checker *c, vpps_node x) {
    uint32_t record, node;
    if (!vpps_check_resolve(c->g, x, &record, &node)) return VPPS_REFUSE(c, "node %u is no output of a vertex", x);
    c->needed[record] = true;
    return true;
}

bool vpps_check_demands(vpps_checker *c) {
    const vpps_graph *g = c->g;
    c->n_records = (uint32_t)g->n_records;
    c->needed = vpps_check_zeros(c, c->n_records, 1);
    c->whole = vpps_check_zeros(c, c->n_records, 1);
    c->dropout = vpps_check_zeros(c, c->n_records, sizeof *c->dropout);
    if (!c->needed || !c->whole || !c->dropout) return false;
    uint64_t elems = 0;
    for (uint32_t r = 0; r < c->n_records; r++) {
        const vpps_record_view view = vpps_check_view(g, r);
        c->dropout[r] = (uint32_t)elems;
        elems += dropout_elems(&view);
    }
    if (elems > UINT32_MAX)
        return VPPS_REFUSE(c, "the graph has %" PRIu64 " dropout elements; expected less than 2^32", elems);
    if (c->training && (!find_whole(c) || !(c->request->halves ? find_given(c) : find_terms(c)))) return false;
    for (uint32_t i = 0; i < c->n_terms; i++)
        if (!mark(c, c->terms[i].node)) return false;
    for (uint32_t i = 0; i < c->request->n_outputs; i++)
        if (!mark(c, c->request->outputs[i])) return false;
    for (uint32_t r = c->n_records; r-- > 0;) {
        const vpps_record_view view = vpps_check_view(g, r);
        for (uint32_t i = 0; c->needed[r] && i < view.n_args; i++)
            if (!mark(c, view.args[i])) return false;
        for (uint64_t i = 0; c->needed[r] && i < view.n_listed; i++)
            if (!mark(c, view.listed[i])) return false;
    }
    return true;
}

/* ---------------------------------------------------------------- gradients */

/* Calls `visit` for each output that vertex p reads through input i: one output, or one for each node of a list. */
static bool each_source(vpps_checker *c, const vpps_checked_block *b, uint32_t p, uint32_t i,
                        bool (*visit)(vpps_checker *, const vpps_checked_block *, uint32_t, uint32_t, uint32_t)) {
    const uint32_t axis = b->cell->c->input_axis[i], *starts = b->view.lists[axis];
    const uint32_t first = axis ? starts[p] : p, end = axis ? starts[p + 1] : p + 1;
    for (uint32_t item = first; item < end; item++)
        if (!visit(c, b, p, i, b->sources[i][item])) return false;
    return true;
}

static bool gather_trainable(vpps_checker *c, const vpps_checked_block *b, uint32_t p, uint32_t i, uint32_t source) {
    if (!c->trainable[source]) return true;
    for (uint32_t k = 0; k < b->cell->c->n_outputs; k++)
        if (b->cell->output_reads[k] >> i & 1) c->trainable[b->first_output + k * b->block->n + p] = true;
    return true;
}

uint64_t vpps_check_live(const vpps_checker *c, const vpps_checked_block *b, uint32_t p) {
    uint64_t live = 0;
    for (uint32_t k = 0; k < b->cell->c->n_outputs; k++)
        live |= (uint64_t)c->live[b->first_output + k * b->block->n + p] << k;
    return live;
}

static bool has_gradient(const vpps_checked_block *b, uint32_t k) { return b->cell->c->needs.gradient_out >> k & 1; }

/* Vertex p reads output `source` through input i. If the loss depends on `source` through p, marks `source` as live and
 * counts the terms that p adds to its gradient. False: trained parameters need the gradient, but it is not computed. */
static bool spread_live(vpps_checker *c, const vpps_checked_block *b, uint32_t p, uint32_t i, uint32_t source) {
    const vpps_compiled_cell *cell = b->cell->c;
    const uint64_t live = vpps_check_live(c, b, p);
    uint64_t through = 0;
    for (uint32_t k = 0; k < cell->n_outputs; k++) through |= live >> k & b->cell->output_reads[k] >> i & 1;
    uint32_t k, position;
    const vpps_checked_block *from = &c->blocks[vpps_check_block_of(c, source, &k, &position)];
    if (c->trainable[source] && through && (!(cell->needs.gradient_in >> i & 1) || !has_gradient(from, k)))
        return VPPS_REFUSE(c, "cell %s: input %u depends on trained parameters, but gets no gradient", cell->name, i);
    if (!(cell->needs.gradient_in >> i & 1) || !has_gradient(from, k) || !(b->cell->into_input[i] & live)) return true;
    c->live[source] = true;
    for (uint32_t j = 0; j < cell->n_contributions; j++) {
        const vpps_cell_contribution *to = &cell->contributions[j];
        if (!to->lookup && to->index == i) c->due[source] += vpps_shares_of(&cell->values[to->value]);
    }
    return true;
}

static bool spread_entries(vpps_checker *c, const vpps_checked_block *b, uint32_t p) {
    const vpps_compiled_cell *cell = b->cell->c;
    const uint64_t live = vpps_check_live(c, b, p);
    for (uint32_t j = 0; j < cell->n_contributions; j++) {
        const vpps_cell_contribution *to = &cell->contributions[j];
        if (!to->lookup || !(b->cell->into_entry[to->index] & live)) continue;
        const vpps_param table = cell->lookups[to->index].table;
        if (!c->due_entries[table])
            c->due_entries[table] = vpps_check_zeros(c, c->g->model->params[table].count, sizeof **c->due_entries);
        if (!c->due_entries[table]) return false;
        c->due_entries[table][b->rows[to->index][p]] += vpps_shares_of(&cell->values[to->value]);
    }
    return true;
}

static bool each_vertex(vpps_checker *c, bool forwards,
                        bool (*visit)(vpps_checker *, const vpps_checked_block *, uint32_t)) {
    for (uint32_t i = 0; i < c->n_records; i++) {
        const uint32_t r = forwards ? i : c->n_records - 1 - i;
        if (c->needed[r] && !visit(c, &c->blocks[c->block_of[r]], c->position_of[r])) return false;
    }
    return true;
}

static bool find_trainable(vpps_checker *c, const vpps_checked_block *b, uint32_t p) {
    const vpps_compiled_cell *cell = b->cell->c;
    uint64_t asked = 0;
    for (uint32_t k = 0; k < cell->n_outputs; k++)
        asked |= (uint64_t)c->asked[b->first_output + k * b->block->n + p] << k;
    for (uint32_t k = 0; k < cell->n_outputs; k++)
        c->trainable[b->first_output + k * b->block->n + p] =
            b->cell->output_trained[k] || (b->cell->output_made_of[k] & asked);
    for (uint32_t i = 0; i < cell->n_inputs; i++)
        if (!each_source(c, b, p, i, gather_trainable)) return false;
    return true;
}

static bool find_live(vpps_checker *c, const vpps_checked_block *b, uint32_t p) {
    for (uint32_t i = 0; i < b->cell->c->n_inputs; i++)
        if (!each_source(c, b, p, i, spread_live)) return false;
    return spread_entries(c, b, p);
}

static bool place_terms(vpps_checker *c) {
    for (uint32_t i = 0; i < c->n_terms; i++) {
        c->terms[i].output = vpps_check_output(c, c->terms[i].node);
        if (c->terms[i].output == VPPS_NONE) return false;
    }
    if (c->n_terms) qsort(c->terms, c->n_terms, sizeof *c->terms, vpps_by_word);
    for (uint32_t i = 0; i < c->n_terms; i++) c->first_term[c->terms[i].output + 1]++;
    for (uint32_t o = 0; o < c->n_outputs; o++) c->first_term[o + 1] += c->first_term[o];
    return true;
}

static bool find_asked(vpps_checker *c) {
    for (uint32_t i = 0; i < c->request->n_gradient_nodes; i++) {
        uint32_t record, node, k, position;
        const vpps_node x = c->request->gradient_nodes[i];
        if (!vpps_check_resolve(c->g, x, &record, &node) || !c->needed[record]) continue;
        const uint32_t output = vpps_check_output(c, x);
        if (output == VPPS_NONE) return false;
        const vpps_checked_block *b = &c->blocks[vpps_check_block_of(c, output, &k, &position)];
        if (!(b->cell->c->needs.asked_gradients >> k & 1))
            return VPPS_REFUSE(c, "cell %s: compiled without output %u's gradient", b->cell->c->name, k);
        c->asked[output] = true;
    }
    return true;
}

bool vpps_check_gradients(vpps_checker *c) {
    const size_t n = c->n_outputs;
    c->asked = vpps_check_zeros(c, n, 1);
    c->trainable = vpps_check_zeros(c, n, 1);
    c->live = vpps_check_zeros(c, n, 1);
    c->due = vpps_check_zeros(c, n, sizeof *c->due);
    c->first_term = vpps_check_zeros(c, n + 1, sizeof *c->first_term);
    c->due_entries = vpps_check_zeros(c, c->g->model->n_params, sizeof *c->due_entries);
    if (c->status != VPPS_OK || !place_terms(c)) return false;
    if (!find_asked(c) || !each_vertex(c, true, find_trainable)) return false;
    for (uint32_t i = 0; i < c->n_terms; i++) {
        uint32_t k, position;
        const uint32_t output = c->terms[i].output;
        const vpps_checked_block *b = &c->blocks[vpps_check_block_of(c, output, &k, &position)];
        if (!has_gradient(b, k)) {
            if (c->trainable[output])
                return VPPS_REFUSE(c, "cell %s: a term of the loss gets no gradient", b->cell->c->name);
            continue;
        }
        c->live[output] = true;
        c->due[output]++;
    }
    return each_vertex(c, false, find_live);
}
