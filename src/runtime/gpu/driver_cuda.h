/* driver_cuda.h - what the parts of the CUDA driver share: driver_cuda.c (the machine, memory, time) and
 * driver_cuda_kernels.c (from source to a launch).
 */
#pragma once

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
    size_t n;
} holdings;

typedef struct cuda_driver {
    vpps_driver base;
    vpps_cuda cuda;
    vpps_cu_device device;
    vpps_cu_context context;
    vpps_cu_stream stream, uploads;
    vpps_cu_event start, stop, uploaded, marks[VPPS_DRIVER_MARKS];
    bool started, stopped; /* the clocks, since the last wait */
    uint32_t arch, sms;
    int version; /* of CUDA, that the driver speaks: 13000 */
    bool lost;   /* it did not finish in time: what it does is not known, and calls of it might never return */
    holdings memory, pinned;
    vpps_kernel *kernels;
} cuda_driver;

#define CUDA_TRY(d, what, call)                                                                                        \
    do {                                                                                                               \
        const vpps_cu_result code_ = (d)->cuda.call;                                                                   \
        if (code_ != VPPS_CU_SUCCESS) return vpps_cuda_failed(&(d)->cuda, what, code_);                                \
    } while (0)

/* Makes the driver's context the calling thread's, whichever that is; *d is the driver. Fails with STALL (it is lost), DEVICE; then *d
 * is NULL. Leave: the thread has the context again that was its own before; nothing for NULL. */
vpps_status vpps_cuda_enter(vpps_driver *base, cuda_driver **d);
void vpps_cuda_leave(cuda_driver **d);

/* A driver to enter, which is left where its block ends. */
#define CUDA_DRIVER(d) cuda_driver *d __attribute__((cleanup(vpps_cuda_leave))) = NULL

/* driver_cuda_kernels.c: members of the table. */
vpps_status vpps_cuda_load(vpps_driver *base, const char *source, const char *description,
                           const vpps_launch_shape *shape, vpps_kernel **out, vpps_cubin_report *report);
vpps_status vpps_cuda_prepare(vpps_driver *base, const char *source, const char *description,
                              vpps_cubin_report *report);
void vpps_cuda_unload(vpps_driver *base, vpps_kernel *kernel);
vpps_status vpps_cuda_launch(vpps_driver *base, vpps_kernel *kernel, const vpps_launch_shape *shape,
                             const void *arguments, size_t bytes);
