/* gemm.h - matrix products and transposition for kernels.c, with the compiler's vector types. Matrices are stored by columns.
 *
 * An element of a product is one chain of multiply-adds over k in rising order, whatever the number of columns and wherever it lies, so the
 * scheduler's grouping of vectors does not change a bit. */
#pragma once

#include "runtime/cpu/math.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__ARM_FEATURE_FMA)
#include <arm_neon.h>
#endif

#if defined(__AVX512F__) || defined(__aarch64__)
#define VECTOR_REGISTERS 32
#else
#define VECTOR_REGISTERS 16
#endif

#if defined(__AVX512F__)
enum { VECTOR = 16 };
#elif defined(__AVX2__)
enum { VECTOR = 8 };
#else
enum { VECTOR = 4 };
#endif

typedef float vector __attribute__((vector_size(VECTOR * sizeof(float))));
typedef float vector_in_memory __attribute__((vector_size(VECTOR * sizeof(float)), aligned(sizeof(float)), may_alias));

VPPS_INLINE vector vector_load(const float *x) { return *(const vector_in_memory *)x; }
VPPS_INLINE vector vector_multiply_add(vector a, vector b, vector c) {
#if defined(__AVX512F__)
    return _mm512_fmadd_ps(a, b, c);
#elif defined(__AVX2__)
    return _mm256_fmadd_ps(a, b, c);
#elif defined(__ARM_FEATURE_FMA)
    return (vector)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
    return a * b + c;
#endif
}
VPPS_INLINE vector vector_of(float x) { return x - (vector){0}; }
VPPS_INLINE void vector_store(float *x, vector v) { *(vector_in_memory *)x = v; }

/* Returns v. Makes compilers keep v in a register instead of loading it for each use. */
VPPS_INLINE vector vector_held(vector v) {
#if defined(__AVX512F__)
    __asm__("" : "+v"(v));
#elif defined(__x86_64__)
    __asm__("" : "+x"(v));
#elif defined(__aarch64__)
    __asm__("" : "+w"(v));
#endif
    return v;
}

/* ---------------------------------------------------------------- C = A B, C = A B^T
 *
 * A tile of C, some vectors high and some columns wide, stays in registers while k runs. The heights that fit depend
 * on the width: a single column needs many vectors to hide the multiply-adds' latency and to read long runs of A. */

enum {
    MAX_COLUMNS = 6,
    SUM_RUN = 1024, /* number of terms that are summed in one chain of multiply-adds */
    /* number of terms (k) added at a time, so that the rows of A in use stay in L1 for all columns of B */
    K_CHUNK = 96,
    TALLEST = 8
};

VPPS_INLINE uint32_t tile_height(uint32_t columns) {
    if (VECTOR_REGISTERS == 32) return columns <= 3 ? 8 : 4;
    return columns == 1 ? 8 : columns <= 3 ? 4 : 2;
}

/* Computes one tile of C = A B. Element (p, j) of B is b[p * b_k + j * b_n]. The callers pass constants for height and columns. */
VPPS_INLINE void tile(const uint32_t height, const uint32_t columns, uint32_t k, const float *a, size_t lda,
                      const float *b, size_t b_k, size_t b_n, float *c, size_t ldc, bool accumulate) {
    vector sum[MAX_COLUMNS][TALLEST];
    for (uint32_t j = 0; j < columns; j++)
        for (uint32_t i = 0; i < height; i++)
            sum[j][i] = accumulate ? vector_load(c + i * VECTOR + j * ldc) : (vector){0};
    for (uint32_t p = 0; p < k; p++, a += lda, b += b_k) {
        if (height > columns) { /* holds B's few elements in registers, and loads A's vectors one by one */
            vector other[MAX_COLUMNS];
            for (uint32_t j = 0; j < columns; j++) other[j] = vector_of(b[j * b_n]);
            for (uint32_t i = 0; i < height; i++) {
                const vector part = vector_held(vector_load(a + i * VECTOR));
                for (uint32_t j = 0; j < columns; j++) sum[j][i] = vector_multiply_add(part, other[j], sum[j][i]);
            }
            continue;
        }
        vector column[TALLEST];
        for (uint32_t i = 0; i < height; i++) column[i] = vector_load(a + i * VECTOR);
        for (uint32_t j = 0; j < columns; j++)
            for (uint32_t i = 0; i < height; i++)
                sum[j][i] = vector_multiply_add(column[i], vector_of(b[j * b_n]), sum[j][i]);
    }
    for (uint32_t j = 0; j < columns; j++)
        for (uint32_t i = 0; i < height; i++) vector_store(c + i * VECTOR + j * ldc, sum[j][i]);
}

