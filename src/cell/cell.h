/* cell.h - compiled cells: the form of a vertex function in which devices run it, made before any batch is seen.
 *
 *   lower.c          makes values, and the operations that make them, of a recorded cell or a single op
 *   differentiate.c  adds the backward operations, in which reads become sums of gradients (Cavs, section 3.1)
 *   simplify.c       merges equal values and drops values that nothing reads (algebra.c: algebraic rules)
 *   split.c          divides the work into passes (eager, main, lazy: Cavs, section 3.4) and stages (parts of cells); places kept values
 *   order.c          finds the stages that must wait for other virtual processors (VPs)
 *   program.c        makes each stage's program, a list of steps (program.h); in_place.c removes copies
 *   segments.c       divides a program into segments (segments.h), between which a GPU's CTA has barriers
 *
 * A compiled cell is the same for all devices and batches: a value of a vertex lies at an offset in the vertex's record of kept values;
 * the batch's script tells where an input lies. */
#pragma once

#include "graph/graph.h"
#include "isa/isa.h"

#define VPPS_NONE UINT32_MAX

/* The kind of a compiled cell's value: where the value comes from, or the operation that makes it. */
typedef enum vpps_cell_kind {
    VPPS_VALUE_INPUT,     /* an input, read from another vertex; the script (the batch's program) tells where it lies */
    VPPS_VALUE_LOOKUP,    /* an entry of a lookup table; the batch's program (script) has the entry's number */
    VPPS_VALUE_DATA,      /* numbers that the caller gives (vpps_input), which the batch's program (script) contains */
    VPPS_VALUE_PARAMETER, /* a parameter vector of the model */
    /* gradient of an output: the sum of the gradients that the vertices reading the output compute */
    VPPS_VALUE_GRADIENT,
    VPPS_VALUE_RUN,     /* the result of an instruction of the instruction set, isa.def */
    VPPS_VALUE_PRODUCT, /* a sum of matrices times values, plus a bias or another value */
    /* A sum of transposed matrices times values. If each VP (CTA or thread) owns rows of the matrices, it computes a
     * partial sum. If it owns columns (vpps_row_rule), it computes rows of the result or of a partial sum. */
    VPPS_VALUE_PRODUCT_T,
    VPPS_VALUE_POSITIONS /* positions of the greatest or least elements, found by the preceding MAX_OF or MIN_OF */
} vpps_cell_kind;

/* How the work of a stage (part of a cell's program between two barriers) is divided among CTAs or threads. */
typedef enum vpps_split {
    VPPS_SPLIT_ANY,      /* the compiler has not yet decided how the work is divided */
    VPPS_SPLIT_ROWS,     /* each CTA or thread computes the rows that it owns, for all vertices */
    VPPS_SPLIT_VERTICES, /* each CTA or thread computes all rows, for the vertices assigned to it */
    VPPS_SPLIT_OFF       /* no part of the cell computes the value (it is an input, a table entry, a parameter) */
} vpps_split;

/* Numbers of a vertex's records. A record is an area of memory for kept values. Record 0: values of the vertex itself.
 * Record d = 1 to VPPS_AXES - 1: values of each node that list input d - 1 (of any number of nodes) reads. The last two
 * records: values that only their own vertex reads, in one pass (forward or backward); they take memory only during this pass. */
enum { VPPS_RECORD_FORWARD = VPPS_AXES, VPPS_RECORD_BACKWARD, VPPS_RECORDS };

static inline bool vpps_is_pass_record(uint32_t record) { return record >= VPPS_AXES; }

/* Returns d if a record (memory area) has a value for each of the many nodes that list input d - 1 reads; else 0. */
static inline uint32_t vpps_axis_of(uint32_t record) { return vpps_is_pass_record(record) ? 0 : record; }

/* The passes of a cell's work, in the order in which they run. The main passes run level by level (a level: vertices whose children are
 * finished); all other passes run once, over all vertices. */
