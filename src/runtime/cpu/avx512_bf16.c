/* avx512_bf16.c - products of packed bf16 tiles by AVX512-BF16.
 *
 * vdpbf16ps adds to each of 16 sums the products of two pairs: one pair of each of 16 packed rows with one pair of a vector. It adds them
 * one after the other, rounding each time to the nearest fp32 whatever the thread's rounding mode. Subnormal operands, sums and results
 * become zero (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, VDPBF16PS). The error bound of bf16.h allows this
 * order and rounding. */
#include "runtime/cpu/avx512_bf16.h"

#ifdef VPPS_HAS_AVX512_BF16

#include <immintrin.h>

#define DOT_TARGET target("avx512f,avx512vl,avx512bw,avx512bf16")
#define DOT_INLINE __attribute__((DOT_TARGET, always_inline)) static inline

enum { SIDE = VPPS_BF16_ROWS, PAIRS = VPPS_BF16_DEPTH / 2, HEIGHT = 4, COLUMNS = 6 };

/* Operands of a tile of sums, for up to 64 packed rows and six vectors. 16 rows take `stride` words. Initial sums come from `from` (NULL:
 * zero); results go to `c`. Of the last 16 rows, only those in the mask `tail` are stored. */
typedef struct sums {
    const uint32_t *rows;
    size_t stride;
    const uint32_t *x[COLUMNS];
    const float *from;
    size_t ld_from;
    float *c;
    size_t ldc;
    __mmask16 tail;
} sums;

DOT_INLINE __m512 dot(__m512 sum, __m512i rows, uint32_t pair) {
    return _mm512_dpbf16_ps(sum, (__m512bh)rows, (__m512bh)_mm512_set1_epi32((int)pair));
}

/* Computes one tile of sums of bf16 products. The callers pass constants for height, columns and parts. */
DOT_INLINE void dot_tile(const uint32_t height, const uint32_t columns, const uint32_t parts, uint32_t depth,
                         const sums *s) {
    __m512 sum[COLUMNS][HEIGHT];
#pragma GCC unroll 6
    for (uint32_t j = 0; j < columns; j++) {
#pragma GCC unroll 4
        for (uint32_t i = 0; i < height; i++) {
            const __mmask16 mask = i + 1 == height ? s->tail : (__mmask16)0xffff;
            sum[j][i] =
                s->from ? _mm512_maskz_loadu_ps(mask, s->from + j * s->ld_from + i * SIDE) : _mm512_setzero_ps();
        }
    }
    size_t at = 0;
    for (uint32_t left = (depth + 1) / 2, pairs; left; left -= pairs) {
        pairs = vpps_min_u32(left, PAIRS);
#pragma GCC unroll 1
        for (size_t q = 0; q < pairs; q++) {
            __m512i high[HEIGHT], low[HEIGHT];
#pragma GCC unroll 4
            for (uint32_t i = 0; i < height; i++) {
                const uint32_t *rows = s->rows + i * s->stride + at + q * SIDE;
                high[i] = _mm512_loadu_si512(rows);
                if (parts == 2) low[i] = _mm512_loadu_si512(rows + VPPS_BF16_TILE);
            }
#pragma GCC unroll 6
            for (uint32_t j = 0; j < columns; j++) {
                const uint32_t *pair = s->x[j] + at + q;
#pragma GCC unroll 4
                for (uint32_t i = 0; parts == 2 && i < height; i++) sum[j][i] = dot(sum[j][i], low[i], pair[0]);
#pragma GCC unroll 4
                for (uint32_t i = 0; parts == 2 && i < height; i++)
                    sum[j][i] = dot(sum[j][i], high[i], pair[VPPS_BF16_TILE]);
#pragma GCC unroll 4
                for (uint32_t i = 0; i < height; i++) sum[j][i] = dot(sum[j][i], high[i], pair[0]);
            }
        }
        at += (size_t)parts * VPPS_BF16_TILE;
    }
#pragma GCC unroll 6
    for (uint32_t j = 0; j < columns; j++) {
#pragma GCC unroll 4
        for (uint32_t i = 0; i < height; i++) {
            const __mmask16 mask = i + 1 == height ? s->tail : (__mmask16)0xffff;
            _mm512_mask_storeu_ps(s->c + j * s->ldc + i * SIDE, mask, sum[j][i]);
        }
    }
}

