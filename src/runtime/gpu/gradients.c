/* gradients.c - sums gradients over several launches, until an update. Those of matrices and vectors stay on the GPU; a
 * launch's program (script) tells which of them exist. Those of lookup-table entries lie among the batch's values in
 * GPU memory, so the host copies and sums them before the next batch reuses that memory. */
#include "runtime/gpu/gpu.h"

void vpps_gpu_mark_outers(const vpps_batch *batch, bool products, bool *marks) {
    const vpps_task *end = vpps_end_of_tasks(batch->script, 0);
    for (const vpps_task *t = vpps_first_task(batch->script, 0); t < end; t++) {
        if (t->kind != VPPS_TASK_OUTER || !t->operands[2]) continue;
        const vpps_compiled_cell *c = batch->cells[vpps_block_at(batch->script, t->operands[0])->cell];
        for (uint32_t i = 0; i < vpps_n_outers(c); i++)
            marks[vpps_outer_of(c, i).param] |= products || !vpps_outer_of(c, i).x;
    }
}

static vpps_status clear(vpps_gpu *gpu) {
    const vpps_rows vectors = gpu->layout.gradients;
    VPPS_TRY(gpu->table->clear(gpu->driver, gpu->gradients.address, gpu->layout.matrix_words * sizeof(float)));
    return gpu->table->clear(gpu->driver, gpu->pool.address + 4 * (uint64_t)vectors.first,
                             (vectors.end - vectors.first) * sizeof(float));
}

vpps_status vpps_gpu_open_sum(vpps_gpu *gpu) {
    memset(gpu->dense, 0, gpu->model->n_params * sizeof *gpu->dense);
    return gpu->share ? clear(gpu) : VPPS_OK; /* zeros are needed where only other processes have gradients */
}

/* Copies a batch's gradients of lookup-table entries to gpu->rows on the host, and lists them in gpu->segments. */
static vpps_status read_entries(vpps_gpu *gpu, const uint32_t *script) {
    const vpps_task_header *h = vpps_task_header_of(script);
    size_t words = 0;
    for (uint32_t i = 0; i < h->n_tables; i++) {
        const vpps_table *t = vpps_table_at(script, i);
        words += (size_t)t->n * vpps_entry_elems(gpu->model, t->param);
    }
    if (!VPPS_RESERVE(gpu->rows, words + 1) || !VPPS_RESERVE(gpu->segments, h->n_tables + 1u))
        return vpps_fail(VPPS_MEMORY, "%s: out of memory for gradients", gpu->table->name);
    float *to = gpu->rows;
    for (uint32_t i = 0; i < h->n_tables; i++) {
        const vpps_table *t = vpps_table_at(script, i);
        const size_t n = (size_t)t->n * vpps_entry_elems(gpu->model, t->param);
        gpu->segments[i] = (vpps_row_segment){t->param, t->n, script + t->rows, to};
        VPPS_TRY(gpu->table->read(gpu->driver, to, gpu->pool.address + 4 * (uint64_t)t->gradients, n * sizeof(float)));
        to += n;
    }
    gpu->n_segments = h->n_tables;
    return VPPS_OK;
}

vpps_status vpps_gpu_take_gradients(vpps_device *d) {
    vpps_gpu *gpu = (vpps_gpu *)d;
    if (!gpu->untaken) return VPPS_OK;
    VPPS_TRY(read_entries(gpu, gpu->untaken));
    VPPS_TRY(vpps_row_sums_add(gpu->device.row_sums, gpu->segments, gpu->n_segments));
    gpu->untaken = NULL;
    return VPPS_OK;
}

vpps_status vpps_gpu_open_update(vpps_gpu *gpu) {
    VPPS_TRY(vpps_row_sums_list(gpu->device.row_sums, &gpu->segments, &gpu->n_segments));
    for (uint32_t i = 0; i < gpu->n_segments; i++) gpu->dense[gpu->segments[i].param] = true;
    for (uint32_t p = 0; p < gpu->model->n_params; p++) gpu->dense[p] &= !gpu->model->params[p].frozen;
    return VPPS_OK;
}

vpps_status vpps_gpu_give_entries(vpps_gpu *gpu) {
    size_t words = 0;
    for (uint32_t i = 0; i < gpu->n_segments; i++)
        words += (size_t)gpu->segments[i].n * vpps_entry_elems(gpu->model, gpu->segments[i].param);
    VPPS_TRY(vpps_gpu_reserve(gpu, &gpu->entries, (words + 1) * sizeof(float)));
    uint64_t to = gpu->entries.address;
    for (uint32_t i = 0; i < gpu->n_segments; i++) {
        const vpps_row_segment *s = &gpu->segments[i];
        const size_t bytes = (size_t)s->n * vpps_entry_elems(gpu->model, s->param) * sizeof(float);
        VPPS_TRY(gpu->table->write(gpu->driver, to, s->gradients, bytes));
        to += bytes;
    }
    return vpps_gpu_finish(gpu);
}

void vpps_gpu_zero_gradients(vpps_device *d) {
    vpps_gpu *gpu = (vpps_gpu *)d;
    vpps_row_sums_clear(gpu->device.row_sums);
    gpu->summing = false;
    gpu->untaken = NULL;
    gpu->sum_loss = 0;
}
