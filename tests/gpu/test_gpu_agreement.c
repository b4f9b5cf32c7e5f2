/* test_gpu_agreement.c - the GPU device against the double-precision reference and against the CPU device: all operations
 * and random graphs, shapes of matrices in every layout, weights outside of registers, long scripts, optimisers,
 * dropout, Tree-LSTMs; and the same bits every time.
 */
#include "common/random_graph.h"
#include "gpu_tests.h"
#include "gpu_trees.h"
#include "gpu_zoo.h"

#include "runtime/gpu/gpu.h"
#include "runtime/handle.h"

#include <math.h>
#include <stdio.h>

/* Few VPs and more, one row at a time and several, one group and two. */
static const gpu_layout layouts[] = {{4, 256, 1, 1}, {5, 384, 2, 1}, {6, 256, 4, 2}, {2, 512, 3, 1}};
enum { N_LAYOUTS = sizeof layouts / sizeof *layouts };

/* ---------------------------------------------------------------- random graphs over all operations */

enum { RANDOM_CASES = 40, EVERYDAY_CASES = 5 };

static rg_case draw_case(uint32_t layout, uint32_t number, uint64_t *seen) {
    static const uint32_t sizes[N_LAYOUTS][RG_SIZES] = {
        {33, 5, 64, 1}, {7, 31, 16, 40}, {32, 3, 65, 9}, {100, 2, 17, 33}};
    rg_case c;
    rg_draw(&c, test_seed() * 1000003 + layout * 1000 + number, 6 + number % 24);
    memcpy(c.sizes, sizes[layout], sizeof c.sizes);
    c.columns = 2 + layout % 3;
    c.alike = true;
    for (uint32_t i = 0; i < c.n_steps; i++) *seen |= 1ull << c.steps[i].what;
    return c;
}

static void check_case(const rg_case *c, const gpu_layout *layout, uint32_t number, uint32_t *usable) {
    rg_built built;
    char what[192];
    TEST_OK(rg_build(&built, c, NULL));
    gpu_episode episode = {.model = built.model, .optimizer = gpu_optimizer(VPPS_MOMENTUM)};
    for (uint32_t k = 0; k < 2 && built.g[k]; k++) {
        episode.g[k] = built.g[k];
        episode.loss[k] = built.loss[k];
        episode.n_batches++;
    }
    gpu_expectation e;
    gpu_expect(&e, &episode);
    if (e.usable) {
        vpps_options options = gpu_options(layout, VPPS_MOMENTUM);
        options.slices = 1 + number % 3;
        vpps_handle *h = gpu_open(episode.model, &options);
        snprintf(what, sizeof what, "random case %u, %u slices, %s", number, options.slices, gpu_layout_text(layout));
        gpu_check_episode(&episode, &e, h, number % 2, what);
        (*usable)++;
    }
    gpu_forget(&e);
    rg_destroy(&built);
}

START_TEST(random_graphs_agree)
    {
        const uint32_t cases = test_full() ? RANDOM_CASES : test_scaled(EVERYDAY_CASES);
        uint32_t usable = 0;
        uint64_t seen = 0;
        for (uint32_t i = 0; i < cases; i++) {
            const rg_case c = draw_case((uint32_t)_i, i, &seen);
            check_case(&c, &layouts[_i], i, &usable);
        }
        ck_assert_msg(usable * 10 >= cases * 9, "%u of %u cases have numbers in range", usable, cases);
        if (cases < RANDOM_CASES) return;
        for (uint32_t op = 0; op < VPPS_OP_COUNT; op++) {
            ck_assert_msg(seen >> op & 1, "no case has a step %s", vpps_ops[op].name);
        }
    }
END_TEST

/* ---------------------------------------------------------------- shapes of matrices and layouts */

typedef struct shapes {
    uint32_t size[ZOO_SIZES];
    vpps_optimizer_kind optimizer;
    gpu_layout layouts[3];
} shapes;

/* Sizes, VPs, rows and threads, each with most of the others. The first layouts are everyday's. */
static const shapes all_shapes[] = {
    {{31, 512, 33, 1}, VPPS_SGD, {{1, 256, 1, 1}, {16, 256, 8, 1}, {64, 256, 1, 4}}},
    {{33, 100, 1, 31}, VPPS_MOMENTUM, {{2, 512, 5, 1}, {5, 384, 1, 1}}},
    {{100, 257, 31, 33}, VPPS_SGD, {{5, 256, 4, 1}, {16, 512, 1, 2}, {64, 384, 2, 1}}},
    {{257, 33, 512, 100}, VPPS_MOMENTUM, {{16, 256, 6, 1}, {64, 256, 1, 1}, {64, 384, 8, 2}}},
};

