/* graph.h - the expression graph, and the model's cells. A cell is recorded by the same calls on a graph of its own, the recorder.
 *
 * A graph is a list of records. A record is a vertex: an op, or an applied cell. A node is an output of a record: the op's result, or a
 * value that the cell scatters or pushes. Nodes are numbered record after record, output after output, so a record's first node is known
 * when it is made. The values inside an applied cell have no numbers.
 */
#pragma once

#include "base/index.h"
#include "graph/model.h"

/* ---- the table of operations; isa/isa.h has its columns of instructions */

typedef enum vpps_op {
#define OP(id, ...) VPPS_OP_##id,
#include "graph/ops.def"
#undef OP
    VPPS_OP_COUNT,
    VPPS_OP_GATHERED = VPPS_OP_COUNT /* stands for a cell's input while recording; never in a graph */
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
    VPPS_SHAPE_GIVEN,   /* the op's call computes the shape */
    VPPS_SHAPE_EQUAL,   /* all arguments and the result have one shape */
    VPPS_SHAPE_PRODUCT, /* (r x k), (k x c) -> r x c */
    VPPS_SHAPE_SCALED,  /* any shape and a scalar -> the first shape */
    VPPS_SHAPE_STACKED, /* equal cols, one on top of the other -> the sum of their rows */
    VPPS_SHAPE_SCALAR,  /* equal shapes -> 1 x 1 */
    VPPS_SHAPE_COLUMNS, /* r x c -> c x 1 */
    VPPS_SHAPE_TURNED,  /* r x c -> c x r */
    VPPS_SHAPE_VECTOR,  /* r x 1 -> r x 1 */
    VPPS_SHAPE_WEIGHTED /* n x 1 weights, then n values of one shape -> that shape */
} vpps_shape_rule;

/* What an op's flops are multiplied by. */
typedef enum vpps_flops_per {
    VPPS_PER_RESULT,   /* number of elements of the result */
    VPPS_PER_ARGUMENT, /* number of elements of the first argument */
    VPPS_PER_MEMBER    /* the elements of the result, times the list's members (without weights of weighted_sum) */
} vpps_flops_per;

enum {
    VPPS_MANY = 1 << 20,
    VPPS_MANY_PAIRS = 32,      /* the most products of one affine node */
    VPPS_MANY_ELEMS = 1 << 22, /* limit of a value's elements, which must be fewer */
    VPPS_CELL_MOST = 64,       /* most inputs, outputs, lookups and used numbers of a cell: sets of them have 64 bits */
    VPPS_CELL_LISTS = 4,       /* most lists of one cell */
    /* number of axes. A value of axis 0 exists once for a vertex, one of axis l + 1 once for each member of the vertex's list l */
    VPPS_AXES
};

typedef struct vpps_op_row {
    const char *name;
    uint32_t min_args, max_args;
    vpps_shape_rule shape;
    vpps_op_class op_class;
    vpps_flops_per per;
    uint8_t flops, backward_flops;
    const char *operands; /* operands of the forward instruction */
} vpps_op_row;

extern const vpps_op_row vpps_ops[VPPS_OP_COUNT];

/* Returns whether argument 0 is a vector of weights for the other arguments. */
static inline bool vpps_weighs(uint32_t op) { return vpps_ops[op].operands[0] == 'v'; }

/* Returns whether the op finds a position (max_of, min_of), and so needs at least one member. */
static inline bool vpps_finds(uint32_t op) { return vpps_ops[op].operands[0] == 'i'; }

/* Returns whether the op makes one value of all its arguments and of all members of the lists among them. */
static inline bool vpps_takes_members(uint32_t op) { return vpps_ops[op].per == VPPS_PER_MEMBER && !vpps_weighs(op); }

/* ---- signatures: everything about a node that many nodes share. They are interned: equal content, equal index. Each graph, and each
 * cell, has its own table of signatures. */

