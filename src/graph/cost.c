/* cost.c - the least cost of one training step on a graph: operations and bytes, counted op by op, inside cells too.
 *
 * vpps.h states the convention at vpps_cost. Of backward's products, only those count whose result is needed: the gradient of a value that
 * depends on a trained parameter, and the gradient of a trained matrix. */
#include "graph/graph.h"

typedef struct count {
    const vpps_graph *g;
    uint8_t *gradient; /* for each node: whether it depends on a trained parameter */
    /* for each value inside the vertex (applied cell) that is counted: a flag: does it depend on a trained parameter?
     * First the inputs, then the ops' results; a list input has a value for each node (any number) that it reads. */
    uint8_t *inside;
    size_t *at; /* for each input, then each op, of the cell: index in `inside` of its first value's flag */
    /* for each operand of the op that is being counted: whether the operand, or any member of a list, depends on a trained parameter */
    uint8_t *operands;
    uint8_t *used; /* for each row of a lookup table, and each other parameter: whether its bytes were counted */
    size_t *first; /* for each parameter: index in `used` of its first entry's flag */
    vpps_cost cost;
} count;

typedef struct op_view {
    const vpps_signature *s;
    const vpps_param *matrices; /* the matrices of an affine op */
    uint32_t entry;             /* the entry that a lookup reads */
    /* n: number of operands; members: number of values, list members included, that the op reduces to one */
    uint32_t n, members;
    uint32_t rows, cols; /* shape of the first operand */
} op_view;

/* Counts an entry of a parameter at its first use: it is read once and, if trained, updated once. */
static void use_parameter(count *c, vpps_param param, uint32_t entry) {
    if (param == VPPS_NO_PARAM) return;
    const vpps_parameter_data *p = &c->g->model->params[param];
    uint8_t *used = &c->used[c->first[param] + entry];
    if (*used) return;
    *used = 1;
    const uint64_t elems = (uint64_t)p->rows * p->cols;
    c->cost.parameter_bytes += elems * (p->frozen ? 4 : 8);
    if (!p->frozen) c->cost.other_flops += 2 * elems;
}

static bool trained(const count *c, vpps_param param) {
    return param != VPPS_NO_PARAM && !c->g->model->params[param].frozen;
}

/* Counts the flops of a product, and equally many for the gradient of each factor that has a gradient. */
static void count_product(count *c, uint64_t multiply_adds, bool left_gradient, bool right_gradient) {
    c->cost.product_flops += 2 * multiply_adds * (1u + left_gradient + right_gradient);
}

static void count_affine(count *c, const op_view *op, bool *gradient) {
    const vpps_signature *s = op->s;
    const uint64_t words = vpps_words(s);
    for (uint32_t i = 0; i < s->n_matrices; i++) {
        const vpps_param matrix = op->matrices[i];
        count_product(c, words * c->g->model->params[matrix].cols, trained(c, matrix), c->operands[i]);
        use_parameter(c, matrix, 0);
        *gradient |= trained(c, matrix);
    }
    if (s->param == VPPS_NO_PARAM) return;
    use_parameter(c, s->param, 0);
    c->cost.other_flops += words * (1u + trained(c, s->param));
    *gradient |= trained(c, s->param);
}

static void count_other(count *c, const op_view *op, bool gradient) {
    const vpps_op_row *row = &vpps_ops[op->s->op];
    uint64_t elems = row->per == VPPS_PER_ARGUMENT ? (uint64_t)op->rows * op->cols : vpps_words(op->s);
    if (row->per == VPPS_PER_MEMBER) elems *= op->members;
    c->cost.other_flops += elems * (row->flops + (gradient ? row->backward_flops : 0u));
}

