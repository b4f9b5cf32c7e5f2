/* bf16.h - products of operands rounded to bf16 with fp32 sums, for kernels.c: rounding, packing, and products without bf16 instructions.
 *
 * Numbers are rounded to the nearest bf16 number (8 bits of significand, fp32's exponents), ties to even, as Intel's and NVIDIA's hardware
 * does: NaN and infinities stay, numbers beyond the greatest become infinite, and numbers smaller than 2^-126 become a zero of their sign.
 * With two parts an operand is the sum of two such numbers, high + low; high is never made infinite, and infinities and NaN have no low
 * part. Then three products are summed: low high, high low, high high. The unit (here, or amx_product.h) determines their order and how
 * many are added at a time; the bound holds for all.
 *
 * How far from the exact sum of w x over k elements a result is, where u = 2^-24 and s is the sum of |w x|:
 *
 *   one part    |w - high| <= 2^-8 |w|: a product is off by (1 + 2^-8)^2 - 1 of |w x|, and sums by k u of their terms:
 *               (2^-7 + 2^-16 + 1.01 (k + 1) u) s
 *   two parts   |w - high - low| <= 2^-17 |w|, and low low, which is left out, is at most 2^-16 |w x|:
 *               (2^-15 + 2^-23 + 1.01 (3 k + 2) u) s
 *   both        add 2^-125 of the sum of |w| + |x| for operands that became zero; and for a unit that flushes numbers
 *               smaller than 2^-126 to zero, 2^-124 for each of the k, or 3 k, products
 *
 * Products of two bf16 numbers are exact in fp32, so a multiply-add rounds once whether or not the machine has one. */
#pragma once

#include "runtime/cpu/products.h"

enum { PAIRS = VPPS_BF16_DEPTH / 2, SIDE = VPPS_BF16_ROWS };
_Static_assert(PAIRS == SIDE, "a tile of pairs is square");

typedef uint32_t vector_bits __attribute__((vector_size(VECTOR * sizeof(uint32_t))));
typedef uint32_t vector_bits_in_memory
    __attribute__((vector_size(VECTOR * sizeof(uint32_t)), aligned(sizeof(uint32_t)), may_alias));

/* Returns the bf16 number nearest to x, as the high half of an fp32. */
VPPS_INLINE uint32_t bf16_nearest(float x) {
    const uint32_t u = bits_of_float(x), magnitude = u & 0x7fffffffu;
    uint32_t r = u + 0x7fffu + (u >> 16 & 1u);
    r = magnitude > 0x7f800000u ? u | 0x00400000u : r;
    r = magnitude < 0x00800000u ? u & 0x80000000u : r;
    return r & 0xffff0000u;
}

/* Returns the high one of the two bf16 numbers whose sum represents x. The number is finite if x is finite. */
VPPS_INLINE uint32_t bf16_high(float x) {
    const uint32_t u = bits_of_float(x), r = bf16_nearest(x);
    return (r & 0x7fffffffu) == 0x7f800000u ? u & 0xffff0000u : r;
}

VPPS_INLINE uint32_t bf16_low(float x, uint32_t high) {
    const uint32_t low = bf16_nearest(x - float_of_bits(high));
    return (bits_of_float(x) & 0x7f800000u) == 0x7f800000u ? 0 : low;
}

/* Packs a tile of 16 x 32 bf16 numbers, two to a word, from 16 vectors that each hold a row: pair q of row i becomes word i * 16 + q. */
VPPS_INLINE void take_along(const vpps_bf16_source *s, uint32_t row, uint32_t at, const uint32_t parts, uint32_t *high,
                            uint32_t *low) {
    const uint32_t count = vpps_min_u32(s->depth - at, VPPS_BF16_DEPTH);
    for (uint32_t i = 0; i < SIDE; i++, high += PAIRS, low += PAIRS) {
        uint16_t halves[2][VPPS_BF16_DEPTH];
        float pad[VPPS_BF16_DEPTH] = {0};
        const float *x = pad;
        if (row + i < s->rows) {
            x = s->x[row + i] + s->skip + at;
            if (count < VPPS_BF16_DEPTH) x = memcpy(pad, x, count * sizeof *pad);
        }
#pragma omp simd
        for (uint32_t p = 0; p < VPPS_BF16_DEPTH; p++) {
            const uint32_t h = parts == 2 ? bf16_high(x[p]) : bf16_nearest(x[p]);
            halves[0][p] = (uint16_t)(h >> 16);
            if (parts == 2) halves[1][p] = (uint16_t)(bf16_low(x[p], h) >> 16);
        }
        memcpy(high, halves[0], sizeof halves[0]);
        if (parts == 2) memcpy(low, halves[1], sizeof halves[1]);
    }
}

/* Packs a tile of 16 x 32 bf16 numbers, two to a word, from 32 vectors that each hold a column: pair q of row i becomes word q * 16 + i. */
VPPS_INLINE void take_across(const vpps_bf16_source *s, uint32_t row, uint32_t at, const uint32_t parts, uint32_t *high,
                             uint32_t *low) {
    const uint32_t count = vpps_min_u32(s->rows - row, SIDE);
    for (uint32_t q = 0; q < PAIRS; q++, high += SIDE, low += SIDE) {
        float pads[2][SIDE] = {{0}};
        const float *x[2] = {pads[0], pads[1]};
        for (uint32_t e = 0; e < 2 && at + 2 * q + e < s->depth; e++) {
            x[e] = s->x[at + 2 * q + e] + s->skip + row;
            if (count < SIDE) x[e] = memcpy(pads[e], x[e], count * sizeof *pads[e]);
        }
        const float *even = x[0], *odd = x[1];
#pragma omp simd
        for (uint32_t i = 0; i < SIDE; i++) {
            const uint32_t h0 = parts == 2 ? bf16_high(even[i]) : bf16_nearest(even[i]);
            const uint32_t h1 = parts == 2 ? bf16_high(odd[i]) : bf16_nearest(odd[i]);
            high[i] = h0 >> 16 | h1;
            if (parts == 2) low[i] = bf16_low(even[i], h0) >> 16 | bf16_low(odd[i], h1);
        }
    }
}

