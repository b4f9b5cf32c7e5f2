/* context.c - the fake driver's device, its primary context, streams and events. */
#include "fake_cuda/state.h"

#include <stdatomic.h>

struct CUctx_st {
    uint32_t retained;
};
struct CUstream_st {
    unsigned flags, number;
};
struct CUevent_st {
    pthread_mutex_t lock;
    unsigned number;
    uint32_t records, pending; /* number of times it was recorded; those not reached yet */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Streams and events that are lost with their GPU: the counts report them, leak detectors must not. */
static void *made[64];
static atomic_uint n_made;

static void *keep(void *object) {
    made[atomic_fetch_add(&n_made, 1) % VPPS_COUNT(made)] = object;
    return object;
}
static atomic_uint n_streams, n_events;

unsigned fake_stream_number(vpps_cu_stream stream) { return (uintptr_t)stream > 2 ? stream->number : 0; }

static bool initialised;
static struct CUctx_st primary;
static _Thread_local vpps_cu_context stack[8]; /* stack of contexts; the last one is current */
static _Thread_local uint32_t n_current;

static bool is_current(void) { return n_current && stack[n_current - 1] == &primary; }

vpps_cu_result fake_check(bool context) {
    LOCKED(&lock);
    if (!initialised) return CODE_NOT_INITIALIZED;
    if (!context) return VPPS_CU_SUCCESS;
    return is_current() && primary.retained ? fake_error() : CODE_INVALID_CONTEXT;
}

vpps_cu_result fake_check_release(void) {
    const vpps_cu_result code = fake_check(true);
    return code == CODE_NOT_INITIALIZED || code == CODE_INVALID_CONTEXT ? code : VPPS_CU_SUCCESS;
}

/* ---------------------------------------------------------------- driver and device */

vpps_cu_result cuInit(unsigned flags) {
    const vpps_cu_result code = fake_fault("cuInit");
    if (code != VPPS_CU_SUCCESS) return code;
    LOCKED(&lock);
    initialised = true;
    return flags == 0 ? VPPS_CU_SUCCESS : VPPS_CU_INVALID_VALUE;
}

vpps_cu_result cuDriverGetVersion(int *version) {
    *version = fake_device.driver_version ? fake_device.driver_version : 13000;
    return fake_fault("cuDriverGetVersion");
}

static const struct {
    vpps_cu_result code;
    const char *name, *text;
} errors[] = {
    {VPPS_CU_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {VPPS_CU_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {VPPS_CU_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {CODE_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {VPPS_CU_NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU",
     "no kernel image is available for execution on the device"},
    {CODE_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {CODE_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {VPPS_CU_LAUNCH_TIMEOUT, "CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out and was terminated"},
    {CODE_UNSUPPORTED_PTX, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
     "the provided PTX was compiled with an unsupported toolchain."},
    {CODE_LAUNCH_TOO_LARGE, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", "too many blocks in cooperative launch"},
};

static vpps_cu_result describe(vpps_cu_result code, bool name, const char **text) {
    *text = NULL;
    for (size_t i = 0; i < VPPS_COUNT(errors); i++)
        if (errors[i].code == code) *text = name ? errors[i].name : errors[i].text;
    return *text ? VPPS_CU_SUCCESS : VPPS_CU_INVALID_VALUE;
}
vpps_cu_result cuGetErrorName(vpps_cu_result code, const char **text) { return describe(code, true, text); }
vpps_cu_result cuGetErrorString(vpps_cu_result code, const char **text) { return describe(code, false, text); }

vpps_cu_result cuDeviceGetCount(int *count) {
    ENTER(cuDeviceGetCount, false);
    *count = fake_device.count;
    return VPPS_CU_SUCCESS;
}

vpps_cu_result cuDeviceGet(vpps_cu_device *device, int ordinal) {
    ENTER(cuDeviceGet, false);
    if (ordinal < 0 || ordinal >= fake_device.count) return CODE_INVALID_DEVICE;
    *device = ordinal;
    return VPPS_CU_SUCCESS;
}

vpps_cu_result cuDeviceGetName(char *name, int bytes, vpps_cu_device device) {
    ENTER(cuDeviceGetName, false);
    if (device != 0 || bytes < 1) return VPPS_CU_INVALID_VALUE;
    snprintf(name, (size_t)bytes, "%s", fake_device.name);
    return VPPS_CU_SUCCESS;
}

vpps_cu_result cuDeviceGetAttribute(int *value, unsigned attribute, vpps_cu_device device) {
    ENTER(cuDeviceGetAttribute, false);
    if (device != 0) return CODE_INVALID_DEVICE;
    switch (attribute) {
    case VPPS_CU_DEVICE_SMS: *value = fake_device.sms; break;
    case VPPS_CU_DEVICE_L2_BYTES: *value = fake_device.l2_bytes; break;
    case VPPS_CU_DEVICE_ARCH_MAJOR: *value = fake_device.arch_major; break;
    case VPPS_CU_DEVICE_ARCH_MINOR: *value = fake_device.arch_minor; break;
    case VPPS_CU_DEVICE_SM_SHARED_BYTES: *value = fake_device.sm_shared_bytes; break;
    case VPPS_CU_DEVICE_SM_REGISTERS: *value = fake_device.sm_registers; break;
    case VPPS_CU_DEVICE_COOPERATIVE: *value = fake_device.cooperative; break;
    case VPPS_CU_DEVICE_KERNEL_TIMEOUT: *value = fake_device.kernel_timeout; break;
    case VPPS_CU_DEVICE_CTA_SHARED_BYTES: *value = fake_device.cta_shared_bytes; break;
    default: return VPPS_CU_INVALID_VALUE;
    }
    return VPPS_CU_SUCCESS;
}

/* ---------------------------------------------------------------- context */

vpps_cu_result cuDevicePrimaryCtxRetain(vpps_cu_context *context, vpps_cu_device device) {
    ENTER(cuDevicePrimaryCtxRetain, false);
    if (device != 0) return CODE_INVALID_DEVICE;
    LOCKED(&lock);
    primary.retained++;
    COUNT(contexts, 1);
    *context = &primary;
    return VPPS_CU_SUCCESS;
}

vpps_cu_result cuDevicePrimaryCtxRelease_v2(vpps_cu_device device) {
    ENTER(cuDevicePrimaryCtxRelease_v2, false);
    LOCKED(&lock);
    if (device != 0 || !primary.retained) return CODE_INVALID_CONTEXT;
    COUNT(contexts, -1);
    if (--primary.retained == 0) fake_stop();
    return VPPS_CU_SUCCESS;
}

vpps_cu_result cuCtxPushCurrent_v2(vpps_cu_context context) {
    ENTER(cuCtxPushCurrent_v2, false);
    if (n_current == VPPS_COUNT(stack)) return VPPS_CU_OUT_OF_MEMORY;
    stack[n_current++] = context;
    return VPPS_CU_SUCCESS;
}

vpps_cu_result cuCtxPopCurrent_v2(vpps_cu_context *context) {
    ENTER(cuCtxPopCurrent_v2, false);
    if (!n_current) return CODE_INVALID_CONTEXT;
    *context = stack[--n_current];
    return VPPS_CU_SUCCESS;
}

/* ---------------------------------------------------------------- streams and events */

vpps_cu_result cuStreamCreate(vpps_cu_stream *stream, unsigned flags) {
    ENTER(cuStreamCreate, true);
    vpps_cu_stream s = keep(malloc(sizeof *s));
    if (!s) return VPPS_CU_OUT_OF_MEMORY;
    s->flags = flags;
    s->number = ++n_streams;
    COUNT(streams, 1);
    *stream = s;
    return VPPS_CU_SUCCESS;
}

vpps_cu_result cuStreamDestroy_v2(vpps_cu_stream stream) {
    ENTER_RELEASE(cuStreamDestroy_v2);
    free(stream);
    COUNT(streams, -1);
    return fake_error();
}

vpps_cu_result cuStreamSynchronize(vpps_cu_stream stream) {
    (void)stream;
    ENTER(cuStreamSynchronize, true);
    fake_drain();
    return fake_error();
}

vpps_cu_result cuStreamQuery(vpps_cu_stream stream) {
    (void)stream;
    ENTER(cuStreamQuery, true);
    return fake_busy() ? VPPS_CU_NOT_READY : fake_error();
}

vpps_cu_result cuEventCreate(vpps_cu_event *event, unsigned flags) {
    ENTER(cuEventCreate, true);
    if (flags != VPPS_CU_EVENT_UNTIMED) return VPPS_CU_INVALID_VALUE;
    vpps_cu_event e = keep(calloc(1, sizeof *e));
    if (!e) return VPPS_CU_OUT_OF_MEMORY;
    pthread_mutex_init(&e->lock, NULL);
    e->number = ++n_events;
    COUNT(events, 1);
    *event = e;
    return VPPS_CU_SUCCESS;
}

vpps_cu_result cuEventDestroy_v2(vpps_cu_event event) {
    ENTER_RELEASE(cuEventDestroy_v2);
    pthread_mutex_destroy(&event->lock);
    free(event);
    COUNT(events, -1);
    return fake_error();
}

static vpps_cu_result reach(void *payload) {
    vpps_cu_event e = *(vpps_cu_event *)payload;
    LOCKED(&e->lock);
    e->pending--;
    return VPPS_CU_SUCCESS;
}

vpps_cu_result cuEventRecord(vpps_cu_event event, vpps_cu_stream stream) {
    ENTER(cuEventRecord, true);
    fake_note("record e%u s%u; ", event->number, fake_stream_number(stream));
    LOCKED(&event->lock);
    event->records++;
    event->pending++;
    fake_enqueue(reach, &event, sizeof event);
    return VPPS_CU_SUCCESS;
}

static bool is_pending(vpps_cu_event event) {
    LOCKED(&event->lock);
    return event->pending > 0;
}

vpps_cu_result cuEventQuery(vpps_cu_event event) {
    ENTER(cuEventQuery, true);
    const vpps_cu_result error = fake_error(); /* nothing after an error happens */
    return error != VPPS_CU_SUCCESS || !is_pending(event) ? error : VPPS_CU_NOT_READY;
}

vpps_cu_result cuEventSynchronize(vpps_cu_event event) {
    ENTER(cuEventSynchronize, true);
    fake_drain();
    return is_pending(event) ? fake_error() : VPPS_CU_SUCCESS;
}

/* All streams are one queue. */
vpps_cu_result cuStreamWaitEvent(vpps_cu_stream stream, vpps_cu_event event, unsigned flags) {
    ENTER(cuStreamWaitEvent, true);
    fake_note("wait s%u e%u; ", fake_stream_number(stream), event->number);
    return event->records && !flags ? VPPS_CU_SUCCESS : VPPS_CU_INVALID_VALUE;
}
