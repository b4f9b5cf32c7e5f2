/* packing.c - the layout of the packed factors from which cuBLAS computes gradients of matrices. */
#include "codegen/packing.h"

static uint32_t factor_of(const vpps_compiled_cell *c, uint32_t outer, bool is_x) {
    return is_x ? c->outers[outer].x : c->outers[outer].dy;
}

uint32_t vpps_packed_number(const vpps_compiled_cell *c, uint32_t outer, bool is_x) {
    uint32_t first = 0;
    if (c->outers[outer].x == VPPS_NONE) return VPPS_NONE;
    while (c->outers[first].x == VPPS_NONE || factor_of(c, first, is_x) != factor_of(c, outer, is_x)) first++;
    return 2 * first + is_x;
}

uint32_t vpps_packed_value(const vpps_compiled_cell *c, uint32_t number) {
    return vpps_packed_number(c, number / 2, number % 2) == number ? factor_of(c, number / 2, number % 2) : VPPS_NONE;
}
