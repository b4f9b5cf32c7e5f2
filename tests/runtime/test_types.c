/* test_types.c - types of vertices that no batch uses any more are dropped: a program that keeps inventing shapes does not use more and more memory,
 * and a type that is needed again is made again. */
#include "common/training.h"
#include "runtime/handle.h"

#include <malloc.h>

enum { LENGTH = 512, ROWS = 5, KEPT = 1024, LATE = 10 };

typedef struct setting {
    vpps_model *model;
    vpps_graph *g;
    vpps_handle *h;
    vpps_param table, W;
    vpps_cell cell, late;
} setting;

static vpps_cell record(const setting *s, vpps_node (*op)(vpps_graph *g, vpps_node x)) {
    vpps_graph *r = begin_cell(s->model, "cell");
    TEST_OK(vpps_scatter(r, op(r, vpps_affine1(r, VPPS_NO_PARAM, s->W, vpps_pull(r, LENGTH, 1)))));
    return end_cell(r);
}

static setting open_setting(bool verify, uint32_t trace_events) {
    setting s = {.model = new_model(3)};
    s.table = add_lookup(s.model, "T", ROWS, LENGTH, 1);
    s.W = add_matrix(s.model, "W", 4, LENGTH);
    s.cell = record(&s, vpps_tanh);
    s.late = record(&s, vpps_square);
    s.g = new_graph(s.model);
    vpps_options o = default_options();
    o.vps = 2;
    o.optimizer.lr = 0;
    o.verify = verify;
    o.trace_events = trace_events;
    s.h = new_handle(s.model, &o);
    return s;
}

static void close_setting(setting *s) { training_end(&(training){s->model, s->g, s->h}); }

static uint32_t kept(const setting *s) { return s->h->history.n_types + s->h->history.n_compiled; }

/* Builds a batch with a cell, from batch LATE on with another cell too, and with types of vertices that depend on `kind`: two slices, and a sum over
 * one. So the other cell's type comes after types that are dropped. */
static vpps_node build(const setting *s, uint32_t kind) {
    vpps_graph *g = s->g;
    vpps_graph_clear(g);
    const vpps_node x = vpps_tanh(g, vpps_lookup(g, s->table, kind % ROWS));
    const vpps_vertex v = APPLY(g, s->cell, PULLS(1, &x));
    const uint32_t first = kind % (LENGTH - 8), n = 1 + kind / (LENGTH - 8) % 8;
    vpps_node parts[4] = {vpps_sum_elements(g, vpps_scattered(g, v, 0)),
                          vpps_sum_elements(g, vpps_square(g, vpps_slice(g, x, first, n))),
                          vpps_sum_elements(g, vpps_slice(g, x, first + 1, 1))};
    if (kind < LATE) return vpps_sum(g, 3, parts);
    const vpps_vertex late = APPLY(g, s->late, PULLS(1, &x));
    parts[3] = vpps_sum_elements(g, vpps_scattered(g, late, 0));
    return vpps_sum(g, 4, parts);
}

static double loss_of(const setting *s, uint32_t kind) {
    double w = 0, squares = 0;
    const float *row = vpps_param_values(s->model, s->table) + (size_t)(kind % ROWS) * LENGTH;
    const float *W = vpps_param_values(s->model, s->W);
    const uint32_t first = kind % (LENGTH - 8), n = 1 + kind / (LENGTH - 8) % 8;
    for (uint32_t r = 0; r < 4; r++) {
        double sum = 0;
        for (uint32_t i = 0; i < LENGTH; i++) sum += (double)W[r * LENGTH + i] * tanh((double)row[i]);
        w += tanh(sum) + (kind < LATE ? 0 : sum * sum);
    }
    for (uint32_t i = 0; i < n; i++) squares += pow(tanh((double)row[first + i]), 2);
    return w + squares + tanh((double)row[first + 1]);
}

TEST_GROUP("types", .seconds = 120);

/* Each batch is new, and runs while the next one is made. Every loss is right; the number of types and the memory are limited. */
TEST(ever_new_types_do_not_grow) {
    enum { BATCHES = 1500, TOLD = 7 };
    AT_END(close_setting) setting s = open_setting(false, 0);
    size_t used[2] = {0, 0};
    for (uint32_t b = 0; b < BATCHES; b++) {
        float stale;
        TEST_OK(vpps_fb(s.h, s.g, build(&s, b), &stale));
        if (b % TOLD == 1) ck_assert_float_eq_tol(stale, (float)loss_of(&s, b - 1), 1e-4f);
        ck_assert_uint_le(kept(&s), KEPT + 16);
        const size_t now = mallinfo2().uordblks;
        if (b >= BATCHES / 3 && now > used[b >= 2 * BATCHES / 3]) used[b >= 2 * BATCHES / 3] = now;
    }
    ck_assert_msg(used[1] <= used[0] + used[0] / 20, "%zu bytes in use, %zu before", used[1], used[0]);
}

/* The oldest types are dropped first; a type that is needed again is compiled again; the latest batch's types stay. */
TEST(the_oldest_go) {
    AT_END(close_setting) setting s = open_setting(true, 0);
    float first, again;
    s.h->history.most = 40;
    first = train_batch(s.h, s.g, build(&s, 0));
    for (uint32_t b = 1; b < 60; b++) {
        const uint32_t before = kept(&s);
        TEST_OK(vpps_fb(s.h, s.g, build(&s, b), NULL));
        TEST_OK(vpps_fb(s.h, s.g, build(&s, b), NULL)); /* all types of this batch are known */
        ck_assert_msg(kept(&s) <= 60, "%u are kept", kept(&s));
        if (kept(&s) < before) ck_assert_uint_ge(kept(&s), 15); /* half of them */
    }
    again = train_batch(s.h, s.g, build(&s, 0));
    ck_assert_float_eq(first, again);
    s.h->history.most = 2;
    for (uint32_t b = 0; b < 20; b++) {
        again = train_batch(s.h, s.g, build(&s, b % 2));
        ck_assert_float_eq_tol(again, (float)loss_of(&s, b % 2), 1e-4f);
    }
    ck_assert_uint_gt(kept(&s), 2);
}

/* Between vpps_backward and vpps_update, and while there is a trace, nothing that may be needed is dropped. */
TEST(what_may_be_asked_for_stays) {
    setting s = open_setting(true, 1 << 12);
    s.h->history.most = 4;
    for (uint32_t b = 0; b < 20; b++) TEST_OK(vpps_fb(s.h, s.g, build(&s, b), NULL));
    FILE *sink = fopen("/dev/null", "w");
    TEST_OK(vpps_trace_write(s.h, sink));
    fclose(sink);
    close_setting(&s);
    s = open_setting(true, 0);
    s.h->history.most = 4;
    for (uint32_t b = 0; b < 20; b++) TEST_OK(vpps_backward(s.h, s.g, build(&s, b), NULL));
    const uint32_t many = kept(&s);
    ck_assert_uint_gt(many, 40);
    TEST_OK(vpps_update(s.h));
    TEST_OK(vpps_fb(s.h, s.g, build(&s, 0), NULL));
    ck_assert_uint_lt(kept(&s), many);
    close_setting(&s);
}
