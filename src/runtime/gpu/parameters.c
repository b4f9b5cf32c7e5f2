/* parameters.c - copies parameters and the optimiser's states between the device and the model. On the device, matrices lie in buffers of
 * their own, stored by rows; vectors and tables lie in the pool. */
#include "runtime/gpu/gpu.h"

/* Returns the device address of a parameter's values (state < 0) or of an optimiser state; 0 if there is none. */
static uint64_t array_at(const vpps_gpu *gpu, uint32_t p, int state) {
    if (gpu->model->params[p].kind == VPPS_MATRIX) {
        if (state >= (int)gpu->layout.n_states) return 0;
        return (state < 0 ? gpu->matrices.address : gpu->states[state].address) +
               4 * (uint64_t)gpu->layout.matrix_at[p];
    }
    const uint32_t at = state < 0 ? gpu->layout.plan.values[p] : gpu->layout.plan.states[state][p];
    return at == VPPS_NO_OFFSET ? 0 : gpu->pool.address + 4 * (uint64_t)at;
}

vpps_status vpps_gpu_read_parameters(vpps_gpu *gpu, vpps_model *model, bool states) {
    for (uint32_t p = 0; p < model->n_params; p++) {
        vpps_parameter_data *data = &model->params[p];
        const size_t bytes = vpps_param_elems(data) * sizeof(float);
        if (states) data->updates = gpu->updates[p];
        for (int s = -1; s < (states ? VPPS_MAX_STATES : 0); s++) {
            const uint64_t at = array_at(gpu, p, s);
            if (!at) continue;
            if (s >= 0 && !data->states[s]) data->states[s] = malloc(bytes);
            float *to = s < 0 ? data->values : data->states[s];
            if (!to) return vpps_fail(VPPS_MEMORY, "parameter %s: out of memory", data->name);
            VPPS_TRY(gpu->table->read(gpu->driver, to, at, bytes));
        }
    }
    return VPPS_OK;
}

vpps_status vpps_gpu_write_parameters(vpps_gpu *gpu, const vpps_model *model) {
    const bool fits = model->optimizer == gpu->options.optimizer.kind; /* states of another optimiser become zeros */
    for (uint32_t p = 0; p < model->n_params; p++) {
        const vpps_parameter_data *data = &model->params[p];
        const size_t bytes = vpps_param_elems(data) * sizeof(float);
        gpu->updates[p] = fits ? data->updates : 0;
        for (int s = -1; s < VPPS_MAX_STATES; s++) {
            const uint64_t at = array_at(gpu, p, s);
            const float *from = s < 0 ? data->values : fits ? data->states[s] : NULL;
            if (!at) continue;
            if (from) {
                VPPS_TRY(gpu->table->write(gpu->driver, at, from, bytes));
            } else {
                VPPS_TRY(gpu->table->clear(gpu->driver, at, bytes));
            }
        }
    }
    return vpps_gpu_finish(gpu);
}