typedef enum vpps_pass {
    VPPS_PASS_EAGER, /* forward work that needs no child vertex; runs once for all vertices before the main pass (run level by level) */
    VPPS_PASS_MAIN,
    VPPS_PASS_LAZY, /* forward work that no parent vertex needs; runs once for all vertices after the main pass (run level by level) */
    VPPS_PASS_BACK_EAGER,
    VPPS_PASS_BACK_MAIN,
    VPPS_PASS_BACK_LAZY,
    VPPS_PASSES
} vpps_pass;

static inline bool vpps_by_levels(uint32_t pass) { return pass == VPPS_PASS_MAIN || pass == VPPS_PASS_BACK_MAIN; }

/* An operand of an instruction: a value of the cell, or one element of a value where the instruction takes a scalar. */
typedef struct vpps_cell_arg {
    uint32_t value;
    uint32_t element;  /* if the instruction takes one element of the value, a scalar: the element's number */
    vpps_param matrix; /* the matrix by which a PRODUCT or PRODUCT_T multiplies the value; VPPS_NO_PARAM: none */
} vpps_cell_arg;

/* A count that depends on the lengths of a vertex's list inputs (each reads any number of nodes, the list's members). */
typedef struct vpps_cell_count {
    /* the count, of terms or elements, is base + list[d] * (nodes that list input d - 1 reads), summed over d > 0 */
    uint32_t base, list[VPPS_AXES];
} vpps_cell_count;

static inline bool vpps_counts_members(const vpps_cell_count *count) {
    bool any = false;
    for (uint32_t d = 1; d < VPPS_AXES; d++) any |= count->list[d] != 0;
    return any;
}

/* Where an instruction takes its number operand (letter f, u or e in isa.def: a float or an integer) from. */
typedef enum vpps_number_kind {
    VPPS_NUMBER_NONE, /* the instruction has no number operand */
    /* the operand is a constant: field `real` if it is a float, field `whole` if it is an integer */
    VPPS_NUMBER_CONSTANT,
    /* the operand is number `word` of the integers that the script (the batch's program) has for the vertex */
    VPPS_NUMBER_WORD,
    VPPS_NUMBER_INVERSE, /* the operand is the float 1 / (field `count`: the number of terms of a mean), or 0 if there are none */
    /* MAX_OF, MIN_OF (greatest, least argument): number of an argument: `count` (arguments before it or its list) + position in the list */
    VPPS_NUMBER_POSITION,
    /* Dropout: number of the value's first element among all elements of the batch that dropout may zero: the vertex's first (its integer
     * number `word` in the batch's program) + `count` of preceding dropout ops + (list member's position) * (elements of the value). */
    VPPS_NUMBER_ELEMENT
} vpps_number_kind;

typedef struct vpps_cell_number {
    uint8_t kind; /* a vpps_number_kind, which tells which of the following fields are in use */
    float real;
    uint32_t whole, word;
    vpps_cell_count count;
} vpps_cell_number;

static inline vpps_cell_number vpps_real_number(float f) {
    return (vpps_cell_number){.kind = VPPS_NUMBER_CONSTANT, .real = f};
}
static inline vpps_cell_number vpps_whole_number(uint32_t u) {
    return (vpps_cell_number){.kind = VPPS_NUMBER_CONSTANT, .whole = u};
}

/* An instruction that computes a value of a cell, and its number operands (a float, such as a factor; an integer). */
typedef struct vpps_cell_run {
    uint8_t opcode; /* the instruction, a row of isa.def */
    uint8_t op;     /* the graph's op (vpps_op) that a forward instruction computes */
    /* Whether it handles all nodes of an input of many nodes: SOFTMAX (a scalar per node), its gradient, WEIGHTED_SUM,
     * STACK (the nodes' values one after the other, then zeros), SLICE (each node's part of a stack). */
    bool over_list;
    bool recompute;        /* whether backward recomputes the value by this instruction instead of keeping it */
    vpps_param table;      /* ENTRY instruction: the lookup table; MATRIX instruction: the matrix */
    vpps_cell_number f, u; /* operands that are numbers: f: the float; u: the integer */
} vpps_cell_run;

