/* kernels.c - the CPU's arithmetic. Elementwise instructions are generated from the formulas of isa.def; others are one macro call each.
 * The table at the end is generated from isa.def, so that an instruction without a kernel does not compile.
 *
 * Loops run over blocks of 16 elements whose bodies are vector code of a fixed shape for every instruction set; a partial last block is
 * copied to the stack and back. So an element's bits do not depend on where it lies in a call; math.h explains multiply-adds. */
#include "runtime/cpu/kernels.h"

#include "runtime/cpu/math.h"

#include "isa/functions.h"

#define VPPS_STEP_NUMBERS vpps_step
#include "isa/steps.h"

#include "runtime/cpu/bf16.h"
#include "runtime/cpu/gemm.h"
#include "runtime/cpu/products.h"

/* Long sums: in float over RUN elements (or LIST_RUN tensors of a list), whose sums are then added up in double. */
enum { BLOCK = 16, LANES = 64, RUN = 64 * LANES, LIST_RUN = 256 };

/* Adds n sums in float, over RUN elements or LIST_RUN tensors, to totals in double. `first`: sets the totals. */
static __attribute__((noinline)) void end_run(uint32_t n, bool first, const float *sums, double *totals) {
    for (uint32_t j = 0; j < n; j++) totals[j] = (first ? 0 : totals[j]) + (double)sums[j];
}

static const float nothing[BLOCK]; /* zeros, for the tensors that an instruction with fewer than three lacks */

/* Copies the first n < BLOCK elements of x to the buffer, padded with ones, which are harmless for every function. */
static const float *padded(float *buffer, const float *x, size_t n) {
    for (uint32_t i = 0; i < BLOCK; i++) buffer[i] = 1.0f;
    memcpy(buffer, x, n * sizeof(*x));
    return buffer;
}

/* ---------------------------------------------------------------- element by element
 *
 * In VALUE: x, y, z are the tensors' elements, o the operands, i the element's number. PREPARE runs once a call, and
 * may put what it computes into `o`, a copy. The destination may be one of the tensors, so all else is read before. */

#define ELEMENTWISE(ID, TENSORS, PREPARE, VALUE)                                                                       \
    VPPS_INLINE void ID##_block(uint32_t first, float *dst, const float *xs, const float *ys, const float *zs,         \
                                const vpps_operands *o) {                                                              \
        (void)o;                                                                                                       \
        _Pragma("omp simd") for (uint32_t j = 0; j < BLOCK; j++) {                                                     \
            const uint32_t i = first + j;                                                                              \
            const float x = xs[j], y = ys[j], z = zs[j];                                                               \
            (void)i, (void)x, (void)y, (void)z;                                                                        \
            const float value = VALUE;                                                                                 \
            dst[j] = value;                                                                                            \
        }                                                                                                              \
    }                                                                                                                  \
    VPPS_INLINE void ID##_blocks(uint32_t n, float *dst, const vpps_operands *o) {                                     \
        const float *xs = TENSORS > 0 ? o->t[0] : nothing, *ys = TENSORS > 1 ? o->t[1] : nothing;                      \
        const float *zs = TENSORS > 2 ? o->t[2] : nothing;                                                             \
        uint32_t first = 0;                                                                                            \
        for (; first + BLOCK <= n; first += BLOCK)                                                                     \
            ID##_block(first, dst + first, TENSORS > 0 ? xs + first : xs, TENSORS > 1 ? ys + first : ys,               \
                       TENSORS > 2 ? zs + first : zs, o);                                                              \
        if (first == n) return;                                                                                        \
        float x[BLOCK], y[BLOCK], z[BLOCK], d[BLOCK];                                                                  \
        if (TENSORS > 0) xs = padded(x, xs + first, n - first);                                                        \
        if (TENSORS > 1) ys = padded(y, ys + first, n - first);                                                        \
        if (TENSORS > 2) zs = padded(z, zs + first, n - first);                                                        \
        ID##_block(first, d, xs, ys, zs, o);                                                                           \
        memcpy(dst + first, d, (n - first) * sizeof(*d));                                                              \
    }                                                                                                                  \
    static void ID##_kernel(uint32_t n, float *dst, const vpps_operands *operands) {                                   \
        vpps_operands o = *operands;                                                                                   \
        PREPARE;                                                                                                       \
        ID##_blocks(n, dst, &o);                                                                                       \
    }

