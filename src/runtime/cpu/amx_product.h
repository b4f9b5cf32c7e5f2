/* amx_product.h - products of bf16 operands with tile instructions such as Intel's AMX: eight registers ("tiles") of 16 rows of 64 bytes,
 * and an instruction that adds the product of 16 x 32 and 32 x 16 elements to 16 x 16 sums. The including file defines
 *
 *   TILE_ZERO(t)  TILE_LOAD(t, from, bytes from a row to the next)  TILE_STORE(t, to, bytes)  TILE_DOT(sums, rows, pairs)
 *   TILE_ROWS(n)  gives tiles 0 to 5 n rows from here on, and zeroes all tiles
 *
 * where tiles are literal numbers: amx.c as instructions, tests as the manual describes them (Intel 64 and IA-32 Architectures Software
 * Developer's Manual, volume 2, TDPBF16PS). Tiles 0 to 3 hold sums; in amx_product, row j holds elements of result vector j. */
#pragma once

#include "base/base.h"
#include "runtime/cpu/kernels.h"

/* One tile of sums, of up to 16 rows of up to 16 result vectors, and where the sums are loaded and stored. */
typedef struct amx_sums {
    const float *from; /* address of the initial sums; NULL: zero */
    size_t ld_from;
    float *c;
    size_t ldc;
    uint32_t rows, vectors;
    bool whole; /* whether all 16 x 16 sums exist; else loading and storing go through a buffer */
} amx_sums;

static inline const float *amx_fill(const amx_sums *s, float (*buffer)[VPPS_BF16_ROWS]) {
    memset(buffer, 0, VPPS_BF16_ROWS * sizeof *buffer);
    for (uint32_t j = 0; j < s->vectors; j++) memcpy(buffer[j], s->from + j * s->ld_from, s->rows * sizeof(float));
    __asm__ volatile("" ::: "memory"); /* makes the compiler fill the buffer before the tile instruction reads it */
    return buffer[0];
}

static inline void amx_drain(const amx_sums *s, const float (*buffer)[VPPS_BF16_ROWS]) {
    for (uint32_t j = 0; j < s->vectors; j++) memcpy(s->c + j * s->ldc, buffer[j], s->rows * sizeof(float));
}

#define AMX_BEGIN(t, s)                                                                                                \
    do {                                                                                                               \
        float buffer_[VPPS_BF16_ROWS][VPPS_BF16_ROWS] __attribute__((aligned(64)));                                    \
        if (!(s)->from)                                                                                                \
            TILE_ZERO(t);                                                                                              \
        else if ((s)->whole)                                                                                           \
            TILE_LOAD(t, (s)->from, (s)->ld_from * sizeof(float));                                                     \
        else                                                                                                           \
            TILE_LOAD(t, amx_fill(s, buffer_), sizeof *buffer_);                                                       \
    } while (0)
#define AMX_END(t, s)                                                                                                  \
    do {                                                                                                               \
        float buffer_[VPPS_BF16_ROWS][VPPS_BF16_ROWS] __attribute__((aligned(64)));                                    \
        if ((s)->whole) {                                                                                              \
            TILE_STORE(t, (s)->c, (s)->ldc * sizeof(float));                                                           \
        } else {                                                                                                       \
            TILE_STORE(t, buffer_, sizeof *buffer_);                                                                   \
            amx_drain(s, (const float(*)[VPPS_BF16_ROWS])buffer_);                                                     \
        }                                                                                                              \
    } while (0)

enum { AMX_LINE = 64 }; /* bytes of a row of a packed tile */

/* The matrices and vectors whose products are summed, for matrix rows from `row` on and vectors from j on. */
typedef struct amx_terms {
    uint32_t parts, n;
    const vpps_bf16_term *terms;
    const uint32_t *x;
    uint32_t row, j;
} amx_terms;

/* A matrix w and the vectors x that it multiplies, one of several such products that are summed, both packed in bf16
 * tiles. The tiles of the next 16 rows of w, or of the next 16 vectors, are `stride` words further on. */
typedef struct amx_operands {
    const uint32_t *w, *x;
    uint32_t depth_tiles;
    size_t stride;
} amx_operands;