typedef struct vpps_cell_value {
    uint8_t kind;  /* a vpps_cell_kind, which tells which member of the union is in use */
    uint8_t axis;  /* 0: one value for each vertex; d: one for each node of list input d - 1 (of any number of nodes) */
    uint8_t split; /* vpps_split */
    uint8_t pass;  /* vpps_pass */
    bool kept;     /* whether the value is kept in memory for another stage (part of the program), vertex or the host */
    uint8_t record; /* memory area of a kept value: VPPS_RECORD_FORWARD, _BACKWARD if one pass uses it; else `axis` */
    uint32_t rows, cols;
    uint32_t first_arg, n_args; /* the operands: args[first_arg] to args[first_arg + n_args - 1] of the cell */
    uint32_t stage;             /* number of the stage (part of the program) that makes the value; VPPS_NONE: none */
    uint32_t offset;            /* number of a kept value's first word in its record (area of memory) */
    union {
        uint32_t input;    /* INPUT: its number */
        uint32_t lookup;   /* LOOKUP: its number */
        uint32_t output;   /* GRADIENT: number of the output of which the value is the gradient */
        vpps_param vector; /* PARAMETER: the vector */
        vpps_cell_run run; /* RUN: the instruction */
        vpps_param bias;   /* PRODUCT: the bias vector that is added to the product; VPPS_NO_PARAM: none */
        /* PRODUCT_T, a product with transposed matrices: number of partial sums that are added up to the value, if CTAs
         * or threads divide its rows. Each takes another part of the multiplied vectors' elements. */
        uint32_t shares;
    };
} vpps_cell_value;

/* A contribution: the gradient that a vertex computes for a value that it reads through an input or a lookup. A value's gradient is the sum
 * of the contributions of all its readers. */
typedef struct vpps_cell_contribution {
    bool lookup;
    uint32_t index; /* number of the input or lookup through which the vertex reads the value */
    uint32_t value;
    /* Whether the gradient for the nodes of a list input is stored as two factors: one vector of the vertex
     * (`vector`) and a scalar for each node (`scalar`). They are multiplied when gradients are added up. */
    bool scaled;
    uint32_t vector, scalar;
} vpps_cell_contribution;

/* The gradient of a parameter: a sum over all vertices. The summand is dy x^T; if x is VPPS_NONE, the summand is dy for a matrix, and the
 * sum of dy's columns for a vector. */
typedef struct vpps_cell_outer {
    vpps_param param;
    uint32_t dy, x;
} vpps_cell_outer;

/* Inputs or outputs of a cell that a part of it uses, as bits. `own`: a CTA or thread uses own rows; `whole`: all. */
typedef struct vpps_stage_set {
    uint64_t own, whole;
} vpps_stage_set;

typedef struct vpps_cell_stage {
    uint8_t pass, split;
    bool backward;
    bool uses_pass_record; /* whether this part of a cell uses values kept for forward only, or for backward only */
    /* relative cost, by which CTAs or threads divide vertices: [0] per vertex, [d] per node that list input d - 1 (of many) reads */
    uint32_t work[VPPS_AXES];
    uint32_t owner;    /* if one CTA or thread alone runs this part of a cell: 1 + its number; else 0 */
    uint32_t first, n; /* this part of the cell computes the values order[first] to order[first + n - 1] */
    /* last part of the cell that all CTAs or threads must have finished for a vertex before this part begins for it; VPPS_NONE: none */
    uint32_t after;
    /* inputs: inputs of the cell that this part of it reads; outputs: outputs that it computes */
    vpps_stage_set inputs, outputs;
    /* outputs whose gradients this part of the cell sums up; inputs for which it computes a gradient */
    vpps_stage_set gradients, contributions;
} vpps_cell_stage;

/* The rows of a matrix or vector that a VP (a CTA or thread) owns: consecutive blocks of row_block rows. Matrices and
 * vectors with equally many rows are divided alike, so elementwise work on own rows reads no others. */
