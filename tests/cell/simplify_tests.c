/* simplify_tests.c - which operations simplify.c leaves out: each rule, by the remaining operations. */
#include "cell/print.h"
#include "cells.h"
#include "common/training.h"

/* Returns the operations of a cell as text: "0.5 * in0; tanh(t2)". The caller frees it. */
static char *operations(const vpps_model *model, const vpps_compiled_cell *c) {
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    const char *between = "";
    for (uint32_t v = 0; v < c->n_values; v++) {
        if (c->values[v].kind <= VPPS_VALUE_LOOKUP || c->values[v].kind == VPPS_VALUE_PARAMETER) continue;
        char *value = vpps_value_text(model, c, v);
        fprintf(out, "%s%s", between, value);
        free(value);
        between = "; ";
    }
    fclose(out);
    return text;
}

/* Simplifies c and checks the remaining operations. */
static void check(const vpps_model *model, vpps_compiled_cell *c, const char *expected) {
    TEST_OK(vpps_simplify(c));
    FREED char *text = operations(model, c);
    ck_assert_msg(strcmp(text, expected) == 0, "\"%s\" is left; expected \"%s\"", text, expected);
}

/* ---------------------------------------------------------------- cells as they are recorded */

#define NODES(...) ((const vpps_node[]){__VA_ARGS__})

static vpps_node sum_of_scaled(vpps_graph *g, vpps_node x, vpps_node y) {
    const vpps_node list = vpps_pull_list(g, HIDDEN, 1), each = vpps_scale_by(g, list, vpps_dot(g, list, x)),
                    all = vpps_scale_by(g, list, vpps_dot(g, x, y)), scaled[] = {each, each, all};
    return vpps_add(g, vpps_sum(g, 1, scaled), vpps_add(g, vpps_sum(g, 2, scaled), vpps_sum(g, 1, scaled + 2)));
}

