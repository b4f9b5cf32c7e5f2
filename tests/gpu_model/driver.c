/* driver.c - functions of the CUDA driver that the model of a GPU (GPU_MODEL) lacks, or that do less there than in a driver. `make gpu-model`
 * links them to the model; the other functions are the model's. */
#include "runtime/gpu/cuda_api.h"

vpps_cu_result cuMemAlloc_v2(vpps_cu_address *address, size_t bytes);
vpps_cu_result cuMemFree_v2(vpps_cu_address address);
vpps_cu_result cuMemcpyDtoDAsync_v2(vpps_cu_address to, vpps_cu_address from, size_t bytes, vpps_cu_stream stream);

/* The model has one context, which is always current. */
vpps_cu_result cuCtxPushCurrent_v2(vpps_cu_context context) {
    (void)context;
    return VPPS_CU_SUCCESS;
}
vpps_cu_result cuCtxPopCurrent_v2(vpps_cu_context *context) {
    *context = NULL;
    return VPPS_CU_SUCCESS;
}

/* Kernels reach pinned memory at the host's address: the model's addresses of device memory are the host's, too. */
vpps_cu_result cuMemHostAlloc(void **memory, size_t bytes, unsigned flags) {
    vpps_cu_address address = 0;
    (void)flags;
    const vpps_cu_result code = cuMemAlloc_v2(&address, bytes);
    *memory = (void *)(uintptr_t)address;
    return code;
}
vpps_cu_result cuMemFreeHost(void *memory) { return cuMemFree_v2((uintptr_t)memory); }

/* All memory is taken for memory of GPU 0, of unknown size. */
vpps_cu_result cuPointerGetAttribute(void *value, unsigned attribute, vpps_cu_address address) {
    (void)address;
    if (attribute != VPPS_CU_POINTER_MEMORY_TYPE && attribute != VPPS_CU_POINTER_DEVICE) return VPPS_CU_INVALID_VALUE;
    *(unsigned *)value = attribute == VPPS_CU_POINTER_MEMORY_TYPE ? VPPS_CU_MEMORY_OF_DEVICE : 0;
    return VPPS_CU_SUCCESS;
}

vpps_cu_result cuMemcpy2DAsync_v2(const struct CUDA_MEMCPY2D_st *copy, vpps_cu_stream stream) {
    const vpps_cu_copy_2d *c = (const void *)copy;
    vpps_cu_result code = VPPS_CU_SUCCESS;
    for (size_t i = 0; i < c->height && code == VPPS_CU_SUCCESS; i++)
        code = cuMemcpyDtoDAsync_v2(c->to + i * c->to_pitch, c->from + i * c->from_pitch, c->width_bytes, stream);
    return code;
}
