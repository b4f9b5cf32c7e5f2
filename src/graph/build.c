/* build.c - the op calls: each checks its operands' shapes by the rule in its row of ops.def and makes one node. */
#include "graph/graph.h"

#include <inttypes.h>

/* ---------------------------------------------------------------- shape rules */

static bool equal(const vpps_signature *a, const vpps_signature *b) { return a->rows == b->rows && a->cols == b->cols; }

static vpps_node shape_error(vpps_graph *g, vpps_op op, uint32_t i, const vpps_signature *a, const char *expected) {
    return vpps_graph_fail(g, VPPS_SHAPE, "%s: argument %u is %u x %u; expected %s", vpps_ops[op].name, i, a->rows,
                           a->cols, expected);
}

static vpps_node unequal_error(vpps_graph *g, vpps_op op, uint32_t i, const vpps_signature *a,
                               const vpps_signature *first) {
    return vpps_graph_fail(g, VPPS_SHAPE, "%s: argument %u is %u x %u, argument %u is %u x %u; expected equal shapes",
                           vpps_ops[op].name, i, a->rows, a->cols, vpps_weighs(op), first->rows, first->cols);
}

/* Checks argument i by the op's shape rule. *s is the result's shape for the arguments up to i. False: the graph has failed. */
static bool apply_shape_rule(vpps_graph *g, vpps_signature *s, uint32_t n, uint32_t i, const vpps_signature *a,
                             vpps_signature *first) {
    vpps_op op = (vpps_op)s->op;
    if (i == 0) *first = *a;
    switch (vpps_ops[op].shape) {
    case VPPS_SHAPE_GIVEN: return true;
    case VPPS_SHAPE_EQUAL:
    case VPPS_SHAPE_SCALAR:
        if (!equal(a, first)) return unequal_error(g, op, i, a, first), false;
        if ((op == VPPS_OP_CROSS_ENTROPY || op == VPPS_OP_HINGE) && a->cols != 1)
            return shape_error(g, op, i, a, "a vector"), false;
        s->rows = vpps_ops[op].shape == VPPS_SHAPE_EQUAL ? a->rows : 1;
        s->cols = vpps_ops[op].shape == VPPS_SHAPE_EQUAL ? a->cols : 1;
        return true;
    case VPPS_SHAPE_PRODUCT:
        if (i == 0) {
            s->rows = a->rows;
        } else if (a->rows != first->cols) {
            return VPPS_GRAPH_REFUSE(g, VPPS_SHAPE, "%s: %u x %u times %u x %u; expected %u rows on the right",
                                     vpps_ops[op].name, first->rows, first->cols, a->rows, a->cols, first->cols);
        } else {
            s->cols = a->cols;
        }
        return true;
    case VPPS_SHAPE_SCALED:
        if (i == 1 && (a->rows != 1 || a->cols != 1)) return shape_error(g, op, i, a, "a scalar"), false;
        if (i == 0) s->rows = a->rows, s->cols = a->cols;
        return true;
    case VPPS_SHAPE_STACKED:
        if (a->cols != first->cols)
            return VPPS_GRAPH_REFUSE(g, VPPS_SHAPE,
                                     "%s: argument %u is %u x %u; expected %u columns, as argument 0 has",
                                     vpps_ops[op].name, i, a->rows, a->cols, first->cols);
        if (s->rows > UINT32_MAX - a->rows) return shape_error(g, op, i, a, "fewer rows in all"), false;
        s->rows += a->rows;
        s->cols = a->cols;
        return true;
    case VPPS_SHAPE_COLUMNS:
        s->rows = a->cols;
        s->cols = 1;
        return true;
    case VPPS_SHAPE_TURNED:
        s->rows = a->cols;
        s->cols = a->rows;
        return true;
    case VPPS_SHAPE_VECTOR:
    case VPPS_SHAPE_PAIR:
        if (a->cols != 1) return shape_error(g, op, i, a, "a vector"), false;
        s->rows = vpps_ops[op].shape == VPPS_SHAPE_PAIR ? 2 : a->rows;
        s->cols = 1;
        return true;
    case VPPS_SHAPE_WEIGHTED:
        if (i == 0) {
            if (a->cols == 1 && a->rows == n - 1) return true;
            return VPPS_GRAPH_REFUSE(g, VPPS_SHAPE, "%s: the weights are %u x %u; expected %u x 1, one for each node",
                                     vpps_ops[op].name, a->rows, a->cols, n - 1);
        }
        if (i == 1) {
            *first = *a;
            s->rows = a->rows;
            s->cols = a->cols;
        }
        if (!equal(a, first)) return unequal_error(g, op, i, a, first), false;
        return true;
    }
    return false;
}

