/* bench_kernels.c - measures the CPU's kernels on one core: the machine's limits for comparison, every instruction,
 * and products of a matrix with n vectors in each precision by every available kernel.
 *
 *     bench_kernels [limits] [instructions] [products] [ROWSxDEPTH...] [--beside LIBRARY.so]...
 *
 * Without arguments measures all three; VPPS_ISA chooses the kernels. --beside: also measures fp32 products by
 * another library (blas.h), with operands in that library's usual layout: the vectors in one array, the matrix not
 * packed.
 *
 * Every figure is the median of short trials, alone or with the best and the 90th percentile. Instructions: ns per
 * 64 elements, next to isa.def's cost column. Products: GFLOP/s of 2 m n k operations, for 640x512, 1280x512 and
 * 256x256 unless shapes are given. Matrices are packed beforehand, as an update does; in bf16 the measured time
 * includes packing the vectors, which a tile packs once for all its matrices. A gradient is the sum of n outer
 * products, with as many rows and columns; in fp32 its vectors are packed, too. */
#include "base/base.h"
#include "blas.h"
#include "peak.h"
#include "runtime/cpu/avx512_bf16.h"
#include "runtime/cpu/choices.h"
#include "runtime/cpu/units.h"
#include "workload.h"

#include <stdio.h>

enum {
    TRIALS = 41,
    TRIAL_NS = 200000,
    ELEMS = 256,
    BLOCK = 64,
    MOST_VECTORS = 128,
    UNITS = 3,
    OTHERS = 4,
    PEAK_NS = 100000000
};

typedef struct figure {
    double median, low, high; /* ns per call */
} figure;

typedef void (*job)(void *context);

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
    sort_doubles(ns, TRIALS);
    return (figure){ns[TRIALS / 2], ns[0], ns[TRIALS - 1 - TRIALS / 10]};
}

static void *memory(size_t bytes) {
    void *p = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!p) exit(EXIT_FAILURE);
    return p;
}

static float *buffer(size_t n, float low, float high) {
    static uint64_t state = 1;
    float *x = memory(n * sizeof *x);
    for (size_t i = 0; i < n; i++) x[i] = low + (high - low) * vpps_random_unit(&state);
    return x;
}

/* ---------------------------------------------------------------- the machine */

static void print_peak(void) {
    printf("limits\n  multiply-adds (%s)   %7.1f GFLOP/s on one core, %.1f on %u\n", peak_isa(),
           peak_gflops(1, PEAK_NS), peak_gflops(peak_cores(), PEAK_NS), peak_cores());
}

#if defined(__x86_64__)
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

