/* generate_packing.c - the function for gradients of a cell's parameters, where cuBLAS makes those of matrices: it copies the factors. */
#include "codegen/generate_outer.h"
#include "codegen/packing.h"

void vpps_generate_packing(const vpps_outer_work *w) {
    for (uint32_t number = 0; number < vpps_packed_operands(w->c); number++) {
        const uint32_t v = vpps_packed_value(w->c, number);
        if (v != VPPS_NONE)
            fprintf(w->out, "vpps_pack<v%u, %u, %u>(*this);\n", v, number,
                    vpps_packed_stride(w->c->values[v].rows, w->g->plan->parts) / 4);
    }
}
