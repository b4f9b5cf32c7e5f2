/* pass_tests.c - proves that compiled cells are right: random ones, for training and for inference. */
#include "cells.h"
#include "common/random_graph.h"

TEST_GROUP("passes", .seconds = 60);

static void check_random_case(uint64_t seed) {
    rg_case drawn;
    AT_END(rg_destroy) rg_built built;
    uint64_t random = vpps_mix64(seed);
    rg_draw(&drawn, seed, 8);
    TEST_OK(rg_build(&built, &drawn, NULL));
    for (vpps_cell cell = 0; cell < built.model->n_cells; cell++) {
        vpps_cell_needs needs = cells_recurrent(built.g[0], cell, 1 + vpps_random_below(&random, 3));
        if (vpps_random_below(&random, 2)) needs.gradient_in = vpps_random(&random);
        if (vpps_random_below(&random, 2)) needs.gradient_out = vpps_random(&random);
        if (vpps_random_below(&random, 2)) needs.recurrent_in &= vpps_random(&random);
        if (vpps_random_below(&random, 4) == 0) needs.rows.split_elems = UINT32_MAX;
        needs.training = vpps_random_below(&random, 4) > 0;
        OWNED(vpps_compiled_cell) *c = cells_compile(built.g[0], cell, &needs);
        if (!needs.training) ck_assert_uint_eq(c->n_contributions + c->n_outers, 0);
        if (!needs.training) ck_assert_uint_eq(c->n_forward, c->n_values);
        cells_prove(built.g[0], cell, c);
    }
}

TEST_EACH(random_cells, 0, 10) {
    const uint32_t cases = test_scaled(30);
    for (uint32_t i = 0; i < cases; i++) check_random_case(test_seed() * 1000 + (uint32_t)_i * cases + i);
}
