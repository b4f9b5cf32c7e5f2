/* graph.h - the computation graph, and the model's cells (vertex functions). A cell is recorded by the same calls on a graph of its own,
 * the recorder.
 *
 * A graph is a list of records. A record is a vertex: an op, or an applied cell. A node is an output of a record: the op's result, or an
 * output of the cell. Nodes are numbered record after record; the outputs of a record have consecutive numbers.
 * The values inside an applied cell have no numbers. */
#pragma once

#include "base/index.h"
#include "graph/model.h"

/* ---- operations */

typedef enum vpps_op {
#define OP(id, ...) VPPS_OP_##id,
#include "graph/ops.def"
#undef OP
    VPPS_OP_COUNT,
    VPPS_OP_GATHERED = VPPS_OP_COUNT /* stands for an input while a cell is recorded; no node of a graph has this op */
} vpps_op;

typedef enum vpps_op_class {
    VPPS_CLASS_SOURCE,
    VPPS_CLASS_EW,
    VPPS_CLASS_WHOLE,
    VPPS_CLASS_PARTS,
    VPPS_CLASS_AFFINE,
    VPPS_CLASS_DECIDED
} vpps_op_class;

typedef enum vpps_shape_rule {
    VPPS_SHAPE_GIVEN,   /* the function that makes the op computes the shape */
    VPPS_SHAPE_EQUAL,   /* all arguments have one shape, which the result has too */
    VPPS_SHAPE_PRODUCT, /* arguments r x k and k x c -> result r x c */
    VPPS_SHAPE_SCALED,  /* a value of any shape and a scalar -> the value's shape */
    VPPS_SHAPE_STACKED, /* matrices with equally many columns -> one matrix: all on top of each other */
    VPPS_SHAPE_SCALAR,  /* arguments of equal shapes -> a scalar (1 x 1) */
    VPPS_SHAPE_COLUMNS, /* an r x c matrix -> a c x 1 vector, with an element for each column */
    VPPS_SHAPE_TURNED,  /* an r x c matrix -> a c x r matrix (transposed) */
    VPPS_SHAPE_VECTOR,  /* an r x 1 vector -> an r x 1 vector */
    VPPS_SHAPE_PAIR,    /* an r x 1 vector -> a 2 x 1 vector */
    VPPS_SHAPE_WEIGHTED /* an n x 1 vector of weights, and n values of one shape -> the values' shape */
} vpps_shape_rule;

/* The number of elements by which an op's flops per element (ops.def) are multiplied. */
typedef enum vpps_flops_per {
    VPPS_PER_RESULT,   /* flops are counted per element of the op's result */
    VPPS_PER_ARGUMENT, /* flops are counted per element of the op's first argument */
    VPPS_PER_MEMBER    /* flops are counted per result element and value that the op combines (sum: per term) */
} vpps_flops_per;

enum {
    VPPS_MANY = 1 << 20,
    VPPS_MANY_PAIRS = 32,      /* most products that one affine node sums up */
    VPPS_MANY_ELEMS = 1 << 22, /* values must have fewer elements than this */
    VPPS_CELL_MOST = 64,       /* most inputs, outputs, lookups and integers of a cell: 64 bits hold a set of them */
    VPPS_CELL_LISTS = 4,       /* maximum number of list inputs of one cell (each reads any number of nodes) */
    /* maximum number of a cell's axes. Axis 0: one value per vertex (use of the cell); axis l + 1: one per node that list input l reads */
    VPPS_AXES
};

typedef struct vpps_op_row {
    const char *name;
    uint32_t min_args, max_args;
    vpps_shape_rule shape;
    vpps_op_class op_class;
    vpps_flops_per per;
    uint8_t flops, backward_flops;
    const char *operands; /* what the forward instruction reads, a letter each, such as a: argument 0 (see ops.def) */
} vpps_op_row;

extern const vpps_op_row vpps_ops[VPPS_OP_COUNT];

