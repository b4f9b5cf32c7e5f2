/* measure.c - measures the time of products by this processor's instructions. The time of a trial (one kind of product) is the thread's
 * processor time, the minimum over ROUNDS rounds, so that other work on the machine adds little. */
#include "runtime/cpu/measure.h"
#include "runtime/cpu/cpu.h"

#include <math.h>

enum {
    SIDE = VPPS_TRIAL_SIDE,
    WORDS = SIDE * SIDE, /* number of words of a matrix, in fp32 or in two parts of bf16 */
    BLOCK = VPPS_BLOCK_ROWS,
    MOST_VECTORS = 192,
    STRIDE = SIDE + 16, /* distance from one vector to the next, in floats */
    GATES = 2,          /* number of matrices that multiply the same vectors, or whose transposed products are summed */
    NEAR = 2,           /* number of matrices that are multiplied in turn, few enough for a core's own cache */
    FAR = 24,           /* number of matrices that are multiplied in turn, too many for a core's own cache */
    ROUNDS = 3,
    SLICE_NS = 30 * 1000
};

/* Returns the most time, in ms, that all trials (measurements) may take: $VPPS_PROBE_MS. An emulated processor would take many seconds. */
uint64_t vpps_cpu_measure_limit_ms(void) {
    enum { USUAL_MS = 300, MOST_MS = 1000000 };
    const char *text = getenv("VPPS_PROBE_MS");
    uint64_t ms;
    return text && vpps_read_number(text, MOST_MS, &ms) ? ms : USUAL_MS;
}

/* The matrices and vectors with which products are measured, and the instructions that multiply them. */
typedef struct stand {
    const vpps_kernels *kernels;
    vpps_bf16_unit unit;
    uint32_t parts; /* number of bf16 numbers that represent an operand; 0: products are in fp32 */
    uint32_t gates; /* number of matrices per timed call: GATES in bf16 and for transposed matrices, else 1 */
    uint32_t n_matrices, next;
    float *memory, *matrices, *copy, *x, *c, *scratch;
    uint32_t *packed; /* the matrices in bf16; each element is the sum of `packed_parts` bf16 numbers */
    uint32_t packed_parts;
    uint64_t limit_ns; /* limit on the processor time of all trials (measurements) together, in nanoseconds */
    const float *xs[MOST_VECTORS];
} stand;

static size_t memory_bytes(void) { return ((size_t)2 * FAR * WORDS + 2 * WORDS + 8 * MOST_VECTORS * STRIDE) * 4; }

static bool open_stand(stand *s) {
    *s = (stand){.memory = vpps_map_pages(memory_bytes()), .limit_ns = vpps_cpu_measure_limit_ms() * 1000000};
    if (!s->memory) return false;
    s->matrices = s->memory;
    s->packed = (uint32_t *)(void *)(s->matrices + (size_t)FAR * WORDS);
    s->copy = s->matrices + (size_t)2 * FAR * WORDS;
    s->x = s->copy + 2 * WORDS;
    s->c = s->x + MOST_VECTORS * STRIDE;
    s->scratch = s->c + MOST_VECTORS * STRIDE;
    for (size_t i = 0; i < (size_t)FAR * WORDS; i++) s->matrices[i] = 0.01f * (float)(i % 7);
    for (size_t i = 0; i < (size_t)MOST_VECTORS * STRIDE; i++) s->x[i] = 0.1f * (float)(i % 5);
    for (uint32_t j = 0; j < MOST_VECTORS; j++) s->xs[j] = s->x + (size_t)j * STRIDE;
    return true;
}

static size_t take_matrix(stand *s) {
    s->next = (s->next + 1) % s->n_matrices;
    return s->next;
}

static uint32_t *scratch_words(const stand *s) { return (uint32_t *)(void *)s->scratch; }

static void pack_vectors(const stand *s, uint32_t n) {
    const vpps_bf16_source source = {s->xs, 0, n, SIDE, false};
    s->unit.pack(&source, s->parts, VPPS_BF16_AS_ROWS, vpps_bf16_depth_tiles(SIDE), scratch_words(s));
}

static void run_forward(stand *s, uint32_t n) {
    if (s->parts) pack_vectors(s, n);
    for (uint32_t g = 0; g < s->gates; g++) {
        const size_t matrix = take_matrix(s);
        for (uint32_t row = 0; row < SIDE; row += BLOCK) {
            const float *a = s->matrices + matrix * WORDS + (size_t)row * SIDE;
            const vpps_bf16_term term = {s->packed + matrix * vpps_bf16_words(SIDE, SIDE, s->parts) +
                                             vpps_bf16_words(row, SIDE, s->parts),
                                         0, SIDE};
            if (s->parts)
                s->unit.product(BLOCK, n, s->parts, scratch_words(s), 1, &term, NULL, 0, s->c + row, STRIDE);
            else
                s->kernels->product(BLOCK, n, SIDE, a, BLOCK, s->xs, 0, NULL, 0, s->c + row, STRIDE, a + BLOCK * SIDE);
        }
    }
}

