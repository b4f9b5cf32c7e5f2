/* parameters.cuh - tasks on parameters: gradients of lookup tables, norm, update, loss. Each CTA owns some rows. */

/* A parameter, in the model's order. values, gradient, states: offsets in the pool; for a matrix: in the buffers of all matrices. */
struct vpps_param_entry {
    unsigned kind; /* kind of the parameter: 0: matrix, 1: vector, 2: lookup table */
    unsigned rows, cols, values, gradient, states[2];
};
#define VPPS_IS_MATRIX 0u
#define VPPS_IS_VECTOR 1u

__constant__ const vpps_param_entry vpps_params[VPPS_PARAMS + 1] = {VPPS_PARAM_ENTRIES};

/* Addresses of a parameter, its gradient and its states; NULL: the optimiser has no such state. */
struct vpps_parameter {
    float *values, *gradient, *states[2];
};

__device__ __forceinline__ float *vpps_state_at(unsigned long long buffer, unsigned offset) {
    return offset == VPPS_NONE ? (float *)0 : (float *)buffer + offset;
}

__device__ __forceinline__ vpps_parameter vpps_parameter_of(const vpps_arguments &a, const vpps_param_entry &p) {
    const bool matrix = p.kind == VPPS_IS_MATRIX;
    return vpps_parameter{(float *)(matrix ? a.matrices : a.pool) + p.values,
                          (float *)(matrix ? a.gradients : a.pool) + p.gradient,
                          {vpps_state_at(matrix ? a.states[0] : a.pool, p.states[0]),
                           vpps_state_at(matrix ? a.states[1] : a.pool, p.states[1])}};
}

/* Returns whether a matrix with so many rows is "low": has so few that CTAs divide its columns, not its rows. For other
 * matrices, teams of CTAs divide the columns of the gradient, in blocks of 32; the CTAs of a team divide the rows. */
__device__ __forceinline__ constexpr bool vpps_is_low(unsigned rows) { return rows <= VPPS_LOW_ROWS; }

/* Returns which rows of a matrix's gradient CTA number `vp` computes. rows: how many the matrix has. */
__device__ __forceinline__ vpps_rows vpps_matrix_rows(unsigned rows, unsigned vp) {
    if (vpps_is_low(rows)) return vpps_rows{0, rows};
    return vpps_rows_of(rows, VPPS_VPS / VPPS_TEAMS, vp / VPPS_TEAMS);
}
/* Returns which columns of a matrix's gradient CTA number `vp` computes. CTAs may divide them, in blocks of 32. */
__device__ __forceinline__ vpps_rows vpps_matrix_columns(unsigned rows, unsigned columns, unsigned vp) {
    if (VPPS_TEAMS == 1) return vpps_rows{0, columns};
    const bool low = vpps_is_low(rows);
    const vpps_rows blocks =
        vpps_share_of((columns + 31) / 32, low ? VPPS_VPS : VPPS_TEAMS, low ? vp : vp % VPPS_TEAMS);
    return vpps_rows{vpps_least(32 * blocks.first, columns), vpps_least(32 * blocks.end, columns)};
}

__device__ __forceinline__ vpps_rows vpps_own_columns(const vpps_param_entry &p) {
    return p.kind == VPPS_IS_MATRIX ? vpps_matrix_columns(p.rows, p.cols, blockIdx.x) : vpps_rows{0, p.cols};
}

/* Returns which of a lookup table's n trained rows CTA number `vp` owns: none, if it is one of the VPPS_LOW_BLOCKS CTAs
 * that are busy with columns of matrices of few rows (vpps_is_low). */
__device__ __forceinline__ vpps_rows vpps_own_entries(unsigned n, unsigned vp) {
    const vpps_rows low = vpps_share_of(VPPS_LOW_BLOCKS, VPPS_VPS, vp);
    if (low.first < low.end) return vpps_rows{0, 0};
    return vpps_share_of(n, VPPS_VPS - VPPS_LOW_BLOCKS, vp - low.first);
}

