/* proof.h - inside vpps_check_cell: a compiled cell and the expressions of its values. */
#ifndef VPPS_SCRIPT_VERIFY_PROOF_H
#define VPPS_SCRIPT_VERIFY_PROOF_H

#include "script/verify/checker.h"

typedef struct vpps_proof {
    vpps_checker *check;
    const vpps_compiled_cell *c;
    vpps_expressions *s;
    uint32_t *is;        /* expression of each value */
    uint64_t *gradients; /* of outputs, that each value is made of */
    uint32_t v;          /* the value at hand, for messages */
} vpps_proof;

/* The model's parameter, if it is of this kind. */
const vpps_parameter_data *vpps_proof_parameter(const vpps_proof *p, vpps_param param, vpps_param_kind kind);

/* The entry that a lookup of the cell reads. */
uint32_t vpps_proof_lookup(const vpps_proof *p, uint32_t index);

/* Every value's expression; a value is made of values before it, and is as large, and as many, as it says. */
bool vpps_proof_express(vpps_proof *p);

#endif
