/* proof.h - inside vpps_check_cell: a compiled cell, and the formulas that its programs make. */
#pragma once

#include "cell/program.h"
#include "script/verify/checker.h"

typedef struct vpps_proof {
    vpps_checker *check;
    vpps_checked_cell *cell;
    const vpps_compiled_cell *c;
    vpps_expressions *s;
    uint32_t *is;         /* expression of each value; VPPS_NONE: not made yet */
    uint64_t *gradients;  /* of each value: bit k: it is made of output k's gradient */
    uint8_t *stays;       /* of each value: it is read after its vertex is done */
    uint8_t *stored;      /* of each value: a step has written it to its record */
    uint8_t *listed;      /* of each value: its stage lists it */
    uint8_t *contributed; /* of each contribution: a step has made it */
    uint32_t *read_until; /* of each value: the last step of the stage that reads it from its record, counted from 1 */
    uint32_t v;           /* the value at hand, for messages */

    /* the stage at hand */
    uint32_t stage, number; /* number of the step */
    const vpps_program *program;
    const vpps_program_step *step;
    uint32_t *held;  /* value in each slot */
    uint32_t n_made; /* values so far */
} vpps_proof;

static inline const vpps_cell_value *vpps_proof_value(const vpps_proof *p, uint32_t v) { return &p->c->values[v]; }
static inline const vpps_operand *vpps_proof_operand(const vpps_proof *p, uint32_t i) {
    return &p->program->operands[p->step->first + i];
}

/* Refuse the cell because of value p->v and return false, or VPPS_NONE. */
static inline bool vpps_proof_refuse(const vpps_proof *p, const char *what) {
    return VPPS_REFUSE(p->check, "cell %s, value %u: %s", p->c->name, p->v, what);
}
static inline uint32_t vpps_proof_none(const vpps_proof *p, const char *what) {
    vpps_proof_refuse(p, what);
    return VPPS_NONE;
}

/* ---- operands.c; all but vpps_proof_is_share refuse where they return false, NULL or VPPS_NONE */

bool vpps_proof_is_share(const vpps_proof *p, uint32_t v);
/* The model's parameter, if it is of this kind; NULL without refusing. */
const vpps_parameter_data *vpps_proof_parameter(const vpps_proof *p, vpps_param param, vpps_param_kind kind);
/* The entry that a lookup of the cell reads. */
uint32_t vpps_proof_lookup(const vpps_proof *p, uint32_t index);
bool vpps_proof_is_sound(const vpps_proof *p, const vpps_operand *o);
bool vpps_proof_holds(const vpps_proof *p, const vpps_operand *o);
bool vpps_proof_reads(vpps_proof *p, const vpps_operand *o);
/* Notes that the stage reads a value from memory. */
bool vpps_proof_add_read(vpps_proof *p, uint32_t value, vpps_extent extent);

/* ---- formulas.c: of the step at hand */

uint32_t vpps_proof_run_formula(const vpps_proof *p);
uint32_t vpps_proof_product_formula(vpps_proof *p);

/* ---- program.c */

/* Runs all programs: afterwards p->is and p->gradients, and what stages read in p->cell, are there. */
bool vpps_proof_run(vpps_proof *p);
