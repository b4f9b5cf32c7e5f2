/* test_gpu_precision.c - products in bf16 and bf16x3 on the GPU device: each within the bound of src/runtime/cpu/bf16.h, operands rounded
 * to the CPU's bits, training against the double-precision reference and against the CPU device in the same precision, weights outside
 * of registers, the same bits every time, and which GPUs have it.
 */
#include "common/random_graph.h"
#include "gpu_tests.h"
#include "gpu_trees.h"
#include "gpu_zoo.h"

#include "runtime/gpu/gpu.h"
#include "runtime/handle.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

static const vpps_precision precisions[] = {VPPS_PRECISION_BF16X3, VPPS_PRECISION_BF16};
enum { N_PRECISIONS = sizeof precisions / sizeof *precisions };

static const gpu_layout layouts[] = {{4, 256, 1, 1}, {5, 384, 2, 1}, {6, 256, 4, 2}, {2, 512, 3, 1}};

static vpps_options options_in(vpps_precision precision, const gpu_layout *layout) {
    vpps_options o = gpu_options(layout, VPPS_SGD);
    o.precision = precision;
    return o;
}

/* ---------------------------------------------------------------- one matrix and some vectors */

typedef struct product {
    uint32_t rows, length, vectors;
    float *w, *x; /* row after row; vector after vector */
    float *y;     /* what came out, vector after vector */
} product;

static float *floats(size_t n) {
    float *x = calloc(n + 1, sizeof *x);
    ck_assert_ptr_nonnull(x);
    return x;
}

static product new_product(uint32_t rows, uint32_t length, uint32_t vectors) {
    return (product){rows,
                     length,
                     vectors,
                     floats((size_t)rows * length),
                     floats((size_t)vectors * length),
                     floats((size_t)vectors * rows)};
}

static void free_product(product *p) {
    free(p->w);
    free(p->x);
    free(p->y);
}

/* The products on a device. */
static void multiply(product *p, const vpps_options *o) {
    vpps_model *model;
    vpps_graph *g;
    vpps_handle *h;
    vpps_param W;
    TEST_OK(vpps_model_create(&model, 1));
    TEST_OK(vpps_add_matrix(model, &W, "W", p->rows, p->length, NULL));
    memcpy(vpps_param_values(model, W), p->w, (size_t)p->rows * p->length * sizeof *p->w);
    TEST_OK(vpps_handle_create(&h, model, o));
    TEST_OK(vpps_graph_create(&g, model));
    vpps_node *nodes = calloc(p->vectors, sizeof *nodes);
    float **outs = calloc(p->vectors, sizeof *outs);
    ck_assert(nodes && outs);
    for (uint32_t i = 0; i < p->vectors; i++) {
        nodes[i] = vpps_matvec(g, W, vpps_input(g, p->length, 1, p->x + (size_t)i * p->length));
        outs[i] = p->y + (size_t)i * p->rows;
    }
    TEST_OK(vpps_forward(h, g, p->vectors, nodes, outs));
    free(nodes);
    free(outs);
    vpps_handle_destroy(h);
    vpps_graph_destroy(g);
    vpps_model_destroy(model);
}

static uint64_t state;
static float draw(float low, float high) { return low + (high - low) * vpps_random_unit(&state); }
static float ordinary(void) { return draw(-1, 1); }
static float of_any_size(void) { return ldexpf(draw(-1, 1), (int)vpps_random_below(&state, 60) - 30); }
static float tiny(void) { return ldexpf(draw(-1, 1), -64 - (int)vpps_random_below(&state, 70)); }
static float great(void) { return ldexpf(draw(-1, 1), 60); }
static float cancelling(void) {
    static float last;
    last = last == 0 ? draw(900, 1000) : -last;
    const float x = last;
    if (last < 0) last = 0;
    return x;
}
static float (*const kinds[])(void) = {ordinary, of_any_size, cancelling, tiny, great};

