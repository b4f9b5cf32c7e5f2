/* parameters.cuh - what is done for parameters: gradients of table entries, the norm, the update, the loss. Each VP works for
 * the rows and entries that it owns among all VPs. */

/* Of every parameter, in the model's order. Offsets are into the pool, a matrix's into the buffers of matrices. */
struct vpps_param_entry {
    unsigned kind; /* 0: matrix, 1: vector, 2: lookup table */
    unsigned rows, cols, values, gradient, states[2];
};
#define VPPS_IS_MATRIX 0u
#define VPPS_IS_VECTOR 1u

__constant__ const vpps_param_entry vpps_params[VPPS_PARAMS + 1] = {VPPS_PARAM_ENTRIES};

/* Where a parameter, its gradient and states begin; NULL: states that there are not. */
struct vpps_parameter {
    float *values, *gradient, *states[2];
};

__device__ __forceinline__ float *vpps_state_at(unsigned long long buffer, unsigned offset) {
    return offset == VPPS_NONE ? (float *)0 : (float *)buffer + offset;
}

__device__ __forceinline__ vpps_parameter vpps_parameter_of(const vpps_arguments &a,
                                                            const vpps_param_entry &p) {
    const bool matrix = p.kind == VPPS_IS_MATRIX;
    return vpps_parameter{(float *)(matrix ? a.matrices : a.pool) + p.values,
                          (float *)(matrix ? a.gradients : a.pool) + p.gradient,
                          {vpps_state_at(matrix ? a.states[0] : a.pool, p.states[0]),
                           vpps_state_at(matrix ? a.states[1] : a.pool, p.states[1])}};
}

/* The VP's elements of a matrix or vector. */
__device__ __forceinline__ vpps_rows vpps_own_elements(const vpps_param_entry &p) {
    const vpps_rows own = vpps_rows_of(p.rows, VPPS_VPS, blockIdx.x);
    return vpps_rows{own.first * p.cols, own.end * p.cols};
}

/* ---------------------------------------------------------------- gradients of entries */

__device__ __forceinline__ void vpps_entries(const vpps_arguments &a, unsigned number) {
    const unsigned *script = (const unsigned *)a.script;
    const vpps_table t = ((const vpps_table *)(script + vpps_header.tables))[number];
    const unsigned words = vpps_params[t.param].rows * vpps_params[t.param].cols;
    const vpps_rows own = vpps_share_of(t.n, VPPS_VPS, blockIdx.x);
    const unsigned *starts = script + t.rows + t.n, *lists = starts + t.n + 1;
    float *pool = (float *)a.pool;
#pragma unroll 1
    for (unsigned i = threadIdx.x; i < (own.end - own.first) * words; i += VPPS_THREADS) {
        const unsigned entry = own.first + i / words, e = i % words, end = starts[entry + 1];
        unsigned k = starts[entry];
        float sum = pool[lists[k] + e];
#pragma unroll 1
        for (k++; k < end; k++) sum += pool[lists[k] + e];
        pool[t.gradients + entry * words + e] = sum;
    }
}

/* ---------------------------------------------------------------- loss */

/* The first VP's. */
__device__ __forceinline__ void vpps_add_loss(const vpps_arguments &a, unsigned address, unsigned n) {
    const unsigned *pairs = (const unsigned *)a.script + address;
    float sum = 0.0f;
#pragma unroll 1
    for (unsigned i = threadIdx.x; i < n; i += VPPS_THREADS)
        sum += __uint_as_float(pairs[2 * i + 1]) * ((const float *)a.pool)[pairs[2 * i]];
    sum = vpps_cta_sum(sum);
    if (threadIdx.x == 0) ((vpps_failure *)a.failure)->loss += sum;
}

/* ---------------------------------------------------------------- norm */

