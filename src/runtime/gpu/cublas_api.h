/* cublas_api.h - declarations of the cuBLAS functions that VPPS calls, so that it builds without cuBLAS (cuBLAS Library, "Using the cuBLAS
 * API"). tests/runtime/cuda_declarations.c compares them with cuBLAS's header if there is one. The library is opened at run time. */
#pragma once

#include "base/base.h"

typedef struct cublasContext *vpps_cublas_handle;
typedef struct CUstream_st *vpps_cublas_stream;

/* cuBLAS's constants as X(their name, our name, value). cublasGemmAlgo_t is declared as int, other enums as unsigned (compatible in C). */
#define VPPS_CUBLAS_CONSTANTS(X)                                                                                       \
    X(CUBLAS_STATUS_SUCCESS, VPPS_CUBLAS_SUCCESS, 0)                                                                   \
    X(CUBLAS_STATUS_ALLOC_FAILED, VPPS_CUBLAS_ALLOC_FAILED, 3)                                                         \
    X(CUBLAS_STATUS_INVALID_VALUE, VPPS_CUBLAS_INVALID_VALUE, 7)                                                       \
    X(CUBLAS_STATUS_EXECUTION_FAILED, VPPS_CUBLAS_EXECUTION_FAILED, 13)                                                \
    X(MAJOR_VERSION, VPPS_CUBLAS_MAJOR_VERSION, 0)                                                                     \
    X(CUBLAS_ATOMICS_NOT_ALLOWED, VPPS_CUBLAS_ATOMICS_NOT_ALLOWED, 0)                                                  \
    X(CUBLAS_DEFAULT_MATH, VPPS_CUBLAS_DEFAULT_MATH, 0)                                                                \
    X(CUBLAS_OP_N, VPPS_CUBLAS_AS_IT_IS, 0)                                                                            \
    X(CUBLAS_OP_T, VPPS_CUBLAS_TRANSPOSED, 1)                                                                          \
    X(CUDA_R_32F, VPPS_CUBLAS_FP32, 0)                                                                                 \
    X(CUDA_R_16BF, VPPS_CUBLAS_BF16, 14)                                                                               \
    X(CUBLAS_COMPUTE_32F, VPPS_CUBLAS_COMPUTE_FP32, 68)                                                                \
    X(CUBLAS_COMPUTE_32F_FAST_TF32, VPPS_CUBLAS_COMPUTE_TF32, 77)                                                      \
    X(CUBLAS_GEMM_DEFAULT, VPPS_CUBLAS_GEMM_DEFAULT, -1)
enum {
#define X(theirs, ours, value) ours = (value),
    VPPS_CUBLAS_CONSTANTS(X)
#undef X
};

/* cuBLAS's functions as X(name, parameters); each returns a cublasStatus_t. Matrices are stored by columns. */
#define VPPS_CUBLAS_FUNCTIONS(X)                                                                                       \
    X(cublasGetProperty, (unsigned type, int *value))                                                                  \
    X(cublasCreate_v2, (vpps_cublas_handle * handle))                                                                  \
    X(cublasDestroy_v2, (vpps_cublas_handle handle))                                                                   \
    X(cublasSetStream_v2, (vpps_cublas_handle handle, vpps_cublas_stream stream))                                      \
    X(cublasSetWorkspace_v2, (vpps_cublas_handle handle, void *workspace, size_t bytes))                               \
    X(cublasSetAtomicsMode, (vpps_cublas_handle handle, unsigned mode))                                                \
    X(cublasSetMathMode, (vpps_cublas_handle handle, unsigned mode))                                                   \
    X(cublasGemmBatchedEx,                                                                                             \
      (vpps_cublas_handle handle, unsigned op_a, unsigned op_b, int m, int n, int k, const void *alpha,                \
       const void *const *a, unsigned type_a, int ld_a, const void *const *b, unsigned type_b, int ld_b,               \
       const void *beta, void *const *c, unsigned type_c, int ld_c, int batch, unsigned compute, int algorithm))

typedef struct vpps_cublas_api {
#define X(name, parameters) unsigned(*name) parameters;
    VPPS_CUBLAS_FUNCTIONS(X)
#undef X
    const char *(*cublasGetStatusString)(unsigned status);
} vpps_cublas_api;
