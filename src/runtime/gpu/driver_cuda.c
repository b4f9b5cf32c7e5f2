/* driver_cuda.c - a GPU by way of the CUDA driver: device 0 of those that $CUDA_VISIBLE_DEVICES lets the driver see, its
 * primary context and one stream, in which everything happens in the order of the calls.
 */
#include "runtime/gpu/cuda_api.h"
#include "runtime/gpu/driver.h"

struct vpps_kernel {
    vpps_kernel *next;
    vpps_cu_module module;
    vpps_cu_function function;
    vpps_launch_shape shape; /* that was found to fit */
};

/* What is allocated: addresses on the device, or pointers to pinned memory. */
typedef struct holdings {
    uint64_t *at;
    size_t n, room;
} holdings;

typedef struct cuda_driver {
    vpps_driver base;
    vpps_cuda cuda;
    vpps_cublas cublas;
    vpps_cublas_handle products; /* NULL: no product yet */
    vpps_cu_device device;
    vpps_cu_context context;
    vpps_cu_stream stream;
    vpps_cu_event start, stop;
    bool started, stopped; /* the clocks, since the last wait */
    uint32_t arch, sms;
    holdings memory, pinned;
    vpps_kernel *kernels;
} cuda_driver;

#define CUDA_TRY(d, what, call)                                                                                        \
    do {                                                                                                               \
        const vpps_cu_result code_ = (d)->cuda.call;                                                                   \
        if (code_ != VPPS_CU_SUCCESS) return vpps_cuda_failed(&(d)->cuda, what, code_);                                \
    } while (0)

/* The context belongs to the calling thread only while it is current there; any thread may call. */
static vpps_status enter(vpps_driver *base, cuda_driver **d) {
    *d = (cuda_driver *)base;
    CUDA_TRY(*d, "the context", cuCtxSetCurrent((*d)->context));
    return VPPS_OK;
}

static void holdings_forget(holdings *h, uint64_t what) {
    for (size_t i = 0; i < h->n; i++)
        if (h->at[i] == what) {
            h->at[i] = h->at[--h->n];
            return;
        }
}

/* ---------------------------------------------------------------- open and close */

static vpps_status find_gpu(cuda_driver *d) {
    int count = 0;
    const vpps_cu_result code = d->cuda.cuInit(0);
    switch (code) {
    case VPPS_CU_SUCCESS: break;
    case VPPS_CU_STUB_LIBRARY:
        return vpps_fail(VPPS_DEVICE, "cuda: no GPU: libcuda is the toolkit's stub, not a driver (code 34)");
    case VPPS_CU_INSUFFICIENT_DRIVER:
        return vpps_fail(VPPS_DEVICE, "cuda: no GPU: the driver is missing or too old (code 35)");
    case VPPS_CU_NO_DEVICE: return vpps_fail(VPPS_DEVICE, "cuda: no GPU: the driver sees none (code 100)");
    default: return vpps_cuda_failed(&d->cuda, "the driver does not start", code);
    }
    CUDA_TRY(d, "counting GPUs", cuDeviceGetCount(&count));
    if (count < 1) return vpps_fail(VPPS_DEVICE, "cuda: no GPU: the driver sees none");
    CUDA_TRY(d, "the first GPU", cuDeviceGet(&d->device, 0));
    return VPPS_OK;
}

static vpps_status describe(cuda_driver *d, vpps_machine *machine) {
    int major = 0, minor = 0, sms = 0, registers = 0, sm_shared = 0, cta_shared = 0, l2 = 0, cooperative = 0;
    const struct {
        unsigned attribute;
        int *value;
    } asked[] = {
        {VPPS_CU_DEVICE_ARCH_MAJOR, &major},
        {VPPS_CU_DEVICE_ARCH_MINOR, &minor},
        {VPPS_CU_DEVICE_SMS, &sms},
        {VPPS_CU_DEVICE_SM_REGISTERS, &registers},
        {VPPS_CU_DEVICE_SM_SHARED_BYTES, &sm_shared},
        {VPPS_CU_DEVICE_CTA_SHARED_BYTES, &cta_shared},
        {VPPS_CU_DEVICE_L2_BYTES, &l2},
        {VPPS_CU_DEVICE_COOPERATIVE, &cooperative},
    };
    for (size_t i = 0; i < VPPS_COUNT(asked); i++)
        CUDA_TRY(d, "an attribute of the GPU", cuDeviceGetAttribute(asked[i].value, asked[i].attribute, d->device));
    memset(machine, 0, sizeof *machine);
    CUDA_TRY(d, "the GPU's name", cuDeviceGetName(machine->name, (int)sizeof machine->name, d->device));
    if (!cooperative) return vpps_fail(VPPS_DEVICE, "cuda: %s cannot launch cooperatively", machine->name);
    machine->arch = d->arch = (uint32_t)(10 * major + minor);
    machine->sms = d->sms = (uint32_t)sms;
    machine->sm_registers = (uint32_t)registers;
    machine->sm_shared_bytes = (uint32_t)sm_shared;
    machine->cta_shared_bytes = (uint32_t)cta_shared;
    machine->l2_bytes = (uint64_t)l2;
    return VPPS_OK;
}

