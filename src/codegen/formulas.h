/* formulas.h - prints a kernel's elementwise functions: the formulas of isa.def and the optimiser's step. */
#pragma once

#include "base/base.h"

/* Prints a function vpps_value_ID for every formula of isa.def, and the names that formulas may use. */
void vpps_emit_formulas(FILE *out);

/* Prints VPPS_STEP, the optimiser's function of isa/steps.h, and VPPS_STEP_NUMBERS, the struct with that function's numbers. */
void vpps_emit_step(FILE *out, vpps_optimizer_kind optimizer, const char *numbers);
