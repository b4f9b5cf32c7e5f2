/* blas.c - the fake cuBLAS: one plain product of matrices that are stored column after column. */
#include "fake_cuda/state.h"

enum { STATUS_NOT_INITIALIZED = 1, STATUS_INVALID_VALUE = 7 };

struct cublasContext {
    vpps_cu_stream stream;
};

vpps_cublas_result cublasCreate_v2(vpps_cublas_handle *handle) {
    if (fake_check(true) != VPPS_CU_SUCCESS) return STATUS_NOT_INITIALIZED;
    const vpps_cublas_result fault = fake_fault("cublasCreate_v2");
    if (fault != VPPS_CU_BLAS_SUCCESS) return fault;
    *handle = calloc(1, sizeof **handle);
    if (!*handle) abort();
    COUNT(blas_handles, 1);
    return VPPS_CU_BLAS_SUCCESS;
}

vpps_cublas_result cublasDestroy_v2(vpps_cublas_handle handle) {
    if (fake_check_release() != VPPS_CU_SUCCESS) return STATUS_NOT_INITIALIZED;
    fake_drain();
    free(handle);
    COUNT(blas_handles, -1);
    return VPPS_CU_BLAS_SUCCESS;
}

vpps_cublas_result cublasSetStream_v2(vpps_cublas_handle handle, vpps_cu_stream stream) {
    handle->stream = stream;
    return fake_fault("cublasSetStream_v2");
}

vpps_cublas_result cublasSetMathMode(vpps_cublas_handle handle, unsigned mode) {
    (void)handle;
    return mode == VPPS_CU_BLAS_DEFAULT_MATH ? VPPS_CU_BLAS_SUCCESS : STATUS_INVALID_VALUE;
}

typedef struct product_work {
    bool transpose_a, transpose_b;
    size_t m, n, k, lda, ldb, ldc;
    float alpha, beta;
    uint64_t a, b, c;
} product_work;

/* As in the BLAS, C is not read where beta is 0. */
static vpps_cu_result multiply(void *payload) {
    const product_work *w = payload;
    const size_t a_columns = w->transpose_a ? w->m : w->k, b_columns = w->transpose_b ? w->k : w->n;
    const float *a = fake_host(w->a, 4 * w->lda * a_columns), *b = fake_host(w->b, 4 * w->ldb * b_columns);
    float *c = fake_host(w->c, 4 * w->ldc * w->n);
    if (!a || !b || !c) return CODE_ILLEGAL_ADDRESS;
    for (size_t j = 0; j < w->n; j++)
        for (size_t i = 0; i < w->m; i++) {
            double sum = 0;
            for (size_t l = 0; l < w->k; l++)
                sum += (double)a[w->transpose_a ? l + i * w->lda : i + l * w->lda] *
                       (double)b[w->transpose_b ? j + l * w->ldb : l + j * w->ldb];
            float *to = &c[i + j * w->ldc];
            *to = (float)(w->alpha * sum + (w->beta == 0 ? 0 : (double)w->beta * *to));
        }
    return VPPS_CU_SUCCESS;
}

/* Without a stream of its own a product runs at once: nothing orders it after a non-blocking stream's work. */
vpps_cublas_result cublasSgemm_v2(vpps_cublas_handle handle, unsigned transpose_a, unsigned transpose_b, int m, int n,
                                  int k, const float *alpha, const float *a, int lda, const float *b, int ldb,
                                  const float *beta, float *c, int ldc) {
    const vpps_cublas_result fault = fake_fault("cublasSgemm_v2");
    if (fault != VPPS_CU_BLAS_SUCCESS) return fault;
    const bool ta = transpose_a == VPPS_CU_BLAS_OP_T, tb = transpose_b == VPPS_CU_BLAS_OP_T;
    if (m < 1 || n < 1 || k < 1 || lda < (ta ? k : m) || ldb < (tb ? n : k) || ldc < m) return STATUS_INVALID_VALUE;
    product_work w = {ta,          tb,     (size_t)m, (size_t)n,    (size_t)k,    (size_t)lda, (size_t)ldb,
                      (size_t)ldc, *alpha, *beta,     (uintptr_t)a, (uintptr_t)b, (uintptr_t)c};
    if (handle->stream)
        fake_enqueue(multiply, &w, sizeof w);
    else
        multiply(&w);
    return VPPS_CU_BLAS_SUCCESS;
}
