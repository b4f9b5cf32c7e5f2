/* bench_precision.c - products of a matrix with n vectors in each precision, by everything here that makes them, on one core.
 *
 *     bench_precision [ROWS x DEPTH ...]       640x512 1280x512 256x256 by default; VPPS_ISA chooses the vectors
 *
 * GFLOP/s of 2 m n k operations, median of short trials. Matrices are packed before, as an update does it; in bf16 vectors are packed
 * in the time that is measured, as a tile's are once for all matrices that they meet. A gradient is the sum of n vectors' products,
 * of as many rows and columns; in fp32 its vectors are packed, too.
 */
#include "base/base.h"
#include "runtime/cpu/amx.h"
#include "runtime/cpu/avx512_bf16.h"
#include "runtime/cpu/kernels.h"

#include <stdio.h>

enum { TRIALS = 21, TRIAL_NS = 300000, BLOCK = 64, MOST_VECTORS = 128, UNITS = 3 };

typedef struct unit {
    const char *name;
    vpps_product_bf16 product;
    vpps_pack_bf16 pack;
} unit;

typedef struct subject {
    const vpps_kernels *kernels;
    uint32_t rows, depth, n, parts; /* parts 0: fp32 */
    bool gradient;
    const unit *unit;
    const float *w;            /* blocks of 64 rows, column after column */
    const uint32_t *packed[3]; /* by parts */
    const float *x[MOST_VECTORS], *d[MOST_VECTORS];
    float *c, *scratch;
    uint32_t *words;
} subject;

static uint64_t state = 1;

static void *memory(size_t bytes) {
    void *p = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!p) exit(EXIT_FAILURE);
    return p;
}

static float *numbers(size_t n) {
    float *x = memory(n * sizeof *x);
    for (size_t i = 0; i < n; i++) x[i] = vpps_random_unit(&state) - 0.5f;
    return x;
}

/* ---------------------------------------------------------------- what is timed */

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

static void run(const subject *s) {
    if (!s->parts)
        s->gradient ? fp32_gradient(s) : fp32_forward(s);
    else
        s->gradient ? bf16_gradient(s) : bf16_forward(s);
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double gflops(const subject *s) {
    double ns[TRIALS];
    uint64_t calls = 1, start, spent;
    for (;; calls *= 2) { /* also warms up */
        start = vpps_now_ns();
        for (uint64_t i = 0; i < calls; i++) run(s);
        if ((spent = vpps_now_ns() - start) > TRIAL_NS) break;
    }
    for (int t = 0; t < TRIALS; t++) {
        start = vpps_now_ns();
        for (uint64_t i = 0; i < calls; i++) run(s);
        ns[t] = (double)(vpps_now_ns() - start) / (double)calls;
    }
    qsort(ns, TRIALS, sizeof *ns, by_value);
    return 2.0 * s->rows * s->depth * s->n / ns[TRIALS / 2];
}

/* ---------------------------------------------------------------- a table a shape */

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

static void print_table(subject *s, const unit *units, uint32_t n_units) {
    static const uint32_t widths[] = {1, 2, 4, 8, 16, 32, 64, 128};
    printf("\n%s, %u x %u, GFLOP/s\n\n| n | fp32 (%s) |", s->gradient ? "gradient" : "product", s->rows, s->depth,
           s->kernels->isa);
    for (uint32_t parts = 2; parts; parts--)
        for (uint32_t u = 0; u < n_units; u++) printf(" %s (%s) |", parts == 2 ? "bf16x3" : "bf16", units[u].name);
    printf("\n| ---: | ---: |");
    for (uint32_t u = 0; u < 2 * n_units; u++) printf(" ---: |");
    printf("\n");
    for (size_t i = 0; i < VPPS_COUNT(widths); i++) {
        s->n = widths[i];
        s->parts = 0;
        printf("| %u | %.0f |", s->n, gflops(s));
        for (uint32_t parts = 2; parts; parts--) {
            for (uint32_t u = 0; u < n_units; u++) {
                s->parts = parts;
                s->unit = &units[u];
                printf(" %.0f |", gflops(s));
            }
        }
        printf("\n");
        fflush(stdout);
    }
}

static void measure(const vpps_kernels *kernels, uint32_t rows, uint32_t depth, const unit *units, uint32_t n_units) {
    const uint32_t most = vpps_max_u32(rows, depth) + BLOCK;
    subject s = {.kernels = kernels, .rows = rows, .depth = depth};
    float *w = numbers((size_t)rows * depth), *vectors = numbers((size_t)2 * MOST_VECTORS * (most + 16));
    s.w = w;
    for (uint32_t v = 0; v < MOST_VECTORS; v++) {
        s.x[v] = vectors + (size_t)v * (most + 16);
        s.d[v] = s.x[v] + (size_t)MOST_VECTORS * (most + 16);
    }
    s.c = numbers(vpps_max_u32(depth, MOST_VECTORS) * (size_t)rows);
    s.scratch = numbers(MOST_VECTORS * kernels->outer_stride(depth));
    s.words =
        memory((vpps_bf16_words(most, MOST_VECTORS, 2) + vpps_bf16_words(MOST_VECTORS, most, 2) + VPPS_BF16_TILE) * 4);
    pack_weights(&s);
    for (int gradient = 0; gradient < 2; gradient++) {
        s.gradient = gradient;
        print_table(&s, units, n_units);
    }
    free(w);
    free(vectors);
    free(s.c);
    free(s.scratch);
    free(s.words);
    for (uint32_t parts = 1; parts <= 2; parts++) free((void *)(uintptr_t)s.packed[parts]);
}

int main(int argc, char **argv) {
    static const char *shapes[] = {"640x512", "1280x512", "256x256"};
    const vpps_kernels *kernels = vpps_kernels_choose(false);
    unit units[UNITS] = {{kernels->isa, kernels->product_bf16, kernels->pack_bf16}};
    uint32_t n_units = 1;
    vpps_pack_bf16 pack = kernels->pack_bf16;
    vpps_bf16_unit found;
    if (vpps_avx512_bf16_find(&found) == VPPS_OK) {
        pack = found.pack;
        units[n_units++] = (unit){found.name, found.product, pack};
    }
    if (vpps_amx_find(&found) == VPPS_OK) {
        units[n_units++] = (unit){found.name, found.product, pack};
        found.open();
    }
    const char *const *asked = argc > 1 ? (const char *const *)argv + 1 : shapes;
    for (size_t i = 0; i < (argc > 1 ? (size_t)argc - 1 : VPPS_COUNT(shapes)); i++) {
        unsigned rows, depth;
        if (sscanf(asked[i], "%ux%u", &rows, &depth) != 2 || !rows || rows % BLOCK || !depth || rows > 8192 ||
            depth > 8192) {
            fprintf(stderr, "bench_precision: %s is no shape: ROWSxDEPTH, rows a multiple of %d\n", asked[i], BLOCK);
            return 2;
        }
        measure(kernels, rows, depth, units, n_units);
    }
    return 0;
}
