/* gpu_late.h - software SIMT, late on purpose: what a handle asks of the machine is done when somebody waits for it, in the order of the
 * calls. Uploads, which have a stream of their own, are done at once. So a test sees what is overwritten, given back or read too early.
 * One machine at a time. Products of tests/fake_cublas are as late. */
#pragma once

#include "runtime/gpu/driver.h"

enum { LATE_MOST = 64 };

/* What happened, and what a test wants to happen. */
typedef struct gpu_late {
    uint32_t asked, done;       /* launches that were asked for, and that were done */
    uint32_t products;          /* calls of cuBLAS that were done */
    uint32_t failed[LATE_MOST]; /* of each launch that was done: a vpps_failure_kind */
    uint32_t stalls;            /* number of the launch that does nothing and tells a stall, from 1 on; 0: none does */
    uint32_t allocations,
        lacking; /* of device and pinned memory; number of the one that finds none, from 1 on; 0: none */
} gpu_late;

extern gpu_late late;

/* Sets all of `late` to zero, and defers the products of the stand-in at that path. */
const vpps_driver_table *late_driver(const char *cublas);
