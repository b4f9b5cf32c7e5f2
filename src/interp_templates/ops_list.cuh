/* ops_list.cuh - instructions over a list of tensors, and products of small matrices: a thread an element of what comes
 * out. */

/* What is made of a list: factor * sum of weights[m] * member m, or the greatest (sign 1) or least (sign -1) member and
 * its number, which goes to the indices. */
struct vpps_list_rule {
    float factor, sign;
    bool weighted;
    unsigned offset; /* of weights, or of indices */
};

__device__ __forceinline__ vpps_list_rule vpps_list_SUM(float f) { return {f, 0.0f, false, 0}; }
__device__ __forceinline__ vpps_list_rule vpps_list_WEIGHTED_SUM(unsigned weights) {
    return {1.0f, 0.0f, true, weights};
}
__device__ __forceinline__ vpps_list_rule vpps_list_MAX_OF(unsigned indices) { return {1.0f, 1.0f, false, indices}; }
__device__ __forceinline__ vpps_list_rule vpps_list_MIN_OF(unsigned indices) { return {1.0f, -1.0f, false, indices}; }

__device__ __forceinline__ vpps_list_rule vpps_list_rule_of(unsigned opcode, unsigned p0) {
#define VPPS_UINT(k) p##k
#define VPPS_FLOAT(k) __uint_as_float(p##k)
#define VPPS_CASE(ID, ARGUMENTS)                                                                                       \
    case VPPS_I_##ID: return vpps_list_##ID ARGUMENTS;
    switch (opcode) {
        VPPS_LIST_CASES(VPPS_CASE)
    default: return {};
    }
#undef VPPS_CASE
#undef VPPS_FLOAT
#undef VPPS_UINT
}

/* Members are loaded two at a time, those beyond the last as nothing, so that a short list waits for memory once. */
enum { VPPS_AT_A_TIME = 2 };

/* Sum over members first, first + step ... of element i. */
__device__ __forceinline__ float vpps_list_sum(const unsigned *list, unsigned members, unsigned i, unsigned first,
                                               unsigned step, const vpps_list_rule &rule, const float *pool) {
    float sum = 0.0f;
#pragma unroll 1
    for (unsigned at = first; at < members; at += VPPS_AT_A_TIME * step) {
        float x[VPPS_AT_A_TIME], weight[VPPS_AT_A_TIME];
        const unsigned weighted = vpps_opaque(rule.weighted);
#pragma unroll
        for (unsigned j = 0; j < VPPS_AT_A_TIME; j++) {
            const unsigned m = at + j * step;
            x[j] = m < members ? pool[list[m] + i] : 0.0f;
            weight[j] = weighted && m < members ? pool[rule.offset + m] : 1.0f;
        }
#pragma unroll
        for (unsigned j = 0; j < VPPS_AT_A_TIME; j++) sum += weight[j] * x[j];
    }
    return sum;
}

/* The extreme of element i; *index is the first member that has it. A NaN is the extreme. */
__device__ __forceinline__ float vpps_list_extreme(const unsigned *list, unsigned members, unsigned i, float sign,
                                                   const float *pool, unsigned *index) {
    float best = pool[list[0] + i];
    unsigned best_at = 0;
#pragma unroll 1
    for (unsigned at = 1; at < members; at += VPPS_AT_A_TIME) {
        float x[VPPS_AT_A_TIME];
#pragma unroll
        for (unsigned j = 0; j < VPPS_AT_A_TIME; j++) x[j] = at + j < members ? pool[list[at + j] + i] : best;
#pragma unroll
        for (unsigned j = 0; j < VPPS_AT_A_TIME; j++) {
            const bool better = sign * x[j] > sign * best || (x[j] != x[j] && best == best);
            best = better ? x[j] : best;
            best_at = better ? at + j : best_at;
        }
    }
    *index = best_at;
    return best;
}

/* Long lists of short vectors (a batch's losses): a warp an element, members over its lanes. */
__device__ __forceinline__ void vpps_sum_by_warps(const unsigned *list, unsigned members, unsigned length,
                                                  unsigned destination, bool accumulate, const vpps_list_rule &rule,
                                                  float *pool) {
#pragma unroll 1
    for (unsigned i = vpps_thread() / 32; i < length; i += VPPS_THREADS / 32) {
        const float sum = vpps_warp_sum(vpps_list_sum(list, members, i, vpps_thread() % 32, 32, rule, pool));
        const float value = rule.factor * sum;
        if (vpps_thread() % 32 == 0) pool[destination + i] = accumulate ? pool[destination + i] + value : value;
    }
}