static bool check_size(vpps_graph *g, const vpps_signature *s) {
    if ((uint64_t)s->rows * s->cols < VPPS_MANY_ELEMS) return true;
    return VPPS_GRAPH_REFUSE(g, VPPS_SHAPE, "%s: the result would be %u x %u; expected fewer than 2^22 elements",
                             vpps_ops[s->op].name, s->rows, s->cols);
}

/* Identifies an argument whose shape was checked. A sum of many losses mostly repeats one output of few cells, which is then checked only once. */
typedef struct seen_node {
    /* cell: number of the argument's cell, or VPPS_NODE_RECORD for an op outside cells. number: 1 + the cell's output number, or 1 + the
     * index of the op's signature (op and shape). */
    uint32_t cell, number;
} seen_node;

enum { SEEN_NODES = 4 };

/* Returns whether an argument like x (same cell and output) was checked already; else notes x, since the caller checks it next. */
static inline bool is_seen(const vpps_graph *g, vpps_node x, seen_node *seen) {
    if (g->recording || x >= g->n_nodes) return false;
    const vpps_record *r = &g->records[g->node_record[x]];
    const bool plain = r->cell == VPPS_NODE_RECORD;
    seen_node *s = &seen[r->cell % SEEN_NODES];
    const seen_node now = {r->cell, 1 + (plain ? g->record_nodes[r->at].signature : x - r->first)};
    if (s->cell == now.cell && s->number == now.number) return true;
    *s = now;
    return false;
}

static bool take_arguments(vpps_graph *g, vpps_signature *s, uint32_t n, const vpps_node *args) {
    const vpps_op_row *row = &vpps_ops[s->op];
    if (!g) return vpps_fail(VPPS_ARGUMENT, "%s: g is NULL", row->name), false;
    if (g->status != VPPS_OK) return false;
    if (n < row->min_args || n > row->max_args)
        return VPPS_GRAPH_REFUSE(g, VPPS_ARGUMENT, "%s: %u arguments; expected %s%u", row->name, n,
                                 n < row->min_args ? "at least " : "at most ",
                                 n < row->min_args ? row->min_args : row->max_args);
    if (n && !args) return vpps_graph_fail(g, VPPS_ARGUMENT, "%s: xs is NULL", row->name), false;
    vpps_signature first = {0};
    seen_node seen[SEEN_NODES] = {0};
    for (uint32_t i = 0; i < n; i++) {
        vpps_signature found;
        if (row->shape == VPPS_SHAPE_EQUAL && is_seen(g, args[i], seen)) continue;
        const vpps_signature *a = vpps_plain_signature(g, args[i]);
        if (!a && !vpps_node_signature(g, row->name, args[i], &found, NULL)) return false;
        if (!apply_shape_rule(g, s, n, i, a ? a : &found, &first)) return false;
    }
    return row->shape == VPPS_SHAPE_GIVEN || check_size(g, s);
}

static vpps_signature signature_of(vpps_op op) { return (vpps_signature){.op = (uint8_t)op, .param = VPPS_NO_PARAM}; }

/* Makes a node of an op with a parameter. The node has the shape of the parameter or, for a lookup table, of one entry. */
static vpps_node make_of(vpps_graph *g, vpps_op op, vpps_param param, uint32_t n, const vpps_node *args, uint32_t imm,
                         bool pulled) {
    const vpps_parameter_data *p = &g->model->params[param];
    vpps_signature s = {.op = (uint8_t)op, .param = param, .rows = p->rows, .cols = p->cols};
    return check_size(g, &s) ? vpps_make_node(g, &s, NULL, n, args, imm, pulled) : VPPS_NO_NODE;
}

vpps_node vpps_make_op(vpps_graph *g, vpps_op op, uint32_t n, const vpps_node *args, uint32_t imm, float p) {
    vpps_signature s = signature_of(op);
    s.p = p;
    if (!take_arguments(g, &s, n, args)) return VPPS_NO_NODE;
    return vpps_make_node(g, &s, NULL, n, args, imm, false);
}

/* ---------------------------------------------------------------- leaves */

