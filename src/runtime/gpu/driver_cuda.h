/* driver_cuda.h - declarations shared by driver_cuda.c (machine, memory, time) and driver_cuda_kernels.c (kernels). */
#pragma once

#include "runtime/gpu/cuda_api.h"
#include "runtime/gpu/driver.h"

struct vpps_kernel {
    vpps_cu_module module;
    vpps_cu_function function;
    vpps_launch_shape shape; /* the launches' shape: all CTAs fit the GPU at once, as loading has checked */
};

/* List of n allocations that closing the driver frees: `at` has device addresses, or pointers to pinned memory. */
typedef struct holdings {
    uint64_t *at;
    size_t n;
} holdings;

typedef struct cuda_driver {
    vpps_driver base;
    vpps_cuda cuda;
    vpps_cu_device device;
    vpps_cu_context context;
    vpps_cu_stream stream, uploads;
    vpps_cu_event uploaded, ordered, marks[VPPS_DRIVER_MARKS];
    uint32_t arch, sms;
    int version; /* CUDA version of the driver, such as 13000 */
    bool lost;   /* true: the GPU did not finish in time; further calls of the driver might never return */
    holdings memory, pinned;
} cuda_driver;

#define CUDA_TRY(d, what, call)                                                                                        \
    do {                                                                                                               \
        const vpps_cu_result code_ = (d)->cuda.call;                                                                   \
        if (code_ != VPPS_CU_SUCCESS) return vpps_cuda_failed(&(d)->cuda, what, code_);                                \
    } while (0)

/* Makes the driver's context current in the calling thread and sets *d. Fails with STALL (the GPU is lost) or DEVICE; *d is then NULL. */
vpps_status vpps_cuda_enter(vpps_driver *base, cuda_driver **d);
/* Makes the thread's former context current again, if *d is not NULL. */
void vpps_cuda_leave(cuda_driver **d);

/* Declares variable d for vpps_cuda_enter; vpps_cuda_leave is called when the enclosing block ends. */
#define CUDA_DRIVER(d) cuda_driver *d __attribute__((cleanup(vpps_cuda_leave))) = NULL
/* Declares d, the CUDA driver that `base` points to, and enters its context; returns a failure from the enclosing function. */
#define CUDA_ENTER(d, base)                                                                                            \
    CUDA_DRIVER(d);                                                                                                    \
    VPPS_TRY(vpps_cuda_enter(base, &d))

/* Functions of the driver's table (driver.h) that driver_cuda_kernels.c defines. */
vpps_status vpps_cuda_load(vpps_driver *base, const char *source, const char *description,
                           const vpps_launch_shape *shape, vpps_kernel **out, vpps_cubin_report *report);
vpps_status vpps_cuda_prepare(vpps_driver *base, const char *source, const char *description,
                              vpps_cubin_report *report);
void vpps_cuda_unload(vpps_driver *base, vpps_kernel *kernel);
vpps_status vpps_cuda_launch(vpps_driver *base, vpps_kernel *kernel, const vpps_launch_shape *shape,
                             const void *arguments, size_t bytes);
