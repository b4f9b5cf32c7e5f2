/* test_bf16.c - products of operands in bf16 (bf16.h): compares rounding with its definition, packing with plain indexing, and products of every unit
 * (kind of instruction) of this CPU with sums in double precision, within the bound that bf16.h derives, for random operands and for hard cases. */
#include "bf16_numbers.h"
#include "runtime/cpu/avx512_bf16.h"
#include "runtime/cpu/units.h"

/* ---------------------------------------------------------------- AMX as its manual describes it */

typedef union model_tile {
    float sums[16][16];
    uint32_t pairs[16][16];
} model_tile;

static model_tile tiles[8];
static int tile_rows[8] = {16, 16, 16, 16, 16, 16, 16, 16};

/* Models LDTILECFG; TILELOADD then makes zeros of everything after a tile's rows. */
static void set_rows(uint32_t n) {
    memset(tiles, 0, sizeof tiles);
    for (int t = 0; t < 6; t++) tile_rows[t] = (int)n;
}

static void load_tile(int t, const void *from, size_t bytes) {
    memset(&tiles[t], 0, sizeof tiles[t]);
    for (int r = 0; r < tile_rows[t]; r++)
        memcpy(tiles[t].pairs[r], (const char *)from + r * bytes, sizeof tiles[t].pairs[r]);
}

static void store_tile(int t, void *to, size_t bytes) {
    for (int r = 0; r < tile_rows[t]; r++) memcpy((char *)to + r * bytes, tiles[t].pairs[r], sizeof tiles[t].pairs[r]);
}

static float flushed(float x) { return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x; }

static float half_of(uint32_t pair, int odd) { return flushed(vpps_bits_float(odd ? pair & 0xffff0000u : pair << 16)); }

/* Models TDPBF16PS: sums even and odd elements apart, then adds both to the sum. */
static void dot_tiles(int to, const model_tile *a, const model_tile *b) {
    model_tile *sums = &tiles[to];
    for (int m = 0; m < tile_rows[to]; m++) {
        for (int n = 0; n < 16; n++) {
            float two[2] = {0, 0};
            for (int k = 0; k < 16; k++)
                for (int odd = 0; odd < 2; odd++)
                    two[odd] = flushed(fmaf(half_of(a->pairs[m][k], odd), half_of(b->pairs[k][n], odd), two[odd]));
            sums->sums[m][n] = flushed(sums->sums[m][n] + flushed(two[0] + two[1]));
        }
    }
}

#define AMX_FUNCTION static
#define TILE_ZERO(t) memset(&tiles[t], 0, sizeof tiles[t])
#define TILE_ROWS(n) set_rows(n)
#define TILE_LOAD(t, from, bytes) load_tile(t, from, bytes)
#define TILE_STORE(t, to, bytes) store_tile(t, to, bytes)
#define TILE_DOT(sums, rows, pairs) dot_tiles(sums, &tiles[rows], &tiles[pairs])
#include "runtime/cpu/amx_product.h"

/* ---------------------------------------------------------------- numbers */

enum { MOST_ROWS = 90, MOST_DEPTH = 300, MOST_VECTORS = 70 };

/* ---------------------------------------------------------------- what packs and multiplies */

typedef struct unit {
    const char *name;
    vpps_pack_bf16 pack;
    vpps_product_bf16 product;
} unit;

/* Numbers of units; those from 0 on are the instruction sets. */
enum { AMX_MODEL = VPPS_MOST_KERNELS, AMX, AVX512_BF16, N_UNITS };

/* AMX's functions with the steps that a thread needs before and after; all NULL if the CPU lacks AMX. */
static vpps_bf16_unit amx;

static void product_by_amx(uint32_t m, uint32_t n, uint32_t parts, const uint32_t *x, uint32_t n_terms,
                           const vpps_bf16_term *terms, const float *from, size_t ld_from, float *c, size_t ldc) {
    amx.open();
    amx.product(m, n, parts, x, n_terms, terms, from, ld_from, c, ldc);
    amx.close();
}

