/* test_kernels.c - what the CPU's kernels of every instruction set do besides instructions (codegen/test_instructions.c): functions to the last
 * places, products of matrices, transposes, sums. Inputs are drawn fresh (VPPS_TEST_SEED repeats a run). Tensors end where a page without access
 * begins, so reading or writing past the end faults. */
#include "common/meaning.h"
#include "kernel_inputs.h"

static const uint32_t sizes[] = {1, 15, 16, 17, 31, 33, 64, 100, 257};

TEST_GROUP("kernels", .seconds = 60);

EACH_ISA(functions_are_accurate_to_the_last_places) {
    const vpps_kernels *kernels = kernels_of(_i);
    const vpps_opcode functions[] = {VPPS_I_EXP, VPPS_I_LOG, VPPS_I_TANH, VPPS_I_SIGMOID, VPPS_I_ELU};
    enum { COUNT = 1 << 16 };
    for (size_t f = 0; f < VPPS_COUNT(functions); f++) {
        float *x = floats(COUNT), *y = floats(COUNT);
        for (uint32_t i = 0; i < COUNT; i++) /* of every magnitude */
            x[i] = ldexpf(draw(1, 2), (int)vpps_random_below(&state, 47) - 40) * (i % 2 ? 1.0f : -1.0f);
        const vpps_operands o = {.t = {x}, .f = 1};
        static double exact[COUNT], meant[COUNT];
        for (uint32_t i = 0; i < COUNT; i++) exact[i] = (double)x[i];
        meaning_instruction(functions[f], &(meaning_operands){.a = exact, .f = 1}, COUNT, meant, NULL);
        kernels->run[functions[f]](COUNT, y, &o);
        for (uint32_t i = 0; i < COUNT; i++) {
            const double want = meant[i];
            const double unit =
                nextafterf(fmaxf(fabsf((float)want), 0x1p-126f), INFINITY) - fmaxf(fabsf((float)want), 0x1p-126f);
            ck_assert_msg(close_to(y[i], want, (functions[f] == VPPS_I_TANH ? 7 : 3) * unit + 0x1p-126),
                          "%s %s(%.9g) = %.9g, expected %.9g", kernels->isa, vpps_instructions[functions[f]].name, x[i],
                          y[i], want);
        }
    }
}

/* Computes C (rows x n) from A and B: sums over p < depth; kind 0: A B, 1: A B^T, 2: A^T B; and compares it. */
static void check_gemm(const vpps_kernels *kernels, int kind, uint32_t rows, uint32_t n, uint32_t depth) {
    static const uint8_t instructions[] = {VPPS_I_MATMUL, VPPS_I_MATMUL_NT, VPPS_I_MATMUL_TN};
    const vpps_cpu_kernel multiply = kernels->run[instructions[kind]];
    float *a = drawn((size_t)rows * depth, -1, 1), *b = drawn((size_t)n * depth, -1, 1), *column = floats(depth);
    float *c = floats((size_t)rows * n), *single = floats(rows);
    multiply(rows * n, c, &(vpps_operands){.r = rows, .c = n, .k = depth, .t = {a, b}});
    for (uint32_t j = 0; j < n; j++) {
        for (uint32_t p = 0; p < depth; p++) column[p] = kind == 1 ? b[j + p * n] : b[p + j * depth];
        multiply(rows, single, &(vpps_operands){.r = rows, .c = 1, .k = depth, .t = {a, column}});
        ck_assert_msg(memcmp(single, c + j * rows, rows * sizeof(*single)) == 0,
                      "%s kind %d %u x %u x %u: column %u depends on the others", kernels->isa, kind, rows, n, depth,
                      j);
        for (uint32_t i = 0; i < rows; i++) {
            double want = 0, scale = 1;
            for (uint32_t p = 0; p < depth; p++) {
                const double term = (double)(kind == 2 ? a[p + i * depth] : a[i + p * rows]) * column[p];
                want += term;
                scale += fabs(term);
            }
            ck_assert_msg(close_to(c[i + j * rows], want, 1e-6 * scale),
                          "%s kind %d %u x %u x %u: (%u, %u) is %.9g, expected %.9g", kernels->isa, kind, rows, n,
                          depth, i, j, c[i + j * rows], want);
        }
    }
}

TEST_EACH(products_match_a_plain_loop, 0, 3 * n_isas()) {
    static const uint32_t lengths[] = {1, 3, 16, 31, 33, 130, 257}, widths[] = {1, 2, 3, 4, 7, 17};
    for (size_t i = 0; i < VPPS_COUNT(lengths); i++)
        for (size_t p = 0; p < VPPS_COUNT(lengths); p++)
            for (size_t j = 0; j < VPPS_COUNT(widths); j++)
                check_gemm(kernels_of(_i / 3), _i % 3, lengths[i], widths[j], lengths[p]);
}

