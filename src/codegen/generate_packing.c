/* generate_packing.c - the function for gradients of a cell's parameters, where cuBLAS makes those of matrices: it copies the factors. */
#include "codegen/generate_outer.h"
#include "codegen/packing.h"

/* The VPs share out the elements, four at a time. */
static void put_operand(const vpps_outer_work *w, uint32_t number, uint32_t v) {
    const vpps_cell_value *x = &w->c->values[v];
    const uint32_t parts = w->g->plan->parts, fours = vpps_packed_stride(x->rows, parts) / 4;
    fprintf(w->out, "#pragma unroll 1\nfor (unsigned i = 0; i < n_tasks; i++) {\nconst vpps_task t = tasks[i];\n");
    vpps_outer_vectors(w, v);
    fprintf(
        w->out,
        "float *const to = (float *)a.packed + script[t.pass_record + %u];\n#pragma unroll 4\nfor (unsigned q = vp * "
        "VPPS_THREADS + threadIdx.x; q < n * %u; q += VPPS_VPS * VPPS_THREADS) {\nconst unsigned k = q / "
        "%u;\nvpps_pack_four<%s, %s, %s, %u>(to, pool + (",
        number, x->cols * fours, fours, number % 2 ? "true" : "false",
        vpps_is_kept_in_parts(w->g, w->c, v) ? "true" : "false", vpps_has_quads(x) ? "true" : "false", x->rows);
    vpps_outer_vector(w, v, "k");
    fprintf(w->out, "), k, q %% %u * 4);\n}\n}\n", fours);
}

void vpps_generate_packing(const vpps_outer_work *w) {
    for (uint32_t number = 0; number < vpps_packed_operands(w->c); number++) {
        const uint32_t v = vpps_packed_value(w->c, number);
        if (v != VPPS_NONE) put_operand(w, number, v);
    }
}
