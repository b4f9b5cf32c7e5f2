/* share.c - gradients of several processes: the virtual processors (VPs: threads) meet before the first task that reads
 * all gradients, VP 0 exchanges them with other processes, and all continue with the sums. */
#include "runtime/cpu/cpu.h"

vpps_status vpps_cpu_open_share(vpps_cpu *cpu, vpps_communicator *c) {
    /* Text that must be equal in all processes: how products are computed, which determines results' bits, and the
     * number of virtual processors (threads), which also determines where parameters lie. */
    char machine[128];
    snprintf(machine, sizeof machine, "cpu %s %s %s %u", cpu->kernels->isa,
             vpps_precision_names[cpu->precision.precision], cpu->precision.unit.name, cpu->n_vps);
    return vpps_share_open(&cpu->share, cpu->model, machine, c);
}

/* Returns the virtual processor's (thread's) part of a matrix's gradient, which is contiguous in memory. */
static vpps_run matrix_run(const vpps_cpu *cpu, uint32_t param, uint32_t vp) {
    const vpps_blocks blocks = vpps_blocks_of(cpu, param, vp, cpu->n_vps);
    if (!blocks.n) return (vpps_run){NULL, 0};
    const vpps_matrix_block *first = blocks.blocks, *last = first + blocks.n - 1;
    return (vpps_run){first->gradient,
                      (size_t)(last->gradient - first->gradient) + last->ld * cpu->model->params[param].cols};
}

/* Sums gradients of matrices over all processes. They are stored by thread, then by matrix; adjacent ones are exchanged together. */
static vpps_status reduce_matrices(vpps_cpu *cpu, vpps_communicator *c, const bool *dense) {
    vpps_run all = {NULL, 0};
    for (uint32_t v = 0; v < cpu->n_vps; v++) {
        for (uint32_t p = 0; p < cpu->model->n_params; p++) {
            if (cpu->model->params[p].kind != VPPS_MATRIX || !dense[p]) continue;
            const vpps_run own = matrix_run(cpu, p, v);
            if (!own.n) continue;
            if (cpu->vps[v].touched[p] != cpu->sum.number) memset(own.at, 0, own.n * sizeof *own.at);
            if (all.at && own.at != all.at + all.n) {
                VPPS_TRY(vpps_comm_allreduce(c, all.at, all.n));
                all = (vpps_run){NULL, 0};
            }
            all = (vpps_run){all.at ? all.at : own.at, all.n + own.n};
        }
    }
    return all.n ? vpps_comm_allreduce(c, all.at, all.n) : VPPS_OK;
}

/* Sums gradients of matrices and vectors over all processes, also those of unused vectors, which are zero since the launch began. */
static vpps_status reduce(void *device, vpps_communicator *c) {
    vpps_cpu *cpu = device;
    const bool *dense = vpps_share_dense(cpu->share);
    bool any = false;
    VPPS_TRY(reduce_matrices(cpu, c, dense));
    for (uint32_t p = 0; p < cpu->model->n_params; p++) any |= cpu->model->params[p].kind == VPPS_VECTOR && dense[p];
    if (!any) return VPPS_OK;
    return vpps_comm_allreduce(c, cpu->pool + cpu->gradients.first, cpu->gradients.end - cpu->gradients.first);
}

/* Sums the squares of the gradients of sharded tables over all processes, if the norm is computed. */
static vpps_status share_squares(vpps_cpu *cpu) {
    if (!cpu->entries || (!cpu->batch.header.guard && !(cpu->batch.header.clip > 0))) return VPPS_OK;
    for (uint32_t i = 0; i < cpu->batch.n_segments; i++) {
        const vpps_row_segment *g = &cpu->batch.segments[i];
        const uint32_t words = cpu->model->params[g->param].rows * cpu->model->params[g->param].cols;
        for (uint32_t k = 0; k < g->n; k++)
            cpu->squares += cpu->kernels->sum_squares(words, g->gradients + (size_t)k * words);
    }
    return vpps_comm_sum(cpu->options.communicator, &cpu->squares, 1);
}

static vpps_status exchange(vpps_cpu *cpu) {
    bool *dense = vpps_share_dense(cpu->share);
    for (uint32_t p = 0; p < cpu->model->n_params; p++) dense[p] = cpu->vps[0].touched[p] == cpu->sum.number;
    for (uint32_t i = 0; i < cpu->batch.n_segments; i++) dense[cpu->batch.segments[i].param] = true;
    vpps_shared_batch batch = {.header = &cpu->batch.header,
                               .steps = cpu->batch.script + cpu->batch.header.steps,
                               .start_ns = cpu->batch.start_ns,
                               .vote = cpu->device.vote,
                               .loss = cpu->batch.loss,
                               .segments = cpu->batch.segments,
                               .n_segments = cpu->batch.n_segments,
                               .keep_rows = cpu->entries != NULL,
                               .reduce = reduce,
                               .device = cpu};
    const vpps_status status = vpps_share_exchange(cpu->share, &batch);
    cpu->batch.segments = batch.segments;
    VPPS_TRY(status);
    cpu->batch.n_segments = batch.n_segments;
    cpu->batch.loss = batch.loss;
    return share_squares(cpu);
}

static void add_one(vpps_counter *counter) {
    atomic_fetch_add(&counter->value, 1);
    vpps_wake(counter);
}

/* Exchanges gradients with other processes, when all other threads of this process have come. Called by thread 0. */
static bool lead(vpps_vp *vp) {
    vpps_cpu *cpu = vp->cpu;
    const uint32_t others = (cpu->n_vps - 1) * ++cpu->shared_batches;
    const vpps_wait_end end = vpps_wait_for(cpu, &cpu->arrived, others, cpu->watchdog_ns, true);
    if (end == VPPS_WAIT_TIMEOUT) vpps_cpu_fail(cpu, VPPS_STALL, "a VP's gradients are not there");
    if (end != VPPS_WAIT_REACHED) return false;
    const vpps_status status = exchange(cpu);
    if (status != VPPS_OK) vpps_cpu_fail(cpu, status, vpps_error_message());
    add_one(&cpu->released);
    return status == VPPS_OK;
}

bool vpps_vp_share(vpps_vp *vp) {
    vpps_cpu *cpu = vp->cpu;
    if (!cpu->share || vp->shared == cpu->launch) return true;
    vp->shared = cpu->launch;
    if (vp->index == 0) {
        if (!lead(vp)) return false;
    } else {
        const uint32_t batch = atomic_load(&cpu->released.value) + 1; /* thread 0 adds 1 when gradients are exchanged */
        add_one(&cpu->arrived);
        if (vpps_wait_for(cpu, &cpu->released, batch, 0, true) != VPPS_WAIT_REACHED) return false;
    }
    const bool *dense = vpps_share_dense(cpu->share);
    for (uint32_t p = 0; p < cpu->model->n_params; p++)
        if (cpu->model->params[p].kind != VPPS_LOOKUP && dense[p]) vp->touched[p] = cpu->sum.number;
    return !atomic_load(&cpu->batch.failed);
}

void vpps_share_wake(vpps_cpu *cpu) {
    vpps_wake(&cpu->arrived);
    vpps_wake(&cpu->released);
}