/* src/runtime/cpu/bf16.h. A tensor core cuts sums off where fp32 rounds them: that is twice as far. */
static double bound(vpps_precision precision, uint32_t k, double terms, double operands) {
    const double u = gpu_is_simulated() ? 0x1p-24 : 0x1p-23;
    const bool two = precision == VPPS_PRECISION_BF16X3;
    const double relative = two ? 0x1p-15 + 0x1p-23 + 1.01 * (3 * k + 2) * u : 0x1p-7 + 0x1p-16 + 1.01 * (k + 1) * u;
    return relative * terms + 0x1p-125 * operands + 0x1p-124 * k * (two ? 3 : 1);
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

/* Every kind of number in every shape: a matrix that one VP multiplies with, and larger ones, which are dealt; elements for some
 * warps and for all; vectors for a round of 16, and for more. */
START_TEST(products_are_within_their_bound)
    {
        static const struct {
            uint32_t rows, length, vectors;
            gpu_layout layout;
        } shapes[] = {{40, 33, 3, {2, 256, 1, 1}}, {67, 65, 17, {4, 256, 1, 1}}, {64, 300, 37, {5, 384, 2, 1}}};
        const vpps_precision precision = precisions[_i % N_PRECISIONS];
        const uint32_t s = (uint32_t)_i / N_PRECISIONS;
        const vpps_options o = options_in(precision, &shapes[s].layout);
        double most = 0;
        state = test_seed() + (uint32_t)_i;
        for (size_t kind = 0; kind < VPPS_COUNT(kinds); kind++) {
            product p = new_product(shapes[s].rows, shapes[s].length, shapes[s].vectors);
            char what[128];
            for (uint32_t i = 0; i < p.rows * p.length; i++) p.w[i] = kinds[kind]();
            for (uint32_t i = 0; i < p.vectors * p.length; i++) p.x[i] = kinds[kind]();
            multiply(&p, &o);
            snprintf(what, sizeof what, "%s, %u x %u times %u vectors of kind %zu", vpps_precision_names[precision],
                     p.rows, p.length, p.vectors, kind);
            most = fmax(most, kind ? 0 : check_bound(&p, precision, what));
            check_bound(&p, precision, what);
            free_product(&p);
        }
        /* no better than it says, either: it is not fp32 */
        ck_assert_msg(most > (precision == VPPS_PRECISION_BF16 ? 0x1p-12 : 0x1p-22), "off by %g of the terms at most",
                      most);
    }
END_TEST

/* A product of one element is what rounding made of the two. */
START_TEST(operands_are_rounded_as_on_the_cpu)
    {
        static const float special[] = {0.0f,
                                        -0.0f,
                                        1.0f,
                                        0x1.01p0f,
                                        0x1.03p0f,
                                        0x1.01fffep0f,
                                        -0x1.010002p0f,
                                        0x1p-126f,
                                        0x1.fffffcp-127f,
                                        0x1p-149f,
                                        -0x1.8p-133f,
                                        0x1.000002p-126f,
                                        FLT_MAX,
                                        -FLT_MAX,
                                        0x1.fep127f,
                                        0x1.fefffep127f,
                                        0x1.ffp127f,
                                        INFINITY,
                                        -INFINITY,
                                        NAN,
                                        0x1.234568p-3f,
                                        0x1.fffffep-1f,
                                        0x1.0101p-110f,
                                        0x1.ff00ffp20f};
        enum { DEALT = 4096, BY_ONE = 64, VECTORS = 64 };
        const gpu_layout layout = {16, 256, 1, 1};
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
            if (isfinite(size) && size > 0x1p127) continue; /* one of its parts may be beyond */
            if (isfinite(w) && isfinite(x)) {
                const double allowed = size < 0x1p-100 ? 0x1p-146 : 0; /* where sums of parts are not exact */
                ck_assert_msg((isnan(a) && isnan(b)) || a == b || fabs((double)a - (double)b) <= allowed,
                              "%s: %a times %a is %a, on the CPU %a", vpps_precision_names[precision], (double)w,
                              (double)x, (double)a, (double)b);
            } else {
                ck_assert_msg(!isfinite(a) && !isfinite(b), "%s: %a times %a is %a, on the CPU %a",
                              vpps_precision_names[precision], (double)w, (double)x, (double)a, (double)b);
            }
            if (isnan(w) || isnan(x)) ck_assert(isnan(a));
        }
        free(cpu.y);
        free_product(&gpu);
    }
