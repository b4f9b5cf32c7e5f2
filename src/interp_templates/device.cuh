/* device.cuh - a kernel's use of the GPU: memory order, a thread's number, the rows that a VP owns, sums over a warp, barriers between VPs,
 * failures. */

#ifndef VPPS_SIMT
/* PTX ISA 8.0, "Memory Consistency Model": the release makes visible at device scope what the CTA did before its barrier;
 * the acquire, before the CTA's next barrier, lets the whole CTA see what was released. Software SIMT has its own. */
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
#define VPPS_SIMT_UNWATCHED /* a function whose accesses software SIMT is not to watch */
#define VPPS_DYNAMIC_SHARED(name) extern __shared__ __align__(16) float name[]

/* The thread's and the CTA's number, read anew wherever they are asked for: what is derived from them would otherwise be
 * kept in registers through the whole kernel, beside the weights. */
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

/* At the beginning of a task. What is derived from a thread's and a CTA's number is the same in every task, so that the compiler keeps it
 * in registers from task to task: where the weights leave none for that, a lean kernel reads them anew. */
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

/* Makes the compiler compute x before loads that come after this. Else a load that needs x may also wait for all loads begun before, since
 * a thread has few counters for loads in flight. (The assembler may still choose another order.) */
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

/* Rows of something with so many that part `member` of `parts` owns; plan/plan.h, vpps_rows_of. */
__device__ __forceinline__ vpps_rows vpps_rows_of(unsigned rows, unsigned parts, unsigned member) {
    const unsigned blocks = (rows + VPPS_ROW_BLOCK - 1) / VPPS_ROW_BLOCK;
    const bool narrow = (unsigned long long)blocks * parts < 1ull << 32; /* known when compiling, mostly */
    const unsigned before = narrow ? blocks * member / parts : (unsigned)((unsigned long long)blocks * member / parts);
    const unsigned after =
        narrow ? blocks * (member + 1) / parts : (unsigned)((unsigned long long)blocks * (member + 1) / parts);
    const unsigned first = before * VPPS_ROW_BLOCK, end = after * VPPS_ROW_BLOCK;
    vpps_rows r = {first < rows ? first : rows, end < rows ? end : rows};
    return r;
}

/* Sum and maximum over each group of `lanes` lanes, a power of two: every lane gets its group's. */
__device__ __forceinline__ float vpps_warp_sum(float x, unsigned lanes = 32) {
#pragma unroll
    for (unsigned other = lanes / 2; other > 0; other /= 2) x += __shfl_xor_sync(0xffffffffu, x, other);
    return x;
}

__device__ __forceinline__ float vpps_warp_max(float x, unsigned lanes = 32) {
#pragma unroll
    for (unsigned other = lanes / 2; other > 0; other /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, other));
    return x;
}

/* The first failure is kept. A VP that has failed, or learns of a failure, goes on without waiting, computes with whatever it finds, and
 * still signals. Writes before a signal are seen after the wait for it: so every VP that comes to the update sees the failure, and updates
 * nothing. */
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

/* Waits until the counter is at least `wanted`, or until a VP has failed. One thread polls. */
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
            unsigned have = 0, polls = 256; /* without a pause, since the signals are on their way */
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

/* The counter that the VP adds one to when it signals, and the thread that does. They are computed here, not after the CTA's next
 * barrier. */
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