static const vpps_parameter_data *find_any(vpps_graph *g, const char *what, vpps_param param) {
    if (g->status != VPPS_OK) return NULL;
    if (param < g->model->n_params) return &g->model->params[param];
    vpps_graph_fail(g, VPPS_ARGUMENT, "%s: parameter %u; the model has %zu", what, param, g->model->n_params);
    return NULL;
}

static const vpps_parameter_data *find_parameter(vpps_graph *g, const char *what, vpps_param param,
                                                 vpps_param_kind kind) {
    static const char *const kinds[] = {
        [VPPS_MATRIX] = "matrix", [VPPS_VECTOR] = "vector", [VPPS_LOOKUP] = "lookup table"};
    const vpps_parameter_data *p = find_any(g, what, param);
    if (!p || p->kind == kind) return p;
    vpps_graph_fail(g, VPPS_ARGUMENT, "%s: parameter %s is a %s; expected a %s", what, p->name, kinds[p->kind],
                    kinds[kind]);
    return NULL;
}

vpps_node vpps_input(vpps_graph *g, uint32_t rows, uint32_t cols, const float *data) {
    VPPS_NEED_OR(VPPS_NO_NODE, g);
    vpps_signature s = signature_of(VPPS_OP_INPUT);
    if (g->status != VPPS_OK) return VPPS_NO_NODE;
    uint64_t n = (uint64_t)rows * cols;
    if (!n || n >= VPPS_MANY_ELEMS || !data)
        return vpps_graph_fail(g, VPPS_ARGUMENT, "input: %u x %u%s; expected 1 to 2^22 - 1 elements and their values",
                               rows, cols, data ? "" : " without data");
    if (g->recording) return vpps_graph_fail(g, VPPS_STATE, "input: a cell takes data by vpps_pull, not by vpps_input");
    if (!vpps_graph_holds(g, g->n_data + n, "numbers of inputs")) return VPPS_NO_NODE;
    if (!VPPS_RESERVE(g->data, g->n_data + n)) { return vpps_graph_fail(g, VPPS_MEMORY, "input: out of memory"); }
    memcpy(g->data + g->n_data, data, n * sizeof *data);
    uint32_t at = (uint32_t)g->n_data;
    g->n_data += n;
    s.rows = rows;
    s.cols = cols;
    return vpps_make_node(g, &s, NULL, 0, NULL, at, false);
}

/* Checks that *index is below `limit`, or a result of vpps_pull_index: an integer that each vertex (use of the cell) is
 * given. Sets *pulled in the latter case, and *index to the integer's number; vpps_apply will check the integer. */
static bool check_index(vpps_graph *g, const char *what, uint32_t *index, uint32_t limit, bool *pulled) {
    *pulled = g->recording && vpps_is_pulled_index(g, *index, index);
    if (*pulled || *index < limit) return true;
    return VPPS_GRAPH_REFUSE(g, VPPS_ARGUMENT, "%s: index %u; expected below %u", what, *index, limit);
}

vpps_node vpps_lookup(vpps_graph *g, vpps_param table, uint32_t index) {
    VPPS_NEED_OR(VPPS_NO_NODE, g);
    const vpps_parameter_data *p = find_parameter(g, "lookup", table, VPPS_LOOKUP);
    bool pulled;
    if (!p || !check_index(g, "lookup", &index, p->count, &pulled)) return VPPS_NO_NODE;
    return make_of(g, VPPS_OP_LOOKUP, table, 0, NULL, index, pulled);
}

vpps_node vpps_parameter(vpps_graph *g, vpps_param parameter) {
    VPPS_NEED_OR(VPPS_NO_NODE, g);
    const vpps_parameter_data *p = find_any(g, "parameter", parameter);
    if (!p) return VPPS_NO_NODE;
    if (p->kind == VPPS_LOOKUP)
        return vpps_graph_fail(
            g, VPPS_ARGUMENT,
            "parameter: %s is a lookup table; expected a vector or a matrix, or vpps_lookup for one of its entries",
            p->name);
    return make_of(g, p->kind == VPPS_MATRIX ? VPPS_OP_MATRIX : VPPS_OP_PARAMETER, parameter, 0, NULL, 0, false);
}

