/* proof.h - the state of vpps_check_cell: a compiled cell, and the formulas that its programs compute. */
#pragma once

#include "cell/program.h"
#include "script/verify/checker.h"

typedef struct vpps_proof {
    vpps_checker *check;
    vpps_checked_cell *cell;
    const vpps_compiled_cell *c;
    vpps_expressions *s;
    uint32_t *is;         /* for each value: its expression; VPPS_NONE: not made yet */
    uint64_t *gradients;  /* for each value, bit k: it depends on output k's gradient */
    uint8_t *stays;       /* for each value: it is read after its vertex is done */
    uint8_t *stored;      /* for each value: a step has stored it in its record */
    uint8_t *listed;      /* for each value: its stage's list of values names it */
    uint8_t *contributed; /* for each contribution: a step has made it */
    /* For each value: 1 + the number of the stage's last step that reads it from its record; 0: none. */
    uint32_t *read_until;
    uint32_t v; /* the present value, for messages */

    /* the present stage */
    uint32_t stage, number; /* numbers of the stage and of the step */
    const vpps_program *program;
    const vpps_program_step *step;
    uint32_t *held;  /* for each slot: the value that it holds */
    uint32_t n_made; /* number of values made so far */
} vpps_proof;

static inline const vpps_cell_value *vpps_proof_value(const vpps_proof *p, uint32_t v) { return &p->c->values[v]; }
static inline const vpps_operand *vpps_proof_operand(const vpps_proof *p, uint32_t i) {
    return &p->program->operands[p->step->first + i];
}

/* Refuse the cell because of value p->v and return false, or VPPS_NONE. */
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

/* ---- operands.c. All but vpps_proof_is_share refuse the cell when they return false, NULL or VPPS_NONE */

bool vpps_proof_is_share(const vpps_proof *p, uint32_t v);
/* Returns the model's parameter if it is of this kind; else NULL, without refusing. */
const vpps_parameter_data *vpps_proof_parameter(const vpps_proof *p, vpps_param param, vpps_param_kind kind);
/* Returns the expression of the entry that a lookup of the cell reads. */
uint32_t vpps_proof_lookup(const vpps_proof *p, uint32_t index);
bool vpps_proof_is_sound(const vpps_proof *p, const vpps_operand *o);
bool vpps_proof_holds(const vpps_proof *p, const vpps_operand *o);
bool vpps_proof_reads(vpps_proof *p, const vpps_operand *o);
/* Notes that the stage reads a value from memory. */
bool vpps_proof_add_read(vpps_proof *p, uint32_t value, vpps_extent extent);

/* ---- formulas.c: formulas of the present step */

uint32_t vpps_proof_run_formula(const vpps_proof *p);
uint32_t vpps_proof_product_formula(vpps_proof *p);

/* ---- program.c */

/* Runs all programs: afterwards p->is, p->gradients and the stages' reads in p->cell are known. */
bool vpps_proof_run(vpps_proof *p);