/* IS_TENSOR: whether operand i of an instruction is a tensor. TENSORS_OF: its number of tensors, which precede its other operands. */
#define IS_TENSOR(operands, i) ((operands "\0\0\0")[i] == 't')
#define TENSORS_OF(operands) (IS_TENSOR(operands, 0) + IS_TENSOR(operands, 1) + IS_TENSOR(operands, 2))

#define EW(id, operands, cost, flops, formula)                                                                         \
    VPPS_INLINE float value_##id(float x, float y, float z, float s, float f, uint32_t u, float random) {              \
        (void)x, (void)y, (void)z, (void)s, (void)f, (void)u, (void)random;                                            \
        return formula;                                                                                                \
    }                                                                                                                  \
    ELEMENTWISE(id, TENSORS_OF(operands), (void)0,                                                                     \
                value_##id(x, y, z, o->s[0], o->f, o->u,                                                               \
                           dropout_uniform((uint32_t)o->key, (uint32_t)(o->key >> 32), o->e + i)))
#define INSTR(id, ...)
#include "isa/isa.def"
#undef INSTR

/* ---------------------------------------------------------------- over a list of tensors
 *
 * LIST vectors at a time while there are so many, then one: a longer run of each member in turn. Runs of members are added up in double. */

enum { LIST = VECTOR_REGISTERS == 32 ? 4 : 8 };

/* Adds sums over up to LIST_RUN tensors of a list to the totals (in double), and sets the sums to zero. */
VPPS_INLINE void end_list_run(uint32_t vectors, bool first, vector *sums, double *totals) {
    float run[LIST * VECTOR];
    for (uint32_t i = 0; i < vectors; i++) {
        vector_store(run + i * VECTOR, sums[i]);
        sums[i] = (vector){0};
    }
    end_run(vectors * VECTOR, first, run, totals);
}

/* Adds sums over the last tensors of a list to the totals of earlier ones, and replaces the sums by these results. */
VPPS_INLINE void end_list(uint32_t vectors, vector *sums, double *totals) {
    float all[LIST * VECTOR];
    end_list_run(vectors, false, sums, totals);
    for (uint32_t j = 0; j < vectors * VECTOR; j++) all[j] = (float)totals[j];
    for (uint32_t i = 0; i < vectors; i++) sums[i] = vector_load(all + i * VECTOR);
}

#define OVER_LIST(ID, WEIGHS, NEXT, MADE)                                                                              \
    VPPS_INLINE void ID##_block(const uint32_t vectors, uint32_t count, uint32_t first, float *dst,                    \
                                const vpps_operands *o) {                                                              \
        const bool part = count < vectors * VECTOR;                                                                    \
        vector sums[LIST];                                                                                             \
        float pad[BLOCK];                                                                                              \
        double totals[LIST * VECTOR];                                                                                  \
        for (uint32_t i = 0; i < vectors; i++) sums[i] = (vector){0};                                                  \
        for (uint32_t m = 0; m < o->n_list; m++) {                                                                     \
            if (m && m % LIST_RUN == 0) end_list_run(vectors, m == LIST_RUN, sums, totals);                            \
            const float *xs = part ? padded(pad, o->list[m] + first, count) : o->list[m] + first;                      \
            const float w = WEIGHS ? o->weights[m] : 0.0f;                                                             \
            (void)w;                                                                                                   \
            for (uint32_t i = 0; i < vectors; i++) {                                                                   \
                const vector a = sums[i], x = vector_load(xs + i * VECTOR);                                            \
                sums[i] = NEXT;                                                                                        \
            }                                                                                                          \
        }                                                                                                              \
        if (o->n_list > LIST_RUN) end_list(vectors, sums, totals);                                                     \
        float *out = part ? pad : dst + first;                                                                         \
        const float f = o->f;                                                                                          \
        (void)f;                                                                                                       \
        for (uint32_t i = 0; i < vectors; i++) {                                                                       \
            const vector a = sums[i], value = MADE;                                                                    \
            vector_store(out + i * VECTOR, value);                                                                     \
        }                                                                                                              \
        if (part) memcpy(dst + first, pad, count * sizeof(*pad));                                                      \
    }                                                                                                                  \
    static void ID##_kernel(uint32_t n, float *dst, const vpps_operands *operands) {                                   \
        const vpps_operands o = *operands;                                                                             \
        uint32_t first = 0;                                                                                            \
        for (; first + LIST * VECTOR <= n; first += LIST * VECTOR) ID##_block(LIST, LIST *VECTOR, first, dst, &o);     \
        for (; first + VECTOR <= n; first += VECTOR) ID##_block(1, VECTOR, first, dst, &o);                            \
        if (first < n) ID##_block(1, n - first, first, dst, &o);                                                       \
    }