vpps_node vpps_lookup_at(vpps_graph *g, vpps_param table, vpps_node index) {
    VPPS_NEED_OR(VPPS_NO_NODE, g);
    const vpps_parameter_data *p = find_parameter(g, "lookup_at", table, VPPS_LOOKUP);
    vpps_signature i;
    if (!p || !vpps_node_signature(g, "lookup_at", index, &i, NULL)) return VPPS_NO_NODE;
    if (i.rows != 1 || i.cols != 1) return shape_error(g, VPPS_OP_LOOKUP_AT, 0, &i, "a scalar");
    return make_of(g, VPPS_OP_LOOKUP_AT, table, 1, &index, 0, false);
}

vpps_node vpps_make_kept(vpps_graph *g, uint32_t rows, uint32_t cols, uint32_t offset, vpps_value value,
                         uint32_t handle) {
    vpps_signature s = signature_of(VPPS_OP_LOOKUP);
    if (g->recording) return vpps_graph_fail(g, VPPS_STATE, "kept: a cell takes values by vpps_pull, not by vpps_kept");
    if (!VPPS_RESERVE(g->kept, g->n_kept + 1)) { return vpps_graph_fail(g, VPPS_MEMORY, "kept: out of memory"); }
    s.rows = rows;
    s.cols = cols;
    const vpps_node x = vpps_make_node(g, &s, NULL, 0, NULL, offset, false);
    if (x != VPPS_NO_NODE) g->kept[g->n_kept++] = (vpps_kept_node){value, handle, x};
    return x;
}

/* ---------------------------------------------------------------- affine */

vpps_node vpps_affine(vpps_graph *g, vpps_param bias, uint32_t n, const vpps_param *matrices, const vpps_node *xs) {
    VPPS_NEED_OR(VPPS_NO_NODE, g);
    if (n && !matrices) return vpps_graph_fail(g, VPPS_ARGUMENT, "affine: matrices is NULL");
    vpps_signature s = signature_of(VPPS_OP_AFFINE);
    s.param = bias;
    s.n_matrices = n;
    if (!take_arguments(g, &s, n, xs)) return VPPS_NO_NODE;
    for (uint32_t i = 0; i < n; i++) {
        const vpps_parameter_data *m = find_parameter(g, "affine", matrices[i], VPPS_MATRIX);
        vpps_signature x;
        if (!m || !vpps_node_signature(g, "affine", xs[i], &x, NULL)) return VPPS_NO_NODE;
        if (i == 0) s.rows = m->rows, s.cols = x.cols;
        if (m->cols != x.rows)
            return vpps_graph_fail(g, VPPS_SHAPE,
                                   "affine: matrix %s is %u x %u, argument %u is %u x %u; expected %u rows", m->name,
                                   m->rows, m->cols, i, x.rows, x.cols, m->cols);
        if (m->rows != s.rows || x.cols != s.cols)
            return vpps_graph_fail(g, VPPS_SHAPE,
                                   "affine: product %u (%s) is %u x %u; expected %u x %u, as product 0 is", i, m->name,
                                   m->rows, x.cols, s.rows, s.cols);
    }
    if (bias != VPPS_NO_PARAM) {
        const vpps_parameter_data *b = find_parameter(g, "affine", bias, VPPS_VECTOR);
        if (!b) return VPPS_NO_NODE;
        if (b->rows != s.rows)
            return vpps_graph_fail(g, VPPS_SHAPE, "affine: bias %s has %u rows; expected %u, as the products have",
                                   b->name, b->rows, s.rows);
    }
    if (!check_size(g, &s)) return VPPS_NO_NODE;
    return vpps_make_node(g, &s, matrices, n, xs, 0, false);
}

vpps_node vpps_matvec(vpps_graph *g, vpps_param matrix, vpps_node x) {
    VPPS_NEED_OR(VPPS_NO_NODE, g);
    return vpps_affine(g, VPPS_NO_PARAM, 1, &matrix, &x);
}
vpps_node vpps_affine1(vpps_graph *g, vpps_param bias, vpps_param w, vpps_node x) {
    VPPS_NEED_OR(VPPS_NO_NODE, g);
    return vpps_affine(g, bias, 1, &w, &x);
}
vpps_node vpps_affine2(vpps_graph *g, vpps_param bias, vpps_param w0, vpps_node x0, vpps_param w1, vpps_node x1) {
    VPPS_NEED_OR(VPPS_NO_NODE, g);
    return vpps_affine(g, bias, 2, (vpps_param[]){w0, w1}, (vpps_node[]){x0, x1});
}

