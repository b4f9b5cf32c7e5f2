/* compile.h - compiles kernel source to a CUBIN with NVRTC, which is loaded at run time. */
#pragma once

#include "base/base.h"

/* Resource use of a compiled kernel (from the CUBIN's .nv.info) and how it was compiled. */
typedef struct vpps_cubin_report {
    uint32_t registers; /* registers per thread */
    /* Bytes of a thread's stack, with called functions: spilled registers, and arrays indexed at run time. A kernel with more than 0 is rejected. */
    uint32_t frame_bytes;
    uint32_t shared_bytes; /* static shared memory of a CTA, without the bytes that the system reserves */
    uint32_t code_bytes;
    double seconds; /* compile time; 0 if the kernel came from the cache */
    bool cached;
} vpps_cubin_report;

/* Opens NVRTC, once per process, and returns its version and the architectures that it compiles for, ascending. *n: in, the array's
 * capacity; out, the number of architectures. Fails with DEVICE if there is no NVRTC; the message names the library that was looked for
 * (nvrtc.h). Thread-safe. */
vpps_status vpps_nvrtc_version(int *major, int *minor, uint32_t *architectures, uint32_t *n);

/* Compiles `source` for an architecture, or takes the CUBIN from the disk cache. `entry` names the kernel's function. *cubin is malloc'd
 * and owned by the caller. Fails with DEVICE if there is no NVRTC, the architecture is unknown or the source does not compile (the message
 * has the compiler's first error line), with FORMAT if the source has no kernel of that name, and with MEMORY. A stack frame is
 * reported, but is no failure, nor is an unusable cache. `description` is one line kept in the cache entry. Without use_cache, the
 * cache is neither read nor written. Thread-safe. */
vpps_status vpps_compile(const char *source, const char *entry, uint32_t arch, const char *description, bool use_cache,
                         void **cubin, size_t *cubin_bytes, vpps_cubin_report *report);

/* Compiles `source` to PTX of a virtual architecture, which the driver compiles for its GPU. *ptx is malloc'd, owned by the caller, and
 * zero-terminated. Fills in only `seconds` of the report; the rest is 0. Fails as vpps_compile does. Thread-safe. */
vpps_status vpps_compile_ptx(const char *source, uint32_t arch, char **ptx, vpps_cubin_report *report);

/* Reads a kernel's registers, stack frame and sizes from a CUBIN's ELF file into the report; other members keep their values. Fails
 * with FORMAT if the bytes are no CUBIN, are damaged or lack the function `entry`; the report is then unchanged. */
vpps_status vpps_cubin_inspect(const void *cubin, size_t bytes, const char *entry, vpps_cubin_report *report);