/* Returns a range that begins with the first element of a matrix or vector that this CTA owns, and has as many elements as the CTA
 * owns. The CTA's elements are adjacent, unless it owns only some columns. */
__device__ __forceinline__ vpps_rows vpps_own_elements(const vpps_param_entry &p) {
    const bool matrix = VPPS_TEAMS > 1 && p.kind == VPPS_IS_MATRIX;
    const vpps_rows own = matrix ? vpps_matrix_rows(p.rows, blockIdx.x) : vpps_rows_of(p.rows, VPPS_VPS, blockIdx.x);
    const vpps_rows columns = vpps_own_columns(p);
    const unsigned first = own.first * p.cols + columns.first;
    return vpps_rows{first, first + (own.end - own.first) * (columns.end - columns.first)};
}

/* To let all threads work at once, elements that the CTA owns are numbered over all parameters with gradients. A number stands for four
 * elements of a row (VPPS_QUADS) or for one element (VPPS_SINGLES). A parameter's numbers begin at the preceding parameter's `end`, a
 * multiple of 32; numbers from `limit` to `end` are unused. Number i is element `at` + i, or four from word `at` + 4 i on. */
struct vpps_span {
    unsigned end, limit, at;
};
enum { VPPS_QUADS, VPPS_SINGLES };
__shared__ vpps_span vpps_spans[2][VPPS_PARAMS + 1];

/* A matrix of which a CTA owns only some columns, since VPPS_TEAMS > 1 CTAs divide a row. first: the CTA's first
 * element, numbered through all parameters. columns, others: elements of a row that the CTA owns, does not own.
 * inverse: 2^31 / columns, rounded up; the high word of 2 n inverse is n / columns or one more, for any n < 2^31. */
struct __align__(16) vpps_break {
    unsigned first, columns, others, inverse;
};
__shared__ vpps_break vpps_breaks[VPPS_TEAMS > 1 ? 2 : 1][VPPS_TEAMS > 1 ? VPPS_PARAMS + 1 : 1];

/* Elements that the CTA owns are numbered through all parameters (vpps_span). Returns where number i, in the range of parameter `span`, is.
 * VPPS_QUADS: the first of four adjacent elements, as a word of the buffer of matrices; VPPS_SINGLES: one element, as its index in the parameter. */
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

/* Numbers the elements that this CTA owns through all parameters: writes vpps_spans (each parameter's range of numbers)
 * and vpps_breaks (matrices of which the CTA owns some columns). All threads must call it. */
__device__ __forceinline__ void vpps_list_spans() {
#pragma unroll 1
    for (unsigned p = threadIdx.x; p <= VPPS_PARAMS; p += VPPS_THREADS) {
        const vpps_param_entry entry = vpps_params[p];
        const vpps_rows own = vpps_own_elements(entry);
        const unsigned n = vpps_touched[p] ? own.end - own.first : 0;
        const bool quads = entry.kind == VPPS_IS_MATRIX && entry.cols % 4 == 0;
        vpps_spans[VPPS_QUADS][p] = vpps_span{0, quads ? n / 4 : 0, entry.values + own.first};
        vpps_spans[VPPS_SINGLES][p] = vpps_span{0, quads ? 0 : n, own.first};
        if (VPPS_TEAMS > 1) {
            const vpps_rows columns = vpps_own_columns(entry);
            const unsigned length = columns.end - columns.first;
            vpps_breaks[VPPS_QUADS][p] = vpps_breaks[VPPS_SINGLES][p] =
                vpps_break{0, length, entry.cols - length, length ? (0x80000000u + length - 1) / length : 0};
        }
    }
    __syncthreads();
    if (VPPS_WARP < 2 || VPPS_WARPS < 2) { /* a warp each for quads, singles: parameters' counts become totals `end` */
#pragma unroll 1
        for (unsigned kind = VPPS_WARP; kind < 2; kind += VPPS_WARPS) {
            unsigned before = 0;
#pragma unroll 1
            for (unsigned first = 0; first <= VPPS_PARAMS; first += 32) {
                const unsigned p = first + VPPS_LANE;
                const unsigned n = p <= VPPS_PARAMS ? (vpps_spans[kind][p].limit + 31) / 32 * 32 : 0;
                unsigned end = n;
#pragma unroll
                for (unsigned step = 1; step < 32; step *= 2) {
                    const unsigned other = __shfl_sync(0xffffffffu, end, VPPS_LANE - step & 31);
                    if (VPPS_LANE >= step) end += other;
                }
                if (p <= VPPS_PARAMS) {
                    const unsigned begin = before + end - n;
                    vpps_spans[kind][p].end = before + end;
                    vpps_spans[kind][p].limit += begin;
                    vpps_spans[kind][p].at -= begin * (kind == VPPS_QUADS ? 4 : 1);
                    if (VPPS_TEAMS > 1) vpps_breaks[kind][p].first = begin;
                }
                before += __shfl_sync(0xffffffffu, end, 31);
            }
        }
    }
    __syncthreads();
}

