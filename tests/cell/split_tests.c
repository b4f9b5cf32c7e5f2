/* split_tests.c - passes, stages and kept values of well-known cells. */
#include "cells.h"
#include "common/training.h"

/* Compiles a cell as a recurrence for training by a group of that many virtual processors. */
static vpps_compiled_cell *compiled(const cells *x, cell_id id, uint32_t group) {
    const vpps_cell_needs needs = cells_recurrent(x->g, x->cell[id], group);
    return cells_compile(x->g, x->cell[id], &needs);
}

static uint32_t count_stages(const vpps_compiled_cell *c, vpps_pass pass) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->n_stages; i++) n += c->stages[i].pass == pass;
    return n;
}

static const char *matrix_of(const cells *x, const vpps_compiled_cell *c, const vpps_cell_value *value, uint32_t k) {
    const vpps_param p = c->args[value->first_arg + k].matrix;
    return p == VPPS_NO_PARAM ? "" : x->model->params[p].name;
}

/* ---------------------------------------------------------------- stages */

TEST_GROUP("split");

/* A product needs whole vectors: it has those of children, but not r * h. */
TEST(stages_by_rows) {
    AT_END(cells_close) cells x = cells_open();
    static const struct {
        cell_id id;
        uint32_t forward, backward;
    } expected[] = {{CELL_lstm, 1, 1}, {CELL_gru, 2, 2}, {CELL_inner, 1, 1}, {CELL_child_sum, 2, 2}};
    for (size_t i = 0; i < VPPS_COUNT(expected); i++) {
        for (uint32_t group = 2; group <= 3; group++) {
            OWNED(vpps_compiled_cell) *c = compiled(&x, expected[i].id, group);
            ck_assert_msg(count_stages(c, VPPS_PASS_MAIN) == expected[i].forward, "%s: %u forward stages; expected %u",
                          c->name, count_stages(c, VPPS_PASS_MAIN), expected[i].forward);
            ck_assert_msg(count_stages(c, VPPS_PASS_BACK_MAIN) == expected[i].backward,
                          "%s: %u backward stages; expected %u", c->name, count_stages(c, VPPS_PASS_BACK_MAIN),
                          expected[i].backward);
            for (uint32_t s = 0; s < c->n_stages; s++) ck_assert_uint_eq(c->stages[s].split, VPPS_SPLIT_ROWS);
        }
    }
}

/* If vertices are shared out, nobody waits: there is one stage per pass. So it is for one virtual processor, for a small model, for too few rows, and
 * for matrices as values. */
TEST(stages_by_vertices) {
    AT_END(cells_close) cells x = cells_open();
    for (uint32_t id = 0; id < N_CELLS; id++) {
        for (uint32_t way = 0; way < 4; way++) {
            vpps_cell_needs needs = cells_recurrent(x.g, x.cell[id], way == 0 ? 1 : 2);
            if (way == 1) needs.rows.split_elems = UINT32_MAX;
            if (way == 2) needs.group = 4; /* 48 rows are fewer than 16 for each */
            if (way == 3 && id != CELL_matrices) continue;
            OWNED(vpps_compiled_cell) *c = cells_compile(x.g, x.cell[id], &needs);
            for (uint32_t part = 0; part < VPPS_PASSES; part++)
                ck_assert_msg(count_stages(c, part) <= 1, "%s: %u stages of part %u", c->name, count_stages(c, part),
                              part);
            for (uint32_t s = 0; s < c->n_stages; s++) ck_assert_uint_eq(c->stages[s].split, VPPS_SPLIT_VERTICES);
        }
    }
}

