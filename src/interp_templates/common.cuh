/* common.cuh - helpers for all parts of a kernel. */

#ifndef VPPS_SIMT
/* Weights stay in registers only if everything is inlined into one function. */
#define VPPS_PART __device__ __forceinline__
#else
#define VPPS_PART static __noinline__ /* software SIMT (on a CPU): inlined code needs larger stacks */
#endif

#define VPPS_LANE (threadIdx.x % 32)
#define VPPS_WARP (threadIdx.x / 32)

/* Four floats that one instruction loads or stores. */
struct __align__(16) vpps_quad {
    float x, y, z, w;
};

/* Returns the T at an address, on a GPU a multiple of T's size. Software SIMT (the kernel's source, run on a CPU) stops at other addresses. */
template <class T> __device__ __forceinline__ T &vpps_at(const void *address) {
#ifdef VPPS_SIMT
    if ((unsigned long long)address % sizeof(T) != 0) __builtin_trap();
#endif
    return *(T *)address;
}

/* Loads four elements of a vector of LENGTH elements, with zeros after its end; x is the address of number `element`. QUADS: the vector
 * begins at a multiple of four words. WHOLE: the vector has all four elements. */
template <bool QUADS, bool WHOLE, unsigned LENGTH> VPPS_PART vpps_quad vpps_four(const float *x, unsigned element) {
    if (QUADS && (LENGTH % 4 == 0 || element != LENGTH / 4 * 4))
        return WHOLE || element < LENGTH ? vpps_at<const vpps_quad>(x) : vpps_quad{0.0f, 0.0f, 0.0f, 0.0f};
    return vpps_quad{WHOLE || element < LENGTH ? x[0] : 0.0f, WHOLE || element + 1 < LENGTH ? x[1] : 0.0f,
                     WHOLE || element + 2 < LENGTH ? x[2] : 0.0f, WHOLE || element + 3 < LENGTH ? x[3] : 0.0f};
}

struct __align__(8) vpps_pair {
    float x, y;
};

__shared__ vpps_task_header vpps_header;
__shared__ __align__(16) vpps_failure vpps_before; /* how the launch before this one ended */
__shared__ float vpps_parts[32];                   /* scratch memory for sums over the CTA */
/* For each parameter: whether this CTA has stored a gradient of it, to which further terms must be added. */
__shared__ unsigned vpps_touched[VPPS_PARAMS + 1];

/* Descriptions of a batch's blocks (vertices of one cell) are copied to shared memory if at most this many. */
enum { VPPS_SHARED_BLOCKS = 64 };
__shared__ vpps_block vpps_blocks[VPPS_SHARED_BLOCKS];

/* Words `at` and following of the script (the batch's program), each plus `shift`. */
struct vpps_array {
    const unsigned *script;
    unsigned at, shift;
    __device__ __forceinline__ unsigned operator[](unsigned i) const { return script[at + i] + shift; }
};

/* The fields of a task that a thread keeps in registers while the task runs. */
struct vpps_kernel_task {
    unsigned kind, operands[3];
    unsigned wait, signals, signal;
    const vpps_task *at; /* where the task is stored in the script (the batch's program) */
};

__device__ __forceinline__ vpps_kernel_task vpps_load_task(const vpps_task *t) {
    const vpps_quad a = ((const vpps_quad *)t)[0], b = ((const vpps_quad *)t)[1];
    return vpps_kernel_task{__float_as_uint(a.x), {__float_as_uint(a.y), __float_as_uint(a.z), __float_as_uint(a.w)},
                            __float_as_uint(b.x), __float_as_uint(b.y),
                            __float_as_uint(b.z), t};
}

/* Waits for the CTAs whose results the task reads. Callers compute addresses before, so that loads can begin after. */
__device__ __forceinline__ void vpps_await(const vpps_arguments &a, const vpps_kernel_task &t) {
    if (t.wait != VPPS_NO_BARRIER) vpps_wait(a.counters, a.failure, a.end, a.watchdog_ns, t.at, t.wait, t.signals);
}

