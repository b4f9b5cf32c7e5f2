/* test_keep.c - values that stay on the device: cutting a graph and continuing from kept values gives what the whole graph gives. */
#include "runtime/handle.h"

#include "common/gpu_tests.h"
#include "runtime/small_network.h"

enum { STEPS = 24, CUTS = 4 };

#define settings sn_usual

static small_network open_on(const sn_setting *s, uint64_t keep_bytes) {
    vpps_options o = sn_options_on(s);
    o.keep_bytes = keep_bytes;
    o.no_tuning = true;
    o.watchdog_ms = 60000;
    return sn_with(1, &o);
}

/* Adds the chain's next n steps, from word number `first` on. */
static vpps_node chain(const small_network *n, vpps_node h, uint32_t first, uint32_t steps) {
    for (uint32_t t = first; t < first + steps; t++) h = sn_read(n, 7 * t % SN_WORDS, h);
    return h;
}

static vpps_node start_of(const small_network *n) { return vpps_zeros(n->g, SN_HIDDEN, 1); }

/* ---------------------------------------------------------------- inference */

TEST_GROUP("keep", .seconds = 120);

SN_EACH(a_cut_chain_is_the_whole_one) {
    const sn_setting *s = &settings[_i];
    float whole[SN_HIDDEN], cut[SN_HIDDEN], *const outs[] = {whole};
    AT_END(sn_close) small_network net = open_on(s, 1 << 16);
    vpps_graph_clear(net.g);
    const vpps_node end = chain(&net, start_of(&net), 0, STEPS);
    TEST_OK(vpps_forward(net.h, net.g, 1, &end, outs));
    vpps_value kept = VPPS_NO_VALUE;
    for (uint32_t piece = 0; piece < CUTS; piece++) {
        vpps_graph_clear(net.g);
        const vpps_node start = kept == VPPS_NO_VALUE ? start_of(&net) : vpps_kept(net.g, net.h, kept);
        const vpps_node state = chain(&net, start, piece * STEPS / CUTS, STEPS / CUTS);
        const vpps_value before = kept;
        TEST_OK(vpps_keep(net.h, net.g, state, &kept));
        TEST_OK(vpps_forward(net.h, net.g, 0, NULL, NULL));
        TEST_OK(vpps_release(net.h, before));
    }
    uint32_t rows, cols;
    TEST_OK(vpps_kept_shape(net.h, kept, &rows, &cols));
    ck_assert_uint_eq(rows, SN_HIDDEN);
    ck_assert_uint_eq(cols, 1);
    TEST_OK(vpps_read_kept(net.h, kept, cut));
    sn_expect_near(whole, cut, SN_HIDDEN, 1e-6);
}

/* Queries on a chain that grows by one word per query. */
TEST(a_growing_chain_costs_a_step_a_query) {
    enum { QUERIES = 400 };
    const sn_setting *s = &settings[1];
    uint64_t vertices = 0, tasks = 0, first_tasks = 0;
    float score[SN_CLASSES], *const outs[] = {score};
    vpps_value kept = VPPS_NO_VALUE;
    AT_END(sn_close) small_network net = open_on(s, 1 << 16);
    net.h->options.verify = false;
    TEST_OK(vpps_keep_data(net.h, SN_HIDDEN, 1, (const float[SN_HIDDEN]){0}, &kept));
    for (uint32_t t = 0; t < QUERIES; t++) {
        vpps_value next;
        vpps_graph_clear(net.g);
        const vpps_node state = chain(&net, vpps_kept(net.g, net.h, kept), t, 1);
        const vpps_node scores = sn_scores(&net, state);
        TEST_OK(vpps_keep(net.h, net.g, state, &next));
        TEST_OK(vpps_forward(net.h, net.g, 1, &scores, outs));
        TEST_OK(vpps_release(net.h, kept));
        kept = next;
        const vpps_batch *b = net.h->programs[net.h->next];
        if (t == 0) first_tasks = b->n_tasks;
        vertices += b->n_vertices;
        tasks += b->n_tasks;
    }
    ck_assert_uint_eq(tasks, QUERIES * first_tasks);
    ck_assert_uint_eq(vertices, QUERIES * 5); /* the kept value, the word, the sum, its tanh, the scores */
    float whole[SN_CLASSES], *const at[] = {whole};
    vpps_graph_clear(net.g);
    const vpps_node all = sn_scores(&net, chain(&net, start_of(&net), 0, QUERIES));
    TEST_OK(vpps_forward(net.h, net.g, 1, &all, at));
    sn_expect_near(whole, score, SN_CLASSES, 1e-6);
}