__device__ __forceinline__ unsigned vpps_spanned(unsigned kind) { return vpps_spans[kind][VPPS_PARAMS].end; }

/* The CTA's elements of all parameters are numbered. Returns the parameter of number i; VPPS_PARAMS: there is none. */
template <unsigned KIND> __device__ __forceinline__ unsigned vpps_span_of(unsigned i) {
    unsigned span = 0;
#pragma unroll
    for (unsigned first = 0; first < VPPS_PARAMS; first += 32) {
        const unsigned p = first + VPPS_LANE;
        span += __popc(__ballot_sync(0xffffffffu, p < VPPS_PARAMS && vpps_spans[KIND][p].end <= i));
    }
    return span;
}

/* Sums the gradients of table entries. Entries have lists of gradients, which can be long: several are loaded at a time, and added in order. */
__device__ __forceinline__ void vpps_entries(const vpps_arguments &a, unsigned number, unsigned address) {
    enum { AT_ONCE = 8 };
    const unsigned *script = (const unsigned *)a.script;
    const vpps_table t = ((const vpps_table *)(script + vpps_header.tables))[number];
    const unsigned words = vpps_params[t.param].rows * vpps_params[t.param].cols;
    const unsigned n = script[address];
    const unsigned *entries = script + address + 1, *starts = entries + n, *lists = starts + n + 1;
    const vpps_rows own = vpps_own_entries(n, blockIdx.x);
    float *pool = (float *)a.pool;
#pragma unroll 1
    for (unsigned i = threadIdx.x; i < (own.end - own.first) * words; i += VPPS_THREADS) {
        const unsigned at = own.first + i / words, e = i % words, end = starts[at + 1];
        vpps_long_sum total = {0.0f, 0.0f};
        float sum = -0.0f;
#pragma unroll 1
        for (unsigned k = starts[at], run = 1; k < end; k += AT_ONCE, run++) {
            float x[AT_ONCE];
#pragma unroll
            for (unsigned i = 0; i < AT_ONCE; i++) x[i] = pool[lists[vpps_least(k + i, end - 1)] + e];
#pragma unroll
            for (unsigned i = 0; i < AT_ONCE; i++)
                if (k + i < end) sum += x[i];
            if (run % (VPPS_RUN / AT_ONCE) == 0) total.add(sum), sum = 0.0f;
        }
        if (end - starts[at] >= VPPS_RUN) total.add(sum), sum = total.value();
        pool[t.gradients + entries[at] * words + e] = sum;
    }
}

/* Adds n terms to the batch's loss; called by CTA 0 only. */
__device__ __forceinline__ void vpps_add_loss(const vpps_arguments &a, unsigned address, unsigned n) {
    const unsigned *pairs = (const unsigned *)a.script + address;
    const float sum = vpps_over_cta(vpps_add_up<4>(0.0f, threadIdx.x, n, VPPS_THREADS, [&](unsigned i) {
        return __uint_as_float(pairs[2 * i + 1]) * ((const float *)a.pool)[pairs[2 * i]];
    }));
    if (threadIdx.x == 0) ((vpps_launch_end *)a.end)->loss = ((vpps_failure *)a.failure)->loss += sum;
}

