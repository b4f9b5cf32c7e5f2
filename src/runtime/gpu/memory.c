/* memory.c - buffers, and the pool: a buffer that has all parameters except matrices, then a batch's values. The pool grows with the
 * batches, and never loses a parameter: the host keeps a copy while the old pool is freed and a larger one is allocated. The copy stays
 * there if not even a pool of the old size can be allocated again. */
#include "runtime/gpu/gpu.h"

void vpps_gpu_release(vpps_gpu *gpu, vpps_gpu_buffer *buffer) {
    if (buffer->bytes) gpu->table->release(gpu->driver, buffer->address);
    *buffer = (vpps_gpu_buffer){0};
}

vpps_status vpps_gpu_reserve(vpps_gpu *gpu, vpps_gpu_buffer *buffer, size_t bytes) {
    if (bytes <= buffer->bytes) return VPPS_OK;
    if (buffer->bytes) VPPS_TRY(vpps_gpu_finish(gpu)); /* launches may still use the old buffer */
    vpps_gpu_release(gpu, buffer);
    VPPS_TRY(gpu->table->allocate(gpu->driver, bytes, &buffer->address));
    buffer->bytes = bytes;
    return VPPS_OK;
}

vpps_status vpps_gpu_finish(vpps_gpu *gpu) { return gpu->table->wait(gpu->driver); }

/* Returns the bytes of the pool (device memory) that outlive batches: parameters and, if reserved, kept values. */
static size_t lasting_bytes(const vpps_gpu *gpu) { return (size_t)gpu->layout.target.batch * sizeof(float); }

static vpps_status rescue(vpps_gpu *gpu) {
    free(gpu->rescued);
    if (!(gpu->rescued = malloc(lasting_bytes(gpu) + 1)))
        return vpps_fail(VPPS_MEMORY, "%s: out of memory", gpu->table->name);
    return gpu->table->read(gpu->driver, gpu->rescued, gpu->pool.address, lasting_bytes(gpu));
}

/* Allocates the pool (device memory). Copies parameters in gpu->rescued into it. After a failure there is no pool. */
static vpps_status allocate(vpps_gpu *gpu, size_t bytes) {
    VPPS_TRY(vpps_gpu_reserve(gpu, &gpu->pool, bytes));
    if (!gpu->rescued) return VPPS_OK;
    vpps_status status = gpu->table->write(gpu->driver, gpu->pool.address, gpu->rescued, lasting_bytes(gpu));
    if (status == VPPS_OK) status = vpps_gpu_finish(gpu);
    if (status != VPPS_OK) return vpps_gpu_release(gpu, &gpu->pool), status;
    free(gpu->rescued);
    gpu->rescued = NULL;
    return VPPS_OK;
}

vpps_status vpps_gpu_grow_pool(vpps_gpu *gpu, uint32_t words) {
    const size_t needed = (size_t)words * sizeof(float), before = gpu->pool.bytes;
    char reason[VPPS_MESSAGE_BYTES];
    if (needed <= before) return VPPS_OK;
    if (before) VPPS_TRY(rescue(gpu));
    vpps_gpu_release(gpu, &gpu->pool);
    /* a quarter larger than needed, if possible, so that similar batches do not grow device memory each time */
    vpps_status status = allocate(gpu, needed + needed / 4);
    if (status == VPPS_MEMORY) status = allocate(gpu, needed);
    if (status != VPPS_MEMORY || !before) return status;
    snprintf(reason, sizeof reason, "%s", vpps_error_message());
    const vpps_status again = allocate(gpu, before);
    if (again != VPPS_OK && again != VPPS_MEMORY) return again; /* the GPU is lost */
    vpps_restore_message(reason);
    return status;
}

vpps_status vpps_gpu_reserve_kept(vpps_device *d, uint32_t words) {
    vpps_gpu *gpu = (vpps_gpu *)d;
    VPPS_TRY(vpps_gpu_take_gradients(d)); /* saves table rows' gradients in words that kept values are about to take */
    VPPS_TRY(vpps_gpu_grow_pool(gpu, gpu->layout.target.batch + words + 1));
    gpu->layout.target.batch += words;
    return VPPS_OK;
}

vpps_status vpps_gpu_restore_pool(vpps_gpu *gpu) {
    return gpu->pool.bytes ? VPPS_OK : vpps_gpu_grow_pool(gpu, gpu->layout.target.batch + 1);
}