/* ---------------------------------------------------------------- ops that ops.def describes completely */

/* Checks that x is a list (input that reads any number of nodes) of the cell being recorded and, if `scalars`, that the list's members are scalars;
 * gives the list's signature and axis (1 + the list's number). */
static bool take_list(vpps_graph *g, const char *what, vpps_node x, bool scalars, vpps_signature *out, uint32_t *axis) {
    if (g->status != VPPS_OK) return false;
    if (!g->recording)
        return VPPS_GRAPH_REFUSE(g, VPPS_STATE, "%s: no cell is being recorded; only cells have lists", what);
    if (!vpps_node_signature(g, what, x, out, axis)) return false;
    if (*axis && (!scalars || (out->rows == 1 && out->cols == 1))) return true;
    return VPPS_GRAPH_REFUSE(g, VPPS_SHAPE, "%s: %s of %u x %u in cell %s; expected a list%s", what,
                             *axis ? "a list" : "a value", out->rows, out->cols, g->recording->name,
                             scalars ? " of scalars" : "");
}

/* Makes a node whose op takes all members of a list, which are scalars, as one vector. */
static vpps_node over_scalars(vpps_graph *g, vpps_op op, const char *call, vpps_node xs) {
    VPPS_NEED_OR(VPPS_NO_NODE, g);
    vpps_signature s = signature_of(op), x;
    uint32_t axis;
    if (!take_list(g, call, xs, true, &x, &axis)) return VPPS_NO_NODE;
    s.rows = s.cols = 1;
    return vpps_make_over_list(g, &s, 1, &xs, axis, 0);
}

#define UNARY(function, op)                                                                                            \
    vpps_node vpps_##function(vpps_graph *g, vpps_node x) { return vpps_make_op(g, VPPS_OP_##op, 1, &x, 0, 0); }
#define BINARY(function, op)                                                                                           \
    vpps_node vpps_##function(vpps_graph *g, vpps_node a, vpps_node b) {                                               \
        return vpps_make_op(g, VPPS_OP_##op, 2, (vpps_node[]){a, b}, 0, 0);                                            \
    }
#define NARY(function, op)                                                                                             \
    vpps_node vpps_##function(vpps_graph *g, uint32_t n, const vpps_node *xs) {                                        \
        return vpps_make_op(g, VPPS_OP_##op, n, xs, 0, 0);                                                             \
    }
#define LISTED(function, op)                                                                                           \
    UNARY(function, op)                                                                                                \
    vpps_node vpps_##function##_list(vpps_graph *g, vpps_node xs) {                                                    \
        return over_scalars(g, VPPS_OP_##op, #function "_list", xs);                                                   \
    }
#define OWN(function, op)

#define OP(id, name, call, ...) call(name, id)
#include "graph/ops.def"
#undef OP

/* ---------------------------------------------------------------- ops with a number of their own */

vpps_node vpps_constant(vpps_graph *g, uint32_t rows, uint32_t cols, float value) {
    VPPS_NEED_OR(VPPS_NO_NODE, g);
    vpps_signature s = signature_of(VPPS_OP_CONSTANT);
    if (g->status != VPPS_OK) return VPPS_NO_NODE;
    const uint64_t n = (uint64_t)rows * cols;
    if (!n || n >= VPPS_MANY_ELEMS)
        return vpps_graph_fail(g, VPPS_ARGUMENT, "constant: %u x %u; expected 1 to 2^22 - 1 elements", rows, cols);
    s.rows = rows;
    s.cols = cols;
    return vpps_make_node(g, &s, NULL, 0, NULL, vpps_float_bits(value), false);
}
vpps_node vpps_zeros(vpps_graph *g, uint32_t rows, uint32_t cols) {
    VPPS_NEED_OR(VPPS_NO_NODE, g);
    return vpps_constant(g, rows, cols, 0);
}
vpps_node vpps_ones(vpps_graph *g, uint32_t rows, uint32_t cols) {
    VPPS_NEED_OR(VPPS_NO_NODE, g);
    return vpps_constant(g, rows, cols, 1);
}

vpps_node vpps_scale(vpps_graph *g, vpps_node x, float factor) {
    VPPS_NEED_OR(VPPS_NO_NODE, g);
    return vpps_make_op(g, VPPS_OP_SCALE, 1, &x, vpps_float_bits(factor), 0);
}