/* Each product of the preceding product begins a stage, however many there are; all values of a stage are shared out alike. */
TEST(chains_of_any_length) {
    static const uint32_t lengths[] = {31, 32, 33, 150};
    AT_END(cells_close) cells x = cells_open();
    for (size_t i = 0; i < VPPS_COUNT(lengths); i++) {
        vpps_graph *r = begin_cell(x.model, "chain");
        vpps_node at = vpps_pull(r, HIDDEN, 1);
        for (uint32_t k = 0; k < lengths[i]; k++)
            at = vpps_softmax(r, vpps_affine1(r, VPPS_NO_PARAM, cells_param(&x, "U_i"), at));
        TEST_OK(vpps_scatter(r, at));
        const vpps_cell cell = end_cell(r);
        vpps_cell_needs needs = cells_needs();
        needs.group = 2;
        OWNED(vpps_compiled_cell) *c = cells_compile(x.g, cell, &needs);
        ck_assert_uint_eq(count_stages(c, VPPS_PASS_MAIN), 2 * lengths[i]); /* products by rows, softmax by vertices */
        ck_assert_uint_ge(count_stages(c, VPPS_PASS_BACK_MAIN), 2 * lengths[i] - 1);
        uint32_t placed = 0;
        for (uint32_t s = 0; s < c->n_stages; s++) {
            const vpps_cell_stage *stage = &c->stages[s];
            ck_assert_uint_eq(stage->first, placed);
            placed += stage->n;
            for (uint32_t k = 0; k < stage->n; k++) {
                const vpps_cell_value *value = &c->values[c->order[stage->first + k]];
                ck_assert_uint_eq(value->stage, s);
                ck_assert_uint_eq(value->split, stage->split);
                ck_assert_uint_eq(value->pass, stage->pass);
            }
        }
    }
}

/* Forward computes a softmax and then a product of it; backward the transposed product and then the softmax. A second softmax is in one stage with
 * the first in both passes: stages are numbered separately in each. */
TEST(parts_have_stages_of_their_own) {
    AT_END(cells_close) cells x = cells_open();
    vpps_graph *r = begin_cell(x.model, "two softmaxes");
    const vpps_node a = vpps_softmax(r, vpps_pull(r, HIDDEN, 1)), b = vpps_softmax(r, vpps_pull(r, HIDDEN, 1));
    TEST_OK(vpps_scatter(r, vpps_affine1(r, VPPS_NO_PARAM, cells_param(&x, "U_i"), a)));
    TEST_OK(vpps_push(r, b));
    const vpps_cell cell = end_cell(r);
    vpps_cell_needs needs = cells_needs();
    needs.group = 2;
    OWNED(vpps_compiled_cell) *c = cells_compile(x.g, cell, &needs);
    ck_assert_uint_eq(count_stages(c, VPPS_PASS_MAIN), 2);
    ck_assert_uint_eq(count_stages(c, VPPS_PASS_BACK_MAIN), 2);
}

/* ---------------------------------------------------------------- eager and lazy */

/* All products W x are computed before the recurrence, U h inside it; without a recurrence nothing is separated. */
TEST(products_of_inputs_are_eager) {
    AT_END(cells_close) cells x = cells_open();
    static const cell_id with_inputs[] = {CELL_lstm, CELL_gru, CELL_child_sum, CELL_tagger};
    for (size_t i = 0; i < VPPS_COUNT(with_inputs); i++) {
        const vpps_cell cell = x.cell[with_inputs[i]];
        vpps_compiled_cell *c = compiled(&x, with_inputs[i], 2);
        uint32_t n_eager = 0;
        for (uint32_t v = 0; v < c->n_forward; v++) {
            const vpps_cell_value *value = &c->values[v];
            if (value->kind != VPPS_VALUE_PRODUCT) continue;
            for (uint32_t k = 0; k < value->n_args; k++) {
                const char matrix = *matrix_of(&x, c, value, k);
                const vpps_pass pass = matrix == 'W'   ? VPPS_PASS_EAGER
                                       : matrix == 'C' ? VPPS_PASS_LAZY
                                                       : VPPS_PASS_MAIN;
                if (matrix) ck_assert_msg(value->pass == pass, "%s: %c... in part %u", c->name, matrix, value->pass);
                n_eager += matrix == 'W';
            }
        }
        ck_assert_uint_eq(n_eager, with_inputs[i] == CELL_gru ? 3 : 4);
        vpps_compiled_cell_free(c);

        const vpps_cell_needs needs = cells_needs();
        c = cells_compile(x.g, cell, &needs);
        for (uint32_t v = 0; v < c->n_forward; v++) {
            const vpps_cell_value *value = &c->values[v];
            ck_assert_uint_eq(value->pass, VPPS_PASS_MAIN);
            if (value->kind == VPPS_VALUE_PRODUCT && *matrix_of(&x, c, value, 0) == 'W')
                ck_assert_uint_eq(value->n_args, with_inputs[i] == CELL_child_sum ? value->n_args : 2);
        }
        vpps_compiled_cell_free(c);
    }
}

