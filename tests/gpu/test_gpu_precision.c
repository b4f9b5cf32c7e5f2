/* test_gpu_precision.c - products in bf16 and bf16x3 on the GPU device: within the bound of src/runtime/cpu/bf16.h, operands rounded to the CPU's
 * bits; and which GPUs have these precisions. (Training: test_gpu_agreement.c.) */
#include "common/gpu_tests.h"
#include "common/training.h"
#include "runtime/bf16_numbers.h"

#include "runtime/gpu/gpu.h"
#include "runtime/handle.h"

#include <float.h>

static const vpps_precision precisions[] = {VPPS_PRECISION_BF16X3, VPPS_PRECISION_BF16};
enum { N_PRECISIONS = sizeof precisions / sizeof *precisions };

static vpps_options options_in(vpps_precision precision, const gpu_layout *layout) {
    vpps_options o = gpu_options(layout, VPPS_SGD);
    o.precision = precision;
    return o;
}

/* ---------------------------------------------------------------- one matrix and some vectors */

typedef struct product {
    uint32_t rows, length, vectors;
    float *w, *x; /* row after row; vector after vector */
    float *y;     /* the results, vector after vector */
} product;

static product new_product(uint32_t rows, uint32_t length, uint32_t vectors) {
    return (product){rows,
                     length,
                     vectors,
                     floats((size_t)rows * length),
                     floats((size_t)vectors * length),
                     floats((size_t)vectors * rows)};
}

/* Computes the products on a device. */
static void multiply(product *p, const vpps_options *o) {
    AT_END(training_end) training t = training_of(1);
    const vpps_param W = add_matrix(t.model, "W", p->rows, p->length);
    memcpy(vpps_param_values(t.model, W), p->w, (size_t)p->rows * p->length * sizeof *p->w);
    training_start(&t, o);
    FREED vpps_node *nodes = need(calloc(p->vectors, sizeof *nodes));
    FREED float **outs = need(calloc(p->vectors, sizeof *outs));
    for (uint32_t i = 0; i < p->vectors; i++) {
        nodes[i] = vpps_matvec(t.g, W, vpps_input(t.g, p->length, 1, p->x + (size_t)i * p->length));
        outs[i] = p->y + (size_t)i * p->rows;
    }
    TEST_OK(vpps_forward(t.h, t.g, p->vectors, nodes, outs));
}

/* Returns the bound of src/runtime/cpu/bf16.h. A tensor core truncates sums where fp32 rounds, which doubles the error. */
static double bound(vpps_precision precision, uint32_t k, double terms, double operands) {
    return bf16_bound(vpps_precision_parts(precision), k, terms, operands, gpu_is_simulated() ? 0x1p-24 : 0x1p-23);
}

static double check_bound(const product *p, vpps_precision precision, const char *what) {
    double most = 0;
    for (uint32_t j = 0; j < p->vectors; j++) {
        for (uint32_t i = 0; i < p->rows; i++) {
            double want = 0, terms = 0, operands = 0;
            for (uint32_t e = 0; e < p->length; e++) {
                const double w = (double)p->w[(size_t)i * p->length + e], x = (double)p->x[(size_t)j * p->length + e];
                want += w * x;
                terms += fabs(w * x);
                operands += fabs(w) + fabs(x);
            }
            const double off = fabs((double)p->y[(size_t)j * p->rows + i] - want),
                         allowed = bound(precision, p->length, terms, operands);
            ck_assert_msg(off <= allowed, "%s: row %u of vector %u is off by %g, at most %g", what, i, j, off, allowed);
            if (terms > 0) most = fmax(most, off / terms);
        }
    }
    return most;
}

TEST_GROUP("precision", .seconds = 300);

/* All kinds of numbers in all shapes: a matrix that one virtual processor multiplies, and larger ones, whose rows are dealt; elements for some warps
 * and for all; vectors for one round of 16, and for more. */
TEST_EACH(products_are_within_their_bound, 0, 3 * N_PRECISIONS) {
    static const struct {
        uint32_t rows, length, vectors;
        gpu_layout layout;
    } shapes[] = {{40, 33, 3, {2, 128, 1, 1}}, {67, 65, 17, {4, 64, 1, 1}}, {64, 300, 37, {5, 96, 2, 1}}};
    const vpps_precision precision = precisions[_i % N_PRECISIONS];
    const uint32_t s = (uint32_t)_i / N_PRECISIONS;
    const vpps_options o = options_in(precision, &shapes[s].layout);
    double most = 0;
    state = test_seed() + (uint32_t)_i;
    for (size_t kind = 0; kind < N_KINDS; kind++) {
        product p = new_product(shapes[s].rows, shapes[s].length, shapes[s].vectors);
        char what[128];
        for (uint32_t i = 0; i < p.rows * p.length; i++) p.w[i] = kinds[kind]();
        for (uint32_t i = 0; i < p.vectors * p.length; i++) p.x[i] = kinds[kind]();
        multiply(&p, &o);
        snprintf(what, sizeof what, "%s, %u x %u times %u vectors of kind %zu", vpps_precision_names[precision], p.rows,
                 p.length, p.vectors, kind);
        const double off = check_bound(&p, precision, what);
        if (kind == 0) most = fmax(most, off);
    }
    /* nor better than claimed: it is not fp32 */
    ck_assert_msg(most > (precision == VPPS_PRECISION_BF16 ? 0x1p-12 : 0x1p-22), "off by %g of the terms at most",
                  most);
}

