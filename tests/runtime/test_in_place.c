/* test_in_place.c - which copies a stage's program runs without on a CPU, and which it keeps. */
#include "common/testing.h"
#include "runtime/cpu/tile.h"

enum { WIDTH = 8, MOST = 16 };

/* A program of steps over one list. */
typedef struct drawn {
    vpps_program_step steps[MOST];
    vpps_operand operands[MOST];
    vpps_program p;
} drawn;

static vpps_operand operand(vpps_place place, uint32_t at, uint8_t axis, uint32_t rows, vpps_access access) {
    return (vpps_operand){
        .place = (uint8_t)place, .at = at, .axis = axis, .rows = rows, .cols = 1, .access = (uint8_t)access};
}
static vpps_operand slot(uint32_t at, uint8_t axis, uint32_t rows) {
    return operand(VPPS_PLACE_SLOT, at, axis, rows, VPPS_ACCESS_WHOLE);
}

static vpps_program_step *step(drawn *d, vpps_step_kind kind, vpps_operand to, uint32_t n, const vpps_operand *from) {
    vpps_program_step *s = &d->steps[d->p.n++];
    *s = (vpps_program_step){.kind = (uint8_t)kind, .axis = to.axis, .to = to, .first = d->p.n_operands, .n = n};
    memcpy(d->operands + s->first, from, n * sizeof *from);
    d->p.n_operands += n;
    d->p.steps = d->steps;
    d->p.operands = d->operands;
    return s;
}

static vpps_program_step *run(drawn *d, vpps_opcode opcode, uint8_t tensors, uint8_t scalars, vpps_operand to,
                              uint32_t n, const vpps_operand *from) {
    vpps_program_step *s = step(d, VPPS_STEP_RUN, to, n, from);
    s->run.of.opcode = (uint8_t)opcode;
    s->run.tensors = tensors;
    s->run.scalars = scalars;
    return s;
}

static void load(drawn *d, uint32_t to) {
    const vpps_operand in = operand(VPPS_PLACE_INPUT, 5, 1, WIDTH, VPPS_ACCESS_OWN);
    step(d, VPPS_STEP_LOAD, slot(to, 1, WIDTH), 1, &in);
}

enum { SCALED = 9, CONTRIBUTIONS };

/* Kinds of the steps that are left, a letter each. */
static const char *left_of(const drawn *d, vpps_program *out) {
    static const vpps_cell_contribution contributions[CONTRIBUTIONS] = {[SCALED] = {.scaled = true}};
    static char letters[MOST + 1];
    ck_assert(vpps_place_in_memory(&d->p, contributions, out));
    for (uint32_t i = 0; i < out->n; i++) letters[i] = "LGRPSC"[out->steps[i].kind];
    letters[out->n] = 0;
    return letters;
}

static void release(vpps_program *p) {
    free(p->steps);
    free(p->operands);
}

TEST_GROUP("in_place", .seconds = 10);

TEST(inputs_are_read_where_they_are) {
    drawn d = {0};
    vpps_program p;
    load(&d, 0);
    run(&d, VPPS_I_DOT, 2, 0, slot(2, 1, 1), 2, (vpps_operand[]){slot(0, 1, WIDTH), slot(1, 0, WIDTH)});
    ck_assert_str_eq(left_of(&d, &p), "R");
    const vpps_operand *x = p.operands + p.steps[0].first;
    ck_assert(x[0].place == VPPS_PLACE_INPUT && x[0].at == 5 && x[0].axis == 1 && x[1].place == VPPS_PLACE_SLOT);
    release(&p);
    run(&d, VPPS_I_TANH, 1, 0, slot(3, 1, WIDTH), 1, (vpps_operand[]){slot(0, 1, WIDTH)})->run.uniform = true;
    ck_assert_str_eq(left_of(&d, &p), "LRR"); /* all members at once */
    release(&p);
}

TEST(a_later_load_is_of_its_own_readers) {
    drawn d = {0};
    vpps_program p;
    load(&d, 0);
    run(&d, VPPS_I_DOT, 2, 0, slot(2, 1, 1), 2, (vpps_operand[]){slot(0, 1, WIDTH), slot(1, 0, WIDTH)});
    load(&d, 0);
    run(&d, VPPS_I_TANH, 1, 0, slot(3, 1, WIDTH), 1, (vpps_operand[]){slot(0, 1, WIDTH)})->run.uniform = true;
    ck_assert_str_eq(left_of(&d, &p), "RLR");
    release(&p);
}