VPPS_INLINE void tile_of(uint32_t height, uint32_t columns, uint32_t k, const float *a, size_t lda, const float *b,
                         size_t b_k, size_t b_n, float *c, size_t ldc, bool accumulate) {
#define TILE(h, n)                                                                                                     \
    case n:                                                                                                            \
        if ((h) <= tile_height(n)) tile(h, n, k, a, lda, b, b_k, b_n, c, ldc, accumulate);                             \
        break;
#define TILES(h)                                                                                                       \
    case h:                                                                                                            \
        switch (columns) { TILE(h, 1) TILE(h, 2) TILE(h, 3) TILE(h, 4) TILE(h, 5) TILE(h, 6) }                         \
        break;
    switch (height) { TILES(1) TILES(2) TILES(4) TILES(8) }
#undef TILES
#undef TILE
}

VPPS_INLINE void gemm_run(uint32_t m, uint32_t n, uint32_t k, const float *a, size_t lda, const float *b, size_t b_k,
                          size_t b_n, float *c, size_t ldc) {
    if (k == 0)
        for (uint32_t j = 0; j < n; j++) memset(c + j * ldc, 0, m * sizeof(*c));
    /* The columns of C are divided into groups of almost equal width, so that no group has a single column. For small k, where moving C
     * dominates, groups are at most 2 wide, so that tiles are tall and C is traversed in long runs. */
    const uint32_t widest = k <= 8 ? 2 : MAX_COLUMNS, groups = (n + widest - 1) / widest, whole = m - m % VECTOR;
    for (uint32_t p = 0, step; p < k; p += step) {
        step = groups > 1 || m > whole ? vpps_min_u32(k - p, K_CHUNK) : k;
        const bool add_to = p > 0;
        const float *a_p = a + p * lda, *b_p = b + p * b_k;
        for (uint32_t i = 0, height = tile_height((n + groups - 1) / groups); i < whole; i += height * VECTOR) {
            while (height * VECTOR > whole - i) height /= 2;
            for (uint32_t group = 0, j = 0, columns; group < groups; group++, j += columns) {
                columns = n / groups + (group < n % groups);
                tile_of(height, columns, step, a_p + i, lda, b_p + j * b_n, b_k, b_n, c + i + j * ldc, ldc, add_to);
            }
        }
        if (whole == m) continue;
        /* The last rows, fewer than a vector has lanes, are computed with copies of A's and C's rows. */
        float rows_a[K_CHUNK * VECTOR], rows_c[MAX_COLUMNS * VECTOR];
        const uint32_t rest = m - whole;
        for (uint32_t q = 0; q < step; q++)
            for (uint32_t i = 0; i < VECTOR; i++) rows_a[q * VECTOR + i] = i < rest ? a_p[whole + i + q * lda] : 0.0f;
        for (uint32_t group = 0, j = 0, columns; group < groups; group++, j += columns) {
            columns = n / groups + (group < n % groups);
            float *c_j = c + whole + j * ldc;
            for (uint32_t q = 0; q < columns; q++)
                for (uint32_t i = 0; i < VECTOR; i++)
                    rows_c[q * VECTOR + i] = i < rest && add_to ? c_j[i + q * ldc] : 0.0f;
            tile_of(1, columns, step, rows_a, VECTOR, b_p + j * b_n, b_k, b_n, rows_c, VECTOR, add_to);
            for (uint32_t q = 0; q < columns; q++) memcpy(c_j + q * ldc, rows_c + q * VECTOR, rest * sizeof(*c));
        }
    }
}

