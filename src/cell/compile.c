/* compile.c - runs all passes of the compiler over a cell whose values lower.c has made. */
#include "cell/flops.h"
#include "cell/program.h"

vpps_status vpps_compile_cell(const vpps_model *model, vpps_compiled_cell *c, const vpps_cell_needs *needs) {
    c->needs = *needs;
    memset(c->gradient_of, 0xff, sizeof c->gradient_of);
    for (uint32_t k = 0; k < c->n_outputs; k++)
        if (!(needs->read_out >> k & 1)) c->outputs[k].value = VPPS_NONE;
    VPPS_TRY(vpps_separate_eager(c));
    if (needs->training) VPPS_TRY(vpps_differentiate(model, c));
    VPPS_TRY(vpps_simplify(c));
    VPPS_TRY(vpps_split_cell(model, c));
    vpps_set_stage_work(model, c);
    vpps_order_stages(c);
    VPPS_TRY(vpps_make_programs(c));
    const vpps_cell_cost cost = vpps_cost_of_cell(model, c);
    for (uint32_t d = 0; d < VPPS_AXES; d++)
        c->flops[d] = cost.forward.products[d] + cost.forward.other[d] + cost.backward.products[d] +
                      cost.backward.other[d] + cost.parameters.products[d] + cost.parameters.other[d];
    return VPPS_OK;
}

void vpps_compiled_cell_free(vpps_compiled_cell *c) {
    if (!c) return;
    if (c->device_free) c->device_free(c->device_program);
    vpps_free_programs(c);
    VPPS_FREE_ARRAYS(c->values, c->args, c->contributions, c->outers, c->stages, c->order);
    VPPS_FREE(c->name, c);
}