END_TEST

/* ---------------------------------------------------------------- training */

static void check_episode(gpu_episode *episode, const gpu_layout *layout, bool forward) {
    gpu_expectation e;
    gpu_expect(&e, episode);
    if (e.usable) {
        char what[160];
        vpps_options o = options_in(episode->precision, layout);
        o.optimizer = episode->optimizer;
        snprintf(what, sizeof what, "%s, %s", vpps_precision_names[o.precision], gpu_layout_text(layout));
        gpu_check_episode(episode, &e, gpu_open(episode->model, &o), forward, what);
    }
    gpu_forget(&e);
}

START_TEST(random_graphs_agree)
    {
        static const uint32_t sizes[][RG_SIZES] = {{33, 5, 64, 1}, {7, 31, 16, 40}, {32, 3, 65, 9}, {100, 2, 17, 33}};
        const gpu_layout *layout = &layouts[_i % (int)VPPS_COUNT(layouts)];
        rg_case c;
        rg_built built;
        rg_draw(&c, test_seed() * 1000003 + 5000 + (uint64_t)_i, 6 + (uint32_t)_i % 24);
        memcpy(c.sizes, sizes[_i % (int)VPPS_COUNT(sizes)], sizeof c.sizes);
        c.columns = 2;
        c.alike = true;
        TEST_OK(rg_build(&built, &c, NULL));
        gpu_episode episode = {
            .model = built.model, .optimizer = gpu_optimizer(VPPS_SGD), .precision = precisions[_i % N_PRECISIONS]};
        for (uint32_t k = 0; k < 2 && built.g[k]; k++) {
            episode.g[k] = built.g[k];
            episode.loss[k] = built.loss[k];
            episode.n_batches++;
        }
        check_episode(&episode, layout, _i % 2);
        rg_destroy(&built);
    }
END_TEST

/* Weights in registers; in shared memory, too; and streamed, too. */
START_TEST(levels_agree)
    {
        static const struct {
            uint32_t size[ZOO_SIZES];
            gpu_layout layout;
            vpps_resident_level farthest;
        } cases[] = {
            {{65, 100, 1024, 200}, {2, 256, 1, 1}, VPPS_RESIDENT_STREAM},
            {{31, 33, 40, 7}, {5, 256, 1, 1}, VPPS_RESIDENT_REGISTERS},
            {{33, 40, 80, 100}, {4, 384, 2, 1}, VPPS_RESIDENT_SHARED},
        };
        static const uint32_t chains[] = {1, 9};
        gpu_zoo zoo;
        gpu_episode episode;
        zoo_open(&zoo, cases[_i].size, 5);
        zoo_episode(&zoo, &episode, VPPS_SGD, chains, VPPS_COUNT(chains));
        episode.precision = precisions[_i % N_PRECISIONS];
        const vpps_options o = options_in(episode.precision, &cases[_i].layout);
        vpps_handle *h = gpu_open(zoo.model, &o);
        TEST_OK(vpps_fb(h, episode.g[0], episode.loss[0], NULL)); /* makes the kernel */
        const vpps_residents *r = &((const vpps_gpu *)h->device)->kernel->plan.residents;
        uint32_t levels[VPPS_RESIDENT_STREAM + 1] = {0};
        for (uint32_t i = 0; i < r->n_fragments; i++) levels[r->fragments[i].level]++;
        vpps_handle_destroy(h);
        zoo.model->batches = 0;
        if (gpu_is_simulated()) {
            for (uint32_t level = 0; level <= VPPS_RESIDENT_STREAM; level++)
                ck_assert_msg((levels[level] > 0) == (level <= cases[_i].farthest), "%u fragments at level %u",
                              levels[level], level);
        }
        check_episode(&episode, &cases[_i].layout, true);
        zoo_forget(&episode);
        zoo_close(&zoo);
    }
