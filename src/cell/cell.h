/* cell.h - compiled cells: what a vertex function becomes before any batch is seen.
 *
 *   lower.c          a recorded cell, or a single op, as values and the operations that make them
 *   differentiate.c  the backward operations; gather and scatter, pull and push change places (Cavs, section 3.1)
 *   simplify.c       equal values once, what nobody reads dropped; algebra.c: constants and algebra
 *   split.c          parts (eager, main, lazy: Cavs, section 3.4), stages, what is kept, in how many places
 *   order.c          which stages wait for what other VPs did
 *   program.c        what each stage does, step by step: program.h
 *
 * A compiled cell is the same for all devices and batches: a value of a vertex lies at an offset in the vertex's record of kept values; the
 * batch's records say where an input lies.
 */
#pragma once

#include "graph/graph.h"
#include "isa/isa.h"
#include "plan/plan.h"

#define VPPS_NONE UINT32_MAX

/* What makes a value. */
typedef enum vpps_cell_kind {
    VPPS_VALUE_INPUT,     /* gathered or pulled, where the record says */
    VPPS_VALUE_LOOKUP,    /* an entry of a table, where the record says */
    VPPS_VALUE_DATA,      /* data of an input op, in the script */
    VPPS_VALUE_PARAMETER, /* a vector of the model */
    VPPS_VALUE_GRADIENT,  /* of an output: the sum of what its users contributed */
    VPPS_VALUE_RUN,       /* an instruction of isa.def */
    VPPS_VALUE_PRODUCT,   /* sum of matrices times values, plus a bias or a value made before */
    VPPS_VALUE_PRODUCT_T, /* sum of transposed matrices times values; made by rows, it is a partial sum, or by_columns */
    VPPS_VALUE_POSITIONS  /* the positions that its argument, the value before it, a MAX_OF or MIN_OF, found */
} vpps_cell_kind;

/* How a stage's work is shared out inside a group of VPs. */
typedef enum vpps_split {
    VPPS_SPLIT_ANY,      /* while compiling: not decided yet */
    VPPS_SPLIT_ROWS,     /* every VP does the rows it owns, for all vertices */
    VPPS_SPLIT_VERTICES, /* every VP does whole vertices */
    VPPS_SPLIT_OFF       /* of a value that no stage makes */
} vpps_split;

/* Records of kept values: one for each axis, and two of vertices, for values that only their own vertex reads, and only in the pass that
 * makes them. Those two take memory only while that pass runs. */
enum { VPPS_RECORD_FORWARD = VPPS_AXES, VPPS_RECORD_BACKWARD, VPPS_RECORDS };

static inline bool vpps_is_pass_record(uint32_t record) { return record >= VPPS_AXES; }

/* The axis of a record's items. */
static inline uint32_t vpps_axis_of(uint32_t record) { return vpps_is_pass_record(record) ? 0 : record; }

/* In the order in which they run. The two main parts run level by level, the others once, over all vertices of the cell
 * in the component's strongly connected part. */
typedef enum vpps_part {
    VPPS_PART_EAGER, /* forward, needs no child */
    VPPS_PART_MAIN,
    VPPS_PART_LAZY, /* forward, no parent needs it */
    VPPS_PART_BACK_EAGER,
    VPPS_PART_BACK_MAIN,
    VPPS_PART_BACK_LAZY,
    VPPS_PARTS
} vpps_part;

/* Is it run level by level? Other parts are run once, over all vertices. */
static inline bool vpps_by_levels(uint32_t part) { return part == VPPS_PART_MAIN || part == VPPS_PART_BACK_MAIN; }

/* An operand: a value, or one element of it where the instruction wants a scalar. */
typedef struct vpps_cell_arg {
    uint32_t value;
    uint32_t element;  /* for s: element of the value; for list weights: 0 */
    vpps_param matrix; /* PRODUCT, PRODUCT_T: what multiplies the value; VPPS_NO_PARAM: a value to start from */
} vpps_cell_arg;

/* base + the sum over axes d of list[d] times the members of the vertex's list d - 1. */
typedef struct vpps_cell_count {
    uint32_t base, list[VPPS_AXES]; /* list[0] is 0 */
} vpps_cell_count;

