/* flops.h - the floating-point operations of compiled cells, and the products that a machine runs as one. */
#pragma once

#include "cell/cell.h"

/* Floating-point operations: [0] per vertex, [d] per member of its list d - 1. Counted as in vpps_cost: a copy or change of sign is
 * free. Summing up the contributions to a gradient is not included, since it depends on their number. */
typedef struct vpps_cell_flops {
    uint64_t products[VPPS_AXES], other[VPPS_AXES];
} vpps_cell_flops;

/* The cost of a whole cell. */
typedef struct vpps_cell_cost {
    vpps_cell_flops forward, backward;
    vpps_cell_flops parameters; /* flops of the parameters' gradients */
} vpps_cell_cost;

/* A stack: products of one stage with the same operands, which the machine runs as one product with their matrices on top of each other.
 * A product alone is a stack of one. */
typedef struct vpps_cell_stack {
    uint32_t first, n; /* first value of the stack, and number of its values */
    uint32_t rows, cols;
} vpps_cell_stack;

void vpps_add_value_flops(const vpps_model *model, const vpps_compiled_cell *c, uint32_t v, vpps_cell_flops *sum);
void vpps_add_outer_flops(const vpps_model *model, const vpps_compiled_cell *c, const vpps_cell_outer *o,
                          vpps_cell_flops *sum);
vpps_cell_cost vpps_cost_of_cell(const vpps_model *model, const vpps_compiled_cell *c);

/* Returns the stack that a value of kind PRODUCT or PRODUCT_T belongs to. */
vpps_cell_stack vpps_stack_of(const vpps_compiled_cell *c, uint32_t v);
