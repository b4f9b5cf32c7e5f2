/* avx512_pack.c - converts operands of products to bf16 by AVX512-BF16: packs fp32 numbers in tiles, and "spreads"
 * packed vectors, pairing each element with a zero, for products with transposed matrices. The results are bit for bit
 * those of plain C functions, pack_bf16 (bf16.h) and amx_spread (amx_product.h).
 *
 * vcvtne2ps2bf16 rounds as bf16.h defines: to the nearest, ties to even, whatever the thread's rounding mode; subnormals become zeros of
 * their sign, and NaN stays NaN (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2). With two parts, operands beyond
 * bf16's range are corrected afterwards: the high part must be finite, and non-finite operands have no low part. */
#include "base/base.h"
#include "runtime/cpu/avx512_bf16.h"

#ifdef VPPS_HAS_AVX512_BF16

#include <immintrin.h>

#define PACK_TARGET target("avx512f,avx512vl,avx512bw,avx512bf16")
#define PACK_INLINE __attribute__((PACK_TARGET, always_inline)) static inline

enum { SIDE = VPPS_BF16_ROWS, PAIRS = VPPS_BF16_DEPTH / 2 };

/* 32 numbers as sums of two bf16 parts: the number rounded to bf16 (high), and the rest rounded to bf16 (low). */
typedef struct halves {
    __m512i high, low;
} halves;

PACK_INLINE __m512i nearest(__m512 first, __m512 second) { return (__m512i)_mm512_cvtne2ps_pbh(second, first); }

PACK_INLINE __m512 widened(__m256i h) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16)); }

PACK_INLINE __mmask32 not_finite(__m512i h) {
    const __m512i exponent = _mm512_set1_epi16(0x7f80);
    return _mm512_cmpeq_epi16_mask(_mm512_and_si512(h, exponent), exponent);
}

/* Returns the low bf16 parts of 32 numbers: what remains after subtracting the parts `high`. */
PACK_INLINE __m512i low_of(__m512 first, __m512 second, __m512i high) {
    return nearest(_mm512_sub_ps(first, widened(_mm512_castsi512_si256(high))),
                   _mm512_sub_ps(second, widened(_mm512_extracti64x4_epi64(high, 1))));
}

/* Corrects high and low parts: a finite number whose high part became infinite is truncated instead of rounded, and a non-finite number
 * gets no low part. Not inlined, so that loops keep their registers. */
