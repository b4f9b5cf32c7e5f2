/* test_slices.c - a language model, whose classifier keeps most, trains in a pool that waves alone do not fit into, and learns the
 * same. What lies where in a script of slices: tests/script/test_slices.c. */
#include "base/base.h"
#include "common/testing.h"
#include "models.h"

enum { SENTENCES = 6, MOST_WORDS = 12, WORDS = 400, BATCHES = 4 };

static vpps_node build(const network *net, void *data, vpps_graph *g, uint32_t batch) {
    uint64_t random = batch + 3;
    vpps_node losses[SENTENCES * MOST_WORDS], logits[MOST_WORDS];
    uint32_t n = 0;
    vpps_graph_clear(g);
    for (uint32_t s = 0; s < SENTENCES; s++) {
        uint32_t words[MOST_WORDS];
        const uint32_t length = 4 + vpps_random_below(&random, MOST_WORDS - 3);
        for (uint32_t t = 0; t < length; t++) words[t] = vpps_random_below(&random, WORDS);
        const net_example x = {.sentence = {.words = words, .n_words = length}};
        TEST_OK(net->add(data, g, &x, NET_HEADS_LABELLED, &(net_scores){.logits = logits, .nll = losses + n}));
        n += length - 1;
    }
    return vpps_average(g, n, losses);
}

typedef struct way {
    uint32_t vps, groups, waves, slices;
    vpps_gradients gradients;
    uint64_t pool_bytes; /* 0: enough */
} way;

typedef struct result {
    float losses[BATCHES];
    vpps_stats stats;
} result;

static result train(way w) {
    result r;
    void *data;
    vpps_model *model;
    vpps_graph *g;
    vpps_handle *h;
    vpps_options o;
    const network *net = network_find("lstm-lm");
    net_config config = net->defaults;
    config.words = config.classes = WORDS;
    config.embed = config.hidden = 16;
    config.dropout = 0.1f;
    TEST_OK(vpps_model_create(&model, 1));
    TEST_OK(net->create(&data, model, &config));
    TEST_OK(vpps_graph_create(&g, model));
    vpps_options_default(&o);
    o.vps = w.vps;
    o.groups = w.groups;
    o.waves = w.waves;
    o.slices = w.slices;
    o.gradients = w.gradients;
    o.pool_bytes = w.pool_bytes ? w.pool_bytes : 64u << 20;
    o.seed = 7;
    o.verify = true;
    o.optimizer.lr = 1;
    TEST_OK(vpps_handle_create(&h, model, &o));
    for (uint32_t b = 0; b < BATCHES; b++) {
        TEST_OK(vpps_fb(h, g, build(net, data, g, b % 2), NULL));
        TEST_OK(vpps_sync_latest_loss(h, &r.losses[b]));
    }
    r.stats.size = sizeof r.stats;
    TEST_OK(vpps_handle_stats(h, &r.stats));
    vpps_handle_destroy(h);
    net->destroy(data);
    vpps_graph_destroy(g);
    vpps_model_destroy(model);
    return r;
}

static void expect_close(const result *a, const result *b) {
    for (uint32_t k = 0; k < BATCHES; k++) ck_assert_float_eq_tol(a->losses[k], b->losses[k], 1e-5f * b->losses[k]);
}

static const way ways[] = {{.vps = 1, .groups = 1},
                           {.vps = 2, .groups = 1, .gradients = VPPS_GRADIENTS_ACCUMULATE},
                           {.vps = 2, .groups = 2},
                           {.vps = 4, .groups = 2}};

START_TEST(slices_train_where_waves_do_not_fit)
    {
        way w = ways[_i];
        const result whole = train(w);
        ck_assert_uint_eq(whole.stats.waves, 1);
        ck_assert_uint_eq(whole.stats.slices, 1);
        ck_assert_float_lt(whole.losses[2], whole.losses[0]); /* the same batch once more */
        w.waves = 1000;
        const result waves = train(w);
        expect_close(&waves, &whole);
        ck_assert_uint_eq(waves.stats.slices, 1);
        w.slices = 1000;
        const result least = train(w);
        expect_close(&least, &whole);
        ck_assert_uint_gt(least.stats.slices, 1);
        ck_assert_uint_lt(least.stats.peak_pool_bytes, waves.stats.peak_pool_bytes);
        w.waves = w.slices = 0;
        w.pool_bytes = (least.stats.peak_pool_bytes + waves.stats.peak_pool_bytes) / 2 / 4 * 4;
        const result limited = train(w), again = train(w);
        expect_close(&limited, &whole);
        ck_assert_uint_gt(limited.stats.slices, 1);
        ck_assert_uint_le(limited.stats.peak_pool_bytes, w.pool_bytes);
        ck_assert_mem_eq(limited.losses, again.losses, sizeof again.losses);
    }
END_TEST

/* A wave that is as wide as the batch, in less than half of what it would keep. */
START_TEST(the_rest_stays_one_wave)
    {
        way w = ways[_i];
        const result whole = train(w);
        w.slices = 8;
        const result eight = train(w);
        expect_close(&eight, &whole);
        ck_assert_uint_eq(eight.stats.waves, 1);
        ck_assert_uint_eq(eight.stats.slices, 8);
        ck_assert_uint_eq(eight.stats.levels, whole.stats.levels);
        w.slices = 0;
        w.pool_bytes = eight.stats.peak_pool_bytes;
        const result limited = train(w);
        ck_assert_uint_eq(limited.stats.waves, 1);
        ck_assert_uint_eq(limited.stats.slices, 8);
        ck_assert_mem_eq(limited.losses, eight.losses, sizeof eight.losses);
    }
END_TEST

int main(void) {
    Suite *suite = suite_create("slices");
    TCase *t = tcase_create("slices");
    tcase_add_loop_test(t, slices_train_where_waves_do_not_fit, 0, VPPS_COUNT(ways));
    tcase_add_loop_test(t, the_rest_stays_one_wave, 0, VPPS_COUNT(ways));
    tcase_set_timeout(t, 60);
    suite_add_tcase(suite, t);
    return test_main(suite);
}
