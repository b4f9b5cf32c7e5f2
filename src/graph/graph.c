/* graph.c - creates graphs, and adds vertices (records) and signatures (what equal nodes share: op, shape) to them. */
#include "graph/graph.h"

#include <stdarg.h>

const vpps_op_row vpps_ops[VPPS_OP_COUNT] = {
#define OP(id, name, call, min, max, shape, is, per, flops, back, forward, operands, ...)                              \
    [VPPS_OP_##                                                                                                        \
        id] = {#name, min, VPPS_##max, VPPS_SHAPE_##shape, VPPS_CLASS_##is, VPPS_PER_##per, flops, back, operands},
#define VPPS_0 0
#define VPPS_1 1
#define VPPS_2 2
#include "graph/ops.def"
#undef OP
};

vpps_status vpps_graph_create(vpps_graph **out, vpps_model *model) {
    VPPS_NEED(out);
    *out = NULL;
    VPPS_NEED(model);
    vpps_graph *g = calloc(1, sizeof *g);
    if (!g) return vpps_fail(VPPS_MEMORY, "graph: out of memory");
    g->model = model;
    *out = g;
    return VPPS_OK;
}

void vpps_free_cell(vpps_cell_data *c) {
    if (!c) return;
    VPPS_FREE_ARRAYS(c->signatures, c->matrices, c->nodes, c->axis, c->over_list, c->imm_pulled, c->args, c->inputs,
                     c->scattered, c->pushed, c->otherwise);
    VPPS_FREE(c->name, c->outputs, c->offers, c->index_limits, c);
}

void vpps_graph_destroy(vpps_graph *g) {
    if (!g) return;
    vpps_free_cell(g->recording);
    VPPS_FREE_ARRAYS(g->signatures, g->matrices, g->records, g->record_nodes, g->words, g->vertices, g->data,
                     g->node_record, g->kept, g->keeps);
    vpps_index_free(&g->signature_index);
    free(g);
}

vpps_node vpps_graph_fail(vpps_graph *g, vpps_status status, const char *format, ...) {
    if (g->status == VPPS_OK) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(g->message, sizeof g->message, format, arguments);
        va_end(arguments);
        g->status = status;
        vpps_restore_message(g->message);
    }
    return VPPS_NO_NODE;
}

vpps_status vpps_graph_status(const vpps_graph *g) {
    VPPS_NEED(g);
    if (g->status != VPPS_OK) vpps_restore_message(g->message);
    return g->status;
}

uint32_t vpps_graph_size(const vpps_graph *g) {
    if (!g) return 0;
    return g->recording ? g->recording->n_nodes : g->size;
}

static uint64_t hash_signature(const vpps_signature *s, const vpps_param *matrices) {
    uint64_t h = vpps_mix64((uint64_t)s->op << 56 ^ (uint64_t)s->rows << 24 ^ s->cols);
    h = vpps_mix64(h ^ ((uint64_t)s->param << 32 | vpps_float_bits(s->p)));
    h = vpps_mix64(h ^ s->n_matrices);
    for (uint32_t i = 0; i < s->n_matrices; i++) h = vpps_mix64(h ^ matrices[i]);
    return h;
}

static bool same_signature(const vpps_graph *g, const vpps_signature *a, const vpps_signature *b,
                           const vpps_param *b_matrices) {
    return a->op == b->op && a->rows == b->rows && a->cols == b->cols && a->param == b->param &&
           a->n_matrices == b->n_matrices && !memcmp(&a->p, &b->p, sizeof a->p) &&
           (!a->n_matrices || !memcmp(g->matrices + a->first_matrix, b_matrices, a->n_matrices * sizeof *b_matrices));
}

/* Returns the index in g->signatures of *s (op, shape and parameters of a node, stored once for equal nodes); adds *s
 * if it is new, with its n_matrices matrices. UINT32_MAX: out of memory, and the graph fails. */