START_TEST(shapes_agree)
    {
        static const uint32_t chains[] = {1, 3};
        const shapes *s = &all_shapes[_i];
        gpu_zoo zoo;
        gpu_episode episode;
        gpu_expectation e;
        zoo_open(&zoo, s->size, 5);
        zoo_episode(&zoo, &episode, s->optimizer, chains, VPPS_COUNT(chains));
        gpu_expect(&e, &episode);
        ck_assert(e.usable);
        const uint32_t n = test_full() ? VPPS_COUNT(s->layouts) : 1;
        for (uint32_t i = 0; i < n && s->layouts[i].sms; i++) {
            const vpps_options options = gpu_options(&s->layouts[i], s->optimizer);
            vpps_handle *h = gpu_open(zoo.model, &options);
            vpps_stats stats = {.size = sizeof stats};
            char what[192];
            TEST_OK(vpps_handle_stats(h, &stats));
            if (gpu_is_simulated()) ck_assert_uint_eq(stats.vps, s->layouts[i].sms);
            snprintf(what, sizeof what, "sizes %u %u %u %u, %s", s->size[0], s->size[1], s->size[2], s->size[3],
                     gpu_layout_text(&s->layouts[i]));
            gpu_check_episode(&episode, &e, h, true, what);
        }
        gpu_forget(&e);
        zoo_forget(&episode);
        zoo_close(&zoo);
    }
END_TEST

/* ---------------------------------------------------------------- weights outside of registers */

/* How many matrices of the kernel in use lie where. */
static void count_levels(const vpps_handle *h, uint32_t *levels) {
    const vpps_residents *r = &((const vpps_gpu *)h->device)->kernel->plan.residents;
    for (uint32_t i = 0; i < r->n; i++) levels[r->list[i].level]++;
}

START_TEST(weights_in_shared_memory_and_streamed_agree)
    {
        static const struct {
            uint32_t size[ZOO_SIZES];
            gpu_layout layout;
        } cases[] = {
            {{65, 100, 1024, 200}, {2, 256, 1, 1}},
            {{33, 40, 90, 2048}, {4, 384, 2, 1}},
        };
        static const uint32_t chains[] = {1, 2};
        gpu_zoo zoo;
        gpu_episode episode;
        gpu_expectation e;
        zoo_open(&zoo, cases[_i].size, 5);
        zoo_episode(&zoo, &episode, VPPS_SGD, chains, 2);
        gpu_expect(&e, &episode);
        ck_assert(e.usable);
        const vpps_options options = gpu_options(&cases[_i].layout, VPPS_SGD);
        vpps_handle *h = gpu_open(zoo.model, &options);
        uint32_t levels[VPPS_RESIDENT_STREAM + 1] = {0};
        TEST_OK(vpps_fb(h, episode.g[0], episode.loss[0], NULL)); /* makes the kernel */
        count_levels(h, levels);
        vpps_handle_destroy(h);
        zoo.model->batches = 0;
        if (gpu_is_simulated()) {
            ck_assert_msg(levels[VPPS_RESIDENT_REGISTERS] && levels[VPPS_RESIDENT_SHARED] &&
                              levels[VPPS_RESIDENT_STREAM],
                          "matrices in registers: %u, in shared memory: %u, streamed: %u",
                          levels[VPPS_RESIDENT_REGISTERS], levels[VPPS_RESIDENT_SHARED], levels[VPPS_RESIDENT_STREAM]);
        }
        gpu_check_episode(&episode, &e, gpu_open(zoo.model, &options), true, gpu_layout_text(&cases[_i].layout));
        gpu_forget(&e);
        zoo_forget(&episode);
        zoo_close(&zoo);
    }
END_TEST

/* ---------------------------------------------------------------- long scripts */

/* The kernel's window has 512 words, and the first 64 blocks are kept near: sums of many arguments, many kinds of vertices, and a
 * long chain of levels. */
