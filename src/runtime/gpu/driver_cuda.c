/* driver_cuda.c - a GPU through the CUDA driver: one of the GPUs that $CUDA_VISIBLE_DEVICES names, its primary
 * context, and one stream in which everything happens in the order of the calls. */
#include "runtime/gpu/driver_cuda.h"
#include "base/library.h"

static vpps_status fail_lost(const cuda_driver *d) {
    return vpps_fail(VPPS_STALL, "cuda: the GPU did not finish within %.1f s", (double)d->base.limit_ns * 1e-9);
}

vpps_status vpps_cuda_enter(vpps_driver *base, cuda_driver **d) {
    cuda_driver *entered = (cuda_driver *)base;
    *d = NULL;
    if (entered->lost) return fail_lost(entered);
    const vpps_cu_result code = entered->cuda.cuCtxPushCurrent_v2(entered->context);
    if (code == VPPS_CU_SUCCESS) {
        *d = entered;
        return VPPS_OK;
    }
    vpps_cuda_failed(&entered->cuda, "the context", code);
    return VPPS_DEVICE;
}

void vpps_cuda_leave(cuda_driver **d) {
    vpps_cu_context entered;
    if (*d) (*d)->cuda.cuCtxPopCurrent_v2(&entered);
    *d = NULL;
}

/* Waits until the event has happened (NULL: until the stream is idle), at most limit_ns. CUDA has no wait with a limit, so this polls: at
 * first without pauses, since batches may be short. */
static vpps_status wait_until(cuda_driver *d, vpps_cu_event event, const char *what) {
    enum { EAGER_NS = 2000000, PAUSE_NS = 50000 };
    const uint64_t begin = vpps_now_ns();
    vpps_cu_result code = VPPS_CU_NOT_READY;
    if (d->base.limit_ns == 0)
        code = event ? d->cuda.cuEventSynchronize(event) : d->cuda.cuStreamSynchronize(d->stream);
    while (code == VPPS_CU_NOT_READY) {
        code = event ? d->cuda.cuEventQuery(event) : d->cuda.cuStreamQuery(d->stream);
        const uint64_t waited = vpps_now_ns() - begin;
        if (code != VPPS_CU_NOT_READY || waited < EAGER_NS) continue;
        if (waited > d->base.limit_ns) {
            d->lost = true;
            return fail_lost(d);
        }
        nanosleep(&(struct timespec){0, PAUSE_NS}, NULL);
    }
    if (code == VPPS_CU_SUCCESS) return VPPS_OK;
    vpps_cuda_failed(&d->cuda, what, code);
    if (code != VPPS_CU_LAUNCH_TIMEOUT) return VPPS_DEVICE;
    return vpps_fail(VPPS_DEVICE,
                     "%s: the GPU drives a display and may not compute so long at once; smaller batches help",
                     vpps_error_message());
}

static void holdings_forget(holdings *h, uint64_t what) {
    for (size_t i = 0; i < h->n; i++)
        if (h->at[i] == what) {
            h->at[i] = h->at[--h->n];
            return;
        }
}

/* ---------------------------------------------------------------- open and close */

/* Starts the CUDA driver and counts GPUs. *none is set if the driver says that there is no GPU. */
static vpps_status start_driver(const vpps_cuda *cuda, int *count, bool *none) {
    const vpps_cu_result code = cuda->cuInit(0);
    *count = 0;
    *none = true;
    switch (code) {
    case VPPS_CU_SUCCESS: break;
    case VPPS_CU_STUB_LIBRARY:
        return vpps_fail(VPPS_DEVICE, "cuda: no GPU: libcuda is the toolkit's stub, not a driver (code 34)");
    case VPPS_CU_INSUFFICIENT_DRIVER:
        return vpps_fail(VPPS_DEVICE, "cuda: no GPU: the driver is missing or too old (code 35)");
    case VPPS_CU_NO_DEVICE: return vpps_fail(VPPS_DEVICE, "cuda: no GPU: the driver sees none (code 100)");
    default: *none = false; return vpps_cuda_failed(cuda, "the driver does not start", code);
    }
    const vpps_cu_result counted = cuda->cuDeviceGetCount(count);
    *none = counted == VPPS_CU_SUCCESS && *count < 1;
    if (*none) return vpps_fail(VPPS_DEVICE, "cuda: no GPU: the driver sees none");
    return counted == VPPS_CU_SUCCESS ? VPPS_OK : vpps_cuda_failed(cuda, "counting GPUs", counted);
}

