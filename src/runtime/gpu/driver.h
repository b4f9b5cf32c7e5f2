/* driver.h - the interface that the GPU device has to a machine: memory, copies, kernels, time. There are two machines: a GPU through the
 * CUDA driver (driver_cuda.c), and software SIMT (driver_simt.c), which runs the same kernel source on the CPU, so that every test can run
 * device.c. Addresses are numbers in the machine's address space. Copies, clears and launches are queued and executed in the order of the
 * calls. Only `read`, `wait` and functions that say so wait for them. Only one thread at a time uses a driver, except for `prepare`. */
#pragma once

#include "codegen/compile.h"
#include "codegen/machine.h"
#include "runtime/comm/comm.h"

typedef struct vpps_driver vpps_driver;
typedef struct vpps_kernel vpps_kernel;

typedef struct vpps_launch_shape {
    uint32_t ctas, threads; /* number of CTAs (all run at once), and of threads in each */
    uint32_t dynamic_shared_bytes;
} vpps_launch_shape;

/* A copy of n rows of `bytes` bytes between the machine's memory and an array of the program that calls VPPS. Rows begin to_step bytes
 * apart in the target and from_step bytes apart in the source. */
typedef struct vpps_outside_copy {
    uint64_t to, from; /* addresses of the target and the source; `from` 0: the target gets zeros */
    size_t to_step, from_step, bytes, n;
    bool in; /* whether the caller's array is the source; else it is the target */
} vpps_outside_copy;

typedef struct vpps_driver_table {
    const char *name; /* name of the device in the option --device */

    /* Opens a GPU (or the emulated one) and describes it in *machine. `number`, modulo the number of GPUs, selects a
     * GPU. Fails with DEVICE if there is no GPU (the message says why in one line). */
    vpps_status (*open)(vpps_driver **out, uint32_t number, vpps_machine *machine);
    /* Opens a second driver of the same GPU, only for allocating and releasing memory that outlives driver d. */
    vpps_status (*branch)(vpps_driver *d, vpps_driver **out);
    /* Closes the GPU (or emulated GPU) after all its kernels were unloaded; frees all memory that was not released. */
    void (*close)(vpps_driver *d);

    vpps_status (*allocate)(vpps_driver *d, size_t bytes, uint64_t *address); /* Fails with MEMORY. */
    void (*release)(vpps_driver *d, uint64_t address);
    /* Allocates pinned host memory, from which `write` copies asynchronously. Kernels access it at the same address. */
    vpps_status (*allocate_host)(vpps_driver *d, size_t bytes, void **out);
    void (*release_host)(vpps_driver *d, void *memory);
    size_t (*free_bytes)(vpps_driver *d); /* Returns the number of bytes of device memory that are free. */

    vpps_status (*write)(vpps_driver *d, uint64_t to, const void *from, size_t bytes);
    vpps_status (*read)(vpps_driver *d, void *to, uint64_t from, size_t bytes); /* Copies to the host, and waits. */
    /* Copies from one range of device memory to another; the ranges must not overlap. */
    vpps_status (*copy)(vpps_driver *d, uint64_t to, uint64_t from, size_t bytes);
    /* Fills device memory with zeros; `bytes` is a multiple of 4. */
    vpps_status (*clear)(vpps_driver *d, uint64_t address, size_t bytes);
    /* Copies from pinned host memory to the device, even while a kernel runs. Later launches wait for the copy; earlier launches do not. */
    vpps_status (*upload)(vpps_driver *d, uint64_t to, const void *from, size_t bytes);

    /* Checks that a caller's array is in the GPU's memory. Fails with ARGUMENT; the message calls the array `what`. */
    vpps_status (*check_outside)(vpps_driver *d, const void *array, size_t bytes, const char *what);
    /* Returns the most bytes that a copy from `address`, in the caller's memory, may have: up to the allocation's end; 0: unknown. */
    size_t (*room_outside)(vpps_driver *d, uint64_t address);
    vpps_status (*copy_outside)(vpps_driver *d, const vpps_outside_copy *c);
    /* Orders calls with the work in the caller's CUDA stream. theirs_first: later calls wait for the stream's current work; else later work
     * in the stream waits for all calls so far. */
    vpps_status (*order)(vpps_driver *d, void *stream, bool theirs_first);

    /* Loads a kernel: compiles the source, whose kernel function is named vpps_kernel, or takes the compiled code from the disk cache.
     * `shape`: shape of later launches. A kernel with a stack frame (register spills) is loaded, too. */
    vpps_status (*load)(vpps_driver *d, const char *source, const char *description, const vpps_launch_shape *shape,
                        vpps_kernel **out, vpps_cubin_report *report);
    void (*unload)(vpps_driver *d, vpps_kernel *kernel);

    /* Compiles the source into the disk cache, where `load` finds the code. Any thread may call `prepare` while another thread uses the
     * driver. The pointer is NULL if only `load` can compile kernels. */
    vpps_status (*prepare)(vpps_driver *d, const char *source, const char *description, vpps_cubin_report *report);

    /* Launches the kernel cooperatively (all CTAs at once); `arguments` is its one parameter, passed by value. */
    vpps_status (*launch)(vpps_driver *d, vpps_kernel *kernel, const vpps_launch_shape *shape, const void *arguments,
                          size_t bytes);

    void (*stream)(vpps_driver *d, vpps_gpu_stream *out); /* Gives the stream in which all calls are executed. */
    /* Calls `work` with the GPU's CUDA context current. Fails as `work`, with DEVICE (CUDA failed), STALL (GPU lost) */
    vpps_status (*within)(vpps_driver *d, vpps_status (*work)(void *context, struct CUstream_st *stream),
                          void *context);

    /* Puts mark number `which` (below VPPS_DRIVER_MARKS) into the queue of calls: the device passes it when all earlier calls are done. */
    vpps_status (*mark)(vpps_driver *d, uint32_t which);
    /* Returns whether the device has done all calls before mark number `which`, or failed. Never blocks. */
    bool (*passed)(vpps_driver *d, uint32_t which);
    /* Waits until the device has done all calls queued before mark number `which`. Fails with DEVICE, STALL. */
    vpps_status (*await)(vpps_driver *d, uint32_t which);
    /* Waits for all calls. Fails with DEVICE if a call since the last wait failed, and with STALL if the calls were not
     * done within limit_ns: the GPU is then lost, and every later call fails with STALL. */
    vpps_status (*wait)(vpps_driver *d);
} vpps_driver_table;