static vpps_node build_long(const gpu_zoo *zoo, vpps_graph *g) {
    enum { TERMS = 660, FACTORS = 200, STEPS = 150, MIXED = 33 };
    static vpps_node terms[TERMS], weights[TERMS];
    vpps_node x = vpps_lookup(g, zoo->E, 1), y = vpps_lookup(g, zoo->E, 2);
    for (uint32_t i = 0; i < TERMS; i++) terms[i] = i % 2 ? x : vpps_scale(g, y, 0.001f * (float)i);
    const vpps_node sum = vpps_average(g, TERMS, terms);
    for (uint32_t i = 0; i < FACTORS; i++) terms[i] = vpps_tanh(g, vpps_scale(g, x, 0.01f * (float)i - 1));
    const vpps_node products = vpps_average(g, FACTORS, terms);
    for (uint32_t i = 0; i < TERMS; i++) weights[i] = i % 3 ? x : y;
    const vpps_node w = vpps_softmax(g, x); /* of 33 elements */
    const vpps_node mixed = vpps_weighted_sum(g, w, MIXED, weights);
    vpps_node chain = x;
    for (uint32_t i = 0; i < STEPS; i++)
        chain = vpps_tanh(g, vpps_affine2(g, zoo->b[1], zoo->A[i % 3], chain, zoo->B[0], chain));
    const vpps_node all[] = {sum, products, mixed, chain};
    return vpps_sum_elements(g, vpps_tanh(g, vpps_sum(g, 4, all)));
}

START_TEST(long_scripts_agree)
    {
        static const uint32_t size[] = {33, 33, 33, 33};
        gpu_zoo zoo;
        gpu_expectation e;
        zoo_open(&zoo, size, 5);
        gpu_episode episode = {.model = zoo.model, .n_batches = 1, .optimizer = gpu_optimizer(VPPS_SGD)};
        TEST_OK(vpps_graph_create(&episode.g[0], zoo.model));
        episode.loss[0] = build_long(&zoo, episode.g[0]);
        TEST_OK(vpps_graph_status(episode.g[0]));
        gpu_expect(&e, &episode);
        ck_assert(e.usable);
        const vpps_options options = gpu_options(&layouts[_i], VPPS_SGD);
        gpu_check_episode(&episode, &e, gpu_open(zoo.model, &options), false, "a long script");
        gpu_forget(&e);
        zoo_forget(&episode);
        zoo_close(&zoo);
    }
END_TEST

/* ---------------------------------------------------------------- optimisers, frozen parameters */

START_TEST(optimizers_agree)
    {
        static const uint32_t size[] = {31, 33, 40, 7}, chains[] = {3, 1, 5};
        const vpps_optimizer_kind kind = (vpps_optimizer_kind)_i;
        const gpu_layout *layout = &layouts[_i % N_LAYOUTS];
        gpu_zoo zoo;
        gpu_episode episode;
        gpu_expectation e;
        zoo_open(&zoo, size, 9);
        zoo_episode(&zoo, &episode, kind, chains, 3);
        if (_i % 2) {
            const vpps_param frozen[] = {zoo.A[1], zoo.C[2], zoo.b[3], zoo.first_bias + 4, zoo.E};
            for (size_t i = 0; i < VPPS_COUNT(frozen); i++) TEST_OK(vpps_freeze(zoo.model, frozen[i], true));
        }
        for (int clipping = 0; clipping < 2; clipping++) { /* without, gradients leave the registers elsewhere */
            episode.optimizer.clip = clipping ? 0.5f : 0;
            gpu_expect(&e, &episode);
            ck_assert(e.usable);
            vpps_options options = gpu_options(layout, kind);
            options.optimizer = episode.optimizer;
            char what[64];
            snprintf(what, sizeof what, "optimiser %d, clip %g", _i, (double)episode.optimizer.clip);
            gpu_check_episode(&episode, &e, gpu_open(zoo.model, &options), false, what);
            gpu_forget(&e);
        }
        zoo_forget(&episode);
        zoo_close(&zoo);
    }
END_TEST

/* ---------------------------------------------------------------- dropout */