/* ---------------------------------------------------------------- training */

/* Trains on pieces of a chain, each of which continues from the preceding one: by kept values, or by numbers copied through the host. */
static float *train(const sn_setting *s, bool by_host, float *latest, size_t *count) {
    float state[SN_HIDDEN] = {0};
    vpps_value kept = VPPS_NO_VALUE;
    AT_END(sn_close) small_network net = open_on(s, 1 << 16);
    for (uint32_t piece = 0; piece < CUTS; piece++) {
        vpps_graph_clear(net.g);
        const vpps_node start =
            piece && !by_host ? vpps_kept(net.g, net.h, kept) : vpps_input(net.g, SN_HIDDEN, 1, state);
        const vpps_node end = chain(&net, start, piece * 5, 5), loss = sn_loss(&net, end, piece);
        const vpps_value before = kept;
        TEST_OK(vpps_keep(net.h, net.g, end, &kept));
        if (piece % 2)
            sn_parts(&net, loss);
        else
            TEST_OK(vpps_fb(net.h, net.g, loss, NULL));
        TEST_OK(vpps_release(net.h, before)); /* while the batch that reads the value may be in flight */
        if (by_host) TEST_OK(vpps_read_kept(net.h, kept, state));
    }
    *latest = latest_loss(net.h);
    return handle_values(net.model, net.h, count);
}

SN_EACH(a_kept_value_is_a_constant_of_the_next_batch) {
    float by_host, by_device;
    size_t n;
    FREED float *a = train(&settings[_i], true, &by_host, &n), *b = train(&settings[_i], false, &by_device, &n);
    ck_assert_float_eq(by_host, by_device);
    ck_assert_mem_eq(a, b, n * sizeof *a);
}

/* The next batch may use the memory where the value was computed. */
SN_EACH(a_value_is_copied_before_the_next_batch) {
    float kept[2][SN_HIDDEN];
    for (uint32_t after = 0; after < 2; after++) {
        vpps_value v = VPPS_NO_VALUE;
        AT_END(sn_close) small_network net = open_on(&settings[_i], 1 << 16);
        for (uint32_t batch = 0; batch <= after; batch++) {
            vpps_graph_clear(net.g);
            const vpps_node end = chain(&net, start_of(&net), 10 * batch, 8);
            if (!batch) TEST_OK(vpps_keep(net.h, net.g, end, &v));
            TEST_OK(vpps_fb(net.h, net.g, sn_loss(&net, end, batch), NULL));
        }
        TEST_OK(vpps_read_kept(net.h, v, kept[after]));
    }
    ck_assert_mem_eq(kept[0], kept[1], sizeof *kept);
}

