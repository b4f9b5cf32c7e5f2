/* test_products.c - products of a matrix's blocks with vectors at any addresses (products.h), by every instruction set that this CPU has, compared
 * with plain loops in double precision, for sizes of all kinds. */
#include "kernel_inputs.h"

enum { BLOCK = 64 /* rows at most */, UNIT = 16 /* UNIT: rows are padded to a multiple of it */, MOST_TERMS = 3 };

/* ---------------------------------------------------------------- operands */

/* n vectors of `elems` elements, from x[j] + skip on, at any distances and in any order. */
typedef struct vectors {
    float **x;
    uint32_t elems, skip;
} vectors;

static vectors draw_vectors(uint32_t n, uint32_t elems) {
    vectors v = {.x = room(n * sizeof *v.x), .elems = elems, .skip = below(2) * below(40)};
    const size_t distance = elems + below(9);
    float *memory = drawn(v.skip + (n - 1) * distance + elems, -1, 1);
    for (uint32_t j = 0; j < n; j++) { /* each is put in the place of one before it, which moves to the end */
        const uint32_t other = below(j + 1);
        v.x[j] = v.x[other];
        v.x[other] = memory + j * distance;
    }
    return v;
}

static float *element(const vectors *v, uint32_t j, uint32_t i) { return v->x[j] + v->skip + i; }

/* A block of matrix rows, stored column after column and padded with zero rows. */
typedef struct block {
    float *a;
    size_t ld;
    uint32_t rows, cols;
} block;

static block draw_block(uint32_t rows, uint32_t cols) {
    block b = {.ld = (rows + UNIT - 1) / UNIT * UNIT + below(2) * below(3) * UNIT, .rows = rows, .cols = cols};
    b.a = drawn(b.ld * cols, -1, 1);
    for (uint32_t k = 0; k < cols; k++)
        for (size_t r = rows; r < b.ld; r++) b.a[k * b.ld + r] = 0;
    return b;
}

/* Results: column j has `rows` elements at c + j * ldc; guard words lie between the columns. */
typedef struct results {
    float *c;
    size_t ldc;
    uint32_t rows, n;
} results;

static const float guard = 12345.678f;

/* Returns the initial number in element i of vector j: where products are added, always the same number; else NaN, which must not be read. */
static float number_before(bool add, uint64_t numbers, uint32_t j, uint32_t i) {
    uint64_t at = numbers + ((uint64_t)j << 32) + i;
    return add ? 2 * vpps_random_unit(&at) - 1 : NAN;
}

static results make_results(uint32_t rows, uint32_t n, size_t ldc) {
    const size_t elems = ldc * (n - 1) + rows + 1;
    float *all = floats(elems);
    for (size_t i = 0; i < elems; i++) all[i] = guard;
    return (results){.c = all + 1, .ldc = ldc, .rows = rows, .n = n};
}

static void check_guards(const results *r, const char *isa) {
    ck_assert_msg(vpps_float_bits(r->c[-1]) == vpps_float_bits(guard), "%s: written before the results", isa);
    for (uint32_t j = 0; j + 1 < r->n; j++)
        for (size_t i = r->rows; i < r->ldc; i++)
            ck_assert_msg(vpps_float_bits(r->c[j * r->ldc + i]) == vpps_float_bits(guard),
                          "%s: word %zu after column %u's %u rows", isa, i - r->rows, j, r->rows);
}

static bool same_column(const results *a, uint32_t i, const results *b, uint32_t j) {
    return memcmp(a->c + i * a->ldc, b->c + j * b->ldc, a->rows * sizeof *a->c) == 0;
}

/* ---------------------------------------------------------------- products and transposed products
 *
 * product: rows of several blocks, of one set of vectors; product_t: sums over several blocks and sets. */

typedef struct problem {
    bool transposed, add;
    uint32_t n, rows, n_terms; /* rows: number of rows of a result */
    block blocks[MOST_TERMS];
    vectors vectors[MOST_TERMS]; /* `product` uses one set of vectors */
    uint64_t numbers;
    char text[128];
} problem;

static problem draw_problem(const vpps_kernels *kernels, bool transposed) {
    problem p = {.transposed = transposed, .add = below(2), .n = draw_size(70), .numbers = vpps_random(&state)};
    const uint32_t k = draw_size(300);
    uint32_t left = draw_size(130), sum = 0;
    for (; left && p.n_terms < MOST_TERMS; p.n_terms++) {
        const uint32_t rows = vpps_min_u32(left, transposed && below(2) ? 1 + below(BLOCK) : BLOCK);
        p.blocks[p.n_terms] = draw_block(rows, k);
        if (transposed) p.vectors[p.n_terms] = draw_vectors(p.n, rows);
        left -= rows;
        sum += rows;
    }
    if (!transposed) p.vectors[0] = draw_vectors(p.n, k);
    p.rows = transposed ? k : sum;
    snprintf(p.text, sizeof p.text, "%s%s, %u rows in %u blocks, %u columns, %u vectors%s (VPPS_TEST_SEED=%llu)",
             kernels->isa, transposed ? " transposed" : "", sum, p.n_terms, k, p.n, p.add ? ", added" : "",
             (unsigned long long)seed);
    return p;
}