/* The gradient of a vector that dropout lies on is the mask: the step of the optimiser shows it. */
static void train_masks(const char *device, float *values, uint32_t n) {
    const gpu_layout layout = layouts[1];
    const vpps_init init = {.kind = VPPS_INIT_CONSTANT, .a = 1};
    vpps_model *model;
    vpps_graph *g;
    vpps_handle *h;
    vpps_param v, W;
    vpps_options o = gpu_options(&layout, VPPS_SGD);
    o.optimizer = (vpps_optimizer){.kind = VPPS_SGD, .lr = 1};
    o.device = device;
    TEST_OK(vpps_model_create(&model, 1));
    TEST_OK(vpps_add_vector(model, &v, "v", n, &init));
    TEST_OK(vpps_add_matrix(model, &W, "W", 40, 3, NULL));
    TEST_OK(vpps_handle_create(&h, model, &o));
    TEST_OK(vpps_graph_create(&g, model));
    for (uint32_t batch = 0; batch < 3; batch++) {
        vpps_graph_clear(g);
        const vpps_node x = vpps_dropout(g, vpps_parameter(g, v), 0.25f),
                        y = vpps_dropout(g, vpps_parameter(g, v), 0.5f);
        TEST_OK(vpps_fb(h, g, vpps_sum_elements(g, vpps_add(g, x, y)), NULL));
    }
    TEST_OK(vpps_read_parameters(h));
    memcpy(values, vpps_param_values(model, v), n * sizeof *values);
    vpps_handle_destroy(h);
    vpps_graph_destroy(g);
    vpps_model_destroy(model);
}

START_TEST(dropout_masks_are_the_same_bits)
    {
        enum { N = 1000 };
        static float gpu[N], cpu[N];
        train_masks(test_gpu_device(), gpu, N);
        train_masks("cpu", cpu, N);
        uint32_t different = 0;
        for (uint32_t i = 0; i < N; i++) {
            ck_assert_msg(!memcmp(&gpu[i], &cpu[i], sizeof *gpu), "element %u: %.9g, on the CPU %.9g", i,
                          (double)gpu[i], (double)cpu[i]);
            different += gpu[i] != gpu[0];
        }
        ck_assert_uint_gt(different, N / 2); /* masks there are */
    }
END_TEST

/* ---------------------------------------------------------------- what is multiplied with no member */

/* U is multiplied with children only; a batch with some, then one without. What U was after each. */
static void train_children(const char *device, float *after[2], uint32_t n) {
    const gpu_layout layout = layouts[1];
    const vpps_init init = {.kind = VPPS_INIT_CONSTANT, .a = 0.5f};
    vpps_model *model;
    vpps_graph *g;
    vpps_handle *h;
    vpps_param v, U;
    vpps_cell cell;
    vpps_options o = gpu_options(&layout, VPPS_MOMENTUM);
    o.optimizer = (vpps_optimizer){.kind = VPPS_MOMENTUM, .lr = 0.5f, .momentum = 0.5f};
    o.device = device;
    TEST_OK(vpps_model_create(&model, 1));
    TEST_OK(vpps_add_vector(model, &v, "v", n, &init));
    TEST_OK(vpps_add_matrix(model, &U, "U", n, n, NULL));
    TEST_OK(vpps_cell_begin(model, "node", &g));
    const vpps_node members = vpps_matvec(g, U, vpps_gather_list(g, 0, n, 1));
    vpps_scatter(g, vpps_tanh(g, vpps_add(g, vpps_parameter(g, v), vpps_sum(g, 1, &members))));
    TEST_OK(vpps_cell_end(g, &cell));
    TEST_OK(vpps_handle_create(&h, model, &o));
    TEST_OK(vpps_graph_create(&g, model));
    for (uint32_t batch = 0; batch < 2; batch++) {
        vpps_graph_clear(g);
        vpps_vertex x = vpps_apply(g, VPPS_APPLICATION(.cell = cell));
        if (!batch) x = vpps_apply(g, VPPS_APPLICATION(.cell = cell, .n_children = 1, .children = &x));
        TEST_OK(vpps_fb(h, g, vpps_sum_elements(g, vpps_scattered(g, x, 0)), NULL));
        TEST_OK(vpps_read_parameters(h));
        memcpy(after[batch], vpps_param_values(model, U), n * n * sizeof(float));
    }
    vpps_handle_destroy(h);
    vpps_graph_destroy(g);
    vpps_model_destroy(model);
}

/* It is used all the same: its momentum carries it on. */
START_TEST(what_is_multiplied_with_no_member_is_used)
    {
        enum { N = 12 };
        static float values[2][2][N * N];
        for (uint32_t d = 0; d < 2; d++)
            train_children(d ? "cpu" : test_gpu_device(), (float *[]){values[d][0], values[d][1]}, N);
        for (uint32_t i = 0; i < N * N; i++) {
            for (uint32_t d = 0; d < 2; d++)
                ck_assert_msg(values[d][1][i] != values[d][0][i], "element %u rests on device %u", i, d);
            for (uint32_t batch = 0; batch < 2; batch++)
                ck_assert_float_eq_tol(values[0][batch][i], values[1][batch][i], 1e-5f);
        }
    }