typedef struct vpps_signature {
    uint8_t op;          /* vpps_op */
    uint32_t rows, cols; /* shape of the value */
    /* The parameter that the node uses: lookup: the table (a kept value: VPPS_NO_PARAM); parameter: the vector; matrix: the matrix;
     * affine: the bias; else VPPS_NO_PARAM. */
    vpps_param param;
    /* affine: number of matrices, one per argument, from first_matrix on in the table's matrices */
    uint32_t n_matrices;
    uint32_t first_matrix;
    float p; /* probability of dropout; margin of hinge */
} vpps_signature;

typedef struct vpps_op_node {
    uint32_t signature; /* index in the graph's or the cell's signatures */
    uint32_t args;      /* index of the first argument in the graph's `words`, or in the cell's `args` */
    uint32_t n_args;
    /* The op's integer. lookup: row, or a kept value's offset in the pool; cross_entropy, smooth_label, hinge: class; slice: first row;
     * scale, elu, constant, rms_norm: bits of a float; input: first element in graph->data; concat over a list: most members. */
    uint32_t imm;
} vpps_op_node;

/* ---- cells */

/* marks an input's number in a cell's args; others are numbers of the cell's nodes */
#define VPPS_CELL_INPUT 0x80000000u

typedef struct vpps_cell_input {
    uint32_t rows, cols;
    uint32_t child, output; /* a gathered input: child number and the child's output */
    bool pulled; /* a pulled input: `child` is then its number among the pulls, or among the pulls of lists */
    /* axis of a list, else 0; a gathered list's `child` is then the first child of any list (set when recording ends) */
    uint8_t axis;
} vpps_cell_input;

/* A value that a cell scatters or pushes. */
typedef struct vpps_cell_offer {
    uint32_t output; /* index in `outputs`; or VPPS_CELL_INPUT | number of an input that is handed on */
    uint32_t rows, cols;
} vpps_cell_offer;

/* A cell's condition: its vertices run where the scalar input `input` is greater than 0, or, with `is`, within 0.5 of `value`. */
typedef struct vpps_condition_data {
    bool there, is;
    uint32_t input;
    float value;
} vpps_condition_data;

typedef struct vpps_cell_data {
    char *name;
    vpps_signature *signatures; /* signatures of the cell's nodes; the recorder has them until recording ends */
    vpps_param *matrices;
    uint32_t n_signatures;
    /* the cell's nodes; their `args` point into `args`, and `imm` of a lookup or a loss may be a pulled index */
    vpps_op_node *nodes;
    uint8_t *axis; /* for each node: its axis (0, or 1 + the list that it goes over) */
    /* For each node, whether it takes a whole list: softmax of a list of scalars, WEIGHTED_SUM of a list, CONCAT of a list. */
    uint8_t *over_list;
    uint8_t *imm_pulled; /* for each node, whether `imm` is the number of a pulled index */
    uint32_t *args;
    vpps_cell_input *inputs;
    uint32_t *scattered, *pushed; /* numbers of scattered and of pushed nodes, or VPPS_CELL_INPUT | input */
    /* Set when recording ends: `outputs`, the nodes that are scattered or pushed, each once and in that order; `offers`, the
     * index in `outputs` of each scattered and then of each pushed value. */
    uint32_t *outputs;
    vpps_cell_offer *offers;
    vpps_condition_data condition;
    uint32_t condition_node; /* the node that is greater than 0 where the condition holds, or VPPS_CELL_INPUT | input */
    /* With a condition, for each scattered value: the input that is scattered where the condition does not hold; VPPS_NO_NODE: zeros. */
    uint32_t *otherwise;
    bool decides;           /* the cell has an operation of class DECIDED (argmax, lookup_at) */
    uint32_t *index_limits; /* limit of each pulled index, which must be less */
    uint32_t n_nodes, n_args, n_inputs, n_scattered, n_pushed, n_outputs, n_pulls, n_pull_lists, n_indices;
    uint32_t n_of_axis[VPPS_AXES]; /* number of nodes of each axis */
    uint32_t min_children;         /* largest child number that is gathered + 1 */
    uint32_t n_lists;              /* number of lists, gathered or pulled */
    uint32_t list_first;           /* number of the first child that belongs to a list */
    bool list_first_given;
    /* For each list: whether its members are children, and the least and most members (0: any number). */
    bool gathered[VPPS_AXES];
    uint32_t min_members[VPPS_AXES], most_members[VPPS_AXES];
} vpps_cell_data;

