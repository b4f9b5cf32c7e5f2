/* share.c - exchanges gradients between GPUs of several processes. A batch takes two launches: the first one computes all gradients, the
 * second one updates. In between, gradients are summed over all processes: gradients of matrices and vectors by NCCL, between the GPUs, if
 * NCCL is available; other gradients, such as table entries', by the processes' communicator, through the host. */
#include "runtime/gpu/gpu.h"

/* Returns whether to use NCCL. Software SIMT, whose memory is host memory, can only use a stand-in that $VPPS_NCCL names. */
static bool nccl_is_wanted(const vpps_gpu *gpu) {
    const char *named = getenv("VPPS_NCCL");
    return gpu->table == &vpps_driver_cuda || (named && *named);
}

static vpps_status connect_gpus(vpps_gpu *gpu, vpps_communicator *c) {
    vpps_gpu_stream stream;
    if (!nccl_is_wanted(gpu)) return VPPS_OK;
    gpu->table->stream(gpu->driver, &stream);
    const vpps_status status = vpps_nccl_open(&gpu->gpus, c, stream);
    if (status == VPPS_OK) {
        vpps_log_line(&gpu->options, "gradients go from GPU to GPU by NCCL");
    } else if (status == VPPS_DEVICE) {
        vpps_log_line(&gpu->options, "gradients go through the host: %s", vpps_error_message());
    }
    return status == VPPS_DEVICE ? VPPS_OK : status;
}

vpps_status vpps_gpu_open_share(vpps_gpu *gpu) {
    vpps_communicator *c = gpu->options.communicator;
    char machine[64];
    if (vpps_communicator_size(c) < 2) return VPPS_OK;
    snprintf(machine, sizeof machine, "%s %s %u", gpu->table->name, vpps_precision_names[gpu->layout.precision],
             gpu->layout.plan.n_vps);
    char text[VPPS_SHARE_TEXT] = ""; /* CPUs tell how they multiply, GPUs nothing; all must call vpps_share_text */
    VPPS_TRY(vpps_share_text(c, text));
    VPPS_TRY(vpps_share_open(&gpu->share, gpu->model, machine, c));
    return connect_gpus(gpu, c);
}

void vpps_gpu_close_share(vpps_gpu *gpu) {
    vpps_nccl_close(gpu->gpus);
    vpps_share_close(gpu->share);
    VPPS_FREE_ARRAYS(gpu->staged);
}

uint32_t vpps_gpu_number(const vpps_communicator *c) {
    uint32_t before = 0;
    for (uint32_t p = 0; c && p < c->rank; p++) before += !strcmp(c->hosts[p], c->hosts[c->rank]);
    return before;
}

static vpps_status reduce_run(vpps_gpu *gpu, vpps_communicator *c, uint64_t address, size_t words) {
    if (!words) return VPPS_OK;
    if (gpu->gpus) return vpps_nccl_sum(gpu->gpus, (float *)(uintptr_t)address, words);
    if (!VPPS_RESERVE(gpu->staged, words))
        return vpps_fail(VPPS_MEMORY, "%s: out of memory for gradients of several processes", gpu->table->name);
    VPPS_TRY(gpu->table->read(gpu->driver, gpu->staged, address, words * sizeof(float)));
    VPPS_TRY(vpps_comm_allreduce(c, gpu->staged, words));
    VPPS_TRY(gpu->table->write(gpu->driver, address, gpu->staged, words * sizeof(float)));
    return vpps_gpu_finish(gpu); /* waits: the next copy uses gpu->staged again */
}

/* Sums gradients of matrices and vectors over all processes. Matrices that are adjacent in memory are summed by one call. */
static vpps_status reduce(void *device, vpps_communicator *c) {
    vpps_gpu *gpu = device;
    const vpps_gpu_layout *l = &gpu->layout;
    const bool *dense = vpps_share_dense(gpu->share);
    uint32_t first = 0, end = 0;
    bool vectors = false;
    for (uint32_t p = 0; p < gpu->model->n_params; p++) {
        const vpps_parameter_data *data = &gpu->model->params[p];
        vectors |= data->kind == VPPS_VECTOR && dense[p];
        if (data->kind != VPPS_MATRIX || !dense[p]) continue;
        if (l->matrix_at[p] != end) {
            VPPS_TRY(reduce_run(gpu, c, gpu->gradients.address + 4 * (uint64_t)first, end - first));
            first = l->matrix_at[p];
        }
        end = l->matrix_at[p] + (uint32_t)vpps_param_elems(data);
    }
    VPPS_TRY(reduce_run(gpu, c, gpu->gradients.address + 4 * (uint64_t)first, end - first));
    if (!vectors) return VPPS_OK;
    return reduce_run(gpu, c, gpu->pool.address + 4 * (uint64_t)l->gradients.first,
                      l->gradients.end - l->gradients.first);
}

vpps_status vpps_gpu_exchange(vpps_gpu *gpu, const vpps_batch *batch, double *loss) {
    memcpy(vpps_share_dense(gpu->share), gpu->dense, gpu->model->n_params * sizeof *gpu->dense);
    vpps_shared_batch shared = {.header = &gpu->header,
                                .steps = batch->script + gpu->header.steps,
                                .start_ns = gpu->start_ns,
                                .vote = gpu->device.vote,
                                .loss = *loss,
                                .segments = gpu->segments,
                                .n_segments = gpu->n_segments,
                                .reduce = reduce,
                                .device = gpu};
    const vpps_status status = vpps_share_exchange(gpu->share, &shared);
    gpu->segments = shared.segments;
    VPPS_TRY(status);
    gpu->n_segments = shared.n_segments;
    memcpy(gpu->dense, vpps_share_dense(gpu->share), gpu->model->n_params * sizeof *gpu->dense);
    *loss = shared.loss;
    return VPPS_OK;
}