static vpps_status set_up(cuda_driver *d, vpps_machine *machine) {
    VPPS_TRY(vpps_cuda_open(&d->cuda));
    VPPS_TRY(find_gpu(d));
    VPPS_TRY(describe(d, machine));
    CUDA_TRY(d, "the context", cuDevicePrimaryCtxRetain(&d->context, d->device));
    CUDA_TRY(d, "the context", cuCtxSetCurrent(d->context));
    CUDA_TRY(d, "a stream", cuStreamCreate(&d->stream, VPPS_CU_STREAM_NON_BLOCKING));
    CUDA_TRY(d, "an event", cuEventCreate(&d->start, VPPS_CU_EVENT_DEFAULT));
    CUDA_TRY(d, "an event", cuEventCreate(&d->stop, VPPS_CU_EVENT_DEFAULT));
    return VPPS_OK;
}

/* Works on what set_up left half done, too. Failures are of no use to anyone here. */
static void cuda_close(vpps_driver *base) {
    cuda_driver *d = (cuda_driver *)base;
    if (!d) return;
    if (d->context) {
        d->cuda.cuCtxSetCurrent(d->context);
        if (d->stream) d->cuda.cuStreamSynchronize(d->stream);
        if (d->products) d->cublas.cublasDestroy_v2(d->products);
        for (vpps_kernel *k = d->kernels, *next; k; k = next) {
            next = k->next;
            d->cuda.cuModuleUnload(k->module);
            free(k);
        }
        for (size_t i = 0; i < d->memory.n; i++) d->cuda.cuMemFree_v2(d->memory.at[i]);
        for (size_t i = 0; i < d->pinned.n; i++) d->cuda.cuMemFreeHost((void *)(uintptr_t)d->pinned.at[i]);
        if (d->start) d->cuda.cuEventDestroy_v2(d->start);
        if (d->stop) d->cuda.cuEventDestroy_v2(d->stop);
        if (d->stream) d->cuda.cuStreamDestroy_v2(d->stream);
        d->cuda.cuCtxSetCurrent(NULL);
        d->cuda.cuDevicePrimaryCtxRelease_v2(d->device);
    }
    free(d->memory.at);
    free(d->pinned.at);
    vpps_cublas_close(&d->cublas);
    vpps_cuda_close(&d->cuda);
    free(d);
}

static vpps_status cuda_open(vpps_driver **out, vpps_machine *machine) {
    *out = NULL;
    cuda_driver *d = calloc(1, sizeof *d);
    if (!d) return vpps_fail(VPPS_MEMORY, "cuda: no memory for the driver");
    d->base.table = &vpps_driver_cuda;
    const vpps_status status = set_up(d, machine);
    if (status == VPPS_OK)
        *out = &d->base;
    else
        cuda_close(&d->base);
    return status;
}

/* ---------------------------------------------------------------- memory */

/* The driver refuses to allocate nothing: one byte stands for it. */
static vpps_status cuda_allocate(vpps_driver *base, size_t bytes, uint64_t *address) {
    cuda_driver *d;
    vpps_cu_address at;
    VPPS_TRY(enter(base, &d));
    if (!VPPS_RESERVE(d->memory.at, d->memory.room, d->memory.n + 1))
        return vpps_fail(VPPS_MEMORY, "cuda: no memory for the list of allocations");
    const vpps_cu_result code = d->cuda.cuMemAlloc_v2(&at, bytes ? bytes : 1);
    if (code != VPPS_CU_SUCCESS) {
        char what[64];
        snprintf(what, sizeof what, "%zu bytes of device memory", bytes);
        vpps_cuda_failed(&d->cuda, what, code);
        return code == VPPS_CU_OUT_OF_MEMORY ? VPPS_MEMORY : VPPS_DEVICE;
    }
    *address = d->memory.at[d->memory.n++] = at;
    return VPPS_OK;
}