/* Computes the results for the vectors numbered which[0 ... n). */
static results compute(const vpps_kernels *kernels, const problem *p, uint32_t n, const uint32_t *which, size_t ldc) {
    const results r = make_results(p->rows, n, ldc);
    for (uint32_t j = 0; j < n; j++)
        for (uint32_t i = 0; i < p->rows; i++) r.c[j * ldc + i] = number_before(p->add, p->numbers, which[j], i);
    const float **x[MOST_TERMS];
    vpps_product_term terms[MOST_TERMS];
    for (uint32_t t = 0; t < (p->transposed ? p->n_terms : 1); t++) {
        x[t] = room(n * sizeof **x);
        for (uint32_t j = 0; j < n; j++) x[t][j] = p->vectors[t].x[which[j]];
    }
    uint32_t first_row = 0;
    for (uint32_t t = 0; t < p->n_terms; t++) {
        const block *b = &p->blocks[t];
        if (p->transposed) {
            terms[t] = (vpps_product_term){b->a, b->ld, b->rows, p->vectors[t].skip, x[t]};
        } else {
            kernels->product(b->rows, n, b->cols, b->a, b->ld, x[0], p->vectors[0].skip,
                             p->add ? r.c + first_row : NULL, ldc, r.c + first_row, ldc, b->a);
        }
        first_row += b->rows;
    }
    if (p->transposed) kernels->product_t(n, p->rows, p->n_terms, terms, r.c, ldc, p->add);
    check_guards(&r, p->text);
    return r;
}

static void check_values(const problem *p, const results *r) {
    for (uint32_t j = 0; j < p->n; j++) {
        for (uint32_t i = 0; i < p->rows; i++) {
            double want = p->add ? (double)number_before(true, p->numbers, j, i) : 0, scale = 1;
            for (uint32_t t = 0, first = 0; t < p->n_terms; first += p->blocks[t++].rows) {
                const block *b = &p->blocks[t];
                if (!p->transposed && (i < first || i >= first + b->rows)) continue;
                for (uint32_t e = 0; e < (p->transposed ? b->rows : b->cols); e++) {
                    const float w = p->transposed ? b->a[i * b->ld + e] : b->a[e * b->ld + i - first];
                    const double term = (double)w * *element(&p->vectors[p->transposed ? t : 0], j, e);
                    want += term;
                    scale += fabs(term);
                }
            }
            const float got = r->c[j * r->ldc + i];
            ck_assert_msg(close_to(got, want, 1e-6 * scale), "%s: element %u of vector %u is %.9g, expected %.9g",
                          p->text, i, j, got, want);
        }
    }
}

/* Checks that a vector's result has the same bits alone and among other vectors. */
static void check_company(const vpps_kernels *kernels, const problem *p, const results *all) {
    uint32_t which[MOST_TERMS * BLOCK + BLOCK];
    for (uint32_t j = 0; j < p->n; j++) {
        const results alone = compute(kernels, p, 1, &j, p->rows);
        ck_assert_msg(same_column(&alone, 0, all, j), "%s: vector %u's bits depend on the others", p->text, j);
    }
    for (int round = 0; round < 4; round++) {
        const uint32_t n = 1 + below(p->n);
        for (uint32_t j = 0; j < n; j++) which[j] = below(p->n);
        const results some = compute(kernels, p, n, which, p->rows + below(3));
        for (uint32_t j = 0; j < n; j++)
            ck_assert_msg(same_column(&some, j, all, which[j]), "%s: vector %u's bits differ as number %u of %u",
                          p->text, which[j], j, n);
    }
}

/* Checks that NaN and infinity in one vector affect only its result. */
static void check_poison(const vpps_kernels *kernels, const problem *p, const results *all, const uint32_t *which) {
    const float poisons[] = {NAN, INFINITY, -INFINITY};
    const uint32_t j = below(p->n), t = p->transposed ? below(p->n_terms) : 0;
    const vectors *v = &p->vectors[t];
    float *at = element(v, j, below(v->elems)), kept = *at;
    *at = poisons[below(3)];
    const results r = compute(kernels, p, p->n, which, all->ldc);
    *at = kept;
    for (uint32_t i = 0; i < p->n; i++)
        if (i != j) ck_assert_msg(same_column(&r, i, all, i), "%s: vector %u's NaN is in %u's", p->text, j, i);
    for (uint32_t i = 0; i < p->rows; i++)
        ck_assert_msg(!isfinite(r.c[j * r.ldc + i]), "%s: element %u of vector %u hides NaN", p->text, i, j);
}

static void check_products(const vpps_kernels *kernels, bool transposed) {
    const problem p = draw_problem(kernels, transposed);
    uint32_t all[BLOCK + 6];
    for (uint32_t j = 0; j < p.n; j++) all[j] = j;
    const results r = compute(kernels, &p, p.n, all, p.rows + below(2) * below(8));
    check_values(&p, &r);
    check_company(kernels, &p, &r);
    check_poison(kernels, &p, &r, all);
    free_rooms();
}