/* A classifier in the cell: logits and loss are computed once, over all vertices, and so is their gradient for h. The gradient of x, for which no
 * vertex waits, comes last. */
TEST(classifier_is_lazy) {
    AT_END(cells_close) cells x = cells_open();
    OWNED(vpps_compiled_cell) *c = compiled(&x, CELL_tagger, 2);
    uint32_t n_lazy = 0, n_eager = 0, n_last = 0;
    for (uint32_t k = 2; k < 4; k++) ck_assert_uint_eq(c->values[c->outputs[k].value].pass, VPPS_PASS_LAZY);
    for (uint32_t v = 0; v < c->n_values; v++) {
        const vpps_cell_value *value = &c->values[v];
        const char matrix = value->n_args && value->kind >= VPPS_VALUE_PRODUCT && value->kind <= VPPS_VALUE_PRODUCT_T
                                ? *matrix_of(&x, c, value, 0)
                                : 0;
        if (vpps_is_run(value, VPPS_I_CROSS_ENTROPY)) n_lazy += value->pass == VPPS_PASS_LAZY;
        if (value->kind == VPPS_VALUE_PRODUCT_T && matrix == 'C') n_eager += value->pass == VPPS_PASS_BACK_EAGER;
        if (value->kind == VPPS_VALUE_PRODUCT_T && matrix == 'W') n_last += value->pass == VPPS_PASS_BACK_LAZY;
    }
    ck_assert_uint_eq(n_lazy, 1);
    ck_assert_uint_eq(n_eager, 1);
    ck_assert_uint_eq(n_last, 1);
}

/* ---------------------------------------------------------------- what is kept */

/* Backward recomputes sums, scaled values and maxima of inputs; the exponential of such a value is kept. */
TEST(cheap_values_of_inputs_are_not_kept) {
    for (uint32_t k = 0; k < 2; k++) {
        AT_END(cells_close) cells x = cells_open();
        vpps_graph *g = begin_cell(x.model, "cheap");
        const vpps_node a = vpps_add(g, vpps_gather(g, 0, 0, HIDDEN, 1), vpps_gather(g, 1, 0, HIDDEN, 1));
        const vpps_node b = vpps_max(g, a, vpps_scale(g, k ? vpps_exp(g, a) : a, 0.2f));
        TEST_OK(vpps_push(g, vpps_dot(g, b, vpps_slice(g, b, 0, HIDDEN))));
        const vpps_cell cell = end_cell(g);
        const vpps_cell_needs needs = cells_recurrent(x.g, cell, 1);
        OWNED(vpps_compiled_cell) *c = cells_compile(x.g, cell, &needs);
        uint32_t kept = 0;
        for (uint32_t v = 0; v < c->n_forward; v++) kept += c->values[v].kept && !vpps_is_output(c, v);
        ck_assert_msg(kept ? k : !k, "%u values kept", kept);
    }
}

/* Places of 48 words: gates, then their gradients, and outputs; the stage that reads tanh(c) recomputes it from c. */
TEST(kept_places) {
    AT_END(cells_close) cells x = cells_open();
    static const struct {
        cell_id id;
        uint32_t places;
    } expected[] = {{CELL_leaf, 5}, {CELL_lstm, 6}, {CELL_inner, 7}};
    for (size_t i = 0; i < VPPS_COUNT(expected); i++) {
        for (uint32_t group = 1; group <= 2; group++) {
            OWNED(vpps_compiled_cell) *c = compiled(&x, expected[i].id, group);
            uint32_t n_recomputed = 0;
            for (uint32_t v = 0; v < c->n_values; v++) {
                const vpps_cell_value *value = &c->values[v];
                const bool recomputed = value->kind == VPPS_VALUE_RUN && value->run.recompute;
                n_recomputed += recomputed;
                if (recomputed) ck_assert(vpps_is_run(value, VPPS_I_TANH) && !value->kept && v >= c->n_forward);
                if (recomputed) ck_assert_uint_eq(value->pass, VPPS_PASS_BACK_MAIN);
                if (value->kept) ck_assert(value->kind != VPPS_VALUE_PRODUCT || value->pass == VPPS_PASS_EAGER);
            }
            ck_assert_msg(n_recomputed == 1, "%s: %u values recomputed", c->name, n_recomputed);
            ck_assert_msg(c->kept_words[0] == expected[i].places * HIDDEN, "%s: %u words kept; expected %u", c->name,
                          c->kept_words[0], expected[i].places * HIDDEN);
            ck_assert_uint_eq(c->kept_words[1], 0);
        }
    }
}

