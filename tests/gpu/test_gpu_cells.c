/* test_gpu_cells.c - the kernel that is made of compiled cells, on software SIMT, against the double-precision reference: shapes of
 * matrices in several layouts with every optimiser, and random graphs of all operations. With VPPS_TEST_SCALE=full more of
 * them; test_gpu_agreement runs all of its cases on this device where VPPS_TEST_DEVICE=simt-cells says so. */
#include "common/random_graph.h"
#include "gpu_tests.h"
#include "gpu_zoo.h"

#include <stdio.h>

static const char device[] = "simt-cells";

typedef struct shapes {
    uint32_t size[ZOO_SIZES];
    vpps_optimizer_kind optimizer;
    gpu_layout layout;
    uint32_t groups;
} shapes;

/* Rows that are dealt and rows that are not, weights in registers, in shared memory and streamed, one column a thread and
 * several, one group and two. The first three are everyday's. */
static const shapes all_shapes[] = {
    {{33, 100, 40, 31}, VPPS_ADAM, {4, 1, 256, 1, VPPS_STRATEGY_AUTO}, 1},
    {{100, 290, 35, 64}, VPPS_MOMENTUM, {6, 1, 256, 2, VPPS_STRATEGY_AUTO}, 2},
    {{7, 31, 33, 5}, VPPS_SGD, {1, 1, 256, 1, VPPS_STRATEGY_AUTO}, 1},
    {{100, 257, 31, 33}, VPPS_ADAGRAD, {5, 1, 384, 3, VPPS_STRATEGY_AUTO}, 1},
    {{31, 512, 33, 1}, VPPS_ADAMW, {2, 1, 512, 4, VPPS_STRATEGY_AUTO}, 1},
    {{257, 33, 512, 100}, VPPS_MOMENTUM, {64, 1, 256, 1, VPPS_STRATEGY_AUTO}, 1},
};
enum { EVERYDAY_SHAPES = 3, ALL_SHAPES = sizeof all_shapes / sizeof *all_shapes };

START_TEST(shapes_agree)
    {
        static const uint32_t chains[] = {1, 7};
        const shapes *s = &all_shapes[_i];
        char what[192];
        gpu_zoo zoo;
        gpu_episode episode;
        gpu_expectation e;
        if (_i >= EVERYDAY_SHAPES && !test_full()) TEST_SKIP("shapes %d: VPPS_TEST_SCALE=full has them", _i);
        zoo_open(&zoo, s->size, 7);
        zoo_episode(&zoo, &episode, s->optimizer, chains, VPPS_COUNT(chains));
        gpu_expect(&e, &episode);
        ck_assert(e.usable);
        vpps_options o = gpu_options(&s->layout, s->optimizer);
        o.device = device;
        o.groups = s->groups;
        snprintf(what, sizeof what, "shapes %d, %s", _i, gpu_layout_text(&s->layout));
        vpps_handle *h;
        TEST_OK(vpps_handle_create(&h, zoo.model, &o));
        gpu_check_episode(&episode, &e, h, true, what);
        gpu_forget(&e);
        zoo_forget(&episode);
        zoo_close(&zoo);
    }
END_TEST

START_TEST(random_graphs_agree)
    {
        enum { CASES = 40, EVERYDAY = 5 };
        static const gpu_layout layouts[] = {{4, 1, 256, 1, VPPS_STRATEGY_AUTO}, {3, 1, 256, 2, VPPS_STRATEGY_AUTO}};
        uint32_t usable = 0;
        const uint32_t cases = test_full() ? CASES : EVERYDAY;
        for (uint32_t i = 0; i < cases; i++) {
            rg_case c;
            rg_built built;
            char what[192];
            const gpu_layout *layout = &layouts[i % VPPS_COUNT(layouts)];
            rg_draw(&c, test_seed() * 1000003 + i, 6 + 4 * (i % 6));
            TEST_OK(rg_build(&built, &c, NULL));
            gpu_episode episode = {.model = built.model, .optimizer = gpu_optimizer(VPPS_MOMENTUM)};
            for (uint32_t k = 0; k < 2 && built.g[k]; k++) {
                episode.g[k] = built.g[k];
                episode.loss[k] = built.loss[k];
                episode.n_batches++;
            }
            gpu_expectation e;
            gpu_expect(&e, &episode);
            if (e.usable) {
                vpps_options o = gpu_options(layout, VPPS_MOMENTUM);
                vpps_handle *h;
                o.device = device;
                TEST_OK(vpps_handle_create(&h, built.model, &o));
                snprintf(what, sizeof what, "random case %u, %s", i, gpu_layout_text(layout));
                gpu_check_episode(&episode, &e, h, false, what);
                usable++;
            }
            gpu_forget(&e);
            rg_destroy(&built);
        }
        ck_assert_msg(usable * 10 >= cases * 6, "%u of %u cases have numbers in range", usable, cases);
    }
END_TEST

static Suite *make_suite(void) {
    Suite *suite = suite_create("cells on a GPU");
    TCase *shape = tcase_create("shapes"), *random = tcase_create("random");
    tcase_set_timeout(shape, 600);
    tcase_set_timeout(random, 1200);
    tcase_add_loop_test(shape, shapes_agree, 0, ALL_SHAPES);
    tcase_add_test(random, random_graphs_agree);
    suite_add_tcase(suite, shape);
    suite_add_tcase(suite, random);
    return suite;
}

int main(void) { return gpu_main(make_suite); }
