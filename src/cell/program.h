/* program.h - the program of each stage (part between two barriers) of a compiled cell, and of its parameters' gradients, as steps. The CPU
 * runs them over tiles (a few vertices), a GPU's kernel is printed from them, verify executes them as formulas, `vpps cell` shows them.
 *
 * A step runs over items: the vertices of a task (axis 0), or the members (nodes read) of their list input d - 1 (axis d). Values that a
 * stage makes or loads are in slots (buffers). A slot has room for one value of each item; the device decides where slots are: in cache, in
 * registers or in shared memory. */
#pragma once

#include "cell/cell.h"

/* Where an operand's value lies. */
typedef enum vpps_place {
    VPPS_PLACE_NONE,   /* there is no operand, such as the bias of a product without one */
    VPPS_PLACE_SLOT,   /* slot `at` */
    VPPS_PLACE_RECORD, /* word `at` of a record: memory for values of the vertex, or of a node that the vertex reads */
    /* input number `at` of the vertex (list input: the value of one of its nodes); the batch's program (script) tells where it lies */
    VPPS_PLACE_INPUT,
    VPPS_PLACE_ENTRY,     /* table entry that lookup number `at` reads; the batch's program has the entry's number */
    VPPS_PLACE_PARAMETER, /* vector parameter number `at` of the model, equal for all vertices */
    VPPS_PLACE_DATA,      /* numbers that the caller gives for the vertex (vpps_input), kept in the batch's program */
    /* a gradient that the vertex computes for one of its inputs: number `at` of c->contributions (gradients for inputs) */
    VPPS_PLACE_CONTRIBUTION,
    VPPS_PLACE_GRADIENT /* the gradient of parameter number `at` */
} vpps_place;

/* Which elements of an operand a step needs to compute element e of its result. */
typedef enum vpps_access {
    VPPS_ACCESS_OWN,    /* element e */
    VPPS_ACCESS_SCALAR, /* element `element` */
    VPPS_ACCESS_COLUMN, /* of an operand with an element per column of the result: the one for the column computed */
    VPPS_ACCESS_WHOLE,  /* all elements */
    VPPS_ACCESS_MEMBERS /* the same element as the result's, of every node that a list input reads */
} vpps_access;

typedef struct vpps_operand {
    uint8_t place, access; /* place: a vpps_place; access: a vpps_access */
    uint8_t axis;          /* 0: one value for each vertex; d: one for each of the many nodes of list input d - 1 */
    uint8_t record;        /* place RECORD: number of the record (area of the vertex's memory) that holds the value */
    /* whether memory holds partial sums of the value, made by CTAs or threads, which readers add up */
    bool shares;
    /* 0: the operand has all rows of its value. Else only those that the CTA or thread owns (vpps_dealt_rows). */
    uint16_t dealt;
    uint32_t at;
    uint32_t element; /* access SCALAR: number of the one element that the step reads */
    uint32_t rows, cols;
    uint32_t value;    /* the cell's value */
    vpps_param matrix; /* operand of a PRODUCT: the matrix that multiplies the operand */
} vpps_operand;

typedef enum vpps_step_kind {
    /* fills a slot (buffer): value of an earlier part of the cell, input, table entry, parameter or caller's numbers */
    VPPS_STEP_LOAD,
    /* fills a slot (buffer) with the gradient of output number `output`: the sum over all vertices that read the output */
    VPPS_STEP_GRADIENT,
    VPPS_STEP_RUN,        /* fills a slot (buffer) with the result of an isa.def instruction on the operands */
    VPPS_STEP_PRODUCT,    /* fills a slot (buffer) or memory with start + the sum of matrices times operands */
    VPPS_STEP_STORE,      /* copies a slot (buffer) to memory, for later parts of the cell or for other vertices */
    VPPS_STEP_CONTRIBUTE, /* copies a value to a contribution: a gradient for an input */
    VPPS_STEP_OUTER       /* adds dy x^T, or dy if there is no second operand, to a parameter's gradient */
} vpps_step_kind;

typedef struct vpps_program_step {
    uint8_t kind;      /* vpps_step_kind */
    uint8_t axis;      /* 0: the step runs over vertices; d: over the members of list number d - 1 of each vertex */
    vpps_operand to;   /* where the step's result is written */
    uint32_t first, n; /* the step's operands: operands[first] to operands[first + n - 1] of the program */
    union {
        uint32_t output; /* step GRADIENT: number of the output whose gradient the step sums up */
        struct {
            vpps_cell_run of;
            /* Numbers of operands of the letters t (tensor), s (scalar), v (vector of weights) in isa.def, which come
             * in this order. If isa.def has a *, the remaining operands are tensors, too, as many as the step has. */
            uint8_t tensors, scalars, weights;
            /* Whether one call may compute many vertices (or list members) whose values are adjacent, as if they were
             * one long vector: element e of the result needs only elements e, and constants are equal for all. */
            bool uniform;
            /* operand for the second result of MAX_OF and MIN_OF, the positions of the elements found */
            vpps_operand positions;
        } run;
        struct {
            bool transposed;    /* whether the product's matrices are transposed before they multiply */
            uint32_t shares;    /* number of equal parts of the multiplied vectors; each gives a partial sum */
            vpps_operand start; /* the bias vector or value that is added to the product; VPPS_PLACE_NONE: none */
        } product;
    };
} vpps_program_step;

