/* test_cost.c - costs of tasks: by hand, compared with vpps_graph_cost's counts, and counted once for what all groups do together. */
#include "faults.h"
#include "script/cost.h"

static void check_cost(batch *b, uint32_t at, uint64_t products, uint64_t other, uint64_t words) {
    vpps_task_cost cost = {0};
    vpps_add_task_cost(b->job.batch, b->model, editor_task(&b->e, at), &cost);
    ck_assert_uint_eq(cost.product_flops, products);
    ck_assert_uint_eq(cost.other_flops, other);
    ck_assert_uint_eq(cost.bytes, 4 * words);
}

enum { MATRIX = ROWS * ROWS };

TEST_GROUP("cost");

TEST(by_hand) {
    AT_END(close_batch) batch b;
    open_recurrent(&b); /* h = tanh(W h + b), STEPS times; the loss is the sum of the last h */
    uint32_t rnn;
    block_of(&b, "rnn", &rnn);
    const uint32_t forward = stage_of(&b, rnn);
    uint32_t backward = forward;
    for (size_t i = 0; i < b.e.n_sites; i++) {
        const vpps_task *t = editor_task(&b.e, b.e.sites[i].at);
        if (t->kind == VPPS_TASK_STAGE && t->operands[0] == rnn) backward = b.e.sites[i].at;
    }
    /* a vertex reads W, b and the preceding vector, and keeps h */
    check_cost(&b, forward, 2 * MATRIX, 2 * ROWS, MATRIX + 3 * ROWS);
    /* W, h, its gradient in a share of each virtual processor; the gradient of tanh's argument, and shares of the preceding vector's gradient */
    check_cost(&b, backward, 2 * MATRIX, 3 * ROWS, MATRIX + 6 * ROWS);
    /* gradients of W and b from two vectors of each vertex */
    for (size_t i = 0; i < b.e.n_sites; i++) {
        const vpps_task *t = editor_task(&b.e, b.e.sites[i].at);
        if (t->kind == VPPS_TASK_OUTER && t->operands[0] == rnn)
            check_cost(&b, b.e.sites[i].at, 2 * STEPS * MATRIX, STEPS * ROWS, MATRIX + ROWS + 2 * STEPS * ROWS);
    }
    check_cost(&b, find(&b, VPPS_TASK_LOSS, 0), 0, 2, 1);
    check_cost(&b, find(&b, VPPS_TASK_NORM, 0), 0, 2 * (MATRIX + ROWS), MATRIX + ROWS);
    check_cost(&b, find(&b, VPPS_TASK_UPDATE, 0), 0, 2 * (MATRIX + ROWS), 3 * (MATRIX + ROWS));
    check_cost(&b, find(&b, VPPS_TASK_END, 0), 0, 0, 0);
}

enum { WORDS = 12, CLASSES = 5, TABLE = 7 };

/* Opens a classifier over words: all vertices read and contribute alike, so that everything computed is needed. */
static void open_classifier(batch *b, way w) {
    begin_batch(b);
    const vpps_param e = add_lookup(b->model, "E", TABLE, ROWS, 1), m = add_matrix(b->model, "W", CLASSES, ROWS),
                     v = add_vector(b->model, "b", CLASSES);
    vpps_graph *r = begin_cell(b->model, "classifier");
    const vpps_node x = vpps_tanh(r, vpps_lookup(r, e, vpps_pull_index(r)));
    TEST_OK(vpps_push(r, vpps_cross_entropy(r, vpps_affine1(r, v, m, x), vpps_pull_index(r))));
    const vpps_cell cell = end_cell(r);
    vpps_node losses[WORDS];
    for (uint32_t i = 0; i < WORDS; i++) {
        const uint32_t indices[] = {i % 5, i % CLASSES};
        const vpps_application a = {.size = sizeof a, .cell = cell, .n_indices = 2, .indices = indices};
        losses[i] = vpps_pushed(b->g, vpps_apply(b->g, &a), 0);
    }
    open_batch(b, vpps_sum(b->g, WORDS, losses), w);
}

/* The script computes what the graph asks for, and besides: the gradient's norm, each loss term times its factor, and tanh a second time in backward,
 * instead of keeping it. */
TEST_EACH(as_the_graph_counts, 0, 3) {
    static const way ways[] = {{.n_vps = 1, .groups = 1}, {.n_vps = 2, .groups = 1}, {.n_vps = 2, .groups = 2}};
    AT_END(close_batch) batch b;
    open_classifier(&b, ways[_i]);
    vpps_cost graph = {.size = sizeof graph};
    TEST_OK(vpps_graph_cost(b.g, &graph));
    const vpps_task_cost tasks = vpps_cost_of_batch(b.job.batch, b.model);
    vpps_task_cost norm = {0};
    vpps_add_task_cost(b.job.batch, b.model, editor_task(&b.e, find(&b, VPPS_TASK_NORM, 0)), &norm);
    ck_assert_uint_eq(tasks.product_flops, graph.product_flops);
    ck_assert_uint_eq(tasks.other_flops, graph.other_flops + norm.other_flops + WORDS + WORDS * ROWS);
}
