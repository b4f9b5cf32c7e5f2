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

/* A VP's part of a matrix's gradient: its team's columns, by whole warps, of its rows among those that the team's VPs share out. */
__device__ __forceinline__ vpps_rows vpps_matrix_rows(unsigned rows, unsigned vp) {
    return vpps_rows_of(rows, VPPS_VPS / VPPS_TEAMS, vp / VPPS_TEAMS);
}
__device__ __forceinline__ vpps_rows vpps_matrix_columns(unsigned columns, unsigned vp) {
    if (VPPS_TEAMS == 1) return vpps_rows{0, columns};
    const vpps_rows blocks = vpps_share_of((columns + 31) / 32, VPPS_TEAMS, vp % VPPS_TEAMS);
    return vpps_rows{vpps_least(32 * blocks.first, columns), vpps_least(32 * blocks.end, columns)};
}

__device__ __forceinline__ vpps_rows vpps_own_columns(const vpps_param_entry &p) {
    return p.kind == VPPS_IS_MATRIX ? vpps_matrix_columns(p.cols, blockIdx.x) : vpps_rows{0, p.cols};
}

/* The first of the VP's elements of a matrix or vector, and as many behind it as there are, as if no other team's were between. */
__device__ __forceinline__ vpps_rows vpps_own_elements(const vpps_param_entry &p) {
    const bool matrix = VPPS_TEAMS > 1 && p.kind == VPPS_IS_MATRIX;
    const vpps_rows own = matrix ? vpps_matrix_rows(p.rows, blockIdx.x) : vpps_rows_of(p.rows, VPPS_VPS, blockIdx.x);
    const vpps_rows columns = vpps_own_columns(p);
    const unsigned first = own.first * p.cols + columns.first;
    return vpps_rows{first, first + (own.end - own.first) * (columns.end - columns.first)};
}

/* The VP's elements that have a gradient, of all parameters one behind the other, so that all threads have some at once: rows of
 * matrices by quads, the rest one by one. Number i is of the first parameter whose end is beyond it, at its word or
 * element `at` + what i counts. */
struct vpps_span {
    unsigned end, at;
};
enum { VPPS_QUADS, VPPS_SINGLES };
__shared__ vpps_span vpps_spans[2][VPPS_PARAMS + 1];

/* With several teams: where a parameter's begin, and how many words of other teams are behind so many of one row. `inverse` is
 * 2^31 by columns, rounded up: 2 n times it by 2^32 is n by columns or one more, for any n below 2^31. */
struct vpps_break {
    unsigned first, columns, others, inverse;
};
__shared__ vpps_break vpps_breaks[VPPS_TEAMS > 1 ? 2 : 1][VPPS_TEAMS > 1 ? VPPS_PARAMS + 1 : 1];

/* Where number i, of parameter `span`, lies. */
template <unsigned KIND> __device__ __forceinline__ unsigned vpps_spanned_at(unsigned span, unsigned i) {
    const unsigned words = KIND == VPPS_QUADS ? 4 : 1;
    unsigned at = vpps_spans[KIND][span].at + words * i;
    if (VPPS_TEAMS > 1) {
        const vpps_break b = vpps_breaks[KIND][span];
        const unsigned passed = (i - b.first) * words;
        unsigned rows = __umulhi(2 * passed, b.inverse);
        if (rows * b.columns > passed) rows--;
        at += rows * b.others;
    }
    return at;
}