/* Defines a kernel that finds each element's best value, such as the greatest, in a list of tensors, and the first
 * tensor that has this value. */
#define FOUND_IN(ID, BEATS)                                                                                            \
    VPPS_INLINE void ID##_block(uint32_t width, uint32_t count, uint32_t first, float *dst, const vpps_operands *o) {  \
        float best[LANES], pad[BLOCK];                                                                                 \
        uint32_t at[LANES];                                                                                            \
        const float *xs = count < width ? padded(pad, o->list[0] + first, count) : o->list[0] + first;                 \
        _Pragma("omp simd") for (uint32_t j = 0; j < width; j++) best[j] = xs[j], at[j] = 0;                           \
        for (uint32_t m = 1; m < o->n_list; m++) {                                                                     \
            xs = count < width ? padded(pad, o->list[m] + first, count) : o->list[m] + first;                          \
            _Pragma("omp simd") for (uint32_t j = 0; j < width; j++) {                                                 \
                const float x = xs[j], a = best[j];                                                                    \
                const bool better = (BEATS) | ((x != x) & (a == a));                                                   \
                best[j] = better ? x : a;                                                                              \
                at[j] = better ? m : at[j];                                                                            \
            }                                                                                                          \
        }                                                                                                              \
        memcpy(dst, best, count * sizeof(*best));                                                                      \
        memcpy(o->indices + first, at, count * sizeof(*at));                                                           \
    }                                                                                                                  \
    static void ID##_kernel(uint32_t n, float *dst, const vpps_operands *operands) {                                   \
        const vpps_operands o = *operands;                                                                             \
        uint32_t first = 0;                                                                                            \
        for (; first + LANES <= n; first += LANES) ID##_block(LANES, LANES, first, dst + first, &o);                   \
        for (; first + BLOCK <= n; first += BLOCK) ID##_block(BLOCK, BLOCK, first, dst + first, &o);                   \
        if (first < n) ID##_block(BLOCK, n - first, first, dst + first, &o);                                           \
    }

#define FOLD(id, operands, cost, flops, next, made) OVER_LIST(id, (operands)[0] == 'v', next, made)
#define FIND(id, operands, cost, flops, beats) FOUND_IN(id, beats)
#define INSTR(id, ...)
#include "isa/isa.def"
#undef INSTR

/* ---------------------------------------------------------------- to a scalar
 *
 * Element i is added to lane i % LANES, and the lanes are folded in halves: an order of its own, but a fixed one. Lanes of more than one
 * run are added up in double. */

static float fold(float *lanes) {
#define HALVE(width) _Pragma("omp simd") for (uint32_t j = 0; j < (width); j++) lanes[j] += lanes[j + (width)];
    HALVE(32)
    HALVE(16)
    HALVE(8)
    HALVE(4)
    HALVE(2)
    HALVE(1)
#undef HALVE
    return lanes[0];
}

static float fold_runs(const float *lanes, const double *totals) {
    double sum = 0;
    for (uint32_t j = 0; j < LANES; j++) sum += totals[j] + (double)lanes[j];
    return (float)sum;
}

