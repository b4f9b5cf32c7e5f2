/* test_sums.c - long sums of equal terms, whose rounding errors all have one sign: the CPU's kernels of every instruction set, and whole batches on
 * the CPU and under software SIMT, compared with double precision. (codegen/test_instructions.c tests sums over a vector's elements.) */
#include "common/gpu_tests.h"
#include "kernel_inputs.h"
#include "runtime/cpu/units.h"
#include "runtime/small_network.h"

static const double RELATIVE = 3e-5;
static const float TERM = 0.7123f;

static void check_sum(const char *isa, const char *what, float got, double want) {
    ck_assert_msg(fabs((double)got - want) <= RELATIVE * fabs(want), "%s: %s: %.9g, expected %.9g", isa, what,
                  (double)got, want);
}

static float *filled(size_t n, float value) {
    float *x = floats(n);
    for (size_t i = 0; i < n; i++) x[i] = value;
    return x;
}

/* ---------------------------------------------------------------- kernels */

TEST_GROUP("sums", .seconds = 120);

/* Vectors of 19 elements: whole blocks and some more. */
EACH_ISA(lists_are_added_up_in_runs) {
    enum { MEMBERS = 100000, N = 19 };
    const vpps_kernels *kernels = kernels_of(_i);
    static const float *list[MEMBERS];
    static uint32_t offsets[MEMBERS], pairs[2 * MEMBERS];
    float *pool = filled(N + 1, TERM), *weights = filled(MEMBERS, 0.3f), to[N];
    pool[N] = 0.3f;
    for (uint32_t m = 0; m < MEMBERS; m++) list[m] = pool, pairs[2 * m] = N;
    const vpps_operands o = {.list = list, .n_list = MEMBERS, .weights = weights, .f = 0.5f};
    const double sum = MEMBERS * (double)TERM, scaled = sum * (double)0.3f;
    kernels->run[VPPS_I_SUM](N, to, &o);
    for (uint32_t e = 0; e < N; e++) check_sum(kernels->isa, "sum", to[e], sum / 2);
    kernels->run[VPPS_I_WEIGHTED_SUM](N, to, &o);
    for (uint32_t e = 0; e < N; e++) check_sum(kernels->isa, "weighted sum", to[e], scaled);
    kernels->add_up(N, MEMBERS, pool, offsets, 0, to);
    for (uint32_t e = 0; e < N; e++) check_sum(kernels->isa, "contributions", to[e], sum);
    kernels->add_scaled(N, MEMBERS, pool, pairs, 0, true, to);
    for (uint32_t e = 0; e < N; e++) check_sum(kernels->isa, "scaled contributions", to[e], sum + scaled);
    kernels->add_scaled(N, MEMBERS, pool, pairs, 0, false, to);
    for (uint32_t e = 0; e < N; e++) check_sum(kernels->isa, "scaled contributions alone", to[e], scaled);
}

EACH_ISA(products_are_added_up_in_runs) {
    enum { DEPTH = 100000, ROWS = 19, LD = 32, COLUMNS = 7, TERMS = DEPTH / 64 };
    const vpps_kernels *kernels = kernels_of(_i);
    float *a = filled((size_t)DEPTH * LD, TERM), *b = filled((size_t)DEPTH * COLUMNS, TERM), c[COLUMNS * LD];
    static const uint8_t multiplications[] = {VPPS_I_MATMUL, VPPS_I_MATMUL_NT, VPPS_I_MATMUL_TN};
    const float *x[COLUMNS];
    const double want = DEPTH * (double)TERM * (double)TERM;
    static vpps_product_term terms[TERMS];
    for (uint32_t j = 0; j < COLUMNS; j++) x[j] = b + (size_t)j * DEPTH;
    for (uint32_t t = 0; t < TERMS; t++) terms[t] = (vpps_product_term){a, 64, 64, 0, x};
    for (uint32_t n = 1; n <= COLUMNS; n += 2) {
#define CHECK(what, m, ldc, start)                                                                                     \
    for (uint32_t j = 0; j < n; j++)                                                                                   \
        for (uint32_t i = 0; i < (m); i++) check_sum(kernels->isa, what, c[i + j * (ldc)], want + (start))
        const vpps_operands o = {.r = ROWS, .c = n, .k = DEPTH, .t = {a, b}};
        for (size_t k = 0; k < VPPS_COUNT(multiplications); k++) {
            kernels->run[multiplications[k]](ROWS * n, c, &o);
            CHECK("a multiplication", ROWS, ROWS, 0);
        }
        kernels->product(ROWS, n, DEPTH, a, LD, x, 0, a, 0, c, LD, a);
        CHECK("product", ROWS, LD, (double)TERM);
        kernels->product_t(n, 5, TERMS, terms, c, LD, false);
        CHECK("product_t", 5, LD, -want + TERMS * 64 * (double)TERM * (double)TERM);
#undef CHECK
    }
}