/* Makes a vector of HIDDEN rows from x and y, and what remains of it and of its tanh. a and b are for nodes that must come first. */
#define EACH_RULE(X)                                                                                                   \
    X(vpps_scale(g, x, 1), "tanh(in0)")                                                                                \
    X(vpps_scale(g, vpps_scale(g, x, 0.5f), 4), "2 * in0; tanh(t2)")                                                   \
    X(vpps_scale(g, vpps_scale(g, x, 0.5f), 2), "tanh(in0)")                                                           \
    X(vpps_scale(g, vpps_scale(g, x, 1e-25f), 1e-25f), "1e-25 * in0; 1e-25 * t2; tanh(t3)")                            \
    X(vpps_scale(g, vpps_scale(g, x, 1e20f), 1e-20f), "1e+20 * in0; 1e-20 * t2; tanh(t3)")                             \
    X(vpps_scale(g, x, -1), "-in0; tanh(t2)")                                                                          \
    X(vpps_negate(g, vpps_negate(g, x)), "tanh(in0)")                                                                  \
    X(vpps_negate(g, vpps_scale(g, x, 0.5f)), "-0.5 * in0; tanh(t2)")                                                  \
    X(vpps_scale(g, vpps_negate(g, x), 0.5f), "-0.5 * in0; tanh(t2)")                                                  \
    X(vpps_add(g, x, vpps_negate(g, y)), "in0 - in1; tanh(t2)")                                                        \
    X(vpps_add(g, vpps_negate(g, x), y), "in1 - in0; tanh(t2)")                                                        \
    X(vpps_sub(g, x, vpps_negate(g, y)), "in0 + in1; tanh(t2)")                                                        \
    X(vpps_mul(g, vpps_negate(g, x), vpps_negate(g, y)), "in0 * in1; tanh(t2)")                                        \
    X(vpps_mul(g, vpps_sigmoid(g, x), vpps_sigmoid(g, x)), "sigmoid(in0); t2 * t2; tanh(t3)")                          \
    X((a = vpps_add(g, x, y), vpps_mul(g, a, vpps_sum(g, 2, NODES(y, x)))), "in0 + in1; t2 * t2; tanh(t3)")            \
    X((a = vpps_sub(g, x, y), vpps_mul(g, a, vpps_sub(g, y, x))), "in0 - in1; in1 - in0; t2 * t3; tanh(t4)")           \
    X((a = vpps_elu(g, x, 0.5f), vpps_add(g, a, vpps_elu(g, x, 0.75f))),                                               \
      "elu(in0, 0.5); elu(in0, 0.75); t2 + t3; tanh(t4)")                                                              \
    X(vpps_sum(g, 1, &x), "tanh(in0)")                                                                                 \
    X(vpps_average(g, 1, &x), "tanh(in0)")                                                                             \
    X(vpps_sum(g, 2, NODES(x, y)), "in0 + in1; tanh(t2)")                                                              \
    X(vpps_average(g, 2, NODES(x, y)), "0.5 * (in0 + in1); tanh(t2)")                                                  \
    X((a = vpps_sum(g, 3, NODES(x, y, x)), vpps_mul(g, a, vpps_sum(g, 4, NODES(x, y, x, y)))),                         \
      "in0 + in1 + in0; in0 + in1 + in0 + in1; t2 * t3; tanh(t4)")                                                     \
    X((a = vpps_zeros(g, HIDDEN, 1), b = vpps_ones(g, HIDDEN, 1), vpps_sum(g, 5, NODES(a, x, y, a, b))),               \
      "1; in0 + in1 + t2; tanh(t3)")                                                                                   \
    X((a = vpps_zeros(g, HIDDEN, 1), vpps_mul(g, x, vpps_one_minus(g, vpps_sum(g, 2, NODES(a, a))))), "tanh(in0)")     \
    X((a = vpps_sub(g, vpps_ones(g, HIDDEN, 1), x), vpps_mul(g, a, vpps_add(g, y, vpps_one_minus(g, x)))),             \
      "1 - in0; in1 + t2; t2 * t3; tanh(t4)")                                                                          \
    X(sum_of_scaled(g, x, y),                                                                                          \
      "dot(in2, in0); t3 * in2; dot(in0, in1); t5 * in2; sum(t6...); sum(t4..., t4...); t7 + t8; "                     \
      "weighted_sum(t3..., in2...); t9 + t10; tanh(t11)")                                                              \
    X(vpps_dropout(g, x, 0), "tanh(in0)")                                                                              \
    X((vpps_exp(g, vpps_mul(g, x, y)), x), "tanh(in0)")                                                                \
    X(vpps_concat(g, 1, &x), "tanh(in0)")                                                                              \
    X(vpps_slice(g, x, 0, HIDDEN), "tanh(in0)")                                                                        \
    X(vpps_slice(g, vpps_slice(g, x, 5, 30), 7, 11), "in0[12:23]; tanh(t2)")                                           \
    X(vpps_slice(g, vpps_concat(g, 2, NODES(x, y)), HIDDEN, HIDDEN), "tanh(in1)")                                      \
    X(vpps_slice(g, vpps_concat(g, 2, NODES(x, y)), HIDDEN + 3, 5), "in1[3:8]; tanh(t2)")                              \
    X(vpps_slice(g, vpps_concat(g, 2, NODES(x, y)), HIDDEN - 1, 2), "[in0; in1]; t2[47:49]; tanh(t3)")

TEST_GROUP("simplify");

TEST(rules) {
    AT_END(training_end) training t = training_of(1);
#define X(expression, expected)                                                                                        \
    {                                                                                                                  \
        vpps_graph *g = begin_cell(t.model, "rule");                                                                   \
        vpps_node x = vpps_pull(g, HIDDEN, 1), y = vpps_pull(g, HIDDEN, 1), a = x, b = y;                              \
        (void)a, (void)b;                                                                                              \
        TEST_OK(vpps_push(g, vpps_tanh(g, expression)));                                                               \
        OWNED(vpps_compiled_cell) *c =                                                                                 \
            cells_lower(t.g, end_cell(g), &(vpps_cell_needs){.training = true, .read_out = 1, .group = 1});            \
        check(t.model, c, expected);                                                                                   \
    }
    EACH_RULE(X)
#undef X
}

/* ---------------------------------------------------------------- constants */

