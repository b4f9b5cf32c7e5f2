/* measure.c - the short profile of products with matrices of one shape: what one VP multiplies, by itself. */
#include "runtime/cpu/cpu.h"
#include "runtime/profile.h"

enum { VECTORS = 192, SLICES = 5, SLICE_NS = 100 * 1000, MOST_BYTES = 8 << 20 };

/* Matrices of a shape, their transposed copies, vectors and results. */
typedef struct stand {
    const vpps_kernels *kernels;
    vpps_cpu_shape shape;
    uint32_t n, next; /* matrices; the one whose turn it is */
    size_t words;     /* of a matrix, and of a copy */
    float *matrices, *copies, *x, *c;
    size_t bytes[4];
    const float *xs[VECTORS];
} stand;

static uint32_t whole(uint32_t n, uint32_t unit) { return (n + unit - 1) / unit * unit; }

static bool open_stand(stand *s, const vpps_kernels *kernels, vpps_cpu_shape shape, size_t working_set) {
    const uint32_t width = whole(vpps_max_u32(shape.rows, shape.cols), VPPS_BLOCK_ROWS) + VPPS_ROW_UNIT;
    *s = (stand){.kernels = kernels, .shape = shape};
    s->words = (size_t)whole(shape.rows, VPPS_BLOCK_ROWS) * whole(shape.cols, VPPS_BLOCK_ROWS);
    const size_t wanted = working_set < MOST_BYTES ? working_set : MOST_BYTES;
    s->n = (uint32_t)(wanted / (s->words * sizeof(float))) + 1;
    const size_t floats[] = {s->n * s->words, s->n * s->words, (size_t)VECTORS * width, (size_t)VECTORS * width};
    float **parts[] = {&s->matrices, &s->copies, &s->x, &s->c};
    bool ok = true;
    for (size_t i = 0; i < VPPS_COUNT(parts); i++) {
        s->bytes[i] = floats[i] * sizeof(float);
        *parts[i] = vpps_map_pages(s->bytes[i]);
        ok = ok && *parts[i];
    }
    for (size_t i = 0; ok && i < floats[0]; i++) s->matrices[i] = s->copies[i] = 0.01f * (float)(i % 7);
    for (size_t i = 0; ok && i < floats[2]; i++) s->x[i] = 0.1f * (float)(i % 5);
    for (uint32_t j = 0; ok && j < VECTORS; j++) s->xs[j] = s->x + (size_t)j * width;
    return ok;
}

static void close_stand(const stand *s) {
    float *parts[] = {s->matrices, s->copies, s->x, s->c};
    for (size_t i = 0; i < VPPS_COUNT(parts); i++) vpps_unmap_pages(parts[i], s->bytes[i]);
}

/* ---------------------------------------------------------------- the ways, each once, with n vectors */

/* The k-th block of rows of a matrix. */
static const float *block_of(const stand *s, const float *matrix, uint32_t k) {
    return matrix + (size_t)k * VPPS_BLOCK_ROWS * s->shape.cols;
}
static uint32_t rows_of(const stand *s, uint32_t k) {
    return vpps_min_u32(s->shape.rows - k * VPPS_BLOCK_ROWS, VPPS_BLOCK_ROWS);
}

static void run_tile(const stand *s, const float *matrix, float *copy, uint32_t n) {
    (void)copy;
    const vpps_cpu_shape *shape = &s->shape;
    for (uint32_t j = 0; j < VECTORS; j += n) {
        for (uint32_t k = 0; k * VPPS_BLOCK_ROWS < shape->rows; k++) {
            const float *a = block_of(s, matrix, k);
            s->kernels->product(rows_of(s, k), vpps_min_u32(n, VECTORS - j), shape->cols, a, whole(rows_of(s, k), 16),
                                s->xs + j, 0, NULL, 0, s->c + k * VPPS_BLOCK_ROWS, shape->rows,
                                a + (size_t)VPPS_BLOCK_ROWS * shape->cols);
        }
    }
}

static void run_rows(const stand *s, const float *matrix, float *copy, uint32_t n) {
    (void)copy;
    enum { MOST = 64 };
    vpps_product_term terms[MOST];
    for (uint32_t k = 0, n_terms; k * VPPS_BLOCK_ROWS < s->shape.rows; k += n_terms) {
        for (n_terms = 0; n_terms < MOST && (k + n_terms) * VPPS_BLOCK_ROWS < s->shape.rows; n_terms++) {
            const uint32_t rows = rows_of(s, k + n_terms);
            terms[n_terms] = (vpps_product_term){block_of(s, matrix, k + n_terms), whole(rows, 16), rows,
                                                 (k + n_terms) * VPPS_BLOCK_ROWS, s->xs};
        }
        s->kernels->product_t(n, s->shape.cols, n_terms, terms, s->c, s->shape.cols, k > 0);
    }
}