static void cuda_release(vpps_driver *base, uint64_t address) {
    cuda_driver *d;
    if (enter(base, &d) == VPPS_OK) d->cuda.cuMemFree_v2(address);
    holdings_forget(&d->memory, address);
}

static vpps_status cuda_allocate_host(vpps_driver *base, size_t bytes, void **out) {
    cuda_driver *d;
    VPPS_TRY(enter(base, &d));
    if (!VPPS_RESERVE(d->pinned.at, d->pinned.room, d->pinned.n + 1))
        return vpps_fail(VPPS_MEMORY, "cuda: no memory for the list of allocations");
    const vpps_cu_result code = d->cuda.cuMemHostAlloc(out, bytes ? bytes : 1, 0);
    if (code == VPPS_CU_OUT_OF_MEMORY) return vpps_fail(VPPS_MEMORY, "cuda: no %zu bytes of pinned memory", bytes);
    if (code != VPPS_CU_SUCCESS) return vpps_cuda_failed(&d->cuda, "pinned memory", code);
    d->pinned.at[d->pinned.n++] = (uintptr_t)*out;
    return VPPS_OK;
}

static void cuda_release_host(vpps_driver *base, void *memory) {
    cuda_driver *d;
    if (enter(base, &d) == VPPS_OK) d->cuda.cuMemFreeHost(memory);
    holdings_forget(&d->pinned, (uintptr_t)memory);
}

static size_t cuda_free_bytes(vpps_driver *base) {
    cuda_driver *d;
    size_t left = 0, total;
    if (enter(base, &d) != VPPS_OK || d->cuda.cuMemGetInfo_v2(&left, &total) != VPPS_CU_SUCCESS) return 0;
    return left;
}

static vpps_status cuda_write(vpps_driver *base, uint64_t to, const void *from, size_t bytes) {
    cuda_driver *d;
    VPPS_TRY(enter(base, &d));
    if (bytes > 0) CUDA_TRY(d, "a copy to the device", cuMemcpyHtoDAsync_v2(to, from, bytes, d->stream));
    return VPPS_OK;
}

static vpps_status cuda_read(vpps_driver *base, void *to, uint64_t from, size_t bytes) {
    cuda_driver *d;
    VPPS_TRY(enter(base, &d));
    if (bytes > 0) CUDA_TRY(d, "a copy from the device", cuMemcpyDtoHAsync_v2(to, from, bytes, d->stream));
    CUDA_TRY(d, "a copy from the device", cuStreamSynchronize(d->stream));
    return VPPS_OK;
}

static vpps_status cuda_clear(vpps_driver *base, uint64_t address, size_t bytes) {
    cuda_driver *d;
    VPPS_TRY(enter(base, &d));
    if (bytes > 0) CUDA_TRY(d, "clearing device memory", cuMemsetD32Async(address, 0, bytes / 4, d->stream));
    return VPPS_OK;
}

/* ---------------------------------------------------------------- kernels */

/* Code for an architecture runs on later ones of the same major version (CUDA C++ Programming Guide, "Binary
 * Compatibility"), so a GPU newer than NVRTC gets the newest code that it can run. */
static vpps_status choose_arch(const cuda_driver *d, uint32_t *arch) {
    uint32_t known[64], n = VPPS_COUNT(known);
    int major, minor;
    VPPS_TRY(vpps_nvrtc_version(&major, &minor, known, &n));
    *arch = 0;
    for (uint32_t i = 0; i < n; i++)
        if (known[i] / 10 == d->arch / 10 && known[i] <= d->arch) *arch = vpps_max_u32(*arch, known[i]);
    if (*arch == 0)
        return vpps_fail(VPPS_DEVICE,
                         "cuda: the GPU is sm_%u; NVRTC %d.%d makes code for sm_%u to sm_%u, none that runs on it",
                         d->arch, major, minor, n ? known[0] : 0, n ? known[n - 1] : 0);
    return VPPS_OK;
}