/* Adds the matrix `part` to c (m x n); their columns are ldp and ldc apart. */
static void add_columns(uint32_t m, uint32_t n, const float *part, size_t ldp, float *c, size_t ldc) {
    for (uint32_t j = 0; j < n; j++)
        for (uint32_t i = 0; i < m; i++) c[i + j * ldc] += part[i + j * ldp];
}

/* Multiplies matrices for any k: sums SUM_RUN terms at a time, and adds up these sums. */
VPPS_INLINE void gemm(uint32_t m, uint32_t n, uint32_t k, const float *a, size_t lda, const float *b, size_t b_k,
                      size_t b_n, float *c, size_t ldc) {
    enum { ROWS = 64, COLUMNS = 8 * MAX_COLUMNS };
    float part[ROWS * COLUMNS];
    for (uint32_t p = 0, rows, columns; p < k || !p; p += SUM_RUN)
        for (uint32_t i = 0; i < m; i += rows) {
            rows = p ? vpps_min_u32(m - i, ROWS) : m;
            for (uint32_t j = 0; j < n; j += columns) {
                columns = p ? vpps_min_u32(n - j, COLUMNS) : n;
                gemm_run(rows, columns, vpps_min_u32(k - p, SUM_RUN), a + i + p * lda, lda, b + p * b_k + j * b_n, b_k,
                         b_n, p ? part : c, p ? ROWS : ldc);
                if (p) add_columns(rows, columns, part, ROWS, c + i + j * ldc, ldc);
            }
        }
}

/* ---------------------------------------------------------------- lanes against vectors
 *
 * With d a power of two, SHUFFLE_LOW takes lane i from x where i has bit d clear, else lane i - d of y;
 * SHUFFLE_HIGH takes lane i + d of x, or lane i of y. Doing so for pairs of vectors d apart and every d transposes;
 * adding the two halves up instead leaves the sum of vector i in lane i. */

#define LOW(d, i) (((i) & (d)) ? VECTOR + (i) - (d) : (i))
#define HIGH(d, i) (((i) & (d)) ? VECTOR + (i) : (i) + (d))
#define LANES4(F, d, i) F(d, i), F(d, (i) + 1), F(d, (i) + 2), F(d, (i) + 3)
#if defined(__AVX512F__)
#define ALL_LANES(F, d) LANES4(F, d, 0), LANES4(F, d, 4), LANES4(F, d, 8), LANES4(F, d, 12)
#elif defined(__AVX2__)
#define ALL_LANES(F, d) LANES4(F, d, 0), LANES4(F, d, 4)
#else
#define ALL_LANES(F, d) LANES4(F, d, 0)
#endif
#if defined(__clang__) || __GNUC__ >= 12
#define SHUFFLE_LOW(x, y, d) __builtin_shufflevector(x, y, ALL_LANES(LOW, d))
#define SHUFFLE_HIGH(x, y, d) __builtin_shufflevector(x, y, ALL_LANES(HIGH, d))
#else
typedef int32_t lane_numbers __attribute__((vector_size(VECTOR * sizeof(int32_t))));
#define SHUFFLE_LOW(x, y, d) __builtin_shuffle(x, y, (lane_numbers){ALL_LANES(LOW, d)})
#define SHUFFLE_HIGH(x, y, d) __builtin_shuffle(x, y, (lane_numbers){ALL_LANES(HIGH, d)})
#endif

