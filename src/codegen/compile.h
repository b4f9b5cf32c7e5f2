/* compile.h - kernel source to CUBIN with NVRTC, which is opened at run time. */
#pragma once

#include "base/base.h"

/* Facts about a compiled kernel (from the CUBIN's .nv.info) and its making. */
typedef struct vpps_cubin_report {
    uint32_t registers;    /* a thread */
    uint32_t frame_bytes;  /* local memory a thread, with that of functions it calls: 0, or the kernel is rejected */
    uint32_t spill_bytes;  /* stores and loads that the compiler's log counts, of all functions of the source */
    uint32_t shared_bytes; /* static, without what the system keeps of every CTA */
    uint32_t code_bytes;
    double seconds; /* of compiling; 0 when it came from the cache */
    bool cached;
} vpps_cubin_report;

/* Is NVRTC there? Its version, and the architectures that it compiles for (ascending, at most *n; *n is set). Fails with
 * DEVICE; the message says which library was looked for (nvrtc.h). Thread-safe; opens the library once a process. */
vpps_status vpps_nvrtc_version(int *major, int *minor, uint32_t *architectures, uint32_t *n);

/* Compiles `source` for an architecture, or takes it from the disk cache. *cubin is malloc'd, the caller's. The kernel is
 * the function `entry`. Fails with DEVICE: no NVRTC, or an architecture it does not know, or the source was refused (the
 * message carries the compiler's first error line); FORMAT: the source has no kernel of that name; MEMORY. A frame or
 * spills are no failure: the report has them. A cache that cannot be read or written is no failure, either.
 * `description`: one line, kept in the cache entry. `use_cache` false: always compiles, writes nothing. Thread-safe. */
vpps_status vpps_compile(const char *source, const char *entry, uint32_t arch, const char *description, bool use_cache,
                         void **cubin, size_t *cubin_bytes, vpps_cubin_report *report);

/* Compiles `source` to PTX of a virtual architecture, which the driver compiles for its GPU. *ptx is malloc'd, the caller's,
 * and ends with a zero. Of the report only `seconds` is known; the rest is 0. Fails as vpps_compile does. Thread-safe. */
vpps_status vpps_compile_ptx(const char *source, uint32_t arch, char **ptx, vpps_cubin_report *report);

/* Reads registers, frame and sizes from a CUBIN's ELF; leaves the rest of the report alone. Fails with FORMAT when it is
 * none, is damaged, or has no such function; then the report is as before. */
vpps_status vpps_cubin_inspect(const void *cubin, size_t bytes, const char *entry, vpps_cubin_report *report);