#define SUM_OVER(RESULT, N, XS, YS, VALUE)                                                                             \
    do {                                                                                                               \
        const float *xs_ = (XS), *ys_ = (YS);                                                                          \
        const uint32_t n_ = (N);                                                                                       \
        float lanes_[LANES] = {0}, x_[BLOCK], y_[BLOCK];                                                               \
        double totals_[LANES];                                                                                         \
        uint32_t first_ = 0;                                                                                           \
        for (uint32_t end_ = RUN;; end_ += RUN) {                                                                      \
            for (; first_ + BLOCK <= vpps_min_u32(n_, end_); first_ += BLOCK) {                                        \
                float *lane_ = lanes_ + first_ % LANES;                                                                \
                const float *x_block_ = xs_ + first_, *y_block_ = ys_ + first_;                                        \
                _Pragma("omp simd") for (uint32_t j = 0; j < BLOCK; j++) {                                             \
                    const float x = x_block_[j], y = y_block_[j];                                                      \
                    const uint32_t i = first_ + j;                                                                     \
                    (void)y, (void)i;                                                                                  \
                    lane_[j] += VALUE;                                                                                 \
                }                                                                                                      \
            }                                                                                                          \
            if (n_ <= end_) break;                                                                                     \
            end_run(LANES, end_ == RUN, lanes_, totals_);                                                              \
            memset(lanes_, 0, sizeof lanes_);                                                                          \
        }                                                                                                              \
        if (first_ < n_) {                                                                                             \
            float *lane_ = lanes_ + first_ % LANES;                                                                    \
            padded(x_, xs_ + first_, n_ - first_);                                                                     \
            padded(y_, ys_ + first_, n_ - first_);                                                                     \
            _Pragma("omp simd") for (uint32_t j = 0; j < BLOCK; j++) {                                                 \
                const float x = x_[j], y = y_[j];                                                                      \
                const uint32_t i = first_ + j;                                                                         \
                (void)y;                                                                                               \
                const float value = VALUE;                                                                             \
                lane_[j] += i < n_ ? value : 0.0f;                                                                     \
            }                                                                                                          \
        }                                                                                                              \
        (RESULT) = n_ > RUN ? fold_runs(lanes_, totals_) : fold(lanes_);                                               \
    } while (0)

/* Defines a kernel that reduces tensors to a number. In VALUE, x and y are the tensors' elements, i is their number and p the PARAMETER; in
 * RESULT, sum is the sum of all VALUEs. */
#define REDUCTION(ID, TENSORS, PARAMETER, VALUE, RESULT)                                                               \
    static void ID##_kernel(uint32_t n, float *dst, const vpps_operands *o) {                                          \
        const float p = PARAMETER;                                                                                     \
        const uint32_t u = o->u;                                                                                       \
        (void)p, (void)u;                                                                                              \
        float sum;                                                                                                     \
        SUM_OVER(sum, n, o->t[0], o->t[TENSORS - 1], VALUE);                                                           \
        *dst = RESULT;                                                                                                 \
    }

/* Returns the greatest element. NaNs are skipped here; they make the sum that is computed later NaN. */
static float greatest(uint32_t n, const float *x) {
    float lanes[BLOCK];
    for (uint32_t j = 0; j < BLOCK; j++) lanes[j] = -INFINITY;
    uint32_t first = 0;
    for (; first + BLOCK <= n; first += BLOCK) {
        const float *xs = x + first;
#pragma omp simd
        for (uint32_t j = 0; j < BLOCK; j++) lanes[j] = xs[j] > lanes[j] ? xs[j] : lanes[j];
    }
    for (uint32_t j = 0; first + j < n; j++) lanes[j] = x[first + j] > lanes[j] ? x[first + j] : lanes[j];
    float best = lanes[0];
    for (uint32_t j = 1; j < BLOCK; j++) best = lanes[j] > best ? lanes[j] : best;
    return best;
}

static float finite_or_zero(float x) { return fabsf(x) < INFINITY ? x : 0.0f; }

REDUCTION(DOT, 2, 0.0f, (x * y), sum)
REDUCTION(SQUARED_DISTANCE, 2, 0.0f, (x - y) * (x - y), sum)
REDUCTION(SUM_ELEMENTS, 1, 0.0f, x, sum)
REDUCTION(CROSS_ENTROPY, 1, greatest(n, o->t[0]), exp_of(x - p), (p - o->t[0][u]) + log_of(sum))
/* p is the greatest element; but 0 if that is infinite, since x - p could be infinity minus infinity. */
REDUCTION(LOG_SUM_EXP, 1, finite_or_zero(greatest(n, o->t[0])), exp_of(x - p), p + log_of(sum))
REDUCTION(HINGE, 1, o->f - o->t[0][o->u], i == u || p + x < 0.0f ? 0.0f : p + x, sum)
REDUCTION(BINARY_LOG_LOSS, 2, 0.0f, times_log(y, x) + times_log(1.0f - y, 1.0f - x), -sum)