typedef struct vpps_rows {
    uint32_t first, end;
} vpps_rows;

static inline vpps_rows vpps_rows_of(uint32_t rows, uint32_t row_block, uint32_t n_vps, uint32_t vp) {
    uint64_t blocks = ((uint64_t)rows + row_block - 1) / row_block;
    uint64_t first = blocks * vp / n_vps * row_block, end = blocks * (vp + 1) / n_vps * row_block;
    vpps_rows r = {(uint32_t)(first < rows ? first : rows), (uint32_t)(end < rows ? end : rows)};
    return r;
}

/* How a device divides the rows of a cell's matrices among its virtual processors (VPs: CTAs of a GPU, threads of a CPU). */
typedef struct vpps_row_rule {
    uint32_t unit; /* number of rows in a block; each CTA or thread owns whole blocks */
    /* If `least` is not 0: a matrix is divided among processors if it has at least `least` rows. */
    uint32_t least;
    /* If `least` is 0: n processors divide matrices of n * unit or more rows and, if `enough` is not 0, those of `enough` or more rows. */
    uint32_t enough;
    /* If not 0, each processor owns columns, too, to compute rows of products matrix^T x instead of partial sums, or
     * partial sums over at least so many elements of a long x (vpps_cell_value.shares). */
    uint32_t columns;
    /* if all matrices of a cell together have fewer elements than this, processors divide the vertices instead of the rows of matrices */
    uint32_t split_elems;
    /* wide_elems replaces split_elems (with fewer elements, matrices stay undivided) for a cell of which, on average, at least `wide`
     * vertices per processor can be computed at once. If `wide` is 0: for no cell. */
    uint32_t wide, wide_elems;
} vpps_row_rule;

/* What a batch needs of a cell. A recorded cell is compiled once for each combination of needs that occurs. The struct has no padding, so
 * that memcmp can compare two combinations. */
typedef struct vpps_cell_needs {
    uint64_t frozen;       /* hash of the set of the cell's parameters that are frozen */
    uint64_t gradient_in;  /* bit i: input i's gradient is wanted, since the vertex that gives the input can use it */
    uint64_t gradient_out; /* bit k: whether output k gets a gradient from vertices that read it */
    uint64_t read_out;     /* bit k: output k is computed, since a vertex, the loss or the calling program reads it */
    uint64_t recurrent_in; /* bit i: input i comes from a cell that reads this cell, directly or not (recurrence) */
    uint64_t recurrent_out;
    uint64_t asked_gradients; /* bit k: the caller asked for the gradient of output k */
    uint32_t training, drops; /* training: whether the batch trains; drops: whether dropout is on */
    uint32_t fixed;           /* whether the parameters are fixed: none gets a gradient */
    /* whether the gradients for all nodes that a list input reads may be stored as one vector and, per node, a scalar to multiply it by */
    uint32_t scales;
    uint32_t in_place; /* whether instructions can read and write values in memory, without buffers (in_place.c) */
    uint32_t group;    /* number of CTAs or threads in a group, which holds all weights */
    /* 0: a group's processors share the main passes (run level by level through the graph); else processor owner - 1 alone runs them */
    uint32_t owner;
    vpps_row_rule rows; /* the device's rule */
} vpps_cell_needs;
_Static_assert(sizeof(vpps_cell_needs) == 7 * sizeof(uint64_t) + 14 * sizeof(uint32_t), "no padding");

/* The meaning of an integer that the batch's program (script) has for each vertex of a cell, besides the offsets of the inputs. */
typedef enum vpps_word_kind {
    VPPS_WORD_INDEX, /* number `value` of the integers that the caller gives with the vertex (vpps_pull_index) */
    VPPS_WORD_IMM,   /* for a vertex that is one op: the op's integer, such as a class, or the bits of the op's float */
    /* dropout: number of the vertex's first element in the batch, which determines the random mask */
    VPPS_WORD_DROPOUT
} vpps_word_kind;

typedef struct vpps_cell_word {
    uint8_t kind;
    uint32_t value;
} vpps_cell_word;

