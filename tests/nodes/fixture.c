/* fixture.c - a plan for a model. */
#include "fixture.h"

bool plan_create(vpps_plan *plan, const vpps_model *model, uint32_t n_vps, uint32_t pool_words) {
    uint32_t n = (uint32_t)model->n_params, at = 16;
    /* Plans as different devices make them: which one follows from the number of VPs. */
    *plan = (vpps_plan){.n_vps = n_vps,
                        .row_block = n_vps % 3 == 0   ? 1
                                     : n_vps % 5 == 0 ? 4
                                                      : 16,
                        .n_params = n,
                        .pool_words = pool_words,
                        .ew_grain = 32,
                        .host_products = n_vps % 3 == 0};
    uint32_t **arrays[] = {&plan->values, &plan->gradients, &plan->states[0], &plan->states[1]};
    for (size_t i = 0; i < VPPS_COUNT(arrays); i++) {
        if (!(*arrays[i] = malloc((n + 1) * sizeof **arrays[i]))) return false;
        for (uint32_t p = 0; p < n; p++) {
            const vpps_parameter_data *data = &model->params[p];
            (*arrays[i])[p] = VPPS_NO_OFFSET;
            if (data->kind == VPPS_MATRIX || (i == 1 && data->kind == VPPS_LOOKUP)) continue;
            (*arrays[i])[p] = at;
            at += ((uint32_t)vpps_param_elems(data) + 15) & ~15u;
        }
    }
    plan->norms = at;
    plan->batch = at + ((n_vps + 15) & ~15u);
    return plan->batch <= pool_words;
}

void plan_destroy(vpps_plan *plan) {
    free(plan->values);
    free(plan->gradients);
    free(plan->states[0]);
    free(plan->states[1]);
}
