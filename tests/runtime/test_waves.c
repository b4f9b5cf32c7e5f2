/* test_waves.c - groups of virtual processors, and waves: they change where and when a batch's inputs run, but no result. */
#include "runtime/profile.h"
#include "small_network.h"

enum { CHAINS = 23, STEPS = 3 };

/* Builds a batch of chains of some lengths, each a component of its own; `logits` gets the classifier's outputs. */
static vpps_node build(const small_network *n, uint64_t seed, vpps_node *logits) {
    uint64_t random = seed * 77 + 5;
    vpps_node terms[CHAINS];
    vpps_graph_clear(n->g);
    for (uint32_t i = 0; i < CHAINS; i++) {
        logits[i] = sn_scores(n, sn_chain(n, &random, 1 + vpps_random_below(&random, 12)));
        terms[i] = vpps_cross_entropy(n->g, logits[i], vpps_random_below(&random, SN_CLASSES));
    }
    return vpps_average(n->g, CHAINS, terms);
}

typedef struct result {
    vpps_status status;
    float losses[STEPS], logits[CHAINS][SN_CLASSES], *values;
    size_t n_values;
    vpps_stats stats;
} result;

static result train(uint32_t vps, uint32_t groups, uint32_t waves, uint64_t pool_bytes) {
    result r = {.status = VPPS_OK};
    vpps_node logits[CHAINS];
    float *outs[CHAINS];
    vpps_options o = sn_options(vps, VPPS_SGD);
    o.groups = groups;
    o.waves = waves;
    if (pool_bytes) o.pool_bytes = pool_bytes;
    AT_END(sn_close) small_network n = sn_with(1, &o);
    for (uint32_t i = 0; i < CHAINS; i++) outs[i] = r.logits[i];
    build(&n, 9, logits);
    if (!pool_bytes) TEST_OK(vpps_forward(n.h, n.g, CHAINS, logits, outs)); /* before any training */
    for (uint32_t k = 0; k < STEPS && r.status == VPPS_OK; k++) {
        r.status = vpps_fb(n.h, n.g, build(&n, k, logits), NULL);
        if (r.status == VPPS_OK) r.losses[k] = latest_loss(n.h);
    }
    r.stats = stats_of(n.h);
    r.values = handle_values(n.model, n.h, &r.n_values);
    return r;
}

static void expect_close(const result *a, const result *b) {
    for (uint32_t k = 0; k < STEPS; k++) ck_assert_float_eq_tol(a->losses[k], b->losses[k], 1e-5f);
    for (size_t i = 0; i < a->n_values; i++)
        ck_assert_msg(fabsf(a->values[i] - b->values[i]) <= 2e-6f + 1e-5f * fabsf(b->values[i]),
                      "parameter %zu: %.9g, in one wave %.9g", i, (double)a->values[i], (double)b->values[i]);
}

TEST_GROUP("waves", .seconds = 60);

TEST(dealing_changes_nothing) {
    static const uint32_t vps[] = {1, 2, 4, 4, 4}, groups[] = {1, 2, 1, 2, 4}, waves[] = {2, 5, 1000};
    const result one = train(1, 1, 1, 0);
    ck_assert_uint_eq(one.stats.waves, 1);
    ck_assert_uint_eq(one.stats.groups, 1);
    for (uint32_t k = 0; k < VPPS_COUNT(vps); k++) {
        const result whole = train(vps[k], groups[k], 1, 0);
        expect_close(&whole, &one);
        for (uint32_t w = 0; w < VPPS_COUNT(waves); w++) {
            const result r = train(vps[k], groups[k], waves[w], 0), again = train(vps[k], groups[k], waves[w], 0);
            expect_close(&r, &one);
            ck_assert_uint_eq(r.stats.waves, waves[w] < CHAINS ? waves[w] : CHAINS);
            ck_assert_uint_eq(r.stats.groups, groups[k]);
            ck_assert_mem_eq(r.values, again.values, r.n_values * sizeof *r.values);
            ck_assert_mem_eq(r.losses, again.losses, sizeof r.losses);
            ck_assert_mem_eq(r.logits, one.logits, sizeof r.logits); /* predictions have the same bits however dealt */
            ck_assert_msg(r.stats.pool_bytes < whole.stats.pool_bytes, "%u waves take %llu bytes, one %llu", waves[w],
                          (unsigned long long)r.stats.pool_bytes, (unsigned long long)whole.stats.pool_bytes);
            free(r.values);
            free(again.values);
        }
        free(whole.values);
    }
    free(one.values);
}

TEST(a_small_pool_is_met_by_waves) {
    const result one = train(2, 1, 1, 0), many = train(2, 1, 1000, 0);
    const uint64_t between = (one.stats.peak_pool_bytes + 3 * many.stats.peak_pool_bytes) / 4 / 4 * 4;
    const result r = train(2, 1, 0, between);
    ck_assert_msg(r.status == VPPS_OK, "%s", vpps_error_message());
    ck_assert_uint_gt(r.stats.waves, 1);
    ck_assert_uint_le(r.stats.peak_pool_bytes, between);
    expect_close(&r, &one);
    const result asked = train(2, 1, 1, between); /* as many waves as requested, and more if necessary */
    ck_assert_int_eq(asked.status, VPPS_OK);
    const result none = train(2, 1, 0, many.stats.pool_bytes * 9 / 10 / 4 * 4);
    ck_assert_int_eq(none.status, VPPS_POOL);
    const float *const values[] = {one.values, many.values, r.values, asked.values, none.values};
    for (size_t i = 0; i < VPPS_COUNT(values); i++) free((void *)(uintptr_t)values[i]);
}

