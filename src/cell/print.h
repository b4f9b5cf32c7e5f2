/* print.h - compiled cells as text for people: single values, steps, and whole cells. */
#pragma once

#include "cell/program.h"

/* Returns a value's name: "t12", "in0", a parameter's name, "E[index0]". The caller frees all texts. NULL: out of memory. */
char *vpps_value_name(const vpps_model *model, const vpps_compiled_cell *c, uint32_t v);
/* Returns the operation that makes a value: "b_i + U_i in0 + W_i in2", "sigmoid(t3)". */
char *vpps_value_text(const vpps_model *model, const vpps_compiled_cell *c, uint32_t v);
/* Returns where an input comes from: "child 0, output 1"; "pulled 0" (the first node that the cell's caller gives). */
char *vpps_input_text(const vpps_compiled_cell *c, uint32_t input);
/* Returns the text of a parameter's gradient: "U_i += t30 in0^T". */
char *vpps_outer_text(const vpps_model *model, const vpps_compiled_cell *c, uint32_t i);

/* Return names of when a part of a cell's work runs ("eager": before all levels; "main": level by level; "lazy": after
 * all levels), and of what virtual processors (CTAs or threads) divide there ("rows" of vectors, or "vertices"). */
const char *vpps_pass_name(uint32_t pass);
const char *vpps_split_name(uint32_t split);

/* Prints the program of a stage (part of a cell), a line for each step: "run        s3 = sigmoid s1". */
void vpps_print_steps(FILE *out, const vpps_model *model, const vpps_compiled_cell *c, uint32_t stage);

/* Prints the whole cell. Fails with MEMORY; the caller, who closes `file`, checks for write errors. */
vpps_status vpps_print_cell(const vpps_model *model, const vpps_compiled_cell *c, FILE *file);