static inline amx_operands amx_operands_of(const amx_terms *t, uint32_t i) {
    const vpps_bf16_term *term = &t->terms[i];
    const uint32_t depth_tiles = vpps_bf16_depth_tiles(term->depth);
    const size_t stride = (size_t)depth_tiles * t->parts * VPPS_BF16_TILE;
    return (amx_operands){term->a + t->row / VPPS_BF16_ROWS * stride,
                          t->x + term->x_words + t->j / VPPS_BF16_ROWS * stride, depth_tiles, stride};
}

/* Multiplies up to 32 matrix rows with up to 32 vectors, for all terms of the sum. heights, widths: groups of 16 rows and vectors. */
AMX_FUNCTION void amx_square(uint32_t heights, uint32_t widths, const amx_terms *t, const amx_sums (*sums)[2]) {
    const size_t low = t->parts == 2 ? VPPS_BF16_TILE : 0, step = (size_t)t->parts * VPPS_BF16_TILE;
    AMX_BEGIN(0, &sums[0][0]);
    if (heights > 1) AMX_BEGIN(1, &sums[0][1]);
    if (widths > 1) AMX_BEGIN(2, &sums[1][0]);
    if (heights > 1 && widths > 1) AMX_BEGIN(3, &sums[1][1]);
    for (uint32_t i = 0; i < t->n; i++) {
        const amx_operands o = amx_operands_of(t, i);
        const size_t stride = o.stride;
        const uint32_t *w = o.w, *x = o.x;
        for (uint32_t d = 0; d < o.depth_tiles; d++, w += step, x += step) {
#define DOTS                                                                                                           \
    do {                                                                                                               \
        TILE_DOT(0, 4, 6);                                                                                             \
        if (heights > 1) TILE_DOT(1, 4, 7);                                                                            \
        if (widths > 1) TILE_DOT(2, 5, 6);                                                                             \
        if (heights > 1 && widths > 1) TILE_DOT(3, 5, 7);                                                              \
    } while (0)
#define ROWS(at)                                                                                                       \
    do {                                                                                                               \
        TILE_LOAD(6, w + (at), AMX_LINE);                                                                              \
        if (heights > 1) TILE_LOAD(7, w + stride + (at), AMX_LINE);                                                    \
    } while (0)
#define VECTORS(at)                                                                                                    \
    do {                                                                                                               \
        TILE_LOAD(4, x + (at), AMX_LINE);                                                                              \
        if (widths > 1) TILE_LOAD(5, x + stride + (at), AMX_LINE);                                                     \
    } while (0)
            VECTORS(0);
            if (low) {
                ROWS(low);
                DOTS;
            }
            ROWS(0);
            DOTS;
            if (low) {
                VECTORS(low);
                DOTS;
            }
#undef DOTS
#undef ROWS
#undef VECTORS
        }
    }
    AMX_END(0, &sums[0][0]);
    if (heights > 1) AMX_END(1, &sums[0][1]);
    if (widths > 1) AMX_END(2, &sums[1][0]);
    if (heights > 1 && widths > 1) AMX_END(3, &sums[1][1]);
}

/* Multiplies up to 64 matrix rows (`heights` groups of 16) with up to 16 vectors. Tiles of sums have as many rows as there are vectors. A
 * tile of vectors is loaded once for all rows. */
AMX_FUNCTION void amx_tall(uint32_t heights, const amx_terms *t, const amx_sums *sums) {
    const size_t low = t->parts == 2 ? VPPS_BF16_TILE : 0, step = (size_t)t->parts * VPPS_BF16_TILE;
    AMX_BEGIN(0, &sums[0]);
    if (heights > 1) AMX_BEGIN(1, &sums[1]);
    if (heights > 2) AMX_BEGIN(2, &sums[2]);
    if (heights > 3) AMX_BEGIN(3, &sums[3]);
    for (uint32_t i = 0; i < t->n; i++) {
        const amx_operands o = amx_operands_of(t, i);
        const size_t stride = o.stride;
        const uint32_t *w = o.w, *x = o.x;
        for (uint32_t d = 0; d < o.depth_tiles; d++, w += step, x += step) {
            TILE_LOAD(4, x, AMX_LINE);
            if (low) TILE_LOAD(5, x + low, AMX_LINE);
#define GROUP(g)                                                                                                       \
    if (heights > (g)) {                                                                                               \
        if (low) {                                                                                                     \
            TILE_LOAD(6, w + (g)*stride + low, AMX_LINE);                                                              \
            TILE_DOT(g, 4, 6);                                                                                         \
        }                                                                                                              \
        TILE_LOAD(7, w + (g)*stride, AMX_LINE);                                                                        \
        TILE_DOT(g, 4, 7);                                                                                             \
        if (low) TILE_DOT(g, 5, 7);                                                                                    \
    }
            GROUP(0)
            GROUP(1)
            GROUP(2)
            GROUP(3)
#undef GROUP
        }
    }
    AMX_END(0, &sums[0]);
    if (heights > 1) AMX_END(1, &sums[1]);
    if (heights > 2) AMX_END(2, &sums[2]);
    if (heights > 3) AMX_END(3, &sums[3]);
}