/* Products in bf16x3, by every unit; sums continue from initial values. */
TEST(products_of_parts_are_added_up_in_runs) {
    enum { DEPTH = 100000, ROWS = 19, COLUMNS = 7, PARTS = 2 };
    const vpps_cpu_units *units = vpps_units_of_this_cpu();
    const size_t words = vpps_bf16_words(32, DEPTH, PARTS);
    uint32_t *const a = room(words * sizeof *a), *const b = room(words * sizeof *b);
    const float *rows[ROWS], *const x = filled(DEPTH, TERM);
    vpps_cpu_maker makers[VPPS_MOST_MAKERS];
    const uint32_t n_makers = vpps_cpu_makers(units, makers);
    float c[COLUMNS * ROWS];
    for (uint32_t i = 0; i < ROWS; i++) rows[i] = x;
    for (uint32_t i = 0; i < n_makers; i++) {
        if (makers[i].precision != VPPS_PRECISION_BF16X3) continue;
        const vpps_bf16_unit unit = vpps_bf16_unit_of(units, makers[i].kernels, makers[i].unit);
        const vpps_bf16_term term = {a, 0, DEPTH};
        memset(a, 0, words * sizeof *a), memset(b, 0, words * sizeof *b);
        for (uint32_t k = 0; k < COLUMNS * ROWS; k++) c[k] = TERM;
        unit.pack(&(vpps_bf16_source){rows, 0, ROWS, DEPTH, false}, PARTS, VPPS_BF16_PAIRS,
                  vpps_bf16_depth_tiles(DEPTH), a);
        unit.pack(&(vpps_bf16_source){rows, 0, COLUMNS, DEPTH, false}, PARTS, VPPS_BF16_AS_ROWS,
                  vpps_bf16_depth_tiles(DEPTH), b);
        if (unit.open) unit.open();
        unit.product(ROWS, COLUMNS, PARTS, b, 1, &term, c, ROWS, c, ROWS);
        if (unit.close) unit.close();
        for (uint32_t k = 0; k < COLUMNS * ROWS; k++)
            check_sum(unit.name, "bf16x3", c[k], DEPTH * (double)TERM * (double)TERM + (double)TERM);
    }
}

EACH_ISA(selected_rows_are_added_up_in_runs) {
    enum { NUMBERS = 100000, COLUMNS = 2, ROWS = 5000 };
    static const uint32_t rows[] = {0, 2047, 2048, ROWS - 1};
    const vpps_kernels *kernels = kernels_of(_i);
    float *numbers = floats(NUMBERS), *x = filled(COLUMNS * NUMBERS, TERM), *to = filled(COLUMNS * ROWS, TERM);
    for (uint32_t i = 0; i < NUMBERS; i++) numbers[i] = (float)rows[i % VPPS_COUNT(rows)];
    const vpps_operands o = {.t = {numbers, x}, .r = ROWS, .c = COLUMNS, .k = NUMBERS};
    kernels->run[VPPS_I_SELECT_ROWS_B](COLUMNS * ROWS, to, &o);
    for (uint32_t i = 0; i < COLUMNS * VPPS_COUNT(rows); i++)
        check_sum(kernels->isa, "rows", to[i / VPPS_COUNT(rows) * ROWS + rows[i % VPPS_COUNT(rows)]],
                  (double)TERM * NUMBERS / VPPS_COUNT(rows));
    ck_assert_float_eq(to[1], 0);
}

/* ---------------------------------------------------------------- batches */

static const sn_setting settings[] = {{.device = "cpu", .vps = 1},
                                      {.device = "cpu", .vps = 3},
                                      {.device = "cpu", .vps = 3, .precision = VPPS_PRECISION_BF16X3},
                                      {.device = "simt", .vps = 2},
                                      {.device = "simt", .vps = 2, .precision = VPPS_PRECISION_BF16X3}};
enum { ON_CPU = 3, SIZE = 3 };

/* The batches are too large to be verified, and for a small pool. */
static vpps_options options_of(int setting) {
    vpps_options o = sn_options_on(&settings[setting]);
    o.pool_bytes = 0;
    o.verify = false;
    return o;
}

static void check_gradient(training *t, int setting, vpps_param p, const char *what, double want, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) check_sum(settings[setting].device, what, gradient_of(t, p)[i], want);
}

