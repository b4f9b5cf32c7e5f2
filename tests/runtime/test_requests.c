/* test_requests.c - what vpps_backward returns on request: values of nodes in the same step, and gradients of nodes. (All nodes of random graphs,
 * compared with the reference: test_random.c, gpu/test_gpu_agreement.c.) */
#include "common/gpu_tests.h"
#include "common/reference.h"
#include "runtime/small_network.h"

#define settings sn_usual

/* ---------------------------------------------------------------- chains, whose nodes are known */

typedef struct chains {
    sn_chains of;
    vpps_node terms[SN_CHAINS], half, loss;
} chains;

/* Builds chains with a classifier at their ends. */
static chains build_chains(const small_network *n, uint32_t batch) {
    vpps_graph *g = n->g;
    chains c = {.of = sn_build_chains(n, batch, 0)};
    uint64_t random = batch;
    for (uint32_t i = 0; i < SN_CHAINS; i++)
        c.terms[i] = vpps_cross_entropy(g, c.of.scores[i], vpps_random_below(&random, SN_CLASSES));
    c.half = vpps_sum(g, SN_CHAINS / 2, c.terms);
    c.loss = vpps_scale(g, vpps_add(g, c.half, vpps_sum(g, SN_CHAINS / 2, c.terms + SN_CHAINS / 2)), 0.25f);
    return c;
}

/* ---------------------------------------------------------------- values */

TEST_GROUP("requests", .seconds = 120);

/* Each of several calls that accumulate gradients returns its own values; frozen parameters do not matter. */
SN_EACH(values_while_gradients_add_up) {
    AT_END(sn_close) small_network a = sn_on(&settings[_i]), b = sn_on(&settings[_i]);
    for (uint32_t batch = 0; batch < 6; batch++) {
        float score[SN_CLASSES], want[SN_CLASSES];
        if (batch == 3) {
            TEST_OK(vpps_freeze(a.model, a.E, true));
            TEST_OK(vpps_freeze(b.model, b.E, true));
            TEST_OK(vpps_freeze(a.model, a.U, true));
            TEST_OK(vpps_freeze(b.model, b.U, true));
        }
        const chains c = build_chains(&a, batch);
        TEST_OK(vpps_forward(a.h, a.g, 1, &c.of.scores[4], (float *[]){want}));
        TEST_OK(
            vpps_backward(a.h, a.g, c.loss,
                          VPPS_REQUEST(.n_values = 1, .values = &c.of.scores[4], .value_outs = (float *[]){score})));
        sn_expect_near(score, want, SN_CLASSES, sn_error(&settings[_i]));
        TEST_OK(vpps_backward(b.h, b.g, build_chains(&b, batch).loss, NULL));
        if (batch % 2) {
            TEST_OK(vpps_update(a.h));
            TEST_OK(vpps_update(b.h));
        }
    }
    sn_expect_alike(&a, &b, 0);
}

/* Momentum moves no parameter that a batch's loss does not depend on, even if requested values do. */
SN_EACH(values_train_nothing) {
    AT_END(sn_close) small_network n = sn_on(&settings[_i]);
    chains c = build_chains(&n, 0);
    float before[SN_CLASSES * SN_HIDDEN + SN_CLASSES], scores[SN_CLASSES];
    const size_t of_C = vpps_param_elems(&n.model->params[n.C]);
    TEST_OK(vpps_fb(n.h, n.g, c.loss, NULL));
    TEST_OK(vpps_read_parameters(n.h));
    memcpy(before, n.model->params[n.C].values, of_C * sizeof *before);
    memcpy(before + of_C, n.model->params[n.b_c].values, SN_CLASSES * sizeof *before);
    c = build_chains(&n, 1);
    const vpps_node loss = vpps_squared_distance(n.g, c.of.states[0], c.of.states[1]);
    TEST_OK(vpps_backward(n.h, n.g, loss,
                          VPPS_REQUEST(.n_values = 1, .values = &c.of.scores[2], .value_outs = (float *[]){scores})));
    TEST_OK(vpps_update(n.h));
    TEST_OK(vpps_read_parameters(n.h));
    ck_assert(!memcmp(before, n.model->params[n.C].values, of_C * sizeof *before));
    ck_assert(!memcmp(before + of_C, n.model->params[n.b_c].values, SN_CLASSES * sizeof *before));
}

