/* print.h - compiled cells for people: what each operation is, what it costs, and all of it as text. */
#ifndef VPPS_CELL_PRINT_H
#define VPPS_CELL_PRINT_H

#include "cell/cell.h"

/* Floating-point operations: [0] of a vertex, [d] of each member of its list d - 1. What counts is as in vpps_cost: a copy or a
 * change of sign is free. The sum of what others contributed to a gradient depends on their number and is not in it. */
typedef struct vpps_cell_flops {
    uint64_t products[VPPS_DOMAINS], other[VPPS_DOMAINS];
} vpps_cell_flops;

/* What the whole cell costs. */
typedef struct vpps_cell_cost {
    vpps_cell_flops forward, backward;
    vpps_cell_flops parameters; /* their deferred gradients */
} vpps_cell_cost;

/* Products of one stage with the same operands: their matrices on top of each other, as the machine multiplies them. A
 * product alone is a stack of one. */
typedef struct vpps_cell_stack {
    uint32_t first, n; /* lowest value, and how many */
    uint32_t rows, cols;
} vpps_cell_stack;

/* These are text that the caller frees; NULL: out of memory. A value: "t12", "in0", a parameter's name, "E[index0]". */
char *vpps_value_name(const vpps_model *model, const vpps_compiled_cell *c, uint32_t v);
/* What makes a value: "b_i + U_i in0 + W_i in2", "sigmoid(t3)". */
char *vpps_value_text(const vpps_model *model, const vpps_compiled_cell *c, uint32_t v);
/* Where an input comes from: "child 0, output 1", "pulled 0". */
char *vpps_input_text(const vpps_compiled_cell *c, uint32_t input);
/* A deferred gradient: "U_i += t30 in0^T". */
char *vpps_outer_text(const vpps_model *model, const vpps_compiled_cell *c, uint32_t i);

void vpps_add_value_flops(const vpps_model *model, const vpps_compiled_cell *c, uint32_t v, vpps_cell_flops *sum);
void vpps_add_outer_flops(const vpps_model *model, const vpps_compiled_cell *c, const vpps_cell_outer *o,
                          vpps_cell_flops *sum);
vpps_cell_cost vpps_cost_of_cell(const vpps_model *model, const vpps_compiled_cell *c);

/* Of a value of kind PRODUCT or PRODUCT_T. */
vpps_cell_stack vpps_stack_of(const vpps_compiled_cell *c, uint32_t v);

/* "eager", "main", "lazy"; "rows", "vertices". */
const char *vpps_part_name(uint32_t part);
const char *vpps_split_name(uint32_t split);

/* The whole cell. Fails with IO, MEMORY. */
vpps_status vpps_print_cell(const vpps_model *model, const vpps_compiled_cell *c, FILE *file);

#endif