/* If rows are shared out, other virtual processors may still multiply r * h when this one has its rows of the next value: in inference, where nobody
 * reads r * h later, no value of that stage may take its place. */
TEST(operands_of_products_stay) {
    AT_END(cells_close) cells x = cells_open();
    static const cell_id ids[] = {CELL_gru, CELL_child_sum};
    for (size_t i = 0; i < VPPS_COUNT(ids); i++) {
        vpps_cell_needs needs = cells_recurrent(x.g, x.cell[ids[i]], 2);
        needs.training = false;
        OWNED(vpps_compiled_cell) *c = cells_compile(x.g, x.cell[ids[i]], &needs);
        for (uint32_t v = 0; v < c->n_values; v++) {
            const vpps_cell_value *value = &c->values[v];
            for (uint32_t k = 0; value->kind == VPPS_VALUE_PRODUCT && k < value->n_args; k++) {
                const vpps_cell_arg *a = &c->args[value->first_arg + k];
                for (uint32_t u = v; u < c->n_values && a->matrix != VPPS_NO_PARAM && c->values[a->value].kept; u++)
                    ck_assert_msg(!c->values[u].kept || c->values[u].stage != value->stage ||
                                      c->values[u].record != c->values[a->value].record ||
                                      c->values[u].offset != c->values[a->value].offset,
                                  "%s: value %u takes the place of %u", c->name, u, a->value);
            }
        }
    }
}

/* Values of 48 and of 41 rows have places of 48 words each, of which a virtual processor owns different words: if it stored one over the other, it
 * would overwrite what another one still reads. */
TEST(rows_of_other_vps_stay) {
    AT_END(cells_close) cells x = cells_open();
    for (uint32_t rows = HIDDEN - 7; rows <= HIDDEN; rows += 7) {
        vpps_graph *r = begin_cell(x.model, "two sizes");
        const vpps_node product = vpps_affine1(r, VPPS_NO_PARAM, cells_param(&x, "W_i"), vpps_pull(r, EMBED, 1));
        const vpps_node sum = vpps_add(r, product, vpps_gather(r, 0, 0, HIDDEN, 1));
        TEST_OK(vpps_scatter(r, vpps_exp(r, vpps_gather(r, 0, 1, rows, 1))));
        TEST_OK(vpps_scatter(r, vpps_tanh(r, sum)));
        const vpps_cell cell = end_cell(r);
        vpps_cell_needs needs = cells_recurrent(x.g, cell, 2);
        needs.rows.unit = 1;
        needs.training = false;
        OWNED(vpps_compiled_cell) *c = cells_compile(x.g, cell, &needs);
        uint32_t read = 0, stored = 0;
        for (uint32_t v = 0; v < c->n_values; v++) {
            if (c->values[v].kind == VPPS_VALUE_PRODUCT) read = v;
            if (vpps_is_run(&c->values[v], VPPS_I_EXP)) stored = v;
        }
        ck_assert_uint_eq(c->values[read].pass, VPPS_PASS_EAGER);
        ck_assert_int_eq(vpps_places_meet(c, read, stored), rows == HIDDEN);
    }
}

/* ---------------------------------------------------------------- frozen parameters */

static vpps_compiled_cell *compile_frozen(cells *x, const char *letters, uint64_t gradient_in) {
    for (uint32_t p = 0; p < x->model->n_params; p++)
        TEST_OK(vpps_freeze(x->model, p, strchr(letters, *x->model->params[p].name) != NULL));
    vpps_cell_needs needs = cells_recurrent(x->g, x->cell[CELL_lstm], 2);
    needs.gradient_in = gradient_in;
    return cells_compile(x->g, x->cell[CELL_lstm], &needs);
}