/* ---------------------------------------------------------------- outer products */

typedef struct outer_problem {
    uint32_t m, n, k;
    size_t ld;
    bool add;
    vectors d, x;
    uint64_t numbers;
    char text[128];
} outer_problem;

/* Computes the block from vectors [0, n) of the problem, with at most `step` vectors per call. */
static float *compute_outer(const vpps_kernels *kernels, const outer_problem *p, uint32_t step) {
    float *a = floats(p->ld * p->k), *packed = floats(kernels->outer_stride(p->k) * p->n);
    for (uint32_t k = 0; k < p->k; k++)
        for (uint32_t r = 0; r < p->ld; r++) a[k * p->ld + r] = r < p->m ? number_before(p->add, p->numbers, k, r) : 0;
    const float **d = room(p->n * sizeof *d), **x = room(p->n * sizeof *x);
    for (uint32_t j = 0; j < p->n; j++) d[j] = p->d.x[j], x[j] = p->x.x[j] + p->x.skip;
    for (uint32_t v = 0; v < p->n; v += step) {
        const uint32_t n = vpps_min_u32(step, p->n - v);
        kernels->pack_outer(n, p->k, x + v, packed);
        kernels->outer(p->m, n, p->k, d + v, p->d.skip, packed, a, p->ld, p->add || v);
    }
    return a;
}

/* Checks that NaN in element `row` of a vector d affects that row only, and in element `col` of a vector x that column only. */
static void check_outer_poison(const vpps_kernels *kernels, const outer_problem *p, const float *a) {
    const uint32_t v = below(p->n), row = below(p->m), col = below(p->k);
    const bool in_d = below(2);
    float *at = in_d ? element(&p->d, v, row) : element(&p->x, v, col), kept = *at;
    *at = NAN;
    float *poisoned = compute_outer(kernels, p, p->n);
    *at = kept;
    for (uint32_t k = 0; k < p->k; k++) {
        for (uint32_t r = 0; r < p->m; r++) {
            const float got = poisoned[k * p->ld + r];
            ck_assert_msg((in_d ? r == row : k == col) ? isnan(got)
                                                       : vpps_float_bits(got) == vpps_float_bits(a[k * p->ld + r]),
                          "%s: NaN of %s %u, and (%u, %u) is %g", p->text, in_d ? "row" : "column", in_d ? row : col, r,
                          k, (double)got);
        }
    }
}

static void check_outer(const vpps_kernels *kernels) {
    outer_problem p = {.m = vpps_min_u32(draw_size(BLOCK), BLOCK),
                       .n = draw_size(kernels->outer_vectors),
                       .k = draw_size(300),
                       .add = below(2),
                       .numbers = vpps_random(&state)};
    p.ld = (p.m + UNIT - 1) / UNIT * UNIT + below(2) * UNIT;
    p.d = draw_vectors(p.n, p.m);
    p.x = draw_vectors(p.n, p.k);
    snprintf(p.text, sizeof p.text, "%s %u x %u of %u vectors%s (VPPS_TEST_SEED=%llu)", kernels->isa, p.m, p.k, p.n,
             p.add ? ", added" : "", (unsigned long long)seed);
    float *a = compute_outer(kernels, &p, p.n);
    for (uint32_t k = 0; k < p.k; k++) {
        for (uint32_t r = 0; r < p.m; r++) {
            double want = p.add ? (double)number_before(true, p.numbers, k, r) : 0, scale = 1;
            for (uint32_t v = 0; v < p.n; v++) {
                const double term = (double)*element(&p.d, v, r) * *element(&p.x, v, k);
                want += term;
                scale += fabs(term);
            }
            ck_assert_msg(close_to(a[k * p.ld + r], want, 1e-6 * scale), "%s: (%u, %u) is %.9g, expected %.9g", p.text,
                          r, k, a[k * p.ld + r], want);
        }
    }
    for (uint32_t k = 0; k < p.k; k++)
        for (size_t r = p.m; r < p.ld; r++)
            ck_assert_msg(a[k * p.ld + r] == 0, "%s: padding row %zu, column %u is %g", p.text, r, k,
                          (double)a[k * p.ld + r]);
    float *parts = compute_outer(kernels, &p, 1 + below(p.n));
    ck_assert_msg(memcmp(a, parts, p.ld * p.k * sizeof *a) == 0, "%s: the bits depend on how calls are cut", p.text);
    check_outer_poison(kernels, &p, a);
    free_rooms();
}

/* ---------------------------------------------------------------- tests */

enum { PROBLEMS = 120 };

TEST_GROUP("products", .seconds = 60);

TEST_EACH(products_match_plain_loops, 0, 2 * n_isas()) {
    for (uint32_t i = 0; i < test_scaled(PROBLEMS); i++) check_products(kernels_of(_i / 2), _i % 2);
}

EACH_ISA(outer_products_match_plain_loops) {
    for (uint32_t i = 0; i < test_scaled(PROBLEMS); i++) check_outer(kernels_of(_i));
}