/* A cooperative launch needs all CTAs resident; the driver's own refusal has no numbers. */
static vpps_status check_shape(cuda_driver *d, vpps_kernel *k, const vpps_launch_shape *shape) {
    int ctas = 0;
    const uint32_t shared = shape->dynamic_shared_bytes;
    if (shared > 0)
        CUDA_TRY(d, "the kernel's dynamic shared memory",
                 cuFuncSetAttribute(k->function, VPPS_CU_FUNCTION_DYNAMIC_SHARED_BYTES, (int)shared));
    CUDA_TRY(d, "the kernel's occupancy",
             cuOccupancyMaxActiveBlocksPerMultiprocessor(&ctas, k->function, (int)shape->threads, shared));
    if (shape->ctas > (uint32_t)ctas * d->sms)
        return vpps_fail(
            VPPS_DEVICE,
            "cuda: %u CTAs of %u threads and %u bytes of dynamic shared memory are not resident at once: %d "
            "fit on each of %u SMs",
            shape->ctas, shape->threads, shared, ctas, d->sms);
    k->shape = *shape;
    return VPPS_OK;
}

static vpps_status load_cubin(cuda_driver *d, const void *cubin, const vpps_launch_shape *shape, vpps_kernel **out) {
    vpps_kernel *k = calloc(1, sizeof *k);
    if (!k) return vpps_fail(VPPS_MEMORY, "cuda: no memory for a kernel");
    vpps_status status = VPPS_OK;
    vpps_cu_result code = d->cuda.cuModuleLoadData(&k->module, cubin);
    if (code != VPPS_CU_SUCCESS) {
        status = vpps_cuda_failed(&d->cuda, "loading the kernel", code);
    } else {
        code = d->cuda.cuModuleGetFunction(&k->function, k->module, "vpps_kernel");
        status = code == VPPS_CU_SUCCESS ? check_shape(d, k, shape)
                                         : vpps_cuda_failed(&d->cuda, "the function vpps_kernel", code);
        if (status != VPPS_OK) d->cuda.cuModuleUnload(k->module);
    }
    if (status != VPPS_OK) {
        free(k);
        return status;
    }
    k->next = d->kernels;
    d->kernels = *out = k;
    return VPPS_OK;
}

static vpps_status cuda_load(vpps_driver *base, const char *source, const char *description,
                             const vpps_launch_shape *shape, vpps_kernel **out, vpps_cubin_report *report) {
    cuda_driver *d;
    uint32_t arch;
    void *cubin;
    size_t bytes;
    VPPS_TRY(enter(base, &d));
    VPPS_TRY(choose_arch(d, &arch));
    VPPS_TRY(vpps_compile(source, "vpps_kernel", arch, description, true, &cubin, &bytes, report));
    const vpps_status status = load_cubin(d, cubin, shape, out);
    free(cubin);
    return status;
}

static void cuda_unload(vpps_driver *base, vpps_kernel *kernel) {
    cuda_driver *d;
    if (!kernel) return;
    if (enter(base, &d) == VPPS_OK) d->cuda.cuModuleUnload(kernel->module);
    for (vpps_kernel **at = &d->kernels; *at; at = &(*at)->next)
        if (*at == kernel) {
            *at = kernel->next;
            break;
        }
    free(kernel);
}

static bool same_shape(const vpps_launch_shape *a, const vpps_launch_shape *b) {
    return a->ctas == b->ctas && a->threads == b->threads && a->dynamic_shared_bytes == b->dynamic_shared_bytes;
}

/* The driver copies the parameter before it returns; its size it knows from the kernel. */
static vpps_status cuda_launch(vpps_driver *base, vpps_kernel *kernel, const vpps_launch_shape *shape,
                               const void *arguments, size_t bytes) {
    cuda_driver *d;
    void *parameters[] = {(void *)(uintptr_t)arguments};
    (void)bytes;
    VPPS_TRY(enter(base, &d));
    if (!same_shape(shape, &kernel->shape)) VPPS_TRY(check_shape(d, kernel, shape));
    CUDA_TRY(d, "the launch",
             cuLaunchCooperativeKernel(kernel->function, shape->ctas, 1, 1, shape->threads, 1, 1,
                                       shape->dynamic_shared_bytes, d->stream, parameters));
    return VPPS_OK;
}

/* ---------------------------------------------------------------- products */

