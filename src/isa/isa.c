/* isa.c - the tables of instructions, made from isa.def and ops.def. */
#include "isa/isa.h"

const vpps_instruction_row vpps_instructions[VPPS_I_COUNT] = {
#define INSTR(id, form, operands, cost, flops) {#id, VPPS_FORM_##form, operands, cost, flops},
#include "isa/isa.def"
#undef INSTR
};

const vpps_op_instruction_row vpps_op_instructions[VPPS_OP_COUNT] = {
#define OP(id, name, call, min, max, shape, op_class, per, flops, backward_flops, forward, operands, backward0,        \
           operands0, backward1, operands1)                                                                            \
    [VPPS_OP_##id] = {VPPS_I_##forward, {VPPS_I_##backward0, VPPS_I_##backward1}, {operands0, operands1}},
#include "graph/ops.def"
#undef OP
};
