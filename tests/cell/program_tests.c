/* program_tests.c - that slots of programs, and places of records, hold what is read from them. */
#include "cell/program.h"
#include "cells.h"
#include "common/training.h"

/* ---------------------------------------------------------------- slots */

/* What each slot of a program holds while it runs: a value; VPPS_NONE: nothing yet. */
typedef struct holding {
    const vpps_compiled_cell *c;
    const vpps_program *p;
    uint32_t stage, step;
    uint32_t *value;
} holding;

static void read_slot(const holding *h, const vpps_operand *o) {
    if (o->place != VPPS_PLACE_SLOT) return;
    ck_assert_uint_lt(o->at, h->p->slots.n);
    ck_assert_msg(h->value[o->at] == o->value, "%s, stage %u, step %u: slot %u holds value %u, not %u", h->c->name,
                  h->stage, h->step, o->at, h->value[o->at], o->value);
}

static void write_slot(const holding *h, const vpps_operand *o) {
    if (o->place != VPPS_PLACE_SLOT) return;
    const vpps_slot *slot = &h->p->slots.at[o->at];
    ck_assert_uint_eq(slot->axis, o->axis); /* room for one of each item */
    ck_assert_uint_eq(slot->words, vpps_operand_words(o));
    ck_assert_uint_eq(slot->dealt, o->dealt);
    h->value[o->at] = o->value;
}

static void follow(const vpps_compiled_cell *c, uint32_t stage, uint32_t *of_lists) {
    const vpps_program *p = &c->programs[stage];
    holding h = {.c = c, .p = p, .stage = stage, .value = malloc((p->slots.n + 1u) * sizeof *h.value)};
    ck_assert_ptr_nonnull(h.value);
    memset(h.value, 0xff, p->slots.n * sizeof *h.value);
    for (h.step = 0; h.step < p->n; h.step++) {
        const vpps_program_step *s = &p->steps[h.step];
        for (uint32_t i = 0; i < s->n; i++) {
            const vpps_operand *o = &p->operands[s->first + i];
            read_slot(&h, o);
            *of_lists += o->place == VPPS_PLACE_SLOT && o->axis;
            for (uint32_t k = 0; k < s->n; k++) /* a result is made in no slot that is still read */
                ck_assert(s->to.place != VPPS_PLACE_SLOT || o->place != VPPS_PLACE_SLOT || o->at != s->to.at);
        }
        if (s->kind == VPPS_STEP_PRODUCT) read_slot(&h, &s->product.start);
        write_slot(&h, &s->to);
        if (s->kind == VPPS_STEP_RUN) write_slot(&h, &s->run.positions);
    }
    free(h.value);
}

TEST_GROUP("program");

/* Of every cell, in training and inference, by one VP and by several: of values of lists, too. */
TEST(slots_hold_what_is_read) {
    AT_END(cells_close) cells x = cells_open();
    uint32_t of_lists = 0;
    for (uint32_t id = 0; id < N_CELLS; id++) {
        for (uint32_t group = 1; group <= 3; group++) {
            for (uint32_t recurrent = 0; recurrent < 3; recurrent++) {
                vpps_cell_needs needs = recurrent ? cells_recurrent(x.g, x.cell[id], group) : cells_needs();
                needs.group = group;
                if (recurrent == 2) needs.training = false, needs.gradient_in = needs.gradient_out = 0;
                vpps_compiled_cell *c = cells_compile(x.g, x.cell[id], &needs);
                for (uint32_t s = 0; s < c->n_stages; s++) follow(c, s, &of_lists);
                vpps_compiled_cell_free(c);
            }
        }
    }
    ck_assert_uint_gt(of_lists, 100);
}

/* ---------------------------------------------------------------- places */

/* Is b made after a, in the same pass, though it lies before it? Both are large, so that small ones' places after them do not count. */
static bool swapped(const vpps_compiled_cell *c, uint32_t a, uint32_t b) {
    const vpps_cell_value *x = &c->values[a], *y = &c->values[b];
    return x->kept && y->kept && x->record == y->record && vpps_place_words(c, x) >= 16 &&
           vpps_place_words(c, y) >= 16 && y->offset < x->offset;
}

static bool has_swapped(const vpps_compiled_cell *c) {
    for (uint32_t a = 0; a < c->n_values; a++)
        for (uint32_t b = a + 1; b < c->n_values; b++)
            if (swapped(c, a, b)) return true;
    return false;
}

static uint64_t copied(const vpps_cell_copies *x) {
    return x->forward.gathered + x->forward.scattered + x->backward.gathered + x->backward.scattered;
}

/* Where another order saves copies the places are in it, and not in the one in which values are made. */
TEST(places_are_as_planned) {
    AT_END(cells_close) cells x = cells_open();
    uint32_t better = 0, moved = 0;
    for (uint32_t id = 0; id < N_CELLS; id++) {
        const vpps_cell_needs needs = cells_recurrent(x.g, x.cell[id], 1);
        vpps_compiled_cell *c = cells_compile(x.g, x.cell[id], &needs);
        ck_assert(copied(&c->arranged) <= copied(&c->as_made));
        const bool planned = copied(&c->arranged) < copied(&c->as_made);
        better += planned;
        moved += planned && has_swapped(c);
        vpps_compiled_cell_free(c);
    }
    ck_assert_uint_gt(better, 2);
    ck_assert_uint_gt(moved, 0);
}

/* Two tanh and two sigmoid functions, made in turn, and multiplied in pairs: each two lie next to each other. */
TEST(operations_that_are_alike_lie_together) {
    AT_END(cells_close) cells x = cells_open();
    vpps_graph *r = begin_cell(x.model, "turns");
    vpps_node in[4], made[4];
    for (uint32_t k = 0; k < 4; k++) in[k] = vpps_pull(r, HIDDEN, 1);
    for (uint32_t k = 0; k < 4; k++) made[k] = k % 2 ? vpps_sigmoid(r, in[k]) : vpps_tanh(r, in[k]);
    for (uint32_t k = 0; k < 4; k++) TEST_OK(vpps_push(r, made[k])); /* so that they are kept */
    TEST_OK(vpps_scatter(r, vpps_add(r, vpps_mul(r, made[0], made[1]), vpps_mul(r, made[2], made[3]))));
    const vpps_cell cell = end_cell(r);
    const vpps_cell_needs needs = cells_needs();
    OWNED(vpps_compiled_cell) *c = cells_compile(x.g, cell, &needs);
    uint32_t n = 0, values[4];
    for (uint32_t v = 0; v < c->n_forward; v++) {
        const vpps_cell_value *value = &c->values[v];
        if (value->kind != VPPS_VALUE_RUN || !value->kept || value->n_args != 1) continue;
        ck_assert_uint_lt(n, 4);
        values[n++] = v;
    }
    ck_assert_uint_eq(n, 4);
    for (uint32_t k = 0; k < 2; k++) {
        const vpps_cell_value *a = &c->values[values[k]], *b = &c->values[values[k + 2]];
        ck_assert_uint_eq(a->run.opcode, b->run.opcode);
        ck_assert_uint_eq(b->offset > a->offset ? b->offset - a->offset : a->offset - b->offset, HIDDEN);
    }
    ck_assert_uint_ne(c->values[values[0]].run.opcode, c->values[values[1]].run.opcode);
}