/* ---------------------------------------------------------------- gradients */

/* Requests the gradients of some nodes. */
static void read_gradients_of(vpps_handle *h, vpps_graph *g, vpps_node loss, uint32_t n, const vpps_node *nodes,
                              float *const *outs, bool no_parameters) {
    TEST_OK(vpps_backward(
        h, g, loss,
        VPPS_REQUEST(.n_gradients = n, .gradients = nodes, .gradient_outs = outs, .no_parameters = no_parameters)));
}

/* Without parameters' gradients: accumulated gradients and their loss stay; otherwise there is nothing to update. */
SN_EACH(steps_without_parameters) {
    AT_END(sn_close) small_network a = sn_on(&settings[_i]), b = sn_on(&settings[_i]);
    float x[SN_EMBED], *const out = x, loss, want, score[SN_CLASSES];
    chains c = build_chains(&a, 0);
    read_gradients_of(a.h, a.g, c.loss, 1, c.of.words, &out, true);
    ck_assert(x[0] != 0);
    TEST_FAILS(vpps_update(a.h), VPPS_STATE, "no gradients");
    TEST_OK(vpps_backward(a.h, a.g, c.loss, VPPS_REQUEST(.no_parameters = true))); /* returns the loss, with dropout */
    loss = latest_loss(a.h);
    want = infer(a.h, a.g, c.loss);
    sn_expect_near(&loss, &want, 1, sn_error(&settings[_i]));
    TEST_OK(vpps_read_gradients(a.h));
    double norm;
    TEST_OK(vpps_gradient_norm(a.model, VPPS_NO_PARAM, &norm));
    ck_assert_double_eq(norm, 0);
    for (uint32_t batch = 0; batch < 4; batch++) {
        c = build_chains(&a, batch);
        TEST_OK(vpps_backward(a.h, a.g, c.loss, NULL));
        read_gradients_of(a.h, a.g, build_chains(&a, 9).loss, 1, &c.of.words[0], &out, true);
        c = build_chains(&a, 7);
        TEST_OK(vpps_backward(a.h, a.g, c.loss,
                              VPPS_REQUEST(.n_values = 1, .values = &c.of.scores[1], .value_outs = (float *[]){score},
                                           .n_gradients = 1, .gradients = c.of.words, .gradient_outs = &out,
                                           .no_parameters = true)));
        TEST_OK(vpps_sync_latest_loss(a.h, NULL));
        TEST_OK(vpps_backward(a.h, a.g, build_chains(&a, batch + 20).loss, NULL));
        TEST_OK(vpps_update(a.h));
        TEST_OK(vpps_backward(b.h, b.g, build_chains(&b, batch).loss, NULL));
        TEST_OK(vpps_backward(b.h, b.g, build_chains(&b, batch + 20).loss, NULL));
        TEST_OK(vpps_update(b.h));
        ck_assert_float_eq(latest_loss(a.h), latest_loss(b.h));
        read_gradients_of(a.h, a.g, build_chains(&a, 9).loss, 1, &c.of.words[0], &out, true);
        TEST_OK(vpps_fb(a.h, a.g, build_chains(&a, batch).loss, NULL)); /* vpps_fb begins a sum of its own */
        TEST_OK(vpps_fb(b.h, b.g, build_chains(&b, batch).loss, NULL));
    }
    sn_expect_alike(&a, &b, 0);
    ck_assert_uint_eq(stats_of(a.h).batches, 8);
}