__device__ __forceinline__ void vpps_publish_norm(const vpps_arguments &a) {
    float sum = 0.0f;
#pragma unroll 1
    for (unsigned p = 0; p < VPPS_PARAMS; p++) {
        if (!vpps_touched[p]) continue;
        const vpps_rows own = vpps_own_elements(vpps_params[p]);
        const float *g = vpps_parameter_of(a, vpps_params[p]).gradient;
#pragma unroll 4
        for (unsigned i = own.first + threadIdx.x; i < own.end; i += VPPS_THREADS) sum += g[i] * g[i];
    }
#pragma unroll 1
    for (unsigned i = 0; i < vpps_header.n_tables; i++) {
        const vpps_table t = ((const vpps_table *)((const unsigned *)a.script + vpps_header.tables))[i];
        const unsigned words = vpps_params[t.param].rows * vpps_params[t.param].cols;
        const vpps_rows own = vpps_share_of(t.n, VPPS_VPS, blockIdx.x);
        const float *g = (const float *)a.pool + t.gradients;
#pragma unroll 1
        for (unsigned k = own.first * words + threadIdx.x; k < own.end * words; k += VPPS_THREADS) sum += g[k] * g[k];
    }
    sum = vpps_cta_sum(sum);
    if (threadIdx.x == 0) ((float *)a.pool)[a.norms + blockIdx.x] = sum;
}

/* ---------------------------------------------------------------- update */

/* What gradients are multiplied with, or a negative number: this batch must not update. All VPs come to the same. */
__device__ __forceinline__ float vpps_scale(const vpps_arguments &a) {
    vpps_failure *out = (vpps_failure *)a.failure;
    if (!vpps_header.guard && !(vpps_header.clip > 0.0f)) return 1.0f;
    float sum = 0.0f;
#pragma unroll 1
    for (unsigned v = threadIdx.x; v < VPPS_VPS; v += VPPS_THREADS) sum += ((const float *)a.pool)[a.norms + v];
    const float norm = sqrtf(vpps_cta_sum(sum));
    if (threadIdx.x == 0 && blockIdx.x == 0) out->norm = norm;
    if (vpps_header.guard && (!isfinite(out->loss) || !isfinite(norm))) return -1.0f;
    return vpps_header.clip > 0.0f && norm > vpps_header.clip ? vpps_header.clip / norm : 1.0f;
}

__device__ __forceinline__ void vpps_update_elements(const vpps_parameter &p, unsigned values, unsigned gradient,
                                                     unsigned n, float scale) {
#pragma unroll 2
    for (unsigned i = threadIdx.x; i < n; i += VPPS_THREADS) {
        float *w = p.values + values + i, *s0 = p.states[0], *s1 = p.states[1];
        VPPS_STEP(&vpps_header, scale * p.gradient[gradient + i], w, s0 ? s0 + values + i : s0,
                  s1 ? s1 + values + i : s1);
    }
}

__device__ __forceinline__ void vpps_update(const vpps_arguments &a) {
    const float scale = vpps_scale(a);
    if (scale < 0.0f) return;
#pragma unroll 1
    for (unsigned p = 0; p < VPPS_PARAMS; p++) {
        if (!vpps_touched[p]) continue;
        const vpps_rows own = vpps_own_elements(vpps_params[p]);
        vpps_update_elements(vpps_parameter_of(a, vpps_params[p]), own.first, own.first, own.end - own.first, scale);
    }
#pragma unroll 1
    for (unsigned i = 0; i < vpps_header.n_tables; i++) {
        const unsigned *script = (const unsigned *)a.script;
        const vpps_table t = ((const vpps_table *)(script + vpps_header.tables))[i];
        const unsigned words = vpps_params[t.param].rows * vpps_params[t.param].cols;
        const vpps_rows own = vpps_share_of(t.n, VPPS_VPS, blockIdx.x);
        vpps_parameter p = vpps_parameter_of(a, vpps_params[t.param]);
        p.gradient = (float *)a.pool + t.gradients;
#pragma unroll 1
        for (unsigned k = own.first; k < own.end; k++)
            vpps_update_elements(p, script[t.rows + k] * words, k * words, words, scale);
    }
}