static uint32_t intern(vpps_graph *g, vpps_signature *s, const vpps_param *matrices) {
    const uint64_t hash = hash_signature(s, matrices);
    for (uint32_t at = vpps_index_first(hash), i; (i = vpps_index_next(&g->signature_index, hash, &at)) != UINT32_MAX;)
        if (same_signature(g, &g->signatures[i], s, matrices)) return i;
    if (!VPPS_RESERVE(g->signatures, g->n_signatures + 1u) ||
        !VPPS_RESERVE(g->matrices, g->n_matrices + s->n_matrices) ||
        !vpps_index_add(&g->signature_index, hash, g->n_signatures)) {
        vpps_graph_fail(g, VPPS_MEMORY, "graph: out of memory");
        return UINT32_MAX;
    }
    s->first_matrix = (uint32_t)g->n_matrices;
    if (s->n_matrices) memcpy(g->matrices + g->n_matrices, matrices, s->n_matrices * sizeof *matrices);
    g->n_matrices += s->n_matrices;
    g->signatures[g->n_signatures] = *s;
    return g->n_signatures++;
}

/* A cleared graph drops its signatures (each a node's op and shape, stored once) if there are more than this number. */
enum { SPARE_SIGNATURES = 4096 };

void vpps_graph_clear(vpps_graph *g) {
    if (!g) return;
    if (g->recording) {
        vpps_graph_fail(g, VPPS_STATE, "clear: the cell %s is being recorded on this graph", g->recording->name);
        return;
    }
    g->status = VPPS_OK;
    g->n_nodes = g->size = 0;
    g->n_records = g->n_record_nodes = g->n_words = g->n_vertices = g->n_data = g->n_kept = g->n_keeps = 0;
    g->decides = false;
    if (g->n_signatures > SPARE_SIGNATURES) {
        g->n_signatures = 0;
        g->n_matrices = 0;
        vpps_index_clear(&g->signature_index);
    }
}

/* Finds op and shape of node x, of the cell being recorded if one is. *axis (axis may be NULL): 1 + l if x has a value
 * for each node that list l of the cell reads, else 0. False: there is no such node. */
static bool find_signature(const vpps_graph *g, vpps_node x, vpps_signature *out, uint32_t *axis) {
    uint32_t unused;
    if (!axis) axis = &unused;
    *axis = 0;
    if (g->recording) {
        const vpps_cell_data *c = g->recording;
        uint32_t input = x & ~VPPS_CELL_INPUT;
        if ((x & VPPS_CELL_INPUT) && input < c->n_inputs) {
            const vpps_cell_input *in = &c->inputs[input];
            *out = (vpps_signature){.op = VPPS_OP_GATHERED, .rows = in->rows, .cols = in->cols};
            *axis = in->axis;
            return true;
        }
        if (x >= c->n_nodes) return false;
        *out = g->signatures[c->nodes[x].signature];
        *axis = c->axis[x];
        return true;
    }
    const vpps_signature *s = vpps_plain_signature(g, x);
    if (s) *out = *s;
    return s != NULL;
}

bool vpps_node_signature(vpps_graph *g, const char *what, vpps_node x, vpps_signature *out, uint32_t *axis) {
    if (find_signature(g, x, out, axis)) return true;
    if (g->recording) {
        vpps_graph_fail(g, VPPS_ARGUMENT, "%s: %u is not a node of the cell %s, which is being recorded", what, x,
                        g->recording->name);
    } else {
        vpps_graph_fail(g, VPPS_ARGUMENT, "%s: %u is not a node; the graph has %u", what, x, g->n_nodes);
    }
    return false;
}

vpps_status vpps_node_shape(const vpps_graph *g, vpps_node x, uint32_t *rows, uint32_t *cols) {
    VPPS_NEED(g, rows, cols);
    vpps_signature s;
    if (!find_signature(g, x, &s, NULL))
        return vpps_fail(VPPS_ARGUMENT, "node_shape: %u is not a node; the graph has %u", x, g->n_nodes);
    *rows = s.rows;
    *cols = s.cols;
    return VPPS_OK;
}

static vpps_node add_template_node(vpps_graph *g, uint32_t signature, uint32_t n, const vpps_node *args, uint32_t imm,
                                   bool imm_pulled, uint32_t axis, bool over_list) {
    vpps_cell_data *c = g->recording;
    if (!VPPS_RESERVE(c->nodes, c->n_nodes + 1u) || !VPPS_RESERVE(c->axis, c->n_nodes + 1u) ||
        !VPPS_RESERVE(c->over_list, c->n_nodes + 1u) || !VPPS_RESERVE(c->imm_pulled, c->n_nodes + 1u) ||
        !VPPS_RESERVE(c->args, (size_t)c->n_args + n))
        return vpps_graph_fail(g, VPPS_MEMORY, "cell %s: out of memory", c->name);
    c->nodes[c->n_nodes] = (vpps_op_node){signature, c->n_args, n, imm};
    c->axis[c->n_nodes] = (uint8_t)axis;
    c->over_list[c->n_nodes] = over_list;
    c->imm_pulled[c->n_nodes] = imm_pulled;
    c->n_of_axis[axis]++;
    if (n) memcpy(c->args + c->n_args, args, n * sizeof *args);
    c->n_args += n;
    return c->n_nodes++;
}

