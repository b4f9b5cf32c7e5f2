/* products.h - products of a matrix's blocks with vectors at any addresses, for kernels.c.
 *
 * A block is some rows (at most BLOCK_ROWS) of a matrix, stored by columns and padded with zero rows to whole vectors:
 * element (r, k) at a[k * ld + r]. Vectors are given by pointers, so a product's input need not be gathered first.
 *
 * An element of a result is one chain of multiply-adds in a fixed order, whatever the number of vectors; a sum of more
 * than SUM_RUN terms (gemm.h) has one chain per run. */
#pragma once

#include "runtime/cpu/gemm.h"

enum { PRODUCT_COLUMNS = 6, PRODUCT_HEIGHT = VECTOR_REGISTERS == 32 ? 4 : 2, CHUNK = 128, LINE_BYTES = 64 };

/* ---------------------------------------------------------------- C = B + A X */

/* Initial values of a product's sums: vectors that are ld apart, or a single one if ld is 0; zeros if `at` is NULL. */
typedef struct product_start {
    const float *at;
    size_t ld;
} product_start;

/* Sets the sums of a tile (height * VECTOR rows, `columns` columns) to `start`. If `ragged`, only `tail` of the last VECTOR rows exist. */
VPPS_INLINE void product_begin(const uint32_t height, const uint32_t columns, const bool ragged, product_start start,
                               uint32_t tail, vector sum[PRODUCT_COLUMNS][PRODUCT_HEIGHT]) {
    for (uint32_t j = 0; j < columns; j++) {
        for (uint32_t i = 0; i < height; i++) {
            if (!start.at) {
                sum[j][i] = (vector){0};
            } else if (ragged && i + 1 == height) {
                float pad[VECTOR] = {0};
                memcpy(pad, start.at + j * start.ld + (size_t)i * VECTOR, tail * sizeof *pad);
                sum[j][i] = vector_load(pad);
            } else {
                sum[j][i] = vector_load(start.at + j * start.ld + (size_t)i * VECTOR);
            }
        }
    }
}

VPPS_INLINE void product_end(const uint32_t height, const uint32_t columns, const bool ragged,
                             vector sum[PRODUCT_COLUMNS][PRODUCT_HEIGHT], float *c, size_t ldc, uint32_t tail) {
    for (uint32_t j = 0; j < columns; j++) {
        for (uint32_t i = 0; i < height; i++) {
            if (ragged && i + 1 == height) {
                float pad[VECTOR];
                vector_store(pad, sum[j][i]);
                memcpy(c + j * ldc + (size_t)i * VECTOR, pad, tail * sizeof *pad);
            } else {
                vector_store(c + j * ldc + (size_t)i * VECTOR, sum[j][i]);
            }
        }
    }
}

/* Multiplies height * VECTOR matrix rows with `columns` vectors x, for elements [first, end) of x. Of the last VECTOR rows, only the
 * results of `tail` are stored (ragged: fewer than VECTOR). For each element, prefetches a cache line, from `ahead` on. The callers pass
 * constants for height, columns, ragged. */
VPPS_INLINE void product_tile(const uint32_t height, const uint32_t columns, const bool ragged, uint32_t first,
                              uint32_t end, const float *a, size_t ld, const float *const *x, uint32_t skip,
                              product_start start, float *c, size_t ldc, uint32_t tail, uintptr_t ahead) {
    vector sum[PRODUCT_COLUMNS][PRODUCT_HEIGHT];
    const float *xs[PRODUCT_COLUMNS];
    product_begin(height, columns, ragged, start, tail, sum);
    for (uint32_t j = 0; j < columns; j++) {
        xs[j] = x[j] + skip;
        /* results are rarely in L2 */
        for (uint32_t i = 0; i < height && start.at != c; i++) __builtin_prefetch(c + j * ldc + (size_t)i * VECTOR, 1);
    }
    const float *column = a + first * ld;
    for (uint32_t k = first; k < end; k++, column += ld, ahead += LINE_BYTES) {
        __builtin_prefetch((const void *)ahead, 0, 2); /* a prefetch may use any address */
        vector rows[PRODUCT_HEIGHT];
        for (uint32_t i = 0; i < height; i++) rows[i] = vector_held(vector_load(column + (size_t)i * VECTOR));
        for (uint32_t j = 0; j < columns; j++) {
            const vector element = vector_of(xs[j][k]);
            for (uint32_t i = 0; i < height; i++) sum[j][i] = vector_multiply_add(rows[i], element, sum[j][i]);
        }
    }
    product_end(height, columns, ragged, sum, c, ldc, tail);
}

