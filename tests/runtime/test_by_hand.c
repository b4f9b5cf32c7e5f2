/* test_by_hand.c - small cells and batches whose values and gradients are easy to compute by hand, on the CPU and under software SIMT: adjacent
 * biases, adjacent dropouts, the norm of a table's gradient. */
#include "common/gpu_tests.h"
#include "runtime/small_network.h"

static const sn_setting settings[] = {
    {.device = "cpu", .vps = 1}, {.device = "cpu", .vps = 3}, {.device = "simt", .vps = 2}};
enum { SIZE = 64 };

static vpps_param trained_vector(training *t, const char *name, float value) {
    vpps_param p;
    TEST_OK(vpps_add_vector(t->model, &p, name, SIZE, &(vpps_init){.kind = VPPS_INIT_CONSTANT, .a = value}));
    return p;
}

TEST_GROUP("by hand", .seconds = 120);

/* Adds W x + b and V x + c, and W x + b and W x + c: each bias must count exactly once. */
TEST_EACH(each_affine_has_its_bias, 0, 2 * SN_HERE) {
    const bool same_matrix = _i % 2;
    const vpps_options o = sn_options_on(&settings[_i / 2]);
    float y[SIZE], *out = y;
    vpps_param W[2];
    AT_END(training_end) training t = training_of(1);
    for (uint32_t k = 0; k < 2; k++)
        TEST_OK(vpps_add_matrix(t.model, &W[k], k ? "V" : "W", SIZE, SIZE,
                                &(vpps_init){.kind = VPPS_INIT_CONSTANT, .a = k && !same_matrix ? 0.5f : 0.25f}));
    const vpps_param b = trained_vector(&t, "b", 3), c = trained_vector(&t, "c", 5), v = trained_vector(&t, "v", 1);
    vpps_graph *r = begin_cell(t.model, "affines");
    const vpps_node x = vpps_pull(r, SIZE, 1);
    TEST_OK(vpps_push(r, vpps_add(r, vpps_affine1(r, b, W[0], x), vpps_affine1(r, c, W[same_matrix ? 0 : 1], x))));
    const vpps_cell cell = end_cell(r);
    training_start(&t, &o);
    const vpps_node pull = vpps_parameter(t.g, v);
    const vpps_node sum = vpps_pushed(t.g, APPLY(t.g, cell, PULLS(1, &pull)), 0);
    TEST_OK(vpps_forward(t.h, t.g, 1, &sum, &out));
    TEST_OK(vpps_backward(t.h, t.g, vpps_sum_elements(t.g, sum), NULL));
    TEST_OK(vpps_read_gradients(t.h));
    for (uint32_t i = 0; i < SIZE; i++) {
        ck_assert_float_eq(y[i], 3 + 5 + SIZE * (same_matrix ? 0.5f : 0.75f));
        ck_assert_float_eq(gradient_of(&t, b)[i], 1);
        ck_assert_float_eq(gradient_of(&t, c)[i], 1);
    }
}

/* Checks that one mask is not part of another: not even some elements on. */
static void expect_apart(const float *one, const float *other) {
    enum { OVERLAP = 24 };
    for (int shift = OVERLAP - SIZE; shift <= SIZE - OVERLAP; shift++) {
        int same = 0, common = 0;
        for (int i = 0; i < SIZE; i++) {
            if (i + shift < 0 || i + shift >= SIZE) continue;
            same += (one[i + shift] != 0) == (other[i] != 0);
            common++;
        }
        ck_assert_msg(same < common, "a mask is another one, %d elements on", shift);
    }
}

