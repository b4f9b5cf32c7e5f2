/* gpu_late.h - software SIMT, late on purpose: work that a handle queues is done only when somebody waits for it, in the order of the calls. Uploads,
 * which have a stream of their own, are done at once. So a test sees what is overwritten, given back or read too early. One machine at a time.
 * Products of tests/fake_cublas are as late. */
#pragma once

#include "runtime/gpu/driver.h"

enum { LATE_MOST = 64 };

/* What has happened, and what a test wants to happen. */
typedef struct gpu_late {
    uint32_t asked, done;       /* launches that were queued, and that were done */
    uint32_t products;          /* number of cuBLAS calls that were done */
    uint32_t released;          /* number of allocations that were given back */
    uint32_t failed[LATE_MOST]; /* outcome of each launch that was done: a vpps_failure_kind */
    uint32_t stalls;            /* number, from 1, of the launch that does nothing and reports a stall; 0: none does */
    uint32_t allocations,
        lacking; /* allocations of device and pinned memory; number of the one that fails, from 1; 0: none */
} gpu_late;

extern gpu_late late;

/* Sets all of `late` to zero, and defers the products of the cuBLAS stand-in at that path. */
const vpps_driver_table *late_driver(const char *cublas);