/* Returns the words at the beginning of an applied cell's record: the members of its lists; without lists one unused word. */
static inline uint32_t vpps_list_words(const vpps_cell_data *c) { return c->n_lists ? c->n_lists : 1; }

/* Returns how many values of this axis a vertex has. */
static inline uint32_t vpps_members(const uint32_t *record, uint32_t axis) { return axis ? record[axis - 1] : 1; }

/* Returns the number of nodes that a vertex reads as its inputs. */
static inline uint64_t vpps_input_nodes(const vpps_cell_data *c, const uint32_t *record) {
    if (!c->n_lists) return c->n_inputs;
    uint64_t n = 0;
    for (uint32_t i = 0; i < c->n_inputs; i++) n += vpps_members(record, c->inputs[i].axis);
    return n;
}

/* ---- records */

typedef struct vpps_record {
    uint32_t cell;  /* the applied cell; VPPS_NODE_RECORD: an op */
    uint32_t first; /* number of the first node; the record's other nodes follow */
    /* Of an op: index in record_nodes. Of a cell: position in `words` of its lists' numbers of members (vpps_list_words), its inputs
     * (node numbers; the members of a list together) and its indices. */
    uint32_t at;
} vpps_record;

#define VPPS_NODE_RECORD UINT32_MAX
#define VPPS_SOURCE_VERTEX UINT32_MAX

typedef struct vpps_vertex_data {
    uint32_t cell;  /* the cell, or VPPS_SOURCE_VERTEX */
    uint32_t at;    /* position in `words`: a cell's record, or a source's number of nodes and the nodes */
    uint32_t first; /* number of the vertex's first node */
} vpps_vertex_data;

/* A value that a handle keeps, with the graph's node that reads it, or whose value is to be kept. */
typedef struct vpps_kept_node {
    vpps_value value;
    uint32_t handle; /* number of the handle */
    vpps_node node;
} vpps_kept_node;

struct vpps_graph {
    vpps_model *model;
    uint32_t *node_record; /* for each node: the record that it belongs to */
    vpps_status status;    /* the first failure, which stays */
    char message[VPPS_MESSAGE_BYTES];
    uint32_t n_nodes;
    uint32_t size; /* vpps_graph_size: number of ops, also inside applied cells */

    vpps_signature *signatures;
    uint32_t n_signatures;
    vpps_index signature_index;
    vpps_param *matrices;
    size_t n_matrices;

    vpps_record *records;
    size_t n_records;
    vpps_op_node *record_nodes;
    size_t n_record_nodes;
    uint32_t *words; /* arguments of ops, inputs of applied cells */
    size_t n_words;
    vpps_vertex_data *vertices;
    size_t n_vertices;
    float *data; /* data of input nodes */
    size_t n_data;

    bool decides; /* the graph has an operation of class DECIDED (argmax, lookup_at) */

    vpps_kept_node *kept; /* nodes that read kept values */
    size_t n_kept;
    vpps_kept_node *keeps; /* nodes whose values the next run keeps */
    size_t n_keeps;

    vpps_cell_data *recording; /* the cell that this graph, a recorder, records; else NULL */
};

/* Frees a cell; NULL is allowed. */
void vpps_free_cell(vpps_cell_data *c);

/* Returns a cell of the graph's model; the pointer is valid while the model lives. */
static inline const vpps_cell_data *vpps_cell_of(const vpps_graph *g, uint32_t cell) { return g->model->cells[cell]; }