static vpps_status open_products(cuda_driver *d) {
    if (!d->cublas.library) VPPS_TRY(vpps_cublas_open(&d->cublas));
    vpps_cublas_handle handle;
    vpps_cublas_result code = d->cublas.cublasCreate_v2(&handle);
    if (code != VPPS_CU_BLAS_SUCCESS) return vpps_fail(VPPS_DEVICE, "cuda: cuBLAS does not start: status %u", code);
    code = d->cublas.cublasSetStream_v2(handle, d->stream);
    if (code == VPPS_CU_BLAS_SUCCESS) code = d->cublas.cublasSetMathMode(handle, VPPS_CU_BLAS_DEFAULT_MATH);
    if (code != VPPS_CU_BLAS_SUCCESS) {
        d->cublas.cublasDestroy_v2(handle);
        return vpps_fail(VPPS_DEVICE, "cuda: cuBLAS cannot be set up: status %u", code);
    }
    d->products = handle;
    return VPPS_OK;
}

/* cuBLAS stores columns: what it takes a row-major matrix for is its transpose. So it is to make C^T = B^T A; it sees B^T
 * where B lies (n x k, columns of n), and A^T where A lies (m x k, columns of m), which it is told to transpose. */
static vpps_status cuda_multiply(vpps_driver *base, uint32_t m, uint32_t n, uint32_t k, uint64_t a, uint64_t b,
                                 uint64_t c, bool accumulate) {
    cuda_driver *d;
    VPPS_TRY(enter(base, &d));
    if (m == 0 || n == 0 || (k == 0 && accumulate)) return VPPS_OK;
    if (k == 0) return cuda_clear(base, c, (size_t)4 * m * n);
    if (!d->products) VPPS_TRY(open_products(d));
    const float one = 1, keep = accumulate ? 1 : 0;
    const vpps_cublas_result code = d->cublas.cublasSgemm_v2(
        d->products, VPPS_CU_BLAS_OP_N, VPPS_CU_BLAS_OP_T, (int)n, (int)m, (int)k, &one, (const float *)(uintptr_t)b,
        (int)n, (const float *)(uintptr_t)a, (int)m, &keep, (float *)(uintptr_t)c, (int)n);
    if (code != VPPS_CU_BLAS_SUCCESS)
        return vpps_fail(VPPS_DEVICE, "cuda: cuBLAS refused the product of %u x %u and %u x %u: status %u", m, k, k, n,
                         code);
    return VPPS_OK;
}

/* ---------------------------------------------------------------- time */

static vpps_status cuda_start_clock(vpps_driver *base) {
    cuda_driver *d;
    VPPS_TRY(enter(base, &d));
    CUDA_TRY(d, "the clock", cuEventRecord(d->start, d->stream));
    d->started = true;
    d->stopped = false;
    return VPPS_OK;
}

static vpps_status cuda_stop_clock(vpps_driver *base) {
    cuda_driver *d;
    VPPS_TRY(enter(base, &d));
    CUDA_TRY(d, "the clock", cuEventRecord(d->stop, d->stream));
    d->stopped = d->started;
    return VPPS_OK;
}

/* What failed has finished: wait says how. */
static bool cuda_finished(vpps_driver *base) {
    cuda_driver *d;
    return enter(base, &d) != VPPS_OK || d->cuda.cuEventQuery(d->stop) != VPPS_CU_NOT_READY;
}

static vpps_status cuda_wait(vpps_driver *base, uint64_t *device_ns) {
    cuda_driver *d;
    float milliseconds = 0;
    *device_ns = 0;
    VPPS_TRY(enter(base, &d));
    const bool timed = d->stopped;
    d->started = d->stopped = false;
    CUDA_TRY(d, "the kernel failed", cuStreamSynchronize(d->stream));
    if (timed) CUDA_TRY(d, "the clock", cuEventElapsedTime(&milliseconds, d->start, d->stop));
    *device_ns = (uint64_t)((double)milliseconds * 1e6);
    return VPPS_OK;
}

const vpps_driver_table vpps_driver_cuda = {
    .name = "cuda",
    .by_nvrtc = true,
    .open = cuda_open,
    .close = cuda_close,
    .allocate = cuda_allocate,
    .release = cuda_release,
    .allocate_host = cuda_allocate_host,
    .release_host = cuda_release_host,
    .free_bytes = cuda_free_bytes,
    .write = cuda_write,
    .read = cuda_read,
    .clear = cuda_clear,
    .load = cuda_load,
    .unload = cuda_unload,
    .launch = cuda_launch,
    .multiply = cuda_multiply,
    .start_clock = cuda_start_clock,
    .stop_clock = cuda_stop_clock,
    .finished = cuda_finished,
    .wait = cuda_wait,
};
