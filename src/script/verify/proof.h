/* proof.h - the state of vpps_check_cell: a compiled cell, and the expressions that its programs compute. */
#pragma once

#include "cell/program.h"
#include "script/verify/checker.h"

typedef struct vpps_proof {
    vpps_checker *check;
    vpps_checked_cell *cell;
    const vpps_compiled_cell *c;
    vpps_expressions *s;
    uint32_t *is;         /* for each value: number of its expression; VPPS_NONE: no step has computed the value */
    uint64_t *gradients;  /* for each value, as bits: the outputs on whose gradients the value depends */
    uint8_t *stays;       /* for each value: whether it is read after all stages (parts of the cell) have run */
    uint8_t *stored;      /* for each value: whether a step has stored it in its vertex's memory */
    uint8_t *listed;      /* for each value: whether c->order, the list of what each stage (cell part) makes, has it */
    uint8_t *contributed; /* for each contribution (gradient for an input): whether a step has made it */
    /* for each value: 1 + number of the last step, in the current part of the cell, that reads it from memory; or 0 */
    uint32_t *read_until;
    uint32_t v; /* number of the current value, for error messages */

    /* stage: number of the stage (cell part) that is run; number: number of its current step. The members below are of this stage. */
    uint32_t stage, number;
    const vpps_program *program;
    const vpps_program_step *step;
    uint32_t *held;  /* for each slot (buffer): number of the value in it */
    uint32_t n_made; /* number of values computed so far in the stage (part of the cell) */
} vpps_proof;

static inline const vpps_cell_value *vpps_proof_value(const vpps_proof *p, uint32_t v) { return &p->c->values[v]; }
static inline const vpps_operand *vpps_proof_operand(const vpps_proof *p, uint32_t i) {
    return &p->program->operands[p->step->first + i];
}

/* Refuse the cell with a message about value p->v. vpps_proof_none returns VPPS_NONE, the other functions false. */
static inline bool vpps_proof_refuse(const vpps_proof *p, const char *what) {
    return VPPS_REFUSE(p->check, "cell %s, value %u: %s", p->c->name, p->v, what);
}
static inline bool vpps_proof_refuse_shape(const vpps_proof *p, const char *what, uint32_t rows, uint32_t cols,
                                           uint32_t expected_rows, uint32_t expected_cols) {
    return VPPS_REFUSE(p->check, "cell %s, value %u, %s: shape mismatch: %u x %u, expected %u x %u", p->c->name, p->v,
                       what, rows, cols, expected_rows, expected_cols);
}
static inline uint32_t vpps_proof_none(const vpps_proof *p, const char *what) {
    vpps_proof_refuse(p, what);
    return VPPS_NONE;
}

/* ---- operands.c: checks. One that fails (false, VPPS_NONE) has set p->check->status and a message, unless noted */

bool vpps_proof_is_share(const vpps_proof *p, uint32_t v);
/* Returns the parameter with this number if it has this kind; else NULL, without an error (unlike the other functions here). */
const vpps_parameter_data *vpps_proof_parameter(const vpps_proof *p, vpps_param param, vpps_param_kind kind);
/* Returns the expression of the table's entry that lookup number `index` of the cell reads. */
uint32_t vpps_proof_lookup(const vpps_proof *p, uint32_t index);
bool vpps_proof_is_sound(const vpps_proof *p, const vpps_operand *o);
bool vpps_proof_holds(const vpps_proof *p, const vpps_operand *o);
bool vpps_proof_reads(vpps_proof *p, const vpps_operand *o);
/* Notes that the current stage (part of the cell) reads the words `extent` of a value in memory. */
bool vpps_proof_add_read(vpps_proof *p, uint32_t value, vpps_extent extent);

/* ---- formulas.c */

uint32_t vpps_proof_run_formula(vpps_proof *p);
uint32_t vpps_proof_product_formula(vpps_proof *p);

/* ---- program.c */

/* Runs the compiled cell's steps, forward and backward, with formulas instead of numbers. Finds each value's formula (p->is), the outputs'
 * gradients that it depends on (p->gradients), what each stage (part of the cell) reads (p->cell). */
bool vpps_proof_run(vpps_proof *p);