EACH_ISA(product_over_nothing_is_zero) {
    const vpps_kernels *kernels = kernels_of(_i);
    float c[3] = {1, 2, 3};
    kernels->run[VPPS_I_MATMUL](3, c, &(vpps_operands){.r = 3, .c = 1, .t = {c, c}});
    ck_assert_float_eq(c[0] + c[1] + c[2], 0);
}

/* Many vectors give, bit for bit, what instructions compute for one vector after the other. */
EACH_ISA(many_vectors_are_taken_as_one_is) {
    const vpps_kernels *kernels = kernels_of(_i);
    enum { MOST = 35 };
    for (size_t s = 0; s < VPPS_COUNT(sizes) * MOST; s++) {
        const uint32_t n = sizes[s / MOST], count = (uint32_t)(s % MOST) + 1;
        if (count % 8 > 2) continue;
        const float *x[MOST];
        float *y = drawn(n, -1, 1), *to = floats(count);
        for (uint32_t i = 0; i < count; i++) x[i] = drawn(n, -1, 1);
        kernels->dots(count, n, x, y, to);
        for (uint32_t i = 0; i < count; i++) {
            float dot;
            kernels->run[VPPS_I_DOT](n, &dot, &(vpps_operands){.t = {x[i], y}});
            ck_assert_uint_eq(vpps_float_bits(to[i]), vpps_float_bits(dot));
        }
        free_rooms();
    }
}

/* Sums of scaled vectors equal, bit for bit, products that are computed first and then added. */
EACH_ISA(scaled_vectors_are_added_as_products_are) {
    const vpps_kernels *kernels = kernels_of(_i);
    enum { MOST = 5, SKIP = 3 };
    for (size_t s = 0; s < VPPS_COUNT(sizes) * MOST; s++) {
        const uint32_t n = sizes[s / MOST], count = (uint32_t)(s % MOST) + 1, each = n + SKIP + 1;
        uint32_t pairs[2 * MOST];
        float *pool = drawn((size_t)count * each, -2, 2), *to = drawn(n, -1, 1), *want = floats(n), *one = floats(n);
        for (uint32_t m = 0; m < count; m++) {
            pairs[2 * m] = (count - 1 - m) * each;
            pairs[2 * m + 1] = m * each + 1;
        }
        for (uint32_t add = 0; add < 2; add++) {
            memcpy(want, to, n * sizeof *to);
            for (uint32_t m = 0; m < count; m++) {
                const vpps_operands o = {.t = {pool + pairs[2 * m + 1] + SKIP}, .s = {pool[pairs[2 * m]]}};
                kernels->run[VPPS_I_SCALE_BY](n, add || m ? one : want, &o);
                if (add || m) kernels->add(n, want, one);
            }
            kernels->add_scaled(n, count, pool, pairs, SKIP, add, to);
            ck_assert_mem_eq(to, want, n * sizeof *to);
        }
    }
}

EACH_ISA(transpose_moves_every_element) {
    const vpps_kernels *kernels = kernels_of(_i);
    static const uint32_t lengths[] = {1, 15, 16, 33, 100};
    for (size_t s = 0; s < VPPS_COUNT(lengths) * VPPS_COUNT(lengths); s++) {
        const uint32_t rows = lengths[s % 5], cols = lengths[s / 5], lda = rows + 3, ldb = cols + 2;
        float *a = drawn(lda * (cols - 1) + rows, -1, 1), *b = drawn(ldb * (rows - 1) + cols, 5, 6);
        kernels->transpose(rows, cols, a, lda, b, ldb);
        for (uint32_t i = 0; i < rows; i++) {
            for (uint32_t j = 0; j < cols; j++) ck_assert_float_eq(b[j + i * ldb], a[i + j * lda]);
            if (i + 1 < rows) ck_assert(b[cols + i * ldb] >= 5);
        }
    }
}

EACH_ISA(sums_of_squares_and_addition) {
    const vpps_kernels *kernels = kernels_of(_i);
    for (size_t s = 0; s < VPPS_COUNT(sizes); s++) {
        const uint32_t n = sizes[s];
        float *x = drawn(n, -1e25f, 1e25f), *y = drawn(n, -1, 1), *z = floats(n);
        double want = 0;
        for (uint32_t i = 0; i < n; i++) want += (double)x[i] * (double)x[i];
        ck_assert_double_eq_tol(kernels->sum_squares(n, x) / want, 1, 1e-14);
        memcpy(z, y, n * sizeof(*z));
        kernels->add(n, z, x);
        for (uint32_t i = 0; i < n; i++) ck_assert_float_eq(z[i], y[i] + x[i]);
    }
}
