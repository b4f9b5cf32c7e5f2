/* layout.c - decides where parameters lie in a device's memory pool. */
#include "runtime/layout.h"

#include "runtime/device.h"

#define X(id, name, n, lr)                                                                                             \
    _Static_assert((n) <= VPPS_MAX_STATES, "optimizer " name ": more states than there is room for");
VPPS_OPTIMIZER_TABLE(X)
#undef X
_Static_assert(VPPS_COUNT(((vpps_pool_plan *)NULL)->states) == VPPS_MAX_STATES, "a plan places every state");

uint32_t vpps_optimizer_states(vpps_optimizer_kind kind) {
    static const uint32_t states[] = {
#define X(id, name, n, lr) n,
        VPPS_OPTIMIZER_TABLE(X)
#undef X
    };
    return states[kind];
}

uint32_t vpps_place_in_pool(const vpps_pool_plan *plan, vpps_param param, uint32_t which) {
    if (which >= VPPS_ARRAY_STATES) return plan->states[which - VPPS_ARRAY_STATES][param];
    return (which == VPPS_ARRAY_VALUES ? plan->values : plan->gradients)[param];
}

static uint32_t take(uint64_t *next, uint64_t words) {
    uint64_t at = (*next + 15) & ~(uint64_t)15;
    *next = at + words;
    return (uint32_t)at;
}

vpps_status vpps_lay_out_pool(vpps_pool_plan *plan, const vpps_model *model, const vpps_options *options,
                              uint32_t max_vps, const char *device, vpps_rows *gradients) {
    uint32_t n = (uint32_t)model->n_params;
    const size_t words = (2 + VPPS_MAX_STATES) * (size_t)n + 1;
    uint32_t *arrays = malloc(words * sizeof *arrays);
    if (!arrays) return vpps_fail(VPPS_MEMORY, "%s: out of memory", device);
    memset(arrays, 0xff, words * sizeof *arrays);
    plan->values = arrays;
    plan->gradients = arrays + n;
    for (uint32_t i = 0; i < VPPS_MAX_STATES; i++) plan->states[i] = arrays + (2 + i) * (size_t)n;
    uint64_t next = 0;
    for (uint32_t p = 0; p < n && next < UINT32_MAX; p++) {
        const vpps_parameter_data *data = &model->params[p];
        if (vpps_is_sharded(data)) plan->values[p] = take(&next, vpps_param_elems(data));
    }
    const uint64_t sharded = next = (next + 15) & ~(uint64_t)15;
    if (sharded > UINT32_MAX / 4 * 3)
        return vpps_fail(VPPS_POOL, "%s: lookup tables of %llu elements in all processes; expected at most %u", device,
                         (unsigned long long)sharded, UINT32_MAX / 4 * 3);
    plan->sharded = (uint32_t)sharded;
    plan->norms = take(&next, max_vps);
    gradients->first = take(&next, 0);
    for (uint32_t p = 0; p < n; p++)
        if (model->params[p].kind == VPPS_VECTOR) plan->gradients[p] = take(&next, model->params[p].rows);
    gradients->end = take(&next, 0);
    for (uint32_t p = 0; p < n; p++) {
        const vpps_parameter_data *data = &model->params[p];
        if (data->kind == VPPS_MATRIX || vpps_is_sharded(data)) continue;
        plan->values[p] = take(&next, vpps_param_elems(data));
        for (uint32_t i = 0; i < VPPS_MAX_STATES && i < vpps_optimizer_states(options->optimizer.kind); i++)
            plan->states[i][p] = take(&next, vpps_param_elems(data));
    }
    plan->batch = take(&next, 0);
    const uint64_t most = UINT32_MAX & ~(uint64_t)15, wanted = sharded + options->pool_bytes / 4;
    if (next >= most)
        return vpps_fail(VPPS_POOL, "%s: vectors and lookup tables take %llu bytes; a pool has at most %llu", device,
                         (unsigned long long)next * 4, (unsigned long long)most * 4);
    if (options->pool_bytes && wanted <= next)
        return vpps_fail(
            VPPS_POOL,
            "%s: vectors and lookup tables take %llu bytes of the pool, and a batch's values come on top; expected a "
            "larger pool_bytes than %llu, or 0, which sets no limit",
            device, (unsigned long long)(next - sharded) * 4, (unsigned long long)options->pool_bytes);
    plan->pool_words = (uint32_t)(options->pool_bytes && wanted < most ? wanted : most);
    return VPPS_OK;
}
