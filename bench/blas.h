/* blas.h - products of matrices in fp32 by another library, to hold the engine's beside them. */
#ifndef VPPS_BENCH_BLAS_H
#define VPPS_BENCH_BLAS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct blas blas;

/* Opens a shared library that has cblas_sgemm (BLIS, OpenBLAS, MKL), dnnl_sgemm (oneDNN) or libxsmm_smmdispatch (libxsmm), to run on one
 * thread. Exits with a message if it has none of them. Stays open until the program ends. */
blas *blas_open(const char *path);

/* c = op(a) b: m x n from k products each, all by rows; each row of a (of a' if transposed), b and c follows the one before after so many
 * elements. */
typedef struct blas_product {
    bool transposed;
    uint32_t m, n, k, lda, ldb, ldc;
    const float *a, *b;
    float *c;
} blas_product;

void blas_run(const blas *library, const blas_product *p);

#endif