vpps_status vpps_cuda_find(void) {
    vpps_cuda cuda;
    int count;
    bool none;
    vpps_status status = vpps_cuda_open(&cuda);
    if (status == VPPS_OK)
        status = start_driver(&cuda, &count, &none);
    else
        none = !cuda.library;
    vpps_cuda_close(&cuda);
    return none ? status : VPPS_OK; /* a GPU may be there: opening the device will report any other fault */
}

vpps_status vpps_gpu_here(vpps_machine *out) {
    vpps_driver *driver;
    VPPS_TRY(vpps_driver_cuda.open(&driver, 0, out));
    vpps_driver_cuda.close(driver);
    return VPPS_OK;
}

static vpps_status find_gpu(cuda_driver *d, uint32_t number) {
    int count;
    bool none;
    VPPS_TRY(start_driver(&d->cuda, &count, &none));
    CUDA_TRY(d, "a GPU", cuDeviceGet(&d->device, (int)(number % vpps_max_u32((uint32_t)count, 1))));
    return VPPS_OK;
}

static vpps_status describe(cuda_driver *d, vpps_machine *machine) {
    int major = 0, minor = 0, l2 = 0, cooperative = 0, timeout = 0;
    memset(machine, 0, sizeof *machine);
    const struct {
        unsigned attribute;
        int *value;
    } asked[] = {
        {VPPS_CU_DEVICE_ARCH_MAJOR, &major},
        {VPPS_CU_DEVICE_ARCH_MINOR, &minor},
        {VPPS_CU_DEVICE_SMS, (int *)&machine->sms},
        {VPPS_CU_DEVICE_SM_REGISTERS, (int *)&machine->sm_registers},
        {VPPS_CU_DEVICE_SM_SHARED_BYTES, (int *)&machine->sm_shared_bytes},
        {VPPS_CU_DEVICE_CTA_SHARED_BYTES, (int *)&machine->cta_shared_bytes},
        {VPPS_CU_DEVICE_L2_BYTES, &l2},
        {VPPS_CU_DEVICE_COOPERATIVE, &cooperative},
    };
    for (size_t i = 0; i < VPPS_COUNT(asked); i++)
        CUDA_TRY(d, "an attribute of the GPU", cuDeviceGetAttribute(asked[i].value, asked[i].attribute, d->device));
    CUDA_TRY(d, "the GPU's name", cuDeviceGetName(machine->name, (int)sizeof machine->name, d->device));
    if (!cooperative) return vpps_fail(VPPS_DEVICE, "cuda: %s cannot launch cooperatively", machine->name);
    machine->number = (uint32_t)d->device;
    machine->arch = d->arch = (uint32_t)(10 * major + minor);
    d->sms = machine->sms;
    machine->l2_bytes = (uint64_t)l2;
    /* a failure means false: old drivers lack this attribute */
    const vpps_cu_result code = d->cuda.cuDeviceGetAttribute(&timeout, VPPS_CU_DEVICE_KERNEL_TIMEOUT, d->device);
    d->base.kernels_time_out = code == VPPS_CU_SUCCESS && timeout;
    return VPPS_OK;
}

static vpps_status set_up(cuda_driver *d, uint32_t number, vpps_machine *machine) {
    VPPS_TRY(vpps_cuda_open(&d->cuda));
    VPPS_TRY(find_gpu(d, number));
    VPPS_TRY(describe(d, machine));
    CUDA_TRY(d, "the driver's version", cuDriverGetVersion(&d->version));
    machine->driver = d->version;
    vpps_library_prefer(d->version / 1000);
    CUDA_TRY(d, "the context", cuDevicePrimaryCtxRetain(&d->context, d->device));
    CUDA_ENTER(entered, &d->base);
    CUDA_TRY(d, "a stream", cuStreamCreate(&d->stream, VPPS_CU_STREAM_NON_BLOCKING));
    CUDA_TRY(d, "a stream", cuStreamCreate(&d->uploads, VPPS_CU_STREAM_NON_BLOCKING));
    CUDA_TRY(d, "an event", cuEventCreate(&d->uploaded, VPPS_CU_EVENT_UNTIMED));
    CUDA_TRY(d, "an event", cuEventCreate(&d->ordered, VPPS_CU_EVENT_UNTIMED));
    for (int i = 0; i < VPPS_DRIVER_MARKS; i++)
        CUDA_TRY(d, "an event", cuEventCreate(&d->marks[i], VPPS_CU_EVENT_UNTIMED));
    return VPPS_OK;
}

