/* blas.c - calls other libraries' matrix products. */
#include "blas.h"
#include "base/base.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* values of CBLAS_ORDER and CBLAS_TRANSPOSE in the reference CBLAS */
enum { BY_ROWS = 101, AS_IT_LIES = 111, TRANSPOSED = 112 };

typedef void (*cblas_sgemm_t)(int order, int op_a, int op_b, int m, int n, int k, float alpha, const float *a, int lda,
                              const float *b, int ldb, float beta, float *c, int ldc);
typedef int (*dnnl_sgemm_t)(char op_a, char op_b, int64_t m, int64_t n, int64_t k, float alpha, const float *a,
                            int64_t lda, const float *b, int64_t ldb, float beta, float *c, int64_t ldc);

/* libxsmm 1.17: a kernel per shape, for column-major matrices, compiled once and then looked up. */
typedef void (*xsmm_kernel)(const float *a, const float *b, float *c, ...);
typedef xsmm_kernel (*xsmm_dispatch_t)(int m, int n, int k, const int *lda, const int *ldb, const int *ldc,
                                       const float *alpha, const float *beta, const int *flags, const int *prefetch);
enum { XSMM_TRANSPOSE_B = 2, XSMM_SIDE = 64 /* side of a kernel's tile */ };

struct blas {
    cblas_sgemm_t cblas;
    dnnl_sgemm_t dnnl;
    xsmm_dispatch_t xsmm;
};

static void *find(void *library, const char *name, void *function, size_t size) {
    void *found = dlsym(library, name);
    memcpy(function, &found, size);
    return found;
}

blas *blas_open(const char *path) {
    static const char *const threads[] = {"OMP_NUM_THREADS", "BLIS_NUM_THREADS", "OPENBLAS_NUM_THREADS",
                                          "MKL_NUM_THREADS"};
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) setenv(threads[i], "1", 1);
    setenv("MKL_THREADING_LAYER", "SEQUENTIAL", 1);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    blas *b = calloc(1, sizeof *b);
    if (!library || !b) {
        fprintf(stderr, "bench_kernels: %s\n", library ? "out of memory" : dlerror());
        exit(EXIT_FAILURE);
    }
    if (!find(library, "cblas_sgemm", &b->cblas, sizeof b->cblas) &&
        !find(library, "dnnl_sgemm", &b->dnnl, sizeof b->dnnl) &&
        !find(library, "libxsmm_smmdispatch", &b->xsmm, sizeof b->xsmm)) {
        fprintf(stderr, "bench_kernels: %s: has none of cblas_sgemm, dnnl_sgemm and libxsmm_smmdispatch\n", path);
        exit(EXIT_FAILURE);
    }
    return b;
}

/* Computes the product as column-major matrices: c' = b' op(a)'. */
static void run_tiles(xsmm_dispatch_t dispatch, const blas_product *p) {
    const int lda = (int)p->ldb, ldb = (int)p->lda, ldc = (int)p->ldc;
    const int flags = p->transposed ? XSMM_TRANSPOSE_B : 0;
    const float one = 1, zero = 0;
    for (uint32_t i = 0; i < p->n; i += XSMM_SIDE) {
        for (uint32_t j = 0; j < p->m; j += XSMM_SIDE) {
            const uint32_t rows = vpps_min_u32(p->n - i, XSMM_SIDE);
            const uint32_t columns = vpps_min_u32(p->m - j, XSMM_SIDE);
            const xsmm_kernel kernel =
                dispatch((int)rows, (int)columns, (int)p->k, &lda, &ldb, &ldc, &one, &zero, &flags, NULL);
            if (!kernel) {
                fprintf(stderr, "bench_kernels: libxsmm has no kernel for %u x %u\n", rows, columns);
                exit(EXIT_FAILURE);
            }
            kernel(p->b + i, p->a + (p->transposed ? j : (size_t)j * p->lda), p->c + i + (size_t)j * p->ldc);
        }
    }
}

void blas_run(const blas *library, const blas_product *p) {
    if (library->xsmm)
        run_tiles(library->xsmm, p);
    else if (library->cblas)
        library->cblas(BY_ROWS, p->transposed ? TRANSPOSED : AS_IT_LIES, AS_IT_LIES, (int)p->m, (int)p->n, (int)p->k, 1,
                       p->a, (int)p->lda, p->b, (int)p->ldb, 0, p->c, (int)p->ldc);
    else
        library->dnnl(p->transposed ? 'T' : 'N', 'N', p->m, p->n, p->k, 1, p->a, p->lda, p->b, p->ldb, 0, p->c, p->ldc);
}
