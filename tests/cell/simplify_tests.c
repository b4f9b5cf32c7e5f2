/* simplify_tests.c - what simplify leaves out: each rule by the operations that are left. */
#include "cell_tests.h"
#include "cells.h"
#include "common/testing.h"

#define EXACT 1e-12

/* ---------------------------------------------------------------- outputs that nobody reads */

static vpps_compiled_cell *compile_tagger(const cells *x, bool training, uint64_t read_out) {
    vpps_cell_needs needs = cells_recurrent(x->g, x->cell[CELL_tagger], 1);
    needs.training = training;
    needs.read_out = read_out;
    needs.gradient_out = read_out;
    return cells_compile(x->g, x->cell[CELL_tagger], &needs);
}

static uint32_t count_runs(const vpps_compiled_cell *c, uint32_t opcode) {
    uint32_t n = 0;
    for (uint32_t v = 0; v < c->n_values; v++)
        n += c->values[v].kind == VPPS_VALUE_RUN && c->values[v].opcode == opcode;
    return n;
}

static void check_against_all(const cells *x, const vpps_compiled_cell *c) {
    vpps_compiled_cell *all = compile_tagger(x, c->needs.training, 15);
    vertex *v = cells_vertex(x->g, x->cell[CELL_tagger], 1, test_seed());
    results *want = evaluate(all, v), *got = evaluate_stages(c, v, false);
    results_compare_outputs("tagger", got, want, EXACT);
    results_destroy(want);
    results_destroy(got);
    vertex_destroy(v, all);
    vpps_compiled_cell_free(all);
}

/* Its outputs are h, c, logits and loss. In inference nobody asks for the loss, or for nothing but the state. */
START_TEST(dead_in_inference)
    {
        cells x = cells_open();
        vpps_compiled_cell *logits = compile_tagger(&x, false, 7), *state = compile_tagger(&x, false, 3);
        ck_assert_uint_eq(logits->outputs[3].value, VPPS_NONE);
        ck_assert_uint_eq(count_runs(logits, VPPS_I_PICK_NLL), 0);
        ck_assert_uint_ne(logits->outputs[2].value, VPPS_NONE);
        for (uint32_t i = 0; i < state->n_args; i++) ck_assert_uint_ne(state->args[i].matrix, cells_param(&x, "C"));
        for (uint32_t i = 0; i < state->n_stages; i++) ck_assert_uint_ne(state->stages[i].part, VPPS_PART_LAZY);
        check_against_all(&x, logits);
        check_against_all(&x, state);
        vpps_compiled_cell_free(logits);
        vpps_compiled_cell_free(state);
        cells_close(&x);
    }
END_TEST

/* Does another value lie in the place of the logits, the operand of PICK_NLL? */
static bool logits_share(const vpps_compiled_cell *c) {
    uint32_t logits = VPPS_NONE;
    bool shared = false;
    for (uint32_t v = 0; v < c->n_values; v++) {
        const vpps_cell_value *x = &c->values[v];
        if (x->kind == VPPS_VALUE_RUN && x->opcode == VPPS_I_PICK_NLL) logits = c->args[x->first_arg].value;
    }
    ck_assert(logits != VPPS_NONE && c->values[logits].kept);
    for (uint32_t v = 0; v < c->n_values; v++)
        shared |= v != logits && c->values[v].kept && c->values[v].offset == c->values[logits].offset;
    return shared;
}

/* In training nobody reads the logits but the loss: their place is free for their gradient. */
START_TEST(unread_output_shares_its_place)
    {
        cells x = cells_open();
        vpps_compiled_cell *all = compile_tagger(&x, true, 15), *loss = compile_tagger(&x, true, 11);
        ck_assert(!logits_share(all) && logits_share(loss));
        check_against_all(&x, loss);
        vpps_compiled_cell_free(all);
        vpps_compiled_cell_free(loss);
        cells_close(&x);
    }
END_TEST

TCase *simplify_tests(void) {
    TCase *t = tcase_create("simplify");
    tcase_add_test(t, dead_in_inference);
    tcase_add_test(t, unread_output_shares_its_place);
    return t;
}