END_TEST

/* ---------------------------------------------------------------- losses and gradients that are not finite */

/* A batch of which something is not finite: the loss, or only its gradient, since the root has none at 0. */
static vpps_node build_bad(const gpu_zoo *zoo, vpps_graph *g, float bad, bool gradient) {
    const vpps_node loss = zoo_build(zoo, g, 2, 2, gradient ? 0.1f : bad);
    const vpps_node x = vpps_matvec(g, zoo->A[0], vpps_lookup(g, zoo->E, 0));
    return gradient ? vpps_add(g, loss, vpps_sum_elements(g, vpps_sqrt(g, vpps_scale(g, x, 0)))) : loss;
}

START_TEST(what_is_not_finite_changes_nothing)
    {
        static const uint32_t size[] = {31, 33, 40, 7};
        const gpu_layout *layout = &layouts[_i];
        const float bad[] = {NAN, INFINITY};
        for (int way = 0; way < 4; way++) {
            const bool skip = way % 2, gradient = way / 2;
            gpu_zoo zoo;
            vpps_graph *g;
            vpps_options o = gpu_options(layout, VPPS_SGD);
            o.nonfinite = skip ? VPPS_NONFINITE_SKIP : VPPS_NONFINITE_STOP;
            o.optimizer.clip = skip ? 0.5f : 0;
            zoo_open(&zoo, size, 9);
            TEST_OK(vpps_graph_create(&g, zoo.model));
            vpps_handle *h = gpu_open(zoo.model, &o);
            size_t n;
            float loss, *before, *after;
            TEST_OK(vpps_fb(h, g, zoo_build(&zoo, g, 2, 1, 0.1f), NULL));
            TEST_OK(vpps_read_parameters(h));
            before = gpu_values(zoo.model, &n);
            TEST_OK(vpps_fb(h, g, build_bad(&zoo, g, bad[skip], gradient), NULL));
            const vpps_node next = zoo_build(&zoo, g, 2, 3, 0.1f);
            if (skip) {
                vpps_stats stats = {.size = sizeof stats};
                TEST_OK(vpps_sync_latest_loss(h, &loss));
                ck_assert(!isfinite(loss) == !gradient);
                TEST_OK(vpps_handle_stats(h, &stats));
                ck_assert_uint_eq(stats.skipped, 1);
            } else {
                TEST_FAILS(vpps_fb(h, g, next, NULL), VPPS_NONFINITE,
                           gradient ? "batch 2: the gradient" : "batch 2: the loss");
            }
            TEST_OK(vpps_read_parameters(h));
            after = gpu_values(zoo.model, &n);
            ck_assert_msg(!memcmp(before, after, n * sizeof *before), "parameters have changed");
            TEST_OK(vpps_fb(h, g, next, NULL)); /* training goes on */
            TEST_OK(vpps_sync_latest_loss(h, &loss));
            ck_assert(isfinite(loss));
            TEST_OK(vpps_read_parameters(h));
            free(after);
            after = gpu_values(zoo.model, &n);
            ck_assert(memcmp(before, after, n * sizeof *before) != 0);
            free(before);
            free(after);
            vpps_handle_destroy(h);
            vpps_graph_destroy(g);
            zoo_close(&zoo);
        }
    }
END_TEST

/* ---------------------------------------------------------------- Tree-LSTMs */

