/* test_schedule.c - the scheduler of nodes at its limits: more of something than an instruction's length can count, 2^22 - 1,
 * and no memory. */
#include "common/refusing.h"
#include "fixture.h"

enum { LIMIT = 1 << 22, MOST_ARGUMENTS = 1 << 20, POOL_WORDS = 1 << 28 };

typedef struct scheduled {
    vpps_model *model;
    vpps_graph *g;
    vpps_plan plan;
    vpps_scheduler *s;
    vpps_optimizer optimizer;
} scheduled;

static void open_model(scheduled *c) {
    *c = (scheduled){.optimizer = {.kind = VPPS_SGD, .lr = 0.1f, .clip = 1}};
    TEST_OK(vpps_model_create(&c->model, 1));
    TEST_OK(vpps_graph_create(&c->g, c->model));
    TEST_OK(vpps_scheduler_create(&c->s));
}

static vpps_status schedule(scheduled *c, vpps_node loss, const vpps_node *outputs, uint32_t n_outputs) {
    const vpps_request request = {
        .loss = loss, .outputs = outputs, .n_outputs = n_outputs, .optimizer = &c->optimizer, .step = 1};
    return vpps_schedule(c->s, &c->plan, c->g, &request);
}

static void close_model(scheduled *c) {
    vpps_scheduler_destroy(c->s);
    plan_destroy(&c->plan);
    vpps_graph_destroy(c->g);
    vpps_model_destroy(c->model);
}

/* What VP 0's instructions with this opcode work on, beginning with `first`: their lengths one after the other, without
 * a gap. Operand `which` says where each begins, `step` words further for each that is counted. */
static uint64_t covered(const scheduled *c, vpps_opcode opcode, uint32_t which, uint32_t step, uint32_t *pieces) {
    const uint32_t *script = c->s->script, *starts = vpps_script_starts(script);
    uint64_t sum = 0;
    uint32_t next = 0;
    *pieces = 0;
    for (const uint32_t *at = script + starts[0], *end = script + starts[1]; at < end;
         at += vpps_instruction_words(at, end)) {
        if (vpps_word_opcode(*at) != VPPS_I_CALL) continue;
        const uint32_t *in = script + at[1], *to = in + vpps_word_length(*at);
        for (uint32_t n; in < to; in += n) {
            ck_assert_uint_gt(n = vpps_instruction_words(in, to), 0); /* segments end where an instruction does */
            if (vpps_word_opcode(*in) != (uint32_t)opcode) continue;
            if (*pieces) ck_assert_uint_eq(in[which], next);
            next = in[which] + vpps_word_length(*in) * step;
            sum += vpps_word_length(*in);
            ++*pieces;
        }
    }
    return sum;
}

START_TEST(vectors_beyond_a_length_are_split)
    {
        enum { COLS = LIMIT / 2 + 1 };
        scheduled c;
        vpps_param W, E;
        vpps_node sums[2];
        uint32_t pieces;
        open_model(&c);
        TEST_OK(vpps_add_matrix(c.model, &W, "W", 1, 1, NULL));
        TEST_OK(vpps_add_lookup(c.model, &E, "E", 2, 1, COLS, &(vpps_init){.kind = VPPS_INIT_CONSTANT}));
        ck_assert(plan_create(&c.plan, c.model, 1, POOL_WORDS));
        for (uint32_t i = 0; i < 2; i++) {
            sums[i] = vpps_sum_elements(c.g, vpps_matvec(c.g, W, vpps_lookup(c.g, E, i)));
        }
        TEST_OK(schedule(&c, vpps_sum(c.g, 2, sums), NULL, 0));
        static const vpps_opcode opcodes[] = {VPPS_I_AFFINE, VPPS_I_AFFINE_T, VPPS_I_OUTER};
        for (size_t i = 0; i < VPPS_COUNT(opcodes); i++) {
            ck_assert_uint_eq(covered(&c, opcodes[i], 1, 1, &pieces), 2 * (uint64_t)COLS);
            ck_assert_uint_eq(pieces, 2);
        }
        close_model(&c);
    }
END_TEST

START_TEST(rows_beyond_a_length_are_split)
    {
        enum { ROWS = LIMIT + 1, SUMS = LIMIT / MOST_ARGUMENTS + 1 };
        scheduled c;
        vpps_param E;
        vpps_node *rows = malloc(MOST_ARGUMENTS * sizeof *rows), sums[SUMS];
        uint32_t pieces;
        ck_assert_ptr_nonnull(rows);
        open_model(&c);
        TEST_OK(vpps_add_lookup(c.model, &E, "E", ROWS, 1, 1, &(vpps_init){.kind = VPPS_INIT_CONSTANT}));
        ck_assert(plan_create(&c.plan, c.model, 1, POOL_WORDS));
        for (uint32_t first = 0, n; first < ROWS; first += n) {
            n = vpps_min_u32(ROWS - first, MOST_ARGUMENTS);
            for (uint32_t i = 0; i < n; i++) rows[i] = vpps_lookup(c.g, E, first + i);
            sums[first / MOST_ARGUMENTS] = vpps_sum(c.g, n, rows);
        }
        free(rows);
        TEST_OK(schedule(&c, vpps_sum(c.g, SUMS, sums), NULL, 0));
        ck_assert_uint_eq(covered(&c, VPPS_I_NORM_ROWS, 2, 2, &pieces), ROWS);
        ck_assert_uint_eq(pieces, 2);
        ck_assert_uint_eq(covered(&c, VPPS_I_UPDATE_ROWS, 2, 2, &pieces), ROWS);
        close_model(&c);
    }