/* Returns a dot product as a vector of partial sums: its lanes add up to the dot product. n is a multiple of BLOCK. */
VPPS_INLINE vector dot_lanes(uint32_t n, const float *x, const float *y) {
    vector lanes[LANES / VECTOR];
    for (uint32_t i = 0; i < LANES / VECTOR; i++) lanes[i] = (vector){0};
    uint32_t first = 0;
    for (; first + LANES <= n; first += LANES)
        for (uint32_t i = 0; i < LANES / VECTOR; i++)
            lanes[i] += vector_load(x + first + i * VECTOR) * vector_load(y + first + i * VECTOR);
    for (uint32_t i = 0; i < LANES / VECTOR; i++) /* compilers unroll this, so that lanes stay in registers */
        if (first + i * VECTOR < n)
            lanes[i] += vector_load(x + first + i * VECTOR) * vector_load(y + first + i * VECTOR);
    for (uint32_t width = LANES / VECTOR / 2; width > 0; width /= 2)
        for (uint32_t i = 0; i < width; i++) lanes[i] += lanes[i + width];
    return lanes[0];
}

static void dots(uint32_t count, uint32_t n, const float *const *x, const float *y, float *to) {
    uint32_t i = 0;
    for (; n % BLOCK == 0 && n <= RUN && i < count; i += VECTOR) {
        const uint32_t here = vpps_min_u32(count - i, VECTOR);
        vector sums[VECTOR];
        float pad[VECTOR];
        for (uint32_t j = 0; j < VECTOR; j++) sums[j] = j < here ? dot_lanes(n, x[i + j], y) : (vector){0};
        vector_store(pad, lane_sums_by_halves(sums));
        memcpy(to + i, pad, here * sizeof *to);
    }
    for (; i < count; i++) DOT_kernel(n, to + i, &(vpps_operands){.t = {x[i], y}});
}

/* ---------------------------------------------------------------- whole vectors: a sum, then element by element */

/* Computes s[0], the greatest element, and s[1], the sum of e^(x - greatest). */
static void prepare_softmax(uint32_t n, vpps_operands *o) {
    const float top = greatest(n, o->t[0]);
    SUM_OVER(o->s[1], n, o->t[0], o->t[0], exp_of(x - top));
    o->s[0] = top;
}

/* Sets f and s[0] so that softmax(x) = e^((x - f) - s[0]). Usually f is x[label], and s[0] stays the loss, as the caller has set it. A loss
 * above 100 is too inexact for this; then f becomes the greatest element, and s[0] the log of the sum of e^(x - f). */
static void prepare_cross_entropy(uint32_t n, vpps_operands *o) {
    o->f = o->t[0][o->u];
    if (!(o->s[0] > 100.0f)) return;
    vpps_operands all = *o;
    prepare_softmax(n, &all);
    o->f = all.s[0];
    o->s[0] = log_of(all.s[1]);
}

/* Computes s[0], the number of classes that violate the margin, and f = margin - x[label], for the hinge loss. */
static void prepare_hinge(uint32_t n, vpps_operands *o) {
    const float p = o->f - o->t[0][o->u];
    const uint32_t u = o->u;
    SUM_OVER(o->s[1], n, o->t[0], o->t[0], i != u && p + x > 0.0f ? 1.0f : 0.0f);
    o->f = p;
}

static void prepare_dot(uint32_t n, vpps_operands *o) { SUM_OVER(o->s[0], n, o->t[0], o->t[1], x * y); }
static void prepare_sum(uint32_t n, vpps_operands *o) { SUM_OVER(o->s[0], n, o->t[0], o->t[0], x); }

/* Computes s[0], the rounded mean, and s[1], the mean of x - s[0] (0 if not finite). */
static void prepare_centre(uint32_t n, vpps_operands *o) {
    prepare_sum(n, o);
    const float mean = o->s[0] / (float)n;
    SUM_OVER(o->s[1], n, o->t[0], o->t[0], x - mean);
    o->s[0] = mean;
    o->s[1] = finite_or_zero(o->s[1] / (float)n);
}

/* Computes s[0] = 1 / sqrt(mean of x^2 + f), where f is a small constant. */
static void prepare_norm(uint32_t n, vpps_operands *o) {
    SUM_OVER(o->s[0], n, o->t[0], o->t[0], x * x);
    o->s[0] = 1.0f / sqrtf(o->s[0] / (float)n + o->f);
}

/* Computes s[0] = 1 / sqrt(mean of x^2 + f) and s[1] = s[0]^2 * mean of x y, for RMS norm's derivative. y: gradient of the result. */
static void prepare_norm_backward(uint32_t n, vpps_operands *o) {
    prepare_norm(n, o);
    SUM_OVER(o->s[1], n, o->t[0], o->t[1], x * y);
    o->s[1] = o->s[0] * o->s[0] * (o->s[1] / (float)n);
}

