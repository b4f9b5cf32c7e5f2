/* ops_whole.cuh - the instructions of whole.cuh, by opcode. */

__device__ __forceinline__ bool vpps_needs_top(unsigned opcode) {
    return opcode == VPPS_I_CROSS_ENTROPY || opcode == VPPS_I_SOFTMAX || opcode == VPPS_I_LOG_SOFTMAX;
}
__device__ __forceinline__ bool vpps_needs_sum(unsigned opcode) { return opcode != VPPS_I_CROSS_ENTROPY_B; }

/* What all elements have in common. */
struct vpps_common {
    unsigned opcode, p0, p1, p2;
    unsigned label; /* operand u */
    float picked;   /* the first tensor's element there */
};

#define VPPS_FLOAT(k) __uint_as_float(v.p##k)
#define VPPS_PICK(k) (vpps_pick{i == v.label, v.picked})
#define VPPS_DISPATCH(NAME, CASES)                                                                                     \
    __device__ __forceinline__ float vpps_##NAME##_of(const vpps_common &v, vpps_totals totals, unsigned i, float x,   \
                                                      float y) {                                                       \
        switch (v.opcode) {                                                                                            \
            CASES                                                                                                      \
        default: return 0.0f;                                                                                          \
        }                                                                                                              \
    }
#define VPPS_TERM(ID, ARGUMENTS)                                                                                       \
    case VPPS_I_##ID: return vpps_term_##ID ARGUMENTS;
#define VPPS_FINISH(ID, ARGUMENTS)                                                                                     \
    case VPPS_I_##ID: return vpps_finish_##ID ARGUMENTS;
#define VPPS_VALUE(ID, ARGUMENTS)                                                                                      \
    case VPPS_I_##ID: return vpps_value_##ID ARGUMENTS;
VPPS_DISPATCH(term, VPPS_REDUCE_CASES(VPPS_TERM) VPPS_ROW_CASES(VPPS_TERM))
VPPS_DISPATCH(finish, VPPS_REDUCE_CASES(VPPS_FINISH) VPPS_ROW_CASES(VPPS_FINISH))
VPPS_DISPATCH(value, VPPS_ROW_CASES(VPPS_VALUE))
#undef VPPS_VALUE
#undef VPPS_FINISH
#undef VPPS_TERM
#undef VPPS_DISPATCH
#undef VPPS_PICK
#undef VPPS_FLOAT

/* Vectors of at most so many elements are one warp's work, without barriers; the other warps go on to the caller's. An
 * estimate: a lane's second load, after its first, costs about what a CTA-wide sum costs more than a warp's. */
enum { VPPS_WARP_ELEMENTS = 64 };

/* One row for the maxima and one for the sums, so that neither waits for the other's readers. */
__shared__ float vpps_scratch[2][32];

/* Sum (or maximum) over the warp, or, if wide, the CTA; every thread that takes part gets it, in an order that depends
 * on nothing but the number of threads. */
template <bool MAXIMUM> __device__ __forceinline__ float vpps_total(float x, bool wide) {
    constexpr unsigned LANES = VPPS_WARPS > 16 ? 32 : VPPS_WARPS > 8 ? 16 : VPPS_WARPS > 4 ? 8 : 4;
    x = MAXIMUM ? vpps_warp_max(x) : vpps_warp_sum(x);
    if (wide) {
        if (vpps_thread() % 32 == 0) vpps_scratch[MAXIMUM][vpps_thread() / 32] = x;
        __syncthreads();
        const unsigned warp = vpps_thread() % LANES;
        x = warp < VPPS_WARPS ? vpps_scratch[MAXIMUM][warp] : MAXIMUM ? __uint_as_float(0xff800000u) : 0.0f;
        x = MAXIMUM ? vpps_warp_max(x, LANES) : vpps_warp_sum(x, LANES);
    }
    return x;
}

__device__ __forceinline__ void vpps_whole_vector(const unsigned *at, unsigned traits, float *pool) {
    const unsigned word = at[0], length = word >> VPPS_LENGTH_SHIFT;
    const bool accumulate = word & VPPS_WORD_ACC, wide = length > VPPS_WARP_ELEMENTS;
    if (!wide && vpps_thread() >= 32) return;
    const unsigned step = wide ? VPPS_THREADS : 32, *operands = at + 1;
    const unsigned tensors = VPPS_TRAIT_TENSORS(traits), params = VPPS_TRAIT_PARAMS(traits);
    const unsigned picked = VPPS_TRAIT_PICKED(traits), destination = operands[0], a = operands[1];
    const unsigned b = tensors > 1 ? operands[2] : a;
    vpps_common v = {word & 0xff, 0, 0, 0, 0, 0.0f};
    if (params > 0) v.p0 = vpps_param(operands, traits, 0, pool);
    if (params > 1) v.p1 = vpps_param(operands, traits, 1, pool);
    if (params > 2) v.p2 = vpps_param(operands, traits, 2, pool);
    if (picked != VPPS_NOT_PICKED) {
        v.label = picked == 0 ? v.p0 : picked == 1 ? v.p1 : v.p2;
        v.picked = pool[a + v.label];
    }
    vpps_totals t = {0.0f, 0.0f};
    if (vpps_needs_top(v.opcode)) {
        t.top = __uint_as_float(0xff800000u); /* -infinity */
#pragma unroll 1
        for (unsigned i = vpps_thread(); i < length; i += step) t.top = fmaxf(t.top, pool[a + i]);
        t.top = vpps_total<true>(t.top, wide);
    }
    if (vpps_needs_sum(v.opcode)) {
#pragma unroll 1
        for (unsigned i = vpps_thread(); i < length; i += step)
            t.sum += vpps_term_of(v, t, i, pool[a + i], pool[b + i]);
        t.sum = vpps_total<false>(t.sum, wide);
        t.sum = vpps_finish_of(v, t, 0, 0.0f, 0.0f);
    } else if (wide) {
        __syncthreads(); /* all have read x[label], which may be overwritten now */
    } else {
        __syncwarp();
    }
    if (VPPS_TRAIT_FORM(traits) == VPPS_FORM_REDUCE) {
        if (vpps_thread() == 0) pool[destination] = accumulate ? pool[destination] + t.sum : t.sum;
        return;
    }
#pragma unroll 1
    for (unsigned i = vpps_thread(); i < length; i += step) {
        const float value = vpps_value_of(v, t, i, pool[a + i], pool[b + i]);
        pool[destination + i] = accumulate ? pool[destination + i] + value : value;
    }
}