/* Waves, slices and groups leave kept values as they are. */
TEST(a_batch_that_is_taken_apart_keeps_its_values) {
    float kept_of[8][SN_HIDDEN], right[8][SN_HIDDEN];
    vpps_options o = sn_options(4, VPPS_SGD);
    o.groups = 2;
    o.waves = 2;
    o.slices = 2;
    o.watchdog_ms = 60000;
    AT_END(sn_close) small_network net = sn_with(1, &o);
    vpps_node losses[8], ends[8];
    vpps_value kept[8];
    float *outs[8];
    vpps_graph_clear(net.g);
    for (uint32_t i = 0; i < 8; i++) {
        outs[i] = right[i];
        ends[i] = chain(&net, start_of(&net), i, 1 + i % 4);
        losses[i] = sn_loss(&net, ends[i], i % SN_CLASSES);
    }
    TEST_OK(vpps_forward(net.h, net.g, 8, ends, outs));
    for (uint32_t i = 0; i < 8; i++) TEST_OK(vpps_keep(net.h, net.g, ends[i], &kept[i]));
    TEST_OK(vpps_fb(net.h, net.g, vpps_sum(net.g, 8, losses), NULL));
    for (uint32_t i = 0; i < 8; i++) TEST_OK(vpps_read_kept(net.h, kept[i], kept_of[i]));
    sn_expect_near(right[0], kept_of[0], 8 * SN_HIDDEN, 1e-6);
}

/* A kept table entry and a kept vector are those that forward read, not those that the same call's update makes. */
SN_EACH(kept_parameters_are_those_of_forward) {
    static const size_t sizes[] = {SN_EMBED, SN_HIDDEN};
    float before[2][SN_HIDDEN], kept_as[SN_HIDDEN], *const outs[] = {before[0], before[1]};
    AT_END(sn_close) small_network net = open_on(&settings[_i], 1 << 16);
    vpps_graph_clear(net.g);
    const vpps_node nodes[] = {vpps_lookup(net.g, net.E, 1), vpps_parameter(net.g, net.b)};
    vpps_value kept[2];
    TEST_OK(vpps_forward(net.h, net.g, 2, nodes, outs));
    for (uint32_t i = 0; i < 2; i++) TEST_OK(vpps_keep(net.h, net.g, nodes[i], &kept[i]));
    TEST_OK(vpps_fb(net.h, net.g, vpps_sum_elements(net.g, vpps_concat(net.g, 2, nodes)), NULL));
    for (uint32_t i = 0; i < 2; i++) {
        TEST_OK(vpps_read_kept(net.h, kept[i], kept_as));
        ck_assert_mem_eq(kept_as, before[i], sizes[i] * sizeof(float));
    }
}

/* ---------------------------------------------------------------- room */

/* Values of many sizes, released in any order, keep their contents. */
TEST(room_is_found_again) {
    enum { VALUES = 40, ROUNDS = 2000, MOST = 200 };
    vpps_value values[VALUES] = {0};
    float data[MOST], back[MOST];
    uint32_t sizes[VALUES] = {0};
    uint64_t random = test_seed();
    AT_END(sn_close) small_network net = open_on(&settings[1], 8000);
    uint32_t refused = 0;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        const uint32_t i = vpps_random_below(&random, VALUES);
        if (values[i]) {
            TEST_OK(vpps_read_kept(net.h, values[i], back));
            for (uint32_t k = 0; k < sizes[i]; k++) ck_assert(back[k] == (float)(values[i] >> 24) + (float)k);
            TEST_OK(vpps_release(net.h, values[i]));
            TEST_FAILS(vpps_release(net.h, values[i]), VPPS_STATE, "was released");
            values[i] = VPPS_NO_VALUE;
        } else {
            sizes[i] = 1 + vpps_random_below(&random, MOST);
            memset(data, 0, sizeof data);
            const vpps_status status = vpps_keep_data(net.h, sizes[i], 1, data, &values[i]);
            refused += status == VPPS_POOL;
            if (status == VPPS_POOL) continue;
            TEST_OK(status);
            TEST_OK(vpps_release(net.h, values[i]));
            /* the value's number is known once it is added */
            for (uint32_t k = 0; k < sizes[i]; k++) data[k] = (float)((values[i] >> 24) + 1) + (float)k;
            TEST_OK(vpps_keep_data(net.h, sizes[i], 1, data, &values[i]));
        }
    }
    ck_assert_uint_gt(refused, 0);
    for (uint32_t i = 0; i < VALUES; i++) TEST_OK(vpps_release(net.h, values[i]));
    const vpps_stats stats = stats_of(net.h);
    ck_assert_uint_eq(stats.kept_values, 0);
    ck_assert_uint_eq(stats.kept_bytes, 0);
    ck_assert_uint_eq(stats.keep_bytes, 8000 / 64 * 64);
    /* all of the memory in one piece again */
    FREED float *all = need(calloc(stats.keep_bytes / 4, sizeof *all));
    TEST_OK(vpps_keep_data(net.h, (uint32_t)stats.keep_bytes / 4, 1, all, &values[0]));
    TEST_FAILS(vpps_keep_data(net.h, 1, 1, all, &values[1]), VPPS_POOL,
               "no room for 1 x 1 numbers; 1 kept values take 8000 of 8000 bytes");
    ck_assert_uint_eq(values[1], VPPS_NO_VALUE);
}

