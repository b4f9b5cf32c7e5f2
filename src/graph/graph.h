/* graph.h - the expression graph, and the model's cells, which are recorded by the same calls on a graph of their own, the
 * recorder.
 *
 * A graph is a list of records, its vertices: each an op, or an applied cell. A node is an output of one of them: the result of
 * the op, or one of the values that the cell scatters or pushes. Nodes are numbered record after record, output after output,
 * so a record's first node is known when it is made. The values inside an applied cell have no numbers.
 */
#pragma once

#include "base/index.h"
#include "graph/model.h"

/* ---- the table of operations; its columns of instructions are in isa/isa.h */

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
    VPPS_SHAPE_GIVEN,   /* the op call works it out */
    VPPS_SHAPE_EQUAL,   /* all arguments and the result are equal */
    VPPS_SHAPE_PRODUCT, /* (r x k), (k x c) -> r x c */
    VPPS_SHAPE_SCALED,  /* any, scalar -> the first */
    VPPS_SHAPE_STACKED, /* equal cols -> sum of rows */
    VPPS_SHAPE_SCALAR,  /* all arguments equal -> 1 x 1 */
    VPPS_SHAPE_COLUMNS, /* r x c -> c x 1 */
    VPPS_SHAPE_TURNED,  /* r x c -> c x r */
    VPPS_SHAPE_VECTOR,  /* r x 1 -> r x 1 */
    VPPS_SHAPE_WEIGHTED /* n x 1, then n equal ones -> like those */
} vpps_shape_rule;

typedef enum vpps_flops_per {                    /* what an operation's flops are counted by */
                              VPPS_PER_RESULT,   /* an element of the result */
                              VPPS_PER_ARGUMENT, /* an element of the first argument */
                              VPPS_PER_MEMBER /* an element of the result, and a member of the list (the weights of weighted_sum are none) */
} vpps_flops_per;

enum {
    VPPS_MANY = 1 << 20,
    VPPS_MANY_PAIRS = 32,      /* of one affine node */
    VPPS_MANY_ELEMS = 1 << 22, /* a value has fewer */
    VPPS_CELL_MOST = 64,       /* inputs, outputs, lookups and numbers in use of a cell: sets of them have 64 bits */
    VPPS_CELL_LISTS = 4,       /* of one cell; vpps_gather_list_of says so */
    VPPS_AXES                  /* what a value is one for: 0: the vertex; l + 1: a member of its list l */
};

typedef struct vpps_op_row {
    const char *name;
    uint32_t min_args, max_args;
    vpps_shape_rule shape;
    vpps_op_class op_class;
    vpps_flops_per per;
    uint8_t flops, backward_flops;
    const char *operands; /* of the forward instruction */
} vpps_op_row;

extern const vpps_op_row vpps_ops[VPPS_OP_COUNT];

/* Is argument 0 a vector of weights of the others? */
static inline bool vpps_weighs(uint32_t op) { return vpps_ops[op].operands[0] == 'v'; }

/* Does it find positions, which nothing is without a member? */
static inline bool vpps_finds(uint32_t op) { return vpps_ops[op].operands[0] == 'i'; }

/* Does it make one value of all its arguments, and of all members of the lists among them? */
static inline bool vpps_takes_members(uint32_t op) { return vpps_ops[op].per == VPPS_PER_MEMBER && !vpps_weighs(op); }

/* ---- signatures: everything about a node that many nodes share. Interned: equal content, equal index. A graph has a
 * table of them, and every cell one of its own. */

typedef struct vpps_signature {
    uint8_t op;          /* vpps_op */
    uint32_t rows, cols; /* of the value */
    /* lookup: table (of a kept value: VPPS_NO_PARAM); parameter: vector; matrix: itself; affine: bias; else VPPS_NO_PARAM */
    vpps_param param;
    uint32_t n_matrices; /* affine: first_matrix.. in the table's matrices, one an argument */
    uint32_t first_matrix;
    float p; /* dropout: probability; hinge: margin */
} vpps_signature;

typedef struct vpps_op_node {
    uint32_t signature; /* index into the graph's or the cell's signatures */
    uint32_t args;      /* first argument in the graph's `words`, or the cell's `args` */
    uint32_t n_args;
    /* lookup: row, or offset of the kept value in the pool; cross_entropy, smooth_label, hinge: class; slice: first row; scale, elu,
     * constant, rms_norm: float bits; input: first element in graph->data; concat over a list: most members */
    uint32_t imm;
} vpps_op_node;

/* ---- cells */

#define VPPS_CELL_INPUT 0x80000000u /* in a template's args: input number in the low bits, else template node */

typedef struct vpps_cell_input {
    uint32_t rows, cols;
    uint32_t child, output; /* gathered */
    bool pulled;            /* then `child` is the pull's number, of lists and others apart */
    uint8_t axis; /* of a list; gathered, `child` is then the first that any list has (known when recording ends) */
} vpps_cell_input;

