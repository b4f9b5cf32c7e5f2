/* simt.h - software SIMT: runs CUDA C++ kernel source on the CPU. The source is compiled by the host's C++ compiler
 * against simt_cuda.h, which supplies the CUDA built-ins; CUDA threads are fibers, CTAs take turns on one thread.
 *
 * It catches what a wrong order of instructions or a missing barrier does, barriers that not all threads reach, shuffles
 * of the wrong lanes, signals that never come, shared and device memory that nobody wrote (it holds NaNs). It does not
 * see missing atomics and fences, or weak memory ordering: a thread is never interrupted between two places where CUDA
 * threads meet.
 *
 * A watched kernel ($VPPS_SIMT_WATCH=1 while it is loaded) runs five times as long. It fails where a thread reads or writes outside of
 * memory that the kernel has; and where two threads of a CTA use a word of memory, one of them to write, with no barrier of the CTA or
 * of their warp between: whatever the order in which they run.
 *
 * Stricter than a GPU: a thread that has finished does not count as having reached a CTA barrier; all threads of a CTA
 * must meet at the same __syncthreads() of the source, and all lanes of a warp at the same shuffle or ballot.
 *
 * Not under ThreadSanitizer, which would need megabytes for each CUDA thread.
 */
#pragma once

#include "base/base.h"

typedef struct vpps_simt_kernel vpps_simt_kernel;

/* Lists of memory that kernels may use: a device's, and pinned memory. */
enum { VPPS_SIMT_MEMORIES = 2 };

typedef struct vpps_simt_piece {
    struct vpps_simt_piece *next;
    char *memory;
    size_t bytes;
    struct vpps_simt_word *words; /* who used them: made by the first watched kernel, freed by the owner */
} vpps_simt_piece;

/* Fails with DEVICE under ThreadSanitizer, as vpps_simt_load does. */
vpps_status vpps_simt_check(void);

/* Compiles the source with the C++ compiler $VPPS_CXX (a program's name), else c++, or takes the library from the disk
 * cache. It is not optimised, for compiling takes longer than most runs; options in $VPPS_CXXFLAGS are added (-O1 where
 * runs are long, -g for a debugger). The kernel is `extern "C" __global__ void vpps_kernel(const vpps_arguments a)`, its one parameter
 * passed by value. Fails with DEVICE: no compiler (the message says what was looked for), or it refused the source (its
 * first error line, where the file `kernel` is the source). *seconds: of compiling, 0 when cached. Thread-safe. */
vpps_status vpps_simt_load(vpps_simt_kernel **out, const char *source, const char *description, double *seconds);
void vpps_simt_unload(vpps_simt_kernel *kernel);

/* Runs all CTAs, of a multiple of 32 threads up to 1024, to the end. `seed` other than 0 draws the order in which CTAs, warps and, between
 * two places where they meet, threads take their turns. A watched kernel may use
 * `memory`, VPPS_SIMT_MEMORIES lists (NULL: all empty). One run of a kernel at a time. Fails with ARGUMENT: a shape CUDA does not have, or `bytes`
 * is not the size of the kernel's parameter; with STALL when no thread of any CTA can go on (a barrier that not all
 * threads of a CTA reach; all CTAs spinning), naming CTA, threads at the barrier and threads alive, and lines of the
 * source; with DEVICE: lanes that do not fit the mask of a shuffle, ballot or warp barrier; what a watched kernel must not do. After a failure the kernel
 * may be run again. */
vpps_status vpps_simt_run(vpps_simt_kernel *kernel, uint32_t ctas, uint32_t threads, uint32_t dynamic_shared_bytes,
                          const void *arguments, size_t bytes, uint32_t seed, vpps_simt_piece *const *memory);

/* All CTAs count as spinning when for so long (2 s unless set) every turn of every CTA ended in __nanosleep, and meanwhile
 * no atomic changed memory and no thread finished. For tests; of the whole process. */
void vpps_simt_set_patience(uint64_t ns);

/* Device and pinned memory that vpps_driver_simt has allocated and not yet released, in the whole process: how many
 * pieces. For tests that look for leaks. */
uint32_t vpps_simt_live_allocations(void);