typedef struct vpps_cell_lookup {
    /* the table; VPPS_NO_PARAM: values left on the device (vpps_keep): an entry's number is an offset in memory */
    vpps_param table;
    /* Where the number of the table's entry comes from. VPPS_WORD_INDEX: from number `value` of the integers that the caller gives with
     * each vertex (vpps_pull_index). VPPS_WORD_IMM: from the vertex, a single op. VPPS_WORD_DROPOUT: the constant `value`. */
    uint8_t kind;
    uint32_t value;
} vpps_cell_lookup;

/* An output of the cell. `value`: number of its value in the compiled cell; VPPS_NONE: no vertex reads the output. */
typedef struct vpps_cell_output {
    uint32_t value;
    uint32_t node; /* number of the operation (node) that is the output, in the cell that the user recorded */
    /* If the cell has a condition: number of the input that replaces the output where the condition does not hold; VPPS_NONE: zeros do. */
    uint32_t otherwise;
} vpps_cell_output;

typedef struct vpps_compiled_cell {
    char *name; /* name of the recorded cell, or of the op */
    vpps_cell_needs needs;
    vpps_cell_value *values;
    uint32_t n_values;
    vpps_cell_arg *args;
    uint32_t n_args;
    uint32_t n_forward; /* number of forward values, the first in `values`; all others belong to backward */
    /* the cell's outputs: nodes of the recorded cell that other vertices may read */
    vpps_cell_output outputs[VPPS_CELL_MOST];
    vpps_cell_lookup lookups[VPPS_CELL_MOST];
    vpps_cell_word words[VPPS_CELL_MOST];
    /* the inputs: values that a vertex reads from others; if the cell is one op, input i is the op's argument i */
    vpps_cell_input inputs[VPPS_CELL_MOST];
    uint8_t input_axis[VPPS_CELL_MOST];
    /* for each output: number of the value that is its gradient; VPPS_NONE: the host does not read the gradient */
    uint32_t gradient_of[VPPS_CELL_MOST];
    uint32_t n_outputs, n_inputs, n_lookups, n_words;
    uint32_t n_lists;
    vpps_condition_data condition;
    uint32_t holds; /* number of the condition's value, > 0 at vertices that run; not valid after vpps_simplify */
    /* number of values that a vertex reads from others: [0]: single ones; [d]: from each member of its list d - 1 */
    uint32_t inputs_of[VPPS_AXES];
    bool is_data; /* whether the cell is an input op, whose value is data that the batch brings */
    /* number of elements that dropout may zero: [0] per vertex, [d] per node that list input d - 1 (of many) reads */
    uint64_t dropout_elems[VPPS_AXES];
    vpps_cell_contribution *contributions;
    uint32_t n_contributions;
    vpps_cell_outer *outers;
    uint32_t n_outers;
    /* stages (parts of the cell) of all passes, in the order in which they run; the stages of pass p begin at first_stage[p] */
    vpps_cell_stage *stages;
    uint32_t n_stages, first_stage[VPPS_PASSES + 1];
    uint32_t *order; /* numbers of the values in the order in which they are computed */
    /* flops, forward and backward together: [0] per vertex, [d] per node that list input d - 1 (of many nodes) reads */
    uint64_t flops[VPPS_AXES];
    /* for each record (area of kept values): words per vertex or, for the record of a list input, per node that the input reads */
    uint32_t kept_words[VPPS_RECORDS];
    struct vpps_program *programs; /* a program (steps) for each part of the cell, then one for parameters' gradients */
    void *device_program;          /* the device's own form of the cell; device_free frees it */
    void (*device_free)(void *program);
} vpps_compiled_cell;

/* A stage runs in forward or in backward. Returns the number of the record (memory area) of values that are used only in this pass. */
static inline uint32_t vpps_pass_record(const vpps_compiled_cell *c, uint32_t stage) {
    return c->stages[stage].backward ? VPPS_RECORD_BACKWARD : VPPS_RECORD_FORWARD;
}