/* Returns whether the op's argument 0 is a vector of weights for its other arguments. */
static inline bool vpps_weighs(uint32_t op) { return vpps_ops[op].operands[0] == 'v'; }

/* Returns whether the op finds which argument is greatest or least (max_of, min_of). A list for it must have at least one member. */
static inline bool vpps_finds(uint32_t op) { return vpps_ops[op].operands[0] == 'i'; }

/* Returns whether the op reduces all its arguments, members of lists included, to one value (as sum does). */
static inline bool vpps_takes_members(uint32_t op) { return vpps_ops[op].per == VPPS_PER_MEMBER && !vpps_weighs(op); }

/* A signature: op, shape and parameters of a node, shared by all such nodes of a graph or cell. Equal signatures have one index. */
typedef struct vpps_signature {
    uint8_t op;          /* vpps_op */
    uint32_t rows, cols; /* shape of the node's value */
    /* The parameter that the node uses: a lookup's table, the vector or matrix of a parameter op, the bias of affine; VPPS_NO_PARAM for all
     * other nodes, and for a lookup of a kept value (vpps_keep). */
    vpps_param param;
    /* affine: number of matrices, one per argument; the first is matrices[first_matrix] of the graph or cell */
    uint32_t n_matrices;
    uint32_t first_matrix;
    float p; /* dropout: the probability; hinge: the margin */
} vpps_signature;

typedef struct vpps_op_node {
    uint32_t signature; /* index in `signatures`, which stores the op, shape and parameters of equal nodes once */
    uint32_t args;      /* index of the first argument in the graph's `words`, or in the cell's `args` */
    uint32_t n_args;
    /* The op's integer. lookup: row, or offset in device memory of a value that an earlier batch left there;
     * losses: class; slice: first row; scale, elu, constant, rms_norm: bits of a float; input: index in graph->data;
     * concat over a list: greatest number of members. */
    uint32_t imm;
} vpps_op_node;

/* ---- cells */

/* bit that marks a number in a cell's `args` as an input's number; without the bit, the number is a node's */
#define VPPS_CELL_INPUT 0x80000000u

typedef struct vpps_cell_input {
    uint32_t rows, cols;
    uint32_t child, output; /* input from a child vertex: number of the child, and number of the child's output */
    /* true: the caller gives the input when it applies the cell, as number `child` of such inputs; false: a child vertex gives the input */
    bool pulled;
    /* 0: the input reads one value. Else one of each node in the vertex's list number axis - 1; if the list's nodes are
     * children, `child` is the number of the vertex's first child in any list (set by vpps_cell_end). */
    uint8_t axis;
} vpps_cell_input;

/* An output of a cell: for parent vertices (scattered), or for nodes outside cells (pushed). */
typedef struct vpps_cell_offer {
    /* index in the cell's `outputs`; or VPPS_CELL_INPUT | number of an input that the cell passes on */
    uint32_t output;
    uint32_t rows, cols;
} vpps_cell_offer;

/* A cell's condition on its scalar input number `input`. If `is` is true: the scalar is within 0.5 of `value`. Else: the scalar is > 0. */
typedef struct vpps_condition_data {
    bool there, is;
    uint32_t input;
    float value;
} vpps_condition_data;