/* Returns unit number i; `product` is NULL if this CPU lacks the unit. */
static unit unit_of(int i) {
    if (i == AMX_MODEL) return (unit){"a model of AMX", kernels_of(0)->pack_bf16, amx_product};
    if (i == AMX) {
        const bool here = vpps_amx_find(&amx) == VPPS_OK;
        if (!here) TEST_LEFT_OUT("%s", vpps_error_message());
        return (unit){"AMX", kernels_of(0)->pack_bf16, here ? product_by_amx : NULL};
    }
    if (i == AVX512_BF16) {
        vpps_bf16_unit found = {0};
        if (vpps_avx512_bf16_find(&found) != VPPS_OK) TEST_LEFT_OUT("%s", vpps_error_message());
        return (unit){"AVX512-BF16", found.pack, found.product};
    }
    if (i >= n_isas()) return (unit){0};
    return (unit){kernels_of(i)->isa, kernels_of(i)->pack_bf16, kernels_of(i)->product_bf16};
}

/* ---------------------------------------------------------------- rounding, by its definition */

/* Returns the nearest number with 8 significant bits, in double precision. */
static double nearest(double x) {
    int exponent;
    if (!isfinite(x) || x == 0) return x;
    frexp(x, &exponent);
    const double ulp = ldexp(1, exponent - 8), ulps = nearbyint(x / ulp), r = ulps * ulp; /* ties to even */
    if (fabs(x) < 0x1p-126) return copysign(0, x);
    return fabs(r) >= 0x1p128 ? copysign(INFINITY, x) : r;
}

/* Splits an operand into its bf16 parts. */
static void split(double x, uint32_t parts, double *out) {
    static const double greatest = 0x1.fep127;
    out[0] = nearest(x);
    if (parts == 1) return;
    if (isinf(out[0]) && isfinite(x)) out[0] = copysign(greatest, x);
    out[1] = isfinite(x) ? nearest(x - out[0]) : 0;
}

/* ---------------------------------------------------------------- operands */

typedef struct operand {
    float *memory;
    vpps_bf16_source source;
    uint32_t parts, depth_tiles;
    vpps_bf16_form form;
    uint32_t *packed;
    double *values; /* values of all rows, one row after the other */
} operand;

static float any_float(void) {
    const uint32_t kind = below(8), u = (uint32_t)vpps_random(&state);
    static const uint32_t special[] = {0,          0x80000000, 1,          0x007fffff, 0x00800000, 0x807fffff,
                                       0x7f7fffff, 0xff7fffff, 0x7f7f8000, 0x7f7f7fff, 0x3f808000, 0x3f818000,
                                       0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001, 0x3f7fffff, 0xbf80ffff};
    if (kind == 0) return vpps_bits_float(special[below(VPPS_COUNT(special))]);
    if (kind == 1) return vpps_bits_float((u & 0xffff0000u) | 0x8000u); /* ties */
    return kind == 2 ? vpps_bits_float(u) : draw(-2, 2);
}

static operand make_operand(uint32_t rows, uint32_t depth, bool across, vpps_bf16_form form, uint32_t parts,
                            float (*number)(void)) {
    operand o = {.parts = parts, .form = form, .depth_tiles = vpps_bf16_depth_tiles(depth)};
    const uint32_t n = across ? depth : rows, elems = across ? rows : depth, skip = below(2) * below(20);
    const size_t distance = skip + elems, words = vpps_bf16_words(rows, depth, parts);
    const float **x = room(n * sizeof *x);
    o.memory = floats(n * distance);
    o.values = room((size_t)rows * depth * sizeof *o.values);
    o.packed = room(words * sizeof *o.packed);                    /* whole tiles, and therefore aligned */
    for (size_t i = 0; i < words; i++) o.packed[i] = 0x7fc07fc0u; /* words that are not written become visible */
    for (uint32_t i = 0; i < n; i++) {
        x[i] = o.memory + i * distance;
        for (uint32_t k = 0; k < elems; k++) {
            const float drawn_one = number();
            o.memory[i * distance + skip + k] = drawn_one;
            o.values[across ? (size_t)k * depth + i : (size_t)i * depth + k] = (double)drawn_one;
        }
    }
    o.source = (vpps_bf16_source){x, skip, rows, depth, across};
    return o;
}

static void pack(vpps_pack_bf16 by, operand *o) { by(&o->source, o->parts, o->form, o->depth_tiles, o->packed); }