enum { VPPS_DRIVER_MARKS = 4 }; /* number of marks (places in the queue of calls to wait for); a power of 2 */

struct vpps_driver {
    const vpps_driver_table *table;
    uint64_t limit_ns;     /* longest wait or read, in ns; 0: no limit; set by the caller of `open` */
    bool kernels_time_out; /* whether the system ends kernels after some seconds, as the GPU drives a display */
};

extern const vpps_driver_table vpps_driver_cuda, vpps_driver_simt;

/* Checks that there is a GPU. Fails with DEVICE; the message says in one line why there is none. Other faults, such as
 * a driver that does not start, are reported when the driver is opened. */
vpps_status vpps_cuda_find(void);

/* Describes the first GPU of this host. Fails as opening vpps_driver_cuda does. */
vpps_status vpps_gpu_here(vpps_machine *out);

/* Returns how long a kernel may wait at a barrier: watchdog_ms (0: 10 s), but at most 1 s if the machine ends long kernels. */
static inline uint64_t vpps_driver_watchdog_ns(const vpps_driver *d, uint32_t watchdog_ms) {
    const uint32_t most_ms = d->kernels_time_out ? 1000 : UINT32_MAX;
    return (uint64_t)vpps_min_u32(watchdog_ms ? watchdog_ms : 10000, most_ms) * 1000000;
}

/* Returns the time limit of a whole launch: ten times watchdog_ms, the limit of a wait at a barrier, but at least a minute. */
static inline uint64_t vpps_driver_limit_ns(uint32_t watchdog_ms) {
    return (uint64_t)vpps_max_u32(watchdog_ms ? watchdog_ms : 10000, 6000) * 10 * 1000000;
}
