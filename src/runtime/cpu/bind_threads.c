/* bind_threads.c - binds virtual processors (VPs) to CPUs near the memory of their parameters.
 *
 * The system places a page in the memory node of the thread that touches it first. So each VP touches its own rows of the matrices before
 * the caller writes values into them. Pages of gradients, optimiser states and copies are first touched in the first batch, by the VPs that
 * write them; so are the batch's tensors. Pages of vectors and tables, which all VPs read, are spread over the nodes. */
#include "runtime/cores.h"
#include "runtime/cpu/cpu.h"

#include <sched.h>

enum { PAGE = 4096 };

vpps_status vpps_cpu_choose_places(vpps_cpu *cpu) {
    const int here = sched_getcpu();
    if (cpu->n_vps == 1) return VPPS_OK;
    cpu->chosen = calloc(cpu->n_vps, sizeof *cpu->chosen);
    if (!cpu->chosen) return vpps_fail(VPPS_MEMORY, "cpu: out of memory for %u VPs", cpu->n_vps);
    VPPS_TRY(vpps_places_here(&cpu->places));
    VPPS_TRY(vpps_choose_places(&cpu->places, cpu->n_vps, here < 0 ? 0 : (uint32_t)here, cpu->chosen));
    cpu->hold = vpps_hold_of(&cpu->places, cpu->n_vps, cpu->chosen);
    return VPPS_OK;
}

/* Binds a virtual processor's thread to the CPUs where it may run. If the system refuses, the thread may run anywhere. */
static void hold(const vpps_vp *vp) {
    const vpps_places *p = &vp->cpu->places;
    const vpps_core_place *own = &p->at[vp->cpu->chosen[vp->index]];
    cpu_set_t set[VPPS_CPU_SETS];
    CPU_ZERO_S(sizeof set, set);
    for (uint32_t i = 0; i < p->n; i++)
        if (vpps_within(own, &p->at[i], vp->cpu->hold)) CPU_SET_S(p->at[i].cpu, sizeof set, set);
    sched_setaffinity(0, sizeof set, set);
}

/* Touches zeroed memory that no thread has touched, so that the system places it in this thread's memory node. */
static void touch(void *memory, size_t bytes) {
    volatile char *at = memory;
    for (size_t i = 0; i < bytes; i += PAGE) at[i] = 0;
    if (bytes) at[bytes - 1] = 0;
}

static void touch_matrix(const vpps_vp *vp, uint32_t param) {
    const vpps_cpu *cpu = vp->cpu;
    const vpps_parameter_data *data = &cpu->model->params[param];
    const uint32_t parts = cpu->precision.parts;
    const vpps_blocks own = vpps_blocks_of(cpu, param, vp->index, cpu->n_vps);
    for (uint32_t b = 0; b < own.n; b++) {
        const vpps_matrix_block *block = &own.blocks[b];
        const size_t bytes = block->ld * data->cols * sizeof(float);
        touch(block->values, bytes);
        for (uint32_t s = 0; s < cpu->n_states; s++)
            if (data->states[s]) touch(block->states[s], bytes);
        if (parts) touch(block->packed, vpps_bf16_words(block->rows, data->cols, parts) * sizeof(uint32_t));
    }
}

/* Touches this thread's part of a vector or table, so that the pages of parameters that all threads read are spread over memory nodes. */
static void touch_slice(const vpps_vp *vp, uint32_t param) {
    const vpps_cpu *cpu = vp->cpu;
    const uint64_t words = vpps_param_elems(&cpu->model->params[param]), first = words * vp->index / cpu->n_vps,
                   end = words * (vp->index + (uint64_t)1) / cpu->n_vps;
    touch(cpu->pool + cpu->plan.values[param] + first, (end - first) * sizeof(float));
}

void vpps_bind_vp(const vpps_vp *vp) {
    const vpps_cpu *cpu = vp->cpu;
    if (vp->has_thread && cpu->hold != VPPS_HOLD_ANYWHERE) hold(vp);
    for (uint32_t p = 0; p < cpu->model->n_params; p++) {
        const vpps_parameter_data *data = &cpu->model->params[p];
        if (data->kind == VPPS_MATRIX) {
            touch_matrix(vp, p);
        } else if (!vpps_is_sharded(data)) {
            touch_slice(vp, p);
        }
    }
}