typedef struct vpps_cell_data {
    char *name;
    vpps_signature *signatures; /* ops and shapes of the cell's nodes; while the cell is recorded, its graph has them */
    vpps_param *matrices;
    uint32_t n_signatures;
    vpps_op_node *nodes;
    /* for each operation: 0: runs once per vertex (use of the cell); l + 1: once per node that list input l reads */
    uint8_t *axis;
    /* for each node: whether its op takes all members of a list at once, as softmax of a list of scalars, weighted_sum and concat do */
    uint8_t *over_list;
    /* for each node: whether its row or class is number `imm` of the integers that the caller gives (vpps_pull_index), not `imm` itself */
    uint8_t *imm_pulled;
    uint32_t *args;
    vpps_cell_input *inputs;
    /* The nodes that are outputs, read by parent vertices (scattered) or by nodes outside cells (pushed). An input that
     * is passed on as an output: VPPS_CELL_INPUT | the input's number. */
    uint32_t *scattered, *pushed;
    /* Set by vpps_cell_end. outputs: operations whose results are outputs, each once. offers: index in `outputs` and
     * shape of each output that parent vertices read, then of each that nodes outside cells read. */
    uint32_t *outputs;
    vpps_cell_offer *offers;
    vpps_condition_data condition;
    /* the value that is > 0 where the condition holds and the vertex runs: a node's number, or VPPS_CELL_INPUT | an input's number */
    uint32_t condition_node;
    /* If the cell has a condition, for each output: the input that replaces it where the condition does not hold; VPPS_NO_NODE: zeros do */
    uint32_t *otherwise;
    bool decides; /* whether the cell has an operation whose work depends on values (argmax, lookup_at) */
    /* for each index that the caller gives for a vertex: the number that the index must be less than */
    uint32_t *index_limits;
    uint32_t n_own; /* number of inputs of one node (not list inputs, of any number); set when recording ends */
    uint32_t n_nodes, n_args, n_inputs, n_scattered, n_pushed, n_outputs, n_pulls, n_pull_lists, n_indices;
    uint32_t n_of_axis[VPPS_AXES]; /* number of operations that run once per vertex [0], per node of list l [l + 1] */
    uint32_t min_children; /* 1 + the largest number of a child vertex that the cell reads by number (vpps_gather) */
    uint32_t n_lists;    /* number of lists; the members of a list are child vertices, or nodes that the caller gives */
    uint32_t list_first; /* number of the first of a vertex's children that list inputs (of any length) read */
    bool list_first_given;
    /* For each list (from index 1): whether its members are child vertices; their least and their greatest number (most 0: any number). */
    bool gathered[VPPS_AXES];
    uint32_t min_members[VPPS_AXES], most_members[VPPS_AXES];
} vpps_cell_data;

/* Returns how many values a vertex has on an axis: 1 on axis 0 (the vertex); on axis l + 1 one per node that list input l reads. */
static inline uint32_t vpps_members(const uint32_t *record, uint32_t axis) { return axis ? record[axis - 1] : 1; }

/* Returns how many nodes a vertex reads in all through its cell's list inputs (each of them reads any number). */
static inline uint64_t vpps_list_nodes(const vpps_cell_data *c, const uint32_t *record) {
    uint64_t n = 0;
    for (uint32_t i = 0; i < c->n_inputs && c->n_lists; i++)
        if (c->inputs[i].axis) n += vpps_members(record, c->inputs[i].axis);
    return n;
}

/* ---- records */

typedef struct vpps_record {
    uint32_t cell;  /* number of the applied cell; VPPS_NODE_RECORD: the vertex is an op */
    uint32_t first; /* number of the vertex's first node; its other nodes have the following numbers */
    /* Where the inputs are. An op outside cells: index in g->record_nodes. A cell: index in g->words of a sequence of words: (1) for each
     * input that reads a list of nodes, how many; (2) if there is such an input, the index in g->words of the nodes of all lists; the
     * numbers of the vertices that made these nodes lie just before them; (3) for each other input, the node that it reads; (4) the
     * integers for vpps_pull_index. Consecutive vertices of a cell with equal lists have the same (2). */
    uint32_t at;
} vpps_record;

#define VPPS_NODE_RECORD UINT32_MAX
#define VPPS_SOURCE_VERTEX UINT32_MAX

typedef struct vpps_vertex_data {
    /* the cell that the vertex applies; VPPS_SOURCE_VERTEX: none, its outputs are existing nodes (vpps_source) */
    uint32_t cell;
    /* index in g->words: the nodes and integers that the cell reads (vpps_record.at); no cell: number of outputs, then their nodes */
    uint32_t at;
    uint32_t first; /* the graph's number of the node that is the vertex's first output */
} vpps_vertex_data;

