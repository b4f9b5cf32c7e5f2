/* test_versions.c - programs compiled with other versions of vpps.h: structs smaller or larger than the library's. */
#include "runtime/small_network.h"

/* Size of a struct in a version in which it ended after this member. */
#define UP_TO(type, last) ((offsetof(type, last) + sizeof(((type *)NULL)->last) + 7) / 8 * 8)

static const unsigned char untouched = 0xa5;

/* A struct in its own allocation, with a margin after it that must not be written. */
typedef struct block {
    _Alignas(16) unsigned char bytes[2048];
    size_t size;
} block;

static void *of_size(block *b, size_t size) {
    memset(b->bytes, untouched, sizeof b->bytes);
    memset(b->bytes, 0, size);
    memcpy(b->bytes, &size, sizeof size);
    b->size = size;
    return b->bytes;
}

static void expect_margin(const block *b, const char *what) {
    for (size_t i = b->size; i < sizeof b->bytes; i++)
        ck_assert_msg(b->bytes[i] == untouched, "%s: byte %zu of %zu was written", what, i, b->size);
}

/* ---------------------------------------------------------------- what the library writes */

TEST(results_of_other_sizes) {
    block b;
    const vpps_options o = sn_options(2, VPPS_SGD);
    AT_END(sn_close) small_network n = sn_with(1, &o);
    TEST_OK(vpps_backward(n.h, n.g, sn_build(&n, 1, 1), NULL));
    TEST_OK(vpps_read_gradients(n.h));
    TEST_OK(vpps_update(n.h));
    latest_loss(n.h);
    const size_t more = 64;
    for (int larger = 0; larger < 2; larger++) {
        vpps_stats *stats = of_size(&b, larger ? sizeof *stats + more : UP_TO(vpps_stats, policy));
        TEST_OK(vpps_handle_stats(n.h, stats));
        expect_margin(&b, "vpps_stats");
        ck_assert_uint_eq(stats->batches, 1);
        ck_assert_str_eq(stats->policy, "share");
        ck_assert_uint_eq(stats->size, b.size);
        vpps_param_info *info = of_size(&b, larger ? sizeof *info + more : UP_TO(vpps_param_info, frozen));
        TEST_OK(vpps_param_describe(n.model, n.W, info));
        expect_margin(&b, "vpps_param_info");
        ck_assert_str_eq(info->name, "W");
        ck_assert_uint_eq(info->cols, SN_EMBED);
    }
    vpps_cost *cost = of_size(&b, sizeof *cost + more);
    TEST_OK(vpps_graph_cost(n.g, cost));
    expect_margin(&b, "vpps_cost");
    ck_assert_uint_gt(cost->product_flops, 0);
    vpps_gradient *gradient = of_size(&b, sizeof *gradient + more);
    TEST_OK(vpps_param_gradient(n.model, n.b_c, gradient));
    expect_margin(&b, "vpps_gradient");
    ck_assert_uint_eq(gradient->n, 1);
    for (size_t i = sizeof *gradient; i < b.size; i++) ck_assert_uint_eq(b.bytes[i], 0);
    static const size_t wrong[] = {0, 8, 17, UP_TO(vpps_stats, device), 4104, SIZE_MAX / 8 * 8};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        vpps_stats *stats = of_size(&b, sizeof *stats);
        stats->size = wrong[i];
        TEST_FAILS(vpps_handle_stats(n.h, stats), VPPS_ARGUMENT, "expected sizeof(vpps_stats)");
    }
}

/* All elements of an array have the size that the first one names. */
TEST(trials_of_another_size) {
    enum { ROOM = 3, MORE = 16 };
    block b;
    vpps_options o = sn_options(4, VPPS_SGD);
    bool done;
    o.groups = VPPS_GROUPS_PROFILE;
    AT_END(sn_close) small_network n = sn_with(1, &o);
    uint32_t all = 0, n_trials = ROOM;
    TEST_OK(vpps_handle_trials(n.h, NULL, &all, &done));
    ck_assert_uint_ge(all, ROOM);
    vpps_trial known[ROOM] = {{.size = sizeof *known}};
    TEST_OK(vpps_handle_trials(n.h, known, &n_trials, &done));
    ck_assert_uint_eq(n_trials, all);
    void *given = of_size(&b, ROOM * (sizeof(vpps_trial) + MORE));
    const size_t size = sizeof(vpps_trial) + MORE;
    memcpy(given, &size, sizeof size);
    n_trials = ROOM;
    TEST_OK(vpps_handle_trials(n.h, given, &n_trials, &done));
    expect_margin(&b, "vpps_trial");
    for (uint32_t i = 0; i < ROOM; i++) {
        const vpps_trial *x = (const void *)(b.bytes + i * size);
        ck_assert_uint_eq(x->groups, known[i].groups);
        ck_assert_int_eq((int)x->state, (int)known[i].state);
    }
    n_trials = ROOM;
    TEST_FAILS(vpps_handle_trials(n.h, NULL, &n_trials, &done), VPPS_ARGUMENT, "NULL");
}