/* The memory for kept values if keep_bytes is 0. */
TEST_EACH(room_is_64_mb_or_half_of_the_pool, 0, 2) {
    vpps_value v;
    vpps_options o = sn_options(1, VPPS_SGD);
    if (_i) o.pool_bytes = 256u << 20;
    AT_END(sn_close) small_network net = sn_with(1, &o);
    const uint64_t room = 4 * (uint64_t)(net.h->target->pool_words - net.h->target->batch);
    ck_assert_uint_eq(stats_of(net.h).keep_bytes, 0);
    TEST_OK(vpps_keep_data(net.h, 1, 1, (const float[]){1}, &v));
    ck_assert_uint_eq(stats_of(net.h).keep_bytes, _i ? 64u << 20 : room / 2 / 64 * 64);
}

TEST(more_than_the_pool_is_refused) {
    vpps_value v;
    AT_END(sn_close) small_network net = open_on(&settings[1], 32u << 20);
    TEST_FAILS(vpps_keep_data(net.h, 1, 1, (const float[]){1}, &v), VPPS_POOL, "keep_bytes is 33554432; the pool has");
    ck_assert_uint_eq(v, VPPS_NO_VALUE);
}

/* ---------------------------------------------------------------- misuse */

TEST(misuse_is_told) {
    vpps_value v, w, never;
    float out[SN_HIDDEN], zero[SN_HIDDEN] = {0}, *const outs[] = {out};
    AT_END(sn_close) small_network net = open_on(&settings[1], 0), other = open_on(&settings[1], 0);
    TEST_FAILS(vpps_keep(net.h, net.g, 5, &v), VPPS_ARGUMENT, "5 is not a node; the graph has 0");
    TEST_FAILS(vpps_keep(net.h, other.g, 0, &v), VPPS_ARGUMENT, "another model");
    TEST_FAILS(vpps_keep(NULL, net.g, 0, &v), VPPS_ARGUMENT, "no handle");
    TEST_FAILS(vpps_keep(net.h, net.g, 0, NULL), VPPS_ARGUMENT, "out is NULL");
    TEST_FAILS(vpps_keep_data(net.h, 0, 1, zero, &v), VPPS_ARGUMENT, "0 x 1");
    TEST_FAILS(vpps_keep_data(net.h, 1u << 11, 1u << 11, zero, &v), VPPS_ARGUMENT, "2048 x 2048");
    TEST_FAILS(vpps_release(net.h, 77), VPPS_STATE, "never kept");
    TEST_OK(vpps_release(net.h, VPPS_NO_VALUE));
    TEST_FAILS(vpps_forward(net.h, net.g, 0, NULL, NULL), VPPS_ARGUMENT, "no nodes given");

    /* never computed */
    TEST_OK(vpps_keep(net.h, net.g, start_of(&net), &never));
    TEST_FAILS(vpps_read_kept(net.h, never, out), VPPS_STATE, "no run");
    vpps_graph_clear(net.g);
    vpps_node x = chain(&net, vpps_kept(net.g, net.h, never), 0, 1);
    TEST_FAILS(vpps_forward(net.h, net.g, 1, &x, outs), VPPS_STATE, "node 0 reads a kept value that no run");

    /* another handle's */
    TEST_OK(vpps_keep_data(net.h, SN_HIDDEN, 1, zero, &v));
    TEST_OK(vpps_keep_data(other.h, SN_HIDDEN, 1, zero, &w));
    vpps_graph_clear(net.g);
    ck_assert_uint_eq(vpps_kept(net.g, net.h, w), VPPS_NO_NODE);
    TEST_FAILS(vpps_graph_status(net.g), VPPS_STATE, "released, or this handle never kept it");
    vpps_graph_clear(net.g);
    ck_assert_uint_eq(vpps_kept(net.g, other.h, w), VPPS_NO_NODE);
    TEST_FAILS(vpps_graph_status(net.g), VPPS_ARGUMENT, "another model");

    /* released between building and running, while another value takes its place */
    vpps_graph_clear(net.g);
    x = chain(&net, vpps_kept(net.g, net.h, v), 0, 1);
    TEST_OK(vpps_release(net.h, v));
    TEST_OK(vpps_keep_data(net.h, SN_HIDDEN, 1, zero, &w));
    TEST_FAILS(vpps_forward(net.h, net.g, 1, &x, outs), VPPS_STATE, "was released");
    TEST_FAILS(vpps_fb(net.h, net.g, sn_loss(&net, x, 0), NULL), VPPS_STATE, "was released");
    TEST_FAILS(vpps_read_kept(net.h, v, out), VPPS_STATE, "was released");

    /* in a cell */
    vpps_graph *r = begin_cell(net.model, "cell");
    TEST_FAILS(vpps_keep(net.h, r, 0, &v), VPPS_STATE, "is being recorded");
    ck_assert_uint_eq(vpps_kept(r, net.h, w), VPPS_NO_NODE);
    TEST_FAILS(vpps_graph_status(r), VPPS_STATE, "vpps_pull");
    vpps_graph_destroy(r);

    /* the loss cannot be kept; and a request that is dropped before the run */
    vpps_graph_clear(net.g);
    const vpps_node loss = sn_loss(&net, chain(&net, vpps_kept(net.g, net.h, w), 0, 2), 1);
    TEST_OK(vpps_keep(net.h, net.g, loss, &v));
    TEST_FAILS(vpps_fb(net.h, net.g, loss, NULL), VPPS_ARGUMENT, "is the loss");
    TEST_OK(vpps_release(net.h, v));
    train_batch(net.h, net.g, loss);
}

/* A kept value survives a growing pool, and batches of all kinds. */
SN_EACH(values_stay) {
    const sn_setting *s = &settings[_i];
    float data[SN_HIDDEN], back[SN_HIDDEN];
    vpps_value v;
    for (int i = 0; i < SN_HIDDEN; i++) data[i] = (float)i;
    AT_END(sn_close) small_network with = open_on(s, 4096), without = open_on(s, 4096);
    for (uint32_t keeps = 0; keeps < 2; keeps++) {
        const small_network *n = keeps ? &with : &without;
        TEST_OK(vpps_backward(n->h, n->g, sn_build(n, 2, 1), NULL)); /* its table gradients are not added up yet */
        if (keeps) TEST_OK(vpps_keep_data(n->h, SN_HIDDEN, 1, data, &v));
        TEST_OK(vpps_update(n->h));
        sn_train(n, 3, 9);
    }
    TEST_OK(vpps_write_parameters(with.h));
    TEST_OK(vpps_read_kept(with.h, v, back));
    ck_assert_mem_eq(data, back, sizeof data);
    sn_expect_alike(&with, &without, 0);
}