/* A value that stays on the device between batches (vpps_keep), and the node that computes the value or, in a later graph, reads it. */
typedef struct vpps_kept_node {
    vpps_value value;
    uint32_t handle; /* number of the handle (engine for the model on a device) that keeps the value */
    vpps_node node;
} vpps_kept_node;

struct vpps_graph {
    vpps_model *model;
    uint32_t *node_record; /* for each node: index in `records` of the op or applied cell whose output the node is */
    vpps_status status;    /* status of the graph's first failure; stays until the graph is cleared */
    char message[VPPS_MESSAGE_BYTES];
    uint32_t n_nodes;
    uint32_t size; /* number of ops, ops inside applied cells included (vpps_graph_size) */

    vpps_signature *signatures;
    uint32_t n_signatures;
    vpps_index signature_index;
    vpps_param *matrices;
    size_t n_matrices;

    vpps_record *records;
    size_t n_records;
    vpps_op_node *record_nodes;
    size_t n_record_nodes;
    uint32_t *words; /* what ops and applied cells read: node numbers, integers, lengths of lists (vpps_record.at) */
    size_t n_words;
    vpps_vertex_data *vertices;
    size_t n_vertices;
    vpps_vertex latest_listed; /* the latest vertex whose cell has list inputs, which read any number of nodes each */
    float *data;               /* values of input nodes */
    size_t n_data;

    bool decides; /* whether the graph has an operation whose work depends on values (argmax, lookup_at) */

    vpps_kept_node *kept; /* nodes that read values which earlier batches left on the device (vpps_keep) */
    size_t n_kept;
    vpps_kept_node *keeps; /* nodes whose values stay on the device after the next run */
    size_t n_keeps;

    vpps_cell_data *recording; /* the cell that is being recorded on this graph; NULL: none */
};

/* Return where the inputs of an applied cell lie in g->words: own_nodes: the nodes that its inputs without lists read;
 * listed_nodes: the nodes that its list inputs read; indices_of: the integers for vpps_pull_index (rows, classes). */
static inline const vpps_node *vpps_own_nodes(const vpps_cell_data *c, const uint32_t *record) {
    return record + c->n_lists + 1;
}
static inline const vpps_node *vpps_listed_nodes(const vpps_graph *g, const vpps_cell_data *c, const uint32_t *record) {
    return g->words + (c->n_lists ? record[c->n_lists] : 0);
}
static inline const uint32_t *vpps_indices_of(const vpps_cell_data *c, const uint32_t *record) {
    return vpps_own_nodes(c, record) + c->n_own;
}

/* Frees a cell; NULL is allowed. */
void vpps_free_cell(vpps_cell_data *c);

/* Returns a cell of the graph's model; the pointer is valid while the model lives. */
static inline const vpps_cell_data *vpps_cell_of(const vpps_graph *g, uint32_t cell) { return g->model->cells[cell]; }

