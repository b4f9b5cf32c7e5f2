/* in_place_tests.c - which copies a stage's program does without on a device that finds each item, and which it keeps. */
#include "cell/program.h"
#include "common/testing.h"

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

/* Kinds of the steps that are left, a letter each. */
static const char *left_of(drawn *d) {
    static char letters[MOST + 1];
    vpps_place_in_memory(&d->p);
    for (uint32_t i = 0; i < d->p.n; i++) letters[i] = "LGRPSC"[d->p.steps[i].kind];
    letters[d->p.n] = 0;
    return letters;
}

TEST_GROUP("in_place", .seconds = 10);

TEST(inputs_are_read_where_they_are) {
    for (uint32_t k = 0; k < 2; k++) {
        drawn d = {0};
        load(&d, 0);
        run(&d, VPPS_I_DOT, 2, 0, slot(2, 1, 1), 2, (vpps_operand[]){slot(0, 1, WIDTH), slot(1, 0, WIDTH)});
        if (k)
            run(&d, VPPS_I_TANH, 1, 0, slot(3, 1, WIDTH), 1, (vpps_operand[]){slot(0, 1, WIDTH)})->run.uniform = true;
        ck_assert_str_eq(left_of(&d), k ? "LRR" /* all members at once */ : "R");
        const vpps_operand *x = d.operands + d.steps[k].first;
        ck_assert(x[0].place == (k ? VPPS_PLACE_SLOT : VPPS_PLACE_INPUT) && x[0].at == (k ? 0 : 5) && x[0].axis == 1);
        ck_assert(x[1].place == VPPS_PLACE_SLOT);
    }
}

TEST(a_later_load_is_of_its_own_readers) {
    drawn d = {0};
    load(&d, 0);
    run(&d, VPPS_I_DOT, 2, 0, slot(2, 1, 1), 2, (vpps_operand[]){slot(0, 1, WIDTH), slot(1, 0, WIDTH)});
    load(&d, 0);
    run(&d, VPPS_I_TANH, 1, 0, slot(3, 1, WIDTH), 1, (vpps_operand[]){slot(0, 1, WIDTH)})->run.uniform = true;
    ck_assert_str_eq(left_of(&d), "RLR");
}

TEST(results_are_made_where_they_are_kept) {
    for (uint32_t k = 0; k < 3; k++) {
        drawn d = {0};
        const vpps_operand to =
            operand(k == 2 ? VPPS_PLACE_RECORD : VPPS_PLACE_CONTRIBUTION, 7, 1, WIDTH, VPPS_ACCESS_OWN);
        const vpps_operand made = slot(2, 1, WIDTH);
        run(&d, VPPS_I_SCALE_BY, 1, 1, made, 2, (vpps_operand[]){slot(0, 0, WIDTH), slot(1, 1, 1)})->run.uniform =
            k == 2;
        step(&d, k == 2 ? VPPS_STEP_STORE : VPPS_STEP_CONTRIBUTE, to, 1, &made);
        if (k == 1) run(&d, VPPS_I_TANH, 1, 0, slot(3, 1, WIDTH), 1, &made);
        /* read once more; or made of all members at once, whose records lie apart */
        ck_assert_str_eq(left_of(&d), k == 0 ? "R" : k == 1 ? "RCR" : "RS");
        ck_assert_int_eq(d.steps[0].to.place, k ? VPPS_PLACE_SLOT : VPPS_PLACE_CONTRIBUTION);
    }
}