vpps_node vpps_elu(vpps_graph *g, vpps_node x, float alpha) {
    VPPS_NEED_OR(VPPS_NO_NODE, g);
    if (!(alpha > 0)) return vpps_graph_fail(g, VPPS_ARGUMENT, "elu: alpha is %g; expected above 0", (double)alpha);
    return vpps_make_op(g, VPPS_OP_ELU, 1, &x, vpps_float_bits(alpha), 0);
}

vpps_node vpps_dropout(vpps_graph *g, vpps_node x, float p) {
    VPPS_NEED_OR(VPPS_NO_NODE, g);
    if (!(p >= 0 && p < 1))
        return vpps_graph_fail(g, VPPS_ARGUMENT, "dropout: p is %g; expected 0 <= p < 1", (double)p);
    return vpps_make_op(g, VPPS_OP_DROPOUT, 1, &x, 0, p);
}

vpps_node vpps_slice(vpps_graph *g, vpps_node x, uint32_t first, uint32_t rows) {
    VPPS_NEED_OR(VPPS_NO_NODE, g);
    vpps_signature s = signature_of(VPPS_OP_SLICE), a;
    if (g->status != VPPS_OK || !vpps_node_signature(g, "slice", x, &a, NULL)) return VPPS_NO_NODE;
    if (!rows || first >= a.rows || rows > a.rows - first)
        return vpps_graph_fail(g, VPPS_SHAPE, "slice: rows %u to %" PRIu64 " of a node that is %u x %u", first,
                               (uint64_t)first + rows, a.rows, a.cols);
    s.rows = rows;
    s.cols = a.cols;
    return vpps_make_node(g, &s, NULL, 1, &x, first, false);
}

vpps_node vpps_weighted_sum(vpps_graph *g, vpps_node weights, uint32_t n, const vpps_node *xs) {
    VPPS_NEED_OR(VPPS_NO_NODE, g);
    if (n && !xs) return vpps_graph_fail(g, VPPS_ARGUMENT, "weighted_sum: xs is NULL");
    vpps_signature s = signature_of(VPPS_OP_WEIGHTED_SUM);
    if (g->status != VPPS_OK) return VPPS_NO_NODE;
    if (!n || n >= VPPS_MANY) return vpps_graph_fail(g, VPPS_ARGUMENT, "weighted_sum: %u nodes", n);
    /* copies the weights and the values into one array, in the unused rest of the graph's array of words */
    if (!VPPS_RESERVE(g->words, g->n_words + 2 * ((size_t)n + 1)))
        return vpps_graph_fail(g, VPPS_MEMORY, "weighted_sum: out of memory");
    vpps_node *args = g->words + g->n_words + n + 1;
    args[0] = weights;
    memcpy(args + 1, xs, n * sizeof *xs);
    if (!take_arguments(g, &s, n + 1, args)) return VPPS_NO_NODE;
    return vpps_make_node(g, &s, NULL, n + 1, args, 0, false);
}

vpps_node vpps_weighted_sum_list(vpps_graph *g, vpps_node weights, vpps_node xs) {
    VPPS_NEED_OR(VPPS_NO_NODE, g);
    vpps_signature s = signature_of(VPPS_OP_WEIGHTED_SUM), w, x;
    uint32_t of_weights, of_xs;
    if (!take_list(g, "weighted_sum_list", weights, true, &w, &of_weights) ||
        !take_list(g, "weighted_sum_list", xs, false, &x, &of_xs))
        return VPPS_NO_NODE;
    if (of_weights != of_xs) return vpps_fail_lists(g, "weighted_sum_list", of_weights, of_xs);
    s.rows = x.rows;
    s.cols = x.cols;
    return vpps_make_over_list(g, &s, 2, (vpps_node[]){weights, xs}, of_xs, 0);
}

vpps_node vpps_concat_list(vpps_graph *g, vpps_node xs, uint32_t most) {
    VPPS_NEED_OR(VPPS_NO_NODE, g);
    vpps_signature s = signature_of(VPPS_OP_CONCAT), x;
    uint32_t axis;
    if (!take_list(g, "concat_list", xs, false, &x, &axis)) return VPPS_NO_NODE;
    const uint64_t elems = (uint64_t)most * x.rows * x.cols;
    if (!most || most >= VPPS_MANY || elems >= VPPS_MANY_ELEMS)
        return vpps_graph_fail(
            g, VPPS_ARGUMENT,
            "concat_list: at most %u members of %u x %u in cell %s; expected at least 1, and less than "
            "2^22 elements in all",
            most, x.rows, x.cols, g->recording->name);
    s.rows = most * x.rows;
    s.cols = x.cols;
    return vpps_make_over_list(g, &s, 1, &xs, axis, most);
}