static void print_reads(void) {
    const bool zmm = __builtin_cpu_supports("avx512f");
    if (!zmm && !__builtin_cpu_supports("avx2")) return;
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
static void print_reads(void) {}
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
    c->kernel(c->n, c->dst, &c->o);
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
        c.o.r = 16, c.o.c = 16, c.o.k = 16; /* the size of a small attention */
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

typedef struct unit {
    const char *name;
    vpps_product_bf16 product;
    vpps_pack_bf16 pack;
} unit;

typedef struct subject {
    const vpps_kernels *kernels;
    uint32_t rows, depth, n, parts; /* parts: terms per number in bf16; 0: fp32 */
    bool gradient;
    const unit *unit;
    const blas *other;         /* the library that computes fp32 products; NULL: the engine */
    uint32_t stride;           /* elements from vector to vector */
    const float *w;            /* blocks of 64 rows, each stored column after column */
    const uint32_t *packed[3]; /* packed matrices by number of parts */
    const float *x[MOST_VECTORS], *d[MOST_VECTORS];
    float *c, *scratch; /* scratch: packed vectors of the fp32 gradient */
    uint32_t *words;
} subject;

static void fp32_forward(const subject *s) {
    for (uint32_t row = 0; row < s->rows; row += BLOCK) {
        const float *block = s->w + (size_t)row * s->depth;
        s->kernels->product(BLOCK, s->n, s->depth, block, BLOCK, s->x, 0, NULL, 0, s->c + row, s->rows,
                            block + (size_t)BLOCK * s->depth);
    }
}

static void fp32_gradient(const subject *s) {
    s->kernels->pack_outer(s->n, s->depth, s->x, s->scratch);
    for (uint32_t row = 0; row < s->rows; row += BLOCK)
        s->kernels->outer(BLOCK, s->n, s->depth, s->d, row, s->scratch, s->c + (size_t)row * s->depth, BLOCK, false);
}

static void bf16_forward(const subject *s) {
    const uint32_t depth_tiles = vpps_bf16_depth_tiles(s->depth);
    const vpps_bf16_source source = {s->x, 0, s->n, s->depth, false};
    s->unit->pack(&source, s->parts, VPPS_BF16_AS_ROWS, depth_tiles, s->words);
    for (uint32_t row = 0; row < s->rows; row += BLOCK) {
        const size_t at = (size_t)row / BLOCK * vpps_bf16_words(BLOCK, s->depth, s->parts);
        const vpps_bf16_term term = {s->packed[s->parts] + at, 0, s->depth};
        s->unit->product(BLOCK, s->n, s->parts, s->words, 1, &term, NULL, 0, s->c + row, s->rows);
    }
}

static void bf16_gradient(const subject *s) {
    const uint32_t depth_tiles = vpps_bf16_depth_tiles(s->n);
    const vpps_bf16_source source = {s->x, 0, s->depth, s->n, true};
    uint32_t *rows = s->words + vpps_bf16_words(s->depth, s->n, s->parts);
    s->unit->pack(&source, s->parts, VPPS_BF16_AS_ROWS, depth_tiles, s->words);
    for (uint32_t row = 0; row < s->rows; row += BLOCK) {
        const vpps_bf16_source d = {s->d, row, BLOCK, s->n, true};
        s->unit->pack(&d, s->parts, VPPS_BF16_PAIRS, depth_tiles, rows);
        const vpps_bf16_term term = {rows, 0, s->n};
        s->unit->product(BLOCK, s->depth, s->parts, s->words, 1, &term, NULL, 0, s->c + (size_t)row * s->depth, BLOCK);
    }
}

static void by_other(const subject *s) {
    const blas_product forward = {false, s->n, s->rows, s->depth, s->stride, s->rows, s->rows, s->x[0], s->w, s->c},
                       gradient = {true,      s->depth, s->rows, s->n,    s->stride,
                                   s->stride, s->rows,  s->x[0], s->d[0], s->c};
    blas_run(s->other, s->gradient ? &gradient : &forward);
}

static void run(void *context) {
    const subject *s = context;
    if (s->other)
        by_other(s);
    else if (!s->parts)
        s->gradient ? fp32_gradient(s) : fp32_forward(s);
    else
        s->gradient ? bf16_gradient(s) : bf16_forward(s);
}

static void print_gflops(subject *s) {
    printf(" %.0f |", 2.0 * s->rows * s->depth * s->n / time_job(run, s).median);
    fflush(stdout);
}

static void pack_weights(subject *s) {
    for (uint32_t parts = 1; parts <= 2; parts++) {
        const uint32_t depth_tiles = vpps_bf16_depth_tiles(s->depth);
        const size_t words = vpps_bf16_words(BLOCK, s->depth, parts);
        uint32_t *to = memory(s->rows / BLOCK * words * sizeof *to);
        const float **columns = memory(s->depth * sizeof *columns);
        for (uint32_t b = 0; b < s->rows / BLOCK; b++) {
            for (uint32_t k = 0; k < s->depth; k++) columns[k] = s->w + ((size_t)b * s->depth + k) * BLOCK;
            const vpps_bf16_source source = {columns, 0, BLOCK, s->depth, true};
            s->kernels->pack_bf16(&source, parts, VPPS_BF16_PAIRS, depth_tiles, to + b * words);
        }
        s->packed[parts] = to;
        free(columns);
    }
}

typedef struct maker_list {
    unit units[UNITS];
    const char *paths[OTHERS];
    const blas *others[OTHERS];
    uint32_t n_units, n_others;
} maker_list;

static const char *last_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void print_table(subject *s, const maker_list *l) {
    static const uint32_t widths[] = {1, 2, 4, 8, 16, 32, 64, 128};
    printf("\n%s, %u x %u, GFLOP/s\n\n| n | fp32 (%s) |", s->gradient ? "gradient" : "product", s->rows, s->depth,
           s->kernels->isa);
    for (uint32_t i = 0; i < l->n_others; i++) printf(" fp32 (%s) |", last_name(l->paths[i]));
    for (uint32_t parts = 2; parts; parts--)
        for (uint32_t u = 0; u < l->n_units; u++)
            printf(" %s (%s) |", parts == 2 ? "bf16x3" : "bf16", l->units[u].name);
    printf("\n| ---: | ---: |");
    for (uint32_t i = 0; i < l->n_others + 2 * l->n_units; i++) printf(" ---: |");
    printf("\n");
    for (size_t i = 0; i < VPPS_COUNT(widths); i++) {
        s->n = widths[i];
        s->parts = 0;
        printf("| %u |", s->n);
        print_gflops(s);
        for (uint32_t o = 0; o < l->n_others; o++) {
            s->other = l->others[o];
            print_gflops(s);
        }
        s->other = NULL;
        for (uint32_t parts = 2; parts; parts--) {
            for (uint32_t u = 0; u < l->n_units; u++) {
                s->parts = parts;
                s->unit = &l->units[u];
                print_gflops(s);
            }
        }
        printf("\n");
    }
}

static void print_products(const vpps_kernels *kernels, uint32_t rows, uint32_t depth, const maker_list *makers) {
    const uint32_t most = vpps_max_u32(rows, depth) + BLOCK;
    subject s = {.kernels = kernels, .rows = rows, .depth = depth, .stride = most + 16};
    float *w = buffer((size_t)rows * depth, -0.5f, 0.5f),
          *vectors = buffer((size_t)2 * MOST_VECTORS * s.stride, -0.5f, 0.5f);
    s.w = w;
    for (uint32_t v = 0; v < MOST_VECTORS; v++) {
        s.x[v] = vectors + (size_t)v * s.stride;
        s.d[v] = s.x[v] + (size_t)MOST_VECTORS * s.stride;
    }
    s.c = buffer(vpps_max_u32(depth, MOST_VECTORS) * (size_t)rows, 0, 1);
    s.scratch = buffer(MOST_VECTORS * kernels->outer_stride(depth), 0, 1);
    s.words =
        memory((vpps_bf16_words(most, MOST_VECTORS, 2) + vpps_bf16_words(MOST_VECTORS, most, 2) + VPPS_BF16_TILE) * 4);
    pack_weights(&s);
    for (int gradient = 0; gradient < 2; gradient++) {
        s.gradient = gradient;
        print_table(&s, makers);
    }
    free(w);
    free(vectors);
    free(s.c);
    free(s.scratch);
    free(s.words);
    for (uint32_t parts = 1; parts <= 2; parts++) free((void *)(uintptr_t)s.packed[parts]);
}

static bool read_shape(const char *text, uint32_t *rows, uint32_t *depth) {
    int end = 0;
    return sscanf(text, "%ux%u%n", rows, depth, &end) == 2 && !text[end] && *rows && *rows % BLOCK == 0 && *depth &&
           *rows <= 8192 && *depth <= 8192;
}

int main(int argc, char **argv) {
    static const char *const parts[] = {"limits", "instructions", "products"};
    uint32_t shapes[64][2] = {{640, 512}, {1280, 512}, {256, 256}}, n_shapes = 0;
    bool wanted[3] = {argc == 1, argc == 1, argc == 1};
    maker_list makers = {.n_units = 1};
    for (int i = 1; i < argc; i++) {
        uint32_t p = 0;
        while (p < 3 && strcmp(argv[i], parts[p]) != 0) p++;
        if (p < 3) {
            wanted[p] = true;
        } else if (n_shapes < VPPS_COUNT(shapes) && read_shape(argv[i], &shapes[n_shapes][0], &shapes[n_shapes][1])) {
            n_shapes++;
            wanted[2] = true;
        } else if (!strcmp(argv[i], "--beside") && i + 1 < argc && makers.n_others < OTHERS) {
            makers.paths[makers.n_others] = argv[++i];
            makers.others[makers.n_others++] = blas_open(argv[i]);
            wanted[2] = true;
        } else {
            fprintf(stderr,
                    "bench_kernels: %s: expected limits, instructions, products, ROWSxDEPTH, rows a multiple of %d, or "
                    "--beside "
                    "LIBRARY.so, up to %d times\n",
                    argv[i], BLOCK, OTHERS);
            return 2;
        }
    }
    const vpps_cpu_units *units = vpps_units_of_this_cpu();
    const vpps_cpu_problem problem = {.asked = VPPS_PRECISION_FP32, .wanted = getenv("VPPS_ISA")};
    char why[160];
    const vpps_kernels *kernels = units->kernels[vpps_cpu_choose(units, &problem, NULL, 0, why, sizeof why).kernels];
    makers.units[0] = (unit){kernels->isa, kernels->product_bf16, kernels->pack_bf16};
    vpps_pack_bf16 pack = kernels->pack_bf16;
    vpps_bf16_unit found;
    if (vpps_avx512_bf16_find(&found) == VPPS_OK) {
        pack = found.pack;
        makers.units[makers.n_units++] = (unit){found.name, found.product, pack};
    }
    if (vpps_amx_find(&found) == VPPS_OK) {
        makers.units[makers.n_units++] = (unit){found.name, found.product, pack};
        found.open();
    }
    if (wanted[0]) print_peak();
    if (wanted[0]) print_reads();
    if (wanted[1]) print_instructions(kernels);
    for (uint32_t i = 0; wanted[2] && i < (n_shapes ? n_shapes : 3); i++)
        print_products(kernels, shapes[i][0], shapes[i][1], &makers);
    return 0;
}