typedef struct vpps_slot {
    uint8_t axis;   /* 0: the slot has a value for each vertex; d: for each of the many nodes of list input d - 1 */
    uint16_t dealt; /* 0: the slot has all rows of a value; else only those that this CTA or thread owns */
    bool taken;     /* while slots (buffers) are assigned: whether a value is in this slot */
    uint32_t words; /* size of the slot (buffer): number of words of one value */
} vpps_slot;

typedef struct vpps_slots {
    vpps_slot *at;
    uint32_t n;
} vpps_slots;

typedef struct vpps_program {
    vpps_program_step *steps;
    vpps_operand *operands;
    uint32_t n, n_operands;
    vpps_slots slots;
    /* true: each processor computes the rows that it owns, for all vertices; false: all rows, for the vertices that it owns */
    bool rows;
    /* lengths of the vectors whose rows CTAs or threads divide; vpps_operand.dealt is 1 + index of a length here */
    uint32_t *dealt;
    uint32_t n_dealt;
} vpps_program;

/* Makes c->programs: one for each stage (part), then one of OUTER steps (parameters' gradients), to run last. Fails with MEMORY. */
vpps_status vpps_make_programs(vpps_compiled_cell *c);
void vpps_free_programs(vpps_compiled_cell *c);

/* ---- functions of in_place.c, for devices that set in_place in vpps_cell_needs */

/* Makes steps read operands and write results in memory instead of slots (buffers), where they can. Slots without use get size 0. */
void vpps_place_in_memory(vpps_program *p);
/* Return whether step s can read operand o, and whether it can write its result, directly in memory. */
bool vpps_reads_in_place(const vpps_program *p, const vpps_program_step *s, const vpps_operand *o);
bool vpps_writes_in_place(const vpps_program *p, const vpps_program_step *s);

/* Returns whether element e of a step's result depends only on element e of its tensors, so that the result may overwrite a tensor. */
static inline bool vpps_goes_by_elements(const vpps_program_step *s) {
    return s->kind == VPPS_STEP_RUN && vpps_instructions[s->run.of.opcode].form == VPPS_FORM_EW && !s->run.weights;
}

/* Take and free a slot (buffer): `words` words for each vertex (axis 0), or for each of the many nodes of list input
 * axis - 1. A free slot is reused if axis, words and `dealt` (how rows are divided; 0: not) are equal. VPPS_NONE: no
 * memory. */
uint32_t vpps_take_slot(vpps_slots *slots, uint8_t axis, uint16_t dealt, uint32_t words);
static inline void vpps_release_slot(vpps_slots *slots, uint32_t slot) {
    if (slots->at) slots->at[slot].taken = false;
}

/* Returns the rows that CTA or thread m of a group owns of a vector with p->dealt[dealt - 1] rows. */
static inline vpps_rows vpps_dealt_rows(const vpps_compiled_cell *c, const vpps_program *p, uint32_t dealt,
                                        uint32_t m) {
    return vpps_rows_of(p->dealt[dealt - 1], c->needs.rows.unit, c->needs.group, m);
}

/* The computation of an OUTER step: the gradient of `param` += dy x^T. x is NULL if dy itself is added. */
typedef struct vpps_outer {
    vpps_param param;
    const vpps_operand *dy, *x;
} vpps_outer;

static inline bool vpps_same_value(const vpps_operand *a, const vpps_operand *b) {
    return a && b && a->value == b->value;
}

/* Returns an operand that reads value v in memory after the vertex's last stage (part of its work), when no buffer holds v any more. */
vpps_operand vpps_finished_operand(const vpps_compiled_cell *c, uint32_t v);

static inline uint32_t vpps_n_outers(const vpps_compiled_cell *c) { return c->programs[c->n_stages].n; }

/* Return step i of parameters' gradients: gradient += dy x^T, or += dy if x is NULL. vpps_outer_product_of is for steps that have an x. */
static inline vpps_outer vpps_outer_of(const vpps_compiled_cell *c, uint32_t i) {
    const vpps_program *p = &c->programs[c->n_stages];
    const vpps_operand *dy = &p->operands[p->steps[i].first];
    if (!dy) __builtin_unreachable();
    return (vpps_outer){p->steps[i].to.at, dy, p->steps[i].n > 1 ? dy + 1 : NULL};
}
static inline vpps_outer vpps_outer_product_of(const vpps_compiled_cell *c, uint32_t i) {
    const vpps_outer o = vpps_outer_of(c, i);
    return o.x ? o : (__builtin_unreachable(), o);
}

static inline uint32_t vpps_operand_words(const vpps_operand *o) { return o->rows * o->cols; }

/* Returns how many columns of a matrix an instruction computes one by one. Form ROW (isa.def, like a softmax) makes a
 * column from each column, REDUCE (like a dot product) an element from each; other forms: 1, all at once. */
static inline uint32_t vpps_step_columns(const vpps_program_step *s) {
    const vpps_form form = vpps_instructions[s->run.of.opcode].form;
    return form == VPPS_FORM_ROW ? s->to.cols : form == VPPS_FORM_REDUCE ? vpps_operand_words(&s->to) : 1;
}