/* ---------------------------------------------------------------- norm and update */

/* Sums the squares of gradients of vectors, of table entries, and of matrices whose rows are no multiple of four elements long. */
__device__ __forceinline__ float vpps_other_squares(const vpps_arguments &a) {
    float sum = 0.0f;
#pragma unroll 1
    for (unsigned first = 0; first < vpps_spanned(VPPS_SINGLES); first += VPPS_THREADS) {
        const unsigned i = first + threadIdx.x;
        const unsigned span = vpps_span_of<VPPS_SINGLES>(i);
        if (i >= vpps_spans[VPPS_SINGLES][span].limit) continue;
        const float g = vpps_parameter_of(a, vpps_params[span]).gradient[vpps_spanned_at<VPPS_SINGLES>(span, i)];
        sum += g * g;
    }
#pragma unroll 1
    for (unsigned i = 0; i < vpps_header.n_tables; i++) {
        const vpps_table t = ((const vpps_table *)((const unsigned *)a.script + vpps_header.tables))[i];
        const unsigned words = vpps_params[t.param].rows * vpps_params[t.param].cols;
        const vpps_rows own = vpps_own_entries(t.n, blockIdx.x);
        const float *g = (const float *)a.entries + t.gradients;
        sum = vpps_add_up<1>(sum, own.first * words + threadIdx.x, own.end * words, VPPS_THREADS,
                             [&](unsigned k) { return g[k] * g[k]; });
    }
    return sum;
}

/* Computes the norm of all gradients, in every CTA. Returns the factor that scales gradients; negative: no update. */
__device__ __forceinline__ float vpps_scale(const vpps_arguments &a) {
    vpps_failure *out = (vpps_failure *)a.failure;
    const float loss = out->loss;
    float sum = 0.0f;
#pragma unroll 4
    for (unsigned v = VPPS_LANE; v < VPPS_VPS; v += 32)
        sum += ((const float *)a.pool)[a.norms + v]; /* each warp adds up all CTAs' sums of squares */
    const float norm = sqrtf(vpps_warp_sum(sum));
    if (threadIdx.x == 0 && blockIdx.x == 0) ((vpps_launch_end *)a.end)->norm = out->norm = norm;
    if (vpps_header.guard && (!isfinite(loss) || !isfinite(norm))) return -1.0f;
    return vpps_header.clip > 0.0f && norm > vpps_header.clip ? vpps_header.clip / norm : 1.0f;
}

/* Returns the optimiser's numbers for a parameter, such as its learning rate. */
__device__ __forceinline__ vpps_task_header vpps_step_of(const vpps_arguments &a, const vpps_task_header &h,
                                                         unsigned param) {
    vpps_task_header own = h;
    if (h.steps) {
        const vpps_param_step step = ((const vpps_param_step *)((const unsigned *)a.script + h.steps))[param];
        own.lr = step.lr;
        own.momentum = step.momentum;
        own.weight_decay = step.weight_decay;
        own.corrections[0] = step.corrections[0];
        own.corrections[1] = step.corrections[1];
    }
    return own;
}

__device__ __forceinline__ void vpps_update_elements(const vpps_task_header &h, const vpps_parameter &p,
                                                     unsigned values, unsigned gradient, unsigned n, float scale) {
#pragma unroll 2
    for (unsigned i = threadIdx.x; i < n; i += VPPS_THREADS) {
        float *w = p.values + values + i, *s0 = p.states[0], *s1 = p.states[1];
        VPPS_STEP(&h, scale * p.gradient[gradient + i], w, s0 ? s0 + values + i : s0, s1 ? s1 + values + i : s1);
    }
}

