/* pass_tests.c - every pass of the compiler keeps values: of cells as networks have them, and of random ones. */
#include "cells.h"
#include "common/random_graph.h"

/* Exact up to the order of a sum; where two factors became one in single precision; against the reference, whose averages
 * are not in single precision. */
#define EXACT 1e-12
#define SINGLE 1e-6

/* What a test compiles: a cell of a graph, how, and a vertex. */
typedef struct subject {
    vpps_graph *g;
    vpps_cell cell;
    const char *name;
    vpps_cell_needs needs;
    uint32_t members;
    uint64_t seed;
} subject;

static const char *stage_name(const subject *s, const char *pass) {
    static char text[160];
    snprintf(text, sizeof text, "%s after %s (group %u, %u members)", s->name, pass, s->needs.group, s->members);
    return text;
}

static void expect(bool holds, const subject *s, const char *what, uint32_t number) {
    if (!holds) ck_abort_msg("%s: %s %u", s->name, what, number); /* an assertion costs a system call */
}

/* Depends on a child of the recurrence, or, in backward, on a gradient that comes through it. */
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

/* No stage reads what comes after it, nothing eager waits for the recurrence, and nothing that it waits for is lazy. */
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

/* Inputs that outputs with a gradient depend on are compared; others have none. */
static void check_gradients(const subject *s, const vpps_compiled_cell *base, const vertex *x, results *got) {
    results *want = cells_reference(s->g, s->cell, x, base, s->needs.gradient_out);
    cells_share_gradients(got, x, base);
    uint64_t mask = s->needs.gradient_in;
    for (uint32_t i = 0; i < base->n_inputs; i++) { /* of a child that is gathered twice, either both or none */
        for (uint32_t k = 0; k < base->n_inputs; k++) {
            const vpps_cell_input *a = &base->inputs[i], *b = &base->inputs[k];
            const bool related = (base->input_axis[i] > 0) != (base->input_axis[k] > 0) && !a->pulled && !b->pulled &&
                                 a->output == b->output;
            if (related && !(s->needs.gradient_in >> k & 1)) mask &= ~((uint64_t)1 << i);
        }
    }
    results_compare_gradients(stage_name(s, "differentiate, by the reference"), got, want, mask, SINGLE);
    results_destroy(want);
}

/* One cell through all passes. */
static void check_passes(const subject *s) {
    OWNED(vpps_compiled_cell) *base = cells_lower(s->g, s->cell, &s->needs), *c = cells_lower(s->g, s->cell, &s->needs);
    vertex *x = cells_vertex(s->g, s->cell, s->members, s->seed);

    results *lowered = evaluate(c, x), *want = cells_reference(s->g, s->cell, x, base, s->needs.gradient_out);
    results_compare_outputs(stage_name(s, "lower"), lowered, want, SINGLE);
    results_destroy(want);

    TEST_OK(vpps_separate_eager(c));
    results *separated = evaluate(c, x);
    results_compare_outputs(stage_name(s, "separate_eager"), separated, lowered, EXACT);

    TEST_OK(vpps_differentiate(s->g->model, c));
    results *differentiated = evaluate(c, x);
    results_compare_outputs(stage_name(s, "differentiate"), differentiated, separated, 0);

    TEST_OK(vpps_simplify(c));
    results *simplified = evaluate(c, x);
    results_compare(stage_name(s, "simplify"), simplified, differentiated, SINGLE);

    TEST_OK(vpps_split_cell(s->g->model, c));
    check_parts(s, c);
    results *split = evaluate(c, x);
    results_compare(stage_name(s, "split"), split, simplified, EXACT);
    check_gradients(s, base, x, differentiated);

    results_destroy(lowered);
    results_destroy(separated);
    results_destroy(differentiated);
    results_destroy(simplified);
    results_destroy(split);
    vertex_destroy(x, base);
}

/* ---------------------------------------------------------------- cells of networks */

TEST_GROUP("passes", .seconds = 60);

TEST_EACH(networks, 0, N_CELLS) {
    AT_END(cells_close) cells x = cells_open();
    for (uint32_t group = 1; group <= 3; group++) {
        for (uint32_t recurrent = 0; recurrent < 2; recurrent++) {
            const vpps_cell cell = x.cell[_i];
            const bool list = x.model->cells[cell]->n_lists > 0;
            /* the gated sum of none is 0 / 0 */
            const uint32_t least = list && _i != CELL_gated_list ? x.model->cells[cell]->min_members[1] : 1;
            for (uint32_t members = least; members <= (list ? 3u : 1u); members++) {
                subject s = {x.g, cell, x.model->cells[cell]->name, cells_needs(), members, test_seed() + members};
                if (recurrent) s.needs = cells_recurrent(x.g, cell, group);
                s.needs.group = group;
                check_passes(&s);
                s.needs.rows.split_elems = UINT32_MAX; /* vertices are shared out */
                check_passes(&s);
            }
        }
    }
}

/* Frozen parameters, and inputs and outputs without a gradient: what is left is the same. */
TEST_EACH(partly_differentiated, 0, N_CELLS) {
    AT_END(cells_close) cells x = cells_open();
    uint64_t random = vpps_mix64(test_seed() + (uint64_t)_i);
    for (uint32_t trial = 0; trial < 4; trial++) {
        for (uint32_t p = 0; p < x.model->n_params; p++)
            TEST_OK(vpps_freeze(x.model, p, vpps_random_below(&random, 2)));
        const vpps_cell cell = x.cell[_i];
        subject s = {
            x.g, cell, x.model->cells[cell]->name, cells_recurrent(x.g, cell, 1 + trial % 3), 2, vpps_random(&random)};
        s.needs.gradient_in = vpps_random(&random);
        s.needs.gradient_out = vpps_random(&random);
        if (trial % 2) s.needs.recurrent_in = vpps_random(&random) & s.needs.recurrent_in;
        check_passes(&s);
    }
}