static inline bool vpps_is_run(const vpps_cell_value *v, uint32_t opcode) {
    return v->kind == VPPS_VALUE_RUN && v->run.opcode == opcode;
}

static inline bool vpps_is_product(const vpps_cell_value *v) {
    return v->kind == VPPS_VALUE_PRODUCT || v->kind == VPPS_VALUE_PRODUCT_T;
}

static inline vpps_param vpps_bias_of(const vpps_cell_value *v) {
    return v->kind == VPPS_VALUE_PRODUCT ? v->bias : VPPS_NO_PARAM;
}

/* Returns the parameter that a value other than a product reads, or a product's bias; VPPS_NO_PARAM: none. */
static inline vpps_param vpps_param_of(const vpps_cell_value *v) {
    return v->kind == VPPS_VALUE_PARAMETER ? v->vector : v->kind == VPPS_VALUE_RUN ? v->run.table : vpps_bias_of(v);
}

/* Returns whether the cell stores some gradient for an input as two factors, a vector and a scalar. */
static inline bool vpps_has_scaled(const vpps_compiled_cell *c) {
    for (uint32_t j = 0; j < c->n_contributions; j++)
        if (c->contributions[j].scaled) return true;
    return false;
}

static inline bool vpps_is_output(const vpps_compiled_cell *c, uint32_t value) {
    for (uint32_t k = 0; k < c->n_outputs; k++)
        if (c->outputs[k].value == value) return true;
    return false;
}

static inline uint32_t vpps_value_words(const vpps_cell_value *v) { return v->rows * v->cols; }

/* Returns whether values of this many rows are divided by rows among virtual processors (CTAs, or a CPU's threads). */
static inline bool vpps_rows_dealt(const vpps_cell_needs *needs, uint32_t rows) {
    const vpps_row_rule *r = &needs->rows;
    if (r->least) return rows >= r->least;
    return rows >= (uint64_t)r->unit * needs->group || (r->enough && rows >= r->enough);
}

/* Returns whether a device may skip a stage (part of the cell) at a vertex whose condition (vpps_condition) is false.
 * Not in training, where backward reads the stage's values; nor an eager stage, which may precede the condition. */
static inline bool vpps_stage_may_skip(const vpps_compiled_cell *c, const vpps_cell_stage *s) {
    return c->condition.there && !c->needs.training && (s->pass == VPPS_PASS_MAIN || s->pass == VPPS_PASS_LAZY);
}

static inline bool vpps_condition_holds(const vpps_condition_data *condition, float x) {
    if (!condition->is) return x > 0;
    const float off = x - condition->value;
    return off < 0.5f && off > -0.5f;
}

/* Returns the range of a value's words that processor m of a group owns: its rows of a vector or, if rows are not divided, all words. */
static inline vpps_rows vpps_own_rows(const vpps_cell_needs *needs, uint32_t rows, uint32_t cols, uint32_t m) {
    if (!vpps_rows_dealt(needs, rows)) return (vpps_rows){0, rows * cols};
    return vpps_rows_of(rows, needs->rows.unit, needs->group, m);
}

/* Returns a lookup table's name for messages; VPPS_NO_PARAM stands for values kept on the device (vpps_keep). */
static inline const char *vpps_table_name(const vpps_model *model, vpps_param table) {
    return table == VPPS_NO_PARAM ? "kept values" : model->params[table].name;
}

/* Returns whether a stage (part) of the cell makes the value, unlike inputs, lookups and parameters. */
static inline bool vpps_is_made(const vpps_cell_value *v) {
    return v->kind != VPPS_VALUE_INPUT && v->kind != VPPS_VALUE_LOOKUP && v->kind != VPPS_VALUE_PARAMETER;
}

/* Returns the number of partial sums, of different CTAs or threads, whose sum is the value; 1: it has none. */
static inline uint32_t vpps_shares_of(const vpps_cell_value *v) {
    return v->kind == VPPS_VALUE_PRODUCT_T && v->split == VPPS_SPLIT_ROWS ? v->shares : 1;
}
static inline bool vpps_makes_shares(const vpps_cell_value *v) { return vpps_shares_of(v) > 1; }