/* One sequence is one wave of several slices. The head reads a recurrence; most of what is kept are its logits, 16 KB a word. */
TEST(a_small_pool_is_met_by_slices_of_attention) {
    enum { SIZE = 16, CLASSES = 4096, WORDS = 60, MEMBERS = 3 };
    vpps_options o = default_options();
    o.vps = 1;
    o.verify = true;
    o.pool_bytes = 300000;
    AT_END(training_end) training t = training_of(7);
    vpps_node words[WORDS + MEMBERS], losses[WORDS];
    const vpps_param T = add_lookup(t.model, "T", WORDS + MEMBERS, SIZE, 1),
                     W = add_matrix(t.model, "W", CLASSES, SIZE), R = add_matrix(t.model, "R", SIZE, SIZE);
    vpps_graph *r = begin_cell(t.model, "rnn");
    const vpps_node before = vpps_matvec(r, R, vpps_gather(r, 0, 0, SIZE, 1));
    TEST_OK(vpps_scatter(r, vpps_tanh(r, vpps_add(r, before, vpps_lookup(r, T, vpps_pull_index(r))))));
    const vpps_cell rnn = end_cell(r);
    r = begin_cell(t.model, "head");
    const vpps_node keys = vpps_pull_list(r, SIZE, 1), values = vpps_pull_list(r, SIZE, 1);
    const vpps_node weights = vpps_softmax_list(r, vpps_dot(r, keys, vpps_pull(r, SIZE, 1)));
    const vpps_node scores = vpps_matvec(r, W, vpps_weighted_sum_list(r, weights, values));
    TEST_OK(vpps_push(r, vpps_cross_entropy(r, scores, vpps_pull_index(r))));
    const vpps_cell head = end_cell(r);
    training_start(&t, &o);
    vpps_vertex v = vpps_source(t.g, 1, (vpps_node[]){vpps_zeros(t.g, SIZE, 1)});
    for (uint32_t i = 0; i < WORDS + MEMBERS; i++) {
        v = APPLY(t.g, rnn, CHILDREN(1, &v), INDICES(1, &i));
        words[i] = vpps_scattered(t.g, v, 0);
    }
    for (uint32_t i = 0; i < WORDS; i++) {
        const vpps_node *lists[] = {words + i, words + i};
        losses[i] = vpps_pushed(t.g,
                                APPLY(t.g, head, PULLS(1, words + i), INDICES(1, &i), .n_pull_lists = 2,
                                      .pull_lists = lists, .n_members = MEMBERS),
                                0);
    }
    TEST_OK(vpps_backward(t.h, t.g, vpps_sum(t.g, WORDS, losses), NULL));
}

/* Returns the number of groups for a batch of six-word sentences, with one tanh layer of this size. */
static uint32_t groups_chosen(uint32_t hidden, uint32_t sentences) {
    enum { WORDS = 6, MOST = 64 };
    vpps_node terms[MOST];
    FREED float *x = need(calloc(hidden, sizeof *x));
    AT_END(training_end) training run = training_of(1);
    const vpps_param U = add_matrix(run.model, "U", hidden, hidden);
    vpps_options o = default_options();
    o.vps = 2;
    training_start(&run, &o);
    for (uint32_t i = 0; i < sentences; i++) {
        vpps_node state = vpps_input(run.g, hidden, 1, x);
        for (uint32_t t = 0; t < WORDS; t++) state = vpps_tanh(run.g, vpps_affine1(run.g, VPPS_NO_PARAM, U, state));
        terms[i] = vpps_sum_elements(run.g, state);
    }
    TEST_OK(vpps_fb(run.h, run.g, vpps_sum(run.g, sentences, terms), NULL));
    const vpps_stats stats = stats_of(run.h);
    return stats.groups;
}

/* Groups of one virtual processor have no barriers, but fetch whole matrices. */
TEST(groups_by_cost) {
    ck_assert_uint_eq(groups_chosen(64, 16), 2);
    ck_assert_uint_eq(groups_chosen(64, 1), 1);    /* one input cannot use two groups */
    ck_assert_uint_eq(groups_chosen(64, 7), 1);    /* seven inputs cannot be shared evenly */
    ck_assert_uint_eq(groups_chosen(1024, 16), 1); /* each core would fetch 4 MB for 8 vectors */
}

/* Candidates are divisors up to `most`; if there is no room for all, the smallest ones and `most`. */
TEST(numbers_of_groups) {
    static const struct {
        uint32_t vps, most, groups[VPPS_MOST_TRIALS + 1];
    } cases[] = {
        {132, 4, {1, 2, 3, 4}}, {132, 132, {1, 2, 3, 4, 6, 11, 12, 132}}, {6, 5, {1, 2, 3}}, {7, 6, {1}}, {8, 1, {1}}};
    for (size_t k = 0; k < VPPS_COUNT(cases); k++) {
        vpps_profile p;
        vpps_profile_groups(&p, cases[k].vps, cases[k].most);
        for (uint32_t i = 0; i < p.n; i++) ck_assert_uint_eq(p.trials[i].groups, cases[k].groups[i]);
        ck_assert_uint_eq(cases[k].groups[p.n], 0);
        ck_assert(p.done == (p.n == 1));
    }
}
