/* outer.cuh - gradients of matrices: which tasks are one sum; in fp32, factors to shared memory, and sums of their products. */

/* How many tasks from this one on are of one kind, without a barrier between them. */
__device__ __forceinline__ unsigned vpps_tasks_of_sum(const vpps_task *t, unsigned kind) {
    unsigned n = 1;
#pragma unroll 1
    while ((t[n].kind == kind) & (t[n].wait == VPPS_NO_BARRIER) & (t[n - 1].signal == VPPS_NO_BARRIER)) n++;
    return n;
}

/* Copies that go on while the thread does. cp.async (PTX ISA, "Data Movement and Conversion Instructions") from sm_80 on. */
#if !defined(VPPS_SIMT) && __CUDA_ARCH__ >= 800
/* A zero, where there is nothing. */
__device__ __forceinline__ void vpps_copy_word(float *to, const float *from, bool there) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"((unsigned)__cvta_generic_to_shared(to)),
                 "l"(from), "r"(there ? 4 : 0)
                 : "memory");
}
__device__ __forceinline__ void vpps_copy_quad(float *to, const float *from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from)
                 : "memory");
}
__device__ __forceinline__ void vpps_wait_for_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }
/* What was begun up to here is one group; all groups but the last are there. */
__device__ __forceinline__ void vpps_close_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
__device__ __forceinline__ void vpps_wait_for_copies_before() { asm volatile("cp.async.wait_group 1;" ::: "memory"); }
#else
__device__ __forceinline__ void vpps_copy_word(float *to, const float *from, bool there) { *to = there ? *from : 0.0f; }
__device__ __forceinline__ void vpps_copy_quad(float *to, const float *from) {
    *(vpps_quad *)to = *(const vpps_quad *)from;
}
__device__ __forceinline__ void vpps_wait_for_copies() {}
__device__ __forceinline__ void vpps_close_copies() {}
__device__ __forceinline__ void vpps_wait_for_copies_before() {}
#endif

/* Four elements from `column` on of so many. QUADS: they lie at quads, and so does the end. */
template <bool QUADS>
__device__ __forceinline__ void vpps_copy_columns(float *to, const float *from, unsigned column, unsigned columns) {
    if (QUADS) {
        if (column < columns) vpps_copy_quad(to + column, from + column);
    } else {
#pragma unroll
        for (unsigned i = column; i < column + 4; i++)
            if (i < columns) vpps_copy_word(to + i, from + i, true);
    }
}

/* Adds products of slots and the thread's four columns, of n vectors of ROW words each, up to the next multiple of AT_ONCE. */
template <unsigned SLOTS, unsigned ROW, unsigned AT_ONCE>
VPPS_PART void vpps_add_outers(const float *vectors, unsigned x_at, unsigned d_at, unsigned n, float (&q)[4 * SLOTS]) {
    const float *const x = vectors + x_at, *const d = vectors + d_at;
#pragma unroll 1
    for (unsigned first = 0; first < n; first += AT_ONCE) {
#pragma unroll
        for (unsigned k = 0; k < AT_ONCE; k++) {
            const vpps_quad columns = *(const vpps_quad *)(x + (first + k) * ROW);
            float slots[(SLOTS + 3) / 4 * 4];
#pragma unroll
            for (unsigned s = 0; s < SLOTS; s += 4)
                *(vpps_quad *)(slots + s) = *(const vpps_quad *)(d + (first + k) * ROW + s);
#pragma unroll
            for (unsigned s = 0; s < SLOTS; s++) {
                q[4 * s] += slots[s] * columns.x;
                q[4 * s + 1] += slots[s] * columns.y;
                q[4 * s + 2] += slots[s] * columns.z;
                q[4 * s + 3] += slots[s] * columns.w;
            }
        }
    }
}

/* Stores the thread's columns of its unit's slots, of so many, or adds them to what is there. Lane s of the LANES that have a unit says
 * where the columns of slot s begin, and if it is added to. All threads. */
template <unsigned SLOTS, unsigned LANES, bool QUADS>
VPPS_PART void vpps_store_slots(float *gradients, unsigned to_row, bool add, unsigned column, unsigned columns,
                                float (&q)[4 * SLOTS]) {
    const unsigned first = VPPS_LANE / LANES * LANES, adds = __ballot_sync(0xffffffffu, add) >> first;
    unsigned at[SLOTS];
#pragma unroll
    for (unsigned s = 0; s < SLOTS; s++) at[s] = __shfl_sync(0xffffffffu, to_row, first + s);
#pragma unroll
    for (unsigned s = 0; s < SLOTS; s++) { /* what there is already, all of it at once */
        if (at[s] == VPPS_NONE || !(adds >> s & 1)) continue;
        const float *const row = gradients + at[s] + column;
#pragma unroll
        for (unsigned i = 0; i < 4; i++)
            if (column + i < columns) q[4 * s + i] += row[i];
    }
#pragma unroll
    for (unsigned s = 0; s < SLOTS; s++) {
        if (at[s] == VPPS_NONE || column >= columns) continue;
        float *const row = gradients + at[s] + column;
        if (QUADS) {
            *(vpps_quad *)row = vpps_quad{q[4 * s], q[4 * s + 1], q[4 * s + 2], q[4 * s + 3]};
        } else {
#pragma unroll
            for (unsigned i = 0; i < 4; i++)
                if (column + i < columns) row[i] = q[4 * s + i];
        }
    }
}
