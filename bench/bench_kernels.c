/* bench_kernels.c - what the CPU's kernels cost: every instruction's ns per 64 elements (isa.def's cost column), matrix
 * products in GFLOP/s beside libxsmm's, and the machine's own limits to hold them against.
 *
 *     bench_kernels [limits] [instructions] [products]        all by default; VPPS_ISA chooses the kernels
 *
 * Every figure is the median of short trials, with the best and the 90th percentile.
 */
#include "runtime/cpu/kernels.h"

#include <stdio.h>

#if VPPS_WITH_XSMM
#include <libxsmm.h>
#endif

enum { TRIALS = 41, TRIAL_NS = 200000, MAX_COLUMNS = 64, ROWS = 128, DEPTH = 256, ELEMS = 256 };

typedef struct figure {
    double median, low, high; /* ns a call */
} figure;

typedef void (*job)(void *context);

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static figure time_job(job run, void *context) {
    double ns[TRIALS];
    uint64_t calls = 1, start, spent;
    for (;; calls *= 2) { /* also warms up */
        start = vpps_now_ns();
        for (uint64_t i = 0; i < calls; i++) run(context);
        if ((spent = vpps_now_ns() - start) > TRIAL_NS) break;
    }
    for (int t = 0; t < TRIALS; t++) {
        start = vpps_now_ns();
        for (uint64_t i = 0; i < calls; i++) run(context);
        ns[t] = (double)(vpps_now_ns() - start) / (double)calls;
    }
    qsort(ns, TRIALS, sizeof(*ns), by_value);
    return (figure){ns[TRIALS / 2], ns[0], ns[TRIALS - 1 - TRIALS / 10]};
}

static float *buffer(size_t n, float low, float high) {
    static uint64_t state = 1;
    float *x = aligned_alloc(64, (n * sizeof(float) + 63) / 64 * 64);
    if (!x) exit(EXIT_FAILURE);
    for (size_t i = 0; i < n; i++) x[i] = low + (high - low) * vpps_random_unit(&state);
    return x;
}

/* ---------------------------------------------------------------- the machine */

#if defined(__x86_64__)
enum { CHAINS = 12, STEPS = 256 };

/* By hand, so that the compiler neither drops nor reorders it: 12 chains of multiply-adds. */
#define FMA12(r)                                                                                                       \
    "vfmadd231ps %%" r "mm0,%%" r "mm0,%%" r "mm1\n vfmadd231ps %%" r "mm0,%%" r "mm0,%%" r "mm2\n"                    \
    "vfmadd231ps %%" r "mm0,%%" r "mm0,%%" r "mm3\n vfmadd231ps %%" r "mm0,%%" r "mm0,%%" r "mm4\n"                    \
    "vfmadd231ps %%" r "mm0,%%" r "mm0,%%" r "mm5\n vfmadd231ps %%" r "mm0,%%" r "mm0,%%" r "mm6\n"                    \
    "vfmadd231ps %%" r "mm0,%%" r "mm0,%%" r "mm7\n vfmadd231ps %%" r "mm0,%%" r "mm0,%%" r "mm8\n"                    \
    "vfmadd231ps %%" r "mm0,%%" r "mm0,%%" r "mm9\n vfmadd231ps %%" r "mm0,%%" r "mm0,%%" r "mm10\n"                   \
    "vfmadd231ps %%" r "mm0,%%" r "mm0,%%" r "mm11\n vfmadd231ps %%" r "mm0,%%" r "mm0,%%" r "mm12\n"
#define CLOBBERS                                                                                                       \
    "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12"

static void multiply_adds(void *context) {
    const bool zmm = *(const bool *)context;
    __asm__ volatile("vpxor %%xmm0,%%xmm0,%%xmm0\n" ::: "xmm0");
    for (int i = 0; i < STEPS; i++) {
        if (zmm)
            __asm__ volatile(FMA12("z")::: CLOBBERS);
        else
            __asm__ volatile(FMA12("y")::: CLOBBERS);
    }
}

typedef struct region {
    const float *x;
    size_t bytes;
    bool zmm;
} region;