/* Returns element k of a packed row. */
static float packed_element(const operand *o, uint32_t row, uint32_t k, uint32_t part) {
    const uint32_t *tile =
        o->packed + (((size_t)(row / 16) * o->depth_tiles + k / 32) * o->parts + part) * VPPS_BF16_TILE;
    const uint32_t i = row % 16, q = k % 32 / 2, word = tile[o->form == VPPS_BF16_PAIRS ? q * 16 + i : i * 16 + q];
    return vpps_bits_float(k % 2 ? word & 0xffff0000u : word << 16);
}

TEST_GROUP("bf16", .seconds = 60);

TEST_EACH(operands_are_packed, 0, N_UNITS) {
    const unit u = unit_of(_i);
    for (int round = 0; u.product && round < (int)test_scaled(300); round++) {
        operand o = make_operand(draw_size(40), draw_size(80), below(2), below(2) ? VPPS_BF16_PAIRS : 0, 1 + below(2),
                                 any_float);
        pack(u.pack, &o);
        const uint32_t rows = (o.source.rows + 15) / 16 * 16;
        for (uint32_t row = 0; row < rows; row++) {
            for (uint32_t k = 0; k < o.depth_tiles * 32; k++) {
                const bool padding = row >= o.source.rows || k >= o.source.depth;
                const double x = padding ? 0 : o.values[(size_t)row * o.source.depth + k];
                double want[2] = {0};
                split(x, o.parts, want);
                for (uint32_t part = 0; part < o.parts; part++) {
                    const float got = packed_element(&o, row, k, part);
                    ck_assert_msg(isnan(want[part]) ? isnan(got)
                                                    : vpps_float_bits(got) == vpps_float_bits((float)want[part]),
                                  "%s: part %u of %a is %a, expected %a (row %u, element %u of %u x %u; "
                                  "VPPS_TEST_SEED=%llu)",
                                  u.name, part, x, (double)got, want[part], row, k, o.source.rows, o.source.depth,
                                  (unsigned long long)seed);
                }
            }
        }
        free_rooms();
    }
}

/* ---------------------------------------------------------------- products */

/* See bf16.h. */
static double bound(uint32_t parts, uint32_t k, double terms, double operands) {
    return bf16_bound(parts, k, terms, operands, 0x1p-24);
}

typedef struct problem {
    operand a, x;
    float *start;
    size_t ldc;
    bool added;
    char text[160];
} problem;

static problem draw_problem(const char *name, uint32_t parts, float (*number)(void)) {
    const uint32_t m = draw_size(MOST_ROWS), n = draw_size(MOST_VECTORS), k = draw_size(MOST_DEPTH);
    problem p = {.a = make_operand(m, k, below(2), VPPS_BF16_PAIRS, parts, number),
                 .x = make_operand(n, k, below(2), VPPS_BF16_AS_ROWS, parts, number),
                 .ldc = m + below(2) * below(9),
                 .added = below(2)};
    p.start = drawn(p.ldc * n, -1, 1);
    snprintf(p.text, sizeof p.text, "%s, %u parts, %u rows, %u elements, %u vectors%s (VPPS_TEST_SEED=%llu)", name,
             parts, m, k, n, p.added ? ", added" : "", (unsigned long long)seed);
    return p;
}

/* Without a start value, the memory holds NaN, which the product must not read. */
static float *compute(vpps_product_bf16 product, const problem *p, uint32_t n) {
    const size_t elems = p->ldc * (n - 1) + p->a.source.rows;
    float *c = floats(elems);
    for (size_t i = 0; i < elems; i++) c[i] = p->added ? p->start[i] : NAN;
    const vpps_bf16_term term = {p->a.packed, 0, p->a.source.depth};
    product(p->a.source.rows, n, p->a.parts, p->x.packed, 1, &term, p->added ? c : NULL, p->ldc, c, p->ldc);
    return c;
}

/* Packs the operands, and computes all vectors. */
static float *pack_and_compute(const unit *u, problem *p) {
    pack(u->pack, &p->a);
    pack(u->pack, &p->x);
    return compute(u->product, p, p->x.source.rows);
}