/* All threads; ends with a barrier. */
__device__ __forceinline__ void vpps_list_spans() {
#pragma unroll 1
    for (unsigned p = threadIdx.x; p <= VPPS_PARAMS; p += VPPS_THREADS) {
        const vpps_param_entry entry = vpps_params[p];
        const vpps_rows own = vpps_own_elements(entry);
        const unsigned n = vpps_touched[p] ? own.end - own.first : 0;
        const bool quads = entry.kind == VPPS_IS_MATRIX && entry.cols % 4 == 0;
        vpps_spans[VPPS_QUADS][p] = vpps_span{quads ? n / 4 : 0, entry.values + own.first};
        vpps_spans[VPPS_SINGLES][p] = vpps_span{quads ? 0 : n, own.first};
        if (VPPS_TEAMS > 1) {
            const vpps_rows columns = vpps_own_columns(entry);
            const unsigned length = columns.end - columns.first;
            vpps_breaks[VPPS_QUADS][p] = vpps_breaks[VPPS_SINGLES][p] = vpps_break{
                0, length, entry.cols - length, length ? (0x80000000u + length - 1) / length : 0};
        }
    }
    __syncthreads();
    if (VPPS_WARP < 2 || VPPS_WARPS < 2) { /* ends from numbers */
#pragma unroll 1
        for (unsigned kind = VPPS_WARP; kind < 2; kind += VPPS_WARPS) {
            unsigned before = 0;
#pragma unroll 1
            for (unsigned first = 0; first <= VPPS_PARAMS; first += 32) {
                const unsigned p = first + VPPS_LANE, n = p <= VPPS_PARAMS ? vpps_spans[kind][p].end : 0;
                unsigned end = n;
#pragma unroll
                for (unsigned step = 1; step < 32; step *= 2) {
                    const unsigned other = __shfl_sync(0xffffffffu, end, VPPS_LANE - step & 31);
                    if (VPPS_LANE >= step) end += other;
                }
                if (p <= VPPS_PARAMS) {
                    vpps_spans[kind][p].end = before + end;
                    vpps_spans[kind][p].at -= (before + end - n) * (kind == VPPS_QUADS ? 4 : 1);
                    if (VPPS_TEAMS > 1) vpps_breaks[kind][p].first = before + end - n;
                }
                before += __shfl_sync(0xffffffffu, end, 31);
            }
        }
    }
    __syncthreads();
}

__device__ __forceinline__ unsigned vpps_spanned(unsigned kind) { return vpps_spans[kind][VPPS_PARAMS].end; }

/* ---------------------------------------------------------------- gradients of entries */

