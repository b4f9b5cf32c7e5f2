/* compile.h - compiles kernels to GPU code (CUBIN) with NVIDIA's library NVRTC, which is opened at its first use. */
#pragma once

#include "base/base.h"

/* Resource use of a compiled kernel, as ptxas tells it in the compiler's log, and how it was compiled. */
typedef struct vpps_cubin_report {
    uint32_t registers; /* registers per thread */
    /* bytes of a thread's stack, callees included, for spilled registers and arrays indexed at run time. vpps_specialise tries to get 0. */
    uint32_t frame_bytes;
    uint32_t shared_bytes; /* static shared memory of a CTA, without the bytes that the system reserves */
    uint32_t cubin_bytes;
    double seconds; /* compile time; 0 if the kernel came from the cache */
    bool cached;
} vpps_cubin_report;

/* Compiles `source` for an architecture, or takes the CUBIN from the disk cache. `entry` names the kernel's function. *cubin is malloc'd
 * and owned by the caller. Fails with DEVICE if there is no NVRTC, the architecture is unknown or the source does not compile (the message
 * has the compiler's first error line), with FORMAT if the compiler's log lacks the kernel's number of registers, and with MEMORY. A kernel
 * with a stack frame (see *report) and an unusable cache are no failures. `description` is one line kept in the cache entry. Without
 * use_cache, the cache is neither read nor written. Thread-safe. */
vpps_status vpps_compile(const char *source, const char *entry, uint32_t arch, const char *description, bool use_cache,
                         void **cubin, size_t *cubin_bytes, vpps_cubin_report *report);

/* Compiles `source` to PTX of a virtual architecture, which the driver compiles for its GPU. *ptx is malloc'd, owned by the caller, and
 * zero-terminated. Fills in only `seconds` of the report; the rest is 0. Fails as vpps_compile does. Thread-safe. */
vpps_status vpps_compile_ptx(const char *source, uint32_t arch, char **ptx, vpps_cubin_report *report);