/* Sets the graph's failure unless there is one already, and returns VPPS_NO_NODE. */
vpps_node vpps_graph_fail(vpps_graph *g, vpps_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Returns whether the graph can have n of its words, vertices or data; if not, the graph has failed. */
static inline bool vpps_graph_holds(vpps_graph *g, uint64_t n, const char *what) {
    if (VPPS_LIKELY(vpps_need_count(n, "graph", what) == VPPS_OK)) return true;
    vpps_graph_fail(g, VPPS_ARGUMENT, "%s", vpps_error_message());
    return false;
}

/* Makes a node of a signature, in the graph or in the cell being recorded. `imm_pulled`: imm is the number of a pulled index. */
vpps_node vpps_make_node(vpps_graph *g, vpps_signature *s, const vpps_param *matrices, uint32_t n,
                         const vpps_node *args, uint32_t imm, bool imm_pulled);

/* Makes a node that takes a whole list of this axis, in the cell being recorded. `most`: the most members of a concat. */
vpps_node vpps_make_over_list(vpps_graph *g, vpps_signature *s, uint32_t n, const vpps_node *args, uint32_t axis,
                              uint32_t most);

/* Copies the caller's application into this version's struct. False: the graph has failed; `call` is named in the message. */
bool vpps_take_application(vpps_graph *g, const char *call, const vpps_application *given, vpps_application *own);

/* Appends x to the values that the recorded cell scatters. */
vpps_status vpps_add_scattered(vpps_graph *g, vpps_node x);

/* Fails: an op takes members of two lists, with axes a and b. */
vpps_node vpps_fail_lists(vpps_graph *g, const char *what, uint32_t a, uint32_t b);

/* Returns the signature of a node of a graph that is no recorder; NULL: the graph has no node x. */
static inline const vpps_signature *vpps_plain_signature(const vpps_graph *g, vpps_node x) {
    if (g->recording || x >= g->n_nodes) return NULL;
    const vpps_record *r = &g->records[g->node_record[x]];
    if (r->cell == VPPS_NODE_RECORD) return &g->signatures[g->record_nodes[r->at].signature];
    const vpps_cell_data *c = vpps_cell_of(g, r->cell);
    return &c->signatures[c->nodes[c->outputs[x - r->first]].signature];
}

/* Gives the signature (rows, cols and op are valid; op may be VPPS_OP_GATHERED) and the axis of a node or cell input. False, and the
 * graph fails, if x is no node of this graph; `what` names the op in the message. */
bool vpps_node_signature(vpps_graph *g, const char *what, vpps_node x, vpps_signature *out, uint32_t *axis);

/* Makes a node that reads a kept value at `offset` in the pool. */
vpps_node vpps_make_kept(vpps_graph *g, uint32_t rows, uint32_t cols, uint32_t offset, vpps_value value,
                         uint32_t handle);

/* An integer from vpps_pull_index is marked by these bits. vpps_is_pulled_index returns false for a plain integer. One number is not
 * used, since marked it would be VPPS_NO_NODE. */
#define VPPS_PULLED_INDEX 0xffff0000u
#define VPPS_MAX_PULLED_INDICES 0xffffu
bool vpps_is_pulled_index(const vpps_graph *g, uint32_t value, uint32_t *number);

static inline uint32_t vpps_words(const vpps_signature *s) { return s->rows * s->cols; }

/* Dropout. vpps_dropout_key makes a batch's key; vpps_dropout_keeps returns whether element e is not zeroed, with probability p of
 * zeroing. It depends on e and the key alone (a counter), however work is shared out. The kernels compute the same. */
static inline uint64_t vpps_dropout_key(uint64_t seed, uint64_t batch) {
    return vpps_mix64(seed ^ vpps_mix64(batch + 0x9e3779b97f4a7c15u));
}
static inline bool vpps_dropout_keeps(uint64_t key, uint32_t e, float p) {
    /* a 32-bit mix (Wellons 2018, "lowbias32"), so that wide vectors and GPUs compute it at full speed */
    uint32_t x = e ^ (uint32_t)key;
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = (x ^ (x >> 15)) * 0x846ca68bu;
    x = (x ^ (x >> 16)) + (uint32_t)(key >> 32);
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = x ^ (x >> 15);
    return (float)(x >> 8) * 0x1p-24f >= p;
}