#define IN (-1000.0f) /* an operand that is the input */

static const struct {
    uint8_t opcode;
    float a, b; /* the operands; of SCALE, b is the factor */
    const char *expected;
} constants[] = {
    {VPPS_I_ADD, IN, 0, "tanh(in0)"},
    {VPPS_I_ADD, 0, IN, "tanh(in0)"},
    {VPPS_I_ADD, IN, 2, "2; in0 + t1; tanh(t2)"},
    {VPPS_I_ADD, 2, 3, "5; tanh(t1)"},
    {VPPS_I_SUB, IN, 0, "tanh(in0)"},
    {VPPS_I_SUB, 0, IN, "-in0; tanh(t1)"},
    {VPPS_I_SUB, 1, IN, "1 - in0; tanh(t1)"},
    {VPPS_I_SUB, 2, IN, "2; t1 - in0; tanh(t2)"},
    {VPPS_I_SUB, 2, 3, "-1; tanh(t1)"},
    {VPPS_I_MUL, IN, 1, "tanh(in0)"},
    {VPPS_I_MUL, 1, IN, "tanh(in0)"},
    {VPPS_I_MUL, -1, IN, "-in0; tanh(t1)"},
    {VPPS_I_MUL, IN, 2.5f, "2.5 * in0; tanh(t1)"},
    {VPPS_I_MUL, 2, 3, "6; tanh(t1)"},
    {VPPS_I_DIV, IN, 1, "tanh(in0)"},
    {VPPS_I_DIV, IN, 2, "2; in0 / t1; tanh(t2)"},
    {VPPS_I_DIV, 1, IN, "1 / in0; tanh(t1)"},
    {VPPS_I_DIV, 2, IN, "2; t1 / in0; tanh(t2)"},
    {VPPS_I_SCALE, IN, 1, "tanh(in0)"},
    {VPPS_I_ONE_MINUS, 3, 0, "-2; tanh(t1)"},
};

static uint32_t add_run(vpps_compiled_cell *c, uint32_t opcode, float f, uint32_t n, const uint32_t *args) {
    vpps_cell_value v = {.kind = VPPS_VALUE_RUN, .rows = HIDDEN, .cols = 1};
    v.run = (vpps_cell_run){.opcode = (uint8_t)opcode, .table = VPPS_NO_PARAM};
    if (strchr(vpps_instructions[opcode].operands, 'f')) v.run.f = vpps_real_number(f);
    const uint32_t at = vpps_cell_add(c, v);
    for (uint32_t i = 0; i < n; i++) ck_assert(vpps_cell_add_arg(c, args[i], 0, VPPS_NO_PARAM));
    return at;
}

/* Makes a compiled cell of one input and one output, without recording. */
static vpps_compiled_cell *open_by_hand(void) {
    vpps_compiled_cell *c = need(calloc(1, sizeof *c));
    c->name = strdup("by hand");
    c->needs = (vpps_cell_needs){.read_out = 1, .group = 1};
    c->inputs[c->n_inputs++] = (vpps_cell_input){.rows = HIDDEN, .cols = 1, .pulled = true};
    const vpps_cell_value x = {.kind = VPPS_VALUE_INPUT, .rows = HIDDEN, .cols = 1};
    ck_assert_uint_eq(vpps_cell_add(c, x), 0);
    return c;
}

static void give(vpps_compiled_cell *c, uint32_t value) {
    c->outputs[c->n_outputs++] = (vpps_cell_output){.value = value};
    c->n_forward = c->n_values;
}

static void check_by_hand(vpps_compiled_cell *c, const char *expected) {
    OWNED(vpps_model) *model = new_model(1);
    check(model, c, expected);
    vpps_compiled_cell_free(c);
}

