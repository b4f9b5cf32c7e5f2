/* cublas.c - see fake_cublas.h. A product is computed when its call returns, unless a test defers it. Refuses settings with which bits might not
 * repeat. Its major version is the number at the end of the name that it was loaded by, libcublas.so.12; 13 without. FAKE_CUBLAS_FAILS=FUNCTION: that
 * call fails. FAKE_CUBLAS_LOG=FILE gets a line for each product: columns, rows, depth, how many at once, the type of the factors, and 1 where they
 * are added. */
#include "fake_cublas/fake_cublas.h"

#include "runtime/gpu/cublas_api.h"

#include <dlfcn.h>
#include <stdio.h>

#define EXPORT __attribute__((visibility("default")))

/* The functions that the library exports. */
#define X(name, parameters) EXPORT unsigned name parameters;
VPPS_CUBLAS_FUNCTIONS(X)
#undef X
EXPORT const char *cublasGetStatusString(unsigned status);

static fake_cublas_later later;

static void defer(fake_cublas_later to) { later = to; }

EXPORT extern const fake_cublas_controls fake_cublas;
const fake_cublas_controls fake_cublas = {defer};

enum { LEAST_WORKSPACE = 4 << 20 };

struct cublasContext {
    vpps_cublas_stream stream;
    void *workspace;
    bool no_atomics, default_math;
};

static unsigned result_of(const char *function) {
    const char *failing = getenv("FAKE_CUBLAS_FAILS");
    return failing && !strcmp(failing, function) ? VPPS_CUBLAS_EXECUTION_FAILED : VPPS_CUBLAS_SUCCESS;
}

const char *cublasGetStatusString(unsigned status) {
    return status == VPPS_CUBLAS_INVALID_VALUE ? "the stand-in refuses" : "the stand-in fails as asked";
}

unsigned cublasGetProperty(unsigned type, int *value) {
    Dl_info info;
    if (type != VPPS_CUBLAS_MAJOR_VERSION) return VPPS_CUBLAS_INVALID_VALUE;
    const char *dot = dladdr((void *)(uintptr_t)cublasGetProperty, &info) ? strrchr(info.dli_fname, '.') : NULL;
    *value = dot ? (int)strtol(dot + 1, NULL, 10) : 0;
    if (!*value) *value = 13;
    return VPPS_CUBLAS_SUCCESS;
}

unsigned cublasCreate_v2(vpps_cublas_handle *handle) {
    *handle = calloc(1, sizeof **handle);
    return result_of(__func__);
}

unsigned cublasDestroy_v2(vpps_cublas_handle handle) {
    free(handle);
    return result_of(__func__);
}

/* Resets the workspace, as cuBLAS does. */
unsigned cublasSetStream_v2(vpps_cublas_handle handle, vpps_cublas_stream stream) {
    handle->stream = stream;
    handle->workspace = NULL;
    return result_of(__func__);
}

unsigned cublasSetWorkspace_v2(vpps_cublas_handle handle, void *workspace, size_t bytes) {
    handle->workspace = bytes >= LEAST_WORKSPACE ? workspace : NULL;
    return result_of(__func__);
}

unsigned cublasSetAtomicsMode(vpps_cublas_handle handle, unsigned mode) {
    handle->no_atomics = mode == VPPS_CUBLAS_ATOMICS_NOT_ALLOWED;
    return result_of(__func__);
}

unsigned cublasSetMathMode(vpps_cublas_handle handle, unsigned mode) {
    handle->default_math = mode == VPPS_CUBLAS_DEFAULT_MATH;
    return result_of(__func__);
}

static float element(const void *from, unsigned type, size_t i) {
    uint16_t bits;
    float x;
    if (type == VPPS_CUBLAS_FP32) return ((const float *)from)[i];
    memcpy(&bits, (const char *)from + i * sizeof bits, sizeof bits);
    const uint32_t word = (uint32_t)bits << 16;
    memcpy(&x, &word, sizeof x);
    return x;
}