/* Inference: no backward, and outputs as they were. */
TEST_EACH(inference, 0, N_CELLS) {
    AT_END(cells_close) cells x = cells_open();
    for (uint32_t group = 1; group <= 3; group++) {
        const vpps_cell cell = x.cell[_i];
        vpps_cell_needs needs = cells_recurrent(x.g, cell, group);
        needs.training = false;
        vpps_compiled_cell *base = cells_lower(x.g, cell, &needs), *c = cells_compile(x.g, cell, &needs);
        vertex *v = cells_vertex(x.g, cell, 3, test_seed());
        ck_assert_uint_eq(c->n_contributions + c->n_outers, 0);
        ck_assert_uint_eq(c->n_forward, c->n_values);
        results *want = evaluate(base, v), *got = evaluate(c, v);
        results_compare(x.model->cells[cell]->name, got, want, EXACT);
        results_destroy(want);
        results_destroy(got);
        vertex_destroy(v, base);
        vpps_compiled_cell_free(base);
        vpps_compiled_cell_free(c);
    }
}

/* ---------------------------------------------------------------- central differences */

/* Of the loss with respect to *at, by the lowered cell. */
static double slope(const vpps_compiled_cell *base, const vertex *x, double *at) {
    const double step = 1e-5, here = *at;
    *at = here + step;
    results *above = evaluate(base, x);
    *at = here - step;
    results *below = evaluate(base, x);
    *at = here;
    const double slope = (results_loss(above, x) - results_loss(below, x)) / (2 * step);
    results_destroy(above);
    results_destroy(below);
    return slope;
}

static void check_slope(const char *name, const char *what, uint32_t number, double got, double want) {
    ck_assert_msg(fabs(got - want) <= 1e-6 * (1 + fabs(want)), "%s: gradient of %s %u is %.9g; central difference %.9g",
                  name, what, number, got, want);
}

/* Contributions and deferred products, multiplied out, are central differences of the cell: at elements drawn at random. */
TEST_EACH(central_differences, 0, N_CELLS) {
    enum { INPUT_ELEMS = 12, PARAM_ELEMS = 4 };
    AT_END(cells_close) cells x = cells_open();
    const vpps_cell cell = x.cell[_i];
    const vpps_cell_needs needs = cells_recurrent(x.g, cell, 2);
    OWNED(vpps_compiled_cell) *base = cells_lower(x.g, cell, &needs), *c = cells_lower(x.g, cell, &needs);
    vertex *v = cells_vertex(x.g, cell, 3, test_seed() + 7);
    uint64_t random = vpps_mix64(test_seed());
    TEST_OK(vpps_separate_eager(c));
    TEST_OK(vpps_differentiate(x.model, c));
    results *got = evaluate(c, v);
    for (uint32_t i = 0; i < base->n_inputs; i++) {
        for (uint32_t k = 0; k < INPUT_ELEMS; k++) {
            const uint32_t at = vpps_random_below(&random, (uint32_t)got->input_elems[i]);
            check_slope(base->name, "input", i, got->inputs[i][at], slope(base, v, v->inputs[i] + at));
        }
    }
    for (uint32_t p = 0; p < x.model->n_params; p++) {
        for (uint32_t k = 0; k < PARAM_ELEMS; k++) {
            const uint32_t at = vpps_random_below(&random, (uint32_t)vpps_param_elems(&x.model->params[p]));
            check_slope(base->name, "parameter", p, got->params[p][at], slope(base, v, v->params[p] + at));
        }
    }
    results_destroy(got);
    vertex_destroy(v, base);
}

/* ---------------------------------------------------------------- random cells */

TEST_EACH(random_cells, 0, test_scaled(300)) {
    const uint64_t seed = test_seed() * 1000 + (uint64_t)_i;
    rg_case drawn;
    AT_END(rg_destroy) rg_built built;
    uint64_t random = vpps_mix64(seed);
    rg_draw(&drawn, seed, 8);
    TEST_OK(rg_build(&built, &drawn, NULL));
    for (vpps_cell cell = 0; cell < built.model->n_cells; cell++) {
        const vpps_cell_data *data = built.model->cells[cell];
        const uint32_t first = data->n_lists && data->gathered[1] ? data->list_first : 0;
        const uint32_t members = vpps_max_u32(data->min_children - vpps_min_u32(first, data->min_children),
                                              vpps_random_below(&random, 4)),
                       least = data->n_lists ? data->min_members[1] : 1;
        char name[64];
        snprintf(name, sizeof name, "random case %llu, cell %u", (unsigned long long)seed, cell);
        subject s = {built.g[0],
                     cell,
                     name,
                     cells_recurrent(built.g[0], cell, 1 + vpps_random_below(&random, 3)),
                     vpps_max_u32(members, least),
                     vpps_random(&random)};
        if (vpps_random_below(&random, 2)) s.needs.gradient_in = vpps_random(&random);
        if (vpps_random_below(&random, 2)) s.needs.gradient_out = vpps_random(&random);
        if (vpps_random_below(&random, 2)) s.needs.recurrent_in &= vpps_random(&random);
        if (vpps_random_below(&random, 4) == 0) s.needs.rows.split_elems = UINT32_MAX;
        check_passes(&s);
    }
}
