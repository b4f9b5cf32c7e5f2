/* blas.h - fp32 matrix products by another library, for comparison with the engine's products. */
#ifndef VPPS_BENCH_BLAS_H
#define VPPS_BENCH_BLAS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct blas blas;

/* Opens a shared library that has cblas_sgemm (BLIS, OpenBLAS, MKL), dnnl_sgemm (oneDNN) or libxsmm_smmdispatch
 * (libxsmm), for use on one thread, until the program ends. Exits with a message if the library has none of these
 * functions. */
blas *blas_open(const char *path);

/* A product c = op(a) b, op(a) being a or its transpose: c is m x n, each element a sum of k products. Matrices are
 * row-major; lda, ldb and ldc are the elements from one row to the next. */
typedef struct blas_product {
    bool transposed;
    uint32_t m, n, k, lda, ldb, ldc;
    const float *a, *b;
    float *c;
} blas_product;

void blas_run(const blas *library, const blas_product *p);

#endif