__attribute__((PACK_TARGET, noinline, cold)) static void put_right(const float *x, halves *h) {
    const __m512 first = _mm512_loadu_ps(x), second = _mm512_loadu_ps(x + 16);
    const __m512i upper = _mm512_set_epi16(63, 61, 59, 57, 55, 53, 51, 49, 47, 45, 43, 41, 39, 37, 35, 33, 31, 29, 27,
                                           25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
    const __m512i cut = _mm512_permutex2var_epi16(_mm512_castps_si512(first), upper, _mm512_castps_si512(second));
    h->high = _mm512_mask_mov_epi16(h->high, not_finite(h->high) & ~not_finite(cut), cut);
    h->low = _mm512_maskz_mov_epi16(~not_finite(cut), low_of(first, second, h->high));
}

PACK_INLINE halves round_all(__m512 first, __m512 second, const uint32_t parts) {
    halves h = {.high = nearest(first, second)};
    if (parts == 1) return h;
    h.low = low_of(first, second, h.high);
    if (__builtin_expect(not_finite(h.high) != 0, 0)) {
        float x[32];
        _mm512_storeu_ps(x, first);
        _mm512_storeu_ps(x + 16, second);
        halves right = h;
        put_right(x, &right);
        h = right;
    }
    return h;
}

/* Rounds the first `count` of 32 numbers to bf16; the others become zero. */
PACK_INLINE halves round_some(const float *x, uint32_t count, const uint32_t parts) {
    const uint32_t mask = count < 32 ? (1u << count) - 1 : UINT32_MAX;
    return round_all(_mm512_maskz_loadu_ps((__mmask16)mask, x), _mm512_maskz_loadu_ps((__mmask16)(mask >> 16), x + 16),
                     parts);
}

/* Packs a tile of 16 x 32 bf16 numbers, two to a word, from 16 vectors that each hold a row: pair q of row i becomes word i * 16 + q. */
PACK_INLINE void take_along(const vpps_bf16_source *s, uint32_t row, uint32_t at, const uint32_t parts, uint32_t *high,
                            uint32_t *low) {
    const uint32_t count = vpps_min_u32(s->depth - at, VPPS_BF16_DEPTH), rows = vpps_min_u32(s->rows - row, SIDE);
    for (uint32_t i = 0; i < SIDE; i++) {
        halves h = {_mm512_setzero_si512(), _mm512_setzero_si512()};
        if (i < rows) h = round_some(s->x[row + i] + s->skip + at, count, parts);
        _mm512_storeu_si512(high + (size_t)i * PAIRS, h.high);
        if (parts == 2) _mm512_storeu_si512(low + (size_t)i * PAIRS, h.low);
    }
}

/* Packs a tile of 16 x 32 bf16 numbers, two to a word, from 32 vectors that each hold a column: pair q of row i becomes word q * 16 + i. */
PACK_INLINE void take_across(const vpps_bf16_source *s, uint32_t row, uint32_t at, const uint32_t parts, uint32_t *high,
                             uint32_t *low) {
    const __m512i together = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22,
                                              6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    const uint32_t count = vpps_min_u32(s->rows - row, SIDE), depth = vpps_min_u32(s->depth - at, VPPS_BF16_DEPTH);
    const __mmask16 mask = (__mmask16)((1u << count) - 1);
    const float *const *x = s->x + at;
    for (uint32_t q = 0; q < PAIRS; q++) {
        __m512 even = _mm512_setzero_ps(), odd = even;
        if (2 * q < depth) even = _mm512_maskz_loadu_ps(mask, x[2 * q] + s->skip + row);
        if (2 * q + 1 < depth) odd = _mm512_maskz_loadu_ps(mask, x[2 * q + 1] + s->skip + row);
        const halves h = round_all(even, odd, parts);
        _mm512_storeu_si512(high + (size_t)q * SIDE, _mm512_permutexvar_epi16(together, h.high));
        if (parts == 2) _mm512_storeu_si512(low + (size_t)q * SIDE, _mm512_permutexvar_epi16(together, h.low));
    }
}

/* Returns rows r, 4 + r, 8 + r and 12 + r of four columns of a 16 x 16 tile. */
PACK_INLINE __m512i four_rows(const uint32_t *from, uint32_t r, uint32_t column) {
    const uint32_t *at = from + (size_t)r * SIDE + column;
    __m512i v = _mm512_castsi128_si512(_mm_load_si128((const __m128i *)(const void *)at));
    v = _mm512_inserti32x4(v, _mm_load_si128((const __m128i *)(const void *)(at + 4 * SIDE)), 1);
    v = _mm512_inserti32x4(v, _mm_load_si128((const __m128i *)(const void *)(at + 8 * SIDE)), 2);
    return _mm512_inserti32x4(v, _mm_load_si128((const __m128i *)(const void *)(at + 12 * SIDE)), 3);
}

PACK_INLINE void turn(const uint32_t *from, uint32_t *to) {
    for (uint32_t column = 0; column < SIDE; column += 4) {
        const __m512i a = four_rows(from, 0, column), b = four_rows(from, 1, column), c = four_rows(from, 2, column),
                      d = four_rows(from, 3, column);
        const __m512i ab = _mm512_unpacklo_epi32(a, b), ab_high = _mm512_unpackhi_epi32(a, b),
                      cd = _mm512_unpacklo_epi32(c, d), cd_high = _mm512_unpackhi_epi32(c, d);
        uint32_t *out = to + (size_t)column * SIDE;
        _mm512_storeu_si512(out, _mm512_unpacklo_epi64(ab, cd));
        _mm512_storeu_si512(out + SIDE, _mm512_unpackhi_epi64(ab, cd));
        _mm512_storeu_si512(out + 2 * SIDE, _mm512_unpacklo_epi64(ab_high, cd_high));
        _mm512_storeu_si512(out + 3 * SIDE, _mm512_unpackhi_epi64(ab_high, cd_high));
    }
}

#include "runtime/cpu/bf16_pack.h"

__attribute__((PACK_TARGET)) void vpps_avx512_bf16_pack(const vpps_bf16_source *s, uint32_t parts, vpps_bf16_form form,
                                                        uint32_t depth_tiles, uint32_t *to) {
    pack_operand(s, parts, form, depth_tiles, to);
}

/* Transposes 16 elements of eight vectors: v[k] gets element k of all eight in its low half, and element 8 + k in its high half. */
PACK_INLINE void turn_halves(__m256i *v) {
    __m256i two[8], four[8];
#pragma GCC unroll 4
    for (uint32_t i = 0; i < 4; i++) {
        two[i] = _mm256_unpacklo_epi16(v[2 * i], v[2 * i + 1]);
        two[4 + i] = _mm256_unpackhi_epi16(v[2 * i], v[2 * i + 1]);
    }
#pragma GCC unroll 4
    /* second of three steps of the transpose. Registers of even i get elements of v[0] to v[3], of odd i of v[4] to v[7]. Lower half of
     * four[i]: elements 0 and 1 (i > 1: 4 and 5); of four[4 + i]: 2 and 3 (i > 1: 6 and 7). Upper halves: those 8 elements later. */
    for (uint32_t i = 0; i < 4; i++) {
        const __m256i a = two[i / 2 * 4 + i % 2 * 2], b = two[i / 2 * 4 + i % 2 * 2 + 1];
        four[i] = _mm256_unpacklo_epi32(a, b);
        four[4 + i] = _mm256_unpackhi_epi32(a, b);
    }
#pragma GCC unroll 2
    for (uint32_t i = 0; i < 2; i++) {
        v[4 * i] = _mm256_unpacklo_epi64(four[2 * i], four[2 * i + 1]);
        v[4 * i + 1] = _mm256_unpackhi_epi64(four[2 * i], four[2 * i + 1]);
        v[4 * i + 2] = _mm256_unpacklo_epi64(four[4 + 2 * i], four[4 + 2 * i + 1]);
        v[4 * i + 3] = _mm256_unpackhi_epi64(four[4 + 2 * i], four[4 + 2 * i + 1]);
    }
}

__attribute__((PACK_TARGET)) void vpps_avx512_bf16_spread(uint32_t n, uint32_t depth, uint32_t parts,
                                                          const uint32_t *rows, uint32_t *to) {
    const size_t stride = (size_t)vpps_bf16_depth_tiles(depth) * parts * VPPS_BF16_TILE;
    const uint32_t groups = (depth + SIDE - 1) / SIDE;
    const __m512i first = _mm512_set_epi16(7, 0, 0, 7, 6, 0, 0, 6, 5, 0, 0, 5, 4, 0, 0, 4, 3, 0, 0, 3, 2, 0, 0, 2, 1, 0,
                                           0, 1, 0, 0, 0, 0);
    const __m512i second = _mm512_add_epi16(first, _mm512_set1_epi16(8));
    const __mmask32 outer = 0x99999999u; /* selects the first and last of each four 16-bit numbers */
    for (uint32_t j = 0; j < n; j += VPPS_BF16_SPREAD) {
        const uint32_t *from = rows + j / SIDE * stride + (size_t)(j % SIDE) * PAIRS;
        for (uint32_t g = 0; g < groups; g++) {
            for (uint32_t p = 0; p < parts; p++, to += VPPS_BF16_TILE) {
                const uint32_t *pairs =
                    from + (size_t)(g / 2 * parts + p) * VPPS_BF16_TILE + (size_t)(g % 2) * SIDE / 2;
                __m256i v[VPPS_BF16_SPREAD];
#pragma GCC unroll 8
                for (uint32_t i = 0; i < VPPS_BF16_SPREAD; i++) /* zeros stand for vectors after the last one */
                    v[i] = _mm256_loadu_si256((const __m256i *)(const void *)(pairs + (size_t)i * PAIRS));
                turn_halves(v);
#pragma GCC unroll 8
                for (uint32_t i = 0; i < VPPS_BF16_SPREAD; i++) {
                    const __m512i both = _mm512_castsi256_si512(v[i]);
                    _mm512_storeu_si512(to + (size_t)i * SIDE, _mm512_maskz_permutexvar_epi16(outer, first, both));
                    _mm512_storeu_si512(to + (size_t)(8 + i) * SIDE,
                                        _mm512_maskz_permutexvar_epi16(outer, second, both));
                }
            }
        }
    }
}

#endif