/* Two dropouts of a cell, and those of the cell's next vertex, have different masks of table entries; on a GPU the CPU's masks. */
TEST_EACH(each_dropout_has_its_mask, 0, SN_HERE) {
    enum { MASKS = 4, ROWS = 8, COLS = SIZE / ROWS };
    float masks[2][MASKS][SIZE];
    for (int setting = 0; setting <= _i; setting += _i ? _i : 1) {
        float(*mask)[SIZE] = masks[setting != 0];
        vpps_param v[MASKS];
        vpps_node sums[MASKS / 2];
        const vpps_options o = sn_options_on(&settings[setting]);
        AT_END(training_end) training t = training_of(1);
        for (uint32_t k = 0; k < MASKS; k++) v[k] = add_lookup(t.model, (char[]){(char)('a' + k), 0}, 1, ROWS, COLS);
        vpps_graph *r = begin_cell(t.model, "dropouts");
        const vpps_node x = vpps_dropout(r, vpps_pull(r, ROWS, COLS), 0.5f);
        TEST_OK(vpps_push(r, vpps_sum_elements(r, vpps_add(r, x, vpps_dropout(r, vpps_pull(r, ROWS, COLS), 0.5f)))));
        const vpps_cell cell = end_cell(r);
        training_start(&t, &o);
        for (uint32_t k = 0; k < MASKS; k += 2) {
            const vpps_node pulls[] = {vpps_lookup(t.g, v[k], 0), vpps_lookup(t.g, v[k + 1], 0)};
            sums[k / 2] = vpps_pushed(t.g, APPLY(t.g, cell, PULLS(2, pulls)), 0);
        }
        TEST_OK(vpps_backward(t.h, t.g, vpps_sum(t.g, MASKS / 2, sums), NULL));
        TEST_OK(vpps_read_gradients(t.h));
        for (uint32_t k = 0; k < MASKS; k++) memcpy(mask[k], gradient_of(&t, v[k]), sizeof mask[k]);
        for (uint32_t k = 0; k < MASKS; k++) {
            for (uint32_t i = 0; i < SIZE; i++) ck_assert(mask[k][i] == 0 || mask[k][i] == 2);
            for (uint32_t other = 0; other < k; other++) expect_apart(mask[k], mask[other]);
        }
    }
    ck_assert(!_i || !memcmp(masks[0], masks[1], sizeof masks[0]));
}

/* The gradients are 3 and -4 in turn, in entries of 2 x 8, one of which is looked up twice, and in a vector. */
TEST_EACH(the_norm_counts_all_elements_of_a_tables_entries, 0, SN_HERE) {
    enum { ROWS = 2, COLS = 8, ENTRY = ROWS * COLS };
    vpps_options o = sn_options_on(&settings[_i]);
    o.optimizer = (vpps_optimizer){.kind = VPPS_SGD, .lr = 1, .clip = 1e6f};
    float factors[ENTRY];
    for (uint32_t i = 0; i < ENTRY; i++) factors[i] = i % 2 ? -4 : 3;
    for (int clips = 0; clips < 2; clips++) {
        vpps_param E, v;
        const vpps_init zero = {.kind = VPPS_INIT_CONSTANT};
        if (clips) o.optimizer.clip = sqrtf((9 + 16) / 2.0f * ENTRY * (1 + 1 + 2 * 2)) / 4;
        AT_END(training_end) training t = training_of(1);
        TEST_OK(vpps_add_lookup(t.model, &E, "E", 5, ROWS, COLS, &zero));
        TEST_OK(vpps_add_vector(t.model, &v, "v", ENTRY, &zero));
        training_start(&t, &o);
        const vpps_node by = vpps_input(t.g, ROWS, COLS, factors);
        const vpps_node terms[] = {vpps_dot(t.g, vpps_lookup(t.g, E, 1), by), vpps_dot(t.g, vpps_lookup(t.g, E, 3), by),
                                   vpps_dot(t.g, vpps_lookup(t.g, E, 3), by),
                                   vpps_dot(t.g, vpps_parameter(t.g, v), vpps_input(t.g, ENTRY, 1, factors))};
        train_batch(t.h, t.g, vpps_sum(t.g, 4, terms));
        TEST_OK(vpps_read_parameters(t.h));
        const float by_clipping = clips ? 0.25f : 1;
        for (uint32_t i = 0; i < 5 * ENTRY; i++) {
            const float times = i / ENTRY == 1 ? 1 : i / ENTRY == 3 ? 2 : 0;
            ck_assert_float_eq_tol(vpps_param_values(t.model, E)[i], -factors[i % ENTRY] * times * by_clipping, 1e-5f);
        }
        for (uint32_t i = 0; i < ENTRY; i++)
            ck_assert_float_eq_tol(vpps_param_values(t.model, v)[i], -factors[i] * by_clipping, 1e-5f);
    }
}