static void check_bound(const problem *p, const float *c) {
    const uint32_t k = p->a.source.depth;
    for (uint32_t j = 0; j < p->x.source.rows; j++) {
        for (uint32_t i = 0; i < p->a.source.rows; i++) {
            const double from = p->added ? (double)p->start[j * p->ldc + i] : 0;
            double want = from, terms = fabs(from), operands = 0;
            for (uint32_t e = 0; e < k; e++) {
                const double w = p->a.values[(size_t)i * k + e], x = p->x.values[(size_t)j * k + e];
                want += w * x;
                terms += fabs(w * x);
                operands += fabs(w) + fabs(x);
            }
            const double got = (double)c[j * p->ldc + i];
            ck_assert_msg(fabs(got - want) <= bound(p->a.parts, k, terms, operands),
                          "%s: element %u of vector %u is %.9g, not %.9g: off by %g, at most %g", p->text, i, j, got,
                          want, fabs(got - want), bound(p->a.parts, k, terms, operands));
        }
    }
}

TEST_EACH(products_are_within_their_bound, 0, N_UNITS) {
    const unit u = unit_of(_i);
    for (int round = 0; u.product && round < (int)test_scaled(40) * N_KINDS; round++) {
        problem p = draw_problem(u.name, 1 + below(2), kinds[round % N_KINDS]);
        const float *c = pack_and_compute(&u, &p);
        check_bound(&p, c);
        /* a vector's bits do not depend on the vectors after it */
        const uint32_t n = 1 + below(p.x.source.rows);
        float *few = compute(u.product, &p, n);
        for (uint32_t j = 0; j < n; j++)
            ck_assert_msg(!memcmp(few + j * p.ldc, c + j * p.ldc, p.a.source.rows * sizeof *c),
                          "%s: vector %u's bits are others among %u", p.text, j, n);
        free_rooms();
    }
}

/* A sum of products has the same bits as if the products were added one after the other. */
TEST_EACH(terms_are_added_in_their_order, 0, N_UNITS) {
    enum { MOST_TERMS = 4 };
    const unit u = unit_of(_i);
    for (int round = 0; u.product && round < (int)test_scaled(60); round++) {
        const uint32_t m = draw_size(MOST_ROWS), n = draw_size(MOST_VECTORS), n_terms = 1 + below(MOST_TERMS);
        const uint32_t parts = 1 + below(2);
        float *start = drawn(m, -1, 1), *want = floats((size_t)m * n), *got = floats((size_t)m * n);
        operand a[MOST_TERMS], x[MOST_TERMS];
        vpps_bf16_term terms[MOST_TERMS];
        size_t words = 0;
        for (uint32_t i = 0; i < n_terms; i++) {
            const uint32_t depth = draw_size(MOST_DEPTH);
            a[i] = make_operand(m, depth, true, VPPS_BF16_PAIRS, parts, ordinary);
            x[i] = make_operand(n, depth, false, VPPS_BF16_AS_ROWS, parts, ordinary);
            pack(u.pack, &a[i]);
            terms[i] = (vpps_bf16_term){a[i].packed, words, depth};
            words += vpps_bf16_words(n, depth, parts);
        }
        uint32_t *vectors = room(words * sizeof *vectors);
        for (uint32_t i = 0; i < n_terms; i++)
            u.pack(&x[i].source, parts, VPPS_BF16_AS_ROWS, x[i].depth_tiles, vectors + terms[i].x_words);
        for (uint32_t i = 0; i < n_terms; i++)
            u.product(m, n, parts, vectors, 1, &terms[i], i ? want : start, i ? m : 0, want, m);
        u.product(m, n, parts, vectors, n_terms, terms, start, 0, got, m);
        ck_assert_msg(!memcmp(want, got, (size_t)m * n * sizeof *got),
                      "%s: %u terms of %u rows and %u vectors differ from one after the other "
                      "(VPPS_TEST_SEED=%llu)",
                      u.name, n_terms, m, n, (unsigned long long)seed);
        free_rooms();
    }
}

/* ---------------------------------------------------------------- transposed products of spread vectors */