/* Ends the kernel at a task of an unknown kind. */
__device__ __forceinline__ void vpps_refuse(const vpps_arguments &a, const vpps_kernel_task &t) {
    if (threadIdx.x == 0) vpps_report(a.failure, a.end, VPPS_FAILURE_OPCODE, t.at->address, t.operands[0], 0, 0);
}

__device__ __forceinline__ unsigned vpps_least(unsigned a, unsigned b) { return a < b ? a : b; }

template <class BODY>
__device__ __forceinline__ void vpps_by_turns(unsigned first, unsigned n, unsigned step, const BODY &body) {
#pragma unroll 1
    for (unsigned i = first; i < n; i += step) body(i);
}

/* A long sum as two floats: the second has the rounding errors of the first (Knuth's two-sum), since doubles are slow on GPUs. */
struct vpps_long_sum {
    float high, low;
    __device__ __forceinline__ void add(float x) {
        const float sum = high + x, other = sum - high;
        low += (high - (sum - other)) + (x - other);
        high = sum;
    }
    /* Returns the sum. If the sum is not finite, the first float has it, and the second float is NaN. */
    __device__ __forceinline__ float value() const { return low == low ? high + low : high; }
};

/* Returns sum + term(k) + term(k + step) + ... for indices < n. If there are more than VPPS_RUN terms, each VPPS_RUN of them are summed in
 * a float, and these floats are added up in a vpps_long_sum (two floats). UNROLL is the loop's unroll factor. AT_ONCE: if
 * there are at most VPPS_RUN terms, UNROLL terms, also the last, are loaded before the first of them is added; term(n - 1) may be called twice. */
enum { VPPS_RUN = 256 };
template <unsigned UNROLL, bool AT_ONCE = false, class TERM>
__device__ __forceinline__ float vpps_add_up(float sum, unsigned k, unsigned n, unsigned step, const TERM &term) {
    if (k >= n || n - k <= VPPS_RUN * step) {
#pragma unroll 1
        for (; AT_ONCE && k < n; k += UNROLL * step) {
            float terms[UNROLL];
#pragma unroll
            for (unsigned i = 0; i < UNROLL; i++) terms[i] = term(vpps_least(k + i * step, n - 1));
#pragma unroll
            for (unsigned i = 0; i < UNROLL; i++) sum = k + i * step < n ? sum + terms[i] : sum;
        }
        if (AT_ONCE) return sum;
#pragma unroll UNROLL
        for (; k < n; k += step) sum += term(k);
        return sum;
    }
    vpps_long_sum total = {0.0f, 0.0f};
#pragma unroll 1
    while (k < n) {
        const unsigned end = n - k > VPPS_RUN * step ? k + VPPS_RUN * step : n;
#pragma unroll UNROLL
        for (; k < end; k += step) sum += term(k);
        total.add(sum);
        sum = 0.0f;
    }
    return total.value();
}

/* Divides n items into `parts` equal shares, and returns the range of items of share number `member`. */
__device__ __forceinline__ vpps_rows vpps_share_of(unsigned n, unsigned parts, unsigned member) {
    return vpps_rows{vpps_before_share(n, parts, member), vpps_before_share(n, parts, member + 1)};
}

/* Returns to every thread the sum over the CTA (with vpps_warp_max the maximum), in a fixed order. `none` stands in for warps that
 * the CTA lacks: 0 for a sum, any thread's number for a maximum. All threads must call it; ends with a barrier. */
template <float (*REDUCE)(float, unsigned) = vpps_warp_sum>
__device__ __forceinline__ float vpps_over_cta(float x, float none = 0.0f) {
    x = REDUCE(x, 32);
    if (VPPS_LANE == 0) vpps_parts[VPPS_WARP] = x;
    __syncthreads();
    x = REDUCE(VPPS_LANE < VPPS_WARPS ? vpps_parts[VPPS_LANE] : none, 32);
    __syncthreads();
    return x;
}