TEST(what_is_scaled_for_a_sum_is_scaled_in_it) {
    for (uint32_t k = 0; k < 3; k++) {
        drawn d = {0};
        vpps_program p;
        vpps_operand all = slot(2, 1, WIDTH);
        all.access = VPPS_ACCESS_MEMBERS;
        load(&d, 0);
        run(&d, VPPS_I_SCALE_BY, 1, 1, slot(2, 1, WIDTH), 2, (vpps_operand[]){slot(0, 1, WIDTH), slot(1, 1, 1)});
        vpps_program_step *sum = run(&d, VPPS_I_SUM, 0, 0, slot(3, 0, WIDTH), 1, &all);
        sum->run.of.f = (vpps_cell_number){.kind = VPPS_NUMBER_CONSTANT, .real = k == 1 ? 0.5f : 1};
        if (k == 2) run(&d, VPPS_I_DOT, 2, 0, slot(4, 1, 1), 2, (vpps_operand[]){slot(2, 1, WIDTH), slot(3, 0, WIDTH)});
        ck_assert_str_eq(left_of(&d, &p), k == 0 ? "R" : k == 1 ? "RR" : "RRR");
        const vpps_operand *x = p.operands + p.steps[0].first;
        ck_assert_uint_eq(p.steps[0].run.of.opcode, k ? VPPS_I_SCALE_BY : VPPS_I_WEIGHTED_SUM);
        if (!k) ck_assert(x[0].at == 1 && x[1].place == VPPS_PLACE_INPUT && x[1].access == VPPS_ACCESS_MEMBERS);
        release(&p);
    }
}

TEST(results_are_made_where_they_are_kept) {
    for (uint32_t k = 0; k < 3; k++) {
        drawn d = {0};
        vpps_program p;
        const vpps_operand to =
            operand(k == 2 ? VPPS_PLACE_RECORD : VPPS_PLACE_CONTRIBUTION, 7, 1, WIDTH, VPPS_ACCESS_OWN);
        const vpps_operand made = slot(2, 1, WIDTH);
        run(&d, VPPS_I_SCALE_BY, 1, 1, made, 2, (vpps_operand[]){slot(0, 0, WIDTH), slot(1, 1, 1)})->run.uniform =
            k == 2;
        step(&d, k == 2 ? VPPS_STEP_STORE : VPPS_STEP_CONTRIBUTE, to, 1, &made);
        if (k == 1) run(&d, VPPS_I_TANH, 1, 0, slot(3, 1, WIDTH), 1, &made);
        /* read once more; or made of all members at once, whose records lie apart */
        ck_assert_str_eq(left_of(&d, &p), k == 0 ? "R" : k == 1 ? "RCR" : "RS");
        ck_assert_int_eq(p.steps[0].to.place, k ? VPPS_PLACE_SLOT : VPPS_PLACE_CONTRIBUTION);
        release(&p);
    }
}

TEST(scaled_contributions_are_not_made) {
    drawn d = {0};
    vpps_program p;
    const vpps_operand to = operand(VPPS_PLACE_CONTRIBUTION, SCALED, 1, WIDTH, VPPS_ACCESS_OWN);
    const vpps_operand made = slot(2, 1, WIDTH), kept = operand(VPPS_PLACE_RECORD, 0, 1, 1, VPPS_ACCESS_OWN);
    run(&d, VPPS_I_DOT, 2, 0, slot(1, 1, 1), 2, (vpps_operand[]){slot(3, 1, WIDTH), slot(0, 0, WIDTH)});
    run(&d, VPPS_I_SCALE_BY, 1, 1, made, 2, (vpps_operand[]){slot(0, 0, WIDTH), slot(1, 1, 1)});
    step(&d, VPPS_STEP_CONTRIBUTE, to, 1, &made);
    run(&d, VPPS_I_TANH, 1, 0, slot(4, 1, 1), 1, (vpps_operand[]){slot(1, 1, 1)});
    step(&d, VPPS_STEP_STORE, kept, 1, (vpps_operand[]){slot(1, 1, 1)});
    ck_assert_str_eq(left_of(&d, &p), "RRS");
    ck_assert_uint_eq(p.steps[0].run.of.opcode, VPPS_I_DOT);
    release(&p);
}

int main(void) { return test_main("in_place"); }