/* Counts an op, and returns whether its result depends on a trained parameter. */
static bool count_op(count *c, const op_view *op) {
    const vpps_signature *s = op->s;
    bool gradient = s->op == VPPS_OP_MATRIX && trained(c, s->param);
    for (uint32_t k = 0; k < op->n; k++) gradient |= c->operands[k];
    if (s->op == VPPS_OP_MATRIX) use_parameter(c, s->param, 0);
    const bool kept = s->op == VPPS_OP_LOOKUP && s->param == VPPS_NO_PARAM;
    /* a LOOKUP or PARAMETER node copies nothing: it stands for the parameter */
    if ((s->op == VPPS_OP_LOOKUP && !kept) || s->op == VPPS_OP_PARAMETER) {
        use_parameter(c, s->param, op->entry);
        return trained(c, s->param);
    }
    if (s->op == VPPS_OP_AFFINE) {
        count_affine(c, op, &gradient);
    } else if (s->op == VPPS_OP_MATMUL) {
        count_product(c, (uint64_t)vpps_words(s) * op->cols, c->operands[0], c->operands[1]);
    } else {
        count_other(c, op, gradient);
    }
    c->cost.value_bytes += (uint64_t)vpps_words(s) * (gradient ? 16 : 8);
    return gradient;
}

static bool count_node(count *c, uint32_t r) {
    const vpps_graph *g = c->g;
    const vpps_op_node *node = &g->record_nodes[g->records[r].at];
    const vpps_signature *s = &g->signatures[node->signature];
    const vpps_node *args = g->words + node->args;
    if (!VPPS_RESERVE(c->operands, node->n_args + 1u) || !c->operands) return false;
    for (uint32_t k = 0; k < node->n_args; k++) c->operands[k] = c->gradient[args[k]];
    const vpps_signature *first = node->n_args ? vpps_plain_signature(g, args[0]) : s;
    const op_view op = {.s = s,
                        .matrices = g->matrices + s->first_matrix,
                        .entry = node->imm,
                        .n = node->n_args,
                        .members = node->n_args - vpps_weighs(s->op),
                        .rows = first->rows,
                        .cols = first->cols};
    c->gradient[g->records[r].first] = count_op(c, &op);
    return true;
}

typedef struct vertex_view {
    const vpps_cell_data *cell;
    const uint32_t *members; /* for each list input (of any number of nodes): how many nodes it reads at this vertex */
} vertex_view;

static uint32_t axis_of(const vpps_cell_data *c, uint32_t a) {
    return a & VPPS_CELL_INPUT ? c->inputs[a & ~VPPS_CELL_INPUT].axis : c->axis[a];
}

/* Sets c->at, the positions of a vertex's values in the array c->inside, and sets the inputs' flags there: whether an input depends on a
 * trained parameter. False: out of memory. */
static bool open_vertex(count *c, const vertex_view *v) {
    const vpps_cell_data *cell = v->cell;
    const uint32_t n = cell->n_inputs + cell->n_nodes;
    const vpps_node *own = vpps_own_nodes(cell, v->members), *listed = vpps_listed_nodes(c->g, cell, v->members);
    size_t at = 0;
    if (!VPPS_RESERVE(c->at, n + 1u) || !c->at) return false;
    for (uint32_t i = 0; i < n; i++) {
        c->at[i] = at;
        at += vpps_members(v->members, axis_of(cell, i < cell->n_inputs ? VPPS_CELL_INPUT | i : i - cell->n_inputs));
    }
    if (!VPPS_RESERVE(c->inside, at + 1)) return false;
    for (uint32_t i = 0; i < cell->n_inputs; i++) {
        const uint32_t axis = cell->inputs[i].axis;
        for (uint32_t m = 0; m < vpps_members(v->members, axis); m++)
            c->inside[c->at[i] + m] = c->gradient[*(axis ? listed++ : own++)];
    }
    return true;
}

/* Returns argument a's flags in c->inside (whether it depends on a trained parameter): one, or one for each member of a list. */
static const uint8_t *values_of(const count *c, const vpps_cell_data *cell, uint32_t a) {
    return c->inside + c->at[a & VPPS_CELL_INPUT ? a & ~VPPS_CELL_INPUT : cell->n_inputs + a];
}

/* Returns whether op t of a cell runs for each list member and reads from argument a only the same member's value. */
static bool reads_own(const vpps_cell_data *cell, uint32_t t, uint32_t a) {
    return axis_of(cell, a) && cell->axis[t] && !cell->over_list[t];
}

