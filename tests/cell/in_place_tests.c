/* in_place_tests.c - which copies a stage's program does without on a device that finds each item, and which it keeps.
 *
 * Programs are written as text, step by step: the step's letter, its result, its operands. L, S and C load, store and contribute; U is an
 * elementwise instruction that may compute all items at once, E another one, D a dot product; P is a product, T a transposed one, B a
 * product that is added to its first operand. Places: slot (s), record (r; R: shares), input (i), contribution (c). */
#include "cell/program.h"
#include "common/testing.h"

enum { MOST = 16 };
static const char letters[] = "LSCUEDPTB", places[] = "_sri___c";

static vpps_operand operand_of(const char *text, uint32_t words) {
    return (vpps_operand){.place = (uint8_t)(strchr(places, *text == 'R' ? 'r' : *text) - places),
                          .at = (uint32_t)text[1] - '0',
                          .shares = *text == 'R',
                          .axis = 1,
                          .rows = words,
                          .cols = 1};
}

/* Appends the step that `text` describes. */
static void add(vpps_program *p, const char *text, uint32_t words) {
    static const uint8_t kinds[] = {VPPS_STEP_LOAD,    VPPS_STEP_STORE,   VPPS_STEP_CONTRIBUTE,
                                    VPPS_STEP_RUN,     VPPS_STEP_RUN,     VPPS_STEP_RUN,
                                    VPPS_STEP_PRODUCT, VPPS_STEP_PRODUCT, VPPS_STEP_PRODUCT};
    vpps_program_step *s = &p->steps[p->n++];
    *s = (vpps_program_step){.kind = kinds[strchr(letters, *text) - letters], .axis = 1, .first = p->n_operands};
    s->to = operand_of(text + 1, *text == 'D' ? 1 : words);
    const char *from = text + 3;
    if (*text == 'B') s->product.start = operand_of(from, words), from += 2;
    for (; *from > ' '; from += 2, s->n++) p->operands[p->n_operands++] = operand_of(from, words);
    if (s->kind == VPPS_STEP_PRODUCT) s->product.transposed = *text == 'T';
    if (s->kind != VPPS_STEP_RUN) return;
    s->run.of.opcode = *text == 'D' ? VPPS_I_DOT : s->n > 1 ? VPPS_I_ADD : VPPS_I_TANH;
    s->run.tensors = (uint8_t)s->n;
    s->run.uniform = *text == 'U';
}

/* Returns what remains of a program over one list, whose vectors have so many words. */
static const char *left_of(const char *text, uint32_t words) {
    static char left[8 * MOST];
    vpps_program p = {.steps = calloc(MOST, sizeof *p.steps), .operands = calloc(2 * MOST, sizeof *p.operands)};
    for (; text; text = strchr(text, ' ') ? strchr(text, ' ') + 1 : NULL) add(&p, text, words);
    vpps_place_in_memory(&p);
    char *to = left;
    for (uint32_t i = 0; i < p.n; i++) {
        const vpps_program_step *s = &p.steps[i];
        const bool product = s->kind == VPPS_STEP_PRODUCT, start = product && s->product.start.place;
        to += sprintf(to, "%s%c%c%u", i ? " " : "", "L_?PSC"[s->kind], places[s->to.place], s -> to.at);
        if (s->kind == VPPS_STEP_RUN) to[-3] = s->run.uniform ? 'U' : s->run.of.opcode == VPPS_I_DOT ? 'D' : 'E';
        if (product) to[-3] = s->product.transposed ? 'T' : start ? 'B' : 'P';
        if (start) to += sprintf(to, "%c%u", places[s->product.start.place], s->product.start.at);
        for (const vpps_operand *o = p.operands + s->first; o < p.operands + s->first + s->n; o++)
            to += sprintf(to, "%c%u", o->shares ? 'R' : places[o->place], o->at);
    }
    VPPS_FREE(p.steps, p.operands);
    return left;
}

TEST_GROUP("in_place", .seconds = 10);

TEST(copies_go_where_steps_can_read_and_write_in_memory) {
    static const struct {
        const char *what, *program, *left;
        uint32_t words;
    } cases[] = {
        {"an input that is read where it is", "Ls0i5 Ds2s0s1", "Ds2i5s1", 8},
        {"read by all items at once, too", "Ls0i5 Ds2s0s1 Us3s0", "Ls0i5 Ds2s0s1 Us3s0", 8},
        {"a later load is of its own readers", "Ls0i5 Ds2s0s1 Ls0i5 Us3s0", "Ds2i5s1 Ls0i5 Us3s0", 8},
        {"wide items are worth a call each", "Ls0i5 Us1s0 Sr7s1", "Ur7i5", 64},
        {"narrow ones are not", "Ls0i5 Us1s0 Sr7s1", "Ls0i5 Us1s0 Sr7s1", 63},
        {"a record", "Ls0r5 Es2s0", "Es2r5", 16},
        {"a narrow record", "Ls0r5 Es2s0", "Ls0r5 Es2s0", 15},
        {"shares of a sum", "Ls0R5 Es2s0", "Ls0R5 Es2s0", 16},
        {"overwritten after the last reader", "Ls0r5 Es1s0 Pr5r9 Es2s1", "Es1r5 Pr5r9 Es2s1", 16},
        {"overwritten before it", "Ls0r5 Es1s0 Pr5r9 Es2s0", "Ls0r5 Es1s0 Pr5r9 Es2s0", 16},
        {"added to a product", "Ls0r5 Bs1s0r9", "Ls0r5 Bs1s0r9", 16},
        {"a contribution made where it is kept", "Es2s0s1 Cc7s2", "Ec7s0s1", 8},
        {"read once more", "Es2s0s1 Cc7s2 Es3s2", "Es2s0s1 Cc7s2 Es3s2", 8},
        {"a record that is read once more", "Es2s0s1 Sr7s2 Cc7s2 Ps4s2 Es3s2", "Er7s0s1 Cc7r7 Ps4r7 Es3r7", 16},
        {"by all items at once", "Es2s0s1 Sr7s2 Us3s2", "Es2s0s1 Sr7s2 Us3s2", 16},
        {"added to a product", "Es2s0s1 Sr7s2 Bs3s2r9", "Es2s0s1 Sr7s2 Bs3s2r9", 16},
        {"products", "Ps0r9 Sr7s0 Ts1r9 Sr8s1", "Pr7r9 Tr8r9", 8},
        {"a product over its operand", "Ts1r7 Sr7s1 Bs2r7r9 Sr7s2", "Ts1r7 Sr7s1 Bs2r7r9 Sr7s2", 8},
        {"an element over its operand's", "Ls0r7 Es1s0 Sr7s1", "Er7r7", 16},
        {"a sum over its operands", "Ls0r7 Ds1s0s0 Sr7s1", "Ds1r7r7 Sr7s1", 16},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (strcmp(left_of(cases[i].program, cases[i].words), cases[i].left))
            ck_abort_msg("%s: %s", cases[i].what, left_of(cases[i].program, cases[i].words));
}
