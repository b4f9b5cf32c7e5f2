/* print.h - compiled cells for people: what each operation is, and all of it as text. */
#pragma once

#include "cell/program.h"

/* These are text that the caller frees; NULL: out of memory. A value: "t12", "in0", a parameter's name, "E[index0]". */
char *vpps_value_name(const vpps_model *model, const vpps_compiled_cell *c, uint32_t v);
/* What makes a value: "b_i + U_i in0 + W_i in2", "sigmoid(t3)". */
char *vpps_value_text(const vpps_model *model, const vpps_compiled_cell *c, uint32_t v);
/* Where an input comes from: "child 0, output 1", "pulled 0". */
char *vpps_input_text(const vpps_compiled_cell *c, uint32_t input);
/* A deferred gradient: "U_i += t30 in0^T". */
char *vpps_outer_text(const vpps_model *model, const vpps_compiled_cell *c, uint32_t i);

/* "eager", "main", "lazy"; "rows", "vertices". */
const char *vpps_part_name(uint32_t part);
const char *vpps_split_name(uint32_t split);

/* "run"; "s3", "in0", "W_i in0", "record 48". */
const char *vpps_step_name(uint32_t kind);
char *vpps_operand_text(const vpps_model *model, const vpps_compiled_cell *c, const vpps_operand *o);

/* A line for each step of a stage's program: "run        s3 = sigmoid s1". */
void vpps_print_steps(FILE *out, const vpps_model *model, const vpps_compiled_cell *c, uint32_t stage);

/* The whole cell. Fails with IO, MEMORY. */
vpps_status vpps_print_cell(const vpps_model *model, const vpps_compiled_cell *c, FILE *file);
