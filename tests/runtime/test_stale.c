/* test_stale.c - a device's transposed and packed copies of matrices are updated wherever parameters change; and frozen tables stay as they are. */
#include "common/folder.h"
#include "graph/graph.h"
#include "runtime/small_network.h"

enum { WORDS = 50, EMBED = 64, HIDDEN = 96, CLASSES = 5, SEQUENCES = 400 };

static vpps_options options_of(uint32_t vps, vpps_precision precision) {
    vpps_options o = default_options();
    o.vps = vps;
    o.no_tuning = true;
    o.precision = precision;
    o.optimizer = (vpps_optimizer){.kind = VPPS_MOMENTUM, .lr = 0.5f, .momentum = 0.9f};
    return o;
}

static small_network open_network(uint64_t seed, const vpps_options *o) {
    small_network n = sn_of_sizes(seed, WORDS, EMBED, HIDDEN, CLASSES);
    TEST_OK(vpps_handle_create(&n.h, n.model, o));
    return n;
}

/* Each matrix multiplies many vectors at a time. */
static float train(const small_network *n, uint32_t batch) {
    static vpps_node terms[SEQUENCES];
    vpps_graph_clear(n->g);
    for (uint32_t i = 0; i < SEQUENCES; i++) {
        vpps_node state = VPPS_NO_NODE;
        for (uint32_t k = 0; k < 3; k++) state = sn_read(n, (7 * i + 3 * k + batch) % WORDS, state);
        terms[i] = sn_loss(n, state, (i + batch) % CLASSES);
    }
    return train_batch(n->h, n->g, vpps_average(n->g, SEQUENCES, terms));
}

/* ---------------------------------------------------------------- copies of matrices */

static const vpps_precision precisions[] = {VPPS_PRECISION_FP32, VPPS_PRECISION_BF16X3, VPPS_PRECISION_BF16};
enum { N_PRECISIONS = VPPS_COUNT(precisions), MOST_VPS = 3 };

TEST_GROUP("stale", .seconds = 60);

/* After a checkpoint is loaded into a handle that has trained, losses and parameters equal those of a fresh handle, to the bit. */
TEST_EACH(loaded_after_training, 0, N_PRECISIONS *MOST_VPS) {
    enum { BATCHES = 3 };
    folder_make();
    const char *path = folder_path("model");
    const vpps_options o = options_of(1 + (uint32_t)_i % MOST_VPS, precisions[_i / MOST_VPS]);
    AT_END(sn_close) small_network used = open_network(1, &o);
    train(&used, 0);
    TEST_OK(vpps_save(used.h, path, NULL, 0));
    for (uint32_t b = 1; b < 3; b++) train(&used, b);
    TEST_OK(vpps_load(used.h, path));
    AT_END(sn_close) small_network fresh = open_network(2, &o);
    TEST_OK(vpps_load(fresh.h, path));
    float first = 0;
    for (uint32_t b = 0; b < BATCHES; b++) {
        const float loss = train(&used, 5 + b);
        ck_assert_float_eq(loss, train(&fresh, 5 + b));
        if (!b) first = loss;
        if (b) ck_assert_float_ne(loss, first);
    }
    sn_expect_alike(&used, &fresh, 0);
}

/* Trains batch after batch, also with parameters read and written back in between, which must renew all copies. */
TEST_EACH(copies_follow_updates, 0, N_PRECISIONS *MOST_VPS) {
    const vpps_options o = options_of(1 + (uint32_t)_i % MOST_VPS, precisions[_i / MOST_VPS]);
    AT_END(sn_close) small_network a = open_network(1, &o), b = open_network(1, &o);
    for (uint32_t batch = 0; batch < 4; batch++) {
        ck_assert_float_eq(train(&a, batch), train(&b, batch));
        TEST_OK(vpps_read_parameters(b.h));
        TEST_OK(vpps_write_parameters(b.h));
    }
    sn_expect_alike(&a, &b, 0);
}

/* ---------------------------------------------------------------- frozen tables */

/* A cell with a frozen table and one that trains, with every optimiser: only the frozen one stays the same, to the bit. */
TEST_EACH(frozen_tables_in_cells_stay, 0, VPPS_ADAMW + 1) {
    float before[WORDS * EMBED], *values[2];
    vpps_options o = options_of(1 + (uint32_t)_i % MOST_VPS, VPPS_PRECISION_FP32);
    o.optimizer.kind = (vpps_optimizer_kind)(_i % (VPPS_ADAMW + 1));
    o.optimizer.beta1 = 0.9f;
    o.optimizer.beta2 = 0.99f;
    o.optimizer.epsilon = 1e-6f;
    o.optimizer.weight_decay = 0.1f;
    AT_END(training_end) training run = training_of(4);
    const vpps_param fixed = add_lookup(run.model, "fixed", WORDS, EMBED, 1),
                     learned = add_lookup(run.model, "learned", WORDS, EMBED, 1),
                     W = add_matrix(run.model, "W", HIDDEN, EMBED);
    TEST_OK(vpps_freeze(run.model, fixed, true));
    vpps_graph *r = begin_cell(run.model, "word");
    const uint32_t word = vpps_pull_index(r);
    const vpps_node x = vpps_mul(r, vpps_lookup(r, fixed, word), vpps_lookup(r, learned, word));
    TEST_OK(vpps_scatter(r, vpps_tanh(r, vpps_affine1(r, VPPS_NO_PARAM, W, x))));
    const vpps_cell cell = end_cell(r);
    values[0] = vpps_param_values(run.model, fixed);
    values[1] = vpps_param_values(run.model, learned);
    training_start(&run, &o);
    for (uint32_t t = 0; t < 2; t++) { /* which table is frozen changes in the same handle */
        memcpy(before, values[t], sizeof before);
        for (uint32_t b = 0; b < 3; b++) {
            vpps_node terms[8];
            vpps_graph_clear(run.g);
            for (uint32_t i = 0; i < 8; i++) {
                const uint32_t index = (i + b) % 6;
                const vpps_vertex v = APPLY(run.g, cell, INDICES(1, &index));
                terms[i] = vpps_sum_elements(run.g, vpps_square(run.g, vpps_scattered(run.g, v, 0)));
            }
            TEST_OK(vpps_fb(run.h, run.g, vpps_sum(run.g, 8, terms), NULL));
        }
        const float other = values[!t][0];
        TEST_OK(vpps_read_parameters(run.h));
        ck_assert_mem_eq(values[t], before, sizeof before);
        ck_assert_float_ne(values[!t][0], other);
        TEST_OK(vpps_freeze(run.model, fixed, false));
        TEST_OK(vpps_freeze(run.model, learned, true));
    }
}