VPPS_INLINE void product_columns(const uint32_t height, uint32_t columns, bool ragged, uint32_t first, uint32_t end,
                                 const float *a, size_t ld, const float *const *x, uint32_t skip, product_start start,
                                 float *c, size_t ldc, uint32_t tail, uintptr_t ahead) {
#define TILE(n)                                                                                                        \
    case n:                                                                                                            \
        if (ragged)                                                                                                    \
            product_tile(height, n, true, first, end, a, ld, x, skip, start, c, ldc, tail, ahead);                     \
        else                                                                                                           \
            product_tile(height, n, false, first, end, a, ld, x, skip, start, c, ldc, tail, ahead);                    \
        break;
    switch (columns) { TILE(1) TILE(2) TILE(3) TILE(4) TILE(5) TILE(6) }
#undef TILE
}

/* Computes n vectors c + j * ldc (m elements): a block (m x k) times the vector at x[j] + skip, plus a start vector at from + j * ld_from.
 * `from` NULL: zeros; c is allowed. ld_from 0: one start for all. Prefetches from `next`, which the caller reads afterwards. */
static void product_run(uint32_t m, uint32_t n, uint32_t k, const float *a, size_t ld, const float *const *x,
                        uint32_t skip, const float *from, size_t ld_from, float *c, size_t ldc, const float *next) {
    const uint32_t groups = (n + PRODUCT_COLUMNS - 1) / PRODUCT_COLUMNS;
    uintptr_t ahead = (uintptr_t)next;
    for (uint32_t row = 0; row < m; row += PRODUCT_HEIGHT * VECTOR) {
        const uint32_t rows = vpps_min_u32(m - row, PRODUCT_HEIGHT * VECTOR);
        const uint32_t height = (rows + VECTOR - 1) / VECTOR, tail = rows - (height - 1) * VECTOR;
        const bool ragged = tail < VECTOR;
        for (uint32_t first = 0, end; first < k || !first; first = end) {
            end = groups > 1 ? vpps_min_u32(k, first + CHUNK) : k;
            for (uint32_t group = 0, j = 0, columns; group < groups; group++, j += columns) {
                columns = n / groups + (group < n % groups);
                float *to = c + j * ldc + row;
                product_start start = {to, ldc};
                if (!first) start = (product_start){from ? from + j * ld_from + row : NULL, ld_from};
#define HEIGHT(h)                                                                                                      \
    case h:                                                                                                            \
        product_columns(h, columns, ragged, first, end, a + row, ld, x + j, skip, start, to, ldc, tail, ahead);        \
        break;
                switch (height) {
                    HEIGHT(1)
                    HEIGHT(2)
#if VECTOR_REGISTERS == 32
                    HEIGHT(3)
                    HEIGHT(4)
#endif
                }
#undef HEIGHT
                ahead += (uintptr_t)(end - first) * LINE_BYTES;
            }
            if (!end) break;
        }
    }
}

