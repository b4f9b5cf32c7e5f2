/* program.h - the program of each stage of a compiled cell, as steps. No device decodes a cell any further: the CPU runs the steps over
 * tiles of vertices, a GPU's kernel is printed from them, verify executes them as formulas, and `vpps cell` shows them.
 *
 * A step runs over items: the vertices that a task names, or the members of one of their lists (its list axis). Values that a
 * stage makes or loads are in slots. A slot has room for one value of each item; the device says where that is: in cache, in
 * registers or in shared memory.
 */
#pragma once

#include "cell/cell.h"

/* Where a value lies. */
typedef enum vpps_place {
    VPPS_PLACE_NONE,        /* there is no such operand */
    VPPS_PLACE_SLOT,        /* slot `at` */
    VPPS_PLACE_RECORD,      /* the item's record of kept values, from word `at` on */
    VPPS_PLACE_INPUT,       /* where the script says that the item's input `at` is */
    VPPS_PLACE_ENTRY,       /* an entry of a table: where the script says that the vertex's lookup `at` is */
    VPPS_PLACE_PARAMETER,   /* vector `at` of the model, the same for every item */
    VPPS_PLACE_DATA,        /* the vertex's data, in the script */
    VPPS_PLACE_CONTRIBUTION /* the item's part of contribution `at` of the task */
} vpps_place;

/* The elements of the operand that an element of the result is made of. */
typedef enum vpps_access {
    VPPS_ACCESS_OWN,    /* element e, for element e of the result */
    VPPS_ACCESS_SCALAR, /* element `element` */
    VPPS_ACCESS_COLUMN, /* element c, for column c of the result: of a vector */
    VPPS_ACCESS_WHOLE,  /* all of them */
    VPPS_ACCESS_MEMBERS /* element e of every member of the vertex's list */
} vpps_access;

typedef struct vpps_operand {
    uint8_t place, access; /* vpps_place, vpps_access */
    uint8_t axis;          /* 0: one for the vertex; d: one for each member of its list d - 1 */
    uint8_t record;        /* RECORD: which */
    bool shares;           /* RECORD, CONTRIBUTION: one share for every VP of the group. Reading takes their sum */
    /* Number in the program's `dealt`, + 1, of the value's rows, where no more than the VP's own rows are read, made or in the slot. 0:
     * all rows. */
    uint16_t dealt;
    uint32_t at;
    uint32_t element; /* SCALAR */
    uint32_t rows, cols;
    uint32_t value;    /* of the cell */
    vpps_param matrix; /* of a PRODUCT: what multiplies it */
} vpps_operand;

typedef enum vpps_step_kind {
    VPPS_STEP_LOAD,      /* slot = what lies elsewhere */
    VPPS_STEP_GRADIENT,  /* slot = the sum of what users contributed to output `output` */
    VPPS_STEP_RUN,       /* slot = an instruction of isa.def on the operands */
    VPPS_STEP_PRODUCT,   /* slot, record or contribution = start + the sum of matrices times operands */
    VPPS_STEP_STORE,     /* record = slot */
    VPPS_STEP_CONTRIBUTE /* contribution = slot */
} vpps_step_kind;

typedef struct vpps_program_step {
    uint8_t kind;      /* vpps_step_kind */
    uint8_t axis;      /* of its items */
    vpps_operand to;   /* access OWN */
    uint32_t first, n; /* operands, in the program's list */
    union {
        uint32_t output; /* GRADIENT */
        struct {
            vpps_cell_run of;
            uint8_t tensors, scalars, weights; /* so many operands of letter t, then of s, of v; the rest are of * */
            bool uniform; /* items differ in nothing but their operands, all of access OWN: one call can do all */
            vpps_operand positions; /* i: a slot */
        } run;
        struct {
            bool transposed;    /* the matrices are */
            vpps_operand start; /* a vector, or a value made before; VPPS_PLACE_NONE: zero */
        } product;
    };
} vpps_program_step;

typedef struct vpps_slot {
    uint8_t axis;   /* as of an operand */
    uint16_t dealt; /* likewise */
    bool taken;     /* while slots are assigned */
    uint32_t words; /* of a whole value */
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
    bool rows; /* rows are shared out: a VP does the rows it owns, of all vertices; else all rows of its own vertices */
    uint32_t *dealt; /* numbers of rows that are dealt to the VPs of a group */
    uint32_t n_dealt;
} vpps_program;

/* Makes c->programs, one for each stage. Fails with MEMORY. */
vpps_status vpps_make_programs(vpps_compiled_cell *c);
void vpps_free_programs(vpps_compiled_cell *c);

/* Slots are assigned like registers: a released slot is taken by the next value of the same size and axis. VPPS_NONE: out of memory. */
uint32_t vpps_take_slot(vpps_slots *slots, uint8_t axis, uint16_t dealt, uint32_t words);
static inline void vpps_release_slot(vpps_slots *slots, uint32_t slot) {
    if (slots->at) slots->at[slot].taken = false;
}

/* Rows of a value with so many that member m of a group owns; `dealt` as of an operand. */
static inline vpps_rows vpps_dealt_rows(const vpps_compiled_cell *c, const vpps_program *p, uint32_t dealt,
                                        uint32_t m) {
    return vpps_rows_of(p->dealt[dealt - 1], c->needs.rows.unit, c->needs.group, m);
}

static inline uint32_t vpps_operand_words(const vpps_operand *o) { return o->rows * o->cols; }

/* Columns that the step's instruction goes over one by one: those of a ROW's result; a REDUCE makes an element of each. Else 1. */
static inline uint32_t vpps_step_columns(const vpps_program_step *s) {
    const vpps_form form = vpps_instructions[s->run.of.opcode].form;
    return form == VPPS_FORM_ROW ? s->to.cols : form == VPPS_FORM_REDUCE ? vpps_operand_words(&s->to) : 1;
}