/* Closes a driver, also after an incomplete set_up. Failures are ignored. The memory of a lost GPU stays allocated
 * until the process ends, since freeing it would wait for the GPU. */
static void cuda_close(vpps_driver *base) {
    cuda_driver *d = (cuda_driver *)base;
    if (!d) return;
    if (d->context && !d->lost) {
        cuda_driver *entered;
        (void)vpps_cuda_enter(base, &entered);
        if (d->stream) d->cuda.cuStreamSynchronize(d->stream);
        for (size_t i = 0; i < d->memory.n; i++) d->cuda.cuMemFree_v2(d->memory.at[i]);
        for (size_t i = 0; i < d->pinned.n; i++) d->cuda.cuMemFreeHost((void *)(uintptr_t)d->pinned.at[i]);
        const vpps_cu_event events[] = {d->uploaded, d->ordered};
        for (size_t i = 0; i < VPPS_COUNT(events); i++)
            if (events[i]) d->cuda.cuEventDestroy_v2(events[i]);
        for (size_t i = 0; i < VPPS_COUNT(d->marks); i++)
            if (d->marks[i]) d->cuda.cuEventDestroy_v2(d->marks[i]);
        if (d->uploads) d->cuda.cuStreamDestroy_v2(d->uploads);
        if (d->stream) d->cuda.cuStreamDestroy_v2(d->stream);
        vpps_cuda_leave(&entered);
        d->cuda.cuDevicePrimaryCtxRelease_v2(d->device);
    }
    VPPS_FREE_ARRAYS(d->memory.at, d->pinned.at);
    vpps_cuda_close(&d->cuda);
    free(d);
}

static vpps_status cuda_open(vpps_driver **out, uint32_t number, vpps_machine *machine) {
    *out = NULL;
    cuda_driver *d = calloc(1, sizeof *d);
    if (!d) return vpps_fail(VPPS_MEMORY, "cuda: no memory for the driver");
    d->base.table = &vpps_driver_cuda;
    const vpps_status status = set_up(d, number, machine);
    if (status == VPPS_OK)
        *out = &d->base;
    else
        cuda_close(&d->base);
    return status;
}

static vpps_status cuda_branch(vpps_driver *base, vpps_driver **out) {
    const cuda_driver *of = (const cuda_driver *)base;
    if (of->lost) return fail_lost(of);
    cuda_driver *d = calloc(1, sizeof *d);
    if (!d) return vpps_fail(VPPS_MEMORY, "cuda: no memory for the driver");
    d->base.table = &vpps_driver_cuda;
    d->device = of->device;
    vpps_status status = vpps_cuda_open(&d->cuda);
    if (status == VPPS_OK) {
        const vpps_cu_result code = d->cuda.cuDevicePrimaryCtxRetain(&d->context, d->device);
        if (code != VPPS_CU_SUCCESS) status = vpps_cuda_failed(&d->cuda, "the context", code);
    }
    if (status == VPPS_OK) return *out = &d->base, VPPS_OK;
    cuda_close(&d->base);
    return status;
}

/* ---------------------------------------------------------------- memory */

/* Allocates device memory; for 0 bytes 1 byte, since the CUDA driver refuses 0. */
static vpps_status cuda_allocate(vpps_driver *base, size_t bytes, uint64_t *address) {
    CUDA_ENTER(d, base);
    vpps_cu_address at;
    if (!VPPS_RESERVE(d->memory.at, d->memory.n + 1))
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
    CUDA_DRIVER(d);
    if (vpps_cuda_enter(base, &d) == VPPS_OK) d->cuda.cuMemFree_v2(address);
    holdings_forget(&((cuda_driver *)base)->memory, address);
}

static vpps_status cuda_allocate_host(vpps_driver *base, size_t bytes, void **out) {
    CUDA_ENTER(d, base);
    if (!VPPS_RESERVE(d->pinned.at, d->pinned.n + 1))
        return vpps_fail(VPPS_MEMORY, "cuda: no memory for the list of allocations");
    const vpps_cu_result code = d->cuda.cuMemHostAlloc(out, bytes ? bytes : 1, 0);
    if (code == VPPS_CU_OUT_OF_MEMORY) return vpps_fail(VPPS_MEMORY, "cuda: no %zu bytes of pinned memory", bytes);
    if (code != VPPS_CU_SUCCESS) return vpps_cuda_failed(&d->cuda, "pinned memory", code);
    d->pinned.at[d->pinned.n++] = (uintptr_t)*out;
    return VPPS_OK;
}