/* Returns the rows of a product, of `rows` rows, for which processor m of a group computes a partial sum, over one of `shares` parts of the
 * multiplied vector: part m % shares. */
static inline vpps_rows vpps_share_rows(const vpps_cell_needs *needs, uint32_t rows, uint32_t shares, uint32_t m) {
    return vpps_rows_of(rows, needs->rows.unit, needs->group / shares, m / shares);
}

/* Returns the distance in words between the beginnings of two successive partial sums of a value of `words` words. */
static inline uint32_t vpps_share_words(uint32_t words) { return words < 16 ? words : (words + 15) & ~15u; }

/* Returns a value's words in memory, where other parts of the cell read the value or processors' partial sums of it. */
static inline uint32_t vpps_place_words(const vpps_cell_value *v) {
    return vpps_share_words(vpps_value_words(v)) * vpps_shares_of(v);
}

/* Returns whether two kept values overlap in memory: they have one record (memory area), and common words there. */
static inline bool vpps_places_meet(const vpps_compiled_cell *c, uint32_t u, uint32_t v) {
    const vpps_cell_value *a = &c->values[u], *b = &c->values[v];
    return a->kept && b->kept && a->record == b->record && a->offset < b->offset + vpps_place_words(b) &&
           b->offset < a->offset + vpps_place_words(a);
}

/* Makes a compiled cell, without backward, from a cell that the user recorded. `drops`: whether dropout is on. */
vpps_status vpps_lower_cell(const vpps_cell_data *cell, bool drops, vpps_compiled_cell **out);
/* Makes a compiled cell, without backward, for one op of n arguments. Argument i has shapes[2 * i] rows and
 * shapes[2 * i + 1] columns; an affine op multiplies it by matrices[i]. as_list: the op has one argument, an input that
 * takes any number of nodes of this shape. imm: a slice op's first row. drops: whether dropout is on. */
vpps_status vpps_lower_op(const vpps_signature *s, const vpps_param *matrices, uint32_t n, const uint32_t *shapes,
                          bool as_list, uint32_t imm, bool drops, vpps_compiled_cell **out);

/* Compiles, in place, a cell that vpps_lower_cell or vpps_lower_op made. */
vpps_status vpps_compile_cell(const vpps_model *model, vpps_compiled_cell *c, const vpps_cell_needs *needs);
void vpps_compiled_cell_free(vpps_compiled_cell *c);

/* ---- functions that the compiler's passes call */

/* vpps_cell_add appends a value to the cell; vpps_cell_add_arg appends an argument to the last value. VPPS_NONE, false: out of memory. */
uint32_t vpps_cell_add(vpps_compiled_cell *c, vpps_cell_value v);
bool vpps_cell_add_arg(vpps_compiled_cell *c, uint32_t value, uint32_t element, vpps_param matrix);
/* Simplifies a new value v, whose arguments are values of c. Returns a value of c that is equal to v by algebra; VPPS_NONE: none is. */
uint32_t vpps_simplify_value(const vpps_compiled_cell *c, vpps_cell_value *v, vpps_cell_arg *args);
vpps_status vpps_separate_eager(vpps_compiled_cell *c);
/* Marks the forward values that depend on a recurrent input (an output of a cell that reads this cell, directly or not), and the backward
 * values that depend on the gradient of a recurrent output. */
void vpps_mark_recurrent(const vpps_compiled_cell *c, uint8_t *recurrent);
vpps_status vpps_differentiate(const vpps_model *model, vpps_compiled_cell *c);
vpps_status vpps_simplify(vpps_compiled_cell *c);
vpps_status vpps_split_cell(const vpps_model *model, vpps_compiled_cell *c);
void vpps_order_stages(vpps_compiled_cell *c);
/* Returns whether a processor needs all rows of argument i to compute its own rows of value x (rows are divided among processors). */
bool vpps_reads_whole(const vpps_compiled_cell *c, const vpps_cell_value *x, uint32_t i);