TEST(vectors_are_spread) {
    vpps_bf16_unit found;
    const bool here = vpps_avx512_bf16_find(&found) == VPPS_OK;
    if (!here) TEST_LEFT_OUT("%s", vpps_error_message());
    for (int round = 0; round < (int)test_scaled(100); round++) {
        const uint32_t n = draw_size(40), depth = draw_size(100), parts = 1 + below(2), groups = (depth + 15) / 16;
        operand o = make_operand(n, depth, false, VPPS_BF16_AS_ROWS, parts, any_float);
        pack(kernels_of(0)->pack_bf16, &o);
        const size_t words = vpps_bf16_spread_words(n, depth, parts);
        uint32_t *spread = room(words * sizeof *spread), *fast = room(words * sizeof *fast);
        memset(spread, 0xff, words * sizeof *spread);
        amx_spread(n, depth, parts, o.packed, spread);
        for (size_t w = 0; w < words; w++) {
            const uint32_t part = w / 256 % parts, g = (uint32_t)(w / 256 / parts % groups);
            const uint32_t j = (uint32_t)(w / 256 / parts / groups) * 8 + w % 16 / 2, e = 16 * g + w / 16 % 16;
            const uint32_t u = j < n && e < depth ? vpps_float_bits(packed_element(&o, j, e, part)) : 0;
            ck_assert_uint_eq(spread[w], w % 2 ? u : u >> 16);
        }
        if (here) found.spread(n, depth, parts, o.packed, fast);
        ck_assert(!here || !memcmp(spread, fast, words * sizeof *fast));
        free_rooms();
    }
}

static void product_t_by_amx(uint32_t k, uint32_t n, uint32_t parts, const uint32_t *x, uint32_t n_terms,
                             const vpps_bf16_term *terms, float *c, size_t ldc) {
    amx.open();
    amx.product_t(k, n, parts, x, n_terms, terms, c, ldc);
    amx.close();
}

/* The model and AMX give the same bits, and a vector's bits do not depend on the number of vectors. */
TEST(transposed_products_are_within_their_bound) {
    enum { MOST_TERMS = 3 };
    const bool here = vpps_amx_find(&amx) == VPPS_OK;
    if (!here) TEST_LEFT_OUT("%s", vpps_error_message());
    for (int round = 0; round < (int)test_scaled(20) * N_KINDS; round++) {
        const uint32_t k = draw_size(MOST_DEPTH), n = draw_size(20), n_terms = 1 + below(MOST_TERMS);
        const uint32_t parts = 1 + below(2);
        operand a[MOST_TERMS], x[MOST_TERMS];
        vpps_bf16_term terms[MOST_TERMS];
        size_t words = 0;
        uint32_t depth = 0;
        for (uint32_t i = 0; i < n_terms; i++) {
            const uint32_t rows = draw_size(MOST_ROWS);
            a[i] = make_operand(rows, k, true, VPPS_BF16_PAIRS, parts, kinds[round % N_KINDS]);
            x[i] = make_operand(n, rows, false, VPPS_BF16_AS_ROWS, parts, kinds[round % N_KINDS]);
            pack(kernels_of(0)->pack_bf16, &a[i]);
            pack(kernels_of(0)->pack_bf16, &x[i]);
            terms[i] = (vpps_bf16_term){a[i].packed, words, rows};
            words += vpps_bf16_spread_words(n, rows, parts);
            depth += rows;
        }
        uint32_t *spread = room(words * sizeof *spread);
        for (uint32_t i = 0; i < n_terms; i++)
            amx_spread(n, terms[i].depth, parts, x[i].packed, spread + terms[i].x_words);
        const size_t ldc = k + below(2) * below(9), elems = ldc * (n - 1) + k;
        float *c = floats(elems), *real = floats(elems);
        amx_product_t(k, n, parts, spread, n_terms, terms, c, ldc);
        if (here) product_t_by_amx(k, n, parts, spread, n_terms, terms, real, ldc);
        for (uint32_t j = 0; j < n; j++) {
            ck_assert_msg(!here || !memcmp(c + j * ldc, real + j * ldc, k * sizeof *c),
                          "vector %u is not the model's (VPPS_TEST_SEED=%llu)", j, (unsigned long long)seed);
            for (uint32_t e = 0; e < k; e++) {
                double want = 0, sum = 0, operands = 0;
                for (uint32_t i = 0; i < n_terms; i++) {
                    for (uint32_t r = 0; r < terms[i].depth; r++) {
                        const double w = a[i].values[(size_t)r * k + e],
                                     v = x[i].values[(size_t)j * terms[i].depth + r];
                        want += w * v;
                        sum += fabs(w * v);
                        operands += fabs(w) + fabs(v);
                    }
                }
                const double off = fabs((double)c[j * ldc + e] - want), most = bound(parts, depth, sum, operands);
                ck_assert_msg(off <= most,
                              "%u parts, element %u of vector %u is off by %g, at most %g "
                              "(VPPS_TEST_SEED=%llu)",
                              parts, e, j, off, most, (unsigned long long)seed);
            }
        }
        const uint32_t few = 1 + below(vpps_min_u32(n, VPPS_BF16_SPREAD));
        if (n_terms == 1) { /* the first vectors' tiles stay the same */
            amx_product_t(k, few, parts, spread, n_terms, terms, real, ldc);
            for (uint32_t j = 0; j < few; j++) ck_assert(!memcmp(c + j * ldc, real + j * ldc, k * sizeof *c));
        }
        free_rooms();
    }
}