static uint32_t count_outers(const cells *x, const vpps_compiled_cell *c, char letter) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->n_outers; i++) n += *x->model->params[c->outers[i].param].name == letter;
    return n;
}

static uint32_t count_transposed(const cells *x, const vpps_compiled_cell *c, char letter) {
    uint32_t n = 0;
    for (uint32_t v = 0; v < c->n_values; v++)
        for (uint32_t k = 0; c->values[v].kind == VPPS_VALUE_PRODUCT_T && k < c->values[v].n_args; k++)
            n += *matrix_of(x, c, &c->values[v], k) == letter;
    return n;
}

/* A frozen parameter has no gradient, nor have values that only lead to one. Inputs of the LSTM: x, h, c. */
TEST(frozen_costs_nothing) {
    AT_END(cells_close) cells x = cells_open();
    vpps_compiled_cell *c = compile_frozen(&x, "", 7);
    ck_assert_uint_eq(count_outers(&x, c, 'W'), 4);
    ck_assert_uint_eq(count_outers(&x, c, 'b'), 4);
    ck_assert_uint_eq(count_transposed(&x, c, 'W'), 4);
    vpps_compiled_cell_free(c);

    c = compile_frozen(&x, "Wb", 7); /* the gradient of x is still needed */
    ck_assert_uint_eq(count_outers(&x, c, 'W') + count_outers(&x, c, 'b'), 0);
    ck_assert_uint_eq(count_outers(&x, c, 'U'), 4);
    ck_assert_uint_eq(count_transposed(&x, c, 'W'), 4);
    vpps_compiled_cell_free(c);

    c = compile_frozen(&x, "Wb", 6); /* now it is not */
    ck_assert_uint_eq(count_transposed(&x, c, 'W'), 0);
    ck_assert_uint_eq(count_transposed(&x, c, 'U'), 4);
    vpps_compiled_cell_free(c);

    c = compile_frozen(&x, "WUb", 0);
    ck_assert_uint_eq(c->n_values, c->n_forward);
    ck_assert_uint_eq(c->n_contributions + c->n_outers, 0);
    for (uint32_t v = 0; v < c->n_values; v++) { /* nor is any value kept for it */
        const bool output = v == c->outputs[0].value || v == c->outputs[1].value;
        ck_assert(!c->values[v].kept || output || c->values[v].pass == VPPS_PASS_EAGER);
    }
    vpps_compiled_cell_free(c);
}

/* A value that is only contributed to a list stays two factors if a stage makes both; the query is an input. */
TEST(scaled_contributions_stay_as_factors) {
    enum { SIZE = 8, QUERY = 0, KEYS, VALUES };
    for (uint32_t scales = 0; scales < 2; scales++) {
        AT_END(cells_close) cells x = cells_open();
        vpps_graph *r = begin_cell(x.model, "attends");
        const vpps_node query = vpps_gather(r, 0, 0, SIZE, 1), keys = vpps_gather_list_from(r, 1, 0, SIZE, 1);
        const vpps_node values = vpps_gather_list_from(r, 1, 1, SIZE, 1);
        TEST_OK(vpps_scatter(r, vpps_weighted_sum_list(r, vpps_softmax_list(r, vpps_dot(r, keys, query)), values)));
        const vpps_cell cell = end_cell(r);
        vpps_cell_needs needs = cells_needs();
        needs.scales = scales;
        OWNED(vpps_compiled_cell) *c = cells_compile(x.g, cell, &needs);
        ck_assert_uint_eq(c->n_contributions, 3);
        for (uint32_t j = 0; j < c->n_contributions; j++) {
            const vpps_cell_contribution *to = &c->contributions[j];
            ck_assert_int_eq(to->scaled, scales && to->index == VALUES);
            if (!to->scaled) continue;
            ck_assert(c->values[to->vector].kept && !c->values[to->vector].axis);
            ck_assert(c->values[to->scalar].kept && c->values[to->scalar].axis == 1);
        }
    }
}