/* Multiplies a block with vectors for any k: sums SUM_RUN columns at a time, and adds up these sums. */
static void product(uint32_t m, uint32_t n, uint32_t k, const float *a, size_t ld, const float *const *x, uint32_t skip,
                    const float *from, size_t ld_from, float *c, size_t ldc, const float *next) {
    enum { ROWS = PRODUCT_HEIGHT * VECTOR, COLUMNS = 8 * PRODUCT_COLUMNS };
    float part[ROWS * COLUMNS];
    product_run(m, n, vpps_min_u32(k, SUM_RUN), a, ld, x, skip, from, ld_from, c, ldc, next);
    for (uint32_t first = SUM_RUN; first < k; first += SUM_RUN)
        for (uint32_t i = 0; i < m; i += ROWS)
            for (uint32_t j = 0; j < n; j += COLUMNS) {
                const uint32_t rows = vpps_min_u32(m - i, ROWS), columns = vpps_min_u32(n - j, COLUMNS);
                product_run(rows, columns, vpps_min_u32(k - first, SUM_RUN), a + i + first * ld, ld, x + j,
                            skip + first, NULL, 0, part, ROWS, next);
                add_columns(rows, columns, part, ROWS, c + i + j * ldc, ldc);
            }
}

/* ---------------------------------------------------------------- C (+)= sum of A^T D
 *
 * A tile is `width` columns of the blocks times `others` vectors d: width * others <= VECTOR sums, which stay in registers while all
 * terms' rows pass, VECTOR rows at a time. The lanes of each sum are added up at the end. */

enum { PRODUCT_T_VECTORS = VECTOR == 16 ? 4 : 2 /* most vectors (columns of D) in one tile of the product A^T D */ };

/* Adds the products of VECTOR (SIMD width) rows to the sums of a tile of A^T D: column p of A, at columns + p * ld,
 * times column j of D, d[j]. */
VPPS_INLINE void product_t_rows(const uint32_t width, const uint32_t others, uint32_t last, const float *columns,
                                size_t ld, const vector d[PRODUCT_T_VECTORS], vector sum[VECTOR]) {
#pragma GCC unroll 16
    for (uint32_t p = 0; p < width; p++) {
        const vector column = vector_held(vector_load(columns + vpps_min_u32(p, last) * ld));
#pragma GCC unroll 4
        for (uint32_t j = 0; j < others; j++)
            sum[j * width + p] = vector_multiply_add(column, d[j], sum[j * width + p]);
    }
}

/* Computes a tile of A^T D: rows k_first + p and columns j0 + j, for p < count <= width and j < others. The columns of D are vectors. The
 * callers pass constants for width and others, and for count if it equals width. */
VPPS_INLINE void product_t_tile(const uint32_t width, const uint32_t others, uint32_t count, uint32_t k_first,
                                uint32_t n_terms, const vpps_product_term *terms, uint32_t j0, float *c, size_t ldc,
                                bool add) {
    vector sum[VECTOR], d[PRODUCT_T_VECTORS];
    float sums[VECTOR];
    for (uint32_t i = 0; i < VECTOR; i++) sum[i] = (vector){0};
    for (uint32_t t = 0; t < n_terms; t++) {
        const vpps_product_term *term = &terms[t];
        const float *columns = term->a + (size_t)k_first * term->ld, *ds[PRODUCT_T_VECTORS];
        uint32_t r = 0;
        for (uint32_t j = 0; j < others; j++) ds[j] = term->x[j0 + j] + term->skip;
        for (; r + VECTOR <= term->m; r += VECTOR) {
#pragma GCC unroll 4
            for (uint32_t j = 0; j < others; j++) d[j] = vector_held(vector_load(ds[j] + r));
            product_t_rows(width, others, count - 1, columns + r, term->ld, d, sum);
        }
        if (r == term->m) continue;
#pragma GCC unroll 4
        for (uint32_t j = 0; j < others; j++) {
            float pad[VECTOR] = {0};
            memcpy(pad, ds[j] + r, (term->m - r) * sizeof *pad);
            d[j] = vector_load(pad);
        }
        product_t_rows(width, others, count - 1, columns + r, term->ld, d, sum);
    }
    vector_store(sums, lane_sums(sum));
#pragma GCC unroll 4
    for (uint32_t j = 0; j < others; j++) {
        float *to = c + k_first + (j0 + j) * ldc;
        for (uint32_t p = 0; p < count; p++) to[p] = add ? to[p] + sums[j * width + p] : sums[j * width + p];
    }
}

