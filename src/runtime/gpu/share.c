/* share.c - GPUs of several processes: a batch's kernel runs twice, up to where all gradients are there, and from there on. In
 * between the gradients of all processes become one: those of matrices and vectors by NCCL where there is one, between the
 * GPUs; else by the processes' communicator, through the host, as the rows of lookup tables always do.
 */
#include "runtime/gpu/gpu.h"

#include <stdio.h>

/* ---------------------------------------------------------------- life */

/* Between software SIMT's "GPUs" only what $VPPS_NCCL names can do so: a stand-in that knows the host's memory. */
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
        vpps_gpu_log(gpu, "gradients go from GPU to GPU by NCCL");
    } else if (status == VPPS_DEVICE) {
        vpps_gpu_log(gpu, "gradients go through the host: %s", vpps_error_message());
    }
    return status == VPPS_DEVICE ? VPPS_OK : status;
}

vpps_status vpps_gpu_open_share(vpps_gpu *gpu) {
    vpps_communicator *c = gpu->options.communicator;
    char machine[64];
    if (vpps_communicator_size(c) < 2) return VPPS_OK;
    snprintf(machine, sizeof machine, "%s %s %u", gpu->table->name, vpps_precision_names[gpu->layout.precision],
             gpu->layout.plan.n_vps);
    VPPS_TRY(vpps_share_open(&gpu->share, gpu->model, machine, c));
    return connect_gpus(gpu, c);
}

void vpps_gpu_close_share(vpps_gpu *gpu) {
    if (gpu->gpus) vpps_communicator_close(gpu->gpus);
    vpps_share_close(gpu->share);
    free(gpu->segments);
    free(gpu->staged);
    free(gpu->rows);
}

uint32_t vpps_gpu_number(const vpps_communicator *c) {
    uint32_t before = 0;
    for (uint32_t p = 0; c && p < c->rank; p++) before += !strcmp(c->hosts[p], c->hosts[c->rank]);
    return before;
}

/* ---------------------------------------------------------------- matrices and vectors */

static vpps_status no_memory(const vpps_gpu *gpu) {
    return vpps_fail(VPPS_MEMORY, "%s: out of memory for gradients of several processes", gpu->table->name);
}

static vpps_status reduce_run(vpps_gpu *gpu, vpps_communicator *c, uint64_t address, size_t words) {
    if (!words) return VPPS_OK;
    if (gpu->gpus) {
        const uint64_t sent = gpu->gpus->sent_bytes;
        VPPS_TRY(gpu->gpus->table->allreduce(gpu->gpus, (float *)(uintptr_t)address, words));
        c->sent_bytes += gpu->gpus->sent_bytes - sent;
        return VPPS_OK;
    }
    if (!VPPS_RESERVE(gpu->staged, gpu->staged_capacity, words)) return no_memory(gpu);
    VPPS_TRY(gpu->table->read(gpu->driver, gpu->staged, address, words * sizeof(float)));
    VPPS_TRY(c->table->allreduce(c, gpu->staged, words));
    VPPS_TRY(gpu->table->write(gpu->driver, address, gpu->staged, words * sizeof(float)));
    return vpps_gpu_settle(gpu); /* `staged` is used again */
}

/* Matrices that follow each other go at a time. */
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

/* ---------------------------------------------------------------- a batch */

vpps_status vpps_gpu_clear_gradients(vpps_gpu *gpu) {
    const vpps_rows vectors = gpu->layout.gradients;
    VPPS_TRY(gpu->table->clear(gpu->driver, gpu->gradients.address, gpu->layout.matrix_words * sizeof(float)));
    return gpu->table->clear(gpu->driver, gpu->pool.address + 4 * (uint64_t)vectors.first,
                             (vectors.end - vectors.first) * sizeof(float));
}

/* The parameters whose gradients the script's outer products make. */
static void mark_dense(vpps_gpu *gpu, const vpps_batch *batch) {
    bool *dense = vpps_share_dense(gpu->share);
    const uint32_t *script = batch->script, *starts = script + VPPS_TASK_HEADER_WORDS;
    memset(dense, 0, gpu->model->n_params * sizeof *dense);
    for (uint32_t at = starts[0]; at < starts[1]; at += 1 + vpps_tasks[script[at]].words) {
        if (script[at] != VPPS_TASK_OUTER || !script[at + 3]) continue;
        const vpps_compiled_cell *c = batch->cells[vpps_block_at(script, script[at + 1])->cell];
        for (uint32_t i = 0; i < c->n_outers; i++) dense[c->outers[i].param] = true;
    }
}

/* The rows that the script trains, copied to the host. */
static vpps_status take_rows(vpps_gpu *gpu, const vpps_batch *batch) {
    size_t words = 0;
    gpu->n_segments = gpu->header.n_tables;
    for (uint32_t i = 0; i < gpu->n_segments; i++) {
        const vpps_table *t = vpps_table_at(batch->script, i);
        words += (size_t)t->n * vpps_gpu_entry_words(gpu, t->param);
    }
    if (!VPPS_RESERVE(gpu->rows, gpu->rows_capacity, words + 1) ||
        !VPPS_RESERVE(gpu->segments, gpu->segments_capacity, gpu->n_segments + 1u)) {
        return no_memory(gpu);
    }
    float *to = gpu->rows;
    for (uint32_t i = 0; i < gpu->n_segments; i++) {
        const vpps_table *t = vpps_table_at(batch->script, i);
        const size_t n = (size_t)t->n * vpps_gpu_entry_words(gpu, t->param);
        gpu->segments[i] = (vpps_row_segment){t->param, t->n, batch->script + t->rows, to};
        VPPS_TRY(gpu->table->read(gpu->driver, to, gpu->pool.address + 4 * (uint64_t)t->gradients, n * sizeof(float)));
        to += n;
    }
    return VPPS_OK;
}

/* The rows of all processes, to the device. */
static vpps_status give_rows(vpps_gpu *gpu) {
    size_t words = 0;
    for (uint32_t i = 0; i < gpu->n_segments; i++)
        words += (size_t)gpu->segments[i].n * vpps_gpu_entry_words(gpu, gpu->segments[i].param);
    VPPS_TRY(vpps_gpu_reserve(gpu, &gpu->entries, (words + 1) * sizeof(float)));
    uint64_t to = gpu->entries.address;
    for (uint32_t i = 0; i < gpu->n_segments; i++) {
        const vpps_row_segment *s = &gpu->segments[i];
        const size_t bytes = (size_t)s->n * vpps_gpu_entry_words(gpu, s->param) * sizeof(float);
        VPPS_TRY(gpu->table->write(gpu->driver, to, s->gradients, bytes));
        to += bytes;
    }
    return vpps_gpu_settle(gpu);
}

vpps_status vpps_gpu_exchange(vpps_gpu *gpu, const vpps_batch *batch, float *loss) {
    mark_dense(gpu, batch);
    VPPS_TRY(take_rows(gpu, batch));
    vpps_shared_batch shared = {.header = &gpu->header,
                                .start_ns = gpu->start_ns,
                                .vote = gpu->device.vote,
                                .loss = *loss,
                                .segments = gpu->segments,
                                .segments_capacity = gpu->segments_capacity,
                                .n_segments = gpu->n_segments,
                                .reduce = reduce,
                                .device = gpu};
    const vpps_status status = vpps_share_exchange(gpu->share, &shared);
    gpu->segments = shared.segments;
    gpu->segments_capacity = shared.segments_capacity;
    VPPS_TRY(status);
    gpu->n_segments = shared.n_segments;
    *loss = (float)shared.loss;
    return give_rows(gpu);
}
