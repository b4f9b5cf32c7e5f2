/* cpu.h - the CPU device: virtual processors are threads, each with its own rows of every matrix.
 *
 *   device.c   memory, threads, launching
 *   vp.c       the interpreter's loop: control and elementwise instructions
 *   shared.c   instructions on matrices and parameters
 *   failure.c  how a batch that cannot go on ends
 */
#ifndef VPPS_CPU_H
#define VPPS_CPU_H

#include "runtime/cpu/kernels.h"
#include "runtime/device.h"
#include "runtime/layout.h"

#include <pthread.h>
#include <stdatomic.h>

/* A VP's rows of a matrix, column after column (element (r, p) at p * n_rows + r - first row), so that they lie in its
 * core's own cache. */
typedef struct vpps_panel {
    float *values, *gradient, *states[VPPS_MAX_STATES];
    float *transposed; /* the VP's columns of the whole matrix: element (c, r) at r * n_cols + c - first column */
    uint32_t n_rows, first_row, n_cols, first_col;
    uint32_t touched; /* launch that last added to the gradient: what an older one left counts as zero */
} vpps_panel;

/* JIT-compiled products by shape. */
typedef struct vpps_product_key {
    uint32_t m, n, k, lda, ldb, ldc;
    bool transposed_b, accumulate;
} vpps_product_key;

typedef struct vpps_product {
    vpps_product_key key;
    void (*run)(const float *a, const float *b, float *c); /* NULL: none could be made */
    bool used;
} vpps_product;

typedef struct vpps_vp {
    struct vpps_cpu *cpu;
    uint32_t index;
    pthread_t thread;
    bool has_thread;
    vpps_panel *panels; /* one a parameter; only matrices' are used */
    float *panel_memory;
    float *scratch; /* gathered vectors */
    size_t scratch_floats;
    const float **pointers; /* of a list's members */
    size_t pointers_capacity;
    vpps_product *products;
    size_t n_products, products_capacity;
    double norm;     /* sum of squares of this batch's gradients */
    uint64_t end_ns; /* when its part of the latest batch was done */
} vpps_vp;

typedef struct vpps_counter {
    _Alignas(64) atomic_uint value; /* a cache line each: VPs spin on them */
} vpps_counter;

typedef struct vpps_cpu {
    vpps_device device;
    const vpps_model *model;
    const vpps_kernels *kernels;
    bool use_xsmm, caller_works, oversubscribed;
    uint32_t n_vps;
    uint64_t watchdog_ns;
    vpps_plan plan;
    vpps_rows gradients; /* of vectors, in the pool */
    float *pool;
    size_t pool_bytes;
    vpps_vp *vps;
    vpps_counter *counters;
    size_t n_counters;

    /* the batch in flight */
    const uint32_t *script;
    vpps_script_header header;
    uint32_t launch; /* number of launches so far */
    uint64_t start_ns;
    atomic_bool failed; /* set by the first VP that fails; all others stop */
    pthread_mutex_t failure_lock;
    vpps_outcome outcome;

    /* starting and finishing: workers wait for `epoch` to change, the caller for `running` to be zero */
    _Alignas(64) atomic_uint epoch;
    _Alignas(64) atomic_uint running;
    atomic_uint sleepers;
    atomic_bool quit;
    pthread_mutex_t lock;
    pthread_cond_t changed;
} vpps_cpu;

/* Rows it owns of something with so many. */
static inline vpps_rows vpps_vp_rows(const vpps_vp *vp, uint32_t rows) {
    return vpps_rows_of(rows, vp->cpu->plan.row_block, vp->cpu->n_vps, vp->index);
}

/* Runs the VP's part of the script. */
void vpps_vp_run(vpps_vp *vp);

/* One SHARED instruction. `at` is its word 0. */
void vpps_vp_shared(vpps_vp *vp, const uint32_t *at);

/* The norm of the gradient, whose parts the VPs have published in their order; 0 where the script takes none. */
double vpps_cpu_norm(const vpps_cpu *cpu);

/* Reports a failure, unless another VP was first, and stops the batch. `address`: of the instruction. */
void vpps_vp_fail(vpps_vp *vp, vpps_status status, uint32_t address, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Between two looks at a shared variable, the i-th time. */
void vpps_relax(const vpps_cpu *cpu, uint32_t i);

#endif