END_TEST

START_TEST(segments_beyond_a_length_are_called_in_pieces)
    {
        enum { SUMS = LIMIT / MOST_ARGUMENTS + 1, ROWS = 32 };
        static const float data[ROWS] = {0};
        scheduled c;
        vpps_node sums[SUMS], *terms = malloc(MOST_ARGUMENTS * sizeof *terms);
        uint32_t pieces;
        ck_assert_ptr_nonnull(terms);
        open_model(&c);
        ck_assert(plan_create(&c.plan, c.model, 1, POOL_WORDS));
        terms[0] = vpps_input(c.g, ROWS, 1, data);
        for (uint32_t i = 1; i < MOST_ARGUMENTS; i++) terms[i] = terms[0];
        for (uint32_t i = 0; i < SUMS; i++) sums[i] = vpps_sum(c.g, MOST_ARGUMENTS, terms);
        free(terms);
        TEST_OK(schedule(&c, VPPS_NO_NODE, sums, SUMS));
        ck_assert_uint_eq(covered(&c, VPPS_I_SUM, 0, 0, &pieces), SUMS * (uint64_t)ROWS);
        ck_assert_uint_eq(pieces, SUMS);
        close_model(&c);
    }
END_TEST

/* An instruction that is longer than that cannot be called. */
START_TEST(what_cannot_be_split_is_an_error_with_its_number)
    {
        enum { CHILDREN = LIMIT, ROWS = 32 };
        static const float data[ROWS] = {0};
        scheduled c;
        vpps_cell cell;
        vpps_graph *r;
        vpps_vertex *children = malloc(CHILDREN * sizeof *children);
        ck_assert_ptr_nonnull(children);
        open_model(&c);
        ck_assert(plan_create(&c.plan, c.model, 1, POOL_WORDS));
        TEST_OK(vpps_cell_begin(c.model, "sum", &r));
        const vpps_node list = vpps_gather_list(r, 0, ROWS, 1);
        TEST_OK(vpps_scatter(r, vpps_sum(r, 1, &list)));
        TEST_OK(vpps_cell_end(r, &cell));
        const vpps_node x = vpps_input(c.g, ROWS, 1, data);
        const vpps_vertex child = vpps_source(c.g, 1, &x);
        for (uint32_t i = 0; i < CHILDREN; i++) children[i] = child;
        const vpps_vertex v =
            vpps_apply(c.g, &(vpps_application){.cell = cell, .n_children = CHILDREN, .children = children});
        const vpps_node sum = vpps_scattered(c.g, v, 0);
        TEST_OK(vpps_graph_status(c.g));
        TEST_FAILS(schedule(&c, VPPS_NO_NODE, &sum, 1), VPPS_POOL, "an instruction CALL of 41943"); /* 04 and a few */
        free(children);
        close_model(&c);
    }
END_TEST

/* Every allocation refused in turn: the next call makes the script that was to be made. */
START_TEST(a_script_can_be_made_again)
    {
        uint32_t *right = NULL, k = 0;
        size_t words = 0;
        for (bool more = true; more; k++) { /* allocation 0 is none */
            scheduled c;
            vpps_param W, E, T;
            open_model(&c);
            TEST_OK(vpps_add_matrix(c.model, &W, "W", 33, 33, NULL));
            TEST_OK(vpps_add_lookup(c.model, &E, "E", 10, 33, 1, NULL));
            TEST_OK(vpps_add_lookup(c.model, &T, "T", 10, 33, 1, NULL));
            ck_assert(plan_create(&c.plan, c.model, 3, 1 << 16));
            vpps_node h = vpps_tanh(c.g, vpps_add(c.g, vpps_lookup(c.g, E, 1), vpps_lookup(c.g, T, 2)));
            for (uint32_t i = 0; i < 4; i++) h = vpps_mul(c.g, vpps_matvec(c.g, W, h), vpps_lookup(c.g, E, i));
            const vpps_node loss = vpps_sum_elements(c.g, h);
            if (k) more = REFUSING(k, schedule(&c, loss, NULL, 0));
            if (!k || more) TEST_OK(schedule(&c, loss, NULL, 0));
            if (!k) {
                words = c.s->script_words;
                ck_assert_ptr_nonnull(right = malloc(words * sizeof *right));
                memcpy(right, c.s->script, words * sizeof *right);
            }
            ck_assert_msg(c.s->script_words == words && !memcmp(c.s->script, right, words * sizeof *right),
                          "another script after allocation %u was refused", k);
            close_model(&c);
        }
        ck_assert_uint_gt(k, 20);
        free(right);
    }
END_TEST

int main(void) {
    Suite *suite = suite_create("schedule");
    TCase *t = tcase_create("schedule");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, vectors_beyond_a_length_are_split);
    tcase_add_test(t, rows_beyond_a_length_are_split);
    tcase_add_test(t, segments_beyond_a_length_are_called_in_pieces);
    tcase_add_test(t, what_cannot_be_split_is_an_error_with_its_number);
    if (CAN_REFUSE) tcase_add_test(t, a_script_can_be_made_again);
    if (!CAN_REFUSE) REFUSING_LEFT_OUT();
    suite_add_tcase(suite, t);
    return test_main(suite);
}
