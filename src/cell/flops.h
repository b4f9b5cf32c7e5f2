/* flops.h - the cost of compiled cells, and the products that they make as one. */
#pragma once

#include "cell/cell.h"

/* Floating-point operations: [0] of a vertex, [d] of each member of its list d - 1. What counts is as in vpps_cost: a copy or a
 * change of sign is free. The sum of what others contributed to a gradient depends on their number and is not in it. */
typedef struct vpps_cell_flops {
    uint64_t products[VPPS_AXES], other[VPPS_AXES];
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

void vpps_add_value_flops(const vpps_model *model, const vpps_compiled_cell *c, uint32_t v, vpps_cell_flops *sum);
void vpps_add_outer_flops(const vpps_model *model, const vpps_compiled_cell *c, const vpps_cell_outer *o,
                          vpps_cell_flops *sum);
vpps_cell_cost vpps_cost_of_cell(const vpps_model *model, const vpps_compiled_cell *c);

/* Of a value of kind PRODUCT or PRODUCT_T. */
vpps_cell_stack vpps_stack_of(const vpps_compiled_cell *c, uint32_t v);