/* A value that a cell scatters or pushes, for those who read it at a vertex. */
typedef struct vpps_cell_offer {
    uint32_t output; /* in `outputs`; or VPPS_CELL_INPUT | input, which is handed on */
    uint32_t rows, cols;
} vpps_cell_offer;

/* A cell's vertices run where input number `input`, a scalar, is above 0, or, with `is`, nearer to `value` than 0.5. */
typedef struct vpps_condition_data {
    bool there, is;
    uint32_t input;
    float value;
} vpps_condition_data;

typedef struct vpps_cell_data {
    char *name;
    vpps_signature *signatures; /* of its nodes; while it is being recorded the recorder has them */
    vpps_param *matrices;
    uint32_t n_signatures;
    vpps_op_node *nodes; /* args point into `args`; imm of lookup and of losses by a label may be a pulled index */
    uint8_t *axis;       /* of each node: one for the vertex, or for each member of a list */
    /* LISTED operation of a list of scalars; WEIGHTED_SUM of a list by a list of scalars; CONCAT of a list */
    uint8_t *over_list;
    uint8_t *imm_pulled; /* is imm the number of a pulled index */
    uint32_t *args;
    vpps_cell_input *inputs;
    uint32_t *scattered, *pushed; /* template nodes, or VPPS_CELL_INPUT | input */
    /* Once it is recorded: its outputs, the template nodes that are scattered or pushed, each once, in that order; and which of
     * them each scattered, then each pushed value is. */
    uint32_t *outputs;
    vpps_cell_offer *offers;
    vpps_condition_data condition;
    uint32_t condition_node; /* that is above 0 where it holds: template node, or VPPS_CELL_INPUT | input */
    uint32_t
        *otherwise; /* with a condition, of each scattered value: the input that is scattered instead; VPPS_NO_NODE:
                                zeros */
    bool decides;   /* an operation of the class DECIDED is in it */
    uint32_t *index_limits; /* each pulled index must be below */
    uint32_t n_nodes, n_args, n_inputs, n_scattered, n_pushed, n_outputs, n_pulls, n_pull_lists, n_indices;
    uint32_t n_of_axis[VPPS_AXES]; /* nodes */
    uint32_t min_children;         /* largest gathered child + 1 */
    uint32_t n_lists;              /* gathered, or pulled, or both */
    uint32_t list_first;           /* the first child that any list has */
    bool list_first_given;
    /* of each list: are its members children, after those of the lists before it? how many it must, and may, have (0: any
     * number) */
    bool gathered[VPPS_AXES];
    uint32_t min_members[VPPS_AXES], most_members[VPPS_AXES];
} vpps_cell_data;

/* The record of an applied cell begins with the members of its lists; without any, with a word that is not used. */
static inline uint32_t vpps_list_words(const vpps_cell_data *c) { return c->n_lists ? c->n_lists : 1; }

/* How often a vertex has a value of this axis. */
static inline uint32_t vpps_members(const uint32_t *record, uint32_t axis) { return axis ? record[axis - 1] : 1; }

/* Nodes that a vertex's inputs are. */
static inline uint64_t vpps_input_nodes(const vpps_cell_data *c, const uint32_t *record) {
    if (!c->n_lists) return c->n_inputs;
    uint64_t n = 0;
    for (uint32_t i = 0; i < c->n_inputs; i++) n += vpps_members(record, c->inputs[i].axis);
    return n;
}

/* ---- records */

typedef struct vpps_record {
    uint32_t cell;  /* VPPS_NODE_RECORD, or the cell applied */
    uint32_t first; /* its first node; its others follow */
    uint32_t at;    /* node record: in record_nodes; else in `words`: how many members each list has (vpps_list_words),
                       inputs (node ids; each list's members in a row), indices */
} vpps_record;

#define VPPS_NODE_RECORD UINT32_MAX
#define VPPS_SOURCE_VERTEX UINT32_MAX

typedef struct vpps_vertex_data {
    uint32_t cell;  /* or VPPS_SOURCE_VERTEX */
    uint32_t at;    /* in `words`: of a cell, its record's; of a source, n and its nodes */
    uint32_t first; /* its first node */
} vpps_vertex_data;

/* A value that a handle keeps, and a node of the graph: that reads it, or whose value it becomes. */
typedef struct vpps_kept_node {
    vpps_value value;
    uint32_t handle; /* its number */
    vpps_node node;
} vpps_kept_node;

struct vpps_graph {
    vpps_model *model;
    uint32_t *node_record; /* of each node, the record that it belongs to */
    vpps_status status;    /* sticky */
    char message[VPPS_MESSAGE_BYTES];
    uint32_t n_nodes;
    uint32_t size; /* vpps_graph_size: ops, those inside applied cells included */

    vpps_signature *signatures;
    uint32_t n_signatures;
    vpps_index signature_index;
    vpps_param *matrices;
    size_t n_matrices;