vpps_node vpps_fail_lists(vpps_graph *g, const char *what, uint32_t a, uint32_t b) {
    return vpps_graph_fail(g, VPPS_SHAPE,
                           "%s: members of list %u and of list %u in cell %s; expected those of one list", what, a - 1,
                           b - 1, g->recording->name);
}

/* Finds the axis of an op's result in the recorded cell: 1 + l if there is a value for each node of list l, else 0. */
static bool find_axis(vpps_graph *g, vpps_op op, uint32_t n, const vpps_node *args, uint32_t *axis) {
    vpps_cell_data *c = g->recording;
    const bool of_all = vpps_takes_members(op);
    bool lists[VPPS_AXES] = {false};
    *axis = 0;
    for (uint32_t i = 0; i < n; i++) {
        vpps_signature argument;
        uint32_t of;
        if (!vpps_node_signature(g, vpps_ops[op].name, args[i], &argument, &of)) return false;
        if (of && *axis && of != *axis && !of_all) return vpps_fail_lists(g, vpps_ops[op].name, *axis, of), false;
        if (of) *axis = of;
        lists[of] = true;
    }
    for (uint32_t d = 1; d < VPPS_AXES && vpps_finds(op) && !lists[0]; d++)
        if (lists[d]) c->min_members[d] = 1;
    if (of_all) *axis = 0;
    return true;
}

vpps_node vpps_make_node(vpps_graph *g, vpps_signature *s, const vpps_param *matrices, uint32_t n,
                         const vpps_node *args, uint32_t imm, bool imm_pulled) {
    uint32_t axis = 0;
    /* in a cell, an argument may be a list (any number of nodes): the op may then run for each of its nodes */
    if (g->recording && !find_axis(g, (vpps_op)s->op, n, args, &axis)) return VPPS_NO_NODE;
    uint32_t signature = intern(g, s, matrices);
    if (signature == UINT32_MAX) return VPPS_NO_NODE;
    if (vpps_ops[s->op].op_class == VPPS_CLASS_DECIDED) *(g->recording ? &g->recording->decides : &g->decides) = true;
    if (g->recording) return add_template_node(g, signature, n, args, imm, imm_pulled, axis, false);
    if (g->size >= VPPS_CELL_INPUT - 1) return vpps_graph_fail(g, VPPS_ARGUMENT, "graph: more than 2^31 nodes");
    if (!vpps_graph_holds(g, g->n_words + (uint64_t)n, "words")) return VPPS_NO_NODE;
    if (!VPPS_RESERVE(g->records, g->n_records + 1) || !VPPS_RESERVE(g->record_nodes, g->n_record_nodes + 1) ||
        !VPPS_RESERVE(g->node_record, g->n_nodes + 1u) || !VPPS_RESERVE(g->words, g->n_words + n))
        return vpps_graph_fail(g, VPPS_MEMORY, "graph: out of memory");
    g->node_record[g->n_nodes] = (uint32_t)g->n_records;
    g->records[g->n_records++] = (vpps_record){VPPS_NODE_RECORD, g->n_nodes, (uint32_t)g->n_record_nodes};
    g->record_nodes[g->n_record_nodes++] = (vpps_op_node){signature, (uint32_t)g->n_words, n, imm};
    if (n) memcpy(g->words + g->n_words, args, n * sizeof *args);
    g->n_words += n;
    g->size++;
    return g->n_nodes++;
}

vpps_node vpps_make_over_list(vpps_graph *g, vpps_signature *s, uint32_t n, const vpps_node *args, uint32_t axis,
                              uint32_t most) {
    static const vpps_param none = 0;
    const uint32_t signature = intern(g, s, &none);
    if (signature == UINT32_MAX) return VPPS_NO_NODE;
    uint32_t *known = &g->recording->most_members[axis];
    if (most) *known = *known ? vpps_min_u32(*known, most) : most;
    /* true: the op computes a result for each node of a list */
    const bool each = vpps_ops[s->op].op_class == VPPS_CLASS_WHOLE;
    return add_template_node(g, signature, n, args, most, false, each ? axis : 0, true);
}
