/* gradients.c - gradients that are summed over launches, until an update. Gradients of matrices and vectors stay where every launch
 * computes them; a launch that adds to a sum does not clear them. Gradients of table entries lie in the pool, where each batch places its
 * own; they are added to vpps_row_sums before the next batch reuses their memory. */
#include "runtime/cpu/cpu.h"

vpps_status vpps_cpu_take_gradients(vpps_device *d) {
    vpps_cpu *cpu = (vpps_cpu *)d;
    if (!cpu->sum.untaken) return VPPS_OK;
    VPPS_TRY(vpps_row_sums_add(cpu->device.row_sums, cpu->batch.segments, cpu->batch.n_segments));
    cpu->sum.loss += cpu->batch.loss;
    cpu->sum.untaken = false;
    return VPPS_OK;
}

vpps_status vpps_open_update(vpps_cpu *cpu) {
    const vpps_parameter_data *params = cpu->model->params;
    VPPS_TRY(vpps_row_sums_list(cpu->device.row_sums, &cpu->batch.segments, &cpu->batch.n_segments));
    cpu->batch.loss = cpu->sum.loss;
    for (uint32_t p = 0; p < cpu->model->n_params; p++) /* does not update parameters that are frozen by now */
        for (uint32_t v = 0; v < cpu->n_vps && params[p].frozen; v++) cpu->vps[v].touched[p] = 0;
    vpps_cpu_zero_gradients(&cpu->device); /* forgets the gradients; their memory stays until the next launch */
    return VPPS_OK;
}

void vpps_open_sum(vpps_cpu *cpu) {
    const vpps_rows vectors = cpu->gradients; /* gradients of vector parameters; only these must begin as zeros */
    cpu->batch.loss = 0;
    if (cpu->batch.goal == VPPS_GOAL_NODES) return; /* NODES: only nodes get gradients, no parameter does */
    if (!cpu->sum.open) {
        cpu->sum.number++;
        memset(cpu->pool + vectors.first, 0, (vectors.end - vectors.first) * sizeof(float));
    }
    cpu->sum.open = cpu->sum.untaken = cpu->batch.goal == VPPS_GOAL_GRADIENTS;
}

void vpps_cpu_zero_gradients(vpps_device *d) {
    vpps_cpu *cpu = (vpps_cpu *)d;
    vpps_row_sums_clear(cpu->device.row_sums);
    cpu->sum.open = cpu->sum.untaken = false;
    cpu->sum.loss = 0;
}
