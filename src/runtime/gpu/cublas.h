/* cublas.h - matrix products by the library cuBLAS, on the GPU that a vpps_driver controls. */
#pragma once

#include "runtime/gpu/driver.h"

typedef struct vpps_cublas vpps_cublas;

/* n matrix products of one shape, computed by one call. A product is the sum of dy x^T over `depth` pairs of vectors dy and x, stored by
 * rows. `to`, `dy` and `x` are device addresses of arrays of n addresses: of the results, and of each product's first dy and first x. */
typedef struct vpps_gemm {
    uint32_t rows, columns, depth;
    uint32_t dy_stride, x_stride; /* number of elements from one vector dy, or one vector x, to the next */
    uint64_t to, dy, x;
    uint32_t n;
    bool bf16; /* whether the vectors are in bf16, else fp32; results and sums are always in fp32 */
    bool tf32; /* whether fp32 vectors are rounded to TF32 */
    bool adds; /* true: the products are added to `to`; false: they replace its contents */
} vpps_gemm;

/* Opens cuBLAS: the library that $VPPS_LIBCUBLAS names, else libcublas.so, .so.13 or .so.12 in the folders that base/library.h lists. Under
 * software SIMT (kernels on the CPU) only $VPPS_LIBCUBLAS is used, a stand-in that works on host memory. The process's first call chooses
 * the library. Equal calls give equal bits: one stream, a workspace of the handle's own, no atomics. Fails with MEMORY; and with DEVICE if
 * there is no such library or its version is before 12. */
vpps_status vpps_cublas_open(vpps_cublas **out, vpps_driver *driver);

/* Closes the cuBLAS handle; to be called before the driver is closed. NULL is allowed. */
void vpps_cublas_close(vpps_cublas *b);

/* Queues products gemms[0] to gemms[n - 1] on the GPU, after all earlier work. Fails with DEVICE; STALL: GPU lost. */
vpps_status vpps_cublas_multiply(vpps_cublas *b, const vpps_gemm *gemms, uint32_t n);
