/* cuda_api.h - declarations of the CUDA driver's functions that VPPS calls. VPPS builds without the toolkit, and starts
 * without a GPU, since the driver is opened at run time. Types and values: CUDA Driver API reference manual.
 * tests/runtime/cuda_declarations.c compares them with the toolkit's headers if there are any. */
#pragma once

#include "base/base.h"

/* The driver's enums are declared as unsigned, which C treats as compatible. */
typedef unsigned vpps_cu_result;
typedef int vpps_cu_device;
typedef unsigned long long vpps_cu_address;
typedef struct CUctx_st *vpps_cu_context;
typedef struct CUmod_st *vpps_cu_module;
typedef struct CUfunc_st *vpps_cu_function;
typedef struct CUstream_st *vpps_cu_stream;
typedef struct CUevent_st *vpps_cu_event;

struct CUDA_MEMCPY2D_st;
/* The driver's CUDA_MEMCPY2D, a copy of `height` rows of `width_bytes` bytes. Rows begin from_pitch and to_pitch bytes apart. */
typedef struct vpps_cu_copy_2d {
    size_t from_x_bytes, from_y;
    unsigned from_type;
    const void *from_host;
    vpps_cu_address from;
    void *from_array;
    size_t from_pitch, to_x_bytes, to_y;
    unsigned to_type;
    void *to_host;
    vpps_cu_address to;
    void *to_array;
    size_t to_pitch, width_bytes, height;
} vpps_cu_copy_2d;

/* The driver's result codes and constants as X(our name without VPPS_CU_, their name, value). */
#define VPPS_CUDA_RESULTS(X)                                                                                           \
    X(SUCCESS, CUDA_SUCCESS, 0)                                                                                        \
    X(INVALID_VALUE, CUDA_ERROR_INVALID_VALUE, 1)                                                                      \
    X(OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY, 2)                                                                      \
    X(STUB_LIBRARY, CUDA_ERROR_STUB_LIBRARY, 34)                                                                       \
    X(NO_DEVICE, CUDA_ERROR_NO_DEVICE, 100)                                                                            \
    X(INVALID_IMAGE, CUDA_ERROR_INVALID_IMAGE, 200)                                                                    \
    X(NO_BINARY_FOR_GPU, CUDA_ERROR_NO_BINARY_FOR_GPU, 209)                                                            \
    X(NOT_READY, CUDA_ERROR_NOT_READY, 600)                                                                            \
    X(LAUNCH_TIMEOUT, CUDA_ERROR_LAUNCH_TIMEOUT, 702)
#define VPPS_CUDA_CONSTANTS(X)                                                                                         \
    X(DEVICE_CLOCK_KHZ, CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 13)                                                            \
    X(DEVICE_SMS, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16)                                                        \
    X(DEVICE_KERNEL_TIMEOUT, CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT, 17)                                              \
    X(DEVICE_MEMORY_CLOCK_KHZ, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 36)                                              \
    X(DEVICE_MEMORY_BUS_BITS, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 37)                                         \
    X(DEVICE_L2_BYTES, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 38)                                                          \
    X(DEVICE_ARCH_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75)                                             \
    X(DEVICE_ARCH_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76)                                             \
    X(DEVICE_SM_SHARED_BYTES, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 81)                            \
    X(DEVICE_SM_REGISTERS, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 82)                                   \
    X(DEVICE_COOPERATIVE, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 95)                                                  \
    X(DEVICE_CTA_SHARED_BYTES, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 97)                              \
    X(FUNCTION_STATIC_SHARED_BYTES, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, 1)                                            \
    X(FUNCTION_LOCAL_BYTES, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, 3)                                                     \
    X(FUNCTION_REGISTERS, CU_FUNC_ATTRIBUTE_NUM_REGS, 4)                                                               \
    X(FUNCTION_DYNAMIC_SHARED_BYTES, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 8)                               \
    X(POINTER_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 2)                                                        \
    X(POINTER_DEVICE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, 9)                                                          \
    X(POINTER_RANGE_START, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, 11)                                                  \
    X(POINTER_RANGE_BYTES, CU_POINTER_ATTRIBUTE_RANGE_SIZE, 12)                                                        \
    X(MEMORY_OF_DEVICE, CU_MEMORYTYPE_DEVICE, 2)                                                                       \
    X(STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING, 1)                                                                  \
    X(EVENT_UNTIMED, CU_EVENT_DISABLE_TIMING, 2)
enum {
#define X(name, theirs, value) VPPS_CU_##name = (value),
    VPPS_CUDA_RESULTS(X) VPPS_CUDA_CONSTANTS(X)
#undef X
};

/* Code 35, the CUDA runtime's "insufficient driver". The driver's list of codes lacks it, but some stub libraries return it. */
#define VPPS_CU_INSUFFICIENT_DRIVER 35u

