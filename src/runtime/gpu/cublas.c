/* cublas.c - matrix products by cuBLAS. The library is never unloaded, since it holds memory that outlives a handle. */
#include "runtime/gpu/cublas.h"
#include "base/library.h"
#include "runtime/gpu/cublas_api.h"

#include <dlfcn.h>

enum { FIRST_VERSION = 12 };

/* Size of cuBLAS's workspace: the size that cuBLAS itself uses on a GPU of sm_90, the largest of all (cuBLAS Library, cublasSetWorkspace),
 * so that it suffices for all algorithms. */
enum { WORKSPACE_BYTES = 32 << 20 };

struct vpps_cublas {
    vpps_driver *driver;
    vpps_cublas_handle handle;
    uint64_t workspace;
};

static vpps_cublas_api api;

static int major_of(void *handle) {
    unsigned (*property)(unsigned type, int *value);
    int major;
    void *address = dlsym(handle, "cublasGetProperty");
    memcpy(&property, &address, sizeof property);
    return address && property(VPPS_CUBLAS_MAJOR_VERSION, &major) == VPPS_CUBLAS_SUCCESS ? major : 0;
}

static vpps_status find_functions(const vpps_library *library, void *handle) {
    const int major = major_of(handle);
    if (major && major < FIRST_VERSION)
        return vpps_fail(VPPS_DEVICE, "cuBLAS: its version %d is too old; expected %d or later", major, FIRST_VERSION);
#define X(name, parameters) VPPS_TRY(vpps_library_find(library->title, handle, #name, &api.name));
    VPPS_CUBLAS_FUNCTIONS(X)
#undef X
    return vpps_library_find(library->title, handle, "cublasGetStatusString", &api.cublasGetStatusString);
}

static vpps_library cublas = {.title = "cuBLAS",
                              .variable = "VPPS_LIBCUBLAS",
                              .names = {"libcublas.so", "libcublas.so.13", "libcublas.so.12"},
                              .major = major_of,
                              .take = find_functions};

static vpps_status check(const char *call, unsigned status) {
    if (status == VPPS_CUBLAS_SUCCESS) return VPPS_OK;
    return vpps_fail(VPPS_DEVICE, "cuBLAS: %s: %s (%u)", call, api.cublasGetStatusString(status), status);
}

#define CUBLAS_TRY(function, ...) VPPS_TRY(check(#function, api.function(__VA_ARGS__)))

/* Creates and sets up the handle. The workspace is set last, since setting a stream resets it. */
static vpps_status create(void *context, struct CUstream_st *stream) {
    vpps_cublas *b = context;
    CUBLAS_TRY(cublasCreate_v2, &b->handle);
    CUBLAS_TRY(cublasSetAtomicsMode, b->handle, VPPS_CUBLAS_ATOMICS_NOT_ALLOWED);
    CUBLAS_TRY(cublasSetMathMode, b->handle, VPPS_CUBLAS_DEFAULT_MATH);
    CUBLAS_TRY(cublasSetStream_v2, b->handle, stream);
    CUBLAS_TRY(cublasSetWorkspace_v2, b->handle, (void *)(uintptr_t)b->workspace, WORKSPACE_BYTES);
    return VPPS_OK;
}

static vpps_status destroy(void *context, struct CUstream_st *stream) {
    vpps_cublas *b = context;
    (void)stream;
    if (b->handle) CUBLAS_TRY(cublasDestroy_v2, b->handle);
    return VPPS_OK;
}

vpps_status vpps_cublas_open(vpps_cublas **out, vpps_driver *driver) {
    const char *named = getenv(cublas.variable);
    *out = NULL;
    if (driver->table != &vpps_driver_cuda && !(named && *named))
        return vpps_fail(VPPS_DEVICE, "%s: there is no cuBLAS here; VPPS_LIBCUBLAS can name a stand-in",
                         driver->table->name);
    VPPS_TRY(vpps_library_open(&cublas));
    vpps_cublas *b = calloc(1, sizeof *b);
    if (!b) return vpps_fail(VPPS_MEMORY, "cuBLAS: out of memory");
    b->driver = driver;
    vpps_status status = driver->table->allocate(driver, WORKSPACE_BYTES, &b->workspace);
    if (status != VPPS_OK) {
        free(b);
        return status;
    }
    status = driver->table->within(driver, create, b);
    if (status == VPPS_OK) {
        *out = b;
        return VPPS_OK;
    }
    char text[VPPS_MESSAGE_BYTES];
    snprintf(text, sizeof text, "%s", vpps_error_message());
    vpps_cublas_close(b);
    vpps_restore_message(text);
    return status;
}

void vpps_cublas_close(vpps_cublas *b) {
    if (!b) return;
    (void)b->driver->table->within(b->driver, destroy, b); /* fails, leaking the handle, if the GPU no longer answers */
    b->driver->table->release(b->driver, b->workspace);
    free(b);
}

typedef struct products {
    vpps_cublas *cublas;
    const vpps_gemm *gemms;
    uint32_t n;
} products;

static const void *const *array(uint64_t address) { return (const void *const *)(uintptr_t)address; }

/* Computes the products of one call. cuBLAS stores matrices by columns, so it computes the transposed results, x dy^T. */
static vpps_status multiply(const vpps_cublas *b, const vpps_gemm *g) {
    const float one = 1, kept = g->adds ? 1 : 0;
    const unsigned type = g->bf16 ? VPPS_CUBLAS_BF16 : VPPS_CUBLAS_FP32;
    CUBLAS_TRY(cublasGemmBatchedEx, b->handle, VPPS_CUBLAS_AS_IT_IS, VPPS_CUBLAS_TRANSPOSED, (int)g->columns,
               (int)g->rows, (int)g->depth, &one, array(g->x), type, (int)g->x_stride, array(g->dy), type,
               (int)g->dy_stride, &kept, (void *const *)(uintptr_t)g->to, VPPS_CUBLAS_FP32, (int)g->columns, (int)g->n,
               g->tf32 ? VPPS_CUBLAS_COMPUTE_TF32 : VPPS_CUBLAS_COMPUTE_FP32, VPPS_CUBLAS_GEMM_DEFAULT);
    return VPPS_OK;
}

static vpps_status multiply_all(void *context, struct CUstream_st *stream) {
    const products *p = context;
    (void)stream; /* `create` has given it to the handle */
    for (uint32_t i = 0; i < p->n; i++) VPPS_TRY(multiply(p->cublas, &p->gemms[i]));
    return VPPS_OK;
}

vpps_status vpps_cublas_multiply(vpps_cublas *b, const vpps_gemm *gemms, uint32_t n) {
    products p = {b, gemms, n};
    return n ? b->driver->table->within(b->driver, multiply_all, &p) : VPPS_OK;
}