VPPS_INLINE void turn(const uint32_t *from, uint32_t *to) {
    for (uint32_t i = 0; i < SIDE; i += VECTOR) {
        for (uint32_t j = 0; j < SIDE; j += VECTOR) {
            vector v[VECTOR];
            for (uint32_t q = 0; q < VECTOR; q++) memcpy(&v[q], from + (i + q) * SIDE + j, sizeof v[q]);
            transpose_square(v);
            for (uint32_t q = 0; q < VECTOR; q++) memcpy(to + (j + q) * SIDE + i, &v[q], sizeof v[q]);
        }
    }
}

#define PACK_INLINE VPPS_INLINE
#include "runtime/cpu/bf16_pack.h"

static void pack_bf16(const vpps_bf16_source *s, uint32_t parts, vpps_bf16_form form, uint32_t depth_tiles,
                      uint32_t *to) {
    pack_operand(s, parts, form, depth_tiles, to);
}

VPPS_INLINE vector even_elements(vector_bits pairs) { return (vector)(pairs << 16); }
VPPS_INLINE vector odd_elements(vector_bits pairs) { return (vector)(pairs & 0xffff0000u); }

/* Converts 32 packed elements of vector j from bf16 to fp32. */
VPPS_INLINE void widen(const uint32_t *tiles, uint32_t depth_tiles, const uint32_t parts, uint32_t j, uint32_t d,
                       float (*out)[VPPS_BF16_DEPTH]) {
    const uint32_t *tile = tiles + ((size_t)(j / SIDE) * depth_tiles + d) * parts * VPPS_BF16_TILE;
    for (uint32_t p = 0; p < parts; p++) {
        const uint32_t *pairs = tile + (size_t)p * VPPS_BF16_TILE + (size_t)(j % SIDE) * PAIRS;
        uint16_t halves[VPPS_BF16_DEPTH];
        memcpy(halves, pairs, sizeof halves);
#pragma omp simd
        for (uint32_t i = 0; i < VPPS_BF16_DEPTH; i++) out[p][i] = float_of_bits((uint32_t)halves[i] << 16);
    }
}

/* Multiplies height * VECTOR matrix rows, from number `row` on, with the vectors j0 to j0 + columns - 1, over tiles [first, end) of 32
 * elements of a row. */
VPPS_INLINE void bf16_tile(const uint32_t height, const uint32_t columns, const uint32_t parts, uint32_t depth,
                           uint32_t first, uint32_t end, const uint32_t *a, uint32_t row, const uint32_t *x,
                           uint32_t j0, const float *from, size_t ld_from, float *c, size_t ldc, uint32_t tail) {
    vector sum[PRODUCT_COLUMNS][PRODUCT_HEIGHT];
    product_begin(height, columns, false, (product_start){from, ld_from}, tail, sum);
    const uint32_t depth_tiles = vpps_bf16_depth_tiles(depth);
    const uint32_t *rows[PRODUCT_HEIGHT];
    for (uint32_t i = 0; i < height; i++) {
        const uint32_t r = row + i * VECTOR;
        rows[i] = a + ((size_t)(r / SIDE) * depth_tiles + first) * parts * VPPS_BF16_TILE + r % SIDE;
    }
    for (uint32_t d = first; d < end; d++) {
        float xs[PRODUCT_COLUMNS][2][VPPS_BF16_DEPTH];
        for (uint32_t j = 0; j < columns; j++) widen(x, depth_tiles, parts, j0 + j, d, xs[j]);
        const uint32_t pairs = vpps_min_u32((depth + 1) / 2 - d * PAIRS, PAIRS);
        for (uint32_t q = 0; q < pairs; q++) {
#define PAIR(i, part) (*(const vector_bits_in_memory *)(rows[i] + (part)*VPPS_BF16_TILE + (size_t)q * SIDE))
#define ADD(part, x_part, elements, e)                                                                                 \
    for (uint32_t i = 0; i < height; i++) {                                                                            \
        const vector w = vector_held(elements(PAIR(i, part)));                                                         \
        for (uint32_t j = 0; j < columns; j++)                                                                         \
            sum[j][i] = vector_multiply_add(w, vector_of(xs[j][x_part][2 * q + (e)]), sum[j][i]);                      \
    }
            if (parts == 2) {
                ADD(1, 0, even_elements, 0)
                ADD(0, 1, even_elements, 0)
            }
            ADD(0, 0, even_elements, 0)
            if (parts == 2) {
                ADD(1, 0, odd_elements, 1)
                ADD(0, 1, odd_elements, 1)
            }
            ADD(0, 0, odd_elements, 1)
#undef ADD
#undef PAIR
        }
        for (uint32_t i = 0; i < height; i++) rows[i] += parts * VPPS_BF16_TILE;
    }
    product_end(height, columns, false, sum, c, ldc, tail);
}

#define BF16_WHOLE true
#define BF16_TARGET
#define BF16_INLINE VPPS_INLINE
#include "runtime/cpu/bf16_product.h"