static void read_region(void *context) {
    const region *r = context;
    const char *p = (const char *)r->x, *end = p + r->bytes;
    if (r->zmm)
        for (; p < end; p += 256)
            __asm__ volatile("vmovups (%0),%%zmm0\n vmovups 64(%0),%%zmm1\n vmovups 128(%0),%%zmm2\n"
                             "vmovups 192(%0),%%zmm3\n" ::"r"(p)
                             : "memory", "xmm0", "xmm1", "xmm2", "xmm3");
    else
        for (; p < end; p += 128)
            __asm__ volatile("vmovups (%0),%%ymm0\n vmovups 32(%0),%%ymm1\n vmovups 64(%0),%%ymm2\n"
                             "vmovups 96(%0),%%ymm3\n" ::"r"(p)
                             : "memory", "xmm0", "xmm1", "xmm2", "xmm3");
}

static void print_limits(void) {
    bool zmm = __builtin_cpu_supports("avx512f");
    if (!zmm && !__builtin_cpu_supports("fma")) return;
    const figure f = time_job(multiply_adds, &zmm);
    const double flops = 2.0 * CHAINS * STEPS * (zmm ? 16 : 8);
    printf("limits of one core\n  multiply-adds      %7.1f GFLOP/s  (%.1f - %.1f)\n", flops / f.median, flops / f.high,
           flops / f.low);
    static const size_t kib[] = {16, 256, 512, 768, 1536, 4096, 16384, 262144};
    for (size_t i = 0; i < VPPS_COUNT(kib); i++) {
        region r = {buffer(kib[i] * 256, 0, 1), kib[i] * 1024, zmm};
        const figure g = time_job(read_region, &r);
        const double bytes = (double)r.bytes;
        printf("  read %6zu KiB    %7.1f GB/s     (%.1f - %.1f)\n", kib[i], bytes / g.median, bytes / g.high,
               bytes / g.low);
        free((void *)(uintptr_t)r.x);
    }
}
#else
static void print_limits(void) {}
#endif

/* ---------------------------------------------------------------- instructions */

typedef struct call {
    vpps_cpu_kernel kernel;
    uint32_t n;
    float *dst;
    vpps_operands o;
} call;

static void run_call(void *context) {
    call *c = context;
    c->kernel(c->n, false, c->dst, &c->o);
}

static void print_instructions(const vpps_kernels *kernels) {
    printf("instruction cost, ns for 64 elements of %d in L1, %s\n", ELEMS, kernels->isa);
    float *dst = buffer(ELEMS, 0, 1), *list[4];
    const float *members[4];
    for (int i = 0; i < 4; i++) members[i] = list[i] = buffer(ELEMS, 0.1f, 0.9f);
    for (uint32_t i = 0; i < VPPS_I_COUNT; i++) {
        const vpps_instruction_row *row = &vpps_instructions[i];
        if (!kernels->run[i]) continue;
        call c = {
            kernels->run[i], ELEMS, dst, {.t = {list[0], list[1], list[2]}, .s = {0.5f, 0.25f}, .f = 0.5f, .u = 1}};
        c.o.indices = (uint32_t *)(void *)buffer(ELEMS, 0, 1);
        c.o.weights = list[3];
        c.o.list = members, c.o.n_list = 2;
        c.o.r = 16, c.o.c = 16, c.o.k = 16; /* a small attention */
        const figure f = time_job(run_call, &c);
        const double scale = 64.0 / ELEMS;
        printf("  %-20s %7.2f  (%.2f - %.2f)   isa.def %3u\n", row->name, scale * f.median, scale * f.low,
               scale * f.high, row->cost);
        free(c.o.indices);
    }
    for (int i = 0; i < 4; i++) free(list[i]);
    free(dst);
}

/* ---------------------------------------------------------------- products */

typedef struct product {
    const vpps_kernels *kernels;
    uint32_t kind, n; /* 0 nn, 1 nt, 2 tn, 3 a gradient: ROWS x DEPTH, n deep; 4 blocks of rows, as stages multiply */
    const float *a, *b;
    float *c;
    const float *const *vectors; /* of b, for kind 4: they need not lie side by side */
    float *gathered;             /* room for them to, as libxsmm wants */
    const void *code;            /* libxsmm's */
} product;

enum { BLOCK = 64 };

static void run_product(void *context) {
    const product *p = context;
    const vpps_kernels *k = p->kernels;
    switch (p->kind) {
    case 0: k->gemm_nn(ROWS, p->n, DEPTH, p->a, ROWS, p->b, DEPTH, p->c, ROWS, true); break;
    case 1: k->gemm_nt(ROWS, p->n, DEPTH, p->a, ROWS, p->b, p->n, p->c, ROWS, true); break;
    case 4:
        for (uint32_t row = 0; row < ROWS; row += BLOCK)
            k->product(BLOCK, p->n, DEPTH, p->a + (size_t)row * DEPTH, BLOCK, p->vectors, 0, NULL, 0, p->c + row, ROWS,
                       p->a);
        break;
    case 2: k->gemm_tn(ROWS, p->n, DEPTH, p->a, ROWS, p->b, ROWS, p->c, DEPTH, true); break;
    default: k->gemm_nt(ROWS, DEPTH, p->n, p->a, ROWS, p->b, DEPTH, p->c, ROWS, true); break;
    }
}