static void run_rows(stand *s, uint32_t n) {
    uint32_t *spread = scratch_words(s) + vpps_bf16_words(n, SIDE, s->parts);
    if (s->parts) {
        pack_vectors(s, n);
        s->unit.spread(n, SIDE, s->parts, scratch_words(s), spread);
    }
    vpps_product_term terms[GATES * SIDE / BLOCK];
    for (uint32_t g = 0; g < s->gates; g++) {
        const size_t matrix = take_matrix(s);
        if (s->parts) {
            const vpps_bf16_term term = {s->packed + matrix * vpps_bf16_words(SIDE, SIDE, s->parts), 0, SIDE};
            s->unit.product_t(SIDE, n, s->parts, spread, 1, &term, s->c, STRIDE);
            continue;
        }
        for (uint32_t b = 0; b < SIDE / BLOCK; b++)
            terms[g * SIDE / BLOCK + b] = (vpps_product_term){s->matrices + matrix * WORDS + (size_t)b * BLOCK * SIDE,
                                                              BLOCK, BLOCK, b * BLOCK, s->xs + g * n};
    }
    if (!s->parts) s->kernels->product_t(n, SIDE, s->gates * SIDE / BLOCK, terms, s->c, STRIDE, false);
}

static void run_gradient(stand *s, uint32_t n) {
    uint32_t *rows = scratch_words(s) + vpps_bf16_words(SIDE, n, s->parts);
    const vpps_bf16_source x = {s->xs, 0, SIDE, n, true};
    if (s->parts)
        s->unit.pack(&x, s->parts, VPPS_BF16_AS_ROWS, vpps_bf16_depth_tiles(n), scratch_words(s));
    else
        s->kernels->pack_outer(n, SIDE, s->xs, s->scratch);
    for (uint32_t g = 0; g < s->gates; g++) {
        for (uint32_t row = 0; row < SIDE; row += BLOCK) {
            float *to = s->copy + (size_t)row * SIDE;
            const vpps_bf16_source d = {s->xs, row, BLOCK, n, true};
            const vpps_bf16_term term = {rows, 0, n};
            if (!s->parts) {
                s->kernels->outer(BLOCK, n, SIDE, s->xs, row, s->scratch, to, BLOCK, false);
                continue;
            }
            s->unit.pack(&d, s->parts, VPPS_BF16_PAIRS, vpps_bf16_depth_tiles(n), rows);
            s->unit.product(BLOCK, SIDE, s->parts, scratch_words(s), 1, &term, NULL, 0, to, BLOCK);
        }
    }
}

/* Copies a matrix: transposed in fp32, packed in bf16. */
static void copy_matrix(const stand *s, const float *matrix, uint32_t *to) {
    const float *columns[SIDE];
    for (uint32_t row = 0; row < SIDE; row += BLOCK) {
        const float *a = matrix + (size_t)row * SIDE;
        if (!s->parts) {
            for (uint32_t k = 0; k < SIDE; k += BLOCK)
                s->kernels->transpose(BLOCK, BLOCK, a + (size_t)k * BLOCK, BLOCK,
                                      s->copy + (size_t)k * SIDE + (size_t)row * BLOCK, BLOCK);
            continue;
        }
        for (uint32_t k = 0; k < SIDE; k++) columns[k] = a + (size_t)k * BLOCK;
        const vpps_bf16_source source = {columns, 0, BLOCK, SIDE, true};
        s->unit.pack(&source, s->parts, VPPS_BF16_PAIRS, vpps_bf16_depth_tiles(SIDE),
                     to + vpps_bf16_words(row, SIDE, s->parts));
    }
}

static void run_copy(stand *s, uint32_t n) {
    (void)n;
    for (uint32_t g = 0; g < s->gates; g++)
        copy_matrix(s, s->matrices + take_matrix(s) * WORDS, (uint32_t *)(void *)s->copy);
}

static void (*const runs[VPPS_CPU_WAYS])(stand *s, uint32_t n) = {
    [VPPS_CPU_WAY_forward] = run_forward,
    [VPPS_CPU_WAY_rows] = run_rows,
    [VPPS_CPU_WAY_gradient] = run_gradient,
    [VPPS_CPU_WAY_copy] = run_copy,
};

/* Packs the matrices with s->parts bf16 numbers per element, unless they are so already. All bf16 instructions read the same form. */
static void pack_matrices(stand *s) {
    if (!s->parts || s->packed_parts == s->parts) return;
    const size_t words = vpps_bf16_words(SIDE, SIDE, s->parts);
    copy_matrix(s, s->matrices, s->packed);
    for (uint32_t i = 1; i < FAR; i++) memcpy(s->packed + i * words, s->packed, words * sizeof *s->packed);
    s->packed_parts = s->parts;
}

