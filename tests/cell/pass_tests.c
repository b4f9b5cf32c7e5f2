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

static void expect(bool holds, const subject *s, const char *what, uint32_t number) {
    if (!holds) ck_abort_msg("%s: %s %u", s->name, what, number); /* an assertion costs a system call */
}

/* Marks the values that depend on a child of the recurrence or, in backward, on a gradient that comes through it. */
static uint8_t *mark_recurrent(const vpps_compiled_cell *c) {
    uint8_t *recurrent = calloc(c->n_values + 1u, 1);
    if (!recurrent) abort();
    for (uint32_t v = 0; v < c->n_values; v++) {
        const vpps_cell_value *x = &c->values[v];
        recurrent[v] = (x->kind == VPPS_VALUE_INPUT && (c->needs.recurrent_in >> x->input & 1)) ||
                       (x->kind == VPPS_VALUE_GRADIENT && (c->needs.recurrent_out >> x->output & 1));
        for (uint32_t k = 0; k < x->n_args; k++) {
            const uint32_t a = c->args[x->first_arg + k].value;
            if ((a < c->n_forward) == (v < c->n_forward)) recurrent[v] |= recurrent[a];
        }
    }
    return recurrent;
}

/* Checks that no stage reads a later one, no eager stage waits for the recurrence, and the recurrence waits for no lazy one. */
static void check_parts(const subject *s, const vpps_compiled_cell *c) {
    uint8_t *recurrent = mark_recurrent(c);
    for (uint32_t i = 0; i < c->n_stages; i++) {
        const vpps_cell_stage *stage = &c->stages[i];
        for (uint32_t j = 0; j < stage->n; j++) {
            const uint32_t v = c->order[stage->first + j];
            const vpps_cell_value *x = &c->values[v];
            const bool eager = stage->pass == VPPS_PASS_EAGER || stage->pass == VPPS_PASS_BACK_EAGER;
            expect(x->pass == stage->pass, s, "in a stage of another part: value", v);
            expect(!eager || !recurrent[v], s, "eager, though it waits for the recurrence: value", v);
            for (uint32_t k = 0; k < x->n_args; k++) {
                const vpps_cell_value *a = &c->values[c->args[x->first_arg + k].value];
                expect(a->stage == VPPS_NONE || a->stage <= i, s, "reads a later stage: value", v);
            }
        }
    }
    free(recurrent);
    if (!c->needs.recurrent_in) return;
    for (uint32_t k = 0; k < c->n_outputs; k++) {
        const vpps_cell_value *x = &c->values[c->outputs[k].value];
        if (x->stage != VPPS_NONE && (c->needs.recurrent_out >> k & 1))
            expect(x->pass <= VPPS_PASS_MAIN, s, "lazy, though the recurrence waits for it: output", k);
    }
    for (uint32_t j = 0; j < c->n_contributions; j++) {
        const vpps_cell_contribution *to = &c->contributions[j];
        if (!to->lookup && (c->needs.recurrent_in >> to->index & 1))
            expect(c->values[to->value].pass <= VPPS_PASS_BACK_MAIN, s,
                   "lazy, though the recurrence waits for it: contribution", j);
    }
}

static void check_compiled(const subject *s) {
    OWNED(vpps_compiled_cell) *c = cells_compile(s->g, s->cell, &s->needs);
    check_parts(s, c);
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
