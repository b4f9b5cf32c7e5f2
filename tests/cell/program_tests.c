/* program_tests.c - the slots (buffers) of programs, and places among kept values, hold what steps read from them. */
#include "cell/arrange.h"
#include "cell/program.h"
#include "cells.h"
#include "common/training.h"

/* ---------------------------------------------------------------- slots */

/* The value that each slot (buffer) of a program holds while it runs; VPPS_NONE: nothing yet. */
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
    ck_assert_uint_eq(slot->axis, o->axis); /* room for one value of each item */
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
            for (uint32_t k = 0; k < s->n; k++) /* no result goes to a slot that is still read */
                ck_assert(s->to.place != VPPS_PLACE_SLOT || o->place != VPPS_PLACE_SLOT || o->at != s->to.at);
        }
        if (s->kind == VPPS_STEP_PRODUCT) read_slot(&h, &s->product.start);
        write_slot(&h, &s->to);
        if (s->kind == VPPS_STEP_RUN) write_slot(&h, &s->run.positions);
    }
    free(h.value);
}

TEST_GROUP("program");

/* Every cell, in training and inference, by one virtual processor and by several, including values of lists. */
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

/* The order that the search finds needs at most as many copies as the order of creation, for some cells fewer. */
TEST(an_order_of_values_copies_no_more) {
    AT_END(cells_close) cells x = cells_open();
    uint32_t better = 0;
    for (uint32_t id = 0; id < N_CELLS; id++) {
        const vpps_cell_needs needs = cells_recurrent(x.g, x.cell[id], 1);
        vpps_compiled_cell *c = cells_compile(x.g, x.cell[id], &needs);
        vpps_cell_layout l;
        TEST_OK(vpps_arrange_cell(c, &l));
        ck_assert(vpps_copied_words(&l.arranged) <= vpps_copied_words(&l.as_made));
        better += vpps_copied_words(&l.arranged) < vpps_copied_words(&l.as_made);
        vpps_compiled_cell_free(c);
    }
    ck_assert_uint_gt(better, 2);
}