END_TEST

/* Sums are made in another order, which now and then rounds a later operand another way. Gradients of matrices by one team of VPs,
 * with more of them than a warp takes at a time; and by several: of columns that they share out evenly, and of others, whose
 * parts end within a block, and within four. */
START_TEST(tree_lstms_agree)
    {
        enum { BATCHES = 8 };
        static const struct {
            uint32_t hidden, embed;
            gpu_layout layout;
            uint32_t teams;
        } cases[] = {
            {40, 24, {4, 256, 1, 1}, 1},   {32, 128, {16, 256, 1, 1}, 4}, {72, 24, {2, 256, 1, 1}, 1},
            {30, 150, {16, 128, 1, 2}, 4}, {14, 70, {4, 256, 2, 1}, 2},
        };
        const vpps_precision precision = precisions[_i % N_PRECISIONS];
        const double tolerance = precision == VPPS_PRECISION_BF16 ? 2e-3 : 1e-4;
        const size_t at = (size_t)(_i / N_PRECISIONS);
        double losses[3][BATCHES], most = 0;
        for (int k = 0; k < 3; k++) { /* here, on the CPU, on the CPU in fp32 */
            gpu_trees t;
            vpps_options o = options_in(k < 2 ? precision : VPPS_PRECISION_FP32, &cases[at].layout);
            o.optimizer.lr = 2; /* of a gradient that is cut to 0.2, so that the norm counts */
            o.optimizer.clip = 0.2f;
            o.verify = false;
            if (k) o.device = "cpu", o.groups = 0;
            trees_open(&t, cases[at].hidden, cases[at].embed);
            vpps_handle *h = gpu_open(t.model, &o);
            vpps_stats stats = {.size = sizeof stats};
            TEST_OK(vpps_handle_stats(h, &stats));
            ck_assert_str_eq(stats.precision, vpps_precision_names[o.precision]);
            if (!k) ck_assert_str_eq(stats.precision_unit, "mma");
            for (uint32_t batch = 0; batch < BATCHES; batch++) {
                float loss;
                TEST_OK(vpps_fb(h, t.g, trees_build(&t, batch), NULL));
                TEST_OK(vpps_sync_latest_loss(h, &loss));
                losses[k][batch] = (double)loss;
            }
            if (!k && gpu_is_simulated())
                ck_assert_uint_eq(((const vpps_gpu *)h->device)->kernel->plan.teams, cases[at].teams);
            vpps_handle_destroy(h);
            trees_close(&t);
        }
        for (uint32_t batch = 0; batch < BATCHES; batch++) {
            ck_assert_msg(fabs(losses[0][batch] - losses[1][batch]) <= tolerance, "%s, batch %u: %.9g, on the CPU %.9g",
                          vpps_precision_names[precision], batch, losses[0][batch], losses[1][batch]);
            most = fmax(most, fabs(losses[0][batch] - losses[2][batch]));
        }
        if (precision == VPPS_PRECISION_BF16) ck_assert_double_gt(most, 0); /* it is not fp32 */
    }
END_TEST

