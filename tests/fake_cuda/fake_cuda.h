/* fake_cuda.h - a CUDA driver that is none: the functions of runtime/gpu/cuda_api.h on the CPU, for tests on machines without a GPU. It
 * checks our use of the API as its manuals describe it (contexts current, ranges allocated, order, asynchrony, nothing leaked); it says
 * nothing about a GPU. No kernel is executed: a launch calls a hook.
 *
 * Work of all streams, NULL among them, goes through one queue that a worker thread takes up a millisecond later, or when somebody waits.
 * Device addresses are not host addresses: dereferencing one crashes. */
#pragma once

#include "runtime/gpu/cuda_api.h"

/* Counts of what exists now, and of what has happened since the library was loaded. */
typedef struct fake_cuda_counts {
    uint32_t contexts, streams, events, modules, device_blocks, pinned_blocks;
    uint32_t launches;
    uint32_t damaged; /* freed blocks next to which something was written */
    uint32_t refused; /* attempts to free what was no block */
} fake_cuda_counts;

/* The GPU. Tests may change it before they open it. */
typedef struct fake_cuda_device {
    const char *name;
    int count; /* of GPUs */
    int arch_major, arch_minor, sms, sm_registers, sm_shared_bytes, cta_shared_bytes, l2_bytes, cooperative;
    int kernel_registers; /* registers of a thread, for the occupancy */
    size_t memory_bytes;
    int kernel_timeout, driver_version; /* whether it drives a display; CUDA's version, 0: 13.0 */
} fake_cuda_device;

/* Runs in place of a launch, in the worker's thread. A result other than 0 is the error that the kernel ends with. */
typedef vpps_cu_result (*fake_cuda_kernel)(const void *arguments, unsigned ctas, unsigned threads,
                                           unsigned dynamic_shared_bytes);

/* How a test controls the library: the library exports one of these structs, named fake_cuda. */
typedef struct fake_cuda_controls {
    fake_cuda_device *device;
    fake_cuda_counts (*counts)(void);
    void (*set_kernel)(fake_cuda_kernel kernel, size_t argument_bytes); /* size of the kernel's one parameter */
    /* Makes the nth call of a function from now on (1: the next) do nothing and return the code. */
    void (*break_call)(const char *function, uint32_t nth, vpps_cu_result code);
    void (*hold)(bool held);                       /* while held, work waits until somebody waits for it */
    void *(*host)(uint64_t address, size_t bytes); /* where device memory lies; NULL: not allocated as a whole */
    void (*move)(uint64_t address, int gpu);       /* makes the block with this address another GPU's */
    /* Returns the calls since the last time that copy on the device or order streams: "copy BYTES sN", "copy BYTES x ROWS sN", "set WORDS sN",
     * "record eN sN", "wait sN eN", each followed by "; ". Streams and events are numbered as they are created, from 1; s0 is a default stream. */
    const char *(*take_calls)(void);
} fake_cuda_controls;