__device__ __forceinline__ void vpps_entries(const vpps_arguments &a, unsigned number, unsigned address) {
    const unsigned *script = (const unsigned *)a.script;
    const vpps_table t = ((const vpps_table *)(script + vpps_header.tables))[number];
    const unsigned words = vpps_params[t.param].rows * vpps_params[t.param].cols;
    const unsigned n = script[address];
    const unsigned *entries = script + address + 1, *starts = entries + n, *lists = starts + n + 1;
    const vpps_rows own = vpps_share_of(n, VPPS_VPS, blockIdx.x);
    float *pool = (float *)a.pool;
#pragma unroll 1
    for (unsigned i = threadIdx.x; i < (own.end - own.first) * words; i += VPPS_THREADS) {
        const unsigned at = own.first + i / words, e = i % words, end = starts[at + 1];
        unsigned k = starts[at];
        float sum = pool[lists[k] + e];
#pragma unroll 1
        for (k++; k < end; k++) sum += pool[lists[k] + e];
        pool[t.gradients + entries[at] * words + e] = sum;
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
    enum { AT_ONCE = 4 };
    vpps_list_spans();
    float sum = 0.0f;
    unsigned span = 0;
#pragma unroll 1
    for (unsigned first = threadIdx.x; first < vpps_spanned(VPPS_QUADS); first += AT_ONCE * VPPS_THREADS) {
        vpps_quad g[AT_ONCE];
#pragma unroll
        for (unsigned u = 0; u < AT_ONCE; u++) {
            const unsigned i = first + u * VPPS_THREADS;
            if (i >= vpps_spanned(VPPS_QUADS)) {
                g[u] = vpps_quad{0.0f, 0.0f, 0.0f, 0.0f};
                continue;
            }
            while (i >= vpps_spans[VPPS_QUADS][span].end) span++;
            g[u] = *(const vpps_quad *)((const float *)a.gradients + vpps_spanned_at<VPPS_QUADS>(span, i));
        }
#pragma unroll
        for (unsigned u = 0; u < AT_ONCE; u++)
            sum += g[u].x * g[u].x + g[u].y * g[u].y + g[u].z * g[u].z + g[u].w * g[u].w;
    }
    span = 0;
#pragma unroll 1
    for (unsigned i = threadIdx.x; i < vpps_spanned(VPPS_SINGLES); i += VPPS_THREADS) {
        while (i >= vpps_spans[VPPS_SINGLES][span].end) span++;
        const float g =
            vpps_parameter_of(a, vpps_params[span]).gradient[vpps_spanned_at<VPPS_SINGLES>(span, i)];
        sum += g * g;
    }
#pragma unroll 1
    for (unsigned i = 0; i < vpps_header.n_tables; i++) {
        const vpps_table t = ((const vpps_table *)((const unsigned *)a.script + vpps_header.tables))[i];
        const unsigned words = vpps_params[t.param].rows * vpps_params[t.param].cols;
        const vpps_rows own = vpps_share_of(t.n, VPPS_VPS, blockIdx.x);
        const float *g = (const float *)a.entries + t.gradients;
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

/* The VP's quads of matrices. */
__device__ __forceinline__ void vpps_update_quads(const vpps_arguments &a, float scale) {
    enum { AT_ONCE = 2 };
    const vpps_task_header h = vpps_header;
    const unsigned n = vpps_spanned(VPPS_QUADS);
    unsigned span = 0;
#pragma unroll 1
    for (unsigned first = threadIdx.x; first < n; first += AT_ONCE * VPPS_THREADS) {
        unsigned at[AT_ONCE];
        vpps_quad g[AT_ONCE], w[AT_ONCE], s0[AT_ONCE], s1[AT_ONCE];
#pragma unroll
        for (unsigned u = 0; u < AT_ONCE; u++) {
            const unsigned i = vpps_least(first + u * VPPS_THREADS, n - 1);
            while (i >= vpps_spans[VPPS_QUADS][span].end) span++;
            at[u] = vpps_spanned_at<VPPS_QUADS>(span, i);
        }
#pragma unroll
        for (unsigned u = 0; u < AT_ONCE; u++) {
            g[u] = *(const vpps_quad *)((const float *)a.gradients + at[u]);
            w[u] = *(const vpps_quad *)((const float *)a.matrices + at[u]);
            if (VPPS_STATES > 0) s0[u] = *(const vpps_quad *)((const float *)a.states[0] + at[u]);
            if (VPPS_STATES > 1) s1[u] = *(const vpps_quad *)((const float *)a.states[1] + at[u]);
        }
#pragma unroll
        for (unsigned u = 0; u < AT_ONCE; u++) {
            VPPS_STEP(&h, scale * g[u].x, &w[u].x, &s0[u].x, &s1[u].x);
            VPPS_STEP(&h, scale * g[u].y, &w[u].y, &s0[u].y, &s1[u].y);
            VPPS_STEP(&h, scale * g[u].z, &w[u].z, &s0[u].z, &s1[u].z);
            VPPS_STEP(&h, scale * g[u].w, &w[u].w, &s0[u].w, &s1[u].w);
            if (first + u * VPPS_THREADS >= n) break;
            *(vpps_quad *)((float *)a.matrices + at[u]) = w[u];
            if (VPPS_STATES > 0) *(vpps_quad *)((float *)a.states[0] + at[u]) = s0[u];
            if (VPPS_STATES > 1) *(vpps_quad *)((float *)a.states[1] + at[u]) = s1[u];
        }
    }
}

__device__ __forceinline__ void vpps_update_singles(const vpps_arguments &a, float scale) {
    unsigned span = 0;
#pragma unroll 1
    for (unsigned i = threadIdx.x; i < vpps_spanned(VPPS_SINGLES); i += VPPS_THREADS) {
        while (i >= vpps_spans[VPPS_SINGLES][span].end) span++;
        const vpps_parameter p = vpps_parameter_of(a, vpps_params[span]);
        const unsigned e = vpps_spanned_at<VPPS_SINGLES>(span, i);
        float *s0 = VPPS_STATES > 0 ? p.states[0] + e : (float *)0,
              *s1 = VPPS_STATES > 1 ? p.states[1] + e : (float *)0;
        VPPS_STEP(&vpps_header, scale * p.gradient[e], p.values + e, s0, s1);
    }
}

__device__ __forceinline__ void vpps_update(const vpps_arguments &a) {
    const float scale = vpps_scale(a);
    if (scale < 0.0f) return;
    vpps_list_spans();
    vpps_update_quads(a, scale);
    vpps_update_singles(a, scale);
#pragma unroll 1
    for (unsigned i = 0; i < vpps_header.n_tables; i++) {
        const unsigned *script = (const unsigned *)a.script;
        const vpps_table t = ((const vpps_table *)(script + vpps_header.tables))[i];
        const unsigned words = vpps_params[t.param].rows * vpps_params[t.param].cols;
        const vpps_rows own = vpps_share_of(t.n, VPPS_VPS, blockIdx.x);
        vpps_parameter p = vpps_parameter_of(a, vpps_params[t.param]);
        p.gradient = (float *)a.entries + t.gradients;
#pragma unroll 1
        for (unsigned k = own.first; k < own.end; k++)
            vpps_update_elements(p, script[t.rows + k] * words, k * words, words, scale);
    }
}