ELEMENTWISE(SOFTMAX, 1, (prepare_softmax(n, &o), o.s[1] = 1.0f / o.s[1]), exp_of(x - o->s[0]) * o->s[1])
ELEMENTWISE(LOG_SOFTMAX, 1, (prepare_softmax(n, &o), o.s[1] = log_of(o.s[1])), (x - o->s[0]) - o->s[1])
ELEMENTWISE(SOFTMAX_B, 2, prepare_dot(n, &o), (y * (x - o->s[0])))
ELEMENTWISE(LOG_SOFTMAX_B, 2, prepare_sum(n, &o), x - exp_of(y) * o->s[0])
ELEMENTWISE(LOG_SUM_EXP_B, 1, (void)0, o->s[1] * exp_of(x - o->s[0]))
ELEMENTWISE(CENTRE, 1, prepare_centre(n, &o), (x - o->s[0]) - o->s[1])
ELEMENTWISE(RMS_NORM, 1, prepare_norm(n, &o), x * o->s[0])
ELEMENTWISE(RMS_NORM_B, 2, prepare_norm_backward(n, &o), o->s[0] * (y - x * o->s[1]))
/* The gradient is softmax(x), minus 1 at the label; this order of subtractions loses least precision. */
ELEMENTWISE(CROSS_ENTROPY_B, 1, prepare_cross_entropy(n, &o),
            o->s[1] * (exp_of((x - o->f) - o->s[0]) - (i == o->u ? 1.0f : 0.0f)))
ELEMENTWISE(SMOOTH_LABEL, 1, (o.s[0] = o.f / (float)n, o.f = 1.0f - o.f), x *(o->s[0] + (i == o->u ? o->f : 0.0f)))
ELEMENTWISE(HINGE_B, 1, (o.s[0] = -o.s[0], prepare_hinge(n, &o), o.s[1] *= o.s[0]),
            i == o->u         ? o->s[1]
            : o->f + x > 0.0f ? -o->s[0]
                              : 0.0f)

static void MATMUL_kernel(uint32_t n, float *dst, const vpps_operands *o) {
    (void)n;
    gemm(o->r, o->c, o->k, o->t[0], o->r, o->t[1], 1, o->k, dst, o->r);
}
static void MATMUL_NT_kernel(uint32_t n, float *dst, const vpps_operands *o) {
    (void)n;
    gemm(o->r, o->c, o->k, o->t[0], o->r, o->t[1], o->c, 1, dst, o->r);
}
static void MATMUL_TN_kernel(uint32_t n, float *dst, const vpps_operands *o) {
    (void)n;
    gemm_tn(o->k, o->c, o->r, o->t[0], o->k, o->t[1], o->k, dst, o->r);
}

static void TRANSPOSE_kernel(uint32_t n, float *dst, const vpps_operands *o) {
    (void)n;
    for (uint32_t col = 0; col < o->c; col++, dst += o->r)
        for (uint32_t row = 0; row < o->r; row++) dst[row] = o->t[0][col + (size_t)row * o->c];
}
ELEMENTWISE(RESHAPE, 1, (void)0, x)

static bool find_row(float number, uint32_t rows, uint32_t *row) {
    if (!(number >= 0.0f && number < (float)rows)) return false;
    *row = (uint32_t)number;
    return true;
}
static void SELECT_ROWS_kernel(uint32_t n, float *dst, const vpps_operands *o) {
    (void)n;
    for (uint32_t i = 0, row = 0; i < o->r; i++) {
        const bool found = find_row(o->t[1][i], o->k, &row);
        for (uint32_t col = 0; col < o->c; col++)
            dst[i + (size_t)col * o->r] = found ? o->t[0][row + (size_t)col * o->k] : NAN;
    }
}
/* Backward of SELECT_ROWS, which copies rows of a matrix: sums the gradients of each row's copies, in double, ROWS rows at a time. */
static void SELECT_ROWS_B_kernel(uint32_t n, float *dst, const vpps_operands *o) {
    enum { ROWS = 2048 };
    double totals[ROWS];
    (void)n;
    for (uint32_t col = 0; col < o->c; col++, dst += o->r) {
        for (uint32_t first = 0, row; first < o->r; first += ROWS) {
            const uint32_t rows = vpps_min_u32(o->r - first, ROWS);
            memset(totals, 0, rows * sizeof *totals);
            for (uint32_t i = 0; i < o->k; i++)
                if (find_row(o->t[0][i], o->r, &row) && row - first < rows)
                    totals[row - first] += (double)o->t[1][i + (size_t)col * o->k];
            for (uint32_t i = 0; i < rows; i++) dst[first + i] = (float)totals[i];
        }
    }
}