    vpps_record *records;
    size_t n_records;
    vpps_op_node *record_nodes;
    size_t n_record_nodes;
    uint32_t *words; /* arguments of node records, inputs of applied cells */
    size_t n_words;
    vpps_vertex_data *vertices;
    size_t n_vertices;
    float *data; /* of input nodes */
    size_t n_data;

    bool decides; /* an operation of the class DECIDED is in it */

    vpps_kept_node *kept; /* nodes that read kept values */
    size_t n_kept;
    vpps_kept_node *keeps; /* nodes that the next run keeps */
    size_t n_keeps;

    vpps_cell_data *recording; /* of a recorder: the cell; else NULL */
};

/* Frees a cell; NULL is allowed. */
void vpps_free_cell(vpps_cell_data *c);

/* A cell of the graph's model; it stays where it is while the model lives. */
static inline const vpps_cell_data *vpps_cell_of(const vpps_graph *g, uint32_t cell) { return g->model->cells[cell]; }

/* Records the failure unless there is one already; VPPS_NO_NODE. */
vpps_node vpps_graph_fail(vpps_graph *g, vpps_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Can the graph have so many of its words, vertices or data? False: it has failed. */
static inline bool vpps_graph_holds(vpps_graph *g, uint64_t n, const char *what) {
    if (VPPS_LIKELY(vpps_need_count(n, "graph", what) == VPPS_OK)) return true;
    vpps_graph_fail(g, VPPS_ARGUMENT, "%s", vpps_error_message());
    return false;
}

/* Makes a node of a signature, in the graph or in the cell being recorded. `imm_pulled`: imm is a pulled index. */
vpps_node vpps_make_node(vpps_graph *g, vpps_signature *s, const vpps_param *matrices, uint32_t n,
                         const vpps_node *args, uint32_t imm, bool imm_pulled);

/* A node over a list of the cell that is being recorded, whose members have this axis: see vpps_cell_data. `most`: of a
 * stack of members. */
vpps_node vpps_make_over_list(vpps_graph *g, vpps_signature *s, uint32_t n, const vpps_node *args, uint32_t axis,
                              uint32_t most);

/* An application as this version has it. False: the graph has failed; `call` is who asks. */
bool vpps_take_application(vpps_graph *g, const char *call, const vpps_application *given, vpps_application *own);

/* What a recorded cell scatters next, whatever its condition. */
vpps_status vpps_add_scattered(vpps_graph *g, vpps_node x);

/* An op takes members of two lists, which have the axes a and b. */
vpps_node vpps_fail_lists(vpps_graph *g, const char *what, uint32_t a, uint32_t b);

/* Signature of a node of a graph that is no recorder. NULL: x is none. */
static inline const vpps_signature *vpps_plain_signature(const vpps_graph *g, vpps_node x) {
    if (g->recording || x >= g->n_nodes) return NULL;
    const vpps_record *r = &g->records[g->node_record[x]];
    if (r->cell == VPPS_NODE_RECORD) return &g->signatures[g->record_nodes[r->at].signature];
    const vpps_cell_data *c = vpps_cell_of(g, r->cell);
    return &c->signatures[c->nodes[c->outputs[x - r->first]].signature];
}

/* Signature of an existing node or cell input (rows, cols and op are valid; op may be VPPS_OP_GATHERED), and
 * which axis it has. False, and the graph fails, when x is not a node of this graph. `what` names the op that asks. */
bool vpps_node_signature(vpps_graph *g, const char *what, vpps_node x, vpps_signature *out, uint32_t *axis);

/* A node that reads a kept value, whose place in the pool is `offset`. */
vpps_node vpps_make_kept(vpps_graph *g, uint32_t rows, uint32_t cols, uint32_t offset, vpps_value value,
                         uint32_t handle);

/* Integers from vpps_pull_index are marked by these bits; false when `value` is a plain integer. One number is missing:
 * marked, it would be VPPS_NO_NODE. */
#define VPPS_PULLED_INDEX 0xffff0000u
#define VPPS_MAX_PULLED_INDICES 0xffffu
bool vpps_is_pulled_index(const vpps_graph *g, uint32_t value, uint32_t *number);

static inline uint32_t vpps_words(const vpps_signature *s) { return s->rows * s->cols; }

/* Is element number e of batch `batch` kept by dropout with probability p of being zeroed? (SplitMix64 of a counter:
 * independent of how work is cut up.) The kernels compute the same. */
static inline uint64_t vpps_dropout_key(uint64_t seed, uint64_t batch) {
    return vpps_mix64(seed ^ vpps_mix64(batch + 0x9e3779b97f4a7c15u));
}
static inline bool vpps_dropout_keeps(uint64_t key, uint32_t e, float p) {
    /* a 32-bit mix (Wellons 2018, "lowbias32"), so that wide vectors and GPUs do it at full speed */
    uint32_t x = e ^ (uint32_t)key;
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = (x ^ (x >> 15)) * 0x846ca68bu;
    x = (x ^ (x >> 16)) + (uint32_t)(key >> 32);
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = x ^ (x >> 15);
    return (float)(x >> 8) * 0x1p-24f >= p;
}