/* Does it depend on how many members lists have? */
static inline bool vpps_counts_members(const vpps_cell_count *count) {
    bool any = false;
    for (uint32_t d = 1; d < VPPS_AXES; d++) any |= count->list[d] != 0;
    return any;
}

/* Where a number among an instruction's operands comes from. */
typedef enum vpps_number_kind {
    VPPS_NUMBER_NONE,     /* the instruction has no such operand */
    VPPS_NUMBER_CONSTANT, /* `real` of an f, `whole` of a u */
    VPPS_NUMBER_WORD,     /* word `word` of the vertex's record */
    VPPS_NUMBER_INVERSE,  /* f: 1 / count; 0 where the count is 0 */
    VPPS_NUMBER_POSITION, /* u: count + the item's own number among its list's members */
    VPPS_NUMBER_ELEMENT   /* e: word `word` + count + own number times the value's words */
} vpps_number_kind;

typedef struct vpps_cell_number {
    uint8_t kind; /* vpps_number_kind: which of the others mean something */
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

/* What an instruction does beside its arguments. */
typedef struct vpps_cell_run {
    uint8_t opcode; /* of isa.def */
    uint8_t op;     /* in forward: the vpps_op that it is */
    /* SOFTMAX and its gradient of all members' scalars, each member's the result; WEIGHTED_SUM of all members with a
     * weight each. STACK: of all members, and zeros below them; SLICE: the rows of such a stack that are the member's. */
    bool over_list;
    bool recompute;        /* backward makes it a second time, so that forward's need not be kept */
    vpps_param table;      /* ENTRY; of MATRIX the matrix */
    vpps_cell_number f, u; /* u: of letter u or e */
} vpps_cell_run;

typedef struct vpps_cell_value {
    uint8_t kind;   /* vpps_cell_kind: which member of the union means something */
    uint8_t axis;   /* 0: one for each vertex; d: one for each member of the vertex's list d - 1 */
    uint8_t split;  /* vpps_split */
    uint8_t part;   /* vpps_part */
    bool kept;      /* lies in the record of kept values: another stage, vertex or the host's request reads it */
    uint8_t record; /* kept: the number of the record that has it: its axis, or that of a pass record */
    uint32_t rows, cols;
    uint32_t first_arg, n_args; /* in args: of a RUN in the order of the letters t s v * of its instruction */
    uint32_t stage;             /* that makes it; VPPS_NONE: none does */
    uint32_t offset;            /* kept: word in the record */
    union {
        uint32_t input;    /* INPUT */
        uint32_t lookup;   /* LOOKUP */
        uint32_t output;   /* GRADIENT */
        vpps_param vector; /* PARAMETER */
        vpps_cell_run run; /* RUN */
        vpps_param bias;   /* PRODUCT: a vector, or VPPS_NO_PARAM */
        bool by_columns;   /* PRODUCT_T by rows: made whole, not in shares, since VPs also own columns */
    };
} vpps_cell_value;

/* A gradient that a vertex contributes to what it read: an input, or a table's entry. */
typedef struct vpps_cell_contribution {
    bool lookup;
    uint32_t index; /* of the input or lookup */
    uint32_t value;
    bool partial; /* one share for every VP of the group */
    /* The value is `vector`, of the vertex, times `scalar`, of the member. Both are kept, and who sums up the gradient multiplies them: the
     * value itself lies nowhere. */
    bool scaled;
    uint32_t vector, scalar;
} vpps_cell_contribution;

/* A parameter's gradient, made when the vertices are done: matrix += dy x^T; or, with x VPPS_NONE, a vector += every column of dy, and
 * a matrix += dy. */
typedef struct vpps_cell_outer {
    vpps_param param;
    uint32_t dy, x;
} vpps_cell_outer;

/* Sets of inputs or outputs, by their numbers: `own` has those of which a VP reads or makes only its own rows, `others` the rest. */
typedef struct vpps_stage_set {
    uint64_t own, whole;
} vpps_stage_set;

typedef struct vpps_cell_stage {
    uint8_t part, split;
    bool backward;
    bool uses_pass_record; /* reads or makes what lies in its pass record */
    uint32_t first, n;     /* in order[] */
    uint32_t
        after; /* the last stage that all VPs must have run at the vertex before this one; VPPS_NONE: there is none */
    vpps_stage_set inputs, outputs;          /* that it reads; that it makes */
    vpps_stage_set gradients, contributions; /* outputs whose gradients it sums up; inputs that it contributes to */
} vpps_cell_stage;

/* How a device's VPs share a cell's matrices. */
typedef struct vpps_row_rule {
    uint32_t unit;        /* rows are dealt in blocks of so many */
    uint32_t least;       /* what has fewer is not dealt; 0: `unit` for each VP */
    uint32_t enough;      /* with a least of 0: matrices of so many rows are dealt to groups of any size; 0: none are */
    bool columns;         /* VPs also own columns of matrices, so that backward's products make whole rows */
    uint32_t split_elems; /* elements of matrices from which on rows are shared out, not vertices */
} vpps_row_rule;

/* What a batch needs of a cell: with the cell itself the key of a compiled cell. */
typedef struct vpps_cell_needs {
    bool training;
    bool drops;            /* dropout is on */
    uint64_t frozen;       /* hash of which of its parameters are */
    uint64_t gradient_in;  /* bit i: input i's producer can use a gradient */
    uint64_t gradient_out; /* bit k: output k has users that contribute */
    uint64_t read_out;     /* bit k: output k is read, by a vertex or the loss, or asked for; others are left out */
    uint64_t recurrent_in; /* bit i: input i comes from a cell that this one leads to */
    uint64_t recurrent_out;
    uint64_t asked_gradients; /* bit k: the host reads output k's gradient */
    bool fixed;               /* no parameter's gradient is made */
    bool scales;              /* the device takes contributions that are `scaled` */
    uint32_t group;           /* VPs of a group: one owns all rows */
    vpps_row_rule rows;       /* the device's */
} vpps_cell_needs;

/* Words of a vertex's record beside the places of what it reads. */
typedef enum vpps_word_kind {
    VPPS_WORD_INDEX,  /* pulled index number `value` */
    VPPS_WORD_IMM,    /* of a vertex of one op: its own number (a factor, a class) */
    VPPS_WORD_DROPOUT /* number of its first element under dropout */
} vpps_word_kind;

typedef struct vpps_cell_word {
    uint8_t kind;
    uint32_t value;
} vpps_cell_word;

typedef struct vpps_cell_lookup {
    vpps_param table; /* VPPS_NO_PARAM: a kept value, whose offset in the pool is the record's word */
    uint8_t kind;     /* VPPS_WORD_INDEX, VPPS_WORD_IMM; VPPS_WORD_DROPOUT: the row is `value` always */
    uint32_t value;
} vpps_cell_lookup;

/* An output, of the same number as in the recorded cell. Value VPPS_NONE: nobody reads it. */
typedef struct vpps_cell_output {
    uint32_t value;
    uint32_t node; /* of the recorded cell */
    /* In a cell with a condition: the input that the output equals where the condition does not hold; VPPS_NONE: zeros. */
    uint32_t otherwise;
} vpps_cell_output;

typedef struct vpps_compiled_cell {
    char *name; /* of the cell, or of the op */
    vpps_cell_needs needs;
    vpps_cell_value *values;
    uint32_t n_values;
    vpps_cell_arg *args;
    uint32_t n_args;
    uint32_t n_forward; /* values before this one are forward's */
    /* outputs: a template's nodes that others may read */
    vpps_cell_output outputs[VPPS_CELL_MOST];
    vpps_cell_lookup lookups[VPPS_CELL_MOST];
    vpps_cell_word words[VPPS_CELL_MOST];
    vpps_cell_input inputs[VPPS_CELL_MOST]; /* as recorded; of an op, `pulled` and `child`: number of its argument */
    uint8_t input_axis[VPPS_CELL_MOST];
    uint32_t gradient_of[VPPS_CELL_MOST]; /* the gradient of output k that the host reads; VPPS_NONE: none */
    uint32_t n_outputs, n_inputs, n_lookups, n_words;
    uint32_t n_lists;
    vpps_condition_data condition;
    uint32_t inputs_of[VPPS_AXES];     /* inputs of each axis */
    bool is_data;                      /* an input op: its one value is given with the batch */
    uint64_t dropout_elems[VPPS_AXES]; /* of a vertex, and for each member of its lists */
    vpps_cell_contribution *contributions;
    uint32_t n_contributions;
    vpps_cell_outer *outers;
    uint32_t n_outers;
    vpps_cell_stage *stages; /* part after part: those of each from the first one to the next part's */
    uint32_t n_stages, first_stage[VPPS_PARTS + 1];
    uint32_t *order;                   /* values by stage */
    uint64_t flops[VPPS_AXES];         /* of all passes: of a vertex, and of each member of its lists */
    uint32_t kept_words[VPPS_RECORDS]; /* of a vertex, of a member; of a vertex, by pass */
    uint64_t last_used;                /* in which batch: types.h */
    bool superseded;                   /* another compiled cell of the type does all that this one does, and more */
    struct vpps_program *programs;     /* of each stage: program.h */
    void *device_program;              /* what the device made of it; freed by device_free */
    void (*device_free)(void *program);
} vpps_compiled_cell;

/* The record of a stage's pass. */
static inline uint32_t vpps_pass_record(const vpps_compiled_cell *c, uint32_t stage) {
    return c->stages[stage].backward ? VPPS_RECORD_BACKWARD : VPPS_RECORD_FORWARD;
}

/* Is it made by this instruction? */
static inline bool vpps_is_run(const vpps_cell_value *v, uint32_t opcode) {
    return v->kind == VPPS_VALUE_RUN && v->run.opcode == opcode;
}

static inline bool vpps_is_product(const vpps_cell_value *v) {
    return v->kind == VPPS_VALUE_PRODUCT || v->kind == VPPS_VALUE_PRODUCT_T;
}

/* The vector that a product starts from; VPPS_NO_PARAM: none. */
static inline vpps_param vpps_bias_of(const vpps_cell_value *v) {
    return v->kind == VPPS_VALUE_PRODUCT ? v->bias : VPPS_NO_PARAM;
}

/* The parameter that a value names beside its arguments' matrices: itself, its bias, its table or matrix; or VPPS_NO_PARAM. */
static inline vpps_param vpps_param_of(const vpps_cell_value *v) {
    return v->kind == VPPS_VALUE_PARAMETER ? v->vector : v->kind == VPPS_VALUE_RUN ? v->run.table : vpps_bias_of(v);
}

/* Is any contribution of the cell scaled? */
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

/* Are so many rows dealt to the VPs of a group where rows are shared out? If not, each VP reads all of them. */
static inline bool vpps_rows_dealt(const vpps_cell_needs *needs, uint32_t rows) {
    const vpps_row_rule *r = &needs->rows;
    if (r->least) return rows >= r->least;
    return rows >= (uint64_t)r->unit * needs->group || (r->enough && rows >= r->enough);
}

/* May a device skip a stage at vertices where the condition does not hold, and only give the stage's outputs their values for that case?
 * Not in training, since backward needs all that forward keeps; nor in an eager part, which may run before the condition is known. */
static inline bool vpps_stage_may_skip(const vpps_compiled_cell *c, const vpps_cell_stage *s) {
    return c->condition.there && !c->needs.training && (s->part == VPPS_PART_MAIN || s->part == VPPS_PART_LAZY);
}

/* Does the condition hold, if its input is x? */
static inline bool vpps_condition_holds(const vpps_condition_data *condition, float x) {
    if (!condition->is) return x > 0;
    const float off = x - condition->value;
    return off < 0.5f && off > -0.5f;
}

/* Rows of such a value, a column, that member m of a group owns; all words of one that is not dealt. */
static inline vpps_rows vpps_own_rows(const vpps_cell_needs *needs, const vpps_cell_value *v, uint32_t m) {
    if (!vpps_rows_dealt(needs, v->rows)) return (vpps_rows){0, vpps_value_words(v)};
    return vpps_rows_of(v->rows, needs->rows.unit, needs->group, m);
}

/* A lookup's table, for people; VPPS_NO_PARAM stands for the values that a handle keeps. */
static inline const char *vpps_table_name(const vpps_model *model, vpps_param table) {
    return table == VPPS_NO_PARAM ? "kept values" : model->params[table].name;
}

/* Does a stage make the value? Inputs, lookups and parameters are made elsewhere. */
static inline bool vpps_is_made(const vpps_cell_value *v) {
    return v->kind != VPPS_VALUE_INPUT && v->kind != VPPS_VALUE_LOOKUP && v->kind != VPPS_VALUE_PARAMETER;
}

/* Does every VP of a group make a share of the value, from its rows of the matrices? The shares' sum is the value. */
static inline bool vpps_makes_shares(const vpps_cell_value *v) {
    return v->kind == VPPS_VALUE_PRODUCT_T && v->split == VPPS_SPLIT_ROWS && !v->by_columns;
}

/* How many shares there are of a value: one, where it is made whole. */
static inline uint32_t vpps_shares_of(const vpps_compiled_cell *c, const vpps_cell_value *v) {
    return vpps_makes_shares(v) ? c->needs.group : 1;
}

/* Words from one share to the next: the value's, rounded up. */
static inline uint32_t vpps_share_words(const vpps_cell_value *v) {
    const uint32_t words = vpps_value_words(v);
    return words < 16 ? words : (words + 15) & ~15u;
}

/* Words of a kept value's place in the record: all of its shares. */
static inline uint32_t vpps_place_words(const vpps_compiled_cell *c, const vpps_cell_value *v) {
    return vpps_share_words(v) * vpps_shares_of(c, v);
}

/* Do two kept values lie in the same words of a record? */
static inline bool vpps_places_meet(const vpps_compiled_cell *c, uint32_t u, uint32_t v) {
    const vpps_cell_value *a = &c->values[u], *b = &c->values[v];
    return a->kept && b->kept && a->record == b->record && a->offset < b->offset + vpps_place_words(c, b) &&
           b->offset < a->offset + vpps_place_words(c, a);
}

/* The forward values of a recorded cell, or of one op with n arguments of the given shapes (pairs rows, cols); `matrices`:
 * the s->n_matrices of an affine one. `as_list`: its arguments are the members of one list. */
vpps_status vpps_lower_cell(const vpps_cell_data *cell, bool drops, vpps_compiled_cell **out);
vpps_status vpps_lower_op(const vpps_signature *s, const vpps_param *matrices, uint32_t n, const uint32_t *shapes,
                          bool as_list, uint32_t imm, bool drops, vpps_compiled_cell **out);

/* Compiles what was lowered, in place. */
vpps_status vpps_compile_cell(const vpps_model *model, vpps_compiled_cell *c, const vpps_cell_needs *needs);
void vpps_compiled_cell_free(vpps_compiled_cell *c);

/* ---- between the passes */

/* Appends a value; its arguments are appended after it by vpps_cell_add_arg. VPPS_NONE: out of memory. */
uint32_t vpps_cell_add(vpps_compiled_cell *c, vpps_cell_value v);
bool vpps_cell_add_arg(vpps_compiled_cell *c, uint32_t value, uint32_t element, vpps_param matrix);
/* The value of c that is equal to v, whose arguments are values of c; VPPS_NONE: there is none. v and its arguments may be simplified. */
uint32_t vpps_simplify_value(const vpps_compiled_cell *c, vpps_cell_value *v, vpps_cell_arg *args);
vpps_status vpps_separate_eager(vpps_compiled_cell *c);
vpps_status vpps_differentiate(const vpps_model *model, vpps_compiled_cell *c);
vpps_status vpps_simplify(vpps_compiled_cell *c);
vpps_status vpps_split_cell(const vpps_model *model, vpps_compiled_cell *c);
void vpps_order_stages(vpps_compiled_cell *c);
/* Does x read its argument i whole, where it makes rows? */
bool vpps_reads_whole(const vpps_compiled_cell *c, const vpps_cell_value *x, uint32_t i);
