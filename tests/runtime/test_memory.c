/* test_memory.c - refuses each allocation of the calling thread in turn: the call fails with MEMORY, and the next call works. */
#include "common/refusing.h"
#include "graph/model.h"
#include "runtime/small_network.h"

/* ---------------------------------------------------------------- recording */

/* Records cells, and checks no status but the last one. */
static vpps_status record(const small_network *n, vpps_cell *cell) {
    vpps_graph *g;
    VPPS_TRY(vpps_cell_begin(n->model, "cell", &g));
    const vpps_node h = vpps_gather(g, 0, 0, SN_HIDDEN, 1), x = vpps_lookup(g, n->E, vpps_pull_index(g));
    const vpps_node next = vpps_tanh(g, vpps_affine2(g, n->b, n->W, x, n->U, h));
    vpps_scatter(g, next);
    vpps_push(g, vpps_add(g, next, vpps_pull(g, SN_HIDDEN, 1)));
    return vpps_cell_end(g, cell);
}

TEST_GROUP("memory", .seconds = 60, .left_out = REFUSING_LEFT_OUT);

TEST(a_cell_is_recorded_whole_or_not_at_all) {
    bool more = true;
    for (uint32_t k = 1; more; k++) {
        vpps_cell cell;
        const uint32_t word = 3;
        AT_END(sn_close) small_network n = sn_of(1);
        more = REFUSING(k, record(&n, &cell));
        if (more) TEST_OK(record(&n, &cell));
        const vpps_node start = vpps_parameter(n.g, n.b);
        const vpps_vertex child = vpps_source(n.g, 1, &start);
        const vpps_vertex v = APPLY(n.g, cell, CHILDREN(1, &child), PULLS(1, &start), INDICES(1, &word));
        ck_assert_uint_ne(vpps_scattered(n.g, v, 0), VPPS_NO_NODE);
        ck_assert_uint_ne(vpps_pushed(n.g, v, 0), VPPS_NO_NODE);
        TEST_OK(vpps_graph_status(n.g));
    }
}

/* ---------------------------------------------------------------- batches */

typedef struct trained {
    float loss, inferred, asked, *values;
    size_t n_values;
} trained;

/* Makes a call: with allocation k (0: none) refused if the call is the tried one, and then again if an allocation was refused, which sets `came`. */
#define TRY_REFUSED(tried, call)                                                                                       \
    do {                                                                                                               \
        const bool refused_ = k && (tried) && REFUSING(k, call);                                                       \
        if (!k || !(tried) || refused_) TEST_OK(call);                                                                 \
        came |= refused_;                                                                                              \
    } while (0)

/* The call whose allocation is refused. */
enum { REFUSED_FB, REFUSED_FORWARD, REFUSED_BACKWARD };

/* Computes one batch's gradients with a request; allocation k (0: none) is refused, and then the call is repeated. */
static bool train_with_request(const small_network *n, vpps_handle *h, uint32_t k, float *value) {
    const vpps_node loss = sn_build(n, 0, 1);
    const vpps_node nodes[] = {loss, 3}; /* 3: the state after the first word */
    float state[SN_HIDDEN], gradient[SN_HIDDEN], told, one;
    float *const outs[] = {&told, state}, *const gradients[] = {&one, gradient};
    const vpps_request request = {sizeof request, 2, nodes, outs, 2, nodes, gradients, false, 0, false};
    bool came = false;
    TRY_REFUSED(true, vpps_backward(h, n->g, loss, &request));
    *value = told + state[5] + 100 * gradient[3];
    return came;
}

