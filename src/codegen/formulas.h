/* formulas.h - the elementwise functions of a kernel, printed from tables: isa.def's formulas, the optimiser's step. */
#pragma once

#include "base/base.h"

/* The functions vpps_value_ID of every formula of isa.def, with all the names that one may use. */
void vpps_emit_formulas(FILE *out);

/* VPPS_STEP, the optimiser's function of isa/steps.h, and VPPS_STEP_NUMBERS, the struct that it takes its numbers from. */
void vpps_emit_step(FILE *out, vpps_optimizer_kind optimizer, const char *numbers);