#if VPPS_WITH_XSMM
static libxsmm_smmfunction xsmm_kernel(uint32_t kind, uint32_t n) {
    const bool gradient = kind == 3;
    const libxsmm_blasint m = kind == 4 ? BLOCK : ROWS, columns = (libxsmm_blasint)(gradient ? DEPTH : n);
    const libxsmm_blasint k = (libxsmm_blasint)(gradient ? n : DEPTH), lda = m, ldc = ROWS;
    const libxsmm_blasint ldb = kind == 0 || kind == 4 ? k : columns;
    const float alpha = 1, beta = kind == 4 ? 0 : 1;
    const int flags = kind == 0 || kind == 4 ? LIBXSMM_GEMM_FLAG_NONE : LIBXSMM_GEMM_FLAG_TRANS_B;
    const int prefetch = LIBXSMM_PREFETCH_NONE;
    return kind == 2 ? NULL : libxsmm_smmdispatch(m, columns, k, &lda, &ldb, &ldc, &alpha, &beta, &flags, &prefetch);
}
static void run_xsmm(void *context) {
    const product *p = context;
    libxsmm_smmfunction code;
    memcpy(&code, &p->code, sizeof(code));
    if (p->kind != 4) {
        code(p->a, p->b, p->c);
        return;
    }
    for (uint32_t i = 0; i < p->n; i++) memcpy(p->gathered + (size_t)i * DEPTH, p->vectors[i], DEPTH * sizeof(float));
    for (uint32_t row = 0; row < ROWS; row += BLOCK) code(p->a + (size_t)row * DEPTH, p->gathered, p->c + row);
}
#endif

static void print_products(const vpps_kernels *kernels) {
    static const char *const kinds[] = {"nn 128 x n x 256", "nt 128 x n x 256", "tn 256 x n x 128", "nt 128 x 256 x n",
                                        "2 blocks of 64 x n x 256"};
    static const uint32_t widths[] = {1, 2, 4, 8, 16, 32, 64};
    printf("products, GFLOP/s, %s\n", kernels->isa);
    float *a = buffer(ROWS * DEPTH, -1, 1), *b = buffer(DEPTH * DEPTH, -1, 1), *c = buffer(DEPTH * DEPTH, -1, 1);
    float *gathered = buffer(DEPTH * DEPTH, -1, 1);
    const float *vectors[MAX_COLUMNS];
    for (int i = 0; i < MAX_COLUMNS; i++) vectors[i] = b + (size_t)i * DEPTH;
    for (uint32_t kind = 0; kind < VPPS_COUNT(kinds); kind++)
        for (size_t i = 0; i < VPPS_COUNT(widths); i++) {
            product p = {kernels, kind, widths[i], a, b, c, vectors, gathered, NULL};
            const double flops = 2.0 * ROWS * DEPTH * widths[i];
            const figure f = time_job(run_product, &p);
            printf("  %s, n = %2u  %7.1f  (%.1f - %.1f)", kinds[kind], widths[i], flops / f.median, flops / f.high,
                   flops / f.low);
#if VPPS_WITH_XSMM
            const libxsmm_smmfunction code = xsmm_kernel(kind, widths[i]);
            if (code) {
                memcpy(&p.code, &code, sizeof(code));
                const figure g = time_job(run_xsmm, &p);
                printf("   libxsmm %7.1f  (%.1f - %.1f)", flops / g.median, flops / g.high, flops / g.low);
            }
#endif
            printf("\n");
        }
    free(a);
    free(b);
    free(c);
    free(gathered);
}

int main(int argc, char **argv) {
    const vpps_kernels *kernels = vpps_kernels_choose(false);
    bool wanted[3] = {argc == 1, argc == 1, argc == 1};
    static const char *const parts[] = {"limits", "instructions", "products"};
    for (int i = 1; i < argc; i++)
        for (int p = 0; p < 3; p++) wanted[p] |= strcmp(argv[i], parts[p]) == 0;
    if (wanted[0]) print_limits();
    if (wanted[1]) print_instructions(kernels);
    if (wanted[2]) print_products(kernels);
    return 0;
}
