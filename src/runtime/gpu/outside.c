/* outside.c - copies between the device's memory pool and the caller's arrays in the GPU's memory. */
#include "runtime/gpu/gpu.h"

vpps_status vpps_gpu_check_array(vpps_device *d, const void *array, size_t bytes, const char *what) {
    const vpps_gpu *gpu = (const vpps_gpu *)d;
    return gpu->table->check_outside(gpu->driver, array, bytes, what);
}

static bool is_zeros(const vpps_pool_copy *c) { return c->offset == VPPS_NONE || !c->array; }

/* Returns how many of the n copies, from the first on, can be done by one strided copy: they must be of equal size and equally far apart,
 * and lie in one allocation of the caller. *pool_step, *step: the distances, in bytes, in the pool and in the caller's memory. */
static uint32_t count_alike(const vpps_gpu *gpu, uint32_t n, const vpps_pool_copy *c, size_t *pool_step, size_t *step) {
    const size_t bytes = c->words * sizeof(float);
    *pool_step = *step = bytes;
    if (n < 2 || is_zeros(c) || is_zeros(c + 1) || c[1].offset <= c->offset) return 1;
    const size_t apart = (c[1].offset - c->offset) * sizeof(float), between = (size_t)c[1].array - (size_t)c->array;
    if (apart < bytes || between < bytes || apart > INT32_MAX || between > INT32_MAX) return 1; /* the largest step */
    const size_t room = gpu->table->room_outside(gpu->driver, (uintptr_t)c->array);
    const size_t most = room < bytes ? 1 : (room - bytes) / between + 1;
    uint32_t alike = 1;
    while (alike < n && alike < most && c[alike].words == c->words && !is_zeros(c + alike) &&
           (c[alike].offset - c->offset) * sizeof(float) == alike * apart &&
           (size_t)c[alike].array - (size_t)c->array == alike * between)
        alike++;
    if (alike > 1) *pool_step = apart, *step = between;
    return alike;
}

vpps_status vpps_gpu_trade(vpps_device *d, bool in, uint32_t n, const vpps_pool_copy *copies, void *stream) {
    const vpps_gpu *gpu = (const vpps_gpu *)d;
    VPPS_TRY(vpps_gpu_restore_pool((vpps_gpu *)d));
    VPPS_TRY(gpu->table->order(gpu->driver, stream, true));
    for (uint32_t i = 0, alike; i < n; i += alike) {
        const vpps_pool_copy *c = &copies[i];
        size_t pool_step, step;
        alike = count_alike(gpu, n - i, c, &pool_step, &step);
        const size_t bytes = c->words * sizeof(float);
        const bool whole = pool_step == bytes && step == bytes;
        const uint64_t array = (uintptr_t)c->array, pool = gpu->pool.address + sizeof(float) * (uint64_t)c->offset;
        const uint64_t place = c->offset == VPPS_NONE ? 0 : pool;
        const vpps_outside_copy copy = {.to = in ? place : array,
                                        .from = in ? array : place,
                                        .to_step = in ? pool_step : step,
                                        .from_step = in ? step : pool_step,
                                        .bytes = bytes * (whole ? alike : 1),
                                        .n = whole ? 1 : alike,
                                        .in = in};
        VPPS_TRY(gpu->table->copy_outside(gpu->driver, &copy));
    }
    return gpu->table->order(gpu->driver, stream, false);
}

vpps_status vpps_gpu_lend(vpps_device *d, uint64_t words, vpps_array **out, float **address) {
    const vpps_gpu *gpu = (const vpps_gpu *)d;
    vpps_driver *driver;
    uint64_t at;
    VPPS_TRY(gpu->table->branch(gpu->driver, &driver));
    const vpps_status status = driver->table->allocate(driver, words * sizeof(float), &at);
    if (status != VPPS_OK) return driver->table->close(driver), status;
    *address = (float *)(uintptr_t)at;
    *out = (vpps_array *)(void *)driver;
    return VPPS_OK;
}

void vpps_array_destroy(vpps_array *array) {
    vpps_driver *driver = (vpps_driver *)(void *)array;
    if (driver) driver->table->close(driver);
}
