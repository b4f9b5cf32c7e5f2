/* driver.h - a machine, as the GPU device sees it: memory, copies, a kernel, time. Two machines answer: a GPU by way of the CUDA driver
 * (driver_cuda.c), and software SIMT (driver_simt.c), which runs the same kernel source on the CPU. So all of device.c runs in every test.
 *
 * Addresses are numbers in the machine's own address space. Copies, clears and launches happen in the order of their calls. Only `read`,
 * `wait` and calls that say so wait for them. One thread at a time uses a driver, except for `prepare`.
 */
#pragma once

#include "codegen/compile.h"
#include "plan/machine.h"
#include "runtime/comm/comm.h"

typedef struct vpps_driver vpps_driver;
typedef struct vpps_kernel vpps_kernel;

typedef struct vpps_launch_shape {
    uint32_t ctas, threads; /* all CTAs must be resident at once */
    uint32_t dynamic_shared_bytes;
} vpps_launch_shape;

typedef struct vpps_driver_table {
    const char *name; /* of the device, as in --device */

    /* Opens the machine and describes it; where there are several, `number` modulo as many as there are. Fails with DEVICE: there is
     * none (the message says why in one line). */
    vpps_status (*open)(vpps_driver **out, uint32_t number, vpps_machine *machine);
    void (*close)(vpps_driver *d); /* frees everything still allocated or loaded */

    vpps_status (*allocate)(vpps_driver *d, size_t bytes, uint64_t *address); /* MEMORY: the device has not so much */
    void (*release)(vpps_driver *d, uint64_t address);
    vpps_status (*allocate_host)(vpps_driver *d, size_t bytes,
                                 void **out); /* pinned: `write` from it is asynchronous */
    void (*release_host)(vpps_driver *d, void *memory);
    uint64_t (*reach)(vpps_driver *d, void *pinned); /* where kernels find pinned memory; 0: they cannot */
    size_t (*free_bytes)(vpps_driver *d);            /* device memory left */

    vpps_status (*write)(vpps_driver *d, uint64_t to, const void *from, size_t bytes);
    vpps_status (*read)(vpps_driver *d, void *to, uint64_t from, size_t bytes);    /* waits */
    vpps_status (*copy)(vpps_driver *d, uint64_t to, uint64_t from, size_t bytes); /* of memory that does not overlap */
    vpps_status (*clear)(vpps_driver *d, uint64_t address, size_t bytes);          /* to zero; multiples of 4 */
    /* From pinned memory, while a kernel runs: launches from now on wait for it, what was begun before does not. */
    vpps_status (*upload)(vpps_driver *d, uint64_t to, const void *from, size_t bytes);
    /* To pinned memory, in the order of calls; it does not wait. */
    vpps_status (*fetch)(vpps_driver *d, void *to, uint64_t from, size_t bytes);

    /* Compiles the source (whose function is vpps_kernel) or takes it from the cache. `shape` is how it will be launched. The caller
     * decides whether the report's frame and spills are acceptable. */
    vpps_status (*load)(vpps_driver *d, const char *source, const char *description, const vpps_launch_shape *shape,
                        vpps_kernel **out, vpps_cubin_report *report);
    void (*unload)(vpps_driver *d, vpps_kernel *kernel);

    /* Compiles the source, so that `load` will find it in the cache; by any thread, while another uses the driver. NULL: whoever
     * waits for a kernel waits for `load`. */
    vpps_status (*prepare)(vpps_driver *d, const char *source, const char *description, vpps_cubin_report *report);

    /* A cooperative launch; `arguments` is the kernel's one parameter, by value. */
    vpps_status (*launch)(vpps_driver *d, vpps_kernel *kernel, const vpps_launch_shape *shape, const void *arguments,
                          size_t bytes);

    void (*stream)(vpps_driver *d, vpps_gpu_stream *out); /* in which everything happens */
    /* Calls `work` while the machine's context is the thread's, where CUDA's libraries find it. Fails as `work` does, and with STALL,
     * DEVICE. */
    vpps_status (*within)(vpps_driver *d, vpps_status (*work)(void *context, struct CUstream_st *stream),
                          void *context);

    vpps_status (*start_clock)(vpps_driver *d); /* in order with the launches */
    vpps_status (*stop_clock)(vpps_driver *d);
    /* Mark number `which`, below VPPS_DRIVER_MARKS, stands for all calls before this one. passed: has the device done them, or failed? It
     * never blocks. await: waits until it has; fails as `wait` does. */
    vpps_status (*mark)(vpps_driver *d, uint32_t which);
    bool (*passed)(vpps_driver *d, uint32_t which);
    vpps_status (*await)(vpps_driver *d, uint32_t which);
    /* Waits for everything; the time between the clocks. Fails with DEVICE when anything since the last wait failed, with
     * STALL when it was not done within limit_ns: then the machine is lost, and every call fails with that. */
    vpps_status (*wait)(vpps_driver *d, uint64_t *device_ns);
} vpps_driver_table;

enum { VPPS_DRIVER_MARKS = 4 }; /* a power of 2 */

struct vpps_driver {
    const vpps_driver_table *table;
    uint64_t limit_ns; /* the longest that a wait or a read may take; 0: for ever. Whoever opened the driver sets it */
    bool kernels_time_out; /* the machine ends kernels after some seconds: it is a GPU that drives a display */
};

extern const vpps_driver_table vpps_driver_cuda, vpps_driver_simt;

/* Is there a GPU at all? Fails with DEVICE, and the message says in one line why there is none. Other faults (a driver that does not start,
 * no NVRTC) are reported when the driver is opened. */
vpps_status vpps_cuda_find(void);

/* The machine of the first GPU here. Fails with what opening vpps_driver_cuda fails with. */
vpps_status vpps_gpu_here(vpps_machine *out);

/* How long a kernel may wait at a barrier: what the options say, and less where the machine would end it before. */
static inline uint64_t vpps_driver_watchdog_ns(const vpps_driver *d, uint32_t watchdog_ms) {
    const uint32_t most_ms = d->kernels_time_out ? 1000 : UINT32_MAX;
    return (uint64_t)vpps_min_u32(watchdog_ms ? watchdog_ms : 10000, most_ms) * 1000000;
}

/* The limit for a launch whose waits have that limit: many times as long, and at least a minute. */
static inline uint64_t vpps_driver_limit_ns(uint32_t watchdog_ms) {
    return (uint64_t)vpps_max_u32(watchdog_ms ? watchdog_ms : 10000, 6000) * 10 * 1000000;
}