VPPS_INLINE void product_t_columns(const uint32_t width, const uint32_t others, uint32_t k_first, uint32_t k,
                                   uint32_t n_terms, const vpps_product_term *terms, uint32_t j, float *c, size_t ldc,
                                   bool add) {
    if (k - k_first >= width)
        product_t_tile(width, others, width, k_first, n_terms, terms, j, c, ldc, add);
    else
        product_t_tile(width, others, k - k_first, k_first, n_terms, terms, j, c, ldc, add);
}

/* Computes n vectors c + j * ldc (k elements): = (`add`: +=) the sum over terms of block^T x[j]. A term is a block of
 * some rows of a matrix with the n vectors; it multiplies the elements from `skip` on of the vectors x[j]. */
static void product_t_run(uint32_t n, uint32_t k, uint32_t n_terms, const vpps_product_term *terms, float *c,
                          size_t ldc, bool add) {
    enum { NARROW = VECTOR / PRODUCT_T_VECTORS };
    const uint32_t groups = (n + PRODUCT_T_VECTORS - 1) / PRODUCT_T_VECTORS;
    const uint32_t width = n == 1 ? VECTOR : n == 2 ? VECTOR / 2 : NARROW;
    for (uint32_t p = 0; p < k; p += width) {
        if (n == 1) {
            product_t_columns(VECTOR, 1, p, k, n_terms, terms, 0, c, ldc, add);
            continue;
        }
        if (n == 2) {
            product_t_columns(VECTOR / 2, 2, p, k, n_terms, terms, 0, c, ldc, add);
            continue;
        }
        for (uint32_t group = 0, j = 0, others; group < groups; group++, j += others) {
            others = n / groups + (group < n % groups);
            switch (others) {
            case 1: product_t_columns(NARROW, 1, p, k, n_terms, terms, j, c, ldc, add); break;
            case 2: product_t_columns(NARROW, 2, p, k, n_terms, terms, j, c, ldc, add); break;
#if defined(__AVX512F__)
            case 3: product_t_columns(NARROW, 3, p, k, n_terms, terms, j, c, ldc, add); break;
            case 4: product_t_columns(NARROW, 4, p, k, n_terms, terms, j, c, ldc, add); break;
#endif
            }
        }
    }
}

/* Multiplies transposed blocks for any number of terms: sums TERMS terms at a time, and adds up these sums. */
static void product_t(uint32_t n, uint32_t k, uint32_t n_terms, const vpps_product_term *terms, float *c, size_t ldc,
                      bool add) {
    enum { TERMS = 64 }; /* blocks of rows whose products are summed at a time */
    uint32_t first = 0;
    do product_t_run(n, k, vpps_min_u32(n_terms - first, TERMS), terms + first, c, ldc, add || first);
    while ((first += TERMS) < n_terms);
}

/* ---------------------------------------------------------------- A (+)= sum of d x^T
 *
 * Vectors lie anywhere, and often at distances that fall into few sets of a cache. So some of them at a time are copied
 * side by side first: x at a distance of an odd number of cache lines, d in rows of a tile. */

enum {
    OUTER_VECTORS = 128 /* most vectors per call, so that rows_of_d, the rows in use of all vectors d, stays in L1 */
};

/* Returns the distance, in floats, from one packed vector of k elements to the next. */
static size_t outer_stride(uint32_t k) { return ((k + 15) / 16 | 1u) * (size_t)16; }