/* Marks the graph as failed, unless it already is, and returns VPPS_NO_NODE, which is VPPS_NO_VERTEX. */
vpps_node vpps_graph_fail(vpps_graph *g, vpps_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Marks the graph as failed and has the value false, so that a checking function may `return VPPS_GRAPH_REFUSE(...)`. */
#define VPPS_GRAPH_REFUSE(...) (vpps_graph_fail(__VA_ARGS__), false)
/* Marks the graph as failed and has the value of its status. */
#define VPPS_GRAPH_STATUS(g, ...) (vpps_graph_fail((g), __VA_ARGS__), vpps_graph_status(g))
_Static_assert(VPPS_NO_NODE == VPPS_NO_VERTEX, "vpps_graph_fail returns both");

/* Returns whether n, a number of words, vertices or data, is below the limit 2^32 of a graph; if not, makes the graph fail. */
static inline bool vpps_graph_holds(vpps_graph *g, uint64_t n, const char *what) {
    if (VPPS_LIKELY(vpps_need_count(n, "graph", what) == VPPS_OK)) return true;
    return VPPS_GRAPH_REFUSE(g, VPPS_ARGUMENT, "%s", vpps_error_message());
}

/* Makes a node with signature *s (op, shape, parameters), in the graph or in the cell being recorded. `imm`: the op's
 * integer, such as a class; with imm_pulled: which of the integers given to each vertex (vpps_pull_index) it is. */
vpps_node vpps_make_node(vpps_graph *g, vpps_signature *s, const vpps_param *matrices, uint32_t n,
                         const vpps_node *args, uint32_t imm, bool imm_pulled);

/* Makes a node of an op whose result's shape follows from its arguments' shapes; `imm` and `p`: the integer and the float of the node. */
vpps_node vpps_make_op(vpps_graph *g, vpps_op op, uint32_t n, const vpps_node *args, uint32_t imm, float p);

/* Makes a node of the recorded cell, whose op takes all members of a list. `most`: concat's greatest number of members, else 0. */
vpps_node vpps_make_over_list(vpps_graph *g, vpps_signature *s, uint32_t n, const vpps_node *args, uint32_t axis,
                              uint32_t most);

/* Copies the caller's struct, which may be of another library version, to *own. False: the graph has failed; `call` is for the message. */
bool vpps_take_application(vpps_graph *g, const char *call, const vpps_application *given, vpps_application *own);

/* Makes node x the recorded cell's next output for parent vertices (scattered). */
vpps_status vpps_add_scattered(vpps_graph *g, vpps_node x);

/* Makes the graph fail because an op mixes members of two of a cell's lists of children: lists number a - 1 and b - 1. */
vpps_node vpps_fail_lists(vpps_graph *g, const char *what, uint32_t a, uint32_t b);

/* Returns op and shape of node x of a graph. NULL: no such node, or the graph object serves to record a cell. */
static inline const vpps_signature *vpps_plain_signature(const vpps_graph *g, vpps_node x) {
    if (g->recording || x >= g->n_nodes) return NULL;
    const vpps_record *r = &g->records[g->node_record[x]];
    if (r->cell == VPPS_NODE_RECORD) return &g->signatures[g->record_nodes[r->at].signature];
    const vpps_cell_data *c = vpps_cell_of(g, r->cell);
    return &c->signatures[c->nodes[c->outputs[x - r->first]].signature];
}

/* Finds node x of the graph or, while g records a cell, the cell's node or input x. *out: rows, cols, op. *axis (may be NULL): 1 + l if x
 * has a value for each node that the cell's list input l (of any number of nodes) reads, else 0. False: no such x, and g fails. */
bool vpps_node_signature(vpps_graph *g, const char *what, vpps_node x, vpps_signature *out, uint32_t *axis);

/* Makes a node that reads a kept value (vpps_keep), which lies at word `offset` of the device's memory pool. */
vpps_node vpps_make_kept(vpps_graph *g, uint32_t rows, uint32_t cols, uint32_t offset, vpps_value value,
                         uint32_t handle);

/* Bits that mark an integer as the number of an index that the caller gives for each vertex (vpps_pull_index). Number 0xffff is not used:
 * with these bits it would be VPPS_NO_NODE. */
#define VPPS_PULLED_INDEX 0xffff0000u
#define VPPS_MAX_PULLED_INDICES 0xffffu
bool vpps_is_pulled_index(const vpps_graph *g, uint32_t value, uint32_t *number);

static inline uint32_t vpps_words(const vpps_signature *s) { return s->rows * s->cols; }

static inline uint64_t vpps_dropout_key(uint64_t seed, uint64_t batch) {
    return vpps_mix64(seed ^ vpps_mix64(batch + 0x9e3779b97f4a7c15u));
}
