/* amx_product.h - products of bf16 operands by tiles, as Intel's AMX has them: eight registers of 16 rows of 64 bytes, and an
 * instruction that adds the product of 16 x 32 and 32 x 16 elements to 16 x 16 sums. Who includes this defines
 *
 *   TILE_ZERO(t)  TILE_LOAD(t, from, bytes from a row to the next)  TILE_STORE(t, to, bytes)  TILE_DOT(sums, rows, pairs)
 *
 * where tiles are literal numbers: amx.c as instructions, tests as what the manual says of them (Intel 64 and IA-32
 * Architectures Software Developer's Manual, volume 2, TDPBF16PS). A tile of sums has a vector a row: its rows lie in C as they
 * are. Tiles 0 to 3 are sums.
 */
#ifndef VPPS_CPU_AMX_PRODUCT_H
#define VPPS_CPU_AMX_PRODUCT_H

#include "base/base.h"
#include "runtime/cpu/kernels.h"

/* Sums of up to 16 rows of up to 16 vectors, where they come from and go to. */
typedef struct amx_sums {
    const float *from; /* NULL: zero */
    size_t ld_from;
    float *c;
    size_t ldc;
    uint32_t rows, vectors;
} amx_sums;

static inline const float *amx_fill(const amx_sums *s, float (*buffer)[VPPS_BF16_ROWS]) {
    memset(buffer, 0, VPPS_BF16_ROWS * sizeof *buffer);
    for (uint32_t j = 0; j < s->vectors; j++) memcpy(buffer[j], s->from + j * s->ld_from, s->rows * sizeof(float));
    __asm__ volatile("" ::: "memory"); /* compilers do not know that a tile reads it */
    return buffer[0];
}

static inline void amx_drain(const amx_sums *s, const float (*buffer)[VPPS_BF16_ROWS]) {
    for (uint32_t j = 0; j < s->vectors; j++) memcpy(s->c + j * s->ldc, buffer[j], s->rows * sizeof(float));
}

#define AMX_WHOLE(s) ((s)->rows == VPPS_BF16_ROWS && (s)->vectors == VPPS_BF16_ROWS)
#define AMX_BEGIN(t, s)                                                                                                \
    do {                                                                                                               \
        float buffer_[VPPS_BF16_ROWS][VPPS_BF16_ROWS] __attribute__((aligned(64)));                                    \
        if (!(s)->from)                                                                                                \
            TILE_ZERO(t);                                                                                              \
        else if (AMX_WHOLE(s))                                                                                         \
            TILE_LOAD(t, (s)->from, (s)->ld_from * sizeof(float));                                                     \
        else                                                                                                           \
            TILE_LOAD(t, amx_fill(s, buffer_), sizeof *buffer_);                                                       \
    } while (0)
#define AMX_END(t, s)                                                                                                  \
    do {                                                                                                               \
        float buffer_[VPPS_BF16_ROWS][VPPS_BF16_ROWS] __attribute__((aligned(64)));                                    \
        if (AMX_WHOLE(s)) {                                                                                            \
            TILE_STORE(t, (s)->c, (s)->ldc * sizeof(float));                                                           \
        } else {                                                                                                       \
            TILE_STORE(t, buffer_, sizeof *buffer_);                                                                   \
            amx_drain(s, (const float(*)[VPPS_BF16_ROWS])buffer_);                                                     \
        }                                                                                                              \
    } while (0)

enum { AMX_LINE = 64 }; /* bytes of a packed tile's row */

/* What is summed up, for rows from `row` on and vectors from j on. */
typedef struct amx_terms {
    uint32_t parts, n;
    const vpps_bf16_term *terms;
    const uint32_t *x;
    uint32_t row, j;
} amx_terms;

/* A term's first tiles; those of the next 16 rows or vectors are `stride` words behind. */
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

/* 32 rows with 32 vectors: two groups of 16 each, or one. */
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

/* 64 rows, four groups or fewer, with up to 16 vectors: each tile of them is loaded once for all rows. */
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

/* A vpps_product_bf16. */
AMX_FUNCTION void amx_product(uint32_t m, uint32_t n, uint32_t parts, const uint32_t *x, uint32_t n_terms,
                              const vpps_bf16_term *terms, const float *from, size_t ld_from, float *c, size_t ldc) {
    enum { SIDE = VPPS_BF16_ROWS };
    amx_terms t = {.parts = parts, .n = n_terms, .terms = terms, .x = x};
#define SUMS(row, j)                                                                                                   \
    ((amx_sums){from ? from + (size_t)(j)*ld_from + (row) : NULL, ld_from, c + (size_t)(j)*ldc + (row), ldc,           \
                vpps_min_u32(m - (row), SIDE), vpps_min_u32(n - (j), SIDE)})
    if (n <= SIDE) {
        for (uint32_t row = 0; row < m; row += 4 * SIDE) {
            const uint32_t heights = vpps_min_u32((m - row + SIDE - 1) / SIDE, 4);
            amx_sums sums[4] = {{0}};
            for (uint32_t i = 0; i < heights; i++) sums[i] = SUMS(row + i * SIDE, 0);
            t.row = row;
            amx_tall(heights, &t, sums);
        }
        return;
    }
    for (uint32_t row = 0; row < m; row += 2 * SIDE) {
        const uint32_t heights = m - row > SIDE ? 2 : 1;
        for (uint32_t j = 0; j < n; j += 2 * SIDE) {
            const uint32_t widths = n - j > SIDE ? 2 : 1;
            amx_sums sums[2][2] = {{{0}}};
            for (uint32_t k = 0; k < widths; k++)
                for (uint32_t i = 0; i < heights; i++) sums[k][i] = SUMS(row + i * SIDE, j + k * SIDE);
            t.row = row;
            t.j = j;
            amx_square(heights, widths, &t, (const amx_sums(*)[2])sums);
        }
    }
#undef SUMS
}

#endif
