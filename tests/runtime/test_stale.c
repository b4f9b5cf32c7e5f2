/* test_stale.c - a device's transposed and packed copies of matrices are updated when a checkpoint is loaded. (Updates: test_tuning.c.) */
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