static void cuda_release_host(vpps_driver *base, void *memory) {
    CUDA_DRIVER(d);
    if (vpps_cuda_enter(base, &d) == VPPS_OK) d->cuda.cuMemFreeHost(memory);
    holdings_forget(&((cuda_driver *)base)->pinned, (uintptr_t)memory);
}

static size_t cuda_free_bytes(vpps_driver *base) {
    CUDA_DRIVER(d);
    size_t left = 0, total;
    if (vpps_cuda_enter(base, &d) != VPPS_OK || d->cuda.cuMemGetInfo_v2(&left, &total) != VPPS_CU_SUCCESS) return 0;
    return left;
}

static vpps_status cuda_write(vpps_driver *base, uint64_t to, const void *from, size_t bytes) {
    CUDA_ENTER(d, base);
    if (bytes > 0) CUDA_TRY(d, "a copy to the device", cuMemcpyHtoDAsync_v2(to, from, bytes, d->stream));
    return VPPS_OK;
}

static vpps_status cuda_read(vpps_driver *base, void *to, uint64_t from, size_t bytes) {
    CUDA_ENTER(d, base);
    /* waits first, since this wait has a time limit and a copy has none */
    if (d->base.limit_ns) VPPS_TRY(wait_until(d, NULL, "a copy from the device"));
    if (bytes > 0) CUDA_TRY(d, "a copy from the device", cuMemcpyDtoHAsync_v2(to, from, bytes, d->stream));
    return wait_until(d, NULL, "a copy from the device");
}

static vpps_status cuda_copy(vpps_driver *base, uint64_t to, uint64_t from, size_t bytes) {
    CUDA_ENTER(d, base);
    if (bytes > 0) CUDA_TRY(d, "a copy on the device", cuMemcpyDtoDAsync_v2(to, from, bytes, d->stream));
    return VPPS_OK;
}

static vpps_status cuda_clear(vpps_driver *base, uint64_t address, size_t bytes) {
    CUDA_ENTER(d, base);
    if (bytes > 0) CUDA_TRY(d, "clearing device memory", cuMemsetD32Async(address, 0, bytes / 4, d->stream));
    return VPPS_OK;
}

/* Copies in a separate stream: this takes 1 us of the GPU's time, a copy in the kernels' stream some 10 us. */
static vpps_status cuda_upload(vpps_driver *base, uint64_t to, const void *from, size_t bytes) {
    CUDA_ENTER(d, base);
    CUDA_TRY(d, "a copy to the device", cuMemcpyHtoDAsync_v2(to, from, bytes, d->uploads));
    CUDA_TRY(d, "a copy to the device", cuEventRecord(d->uploaded, d->uploads));
    CUDA_TRY(d, "a copy to the device", cuStreamWaitEvent(d->stream, d->uploaded, 0));
    return VPPS_OK;
}

/* ---------------------------------------------------------------- the caller's memory */

static size_t cuda_room_outside(vpps_driver *base, uint64_t address) {
    CUDA_DRIVER(d);
    vpps_cu_address start = 0;
    size_t bytes = 0;
    const bool known = vpps_cuda_enter(base, &d) == VPPS_OK &&
                       !d->cuda.cuPointerGetAttribute(&start, VPPS_CU_POINTER_RANGE_START, address) &&
                       !d->cuda.cuPointerGetAttribute(&bytes, VPPS_CU_POINTER_RANGE_BYTES, address);
    return known ? start + bytes - address : 0;
}

static vpps_status cuda_check_outside(vpps_driver *base, const void *array, size_t bytes, const char *what) {
    CUDA_ENTER(d, base);
    const vpps_cu_address at = (uintptr_t)array;
    unsigned type = 0;
    int number = 0;
    const vpps_cu_result code = d->cuda.cuPointerGetAttribute(&type, VPPS_CU_POINTER_MEMORY_TYPE, at);
    if (code != VPPS_CU_SUCCESS || type != VPPS_CU_MEMORY_OF_DEVICE)
        return vpps_fail(VPPS_ARGUMENT, "%s is the host's memory; expected memory of GPU %d", what, d->device);
    CUDA_TRY(d, "an array's GPU", cuPointerGetAttribute(&number, VPPS_CU_POINTER_DEVICE, at));
    if (number != d->device)
        return vpps_fail(VPPS_ARGUMENT, "%s is memory of GPU %d; expected GPU %d", what, number, d->device);
    const size_t room = cuda_room_outside(base, at);
    if (!room || bytes <= room) return VPPS_OK;
    return vpps_fail(VPPS_ARGUMENT, "%s has room for %zu bytes; expected %zu", what, room, bytes);
}