DOT_INLINE void dot_columns(const uint32_t height, const uint32_t parts, uint32_t columns, uint32_t depth,
                            const sums *s) {
#define TILE(n)                                                                                                        \
    case n: dot_tile(height, n, parts, depth, s); break;
    switch (columns) { TILE(1) TILE(2) TILE(3) TILE(4) TILE(5) TILE(6) }
#undef TILE
}

DOT_INLINE void dot_rows(const uint32_t parts, uint32_t height, uint32_t columns, uint32_t depth, const sums *s) {
#define ROWS(h)                                                                                                        \
    case h: dot_columns(h, parts, columns, depth, s); break;
    switch (height) { ROWS(1) ROWS(2) ROWS(3) ROWS(4) }
#undef ROWS
}

/* Computes one term of a bf16 product, a matrix (m rows) times n vectors: sums DEPTH elements of a row at a time, then adds these sums. */
DOT_INLINE void dot_term(uint32_t m, uint32_t n, uint32_t depth, uint32_t parts, const uint32_t *a, const uint32_t *x,
                         const float *from, size_t ld_from, float *c, size_t ldc) {
    const size_t stride = (size_t)vpps_bf16_depth_tiles(depth) * parts * VPPS_BF16_TILE;
    const uint32_t groups = (n + COLUMNS - 1) / COLUMNS;
    enum { DEPTH = 1024, LD = HEIGHT * SIDE };
    float part[LD * COLUMNS];
    for (uint32_t row = 0; row < m; row += HEIGHT * SIDE) {
        const uint32_t count = vpps_min_u32(m - row, HEIGHT * SIDE), height = (count + SIDE - 1) / SIDE;
        const uint32_t tail = count - (height - 1) * SIDE;
        sums s = {.stride = stride, .ld_from = ld_from, .tail = (__mmask16)((1u << tail) - 1)};
        for (uint32_t group = 0, j = 0, columns; group < groups; group++, j += columns) {
            columns = n / groups + (group < n % groups);
            float *const all = c + j * ldc + row;
            for (uint32_t first = 0; first < depth || !first; first += DEPTH) {
                const size_t skip = (size_t)(first / VPPS_BF16_DEPTH) * parts * VPPS_BF16_TILE;
                const uint32_t here = vpps_min_u32(depth - first, DEPTH);
                s.rows = a + row / SIDE * stride + skip;
                for (uint32_t k = 0; k < columns; k++)
                    s.x[k] = x + (j + k) / SIDE * stride + skip + (size_t)((j + k) % SIDE) * PAIRS;
                s.from = from && !first ? from + j * ld_from + row : NULL;
                s.c = first ? part : all;
                s.ldc = first ? LD : ldc;
                if (parts == 1)
                    dot_rows(1, height, columns, here, &s);
                else
                    dot_rows(2, height, columns, here, &s);
                for (uint32_t k = 0; k < columns && first; k++)
                    for (uint32_t i = 0; i < count; i++) all[i + k * ldc] += part[i + k * LD];
            }
        }
    }
}

__attribute__((DOT_TARGET)) static void product(uint32_t m, uint32_t n, uint32_t parts, const uint32_t *x,
                                                uint32_t n_terms, const vpps_bf16_term *terms, const float *from,
                                                size_t ld_from, float *c, size_t ldc) {
    for (uint32_t i = 0; i < n_terms; i++, from = c, ld_from = ldc)
        dot_term(m, n, terms[i].depth, parts, terms[i].a, x + terms[i].x_words, from, ld_from, c, ldc);
}

vpps_status vpps_avx512_bf16_find(vpps_bf16_unit *out) {
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
        !__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("avx512bf16"))
        return vpps_fail(VPPS_DEVICE, "avx512bf16: the CPU has no AVX512-BF16, or a hypervisor hides it");
    *out = (vpps_bf16_unit){
        .name = "avx512bf16", .product = product, .pack = vpps_avx512_bf16_pack, .spread = vpps_avx512_bf16_spread};
    return VPPS_OK;
}

#else

vpps_status vpps_avx512_bf16_find(vpps_bf16_unit *out) {
    (void)out;
    return vpps_fail(VPPS_DEVICE,
                     "avx512bf16: this program was built for another CPU, or by a compiler that does not know it");
}

#endif