/* ---------------------------------------------------------------- parameters */

static void add(uint32_t n, float *dst, const float *x) {
#pragma omp simd
    for (uint32_t i = 0; i < n; i++) dst[i] += x[i];
}

/* Returns the factor of vector m in a sum: the scalar of pair m for add_scaled, 1 for add_up, which does not scale vectors. */
VPPS_INLINE float factor_of(const bool scaled, const float *pool, const uint32_t *at, uint32_t m) {
    return scaled ? pool[at[2 * (size_t)m]] : 1.0f;
}
VPPS_INLINE const float *vector_at(const bool scaled, const float *pool, const uint32_t *at, uint32_t m) {
    return pool + at[scaled ? 2 * (size_t)m + 1 : m];
}

VPPS_INLINE void add_up_block(const uint32_t vectors, const bool scaled, uint32_t count, const float *pool,
                              const uint32_t *at, uint32_t skip, bool add, float *to) {
    vector sums[LIST];
    double totals[LIST * VECTOR];
    const float *first = vector_at(scaled, pool, at, 0) + skip;
    for (uint32_t i = 0; i < vectors; i++)
        sums[i] = add ? vector_load(to + i * VECTOR) : factor_of(scaled, pool, at, 0) * vector_load(first + i * VECTOR);
    for (uint32_t m = add ? 0 : 1; m < count; m++) {
        const float by = factor_of(scaled, pool, at, m), *x = vector_at(scaled, pool, at, m) + skip;
        if (m && m % LIST_RUN == 0) end_list_run(vectors, m == LIST_RUN, sums, totals);
        for (uint32_t i = 0; i < vectors; i++) sums[i] = sums[i] + by * vector_load(x + i * VECTOR);
    }
    if (count > LIST_RUN) end_list(vectors, sums, totals);
    for (uint32_t i = 0; i < vectors; i++) vector_store(to + i * VECTOR, sums[i]);
}

VPPS_INLINE void add_up_blocks(const bool scaled, uint32_t n, uint32_t count, const float *pool, const uint32_t *at,
                               uint32_t skip, bool add, float *to) {
    uint32_t e = 0;
    for (; e + LIST * VECTOR <= n; e += LIST * VECTOR)
        add_up_block(LIST, scaled, count, pool, at, skip + e, add, to + e);
    for (; e + VECTOR <= n; e += VECTOR) add_up_block(1, scaled, count, pool, at, skip + e, add, to + e);
    for (; e < n; e++) {
        double total = 0;
        float sum = add ? to[e] : factor_of(scaled, pool, at, 0) * vector_at(scaled, pool, at, 0)[skip + e];
        for (uint32_t m = add ? 0 : 1; m < count; m++) {
            if (m && m % LIST_RUN == 0) total += (double)sum, sum = 0;
            sum = sum + factor_of(scaled, pool, at, m) * vector_at(scaled, pool, at, m)[skip + e];
        }
        to[e] = count > LIST_RUN ? (float)(total + (double)sum) : sum;
    }
}

static void add_up(uint32_t n, uint32_t count, const float *pool, const uint32_t *offsets, uint32_t skip, float *to) {
    add_up_blocks(false, n, count, pool, offsets, skip, false, to);
}
static void add_scaled(uint32_t n, uint32_t count, const float *pool, const uint32_t *pairs, uint32_t skip, bool add,
                       float *to) {
    add_up_blocks(true, n, count, pool, pairs, skip, add, to);
}