/* Sets the kind of instructions and the precision that the next measurements use. */
static void use(stand *s, const vpps_cpu_units *u, const vpps_cpu_maker *m) {
    s->kernels = u->kernels[m->kernels];
    s->parts = vpps_precision_parts(m->precision);
    s->unit = s->parts ? vpps_bf16_unit_of(u, m->kernels, m->unit) : (vpps_bf16_unit){0};
    pack_matrices(s);
}

/* Reads a word of each cache line of the matrices, which brings them into the cache. */
static void fetch_matrices(const stand *s) {
    enum { LINE = 16 };
    volatile float word;
    for (size_t i = 0; i < (size_t)s->n_matrices * WORDS; i += LINE) {
        word = s->matrices[i];
        if (s->parts) word = (float)s->packed[i];
    }
    (void)word;
}

/* Times the product that t describes for about SLICE_NS; keeps the least ns per vector. Returns the ns that passed. */
static uint64_t measure(stand *s, vpps_trial *t) {
    uint64_t passed;
    uint32_t calls = 0, way = 0;
    while (t->product != vpps_cpu_ways[way]) way++;
    s->n_matrices = t->far ? FAR : NEAR;
    s->gates = s->parts || way == VPPS_CPU_WAY_rows ? GATES : 1;
    if (s->unit.open) s->unit.open();
    if (!t->far) fetch_matrices(s);
    const uint64_t start = vpps_thread_ns();
    do {
        runs[way](s, t->vectors);
        calls++;
        passed = vpps_thread_ns() - start;
    } while (passed < SLICE_NS);
    if (s->unit.close) s->unit.close();
    const double ns = (double)passed / calls / s->gates / (way == VPPS_CPU_WAY_copy ? 1 : t->vectors);
    if (t->ns_per_vector <= 0 || ns < t->ns_per_vector) t->ns_per_vector = ns;
    return passed;
}

static const struct plan {
    vpps_cpu_way way;
    bool far;
    /* numbers of vectors with which a product is timed, then 0. At most MOST_VECTORS; in fp32 half of that for products A^T x (`rows`) */
    uint32_t fp32[12], bf16[12];
} plan[] = {
    {VPPS_CPU_WAY_forward, false, {1, 2, 3, 4, 6, 8, 16, 24, 48, 96, 192}, {1, 4, 8, 16, 48}},
    {VPPS_CPU_WAY_forward, true, {1, 4, 16}, {1, 4, 16}},
    {VPPS_CPU_WAY_rows, false, {1, 2, 3, 4, 6, 8, 16, 48}, {1, 4, 8, 16}},
    {VPPS_CPU_WAY_gradient, false, {48}, {48}},
    {VPPS_CPU_WAY_copy, false, {1}, {1}},
};

uint32_t vpps_cpu_list_trials(const vpps_cpu_units *u, vpps_trial *out, vpps_cpu_maker *by) {
    vpps_cpu_maker makers[VPPS_MOST_MAKERS];
    const uint32_t n_makers = vpps_cpu_makers(u, makers);
    const uint32_t slow = u->n_kernels > 1; /* 1: leaves out the first, slowest set of vector kernels */
    uint32_t n = 0;
    for (const vpps_cpu_maker *m = makers + slow; m < makers + n_makers; m++) {
        const bool fp32 = m->precision == VPPS_PRECISION_FP32, rows = fp32 || u->bf16[m->unit].product_t;
        for (const struct plan *p = plan; p < plan + VPPS_COUNT(plan); p++) {
            if (p->way == VPPS_CPU_WAY_rows && !rows) continue;
            for (const uint32_t *vectors = fp32 ? p->fp32 : p->bf16; *vectors; vectors++, n++) {
                by[n] = *m;
                out[n] = (vpps_trial){.product = vpps_cpu_ways[p->way],
                                      .unit = m->name,
                                      .precision = vpps_precision_names[m->precision],
                                      .vectors = *vectors,
                                      .far = p->far,
                                      .state = VPPS_TRIAL_MEASURED};
            }
        }
    }
    return n;
}

uint32_t vpps_cpu_measure(const vpps_cpu_units *u, vpps_trial *out) {
    vpps_cpu_maker by[VPPS_CPU_TRIALS];
    const uint32_t n = vpps_cpu_list_trials(u, out, by);
    stand s;
    uint64_t spent = 0;
    bool ok = open_stand(&s);
    for (uint32_t i = 0; i < ROUNDS * n && ok; i++) {
        use(&s, u, &by[i % n]);
        spent += measure(&s, &out[i % n]);
        ok = spent < s.limit_ns;
    }
    vpps_unmap_pages(s.memory, memory_bytes());
    return ok ? n : 0;
}
