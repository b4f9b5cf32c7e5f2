/* parameters.c - arrays of parameters on the device: values, gradients, the optimiser's states. Each matrix has its own buffer,
 * stored by rows; vectors and lookup tables lie in the pool, the buffer that also holds a batch's values. */
#include "runtime/gpu/gpu.h"

bool vpps_gpu_holds(const vpps_device *d, vpps_param p, uint32_t which) {
    const vpps_gpu *gpu = (const vpps_gpu *)d;
    if (which == VPPS_ARRAY_GRADIENT) return gpu->summing && gpu->dense[p];
    if (gpu->model->params[p].kind == VPPS_MATRIX) return which < VPPS_ARRAY_STATES + gpu->layout.n_states;
    return vpps_place_in_pool(&gpu->layout.plan, p, which) != VPPS_NO_OFFSET;
}

static uint64_t address_of(const vpps_gpu *gpu, vpps_param p, uint32_t which) {
    if (gpu->model->params[p].kind != VPPS_MATRIX)
        return gpu->pool.address + 4 * (uint64_t)vpps_place_in_pool(&gpu->layout.plan, p, which);
    const vpps_gpu_buffer *matrices = which == VPPS_ARRAY_VALUES     ? &gpu->matrices
                                      : which == VPPS_ARRAY_GRADIENT ? &gpu->gradients
                                                                     : &gpu->states[which - VPPS_ARRAY_STATES];
    return matrices->address + 4 * (uint64_t)gpu->layout.matrix_at[p];
}

vpps_status vpps_gpu_move(vpps_device *d, vpps_param p, uint32_t which, float *array, bool in) {
    vpps_gpu *gpu = (vpps_gpu *)d;
    VPPS_TRY(vpps_gpu_restore_pool(gpu));
    const uint64_t at = address_of(gpu, p, which);
    const size_t bytes = vpps_param_elems(&gpu->model->params[p]) * sizeof *array;
    if (!in) return gpu->table->read(gpu->driver, array, at, bytes);
    if (which == VPPS_ARRAY_GRADIENT) gpu->dense[p] = true;
    return array ? gpu->table->write(gpu->driver, at, array, bytes) : gpu->table->clear(gpu->driver, at, bytes);
}