/* Turns of CTAs and warps in another order, as software SIMT takes them by a seed. */
START_TEST(the_order_of_turns_does_not_matter)
    {
        static const char *const seeds[] = {"0", "3"};
        static const uint32_t size[] = {31, 33, 40, 7};
        float *values[2];
        size_t n = 0;
        for (size_t i = 0; i < VPPS_COUNT(seeds); i++) {
            gpu_zoo zoo;
            vpps_graph *g;
            setenv("VPPS_SIMT_SEED", seeds[i], 1);
            const vpps_options o = options_in(precisions[_i], &layouts[1]);
            zoo_open(&zoo, size, 9);
            TEST_OK(vpps_graph_create(&g, zoo.model));
            vpps_handle *h = gpu_open(zoo.model, &o);
            for (uint32_t k = 0; k < 2; k++) TEST_OK(vpps_fb(h, g, zoo_build(&zoo, g, 1 + 8 * k, k, 0.1f), NULL));
            TEST_OK(vpps_read_parameters(h));
            values[i] = gpu_values(zoo.model, &n);
            vpps_handle_destroy(h);
            vpps_graph_destroy(g);
            zoo_close(&zoo);
        }
        unsetenv("VPPS_SIMT_SEED");
        ck_assert_msg(!memcmp(values[0], values[1], n * sizeof **values), "parameters differ");
        free(values[0]);
        free(values[1]);
    }
END_TEST

/* ---------------------------------------------------------------- which GPUs */

START_TEST(gpus_before_sm_80_refuse)
    {
        vpps_machine old, new;
        vpps_precision p;
        const char *why;
        TEST_OK(vpps_machine_named(&old, "sm_75", 0));
        TEST_OK(vpps_machine_named(&new, "sm_80", 0));
        for (int i = 0; i < N_PRECISIONS; i++) {
            TEST_FAILS(vpps_gpu_choose_precision(precisions[i], &old, &p, &why), VPPS_DEVICE,
                       "expected sm_80 or later");
            TEST_OK(vpps_gpu_choose_precision(precisions[i], &new, &p, &why));
            ck_assert_int_eq(p, precisions[i]);
        }
        TEST_OK(vpps_gpu_choose_precision(VPPS_PRECISION_FP32, &old, &p, &why));
        ck_assert_int_eq(p, VPPS_PRECISION_FP32);
        TEST_OK(vpps_gpu_choose_precision(VPPS_PRECISION_AUTO, &old, &p, &why));
        ck_assert_int_eq(p, VPPS_PRECISION_FP32);
        ck_assert_ptr_nonnull(strstr(why, "sm_80"));
        TEST_OK(vpps_gpu_choose_precision(VPPS_PRECISION_AUTO, &new, &p, &why));
        ck_assert_int_eq(p, VPPS_PRECISION_BF16X3);
        ck_assert_ptr_nonnull(strstr(why, "predicts"));
    }
END_TEST

static Suite *suite(void) {
    enum { CASES = 40, EVERYDAY_CASES = 2 };
    const bool full = test_full();
    Suite *s = suite_create("precision");
    TCase *t = tcase_create("precision");
    tcase_set_timeout(t, 300);
    tcase_add_loop_test(t, products_are_within_their_bound, 0, 3 * N_PRECISIONS);
    tcase_add_loop_test(t, operands_are_rounded_as_on_the_cpu, 0, full ? 2 * N_PRECISIONS : N_PRECISIONS + 1);
    tcase_add_loop_test(t, random_graphs_agree, 0, full ? CASES : EVERYDAY_CASES);
    tcase_add_loop_test(t, levels_agree, 0, full ? 3 : 1);
    tcase_add_loop_test(t, tree_lstms_agree, 0, (full ? 5 : 3) * N_PRECISIONS);
    if (gpu_is_simulated()) tcase_add_loop_test(t, the_order_of_turns_does_not_matter, 0, full ? N_PRECISIONS : 1);
    if (!full) TEST_LEFT_OUT("%d of %d random graphs: VPPS_TEST_SCALE=full has them", CASES - EVERYDAY_CASES, CASES);
    tcase_add_test(t, gpus_before_sm_80_refuse);
    suite_add_tcase(s, t);
    return s;
}

int main(void) { return gpu_main(suite); }
