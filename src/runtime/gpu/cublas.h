/* cublas.h - matrix products by cuBLAS on the GPU that a driver controls. The library is opened before the first product. */
#pragma once

#include "runtime/gpu/driver.h"

typedef struct vpps_cublas vpps_cublas;

/* A batch of n products of one shape. Each result, stored by rows, is set to (or, if `adds`, increased by) the sum of dy x^T over `depth`
 * pairs of vectors. `to`, `dy` and `x` are device addresses of arrays of n addresses: of the results, and of the first vectors dy and x. */
typedef struct vpps_gemm {
    uint32_t rows, columns, depth;
    uint32_t dy_stride, x_stride; /* distance from one vector to the next, in elements */
    uint64_t to, dy, x;
    uint32_t n;
    bool bf16; /* vectors are in bf16; results and sums are in fp32 in any case */
    bool tf32; /* fp32 vectors are rounded to TF32 */
    bool adds;
} vpps_gemm;

/* Opens cuBLAS: the library that $VPPS_LIBCUBLAS names, else libcublas.so, .so.13 or .so.12 where library.h looks. Under software SIMT only
 * $VPPS_LIBCUBLAS counts, which names a stand-in that works on host memory. The process's first call decides. Sums always have the same
 * order: one stream, a workspace of its own, no atomics. Fails with DEVICE if there is no such library or its version is before 12, and
 * with MEMORY. */
vpps_status vpps_cublas_open(vpps_cublas **out, vpps_driver *driver);

/* Closes the cuBLAS handle; to be called before the driver is closed. NULL is allowed. */
void vpps_cublas_close(vpps_cublas *b);

/* Queues the products of n batches of products, in the order of the driver's other calls. Fails with DEVICE, STALL. */
vpps_status vpps_cublas_multiply(vpps_cublas *b, const vpps_gemm *gemms, uint32_t n);
