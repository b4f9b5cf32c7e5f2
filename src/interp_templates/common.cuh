/* common.cuh - what all parts of the kernel use: memory order, who owns what, failing. */

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
#define VPPS_DYNAMIC_SHARED(name) extern __shared__ float name[]

/* The thread's and the CTA's number, read anew wherever they are asked for: what is derived from them would otherwise be
 * kept in registers through the whole interpreter, beside the weights. */
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

#define VPPS_NONE 0xffffffffu
#define VPPS_WARPS (VPPS_THREADS / 32)

struct vpps_rows {
    unsigned first, end;
};

/* Rows that this VP owns of something with so many; plan/plan.h, vpps_rows_of. */
__device__ __forceinline__ vpps_rows vpps_rows_of(unsigned rows) {
    const unsigned blocks = (rows + VPPS_ROW_BLOCK - 1) / VPPS_ROW_BLOCK, vp = vpps_vp();
    const unsigned first = (unsigned)((unsigned long long)blocks * vp / VPPS_VPS) * VPPS_ROW_BLOCK;
    const unsigned end = (unsigned)((unsigned long long)blocks * (vp + 1) / VPPS_VPS) * VPPS_ROW_BLOCK;
    vpps_rows r = {first < rows ? first : rows, end < rows ? end : rows};
    return r;
}

__device__ __forceinline__ const vpps_param_entry *vpps_param_of(const vpps_arguments &a, unsigned param) {
    return (const vpps_param_entry *)((const unsigned *)a.tables + VPPS_TABLE_PARAMS) + param;
}
__device__ __forceinline__ const vpps_matrix_entry *vpps_matrix_of(const vpps_arguments &a, unsigned matrix) {
    return (const vpps_matrix_entry *)((const unsigned *)a.tables + VPPS_TABLE_MATRICES) + matrix;
}

/* The first failure is kept; every VP sees that there is one. */
__device__ __forceinline__ void vpps_report(const vpps_arguments &a, unsigned kind, unsigned address, unsigned value,
                                            unsigned have, unsigned wanted) {
    vpps_failure *f = (vpps_failure *)a.failure;
    if (atomicCAS(&f->failed, 0u, kind) != 0u) return;
    f->vp = vpps_vp();
    f->address = address;
    f->value = value;
    f->have = have;
    f->wanted = wanted;
}
