/* emit_ops.h - the instruction set as the kernel sees it, from isa.def. */
#ifndef VPPS_EMIT_OPS_H
#define VPPS_EMIT_OPS_H

#include "base/base.h"

#include <stdio.h>

/* Writes opcodes, the layout of word 0, a word of traits per instruction, and, for each kind of instruction, a macro
 * that lists its instructions with the arguments of their routines: VPPS_EW_CASES(CASE) and so on. What the kernel
 * dispatches over is these lists, so an instruction without a routine, or with one of other operands, does not
 * compile. Goes before ops_traits.cuh and the files after it. Fails with ARGUMENT when isa.def has a row whose
 * operands are not in the order the kernel reads them in (tensors, then at most three others, then a list), IO when
 * writing does. */
vpps_status vpps_emit_ops(FILE *out);

/* The functions vpps_value_ID of every formula of isa.def, with all the names that one may use. */
void vpps_emit_formulas(FILE *out);

/* VPPS_STEP, the optimiser's function of isa/steps.h, and VPPS_STEP_NUMBERS, the struct that it takes its numbers from. */
void vpps_emit_step(FILE *out, vpps_optimizer_kind optimizer, const char *numbers);

#endif