/* Returns the sum of WARPS numbers, one from each warp, in the order of the warps. The numbers are adjacent, aligned to four words. */
template <unsigned WARPS> __device__ __forceinline__ float vpps_sum_of_warps(const float *part) {
    float sum = 0.0f;
#pragma unroll
    for (unsigned k = 0; k + 4 <= WARPS; k += 4) {
        const vpps_quad q = vpps_at<const vpps_quad>(part + k);
        sum += (q.x + q.y) + (q.z + q.w);
    }
#pragma unroll
    for (unsigned k = WARPS / 4 * 4; k < WARPS; k++) sum += part[k];
    return sum;
}

/* Sums COUNT values of each lane over LANES adjacent lanes, a power of two; COUNT is a multiple of LANES or a smaller power of two.
 * Afterwards lane l of the LANES lanes has the sums of COUNT / LANES values (at least one), from value l * COUNT / LANES on. Each step
 * halves the values that a lane keeps. */
template <int COUNT, int LANES, int N> __device__ __forceinline__ void vpps_fold(float (&q)[N]) {
    if constexpr (LANES > 1) {
        constexpr int HALF = COUNT / 2, MASK = LANES / 2;
        if constexpr (HALF > 0) {
            const bool up = VPPS_LANE & MASK;
#pragma unroll
            for (int k = 0; k < HALF; k++) {
                const float give = up ? q[k] : q[k + HALF], keep = up ? q[k + HALF] : q[k];
                q[k] = keep + __shfl_xor_sync(0xffffffffu, give, MASK);
            }
        } else {
            q[0] += __shfl_xor_sync(0xffffffffu, q[0], MASK);
        }
        vpps_fold<(HALF > 0 ? HALF : 1), MASK>(q);
    }
}

/* Returns which of n vertices, counted from `first`, has list member number `at`. Members are numbered in order through all vertices' lists. */
__device__ __forceinline__ unsigned vpps_vertex_of(const vpps_array &starts, unsigned first, unsigned n, unsigned at) {
    unsigned vertex = 0;
#pragma unroll 7
    for (unsigned k = 1; k < n; k++) vertex += starts[first + k] <= at;
    return vertex;
}

/* Asynchronous copies to shared memory: cp.async (PTX ISA, "Data Movement and Conversion Instructions") from sm_80 on. */
#if !defined(VPPS_SIMT) && __CUDA_ARCH__ >= 800
/* Copies one word asynchronously; stores a zero instead if `there` is false. */
__device__ __forceinline__ void vpps_copy_word(float *to, const float *from, bool there) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"((unsigned)__cvta_generic_to_shared(to)),
                 "l"(from), "r"(there ? 4 : 0)
                 : "memory");
}
__device__ __forceinline__ void vpps_copy_quad(float *to, const float *from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from)
                 : "memory");
}
/* Copies four words asynchronously; stores zeros instead if `there` is false. */
__device__ __forceinline__ void vpps_copy_quad(float *to, const float *from, bool there) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"((unsigned)__cvta_generic_to_shared(to)),
                 "l"(from), "r"(there ? 16 : 0)
                 : "memory");
}
__device__ __forceinline__ void vpps_wait_for_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }
__device__ __forceinline__ void vpps_close_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/* Waits for all groups of copies except the last one. */
__device__ __forceinline__ void vpps_wait_for_copies_before() { asm volatile("cp.async.wait_group 1;" ::: "memory"); }
#else
__device__ __forceinline__ void vpps_copy_word(float *to, const float *from, bool there) { *to = there ? *from : 0.0f; }
__device__ __forceinline__ void vpps_copy_quad(float *to, const float *from, bool there = true) {
    vpps_at<vpps_quad>(to) = there ? vpps_at<const vpps_quad>(from) : vpps_quad{0.0f, 0.0f, 0.0f, 0.0f};
}
__device__ __forceinline__ void vpps_wait_for_copies() {}
__device__ __forceinline__ void vpps_close_copies() {}
__device__ __forceinline__ void vpps_wait_for_copies_before() {}
#endif