/* A bias, matrices for one and two columns, a table entry and a value that all vertices read; all vertices give equal gradients. */
TEST_EACH(gradients_of_many_vertices_add_up, 0, SN_HERE) {
    const uint32_t n = _i < ON_CPU ? 50000 : 6000;
    const vpps_options o = options_of(_i);
    const vpps_init all = {.kind = VPPS_INIT_CONSTANT, .a = TERM};
    float ones[2 * SIZE];
    vpps_param W, V, b, E, u;
    for (uint32_t i = 0; i < 2 * SIZE; i++) ones[i] = TERM;
    AT_END(training_end) training t = training_of(1);
    TEST_OK(vpps_add_matrix(t.model, &W, "W", SIZE, SIZE, &all));
    TEST_OK(vpps_add_matrix(t.model, &V, "V", SIZE, SIZE, &all));
    TEST_OK(vpps_add_vector(t.model, &b, "b", SIZE, &all));
    TEST_OK(vpps_add_vector(t.model, &u, "u", SIZE, &all));
    TEST_OK(vpps_add_lookup(t.model, &E, "E", 2, SIZE, 1, &all));
    vpps_graph *r = begin_cell(t.model, "vertex");
    const vpps_node x = vpps_pull(r, SIZE, 1), read = vpps_pull(r, SIZE, 1), columns = vpps_pull(r, SIZE, 2);
    const vpps_node y =
        vpps_add(r, vpps_affine(r, b, 1, &W, &x), vpps_add(r, read, vpps_lookup(r, E, vpps_pull_index(r))));
    const vpps_node z = vpps_matmul(r, vpps_parameter(r, V), columns);
    TEST_OK(vpps_push(r, vpps_scale(r, vpps_add(r, vpps_sum_elements(r, y), vpps_sum_elements(r, z)), TERM)));
    const vpps_cell cell = end_cell(r);
    training_start(&t, &o);
    const vpps_node pulls[] = {vpps_input(t.g, SIZE, 1, ones), vpps_negate(t.g, vpps_parameter(t.g, u)),
                               vpps_input(t.g, SIZE, 2, ones)};
    vpps_node *losses = malloc(n * sizeof *losses);
    for (uint32_t i = 0; i < n; i++)
        losses[i] = vpps_pushed(t.g, APPLY(t.g, cell, PULLS(3, pulls), INDICES(1, &(uint32_t){1})), 0);
    TEST_OK(vpps_backward(t.h, t.g, vpps_sum(t.g, n, losses), NULL));
    const float loss = latest_loss(t.h);
    TEST_OK(vpps_read_gradients(t.h));
    free(losses);
    const double term = (double)TERM, each = n * term;
    check_sum(settings[_i].device, "loss", loss, each * SIZE * (3 * SIZE * term * term + term));
    check_gradient(&t, _i, b, "bias", each, SIZE);
    check_gradient(&t, _i, W, "matrix", each * term, SIZE * SIZE);
    check_gradient(&t, _i, V, "matrix of columns", 2 * each * term, SIZE * SIZE);
    check_gradient(&t, _i, E, "entry", each, SIZE);
    check_gradient(&t, _i, u, "value", -each, SIZE);
}

/* A matrix with few rows times a long vector, and the transpose of a matrix with many rows. */
SN_EACH(products_of_long_vectors_add_up) {
    const uint32_t length = _i < ON_CPU ? 60000 : 25000; /* in bf16 the sums lie in shared memory */
    const vpps_options o = options_of(_i);
    const vpps_init all = {.kind = VPPS_INIT_CONSTANT, .a = TERM};
    vpps_param A, B, u;
    float got[SIZE], *out = got;
    AT_END(training_end) training t = training_of(1);
    TEST_OK(vpps_add_matrix(t.model, &A, "A", SIZE, length, &all));
    TEST_OK(vpps_add_matrix(t.model, &B, "B", length, SIZE, &all));
    TEST_OK(vpps_add_vector(t.model, &u, "u", SIZE, &all));
    training_start(&t, &o);
    const vpps_node wide = vpps_matvec(t.g, B, vpps_parameter(t.g, u)), x = vpps_constant(t.g, length, 1, TERM);
    const vpps_node product = vpps_matvec(t.g, A, x);
    const double want = length * (double)TERM * (double)TERM;
    TEST_OK(vpps_forward(t.h, t.g, 1, &product, &out));
    for (uint32_t i = 0; i < SIZE; i++) check_sum(settings[_i].device, "product", got[i], want);
    TEST_OK(vpps_backward(t.h, t.g, vpps_sum_elements(t.g, vpps_scale(t.g, wide, TERM)), NULL));
    TEST_OK(vpps_read_gradients(t.h));
    check_gradient(&t, _i, u, "transposed product", want, SIZE);
}

/* Near a million, floats are 1 / 16 apart; the variance of centred values must be right nevertheless. */
TEST_EACH(a_norm_of_great_numbers_is_of_their_differences, 0, SN_HERE) {
    enum { N = 100 };
    const vpps_options o = options_of(_i);
    float x[N], y[N], *out = y;
    double mean = 0, variance = 0;
    for (uint32_t i = 0; i < N; i++) x[i] = 1e6f + 0.0625f * (float)(i * i % 37);
    for (uint32_t i = 0; i < N; i++) mean += (double)x[i] / N;
    for (uint32_t i = 0; i < N; i++) variance += ((double)x[i] - mean) * ((double)x[i] - mean) / N;
    AT_END(training_end) training t = training_of(1);
    training_start(&t, &o);
    const vpps_node norm = vpps_layer_norm(t.g, vpps_input(t.g, N, 1, x), VPPS_NO_NODE, VPPS_NO_NODE, 1e-5f);
    TEST_OK(vpps_forward(t.h, t.g, 1, &norm, &out));
    for (uint32_t i = 0; i < N; i++) {
        const double want = ((double)x[i] - mean) / sqrt(variance + 1e-5);
        ck_assert_msg(fabs((double)y[i] - want) <= 2e-6 * (1 + fabs(want)), "element %u is %.9g, expected %.9g", i,
                      (double)y[i], want);
    }
}