enum {
    VPPS_MOST_QUADS = 8 - 2 * VPPS_STATES,
    VPPS_ROOM_FOR_QUADS = VPPS_MOST_QUADS * 256 / VPPS_THREADS,
    VPPS_QUADS_AT_ONCE = VPPS_ROOM_FOR_QUADS < VPPS_MOST_QUADS ? VPPS_ROOM_FOR_QUADS : VPPS_MOST_QUADS
};
/* Four adjacent elements of a matrix: place among all matrices' elements (VPPS_NONE: none), gradients, values,
 * states. */
struct vpps_quads {
    unsigned at;
    vpps_quad g, w, s0, s1;
};

/* Of the CTA's elements of matrices, numbered four by four from `first` on, loads those that this thread updates: the
 * gradients and, if `all` is set, the elements and their optimizer states. */
__device__ __forceinline__ void vpps_load_quads(const vpps_arguments &a, unsigned first, bool all,
                                                vpps_quads (&q)[VPPS_QUADS_AT_ONCE]) {
#pragma unroll
    for (unsigned k = 0; k < VPPS_QUADS_AT_ONCE; k++) {
        const unsigned i = first + threadIdx.x + k * VPPS_THREADS, span = vpps_span_of<VPPS_QUADS>(i);
        const unsigned at = vpps_spanned_at<VPPS_QUADS>(span, i);
        q[k].at = i < vpps_spans[VPPS_QUADS][span].limit ? at : VPPS_NONE;
    }
#pragma unroll
    for (unsigned k = 0; k < VPPS_QUADS_AT_ONCE; k++) {
        q[k].g = vpps_quad{0.0f, 0.0f, 0.0f, 0.0f};
        if (q[k].at == VPPS_NONE) continue;
        q[k].g = vpps_at<const vpps_quad>((const float *)a.gradients + q[k].at);
        if (!all) continue;
        q[k].w = vpps_at<const vpps_quad>((const float *)a.matrices + q[k].at);
        if (VPPS_STATES > 0) q[k].s0 = vpps_at<const vpps_quad>((const float *)a.states[0] + q[k].at);
        if (VPPS_STATES > 1) q[k].s1 = vpps_at<const vpps_quad>((const float *)a.states[1] + q[k].at);
    }
}

__device__ __forceinline__ float vpps_squares(const vpps_quads (&q)[VPPS_QUADS_AT_ONCE]) {
    float sum = 0.0f;
#pragma unroll
    for (unsigned k = 0; k < VPPS_QUADS_AT_ONCE; k++)
        sum += q[k].g.x * q[k].g.x + q[k].g.y * q[k].g.y + q[k].g.z * q[k].g.z + q[k].g.w * q[k].g.w;
    return sum;
}

__device__ __forceinline__ void vpps_update_quads(const vpps_arguments &a, const vpps_task_header &h, float scale,
                                                  vpps_quads &q) {
    if (q.at == VPPS_NONE) return;
    VPPS_STEP(&h, scale * q.g.x, &q.w.x, &q.s0.x, &q.s1.x);
    VPPS_STEP(&h, scale * q.g.y, &q.w.y, &q.s0.y, &q.s1.y);
    VPPS_STEP(&h, scale * q.g.z, &q.w.z, &q.s0.z, &q.s1.z);
    VPPS_STEP(&h, scale * q.g.w, &q.w.w, &q.s0.w, &q.s1.w);
    vpps_at<vpps_quad>((float *)a.matrices + q.at) = q.w;
    if (VPPS_STATES > 0) vpps_at<vpps_quad>((float *)a.states[0] + q.at) = q.s0;
    if (VPPS_STATES > 1) vpps_at<vpps_quad>((float *)a.states[1] + q.at) = q.s1;
}