/* Records a cell that scatters a state, and pushes a value made of it, a value it is made of, and a gathered one; `which` draws it. */
static vpps_cell record_state(const small_network *n, uint32_t which) {
    vpps_graph *r = begin_cell(n->model, "state");
    const vpps_node x = vpps_lookup(r, n->E, vpps_pull_index(r)), before = vpps_gather(r, 0, 0, SN_HIDDEN, 1);
    const vpps_node a = vpps_affine2(r, n->b, n->W, x, n->U, before), state = which & 1 ? vpps_tanh(r, a) : a;
    TEST_OK(vpps_scatter(r, state));
    TEST_OK(vpps_push(r, which & 2 ? a : vpps_sigmoid(r, a)));
    TEST_OK(vpps_push(r, which & 4 ? vpps_dot(r, state, state) : vpps_sum_elements(r, vpps_mul(r, a, before))));
    TEST_OK(vpps_push(r, which & 8 ? before : x));
    return end_cell(r);
}

/* Records a cell that reads two states, and a table entry of its own. */
static vpps_cell record_parent(const small_network *n) {
    vpps_graph *r = begin_cell(n->model, "parent");
    const vpps_node x = vpps_matvec(r, n->W, vpps_lookup(r, n->E, vpps_pull_index(r)));
    const vpps_node y = vpps_gather(r, 0, 0, SN_HIDDEN, 1), z = vpps_gather(r, 1, 0, SN_HIDDEN, 1);
    TEST_OK(vpps_scatter(r, vpps_tanh(r, vpps_add(r, vpps_mul(r, x, y), z))));
    TEST_OK(vpps_push(r, vpps_dot(r, x, vpps_mul(r, y, z))));
    return end_cell(r);
}

/* Whatever else is frozen or requested, a node's gradient is the reference's, including what its own cell makes of it. */
TEST_EACH(gradients_of_a_few_nodes, 0, 96) {
    enum { LENGTH = 3, NODES = 4 * LENGTH + 3, ASKED = 2 };
    uint64_t random = (uint64_t)_i + 1;
    const sn_setting on_simt = {.device = "simt", .vps = 2};
    vpps_options o = sn_options(1 + (uint32_t)_i % 2, VPPS_SGD);
    const bool simulated = _i == 0 && !gpu_left_out(); /* each call compiles a kernel */
    if (simulated) o = sn_options_on(&on_simt);
    AT_END(sn_close) small_network n = sn_of((uint64_t)_i);
    const uint32_t freezes = vpps_random_below(&random, 3); /* none, some, all */
    for (vpps_param p = 0; p < SN_PARAMS; p++)
        TEST_OK(vpps_freeze(n.model, p, freezes == 2 || (freezes == 1 && vpps_random_below(&random, 2))));
    const vpps_cell state = record_state(&n, vpps_random_below(&random, 16)), parent = record_parent(&n);
    float first[SN_HIDDEN];
    for (uint32_t i = 0; i < SN_HIDDEN; i++) first[i] = vpps_random_unit(&random) - 0.5f;
    vpps_node nodes[NODES], terms[NODES];
    uint32_t n_nodes = 0, n_terms = 0;
    nodes[n_nodes++] = vpps_input(n.g, SN_HIDDEN, 1, first);
    vpps_vertex v = vpps_source(n.g, 1, nodes), both[2] = {v, v};
    for (uint32_t t = 0, length = 1 + vpps_random_below(&random, LENGTH); t < length; t++) {
        const uint32_t word = vpps_random_below(&random, SN_WORDS);
        v = APPLY(n.g, state, CHILDREN(1, &v), INDICES(1, &word));
        both[t % 2] = v;
        nodes[n_nodes++] = vpps_scattered(n.g, v, 0);
        for (uint32_t k = 0; k < 3; k++) nodes[n_nodes++] = vpps_pushed(n.g, v, k);
    }
    const uint32_t word = vpps_random_below(&random, SN_WORDS);
    v = APPLY(n.g, parent, CHILDREN(2, both), INDICES(1, &word));
    nodes[n_nodes++] = vpps_scattered(n.g, v, 0);
    nodes[n_nodes++] = vpps_pushed(n.g, v, 0);
    for (uint32_t i = 1; i < n_nodes; i++)
        if (i + 2 >= n_nodes || vpps_random_below(&random, 3) == 0)
            terms[n_terms++] = vpps_sum_elements(n.g, vpps_square(n.g, nodes[i]));
    const vpps_node loss = vpps_sum(n.g, n_terms, terms);
    TEST_OK(vpps_graph_status(n.g));
    OWNED(ref_model) *m = ref_model_create(n.model);
    OWNED(ref_run) *r = ref_forward(n.g, m, &(ref_mode){.training = true});
    ref_backward(r, m, loss);
    TEST_OK(vpps_handle_create(&n.h, n.model, &o));
    for (uint32_t call = 0; call < (simulated ? 2 : 4); call++) {
        float got[ASKED][SN_HIDDEN], *const outs[] = {got[0], got[1]};
        const vpps_node asked[] = {nodes[vpps_random_below(&random, n_nodes)],
                                   nodes[vpps_random_below(&random, n_nodes)]};
        read_gradients_of(n.h, n.g, loss, 1 + call % ASKED, asked, outs, vpps_random_below(&random, 2));
        for (uint32_t i = 0; i < 1 + call % ASKED; i++)
            for (size_t e = r->first[asked[i]], k = 0; e < r->first[asked[i] + 1]; e++, k++)
                ck_assert_msg(fabs((double)got[i][k] - r->grads[e]) < 1e-4 * (1 + fabs(r->grads[e])),
                              "node %u, element %zu: %g; expected %g", asked[i], k, (double)got[i][k], r->grads[e]);
    }
}

