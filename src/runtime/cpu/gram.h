/* gram.h - products of vectors with each other, for kernels.c: the norm of a sum of outer products follows from them without the sum. */
#pragma once

#include "runtime/cpu/gemm.h"

enum { GRAM_LANES = VECTOR / 2, GRAM_SIDE = VECTOR_REGISTERS == 32 ? 4 : 2 /* vectors of a tile, twice */ };

typedef double gram_lanes __attribute__((vector_size(GRAM_LANES * sizeof(double))));
typedef float gram_in_memory
    __attribute__((vector_size(GRAM_LANES * sizeof(float)), aligned(sizeof(float)), may_alias));

/* `count` elements, and zeros after them. */
VPPS_INLINE gram_lanes gram_load(const float *x, uint32_t count) {
    float pad[GRAM_LANES] = {0};
    if (count == GRAM_LANES) return __builtin_convertvector(*(const gram_in_memory *)x, gram_lanes);
    memcpy(pad, x, count * sizeof *pad);
    return __builtin_convertvector(*(const gram_in_memory *)pad, gram_lanes);
}

/* A product of two floats is exact in double, so fused or not gives the same bits. */
VPPS_INLINE gram_lanes gram_multiply_add(gram_lanes a, gram_lanes b, gram_lanes c) {
#if defined(__AVX512F__)
    return _mm512_fmadd_pd(a, b, c);
#elif defined(__AVX2__)
    return _mm256_fmadd_pd(a, b, c);
#else
    return a * b + c;
#endif
}

/* sum[i][j] += the products of elements [r, r + count) of vectors a[i] and b[j]; count <= GRAM_LANES is constant if it is that. */
VPPS_INLINE void gram_add(const float *const *a, const float *const *b, uint32_t r, uint32_t count,
                          gram_lanes sum[GRAM_SIDE][GRAM_SIDE]) {
    gram_lanes bs[GRAM_SIDE];
#pragma GCC unroll 4
    for (uint32_t j = 0; j < GRAM_SIDE; j++) bs[j] = gram_load(b[j] + r, count);
#pragma GCC unroll 4
    for (uint32_t i = 0; i < GRAM_SIDE; i++) {
        const gram_lanes as = gram_load(a[i] + r, count);
#pragma GCC unroll 4
        for (uint32_t j = 0; j < GRAM_SIDE; j++) sum[i][j] = gram_multiply_add(as, bs[j], sum[i][j]);
    }
}

/* g[i * n + j] = the sum of x[i][r] x[j][r] over r in [skip, skip + rows), in double, in an order that depends on nothing else. */
static void gram(uint32_t n, uint32_t rows, const float *const *x, uint32_t skip, double *g) {
    for (uint32_t i = 0; i < n; i += GRAM_SIDE) {
        for (uint32_t j = 0; j <= i; j += GRAM_SIDE) {
            gram_lanes sum[GRAM_SIDE][GRAM_SIDE] = {{{0}}};
            const float *a[GRAM_SIDE], *b[GRAM_SIDE];
            for (uint32_t k = 0; k < GRAM_SIDE; k++) {
                a[k] = x[vpps_min_u32(i + k, n - 1)] + skip;
                b[k] = x[vpps_min_u32(j + k, n - 1)] + skip;
            }
            uint32_t r = 0;
            for (; r + GRAM_LANES <= rows; r += GRAM_LANES) gram_add(a, b, r, GRAM_LANES, sum);
            if (r < rows) gram_add(a, b, r, rows - r, sum);
            for (uint32_t k = 0; k < GRAM_SIDE && i + k < n; k++) {
                for (uint32_t l = 0; l < GRAM_SIDE && j + l < n; l++) {
                    double total = 0;
                    for (uint32_t lane = 0; lane < GRAM_LANES; lane++) total += sum[k][l][lane];
                    g[(i + k) * (size_t)n + j + l] = g[(j + l) * (size_t)n + i + k] = total;
                }
            }
        }
    }
}
