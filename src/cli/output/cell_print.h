/* cell_print.h - compiled cells as text for people: steps, and whole cells. */
#pragma once

#include "cell/print.h"

/* Prints a stage's program, a line for each step: "run        s3 = sigmoid s1". */
void vpps_print_steps(FILE *out, const vpps_model *model, const vpps_compiled_cell *c, uint32_t stage);

/* Prints the whole cell. Fails with MEMORY; the caller, who closes `file`, checks for write errors. */
vpps_status vpps_print_cell(const vpps_model *model, const vpps_compiled_cell *c, FILE *file);