static vpps_node make_classified(vpps_graph *g, vpps_op op, vpps_node x, uint32_t label, float margin) {
    vpps_signature s = signature_of(op), a;
    bool pulled;
    s.p = margin;
    if (!take_arguments(g, &s, 1, &x) || !vpps_node_signature(g, vpps_ops[op].name, x, &a, NULL) ||
        !check_index(g, vpps_ops[op].name, &label, a.rows, &pulled))
        return VPPS_NO_NODE;
    return vpps_make_node(g, &s, NULL, 1, &x, label, pulled);
}

vpps_node vpps_cross_entropy(vpps_graph *g, vpps_node x, uint32_t label) {
    VPPS_NEED_OR(VPPS_NO_NODE, g);
    return make_classified(g, VPPS_OP_CROSS_ENTROPY, x, label, 0);
}
static bool check_smoothing(vpps_graph *g, const char *call, float smoothing) {
    if (smoothing >= 0 && smoothing <= 1) return true;
    return VPPS_GRAPH_REFUSE(g, VPPS_ARGUMENT, "%s: the smoothing is %g; expected 0 to 1", call, (double)smoothing);
}
vpps_node vpps_smooth_label(vpps_graph *g, vpps_node weights, uint32_t label, float smoothing) {
    VPPS_NEED_OR(VPPS_NO_NODE, g);
    if (!check_smoothing(g, "smooth_label", smoothing)) return VPPS_NO_NODE;
    return make_classified(g, VPPS_OP_SMOOTH_LABEL, weights, label, smoothing);
}

/* Checks all arguments before vpps_cross_entropy_with makes its first node, so that a failing call makes none. */
static bool check_weighted(vpps_graph *g, vpps_node x, uint32_t label, vpps_node weights, uint32_t *rows) {
    static const char name[] = "cross_entropy_with";
    vpps_signature s, w;
    bool pulled;
    if (!vpps_node_signature(g, name, x, &s, NULL)) return false;
    *rows = s.rows;
    if (s.cols != 1)
        return VPPS_GRAPH_REFUSE(g, VPPS_SHAPE, "%s: the scores are %u x %u; expected a vector", name, s.rows, s.cols);
    if (!check_index(g, name, &label, s.rows, &pulled)) return false;
    if (weights == VPPS_NO_NODE) return true;
    if (!vpps_node_signature(g, name, weights, &w, NULL)) return false;
    if (w.rows == s.rows && w.cols == 1) return true;
    return VPPS_GRAPH_REFUSE(g, VPPS_SHAPE, "%s: weights are %u x %u; expected %u x 1, one for each class", name,
                             w.rows, w.cols, s.rows);
}

/* Computes the weighted cross entropy. Without smoothing only the label's log softmax is used, so scores of -inf elsewhere do no harm. */
vpps_node vpps_cross_entropy_with(vpps_graph *g, vpps_node x, uint32_t label, vpps_node weights, float smoothing) {
    VPPS_NEED_OR(VPPS_NO_NODE, g);
    uint32_t rows;
    if (!check_smoothing(g, "cross_entropy_with", smoothing)) return VPPS_NO_NODE;
    if (weights == VPPS_NO_NODE && smoothing == 0) return vpps_cross_entropy(g, x, label);
    if (!check_weighted(g, x, label, weights, &rows)) return VPPS_NO_NODE;
    if (weights == VPPS_NO_NODE) weights = vpps_ones(g, rows, 1);
    const vpps_node share = vpps_smooth_label(g, weights, label, smoothing);
    if (smoothing == 0) return vpps_mul(g, vpps_cross_entropy(g, x, label), vpps_sum_elements(g, share));
    return vpps_negate(g, vpps_dot(g, share, vpps_log_softmax(g, x)));
}
vpps_node vpps_hinge(vpps_graph *g, vpps_node x, uint32_t label, float margin) {
    VPPS_NEED_OR(VPPS_NO_NODE, g);
    return make_classified(g, VPPS_OP_HINGE, x, label, margin);
}