TEST_EACH(constant_rules, 0, VPPS_COUNT(constants)) {
    const uint32_t opcode = constants[_i].opcode;
    const uint32_t n = vpps_instructions[opcode].operands[1] == 't' ? 2 : 1;
    const float operands[] = {constants[_i].a, constants[_i].b};
    vpps_compiled_cell *c = open_by_hand();
    uint32_t args[2];
    for (uint32_t k = 0; k < n; k++) args[k] = operands[k] == IN ? 0 : add_run(c, VPPS_I_FILL, operands[k], 0, NULL);
    const uint32_t y = add_run(c, opcode, opcode == VPPS_I_SCALE ? operands[1] : 0, n, args);
    give(c, add_run(c, VPPS_I_TANH, 0, 1, &y));
    check_by_hand(c, constants[_i].expected);
}

TEST(scale_by_a_constant) {
    vpps_compiled_cell *c = open_by_hand();
    const uint32_t three = add_run(c, VPPS_I_FILL, 3, 0, NULL);
    c->values[three].rows = 1;
    const uint32_t args[] = {0, three}, y = add_run(c, VPPS_I_SCALE_BY, 0, 2, args);
    give(c, add_run(c, VPPS_I_TANH, 0, 1, &y));
    check_by_hand(c, "3 * in0; tanh(t1)");
}

/* Several rules apply in a row: -(2 * (-(x * 1 + 0))). */
TEST(rules_follow_rules) {
    vpps_compiled_cell *c = open_by_hand();
    const uint32_t one = add_run(c, VPPS_I_FILL, 1, 0, NULL), zero = add_run(c, VPPS_I_FILL, 0, 0, NULL);
    const uint32_t product[] = {0, one}, y = add_run(c, VPPS_I_MUL, 0, 2, product);
    const uint32_t sum[] = {zero, y}, z = add_run(c, VPPS_I_ADD, 0, 2, sum);
    const uint32_t minus = add_run(c, VPPS_I_NEG, 0, 1, &z), twice = add_run(c, VPPS_I_SCALE, 2, 1, &minus);
    give(c, add_run(c, VPPS_I_NEG, 0, 1, &twice));
    check_by_hand(c, "2 * in0");
}

/* ---------------------------------------------------------------- parts that are placed */

/* Sums of the input's rows in other places: `rows` of them from row `from` on are placed from row `at` on. */
static const struct {
    uint32_t n;
    struct {
        uint32_t from, rows, at;
    } parts[3];
    const char *expected;
} placed[] = {
    {3, {{0, 5, 0}, {2, 10, 5}, {1, HIDDEN - 15, 15}}, "in0[0:5]; in0[2:12]; in0[1:34]; [t1; t2; t3]; tanh(t4)"},
    {3,
     {{0, 5, HIDDEN - 5}, {2, 10, 0}, {1, HIDDEN - 15, 10}},
     "in0[0:5]; in0[2:12]; in0[1:34]; [t2; t3; t1]; tanh(t4)"},
    {2, {{1, 4, HIDDEN - 4}, {0, HIDDEN - 4, 0}}, "in0[1:5]; in0[0:44]; [t2; t1]; tanh(t3)"},
    {2,
     {{1, 4, HIDDEN - 4}, {0, HIDDEN - 5, 0}},
     "in0[1:5]; 0, but t1 from row 44 on; in0[0:43]; 0, but t3 from row 0 on; t2 + t4; tanh(t5)"},
    {2,
     {{1, 4, HIDDEN - 4}, {0, HIDDEN - 3, 0}},
     "in0[1:5]; 0, but t1 from row 44 on; in0[0:45]; 0, but t3 from row 0 on; t2 + t4; tanh(t5)"},
    {3,
     {{0, 24, 0}, {2, 24, 24}, {3, 24, 24}},
     "in0[0:24]; 0, but t1 from row 0 on; in0[2:26]; 0, but t3 from row 24 on; in0[3:27]; 0, but t5 from row 24 on; "
     "t2 + t4 + t6; tanh(t7)"},
};