/* A product of one element shows how both operands are rounded. A GPU's tensor cores truncate sums where others round. */
TEST_EACH(operands_are_rounded_as_on_the_cpu, 0, test_full() ? 2 * N_PRECISIONS : N_PRECISIONS + 1) {
    static const float special[] = {0.0f, -0.0f, 1.0f, 0x1.234568p-3f, 0x1.fffffep-1f, 0x1.0101p-110f, 0x1.ff00ffp20f,
                                    /* half-way between two, and beside that */
                                    0x1.01p0f, 0x1.03p0f, 0x1.01fffep0f, -0x1.010002p0f,
                                    /* the smallest */
                                    0x1p-126f, 0x1.fffffcp-127f, 0x1p-149f, -0x1.8p-133f, 0x1.000002p-126f,
                                    /* the largest */
                                    FLT_MAX, -FLT_MAX, 0x1.fep127f, 0x1.fefffep127f, 0x1.ffp127f, INFINITY, -INFINITY,
                                    NAN};
    enum { DEALT = 4096, BY_ONE = 64, VECTORS = 64 };
    const gpu_layout layout = {16, 64, 1, 1};
    const vpps_precision precision = precisions[_i % N_PRECISIONS];
    const uint32_t rows = _i < N_PRECISIONS ? DEALT : BY_ONE;
    vpps_options o = options_in(precision, &layout);
    product gpu = new_product(rows, 1, VECTORS);
    state = test_seed() + 77;
    for (uint32_t i = 0; i < rows; i++) gpu.w[i] = i < VPPS_COUNT(special) ? special[i] : of_any_size();
    for (uint32_t i = 0; i < VECTORS; i++) gpu.x[i] = i < VPPS_COUNT(special) ? special[i] : of_any_size();
    product cpu = gpu;
    cpu.y = floats((size_t)rows * VECTORS);
    multiply(&gpu, &o);
    o.device = "cpu";
    o.groups = 0;
    o.portable = true;
    multiply(&cpu, &o);
    for (uint32_t i = 0; i < rows * VECTORS; i++) {
        const float a = gpu.y[i], b = cpu.y[i];
        const float w = gpu.w[i % rows], x = gpu.x[i / rows];
        const double size = fabs((double)w * (double)x);
        if (isfinite(size) && size > 0x1p127) continue; /* one of its parts may be too large */
        if (isfinite(w) && isfinite(x)) {
            const bool subnormal = fabsf(w) < FLT_MIN || fabsf(x) < FLT_MIN;
            if (subnormal && !isfinite(a) && !isfinite(b)) continue; /* infinite times zero, or times almost zero */
            /* for truncated sums of parts; subnormal operands may be zero, or rounded to one digit more */
            const double cut = strcmp(test_gpu_device(), "simt") ? 2 * size * FLT_EPSILON : 0;
            const double allowed = subnormal ? 2 * size + 0x1p-149 : cut + (size < 0x1p-100 ? 0x1p-146 : 0);
            ck_assert_msg((isnan(a) && isnan(b)) || a == b || fabs((double)a - (double)b) <= allowed,
                          "%s: %a times %a is %a, on the CPU %a", vpps_precision_names[precision], (double)w, (double)x,
                          (double)a, (double)b);
        } else {
            ck_assert_msg(!isfinite(a) && !isfinite(b), "%s: %a times %a is %a, on the CPU %a",
                          vpps_precision_names[precision], (double)w, (double)x, (double)a, (double)b);
        }
        if (isnan(w) || isnan(x)) ck_assert(isnan(a));
    }
}

/* ---------------------------------------------------------------- which GPUs */

TEST(gpus_before_sm_80_refuse) {
    vpps_machine old, new;
    vpps_precision p;
    const char *why;
    TEST_OK(vpps_machine_named(&old, "sm_75", 0));
    TEST_OK(vpps_machine_named(&new, "sm_80", 0));
    for (int i = 0; i < N_PRECISIONS; i++) {
        TEST_FAILS(vpps_gpu_choose_precision(precisions[i], 0, &old, &p, &why), VPPS_DEVICE, "expected sm_80 or later");
        TEST_OK(vpps_gpu_choose_precision(precisions[i], 0, &new, &p, &why));
        ck_assert_int_eq(p, precisions[i]);
    }
    TEST_OK(vpps_gpu_choose_precision(VPPS_PRECISION_FP32, 0, &old, &p, &why));
    ck_assert_int_eq(p, VPPS_PRECISION_FP32);
    TEST_OK(vpps_gpu_choose_precision(VPPS_PRECISION_AUTO, 0, &old, &p, &why));
    ck_assert_int_eq(p, VPPS_PRECISION_FP32);
    ck_assert_ptr_nonnull(strstr(why, "sm_80"));
    TEST_OK(vpps_gpu_choose_precision(VPPS_PRECISION_AUTO, 0, &new, &p, &why));
    ck_assert_int_eq(p, VPPS_PRECISION_BF16X3);
    ck_assert_ptr_nonnull(strstr(why, "more than some examples"));
    for (uint32_t batch = 1; batch < 40; batch++) { /* bf16x3 from some size on */
        const vpps_precision before = p;
        TEST_OK(vpps_gpu_choose_precision(VPPS_PRECISION_AUTO, batch, &new, &p, &why));
        if (batch == 1) ck_assert_int_eq(p, VPPS_PRECISION_FP32);
        if (batch > 1) ck_assert_int_ge(p, before);
        ck_assert_ptr_nonnull(strstr(why, p == VPPS_PRECISION_FP32 ? "so few examples" : "more than some"));
        if (batch >= 16) ck_assert_int_eq(p, VPPS_PRECISION_BF16X3);
    }
}

int main(void) { return gpu_main("precision"); }