/* The driver's functions as X(symbol, parameters). The suffix _v2 names the version of a function that has these parameters. */
#define VPPS_CUDA_FUNCTIONS(X)                                                                                         \
    X(cuInit, (unsigned flags))                                                                                        \
    X(cuDriverGetVersion, (int *version))                                                                              \
    X(cuGetErrorName, (vpps_cu_result code, const char **text))                                                        \
    X(cuGetErrorString, (vpps_cu_result code, const char **text))                                                      \
    X(cuDeviceGetCount, (int *count))                                                                                  \
    X(cuDeviceGet, (vpps_cu_device * device, int ordinal))                                                             \
    X(cuDeviceGetName, (char *name, int bytes, vpps_cu_device device))                                                 \
    X(cuDeviceGetAttribute, (int *value, unsigned attribute, vpps_cu_device device))                                   \
    X(cuDevicePrimaryCtxRetain, (vpps_cu_context * context, vpps_cu_device device))                                    \
    X(cuDevicePrimaryCtxRelease_v2, (vpps_cu_device device))                                                           \
    X(cuCtxPushCurrent_v2, (vpps_cu_context context))                                                                  \
    X(cuCtxPopCurrent_v2, (vpps_cu_context * context))                                                                 \
    X(cuMemGetInfo_v2, (size_t * free, size_t * total))                                                                \
    X(cuMemAlloc_v2, (vpps_cu_address * address, size_t bytes))                                                        \
    X(cuMemFree_v2, (vpps_cu_address address))                                                                         \
    X(cuMemHostAlloc, (void **memory, size_t bytes, unsigned flags))                                                   \
    X(cuMemFreeHost, (void *memory))                                                                                   \
    X(cuPointerGetAttribute, (void *value, unsigned attribute, vpps_cu_address address))                               \
    X(cuMemcpyHtoDAsync_v2, (vpps_cu_address to, const void *from, size_t bytes, vpps_cu_stream stream))               \
    X(cuMemcpyDtoHAsync_v2, (void *to, vpps_cu_address from, size_t bytes, vpps_cu_stream stream))                     \
    X(cuMemcpyDtoDAsync_v2, (vpps_cu_address to, vpps_cu_address from, size_t bytes, vpps_cu_stream stream))           \
    X(cuMemcpy2DAsync_v2, (const struct CUDA_MEMCPY2D_st *copy, vpps_cu_stream stream))                                \
    X(cuMemsetD32Async, (vpps_cu_address to, unsigned value, size_t words, vpps_cu_stream stream))                     \
    X(cuStreamCreate, (vpps_cu_stream * stream, unsigned flags))                                                       \
    X(cuStreamDestroy_v2, (vpps_cu_stream stream))                                                                     \
    X(cuStreamSynchronize, (vpps_cu_stream stream))                                                                    \
    X(cuStreamQuery, (vpps_cu_stream stream))                                                                          \
    X(cuStreamWaitEvent, (vpps_cu_stream stream, vpps_cu_event event, unsigned flags))                                 \
    X(cuEventCreate, (vpps_cu_event * event, unsigned flags))                                                          \
    X(cuEventDestroy_v2, (vpps_cu_event event))                                                                        \
    X(cuEventRecord, (vpps_cu_event event, vpps_cu_stream stream))                                                     \
    X(cuEventQuery, (vpps_cu_event event))                                                                             \
    X(cuEventSynchronize, (vpps_cu_event event))                                                                       \
    X(cuModuleLoadData, (vpps_cu_module * module, const void *image))                                                  \
    X(cuModuleUnload, (vpps_cu_module module))                                                                         \
    X(cuModuleGetFunction, (vpps_cu_function * function, vpps_cu_module module, const char *name))                     \
    X(cuFuncGetAttribute, (int *value, unsigned attribute, vpps_cu_function function))                                 \
    X(cuFuncSetAttribute, (vpps_cu_function function, unsigned attribute, int value))                                  \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessor,                                                                     \
      (int *ctas, vpps_cu_function function, int threads, size_t dynamic_shared_bytes))                                \
    X(cuLaunchCooperativeKernel,                                                                                       \
      (vpps_cu_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,                 \
       unsigned block_y, unsigned block_z, unsigned dynamic_shared_bytes, vpps_cu_stream stream, void **parameters))

typedef struct vpps_cuda {
    void *library;
#define X(symbol, parameters) vpps_cu_result(*symbol) parameters;
    VPPS_CUDA_FUNCTIONS(X)
#undef X
} vpps_cuda;

/* Opens the library $VPPS_LIBCUDA, else libcuda.so.1, and looks up its functions. Fails with DEVICE: the message says in one line what is
 * missing. If the library was opened but lacks a function, out->library is set. vpps_cuda_close must be called even after a failure. The
 * library stays loaded, since the driver keeps threads of its own. */
vpps_status vpps_cuda_open(vpps_cuda *out);
void vpps_cuda_close(vpps_cuda *api);

/* Sets the error message "cuda: WHAT: CUDA_ERROR_NAME (code, its text)" for a failed call of the driver, and returns DEVICE. */
vpps_status vpps_cuda_failed(const vpps_cuda *api, const char *what, vpps_cu_result code);