/* Returns a vector whose lane i is the sum of v[i]'s lanes. Overwrites v. */
VPPS_INLINE vector lane_sums(vector *v) {
#define HALVE(d)                                                                                                       \
    for (uint32_t i = 0; i < VECTOR / 2 / (d); i++)                                                                    \
        v[i] = SHUFFLE_LOW(v[2 * i], v[2 * i + 1], d) + SHUFFLE_HIGH(v[2 * i], v[2 * i + 1], d);
    HALVE(1)
    HALVE(2)
#if defined(__AVX2__)
    HALVE(4)
#endif
#if defined(__AVX512F__)
    HALVE(8)
#endif
#undef HALVE
    return v[0];
}

/* Returns the same sums as lane_sums, but adds each vector's upper half to its lower half until one lane is left. */
VPPS_INLINE vector lane_sums_by_halves(vector *v) {
#define HALVE(d)                                                                                                       \
    for (uint32_t i = 0; i < (d); i++) v[i] = SHUFFLE_LOW(v[i], v[i + (d)], d) + SHUFFLE_HIGH(v[i], v[i + (d)], d);
#if defined(__AVX512F__)
    HALVE(8)
#endif
#if defined(__AVX2__)
    HALVE(4)
#endif
    HALVE(2)
    HALVE(1)
#undef HALVE
    return v[0];
}

VPPS_INLINE void transpose_square(vector *v) {
#define EXCHANGE(d)                                                                                                    \
    for (uint32_t i = 0; i < VECTOR; i++)                                                                              \
        if (!(i & (d))) {                                                                                              \
            const vector low = SHUFFLE_LOW(v[i], v[i + (d)], d), high = SHUFFLE_HIGH(v[i], v[i + (d)], d);             \
            v[i] = low;                                                                                                \
            v[i + (d)] = high;                                                                                         \
        }
    EXCHANGE(1)
    EXCHANGE(2)
#if defined(__AVX2__)
    EXCHANGE(4)
#endif
#if defined(__AVX512F__)
    EXCHANGE(8)
#endif
#undef EXCHANGE
}

/* ---------------------------------------------------------------- C = A^T B, transposition */

/* Computes VECTOR elements of C = A^T B at once: `width` columns of A with VECTOR / width columns of B; elements of one column of B are
 * adjacent. If B has fewer columns, repeats its last one, without storing the results. Not `ragged`: A has `width` columns, and all columns
 * have a multiple of VECTOR elements (m); only in this case are the sums kept in registers. The callers pass constants for width and ragged. */
VPPS_INLINE void products(const uint32_t width, const bool ragged, uint32_t n, uint32_t k, uint32_t m, const float *a,
                          size_t lda, const float *b, size_t ldb, float *c, size_t ldc, bool accumulate) {
    const uint32_t others = VECTOR / width;
    const float *bs[VECTOR];
    vector sum[VECTOR];
    for (uint32_t i = 0; i < VECTOR; i++) sum[i] = (vector){0};
    for (uint32_t j = 0; j < others; j++) bs[j] = b + vpps_min_u32(j, n - 1) * ldb;
#define COLUMN(p) (a + (ragged ? vpps_min_u32(p, k - 1) : (p)) * lda)
    const uint32_t whole = m - m % VECTOR;
    const uint32_t streams = width < 4 ? width : 4; /* columns of A that are read in parallel; more are slower */
    for (uint32_t first = 0; first < width; first += streams)
        for (uint32_t r = 0; r < whole; r += VECTOR) {
            vector other[VECTOR];
            for (uint32_t j = 0; j < others; j++) other[j] = vector_load(bs[j] + r);
            for (uint32_t p = first; p < first + streams; p++) {
                const vector column = vector_load(COLUMN(p) + r), once = others > 1 ? vector_held(column) : column;
                for (uint32_t j = 0; j < others; j++)
                    sum[j * width + p] = vector_multiply_add(once, other[j], sum[j * width + p]);
            }
        }
    if (ragged && whole < m) {
        float pads[VECTOR][VECTOR] = {{0}}, pad[VECTOR] = {0};
        for (uint32_t p = 0; p < width; p++) memcpy(pads[p], COLUMN(p) + whole, (m - whole) * sizeof(*a));
        for (uint32_t j = 0; j < others; j++) {
            memcpy(pad, bs[j] + whole, (m - whole) * sizeof(*b));
            for (uint32_t p = 0; p < width; p++)
                sum[j * width + p] = vector_multiply_add(vector_load(pads[p]), vector_load(pad), sum[j * width + p]);
        }
    }
#undef COLUMN
    const vector totals = lane_sums(sum);
    if (width == VECTOR && !ragged) {
        vector_store(c, accumulate ? vector_load(c) + totals : totals);
        return;
    }
    float sums[VECTOR];
    vector_store(sums, totals);
    const uint32_t count = ragged ? vpps_min_u32(width, k) : width;
    for (uint32_t j = 0; j < others && j < n; j++)
        for (uint32_t p = 0; p < count; p++) {
            float *to = c + p + j * ldc;
            *to = accumulate ? *to + sums[j * width + p] : sums[j * width + p];
        }
}