static void run_copy(const stand *s, const float *matrix, float *copy, uint32_t n) {
    (void)matrix;
    const vpps_cpu_shape *shape = &s->shape;
    for (uint32_t p = 0; p < shape->cols; p += VPPS_BLOCK_ROWS) {
        const float *a = copy + (size_t)p * shape->rows;
        s->kernels->product(vpps_min_u32(shape->cols - p, VPPS_BLOCK_ROWS), n, shape->rows, a, VPPS_BLOCK_ROWS, s->xs,
                            0, NULL, 0, s->c + p, shape->cols, a + (size_t)VPPS_BLOCK_ROWS * shape->rows);
    }
}

static void run_transpose(const stand *s, const float *matrix, float *copy, uint32_t n) {
    (void)n;
    const vpps_cpu_shape *shape = &s->shape;
    for (uint32_t k = 0; k * VPPS_BLOCK_ROWS < shape->rows; k++) {
        const uint32_t ld = whole(rows_of(s, k), 16);
        for (uint32_t p = 0; p < shape->cols; p += VPPS_BLOCK_ROWS)
            s->kernels->transpose(
                rows_of(s, k), vpps_min_u32(shape->cols - p, VPPS_BLOCK_ROWS), block_of(s, matrix, k) + (size_t)p * ld,
                ld, copy + (size_t)p * shape->rows + (size_t)k * VPPS_BLOCK_ROWS * VPPS_BLOCK_ROWS, VPPS_BLOCK_ROWS);
    }
}

/* Numbers of vectors that each way is tried with. */
static const uint32_t tiles[] = {24, 48, 96, 192}, counts[] = {1, 2, 3, 4, 6, 8, 16}, one[] = {1};

/* ns a call: the median of some slices of time. */
static double time_of(stand *s, void (*run)(const stand *, const float *, float *, uint32_t), uint32_t n) {
    double ns[SLICES];
    for (int i = 0; i < SLICES; i++) {
        const uint64_t start = vpps_now_ns();
        uint64_t now = start, calls = 0;
        for (; now - start < SLICE_NS; now = vpps_now_ns(), calls++) {
            run(s, s->matrices + s->next * s->words, s->copies + s->next * s->words, n);
            s->next = (s->next + 1) % s->n;
        }
        ns[i] = (double)(now - start) / (double)calls;
    }
    return vpps_median(ns, SLICES);
}

bool vpps_cpu_measure(vpps_cpu_tuning *t, const vpps_kernels *kernels, vpps_cpu_shape shape, size_t working_set) {
    static const struct {
        void (*run)(const stand *, const float *, float *, uint32_t);
        const uint32_t *vectors;
        size_t n_vectors;
        uint32_t of_a_call; /* 0: the trial's */
    } ways[VPPS_CPU_WAYS] = {
        [VPPS_CPU_WAY_tile] = {run_tile, tiles, VPPS_COUNT(tiles), VECTORS},
        [VPPS_CPU_WAY_rows] = {run_rows, counts, VPPS_COUNT(counts), 0},
        [VPPS_CPU_WAY_copy] = {run_copy, counts, VPPS_COUNT(counts), 0},
        [VPPS_CPU_WAY_transpose] = {run_transpose, one, 1, 1},
    };
    stand s;
    bool ok = open_stand(&s, kernels, shape, working_set);
    for (size_t w = 0; w < VPPS_CPU_WAYS && ok; w++) {
        for (size_t i = 0; i < ways[w].n_vectors && ok; i++) {
            const uint32_t n = ways[w].vectors[i];
            ok = VPPS_RESERVE(t->trials, t->trials_capacity, t->n_trials + 1u);
            if (!ok) break;
            t->trials[t->n_trials++] = (vpps_trial){
                .product = vpps_cpu_ways[w],
                .rows = shape.rows,
                .cols = shape.cols,
                .vectors = n,
                .state = VPPS_TRIAL_MEASURED,
                .ns_per_vector = time_of(&s, ways[w].run, n) / (ways[w].of_a_call ? ways[w].of_a_call : n),
            };
        }
    }
    close_stand(&s);
    return ok;
}
