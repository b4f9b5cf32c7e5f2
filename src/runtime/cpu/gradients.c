/* gradients.c - gradients that are summed over launches, until an update. Gradients of matrices and vectors stay where every launch
 * computes them; a launch that adds to a sum does not clear them. Gradients of table entries lie in the pool, where each batch places its
 * own; they are added to vpps_row_sums before the next batch reuses their memory. */
#include "runtime/cpu/cpu.h"

vpps_status vpps_take_gradients(vpps_cpu *cpu) {
    if (!cpu->sum.untaken) return VPPS_OK;
    VPPS_TRY(vpps_row_sums_add(cpu->sum.rows, cpu->batch.segments, cpu->batch.n_segments));
    cpu->sum.loss += cpu->batch.loss;
    cpu->sum.untaken = false;
    return VPPS_OK;
}

static vpps_status use_sums(vpps_cpu *cpu) {
    const uint32_t n = (uint32_t)cpu->model->n_params;
    if (!VPPS_RESERVE(cpu->batch.segments, n + 1u))
        return vpps_fail(VPPS_MEMORY, "cpu: out of memory for %u tables", n);
    cpu->batch.n_segments = 0;
    for (uint32_t p = 0; p < n; p++) {
        const vpps_row_segment s = vpps_row_sums_of(cpu->sum.rows, p);
        if (s.n) cpu->batch.segments[cpu->batch.n_segments++] = s;
    }
    return VPPS_OK;
}

/* Removes gradients of table entries whose table was frozen since they were computed. */
static void leave_frozen_out(vpps_cpu *cpu) {
    const vpps_parameter_data *params = cpu->model->params;
    uint32_t n = 0;
    for (uint32_t i = 0; i < cpu->batch.n_segments; i++)
        if (!params[cpu->batch.segments[i].param].frozen) cpu->batch.segments[n++] = cpu->batch.segments[i];
    cpu->batch.n_segments = n;
    for (uint32_t p = 0; p < cpu->model->n_params; p++)
        for (uint32_t v = 0; v < cpu->n_vps && params[p].frozen; v++) cpu->vps[v].touched[p] = 0;
}

vpps_status vpps_open_update(vpps_cpu *cpu) {
    VPPS_TRY(use_sums(cpu));
    cpu->batch.loss = cpu->sum.loss;
    leave_frozen_out(cpu);
    vpps_cpu_zero_gradients(&cpu->device); /* forgets gradients; the segments' memory stays until the next launch */
    return VPPS_OK;
}

void vpps_open_sum(vpps_cpu *cpu) {
    const vpps_rows vectors = cpu->gradients; /* only gradients of vectors need zeros first: their range */
    cpu->batch.loss = 0;
    if (cpu->batch.goal == VPPS_GOAL_NODES) return; /* gradients of nodes alone: no parameter gets one */
    if (!cpu->sum.open) {
        cpu->sum.number++;
        memset(cpu->pool + vectors.first, 0, (vectors.end - vectors.first) * sizeof(float));
    }
    cpu->sum.open = cpu->sum.untaken = cpu->batch.goal == VPPS_GOAL_GRADIENTS;
}

void vpps_cpu_zero_gradients(vpps_device *d) {
    vpps_cpu *cpu = (vpps_cpu *)d;
    vpps_row_sums_clear(cpu->sum.rows);
    cpu->sum.open = cpu->sum.untaken = false;
    cpu->sum.loss = 0;
}

/* ---------------------------------------------------------------- to the model, and from it */

vpps_status vpps_cpu_read_gradients(vpps_device *d, vpps_model *model) {
    vpps_cpu *cpu = (vpps_cpu *)d;
    VPPS_TRY(vpps_take_gradients(cpu));
    for (uint32_t p = 0; p < model->n_params; p++) {
        vpps_parameter_data *data = &model->params[p];
        if (data->kind == VPPS_LOOKUP) {
            const vpps_row_segment s = vpps_row_sums_of(cpu->sum.rows, p);
            VPPS_TRY(vpps_take_entry_gradients(data, s.n, s.rows, s.gradients));
            continue;
        }
        VPPS_TRY(vpps_need_gradient(data, cpu->sum.open && cpu->vps[0].touched[p] == cpu->sum.number));
        if (!data->has_gradient) continue;
        if (data->kind == VPPS_MATRIX) {
            vpps_copy_matrix(cpu, p, data->gradient, VPPS_MATRIX_GRADIENT, true);
        } else {
            memcpy(data->gradient, cpu->pool + cpu->plan.gradients[p], data->rows * sizeof(float));
        }
    }
    return VPPS_OK;
}

vpps_status vpps_cpu_write_gradients(vpps_device *d, const vpps_model *model) {
    vpps_cpu *cpu = (vpps_cpu *)d;
    VPPS_TRY(vpps_take_gradients(cpu));
    for (uint32_t p = 0; p < model->n_params; p++) {
        const vpps_parameter_data *data = &model->params[p];
        if (data->kind == VPPS_LOOKUP) {
            vpps_row_sums_set(cpu->sum.rows, p, data->n_entries, data->entries, data->gradient);
            continue;
        }
        if (!vpps_writes_gradient(data)) continue;
        if (data->kind == VPPS_MATRIX) {
            vpps_copy_matrix(cpu, p, data->gradient, VPPS_MATRIX_GRADIENT, false);
        } else {
            memcpy(cpu->pool + cpu->plan.gradients[p], data->gradient, data->rows * sizeof(float));
        }
        for (uint32_t v = 0; v < cpu->n_vps; v++) cpu->vps[v].touched[p] = cpu->sum.number;
    }
    return VPPS_OK;
}
