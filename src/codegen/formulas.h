/* formulas.h - prints a kernel's elementwise functions as C++: the formulas of the instructions (isa.def) and the optimiser's step. */
#pragma once

#include "base/base.h"

/* Prints C++ functions for the instructions of isa.def: vpps_value_ID (elementwise), vpps_next_ID and vpps_made_ID (folds, such as sums),
 * vpps_beats_ID (searches, such as argmax). */
void vpps_emit_formulas(FILE *out);

/* Prints the macros VPPS_STEP, the name of the optimiser's function (isa/steps.h), and VPPS_STEP_NUMBERS, the struct with its numbers. */
void vpps_emit_step(FILE *out, vpps_optimizer_kind optimizer, const char *numbers);