VPPS_INLINE void all_products(const uint32_t width, uint32_t m, uint32_t n, uint32_t k, const float *a, size_t lda,
                              const float *b, size_t ldb, float *c, size_t ldc, bool accumulate) {
    for (uint32_t p = 0; p < k; p += width, a += width * lda, c += width) {
        const float *b_j = b;
        float *c_j = c;
        for (uint32_t j = 0; j < n; j += VECTOR / width, b_j += VECTOR / width * ldb, c_j += VECTOR / width * ldc) {
            if (k - p < width || m % VECTOR)
                products(width, true, n - j, k - p, m, a, lda, b_j, ldb, c_j, ldc, accumulate);
            else
                products(width, false, n - j, k - p, m, a, lda, b_j, ldb, c_j, ldc, accumulate);
        }
    }
}

static void gemm_tn_run(uint32_t m, uint32_t n, uint32_t k, const float *a, size_t lda, const float *b, size_t ldb,
                        float *c, size_t ldc, bool accumulate) {
    if (n == 1)
        all_products(VECTOR, m, n, k, a, lda, b, ldb, c, ldc, accumulate);
    else if (n == 2 || VECTOR < 16)
        all_products(VECTOR / 2, m, n, k, a, lda, b, ldb, c, ldc, accumulate);
    else
        all_products(VECTOR / 4, m, n, k, a, lda, b, ldb, c, ldc, accumulate);
}

static void gemm_tn(uint32_t m, uint32_t n, uint32_t k, const float *a, size_t lda, const float *b, size_t ldb,
                    float *c, size_t ldc) {
    uint32_t first = 0;
    do gemm_tn_run(vpps_min_u32(m - first, SUM_RUN), n, k, a + first, lda, b + first, ldb, c, ldc, first > 0);
    while ((first += SUM_RUN) < m);
}

static void transpose(uint32_t rows, uint32_t cols, const float *a, size_t lda, float *b, size_t ldb) {
    for (uint32_t i = 0; i < rows; i += VECTOR)
        for (uint32_t j = 0; j < cols; j += VECTOR) {
            if (i + VECTOR <= rows && j + VECTOR <= cols) {
                vector v[VECTOR];
                for (uint32_t q = 0; q < VECTOR; q++) v[q] = vector_load(a + i + (j + q) * lda);
                transpose_square(v);
                for (uint32_t q = 0; q < VECTOR; q++) vector_store(b + j + (i + q) * ldb, v[q]);
                continue;
            }
            for (uint32_t q = j; q < cols && q < j + VECTOR; q++)
                for (uint32_t r = i; r < rows && r < i + VECTOR; r++) b[q + r * ldb] = a[r + q * lda];
        }
}
