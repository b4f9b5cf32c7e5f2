/* pass_tests.c - proves that compiled cells are right: cells like those of networks, and random ones. */
#include "cells.h"
#include "common/random_graph.h"

/* A cell of a graph, and how a test compiles it. */
typedef struct subject {
    vpps_graph *g;
    vpps_cell cell;
    const char *name;
    vpps_cell_needs needs;
} subject;

static void check_compiled(const subject *s) {
    OWNED(vpps_compiled_cell) *c = cells_compile(s->g, s->cell, &s->needs);
    cells_prove(s->g, s->cell, c);
}

/* ---------------------------------------------------------------- cells of networks */

TEST_GROUP("passes", .seconds = 60);

TEST_EACH(networks, 0, N_CELLS) {
    AT_END(cells_close) cells x = cells_open();
    for (uint32_t group = 1; group <= 3; group++) {
        for (uint32_t recurrent = 0; recurrent < 2; recurrent++) {
            subject s = {x.g, x.cell[_i], x.model->cells[x.cell[_i]]->name, cells_needs()};
            if (recurrent) s.needs = cells_recurrent(x.g, s.cell, group);
            s.needs.group = group;
            check_compiled(&s);
            s.needs.rows.split_elems = UINT32_MAX; /* vertices are shared out */
            check_compiled(&s);
        }
    }
}

/* With frozen parameters, and inputs and outputs without gradients, the remaining values are the same. */
TEST_EACH(partly_differentiated, 0, N_CELLS) {
    AT_END(cells_close) cells x = cells_open();
    uint64_t random = vpps_mix64(test_seed() + (uint64_t)_i);
    for (uint32_t trial = 0; trial < 4; trial++) {
        for (uint32_t p = 0; p < x.model->n_params; p++)
            TEST_OK(vpps_freeze(x.model, p, vpps_random_below(&random, 2)));
        const vpps_cell cell = x.cell[_i];
        subject s = {x.g, cell, x.model->cells[cell]->name, cells_recurrent(x.g, cell, 1 + trial % 3)};
        s.needs.gradient_in = vpps_random(&random);
        s.needs.gradient_out = vpps_random(&random);
        if (trial % 2) s.needs.recurrent_in = vpps_random(&random) & s.needs.recurrent_in;
        check_compiled(&s);
    }
}

/* Inference: there is no backward; outputs are as before. */
TEST_EACH(inference, 0, N_CELLS) {
    AT_END(cells_close) cells x = cells_open();
    for (uint32_t group = 1; group <= 3; group++) {
        const vpps_cell cell = x.cell[_i];
        vpps_cell_needs needs = cells_recurrent(x.g, cell, group);
        needs.training = false;
        OWNED(vpps_compiled_cell) *c = cells_compile(x.g, cell, &needs);
        ck_assert_uint_eq(c->n_contributions + c->n_outers, 0);
        ck_assert_uint_eq(c->n_forward, c->n_values);
        cells_prove(x.g, cell, c);
    }
}

/* ---------------------------------------------------------------- random cells */

static void check_random_case(uint64_t seed) {
    rg_case drawn;
    AT_END(rg_destroy) rg_built built;
    uint64_t random = vpps_mix64(seed);
    rg_draw(&drawn, seed, 8);
    TEST_OK(rg_build(&built, &drawn, NULL));
    for (vpps_cell cell = 0; cell < built.model->n_cells; cell++) {
        char name[64];
        snprintf(name, sizeof name, "random case %llu, cell %u", (unsigned long long)seed, cell);
        subject s = {built.g[0], cell, name, cells_recurrent(built.g[0], cell, 1 + vpps_random_below(&random, 3))};
        if (vpps_random_below(&random, 2)) s.needs.gradient_in = vpps_random(&random);
        if (vpps_random_below(&random, 2)) s.needs.gradient_out = vpps_random(&random);
        if (vpps_random_below(&random, 2)) s.needs.recurrent_in &= vpps_random(&random);
        if (vpps_random_below(&random, 4) == 0) s.needs.rows.split_elems = UINT32_MAX;
        check_compiled(&s);
    }
}

TEST_EACH(random_cells, 0, 10) {
    const uint32_t cases = test_scaled(30);
    for (uint32_t i = 0; i < cases; i++) check_random_case(test_seed() * 1000 + (uint32_t)_i * cases + i);
}
