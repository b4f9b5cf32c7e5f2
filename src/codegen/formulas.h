/* formulas.h - prints a kernel's elementwise functions as C++: the formulas of the instructions (isa.def) and the optimiser's step. */
#pragma once

#include "base/base.h"

/* Prints a C++ function vpps_value_ID for every instruction of isa.def with a formula, and the names that formulas may use. */
void vpps_emit_formulas(FILE *out);

/* Defines VPPS_STEP as the name of the optimiser's function (isa/steps.h), and VPPS_STEP_NUMBERS as the struct with its numbers. */
void vpps_emit_step(FILE *out, vpps_optimizer_kind optimizer, const char *numbers);