static double sum_squares(size_t n, const float *x) {
    typedef double doubles __attribute__((vector_size(BLOCK / 2 * sizeof(double)), may_alias));
    doubles low = {0}, high = {0}; /* of a vector type, so that compilers keep the sums in registers */
    double lanes[BLOCK] __attribute__((aligned(sizeof(doubles))));
    float pad[BLOCK] = {0};
    for (size_t first = 0; first < n; first += BLOCK) {
        const float *xs = x + first;
        if (n - first < BLOCK) xs = memcpy(pad, xs, (n - first) * sizeof(*pad));
#pragma omp simd
        for (uint32_t j = 0; j < BLOCK; j++) lanes[j] = (double)xs[j] * (double)xs[j];
        low += *(const doubles *)lanes;
        high += *(const doubles *)(lanes + BLOCK / 2);
    }
    *(doubles *)lanes = low + high;
    for (uint32_t width = BLOCK / 4; width > 0; width /= 2)
        for (uint32_t j = 0; j < width; j++) lanes[j] += lanes[j + width];
    return lanes[0];
}

/* Updates one block of 16 weights. The callers pass a constant for `kind`. */
VPPS_INLINE void update_block(uint32_t kind, const vpps_step *step, float *w, const float *gradient, float *s0,
                              float *s1) {
    switch (kind) {
#define X(id, name, states, lr)                                                                                        \
    case VPPS_##id:                                                                                                    \
        _Pragma("omp simd") for (uint32_t j = 0; j < BLOCK; j++) step_##id(                                            \
            step, step->scale *gradient[j], &w[j], (states) > 0 ? &s0[j] : NULL, (states) > 1 ? &s1[j] : NULL);        \
        break;
        VPPS_OPTIMIZER_TABLE(X)
#undef X
    default: break;
    }
}

VPPS_INLINE void update_blocks(uint32_t kind, size_t n, const vpps_step *given, float *w, const float *g, float *s0,
                               float *s1) {
    static const uint32_t states_of[] = {
#define X(id, name, states, lr) states,
        VPPS_OPTIMIZER_TABLE(X)
#undef X
    };
    const uint32_t states = states_of[kind];
    const vpps_step step = *given; /* a copy: the compiler must assume that the stores change *given */
    size_t first = 0;
    for (; first + BLOCK <= n; first += BLOCK)
        update_block(kind, &step, w + first, g + first, states > 0 ? s0 + first : s0, states > 1 ? s1 + first : s1);
    if (first == n) return;
    float pad[4][BLOCK];
    const size_t bytes = (n - first) * sizeof(*w);
    padded(pad[0], w + first, n - first);
    padded(pad[1], g + first, n - first);
    if (states > 0) padded(pad[2], s0 + first, n - first);
    if (states > 1) padded(pad[3], s1 + first, n - first);
    update_block(kind, &step, pad[0], pad[1], pad[2], pad[3]);
    memcpy(w + first, pad[0], bytes);
    if (states > 0) memcpy(s0 + first, pad[2], bytes);
    if (states > 1) memcpy(s1 + first, pad[3], bytes);
}

static void update(size_t n, const vpps_step *step, float *w, const float *g, float *s0, float *s1) {
    switch (step->kind) {
#define X(id, name, states, lr)                                                                                        \
    case VPPS_##id: update_blocks(VPPS_##id, n, step, w, g, s0, s1); break;
        VPPS_OPTIMIZER_TABLE(X)
#undef X
    }
}

/* ---------------------------------------------------------------- the table */

#define KERNEL_EW(id) id##_kernel
#define KERNEL_REDUCE(id) id##_kernel
#define KERNEL_ROW(id) id##_kernel
#define KERNEL_MATMUL(id) id##_kernel
#define KERNEL_MOVE(id) id##_kernel
#define KERNEL_PARTS(id) NULL
#define KERNEL_DECIDED(id) NULL
#define KERNEL_WEIGHTS(id) NULL

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define TEXT_(a) #a
#define TEXT(a) TEXT_(a)

extern const vpps_kernels JOIN(vpps_kernels_, VPPS_KERNELS_ISA);
const vpps_kernels JOIN(vpps_kernels_, VPPS_KERNELS_ISA) = {
    .isa = TEXT(VPPS_KERNELS_ISA),
    .run =
        {
#define INSTR(id, form, ...) [VPPS_I_##id] = KERNEL_##form(id),
#include "isa/isa.def"
#undef INSTR
        },
    .product = product,
    .product_t = product_t,
    .outer_vectors = OUTER_VECTORS,
    .outer_stride = outer_stride,
    .pack_outer = pack_outer,
    .outer = outer,
    .pack_bf16 = pack_bf16,
    .product_bf16 = product_bf16,
    .dots = dots,
    .add = add,
    .add_up = add_up,
    .add_scaled = add_scaled,
    .sum_squares = sum_squares,
    .update = update,
    .transpose = transpose,
};