TEST_EACH(placed_parts_are_stacked, 0, VPPS_COUNT(placed)) {
    vpps_compiled_cell *c = open_by_hand();
    uint32_t args[3];
    for (uint32_t k = 0; k < placed[_i].n; k++) {
        const uint32_t zero = 0, part = add_run(c, VPPS_I_SLICE, 0, 1, &zero);
        c->values[part].rows = placed[_i].parts[k].rows;
        c->values[part].run.u = vpps_whole_number(placed[_i].parts[k].from);
        args[k] = add_run(c, VPPS_I_PLACE, 0, 1, &part);
        c->values[args[k]].run.u = vpps_whole_number(placed[_i].parts[k].at);
    }
    const uint32_t sum = add_run(c, placed[_i].n == 2 ? VPPS_I_ADD : VPPS_I_SUM, 1, placed[_i].n, args);
    give(c, add_run(c, VPPS_I_TANH, 0, 1, &sum));
    check_by_hand(c, placed[_i].expected);
}

/* ---------------------------------------------------------------- outputs */

/* An output has a place of its own, even if it equals another value. */
TEST(outputs_have_places) {
    vpps_compiled_cell *c = open_by_hand();
    const uint32_t zero = 0, y = add_run(c, VPPS_I_TANH, 0, 1, &zero), z = add_run(c, VPPS_I_TANH, 0, 1, &zero);
    give(c, y);
    give(c, z);
    give(c, add_run(c, VPPS_I_COPY, 0, 1, &y));
    c->needs.read_out = 7;
    check_by_hand(c, "tanh(in0); tanh(in0); t1");
}

/* ---------------------------------------------------------------- outputs that nobody reads */

static vpps_compiled_cell *compile_tagger(const cells *x, bool trains, uint64_t read_out) {
    vpps_cell_needs needs = cells_recurrent(x->g, x->cell[CELL_tagger], 1);
    needs.training = trains;
    needs.read_out = read_out;
    needs.gradient_out = read_out;
    return cells_compile(x->g, x->cell[CELL_tagger], &needs);
}

static uint32_t count_runs(const vpps_compiled_cell *c, uint32_t opcode) {
    uint32_t n = 0;
    for (uint32_t v = 0; v < c->n_values; v++) n += vpps_is_run(&c->values[v], opcode);
    return n;
}

/* The cell's outputs are h, c, logits and loss. In inference nobody reads the loss, or only the state is read. */
TEST(dead_in_inference) {
    AT_END(cells_close) cells x = cells_open();
    OWNED(vpps_compiled_cell) *logits = compile_tagger(&x, false, 7), *state = compile_tagger(&x, false, 3);
    ck_assert_uint_eq(logits->outputs[3].value, VPPS_NONE);
    ck_assert_uint_eq(count_runs(logits, VPPS_I_CROSS_ENTROPY), 0);
    ck_assert_uint_ne(logits->outputs[2].value, VPPS_NONE);
    for (uint32_t i = 0; i < state->n_args; i++) ck_assert_uint_ne(state->args[i].matrix, cells_param(&x, "C"));
    for (uint32_t i = 0; i < state->n_stages; i++) ck_assert_uint_ne(state->stages[i].pass, VPPS_PASS_LAZY);
    cells_prove(x.g, x.cell[CELL_tagger], logits);
    cells_prove(x.g, x.cell[CELL_tagger], state);
}

/* Returns whether another value shares the place of the logits, the operand of CROSS_ENTROPY. */
static bool logits_share(const vpps_compiled_cell *c) {
    uint32_t logits = VPPS_NONE;
    bool shared = false;
    for (uint32_t v = 0; v < c->n_values; v++) {
        const vpps_cell_value *x = &c->values[v];
        if (vpps_is_run(x, VPPS_I_CROSS_ENTROPY)) logits = c->args[x->first_arg].value;
    }
    ck_assert(logits != VPPS_NONE && c->values[logits].kept);
    for (uint32_t v = 0; v < c->n_values; v++)
        shared |= v != logits && c->values[v].kept && c->values[v].offset == c->values[logits].offset;
    return shared;
}

/* In training only the loss reads the logits, so that their gradient can take their place. */
TEST(unread_output_shares_its_place) {
    AT_END(cells_close) cells x = cells_open();
    OWNED(vpps_compiled_cell) *all = compile_tagger(&x, true, 15), *loss = compile_tagger(&x, true, 11);
    ck_assert(!logits_share(all) && logits_share(loss));
    cells_prove(x.g, x.cell[CELL_tagger], loss);
}
