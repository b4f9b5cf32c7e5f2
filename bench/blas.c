/* blas.c - see blas.h. */
#include "blas.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BY_ROWS = 101, AS_IT_LIES = 111, TRANSPOSED = 112 }; /* CBLAS_ORDER and CBLAS_TRANSPOSE of the reference CBLAS */

typedef void (*cblas_sgemm_t)(int order, int op_a, int op_b, int m, int n, int k, float alpha, const float *a, int lda,
                              const float *b, int ldb, float beta, float *c, int ldc);
typedef int (*dnnl_sgemm_t)(char op_a, char op_b, int64_t m, int64_t n, int64_t k, float alpha, const float *a,
                            int64_t lda, const float *b, int64_t ldb, float beta, float *c, int64_t ldc);

struct blas {
    cblas_sgemm_t cblas;
    dnnl_sgemm_t dnnl;
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
        !find(library, "dnnl_sgemm", &b->dnnl, sizeof b->dnnl)) {
        fprintf(stderr, "bench_kernels: %s: has neither cblas_sgemm nor dnnl_sgemm\n", path);
        exit(EXIT_FAILURE);
    }
    return b;
}

void blas_run(const blas *library, const blas_product *p) {
    if (library->cblas)
        library->cblas(BY_ROWS, p->transposed ? TRANSPOSED : AS_IT_LIES, AS_IT_LIES, (int)p->m, (int)p->n, (int)p->k, 1,
                       p->a, (int)p->lda, p->b, (int)p->ldb, 0, p->c, (int)p->ldc);
    else
        library->dnnl(p->transposed ? 'T' : 'N', 'N', p->m, p->n, p->k, 1, p->a, p->lda, p->b, p->ldb, 0, p->c, p->ldc);
}
