/* cublas.h - products by cuBLAS on the stream of a driver's machine. The library is opened before the first of them. */
#pragma once

#include "runtime/gpu/driver.h"

typedef struct vpps_cublas vpps_cublas;

/* n products of one shape: each matrix, row after row, becomes or (`adds`) gets the sum over `depth` pairs of vectors dy x^T. The
 * arrays of n addresses, of the matrices and of the first vectors, lie in the machine's memory. */
typedef struct vpps_gemm {
    uint32_t rows, columns, depth;
    uint32_t dy_stride, x_stride; /* elements from one vector to the next */
    uint64_t to, dy, x;
    uint32_t n;
    bool bf16; /* the vectors are; the matrices, and sums, are in fp32 */
    bool tf32; /* vectors in fp32 are rounded to TF32 */
    bool adds;
} vpps_gemm;

/* $VPPS_LIBCUBLAS names the library; else it is libcublas.so, .so.13 or .so.12 where library.h looks; software SIMT has what the
 * variable names, a stand-in that knows the host's memory. The process's first call decides. Sums are made in the same order every
 * time: one stream, a workspace of its own, no atomics. Fails with DEVICE: there is no such library, or one before version 12; with
 * MEMORY. */
vpps_status vpps_cublas_open(vpps_cublas **out, vpps_driver *driver);

/* Before the driver is closed; nothing for NULL. */
void vpps_cublas_close(vpps_cublas *b);

/* Asks for n products, in the order of the driver's calls. Fails with DEVICE, STALL. */
vpps_status vpps_cublas_multiply(vpps_cublas *b, const vpps_gemm *gemms, uint32_t n);
