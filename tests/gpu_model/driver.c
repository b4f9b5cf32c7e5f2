/* driver.c - functions of the CUDA driver that the model of a GPU (GPU_MODEL) lacks, or that do less there than in a driver. `make gpu-model`
 * links them to the model; the other functions are the model's. */

unsigned cuMemAlloc_v2(unsigned long long *address, unsigned long bytes);
unsigned cuMemFree_v2(unsigned long long address);

/* The model has one context, which is always current. */
unsigned cuCtxPushCurrent_v2(void *context) { return context ? 0 : 201; }
unsigned cuCtxPopCurrent_v2(void **context) {
    *context = 0;
    return 0;
}

/* Kernels reach pinned memory at the host's address: the model's addresses of device memory are the host's, too. */
unsigned cuMemHostAlloc(void **memory, unsigned long bytes, unsigned flags) {
    unsigned long long address = 0;
    (void)flags;
    const unsigned code = cuMemAlloc_v2(&address, bytes);
    *memory = (void *)address;
    return code;
}
unsigned cuMemFreeHost(void *memory) { return cuMemFree_v2((unsigned long long)memory); }

/* Callers' arrays in device memory are not supported. */
unsigned cuPointerGetAttribute(void *value, unsigned attribute, unsigned long long address) {
    (void)value, (void)attribute, (void)address;
    return 801;
}
unsigned cuMemcpy2DAsync_v2(const void *copy, void *stream) {
    (void)copy, (void)stream;
    return 801;
}