/* ---------------------------------------------------------------- what the library reads */

TEST(options_of_other_sizes) {
    block b;
    AT_END(sn_close) small_network n = sn_of(1);
    /* older: members that it lacks have vpps_options_default's values; newer: a member that is set and unknown here is an error */
    vpps_options *o = of_size(&b, UP_TO(vpps_options, optimizer));
    TEST_OK(vpps_options_init(o, b.size));
    expect_margin(&b, "vpps_options");
    ck_assert_float_eq(o->optimizer.lr, VPPS_DEFAULT_LR);
    o->vps = 1;
    vpps_handle *h = new_handle(n.model, o);
    TEST_OK(vpps_fb(h, n.g, sn_build(&n, 1, 1), NULL));
    vpps_handle_destroy(h);
    o = of_size(&b, sizeof *o + 32);
    TEST_OK(vpps_options_init(o, b.size));
    expect_margin(&b, "vpps_options");
    o->vps = 1;
    TEST_OK(vpps_handle_create(&h, n.model, o));
    vpps_handle_destroy(h);
    b.bytes[sizeof *o + 5] = 1;
    TEST_FAILS(vpps_handle_create(&h, n.model, o), VPPS_ARGUMENT, "which this version, " VPPS_VERSION);
    b.bytes[sizeof *o + 5] = 0;
    o->size = 0;
    TEST_FAILS(vpps_handle_create(&h, n.model, o), VPPS_ARGUMENT, "vpps_options: its size is 0");
    TEST_FAILS(vpps_options_init(o, 12), VPPS_ARGUMENT, "vpps_options: its size is 12");
    /* memory that nobody set: the library must not read as far as such a size says */
    o->size = (size_t)0xa5a5a5a5a5a5a5a0;
    TEST_FAILS(vpps_handle_create(&h, n.model, o), VPPS_ARGUMENT, "at most 4096");
    TEST_FAILS(vpps_options_init(o, 4104), VPPS_ARGUMENT, "vpps_options: its size is 4104");
}

TEST(applications_of_other_sizes) {
    block b;
    AT_END(sn_close) small_network n = sn_of(1);
    vpps_graph *r = begin_cell(n.model, "twice");
    TEST_OK(vpps_scatter(r, vpps_scale(r, vpps_lookup(r, n.E, vpps_pull_index(r)), 2)));
    const vpps_cell twice = end_cell(r);
    r = begin_cell(n.model, "sum");
    TEST_OK(vpps_scatter(r, vpps_sum(r, 1, (vpps_node[]){vpps_gather_list(r, 0, SN_EMBED, 1)})));
    const vpps_cell sum = end_cell(r);
    const uint32_t word = 3;
    vpps_vertex v = 0;
    for (size_t larger = 0; larger < 2; larger++) { /* older: without lists */
        vpps_application *a = of_size(&b, larger ? sizeof *a + 24 : UP_TO(vpps_application, indices));
        a->cell = twice;
        a->n_indices = 1;
        a->indices = &word;
        v = vpps_apply(n.g, a);
        TEST_OK(vpps_graph_status(n.g));
        expect_margin(&b, "vpps_application");
    }
    TEST_OK(vpps_graph_status(n.g));
    vpps_application *a = of_size(&b, UP_TO(vpps_application, indices));
    a->cell = sum;
    a->n_children = 1;
    a->children = &v;
    v = vpps_apply(n.g, a); /* one list: the remaining children */
    TEST_OK(vpps_graph_status(n.g));
    static const size_t wrong[] = {0, 4104};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        a->size = wrong[i];
        ck_assert_uint_eq(vpps_apply(n.g, a), VPPS_NO_VERTEX);
        TEST_FAILS(vpps_graph_status(n.g), VPPS_ARGUMENT, "apply: vpps_application: its size is ");
        vpps_graph_clear(n.g);
    }
    vpps_applications *many = of_size(&b, sizeof *many + 8);
    many->cell = twice;
    many->n = many->n_indices = 1;
    many->indices = &word;
    ck_assert_uint_eq(vpps_apply_many(n.g, many), 0);
    many->size = 8;
    ck_assert_uint_eq(vpps_apply_many(n.g, many), VPPS_NO_VERTEX);
    TEST_FAILS(vpps_graph_status(n.g), VPPS_ARGUMENT, "apply_many: vpps_applications: its size is 8");
}

TEST(groups_of_other_sizes) {
    const vpps_options o = sn_options(1, VPPS_SGD);
    AT_END(sn_close) small_network n = sn_with(1, &o);
    TEST_FAILS(vpps_set_param_group(n.h, 1, &n.b, &(vpps_param_group){.lr = 1}), VPPS_ARGUMENT, "vpps_param_group");
}