VPPS_INLINE void outer_tile(const uint32_t height, const uint32_t columns, uint32_t n, const float *d, const float *x,
                            size_t stride, float *a, size_t ld, bool add) {
    vector sum[PRODUCT_COLUMNS][PRODUCT_HEIGHT];
    for (uint32_t j = 0; j < columns; j++)
        for (uint32_t i = 0; i < height; i++)
            sum[j][i] = add ? vector_load(a + j * ld + (size_t)i * VECTOR) : (vector){0};
    for (uint32_t v = 0; v < n; v++, d += (size_t)height * VECTOR, x += stride) {
        vector rows[PRODUCT_HEIGHT];
        for (uint32_t i = 0; i < height; i++) rows[i] = vector_held(vector_load(d + (size_t)i * VECTOR));
        for (uint32_t j = 0; j < columns; j++) {
            const vector element = vector_of(x[j]);
            for (uint32_t i = 0; i < height; i++) sum[j][i] = vector_multiply_add(rows[i], element, sum[j][i]);
        }
    }
    for (uint32_t j = 0; j < columns; j++)
        for (uint32_t i = 0; i < height; i++) vector_store(a + j * ld + (size_t)i * VECTOR, sum[j][i]);
}

VPPS_INLINE void outer_columns(const uint32_t height, uint32_t columns, uint32_t n, const float *d, const float *x,
                               size_t stride, float *a, size_t ld, bool add) {
#define TILE(c)                                                                                                        \
    case c: outer_tile(height, c, n, d, x, stride, a, ld, add); break;
    switch (columns) { TILE(1) TILE(2) TILE(3) TILE(4) TILE(5) TILE(6) }
#undef TILE
}

/* Copies n vectors of k elements to places that are outer_stride(k) floats apart. */
static void pack_outer(uint32_t n, uint32_t k, const float *const *x, float *to) {
    const size_t stride = outer_stride(k);
    for (uint32_t v = 0; v < n; v++, to += stride) {
        const float *from = x[v];
        uint32_t p = 0;
        for (; p + VECTOR <= k; p += VECTOR) vector_store(to + p, vector_load(from + p));
        for (; p < k; p++) to[p] = from[p];
    }
}

/* Computes the gradient of a block of matrix rows (m x k), or adds it (`add`): the sum over v < n of d[v] x[v]^T, d[v]
 * from element d_skip on. The x[v] lie outer_stride(k) floats apart, as pack_outer copies them. */
static void outer(uint32_t m, uint32_t n, uint32_t k, const float *const *d, uint32_t d_skip, const float *x, float *a,
                  size_t ld, bool add) {
    float rows_of_d[OUTER_VECTORS * PRODUCT_HEIGHT * VECTOR] __attribute__((aligned(64)));
    const size_t stride = outer_stride(k);
    for (uint32_t row = 0; row < m; row += PRODUCT_HEIGHT * VECTOR) {
        const uint32_t rows = vpps_min_u32(m - row, PRODUCT_HEIGHT * VECTOR), height = (rows + VECTOR - 1) / VECTOR;
        const uint32_t width = height * VECTOR;
        for (uint32_t v = 0; v < n; v++) {
            float *to = rows_of_d + (size_t)v * width;
            const float *from = d[v] + d_skip + row;
            uint32_t r = 0;
            for (; r + VECTOR <= rows; r += VECTOR) vector_store(to + r, vector_load(from + r));
            for (; r < rows; r++) to[r] = from[r];
            for (; r < width; r++) to[r] = 0;
        }
        for (uint32_t p = 0, columns; p < k; p += columns) {
            columns = vpps_min_u32(k - p, PRODUCT_COLUMNS);
            float *to = a + row + p * ld;
            const float *xs = x + p;
            switch (height) {
            case 1: outer_columns(1, columns, n, rows_of_d, xs, stride, to, ld, add); break;
            case 2: outer_columns(2, columns, n, rows_of_d, xs, stride, to, ld, add); break;
#if VECTOR_REGISTERS == 32
            case 3: outer_columns(3, columns, n, rows_of_d, xs, stride, to, ld, add); break;
            case 4: outer_columns(4, columns, n, rows_of_d, xs, stride, to, ld, add); break;
#endif
            }
        }
    }
}