/* Runs one batch and one inference; allocation k of one of them (0: none) is refused, and then the call is repeated. */
static bool train(trained *t, uint32_t k, uint32_t call) {
    vpps_options o = sn_options(2, VPPS_ADAM);
    o.caller = VPPS_CALLER_FREE;
    AT_END(sn_close) small_network n = sn_with(1, &o);
    const vpps_node loss = sn_build(&n, 0, 1);
    bool came = false;
    if (call == REFUSED_BACKWARD) {
        came = train_with_request(&n, n.h, k, &t->asked);
        TEST_OK(vpps_update(n.h));
    } else {
        TRY_REFUSED(call == REFUSED_FB, vpps_fb(n.h, n.g, loss, NULL));
    }
    TEST_OK(vpps_sync_latest_loss(n.h, &t->loss));
    float *const outs[] = {&t->inferred};
    const vpps_node other = sn_build(&n, 4, 1);
    TRY_REFUSED(call == REFUSED_FORWARD, vpps_forward(n.h, n.g, 1, &other, outs));
    t->values = handle_values(n.model, n.h, &t->n_values);
    return came;
}

/* Refuses the allocations of one of a run's calls, at least `least` of them: results do not change. */
static void check_refusals(bool (*run)(trained *, uint32_t, uint32_t), uint32_t call, uint32_t least) {
    trained right = {0}, t = {0};
    run(&right, 0, call);
    bool more = true;
    uint32_t k = 1;
    for (; more; k++) {
        more = run(&t, k, call);
        ck_assert_float_eq(t.loss, right.loss);
        ck_assert_float_eq(t.inferred, right.inferred);
        ck_assert_float_eq(t.asked, right.asked);
        ck_assert_msg(!memcmp(t.values, right.values, right.n_values * sizeof(float)),
                      "other parameters after allocation %u was refused", k);
        free(t.values);
    }
    ck_assert_uint_ge(k, least);
    free(right.values);
}

TEST_EACH(a_batch_that_found_no_memory_can_be_run_again, 0, 3) { check_refusals(train, (uint32_t)_i, 11); }

/* Builds a batch that reads a kept value, whose tanh is the result; *loss adds its elements to a network's loss. */
static vpps_node keep_graph(const small_network *n, vpps_handle *h, vpps_value data, vpps_node *loss) {
    const vpps_node term = sn_build(n, 0, 1), x = vpps_tanh(n->g, vpps_kept(n->g, h, data));
    *loss = vpps_add(n->g, term, vpps_sum_elements(n->g, x));
    return x;
}

/* Keeps values around a batch; allocation k of one of the calls is refused. */
static bool keep(trained *t, uint32_t k, uint32_t call) {
    vpps_value kept = VPPS_NO_VALUE, data;
    vpps_node both;
    float state[SN_HIDDEN] = {1};
    vpps_options o = sn_options(1, VPPS_ADAM);
    o.caller = VPPS_CALLER_FREE;
    o.keep_bytes = 4096;
    AT_END(sn_close) small_network n = sn_with(1, &o);
    bool came = false;
    if (k && call == 0) came = REFUSING(k, vpps_keep_data(n.h, SN_HIDDEN, 1, state, &data));
    if (came) ck_assert_uint_eq(data, VPPS_NO_VALUE);
    if (!k || call || came) TEST_OK(vpps_keep_data(n.h, SN_HIDDEN, 1, state, &data));
    vpps_node x = keep_graph(&n, n.h, data, &both);
    TEST_OK(vpps_keep(n.h, n.g, x, &kept));
    TEST_OK(vpps_fb(n.h, n.g, both, NULL)); /* compiles the cells, so that few allocations are left */
    TEST_OK(vpps_release(n.h, kept));
    x = keep_graph(&n, n.h, data, &both);
    TRY_REFUSED(call == 1, vpps_keep(n.h, n.g, x, &kept));
    TRY_REFUSED(call == 2, vpps_fb(n.h, n.g, both, NULL));
    TEST_OK(vpps_read_kept(n.h, kept, state));
    ck_assert_float_eq_tol(state[0], 0.76159f, 1e-5f); /* tanh(1) */
    t->inferred = state[0];
    TEST_OK(vpps_release(n.h, kept));
    t->values = handle_values(n.model, n.h, &t->n_values);
    return came;
}

TEST_EACH(a_value_that_found_no_memory_can_be_kept_again, 0, 3) { check_refusals(keep, (uint32_t)_i, 2); }