/* Products of bf16 numbers are exact, so all instruction sets of plain vectors round alike. */
TEST(instruction_sets_give_the_same_bits) {
    for (int round = 0; round < 100; round++) {
        problem p = draw_problem("all", 1 + below(2), round % 2 ? ordinary : of_any_size);
        float *first = NULL;
        for (int i = 0; i < n_isas(); i++) {
            const unit u = unit_of(i);
            float *c = pack_and_compute(&u, &p);
            for (uint32_t j = 0; first && j < p.x.source.rows; j++)
                ck_assert_msg(!memcmp(first + j * p.ldc, c + j * p.ldc, p.a.source.rows * sizeof *c),
                              "%s: vector %u differs by %s", p.text, j, u.name);
            if (!first) first = c;
        }
        free_rooms();
    }
}

/* AMX gives the same bits as its model. */
TEST(amx_is_its_model) {
    const unit real = unit_of(AMX), model = unit_of(AMX_MODEL);
    for (int round = 0; real.product && round < 100; round++) {
        problem p = draw_problem(real.name, 1 + below(2), kinds[round % N_KINDS]);
        const float *c = pack_and_compute(&real, &p), *want = pack_and_compute(&model, &p);
        for (uint32_t j = 0; j < p.x.source.rows; j++)
            ck_assert_msg(!memcmp(want + j * p.ldc, c + j * p.ldc, p.a.source.rows * sizeof *c),
                          "%s: vector %u is not the model's", p.text, j);
        free_rooms();
    }
}

/* NaN and infinity of a vector stay in its result, those of a matrix row in that row's results. */
TEST_EACH(what_is_not_finite_shows, 0, N_UNITS) {
    static const float poisons[] = {NAN, INFINITY, -INFINITY};
    const unit u = unit_of(_i);
    for (int round = 0; u.product && round < 60; round++) {
        problem p = draw_problem(u.name, 1 + below(2), ordinary);
        const bool in_a = below(2);
        operand *o = in_a ? &p.a : &p.x;
        const uint32_t row = below(o->source.rows), e = below(o->source.depth);
        const size_t distance = o->source.skip + (o->source.across ? o->source.rows : o->source.depth);
        const uint32_t vector = o->source.across ? e : row, element = o->source.across ? row : e;
        o->memory[vector * distance + o->source.skip + element] = poisons[round % 3];
        const float *c = pack_and_compute(&u, &p);
        for (uint32_t j = 0; j < p.x.source.rows; j++) {
            for (uint32_t i = 0; i < p.a.source.rows; i++) {
                const float got = c[j * p.ldc + i];
                const bool poisoned = in_a ? i == row : j == row;
                const bool right = !poisoned ? isfinite(got) : round % 3 == 0 ? isnan(got) : !isfinite(got);
                ck_assert_msg(right, "%s: %g in %s %u, and element %u of vector %u is %g", p.text,
                              (double)poisons[round % 3], in_a ? "row" : "vector", row, i, j, (double)got);
            }
        }
        free_rooms();
    }
}