/* ---------------------------------------------------------------- misuse */

/* Such calls run nothing: there are no gradients afterwards. */
TEST(requests_that_make_no_sense) {
    AT_END(sn_close) small_network n = sn_on(&settings[_i]);
    const chains c = build_chains(&n, 0);
    float out[SN_HIDDEN];
    float *const outs[] = {out, NULL}, *const both[] = {out, out};
    const vpps_node nodes[] = {c.of.scores[0], 12345};
    const struct {
        const vpps_request *request;
        const char *text;
    } wrong[] = {
        {&(vpps_request){.size = 0}, "vpps_request"},
        {VPPS_REQUEST(.n_values = 1, .value_outs = outs), "1 values, but no list"},
        {VPPS_REQUEST(.n_values = 1, .values = nodes), "1 values, but no list"},
        {VPPS_REQUEST(.n_values = 2, .values = nodes, .value_outs = outs), "values[1] is NULL"},
        {VPPS_REQUEST(.n_values = 2, .values = nodes, .value_outs = both), "12345 is not a node"},
        {VPPS_REQUEST(.n_gradients = 3, .gradients = nodes), "3 gradients, but no list"},
        {VPPS_REQUEST(.n_gradients = 2, .gradients = nodes, .gradient_outs = outs), "gradients[1] is NULL"},
        {VPPS_REQUEST(.n_gradients = 2, .gradients = nodes, .gradient_outs = both), "12345 is not a node"},
    };
    for (size_t i = 0; i < VPPS_COUNT(wrong); i++)
        TEST_FAILS(vpps_backward(n.h, n.g, c.loss, wrong[i].request), VPPS_ARGUMENT, wrong[i].text);
    TEST_FAILS(vpps_backward(n.h, n.g, VPPS_NO_NODE, VPPS_REQUEST(.n_values = 1, .values = nodes, .value_outs = outs)),
               VPPS_ARGUMENT, "no loss is given");
    TEST_FAILS(vpps_update(n.h), VPPS_STATE, "no gradients");
    TEST_OK(vpps_backward(n.h, n.g, c.loss, VPPS_REQUEST(.n_values = 0)));
    TEST_OK(vpps_update(n.h));
}
