/* flops.h - the floating-point operations of compiled cells, and stacks of products, which a device runs as one product. */
#pragma once

#include "cell/program.h"

/* Floating-point operations as vpps_cost counts them: [0] for a vertex, [d] for each of the many nodes that its list
 * input d - 1 reads. Sums of gradients from a value's readers are left out, since the number of readers varies. */
typedef struct vpps_cell_flops {
    uint64_t products[VPPS_AXES], other[VPPS_AXES];
} vpps_cell_flops;

/* The flops of a compiled cell; the flops of parameters' gradients are counted apart. */
typedef struct vpps_cell_cost {
    vpps_cell_flops forward, backward;
    vpps_cell_flops parameters; /* flops of computing parameter gradients */
} vpps_cell_cost;

/* A stack: products of one stage (part of a cell between two barriers) that multiply the same operands. A device runs a stack as one
 * product; its matrix is the products' matrices on top of each other. A product with operands of its own is a stack of one. */
typedef struct vpps_cell_stack {
    /* first: index, in the cell's values, of the first of the products that run as one; n: number of these products */
    uint32_t first, n;
    uint32_t rows, cols;
} vpps_cell_stack;

void vpps_add_value_flops(const vpps_model *model, const vpps_compiled_cell *c, uint32_t v, vpps_cell_flops *sum);
vpps_cell_cost vpps_cost_of_cell(const vpps_model *model, const vpps_compiled_cell *c);

/* Sets `work` of each stage (part between two barriers) of the cell: its relative cost per vertex, and per node that a list input reads. */
void vpps_set_stage_work(const vpps_model *model, vpps_compiled_cell *c);

/* Returns the products that run as one (stack) with product v: those in its part of the cell with the same vectors. */
vpps_cell_stack vpps_stack_of(const vpps_compiled_cell *c, uint32_t v);