START_TEST(tree_lstms_agree)
    {
        enum { MOST = 50, SIMULATED = 20 };
        const uint32_t on_cpu = gpu_is_simulated() ? SIMULATED : MOST;
        const uint32_t on_gpu = gpu_is_simulated() ? 2 * test_scaled(SIMULATED / 2) : MOST;
        const gpu_layout *layout = &layouts[_i];
        double losses[2][MOST];
        for (int k = 0; k < 2; k++) {
            gpu_trees t;
            vpps_options o = gpu_options(layout, VPPS_SGD);
            o.optimizer.lr = 0.5f;
            o.optimizer.clip = 0;
            o.verify = false;
            if (k) o.device = "cpu";
            trees_open(&t, 40 + 8 * (uint32_t)_i, 24);
            vpps_handle *h = gpu_open(t.model, &o);
            for (uint32_t batch = 0; batch < (k ? on_cpu : on_gpu); batch++) {
                float loss;
                TEST_OK(vpps_fb(h, t.g, trees_build(&t, batch), NULL));
                TEST_OK(vpps_sync_latest_loss(h, &loss));
                losses[k][batch] = (double)loss;
            }
            vpps_handle_destroy(h);
            trees_close(&t);
        }
        for (uint32_t batch = 0; batch < on_gpu; batch++) {
            ck_assert_msg(fabs(losses[0][batch] - losses[1][batch]) <= 1e-4, "%s, batch %u: %.9g, on the CPU %.9g",
                          gpu_layout_text(layout), batch, losses[0][batch], losses[1][batch]);
        }
        /* every third batch has the same trees */
        ck_assert_msg(losses[1][18] < 0.97 * losses[1][0], "nothing was learnt: %g to %g", losses[1][0], losses[1][18]);
    }
END_TEST

/* ---------------------------------------------------------------- the same bits every time */

static float *train_with_seed(const gpu_layout *layout, const char *seed, size_t *n) {
    static const uint32_t size[] = {31, 33, 40, 7};
    gpu_zoo zoo;
    vpps_graph *g;
    setenv("VPPS_SIMT_SEED", seed, 1);
    const vpps_options o = gpu_options(layout, VPPS_SGD);
    zoo_open(&zoo, size, 9);
    TEST_OK(vpps_graph_create(&g, zoo.model));
    vpps_handle *h = gpu_open(zoo.model, &o);
    for (uint32_t k = 0; k < 3; k++) TEST_OK(vpps_fb(h, g, zoo_build(&zoo, g, 1 + 3 * k, k, 0.1f), NULL));
    TEST_OK(vpps_read_parameters(h));
    float *values = gpu_values(zoo.model, n);
    vpps_handle_destroy(h);
    vpps_graph_destroy(g);
    zoo_close(&zoo);
    return values;
}

START_TEST(the_order_of_turns_does_not_matter)
    {
        static const char *const seeds[] = {"1", "7"};
        size_t n;
        float *first = train_with_seed(&layouts[_i], "0", &n);
        for (size_t i = 0; i < VPPS_COUNT(seeds); i++) {
            float *other = train_with_seed(&layouts[_i], seeds[i], &n);
            ck_assert_msg(!memcmp(first, other, n * sizeof *first), "%s: parameters differ with seed %s",
                          gpu_layout_text(&layouts[_i]), seeds[i]);
            free(other);
        }
        free(first);
    }
END_TEST

/* n: how often with another argument; everyday: of these. */
typedef struct group {
    const char *name;
    const TTest *test;
    int n, everyday;
} group;

static Suite *suite(void) {
    const group groups[] = {{"random", random_graphs_agree, N_LAYOUTS, N_LAYOUTS},
                            {"shapes", shapes_agree, VPPS_COUNT(all_shapes), VPPS_COUNT(all_shapes)},
                            {"levels", weights_in_shared_memory_and_streamed_agree, 2, 1},
                            {"long", long_scripts_agree, N_LAYOUTS, 1},
                            {"optimizers", optimizers_agree, VPPS_ADAMW + 1, VPPS_ADAMW + 1},
                            {"dropout", dropout_masks_are_the_same_bits, 1, 1},
                            {"lists", what_is_multiplied_with_no_member_is_used, 1, 1},
                            {"nonfinite", what_is_not_finite_changes_nothing, N_LAYOUTS, 1},
                            {"trees", tree_lstms_agree, N_LAYOUTS, 1},
                            {"same bits", the_order_of_turns_does_not_matter, N_LAYOUTS, 2}};
    Suite *s = suite_create("agreement");
    for (size_t i = 0; i < VPPS_COUNT(groups); i++) {
        TCase *t = tcase_create(groups[i].name);
        tcase_set_timeout(t, 300);
        tcase_add_loop_test(t, groups[i].test, 0, test_full() ? groups[i].n : groups[i].everyday);
        if (!test_full() && groups[i].everyday < groups[i].n)
            TEST_LEFT_OUT("%d of %d %s: VPPS_TEST_SCALE=full has them", groups[i].n - groups[i].everyday, groups[i].n,
                          groups[i].name);
        suite_add_tcase(s, t);
    }
    return s;
}

int main(void) { return gpu_main(suite); }
