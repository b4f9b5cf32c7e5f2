/* packing.c - the layout of the packed vectors dy and x from which cuBLAS computes gradients of matrices, sums of dy x^T. */
#include "codegen/packing.h"

/* Returns the x (if is_x) or dy of gradient `outer`, a sum of dy x^T; NULL if that is the gradient of a vector. */
static const vpps_operand *factor_of(const vpps_compiled_cell *c, uint32_t outer, bool is_x) {
    const vpps_outer o = vpps_outer_of(c, outer);
    return is_x || !o.x ? o.x : o.dy;
}

uint32_t vpps_packed_number(const vpps_compiled_cell *c, uint32_t outer, bool is_x) {
    const vpps_operand *factor = factor_of(c, outer, is_x);
    uint32_t first = 0;
    if (!factor) return VPPS_NONE;
    while (!vpps_same_value(factor_of(c, first, is_x), factor)) first++;
    return 2 * first + is_x;
}

const vpps_operand *vpps_packed_operand(const vpps_compiled_cell *c, uint32_t number) {
    return vpps_packed_number(c, number / 2, number % 2) == number ? factor_of(c, number / 2, number % 2) : NULL;
}