enum { VPPS_LONG_LIST = 16, VPPS_SHORT_VECTOR = VPPS_THREADS / 16 };

__device__ __forceinline__ void vpps_over_list(const unsigned *at, unsigned traits, float *pool) {
    const unsigned word = at[0], length = word >> VPPS_LENGTH_SHIFT;
    const bool split = word & VPPS_WORD_SPLIT;
    const unsigned *operands = at + (split ? 2 : 1);
    const vpps_list_rule rule = vpps_list_rule_of(word & 0xff, vpps_param(operands, traits, 0, pool));
    const unsigned *list = operands + 1 + VPPS_TRAIT_PARAMS(traits);
    const unsigned members = *list++;
    if (rule.sign == 0.0f && !split && members >= VPPS_LONG_LIST && length <= VPPS_SHORT_VECTOR) {
        vpps_sum_by_warps(list, members, length, operands[0], word & VPPS_WORD_ACC, rule, pool);
        return;
    }
    const vpps_span s = vpps_span_of(at);
#pragma unroll 1
    for (unsigned t = vpps_thread(); t < s.places; t += VPPS_THREADS) {
        unsigned i, index;
        if (!vpps_element_at(s, t, length, &i)) continue;
        float value;
        if (rule.sign == 0.0f) {
            value = rule.factor * vpps_list_sum(list, members, i, 0, 1, rule, pool);
        } else {
            value = vpps_list_extreme(list, members, i, rule.sign, pool, &index);
            pool[rule.offset + i] = __uint_as_float(index);
        }
        pool[operands[0] + i] = word & VPPS_WORD_ACC ? pool[operands[0] + i] + value : value;
    }
}

/* Where a matrix's elements lie: (i, j) at i * row + j * column. */
struct vpps_strides {
    unsigned row, column;
};

/* The factors of a product, as r x k and k x c matrices. */
struct vpps_factors {
    vpps_strides a, b;
};

__device__ __forceinline__ vpps_factors vpps_factors_MATMUL(unsigned r, unsigned k, unsigned c) {
    return {{1, r}, {1, k}};
}
__device__ __forceinline__ vpps_factors vpps_factors_MATMUL_NT(unsigned r, unsigned k, unsigned c) {
    return {{1, r}, {c, 1}};
}
__device__ __forceinline__ vpps_factors vpps_factors_MATMUL_TN(unsigned r, unsigned k, unsigned c) {
    return {{k, 1}, {1, k}};
}

__device__ __forceinline__ vpps_factors vpps_factors_of(unsigned opcode, unsigned r, unsigned k, unsigned c) {
#define VPPS_CASE(ID, ARGUMENTS)                                                                                       \
    case VPPS_I_##ID: return vpps_factors_##ID(r, k, c);
    switch (opcode) {
        VPPS_MATMUL_CASES(VPPS_CASE)
    default: return {};
    }
#undef VPPS_CASE
}

__device__ __forceinline__ void vpps_matmul(const unsigned *at, float *pool) {
    const unsigned word = at[0], length = word >> VPPS_LENGTH_SHIFT, r = at[4], k = at[5];
    const vpps_factors f = vpps_factors_of(word & 0xff, r, k, at[6]);
#pragma unroll 1
    for (unsigned i = vpps_thread(); i < length; i += VPPS_THREADS) {
        const unsigned column = i / r, row = i - column * r;
        unsigned a = at[2] + row * f.a.row, b = at[3] + column * f.b.column;
        float sum = 0.0f;
#pragma unroll 1
        for (unsigned first = 0; first < k; first += VPPS_AT_A_TIME) {
            float x[VPPS_AT_A_TIME], y[VPPS_AT_A_TIME];
#pragma unroll
            for (unsigned j = 0; j < VPPS_AT_A_TIME; j++) {
                x[j] = first + j < k ? pool[a] : 0.0f;
                y[j] = first + j < k ? pool[b] : 0.0f;
                a += f.a.column;
                b += f.b.row;
            }
#pragma unroll
            for (unsigned j = 0; j < VPPS_AT_A_TIME; j++) sum += x[j] * y[j];
        }
        const unsigned destination = at[1] + i;
        pool[destination] = word & VPPS_WORD_ACC ? pool[destination] + sum : sum;
    }
}
