/* simt.h - software SIMT: runs CUDA C++ kernel source on the CPU. The host's C++ compiler compiles the source with simt_cuda.h, which
 * supplies the CUDA built-ins. CUDA threads are fibers, and CTAs take turns on one thread.
 *
 * It detects the effects of a wrong instruction order or a missing barrier, barriers that not all threads reach, shuffles of wrong lanes,
 * signals that never come, and reads of unwritten shared or device memory (which holds NaNs). It does not detect missing atomics and
 * fences, or weak memory ordering: a thread is never interrupted between two places where CUDA threads meet.
 *
 * A watched kernel ($VPPS_SIMT_WATCH=1 while it is loaded) runs five times as long. It fails if a thread accesses memory outside of the
 * kernel's; and if two threads of a CTA access a word of memory, one of them writing, without a barrier of the CTA or of their warp in
 * between, in whatever order they run.
 *
 * It is stricter than a GPU: a finished thread does not count as having reached a CTA barrier; all threads of a CTA must meet at the same
 * __syncthreads() of the source, and all lanes of a warp at the same shuffle or ballot.
 *
 * It does not run under ThreadSanitizer, which would need megabytes for each CUDA thread. */
#pragma once

#include "base/base.h"

typedef struct vpps_simt_kernel vpps_simt_kernel;

/* Kernels may use two lists of allocations: device memory and pinned memory. */
enum { VPPS_SIMT_MEMORIES = 2 };

typedef struct vpps_simt_piece {
    struct vpps_simt_piece *next;
    char *memory;
    size_t bytes;
    /* for each word: the threads that used it last (watch.h); made for the first kernel with checked accesses, freed with the memory */
    struct vpps_simt_word *words;
} vpps_simt_piece;

/* Checks that software SIMT can run. Fails with DEVICE under ThreadSanitizer, as vpps_simt_load does. */
vpps_status vpps_simt_check(void);

/* Compiles the source with the C++ compiler $VPPS_CXX (a program's name), else c++, or takes the library from the disk cache. It is not
 * optimised, since compiling takes longer than most runs; options in $VPPS_CXXFLAGS are added (-O1 for long runs, -g for a debugger). The
 * kernel is `extern "C" __global__ void vpps_kernel(const vpps_arguments a)`, its one parameter passed by value. Fails with DEVICE if there
 * is no compiler (the message names it) or it refuses the source (the message has its first error line, in which the file `kernel` is the
 * source). *seconds is the compile time, 0 if cached. Thread-safe. */
vpps_status vpps_simt_load(vpps_simt_kernel **out, const char *source, const char *description, double *seconds);
void vpps_simt_unload(vpps_simt_kernel *kernel);

/* Runs all CTAs to the end; a CTA has a multiple of 32 threads, up to 1024. A `seed` other than 0 randomises the order in which CTAs, warps
 * and, between two barriers or shuffles, threads run. `memory`: VPPS_SIMT_MEMORIES lists of memory that a kernel with checked accesses
 * ($VPPS_SIMT_WATCH) may use; NULL: all empty. A kernel has one run at a time. Fails with ARGUMENT for an impossible shape, or if `bytes`
 * is not the size of the kernel's parameter; with STALL if no thread of any CTA can continue (a barrier that not all threads of a CTA
 * reach; all CTAs spinning), naming the CTA, threads at the barrier, threads alive, and lines of the source; with DEVICE if lanes do not
 * fit the mask of a shuffle, ballot or warp barrier, or a checked access is forbidden. After a failure the kernel may be run again. */
vpps_status vpps_simt_run(vpps_simt_kernel *kernel, uint32_t ctas, uint32_t threads, uint32_t dynamic_shared_bytes,
                          const void *arguments, size_t bytes, uint32_t seed, vpps_simt_piece *const *memory);

/* Sets the time (default 2 s) after which all CTAs count as spinning: all threads that run only call __nanosleep or reach barriers, no
 * atomic has changed memory and no thread has finished. For tests; applies to the whole process. */
void vpps_simt_set_patience(uint64_t ns);

/* Returns the number of device and pinned allocations of vpps_driver_simt that are not released, for tests that look for leaks. */
uint32_t vpps_simt_live_allocations(void);