static vpps_status cuda_copy_outside(vpps_driver *base, const vpps_outside_copy *c) {
    CUDA_ENTER(d, base);
    if (!c->from) {
        CUDA_TRY(d, "clearing device memory", cuMemsetD32Async(c->to, 0, c->bytes / 4, d->stream));
    } else if (c->n > 1) {
        const vpps_cu_copy_2d copy = {.from_type = VPPS_CU_MEMORY_OF_DEVICE,
                                      .from = c->from,
                                      .from_pitch = c->from_step,
                                      .to_type = VPPS_CU_MEMORY_OF_DEVICE,
                                      .to = c->to,
                                      .to_pitch = c->to_step,
                                      .width_bytes = c->bytes,
                                      .height = c->n};
        CUDA_TRY(d, "a copy on the device", cuMemcpy2DAsync_v2((const void *)&copy, d->stream));
    } else {
        CUDA_TRY(d, "a copy on the device", cuMemcpyDtoDAsync_v2(c->to, c->from, c->bytes, d->stream));
    }
    return VPPS_OK;
}

static vpps_status cuda_order(vpps_driver *base, void *stream, bool theirs_first) {
    CUDA_ENTER(d, base);
    struct CUstream_st *const theirs = stream;
    CUDA_TRY(d, "the caller's stream", cuEventRecord(d->ordered, theirs_first ? theirs : d->stream));
    CUDA_TRY(d, "the caller's stream", cuStreamWaitEvent(theirs_first ? d->stream : theirs, d->ordered, 0));
    return VPPS_OK;
}

/* ---------------------------------------------------------------- marks and waits */

static vpps_status stream_is_idle(void *context, bool *is_idle) {
    CUDA_ENTER(d, context);
    const vpps_cu_result code = d->cuda.cuStreamQuery(d->stream);
    *is_idle = code != VPPS_CU_NOT_READY;
    return code == VPPS_CU_SUCCESS || !*is_idle ? VPPS_OK : vpps_cuda_failed(&d->cuda, "the stream", code);
}

static void cuda_stream(vpps_driver *base, vpps_gpu_stream *out) {
    *out = (vpps_gpu_stream){((cuda_driver *)base)->stream, stream_is_idle, base};
}

static vpps_status cuda_within(vpps_driver *base, vpps_status (*work)(void *context, struct CUstream_st *stream),
                               void *context) {
    CUDA_ENTER(d, base);
    return work(context, d->stream);
}

static vpps_status cuda_mark(vpps_driver *base, uint32_t which) {
    CUDA_ENTER(d, base);
    CUDA_TRY(d, "a mark", cuEventRecord(d->marks[which], d->stream));
    return VPPS_OK;
}

static bool cuda_passed(vpps_driver *base, uint32_t which) {
    CUDA_DRIVER(d);
    return vpps_cuda_enter(base, &d) != VPPS_OK || d->cuda.cuEventQuery(d->marks[which]) != VPPS_CU_NOT_READY;
}

static vpps_status cuda_await(vpps_driver *base, uint32_t which) {
    CUDA_ENTER(d, base);
    return wait_until(d, d->marks[which], "the kernel failed");
}

static vpps_status cuda_wait(vpps_driver *base) {
    CUDA_ENTER(d, base);
    return wait_until(d, NULL, "the kernel failed");
}

const vpps_driver_table vpps_driver_cuda = {
    .name = "cuda",
    .open = cuda_open,
    .branch = cuda_branch,
    .close = cuda_close,
    .allocate = cuda_allocate,
    .release = cuda_release,
    .allocate_host = cuda_allocate_host,
    .release_host = cuda_release_host,
    .free_bytes = cuda_free_bytes,
    .write = cuda_write,
    .read = cuda_read,
    .copy = cuda_copy,
    .clear = cuda_clear,
    .upload = cuda_upload,
    .check_outside = cuda_check_outside,
    .room_outside = cuda_room_outside,
    .copy_outside = cuda_copy_outside,
    .order = cuda_order,
    .load = vpps_cuda_load,
    .unload = vpps_cuda_unload,
    .prepare = vpps_cuda_prepare,
    .launch = vpps_cuda_launch,
    .stream = cuda_stream,
    .within = cuda_within,
    .mark = cuda_mark,
    .passed = cuda_passed,
    .await = cuda_await,
    .wait = cuda_wait,
};