/* Computes a bf16 product, c = start + the sum of the terms' A x (vpps_product_bf16). */
AMX_FUNCTION void amx_product(uint32_t m, uint32_t n, uint32_t parts, const uint32_t *x, uint32_t n_terms,
                              const vpps_bf16_term *terms, const float *from, size_t ld_from, float *c, size_t ldc) {
    enum { SIDE = VPPS_BF16_ROWS };
    amx_terms t = {.parts = parts, .n = n_terms, .terms = terms, .x = x};
#define SUMS(row, j, tile_rows)                                                                                        \
    ((amx_sums){from ? from + (size_t)(j)*ld_from + (row) : NULL, ld_from, c + (size_t)(j)*ldc + (row), ldc,           \
                vpps_min_u32(m - (row), SIDE), vpps_min_u32(n - (j), tile_rows),                                       \
                m - (row) >= SIDE && n - (j) >= (tile_rows)})
    const uint32_t last = n % (2 * SIDE), tall = last <= SIDE ? last : 0;
    if (n > tall) TILE_ROWS(SIDE);
    for (uint32_t row = 0; row < m; row += 2 * SIDE) {
        const uint32_t heights = m - row > SIDE ? 2 : 1;
        for (uint32_t j = 0; j < n - tall; j += 2 * SIDE) {
            const uint32_t widths = n - j > SIDE ? 2 : 1;
            amx_sums sums[2][2] = {{{0}}};
            for (uint32_t k = 0; k < widths; k++)
                for (uint32_t i = 0; i < heights; i++) sums[k][i] = SUMS(row + i * SIDE, j + k * SIDE, SIDE);
            t.row = row;
            t.j = j;
            amx_square(heights, widths, &t, (const amx_sums(*)[2])sums);
        }
    }
    if (!tall) return;
    TILE_ROWS(tall);
    t.j = n - tall;
    for (t.row = 0; t.row < m; t.row += 4 * SIDE) {
        const uint32_t heights = vpps_min_u32((m - t.row + SIDE - 1) / SIDE, 4);
        amx_sums sums[4] = {{0}};
        for (uint32_t i = 0; i < heights; i++) sums[i] = SUMS(t.row + i * SIDE, t.j, tall);
        amx_tall(heights, &t, sums);
    }
#undef SUMS
}

/* Arranges packed vectors for products with transposed matrices (vpps_spread_bf16): each element x becomes the pairs (x, 0) and (0, x). */
static inline void amx_spread(uint32_t n, uint32_t depth, uint32_t parts, const uint32_t *rows, uint32_t *to) {
    enum { SIDE = VPPS_BF16_ROWS, PAIRS = VPPS_BF16_DEPTH / 2 };
    const uint32_t groups = (depth + SIDE - 1) / SIDE;
    const size_t stride = (size_t)vpps_bf16_depth_tiles(depth) * parts * VPPS_BF16_TILE;
    for (uint32_t first = 0; first < n; first += VPPS_BF16_SPREAD) {
        const uint32_t end = vpps_min_u32(n, first + VPPS_BF16_SPREAD);
        for (uint32_t g = 0; g < groups; g++) {
            for (uint32_t p = 0; p < parts; p++, to += VPPS_BF16_TILE) {
                memset(to, 0, VPPS_BF16_TILE * sizeof *to);
                for (uint32_t j = first; j < end; j++) {
                    const uint32_t *pairs = rows + j / SIDE * stride + (size_t)(g / 2 * parts + p) * VPPS_BF16_TILE +
                                            (size_t)(j % SIDE) * PAIRS + (size_t)(g % 2) * (SIDE / 2);
                    uint32_t *out = to + (size_t)2 * (j - first);
                    for (uint32_t q = 0; q < SIDE / 2; q++, out += (size_t)2 * SIDE) {
                        out[0] = pairs[q] & 0xffffu;
                        out[1] = pairs[q] << 16;
                        out[SIDE] = pairs[q] >> 16;
                        out[SIDE + 1] = pairs[q] & 0xffff0000u;
                    }
                }
            }
        }
    }
}