/* Rounds to the nearest number with 10 bits after the point; ties go away from 0. */
static float rounded(float x, bool tf32) {
    uint32_t word;
    memcpy(&word, &x, sizeof word);
    if (tf32 && (word & 0x7f800000) != 0x7f800000) word = (word + 0x1000) & ~(uint32_t)0x1fff;
    memcpy(&x, &word, sizeof x);
    return x;
}

static bool note(int m, int n, int k, int batch, unsigned type, bool adds) {
    const char *log = getenv("FAKE_CUBLAS_LOG");
    FILE *f = log ? fopen(log, "a") : NULL;
    if (!log) return true;
    if (!f) return false;
    fprintf(f, "%d %d %d %d %u %d\n", m, n, k, batch, type, adds);
    return fclose(f) == 0;
}

/* The products of a call, of n x k with k x m matrices, all stored column after column. */
typedef struct products {
    int m, n, k, batch;
    const void *const *a, *const *b;
    void *const *c;
    int ld_a, ld_b, ld_c;
    unsigned type; /* type of a and b */
    bool tf32;     /* whether elements are rounded */
    float kept;
} products;

static float product(const products *p, int i, size_t row, size_t column) {
    const float kept = ((const float *)p->c[i])[row * (size_t)p->ld_c + column];
    float sum = p->kept != 0 ? p->kept * kept : 0.0f;
    for (size_t v = 0; v < (size_t)p->k; v++)
        sum += rounded(element(p->a[i], p->type, v * (size_t)p->ld_a + column), p->tf32) *
               rounded(element(p->b[i], p->type, v * (size_t)p->ld_b + row), p->tf32);
    return sum;
}

static void multiply(const void *payload) {
    const products *p = payload;
    for (int i = 0; i < p->batch; i++)
        for (size_t row = 0; row < (size_t)p->n; row++)
            for (size_t column = 0; column < (size_t)p->m; column++)
                ((float *)p->c[i])[row * (size_t)p->ld_c + column] = product(p, i, row, column);
}

unsigned cublasGemmBatchedEx(vpps_cublas_handle h, unsigned op_a, unsigned op_b, int m, int n, int k, const void *alpha,
                             const void *const *a, unsigned type_a, int ld_a, const void *const *b, unsigned type_b,
                             int ld_b, const void *beta, void *const *c, unsigned type_c, int ld_c, int batch,
                             unsigned compute, int algorithm) {
    const float kept = *(const float *)beta;
    const bool tf32 = compute == VPPS_CUBLAS_COMPUTE_TF32 && type_a == VPPS_CUBLAS_FP32;
    const int aligned = type_a == VPPS_CUBLAS_BF16 ? 8 : 4;
    if (!h->workspace || !h->no_atomics || !h->default_math || op_a != VPPS_CUBLAS_AS_IT_IS ||
        op_b != VPPS_CUBLAS_TRANSPOSED || m < 1 || n < 1 || k < 1 || batch < 1 || *(const float *)alpha != 1 ||
        type_a != type_b || type_c != VPPS_CUBLAS_FP32 || ld_a < m || ld_b < n || ld_c < m || ld_a % aligned ||
        ld_b % aligned || (compute != VPPS_CUBLAS_COMPUTE_FP32 && !tf32) || algorithm != VPPS_CUBLAS_GEMM_DEFAULT)
        return VPPS_CUBLAS_INVALID_VALUE;
    if (!note(m, n, k, batch, type_a, kept != 0)) return VPPS_CUBLAS_ALLOC_FAILED;
    for (int i = 0; i < batch; i++) {
        if ((uintptr_t)a[i] % 256 || (uintptr_t)b[i] % 256) return VPPS_CUBLAS_INVALID_VALUE;
        for (int other = 0; other < i; other++)
            if (c[other] == c[i]) return VPPS_CUBLAS_INVALID_VALUE; /* in which order? */
    }
    const products p = {m, n, k, batch, a, b, c, ld_a, ld_b, ld_c, type_a, tf32, kept};
    if (later)
        later(multiply, &p, sizeof p);
    else
        multiply(&p);
    return result_of(__func__);
}
