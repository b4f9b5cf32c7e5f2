/* isa.h - the table of instructions (isa.def), and the table that tells which instructions compute each operation of ops.def. */
#pragma once

#include "graph/graph.h"

typedef enum vpps_opcode {
#define INSTR(id, ...) VPPS_I_##id,
#include "isa/isa.def"
#undef INSTR
    VPPS_I_COUNT,
    VPPS_I_NONE = VPPS_I_COUNT /* stands for "no instruction" in the table of operations */
} vpps_opcode;

typedef enum vpps_form {
    VPPS_FORM_EW,
    VPPS_FORM_REDUCE,
    VPPS_FORM_ROW,
    VPPS_FORM_MATMUL,
    VPPS_FORM_MOVE,
    VPPS_FORM_PARTS,
    VPPS_FORM_DECIDED,
    VPPS_FORM_WEIGHTS
} vpps_form;

typedef struct vpps_instruction_row {
    const char *name;
    vpps_form form;
    const char *operands;
    uint32_t cost, flops;
} vpps_instruction_row;

extern const vpps_instruction_row vpps_instructions[VPPS_I_COUNT];

/* Returns whether a backward instruction computes with the result's gradient (0 may then become NaN) instead of only copying it. */
static inline bool vpps_spoils_zeros(uint32_t opcode) {
    const vpps_instruction_row *row = &vpps_instructions[opcode];
    return (row->flops || row->form == VPPS_FORM_MATMUL) && opcode != VPPS_I_WHEN && opcode != VPPS_I_UNLESS;
}

/* The instructions that compute an op and its gradients. backward_operands: each letter is an operand of the gradient's
 * instruction, such as `d`, the gradient of the op's result, or `a`, the op's argument 0 (all are in ops.def). */
typedef struct vpps_op_instruction_row {
    uint8_t forward, backward[2]; /* opcodes of the operation, and of the gradients of arguments 0 and 1 */
    const char *backward_operands[2];
} vpps_op_instruction_row;

extern const vpps_op_instruction_row vpps_op_instructions[VPPS_OP_COUNT];