/* Counts op t of a vertex, once for each node of a list if it runs over a list. False: out of memory. */
static bool count_inside(count *c, const vertex_view *v, uint32_t t) {
    const vpps_cell_data *cell = v->cell;
    const vpps_op_node *node = &cell->nodes[t];
    const vpps_signature *s = &cell->signatures[node->signature];
    const uint32_t *args = cell->args + node->args;
    op_view op = {.s = s,
                  .matrices = cell->matrices + s->first_matrix,
                  .entry = cell->imm_pulled[t] ? vpps_indices_of(cell, v->members)[node->imm] : node->imm,
                  .n = node->n_args,
                  .rows = s->rows,
                  .cols = s->cols};
    if (!VPPS_RESERVE(c->operands, op.n + 1u) || !c->operands) return false;
    for (uint32_t i = 0; i < op.n; i++) {
        const uint32_t n = reads_own(cell, t, args[i]) ? 1 : vpps_members(v->members, axis_of(cell, args[i]));
        c->operands[i] = memchr(values_of(c, cell, args[i]), 1, n) != NULL;
        op.members = vpps_weighs(s->op) && i == 0 ? 0 : op.members + n;
        if (i) continue;
        const vpps_signature *first =
            args[0] & VPPS_CELL_INPUT ? NULL : &cell->signatures[cell->nodes[args[0]].signature];
        op.rows = first ? first->rows : cell->inputs[args[0] & ~VPPS_CELL_INPUT].rows;
        op.cols = first ? first->cols : cell->inputs[args[0] & ~VPPS_CELL_INPUT].cols;
    }
    for (uint32_t m = 0; m < vpps_members(v->members, cell->axis[t]); m++) {
        for (uint32_t i = 0; i < op.n; i++)
            if (reads_own(cell, t, args[i])) c->operands[i] = values_of(c, cell, args[i])[m];
        c->inside[c->at[cell->n_inputs + t] + m] = count_op(c, &op);
    }
    return true;
}

static bool count_vertex(count *c, uint32_t r) {
    const vpps_record *record = &c->g->records[r];
    const vpps_cell_data *cell = vpps_cell_of(c->g, record->cell);
    const vertex_view v = {.cell = cell, .members = c->g->words + record->at};
    if (!open_vertex(c, &v)) return false;
    for (uint32_t t = 0; t < cell->n_nodes; t++)
        if (!count_inside(c, &v, t)) return false;
    for (uint32_t k = 0; k < cell->n_outputs; k++)
        c->gradient[record->first + k] = c->inside[c->at[cell->n_inputs + cell->outputs[k]]];
    return true;
}

static bool open_count(count *c, const vpps_graph *g) {
    const vpps_model *model = g->model;
    size_t entries = 0;
    *c = (count){.g = g, .first = malloc((model->n_params + 1) * sizeof *c->first)};
    if (!c->first) return false;
    for (size_t p = 0; p < model->n_params; p++) {
        c->first[p] = entries;
        entries += model->params[p].count;
    }
    c->used = calloc(entries + 1, 1);
    c->gradient = malloc((size_t)g->n_nodes + 1);
    return c->used && c->gradient;
}

static vpps_status give(const vpps_cost *cost, vpps_cost *out) {
    return vpps_give_struct(out, cost, sizeof *cost, sizeof *cost, "vpps_cost");
}

vpps_status vpps_graph_cost(vpps_graph *g, vpps_cost *out) {
    VPPS_NEED(g, out);
    VPPS_TRY(give(&(vpps_cost){0}, out));
    VPPS_TRY(vpps_graph_status(g));
    if (g->recording) return vpps_fail(VPPS_STATE, "graph: the cell %s is still being recorded", g->recording->name);
    count c;
    bool ok = open_count(&c, g);
    for (uint32_t r = 0; r < g->n_records && ok; r++)
        ok = g->records[r].cell == VPPS_NODE_RECORD ? count_node(&c, r) : count_vertex(&c, r);
    c.cost.nodes = g->size;
    VPPS_FREE_ARRAYS(c.inside, c.at, c.operands);
    VPPS_FREE(c.gradient, c.used, c.first);
    return ok ? give(&c.cost, out) : vpps_fail(VPPS_MEMORY, "graph: no memory to count %u nodes", g->size);
}
