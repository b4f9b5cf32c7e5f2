/* device.cuh - hardware operations of a kernel: memory order, thread numbers, the rows that a CTA owns, sums over a warp, barriers between CTAs. */

#ifndef VPPS_SIMT
/* Release and acquire operations (PTX ISA 8.0, "Memory Consistency Model"). The release makes all that the CTA did before its barrier
 * visible at device scope; the acquire, before the CTA's next barrier, lets the whole CTA see it. Software SIMT has its own versions. */
__device__ __forceinline__ void VPPS_RELEASE_ADD(unsigned *at, unsigned value) {
    asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
}
__device__ __forceinline__ unsigned VPPS_ACQUIRE_LOAD(const unsigned *at) {
    unsigned value;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
    return value;
}
__device__ __forceinline__ unsigned long long VPPS_GLOBAL_TIMER() {
    unsigned long long ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}
#define VPPS_SIMT_UNWATCHED /* software SIMT (a CPU) does not check the memory accesses of functions marked so */
#define VPPS_DYNAMIC_SHARED(name) extern __shared__ __align__(16) float name[]

/* vpps_thread returns the thread's number, vpps_vp the CTA's. Each call reads the number again, since the compiler would otherwise keep
 * values derived from it in registers through the whole kernel, beside the weights. */
__device__ __forceinline__ unsigned vpps_thread() {
    unsigned x;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(x));
    return x;
}
__device__ __forceinline__ unsigned vpps_vp() {
    unsigned x;
    asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(x));
    return x;
}
#else
__device__ __forceinline__ unsigned vpps_thread() { return threadIdx.x; }
__device__ __forceinline__ unsigned vpps_vp() { return blockIdx.x; }
#endif

/* VPPS_READ_PLACE stands at the beginning of a task. Values derived from thread and CTA numbers are the same in every task, so the compiler
 * keeps them in registers. A lean kernel, whose weights leave too few registers, reads the numbers anew in each task. */
#if VPPS_LEAN && !defined(VPPS_SIMT)
struct vpps_index {
    unsigned x;
};
#define VPPS_READ_PLACE                                                                                                \
    const vpps_index threadIdx = {vpps_thread()}, blockIdx = {vpps_vp()};                                              \
    (void)threadIdx, (void)blockIdx
#else
#define VPPS_READ_PLACE (void)0
#endif

/* Makes the compiler compute x before later loads. Otherwise a load that needs x might also wait for all earlier loads,
 * since a thread has few counters for loads in flight. (The assembler may still choose another order.) */
__device__ __forceinline__ void vpps_know(unsigned &x) {
#ifndef VPPS_SIMT
    asm volatile("" : "+r"(x)::"memory");
#else
    (void)x;
#endif
}

#define VPPS_NONE 0xffffffffu
#define VPPS_WARPS (VPPS_THREADS / 32)

struct vpps_rows {
    unsigned first, end;
};

/* Returns n * member / parts, rounded down, for member <= parts < 65,536, without products of more than 32 bits. */
__device__ __forceinline__ unsigned vpps_before_share(unsigned n, unsigned parts, unsigned member) {
    return n / parts * member + n % parts * member / parts;
}

/* Returns the rows that CTA number `member` owns if `parts` CTAs divide `rows` rows, as vpps_rows_of (cell/cell.h) does on the host. */
__device__ __forceinline__ vpps_rows vpps_rows_of(unsigned rows, unsigned parts, unsigned member) {
    const unsigned blocks = (rows + VPPS_ROW_BLOCK - 1) / VPPS_ROW_BLOCK;
    const unsigned first = vpps_before_share(blocks, parts, member) * VPPS_ROW_BLOCK,
                   end = vpps_before_share(blocks, parts, member + 1) * VPPS_ROW_BLOCK;
    return vpps_rows{first < rows ? first : rows, end < rows ? end : rows};
}

/* Returns to every lane the sum over its group of `lanes` adjacent lanes, a power of two. */
__device__ __forceinline__ float vpps_warp_sum(float x, unsigned lanes = 32) {
#pragma unroll
    for (unsigned other = lanes / 2; other > 0; other /= 2) x += __shfl_xor_sync(0xffffffffu, x, other);
    return x;
}

/* Returns to every lane the maximum over its group of `lanes` adjacent lanes. */
__device__ __forceinline__ float vpps_warp_max(float x, unsigned lanes = 32) {
#pragma unroll
    for (unsigned other = lanes / 2; other > 0; other /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, other));
    return x;
}

/* Reports a failure; only the first one is kept. A CTA that has failed, or learns of a failure, continues without
 * waiting, computes with whatever it finds, and still signals. Since writes before a signal are visible after the wait
 * for it, every CTA that reaches the update sees the failure and updates nothing. */
__device__ __forceinline__ void vpps_report(unsigned long long failure, unsigned long long launch_end, unsigned kind,
                                            unsigned address, unsigned value, unsigned have, unsigned wanted) {
    vpps_failure *f = (vpps_failure *)failure;
    if (atomicCAS(&f->failed, 0u, kind) != 0u) return;
    ((vpps_launch_end *)launch_end)->failed = kind;
    f->vp = vpps_vp();
    f->address = address;
    f->value = value;
    f->have = have;
    f->wanted = wanted;
}

__device__ __forceinline__ bool vpps_has_failed(unsigned long long failure) {
    return ((const vpps_failure *)failure)->failed;
}

/* Waits until the barrier's counter is at least `wanted`, or until a CTA has failed. One thread polls. */
__device__ __forceinline__ void vpps_wait(unsigned long long counters, unsigned long long failure,
                                          unsigned long long launch_end, unsigned long long watchdog_ns,
                                          const vpps_task *task, unsigned barrier, unsigned wanted) {
    VPPS_READ_PLACE;
    if (threadIdx.x == 0) {
        const unsigned *counter = (const unsigned *)counters + barrier * VPPS_COUNTER_WORDS;
        const unsigned *failed = &((const vpps_failure *)failure)->failed;
        unsigned long long start = 0;
#pragma unroll 1
        for (;;) {
            unsigned have = 0, polls = 256; /* polls without a pause at first: other CTAs mostly signal soon */
#pragma unroll 2
            while (have < wanted && polls--) have = VPPS_ACQUIRE_LOAD(counter);
            if (have >= wanted) break;
            __nanosleep(16);
            const unsigned long long now = VPPS_GLOBAL_TIMER();
            if (!start) start = now;
            if (now - start > watchdog_ns)
                vpps_report(failure, launch_end, VPPS_FAILURE_STALL, task->address, barrier, have, wanted);
            if (VPPS_ACQUIRE_LOAD(failed)) break;
        }
    }
    __syncthreads();
}

/* A CTA's signal to others: after __syncthreads, the one thread with is_sent 1 adds 1 to `counter`. Both members are computed before __syncthreads. */
struct vpps_signal {
    unsigned *counter;
    unsigned is_sent;
};

__device__ __forceinline__ vpps_signal vpps_signal_of(unsigned long long counters, unsigned barrier) {
    VPPS_READ_PLACE;
    vpps_signal s = {(unsigned *)counters + (unsigned long long)barrier * VPPS_COUNTER_WORDS,
                     (unsigned)(threadIdx.x == 0) & (unsigned)(barrier != VPPS_NO_BARRIER)};
#ifndef VPPS_SIMT
    asm volatile("" : "+l"(s.counter), "+r"(s.is_sent));
#endif
    return s;
}

__device__ __forceinline__ void vpps_send(const vpps_signal &s) {
    if (s.is_sent) VPPS_RELEASE_ADD(s.counter, 1u);
}