/* Updates vectors, table entries, and matrices whose rows are no multiple of four elements long. */
__device__ __forceinline__ void vpps_update_others(const vpps_arguments &a, const vpps_task_header &h, float scale) {
#pragma unroll 1
    for (unsigned first = 0; first < vpps_spanned(VPPS_SINGLES); first += VPPS_THREADS) {
        const unsigned i = first + threadIdx.x;
        const unsigned span = vpps_span_of<VPPS_SINGLES>(i);
        if (i >= vpps_spans[VPPS_SINGLES][span].limit) continue;
        const vpps_parameter p = vpps_parameter_of(a, vpps_params[span]);
        const unsigned e = vpps_spanned_at<VPPS_SINGLES>(span, i);
        float *s0 = VPPS_STATES > 0 ? p.states[0] + e : (float *)0,
              *s1 = VPPS_STATES > 1 ? p.states[1] + e : (float *)0;
        const vpps_task_header own = vpps_step_of(a, h, span);
        VPPS_STEP(&own, scale * p.gradient[e], p.values + e, s0, s1);
    }
#pragma unroll 1
    for (unsigned i = 0; i < h.n_tables; i++) {
        const unsigned *script = (const unsigned *)a.script;
        const vpps_table t = ((const vpps_table *)(script + h.tables))[i];
        const unsigned words = vpps_params[t.param].rows * vpps_params[t.param].cols;
        const vpps_rows own = vpps_own_entries(t.n, blockIdx.x);
        vpps_parameter p = vpps_parameter_of(a, vpps_params[t.param]);
        p.gradient = (float *)a.entries + t.gradients;
        const vpps_task_header step = vpps_step_of(a, h, t.param);
#pragma unroll 1
        for (unsigned k = own.first; k < own.end; k++)
            vpps_update_elements(step, p, script[t.rows + k] * words, k * words, words, scale);
    }
}

/* Runs a batch's last tasks: NORM (optional), which adds up the squares of all gradients, then UPDATE, which changes
 * the parameters. A thread's first gradients stay in registers from NORM to UPDATE: NORM takes them last and loads
 * their parameters and states, too, so that these loads are in flight while the CTA waits for other CTAs' sums.
 * `norm`: the first of the tasks; `update`: the task after `norm`. */
__device__ __forceinline__ void vpps_step(const vpps_arguments &a, const vpps_kernel_task &norm,
                                          const vpps_kernel_task &update) {
    const unsigned group = VPPS_QUADS_AT_ONCE * VPPS_THREADS;
    const bool clips = norm.kind == VPPS_TASK_NORM;
    if (clips && update.kind != VPPS_TASK_UPDATE) {
        vpps_refuse(a, update);
        return;
    }
    vpps_list_spans();
    const unsigned n = vpps_spanned(VPPS_QUADS);
    vpps_quads q[VPPS_QUADS_AT_ONCE];
    float sum = 0.0f, scale = 1.0f;
#pragma unroll 1
    for (unsigned first = clips && n ? (n - 1) / group * group : 0;; first -= group) {
        vpps_load_quads(a, first, first == 0, q);
        if (first == 0) break;
        sum += vpps_squares(q);
    }
    if (clips) {
        sum += vpps_other_squares(a);
        sum = vpps_over_cta(sum + vpps_squares(q));
        if (threadIdx.x == 0) ((float *)a.pool)[a.norms + blockIdx.x] = sum;
        vpps_send(vpps_signal_of(a.counters, norm.signal));
        vpps_await(a, update);
        scale = vpps_scale(a);
    }
    if (scale < 0.0f || vpps_has_failed(a.failure)) return;
    const vpps_task_header h = vpps_header;
#pragma unroll 1
    for (unsigned first = 0;;) {
#pragma unroll
        for (unsigned k = 0; k < VPPS_QUADS_AT_ONCE; k++) {
            vpps_task_header own = h;
            if (h.steps) { /* a uniform branch: vpps_span_of needs all lanes of the warp */
                const unsigned span = vpps_span_of<VPPS_QUADS>(first + threadIdx.x + k * VPPS_THREADS);
                if (q[k].at != VPPS_NONE) own = vpps_step_of(a, h, span);
            }
            vpps_update_quads(a, own, scale, q[k]);
        }
        if ((first += group) >= n) break;
        vpps_load_quads(a, first, true, q);
    }
    vpps_update_others(a, h, scale);
}