/* Copies products with up to 8 vectors from a tile of sums to c. Row q of the tile has elements 2 q and 2 q + 1 of all products. */
static inline void amx_gather_pairs(const float (*tile)[VPPS_BF16_ROWS], uint32_t elems, uint32_t vectors, float *c,
                                    size_t ldc) {
    for (uint32_t j = 0; j < vectors; j++, c += ldc) {
        for (uint32_t q = 0; q < elems / 2; q++) memcpy(c + (size_t)2 * q, &tile[q][2 * j], 2 * sizeof *c);
        if (elems % 2) c[elems - 1] = tile[elems / 2][2 * j];
    }
}

/* Computes c = A^T x in bf16 for n vectors (vpps_product_t_bf16). 128 elements of each c are computed at a time, from 128 columns of A. */
AMX_FUNCTION void amx_product_t(uint32_t k, uint32_t n, uint32_t parts, const uint32_t *x, uint32_t n_terms,
                                const vpps_bf16_term *terms, float *c, size_t ldc) {
    enum { SIDE = VPPS_BF16_ROWS, WIDTH = 4 };
    const uint32_t k_tiles = vpps_bf16_depth_tiles(k);
    const size_t step = (size_t)parts * VPPS_BF16_TILE, low = parts == 2 ? VPPS_BF16_TILE : 0;
    TILE_ROWS(SIDE);
    for (uint32_t d = 0; d < k_tiles; d += WIDTH) { /* 128 columns of A stay in L2 for all vectors */
        const uint32_t width = vpps_min_u32(k_tiles - d, WIDTH);
        for (uint32_t j = 0; j < n; j += VPPS_BF16_SPREAD) {
            TILE_ZERO(0);
            TILE_ZERO(1);
            TILE_ZERO(2);
            TILE_ZERO(3);
            for (uint32_t i = 0; i < n_terms; i++) {
                const uint32_t groups = (terms[i].depth + SIDE - 1) / SIDE;
                const uint32_t *w = terms[i].a + d * step;
                const uint32_t *v = x + terms[i].x_words + j / VPPS_BF16_SPREAD * groups * step;
                for (uint32_t g = 0; g < groups; g++, w += k_tiles * step, v += step) {
                    TILE_LOAD(4, v, AMX_LINE);
                    if (low) TILE_LOAD(5, v + low, AMX_LINE);
#define COLUMNS(t)                                                                                                     \
    if (width > (t)) {                                                                                                 \
        if (low) {                                                                                                     \
            TILE_LOAD(6, w + (t)*step + low, AMX_LINE);                                                                \
            TILE_DOT(t, 6, 4);                                                                                         \
        }                                                                                                              \
        TILE_LOAD(7, w + (t)*step, AMX_LINE);                                                                          \
        if (low) TILE_DOT(t, 7, 5);                                                                                    \
        TILE_DOT(t, 7, 4);                                                                                             \
    }
                    COLUMNS(0)
                    COLUMNS(1)
                    COLUMNS(2)
                    COLUMNS(3)
#undef COLUMNS
                }
            }
            float sums[WIDTH][SIDE][SIDE] __attribute__((aligned(64)));
            TILE_STORE(0, sums[0], AMX_LINE);
            TILE_STORE(1, sums[1], AMX_LINE);
            TILE_STORE(2, sums[2], AMX_LINE);
            TILE_STORE(3, sums[3], AMX_LINE);
            for (uint32_t t = 0; t < width; t++) {
                const uint32_t at = (d + t) * VPPS_BF16_DEPTH;
                amx_gather_pairs((const float(*)[SIDE])sums[t], vpps_min_u32(k - at, VPPS_BF16_DEPTH),
                                 vpps_min_u32(n - j, VPPS_BF16_SPREAD), c + (size_t)j * ldc + at, ldc);
            }
        }
    }
}
