/* test_halves.c - a training step in two halves: gradients equal those of vpps_backward, values stay between the halves, and no other call runs
 * between them. (All operations: test_random.c, gpu/test_gpu_agreement.c; processes: comm/test_share.c.) */
#include "common/gpu_tests.h"
#include "graph/graph.h"
#include "runtime/small_network.h"

#define settings sn_usual

/* Builds chains with dropout before their scores. */
static sn_chains build_chains(const small_network *n, uint32_t batch) { return sn_build_chains(n, batch, 0.25f); }

/* The numbers that tests give as gradients of the scores. */
static float given[SN_CHAINS][SN_CLASSES];
static const float *given_scores[SN_CHAINS];

__attribute__((constructor)) static void draw_given(void) {
    uint64_t random = 3;
    for (uint32_t i = 0; i < SN_CHAINS; i++) {
        for (uint32_t k = 0; k < SN_CLASSES; k++) given[i][k] = vpps_random_unit(&random) - 0.5f;
        given_scores[i] = given[i];
    }
}

/* Adds the sum of the scores times the given numbers as the loss. */
static vpps_node add_loss(vpps_graph *g, const sn_chains *c) {
    vpps_node terms[SN_CHAINS];
    for (uint32_t i = 0; i < SN_CHAINS; i++)
        terms[i] = vpps_dot(g, c->scores[i], vpps_input(g, SN_CLASSES, 1, given[i]));
    return vpps_sum(g, SN_CHAINS, terms);
}

/* The forward half's results: the scores, and then the gradients of the words. */
typedef struct half {
    float scores[SN_CHAINS][SN_CLASSES], words[SN_CHAINS][SN_EMBED];
    float *to_scores[SN_CHAINS], *to_words[SN_CHAINS];
} half;

static vpps_status open_step(const small_network *n, const sn_chains *c, half *out) {
    for (uint32_t i = 0; i < SN_CHAINS; i++) out->to_scores[i] = out->scores[i], out->to_words[i] = out->words[i];
    const vpps_request request = {sizeof request, SN_CHAINS, c->scores, out->to_scores, SN_CHAINS, c->words,
                                  out->to_words,  false,     0,         false};
    return vpps_step_forward(n->h, n->g, &request);
}

/* ---------------------------------------------------------------- the same as vpps_backward */

TEST_GROUP("halves", .seconds = 120);

/* Both kinds of steps add up; masks are drawn alike; frozen parameters stay; a step that is given up has no effect. */
SN_EACH(gradients_are_those_of_backward) {
    AT_END(sn_close) small_network a = sn_on(&settings[_i]), b = sn_on(&settings[_i]);
    const double error = sn_error(&settings[_i]);
    float value[SN_CLASSES], word[SN_EMBED];
    for (uint32_t batch = 0; batch < 6; batch++) {
        half got;
        if (batch == 3) {
            TEST_OK(vpps_freeze(a.model, a.U, true));
            TEST_OK(vpps_freeze(b.model, b.U, true));
        }
        sn_chains c = build_chains(&a, batch);
        if (batch == 1) {
            TEST_OK(open_step(&a, &c, &got));
            TEST_OK(vpps_step_drop(a.h));
        }
        TEST_OK(open_step(&a, &c, &got));
        vpps_graph_clear(a.g);
        TEST_OK(vpps_step_backward(a.h, SN_CHAINS, given_scores));
        c = build_chains(&b, batch);
        TEST_OK(vpps_backward(b.h, b.g, add_loss(b.g, &c),
                              VPPS_REQUEST(.n_values = 1, .values = &c.scores[3], .value_outs = (float *[]){value},
                                           .n_gradients = 1, .gradients = &c.words[3],
                                           .gradient_outs = (float *[]){word})));
        sn_expect_near(got.scores[3], value, SN_CLASSES, error);
        sn_expect_near(got.words[3], word, SN_EMBED, error);
        if (batch == 4) { /* a whole step of another kind joins the sum */
            c = build_chains(&a, 9);
            TEST_OK(vpps_backward(a.h, a.g, add_loss(a.g, &c), NULL));
            c = build_chains(&b, 9);
            TEST_OK(vpps_backward(b.h, b.g, add_loss(b.g, &c), NULL));
        }
        if (batch % 2) {
            TEST_OK(vpps_update(a.h));
            TEST_OK(vpps_update(b.h));
        }
    }
    sn_expect_alike(&a, &b, settings[_i].optimizer == VPPS_ADAM ? 10 * error : error);
    ck_assert_uint_eq(stats_of(a.h).batches, 3);
}

/* A scalar with gradient 1 gives the same bits as vpps_backward with it as the loss, if that runs in one wave and slice. */
SN_EACH(a_loss_by_itself_has_the_same_bits) {
    sn_setting s = settings[_i];
    s.waves = s.slices = 1;
    AT_END(sn_close) small_network a = sn_on(&s), b = sn_on(&s);
    const float one = 1;
    for (uint32_t batch = 0; batch < 4; batch++) {
        float value;
        vpps_node loss = sn_build(&a, batch, 1);
        TEST_OK(vpps_step_forward(a.h, a.g,
                                  VPPS_REQUEST(.n_values = 1, .values = &loss, .value_outs = (float *[]){&value})));
        TEST_OK(vpps_step_backward(a.h, 1, (const float *[]){&one}));
        TEST_OK(vpps_update(a.h));
        loss = sn_build(&b, batch, 1);
        float one_again;
        TEST_OK(vpps_backward(
            b.h, b.g, loss,
            VPPS_REQUEST(.n_gradients = 1, .gradients = &loss, .gradient_outs = (float *[]){&one_again})));
        ck_assert(latest_loss(b.h) == value && one_again == 1);
        TEST_OK(vpps_update(b.h));
    }
    sn_expect_alike(&a, &b, 0);
}

/* Dropout masks by the caller's number: equal in both halves of two steps and in vpps_backward, before and after an update; or no dropout. */
SN_EACH(masks_by_number) {
    AT_END(sn_close) small_network n = sn_on(&settings[_i]);
    float masks[7][SN_HIDDEN], ones[SN_HIDDEN], d[SN_HIDDEN];
    for (uint32_t k = 0; k < SN_HIDDEN; k++) ones[k] = 1;
    for (uint32_t i = 0; i < 7; i++) {
        const uint64_t draws[] = {7, 8, 7, 0, 7, 7, 7};
        vpps_graph_clear(n.g);
        const vpps_node x = vpps_input(n.g, SN_HIDDEN, 1, ones), y = vpps_dropout(n.g, vpps_scale(n.g, x, 1), 0.5f);
        const vpps_node loss = vpps_sum_elements(n.g, vpps_add(n.g, y, vpps_parameter(n.g, n.b)));
        vpps_request request = {sizeof request, 1,        &y,   (float *[]){masks[i]}, 1, &x, (float *[]){d},
                                false,          draws[i], i > 4};
        if (i != 4 && i != 6) {
            TEST_OK(vpps_step_forward(n.h, n.g, &request));
            TEST_OK(vpps_step_backward(n.h, 1, (const float *[]){ones}));
        } else {
            TEST_OK(vpps_backward(n.h, n.g, loss, &request));
            TEST_OK(vpps_update(n.h));
        }
        for (uint32_t k = 0; k < SN_HIDDEN; k++) ck_assert_float_eq(masks[i][k], d[k]);
        if (i == 1) TEST_OK(vpps_update(n.h));
    }
    ck_assert_mem_eq(masks[0], masks[2], sizeof *masks);
    ck_assert_mem_eq(masks[0], masks[4], sizeof *masks);
    ck_assert_mem_ne(masks[0], masks[1], sizeof *masks);
    ck_assert_mem_ne(masks[0], masks[3], sizeof *masks);
    ck_assert_mem_eq(masks[5], ones, sizeof ones);
    ck_assert_mem_eq(masks[6], ones, sizeof ones);
}

/* The forward half computes values that stay on the device, and a step reads them. */
SN_EACH(values_are_kept) {
    AT_END(sn_close) small_network n = sn_on(&settings[_i]);
    half got;
    float kept[SN_HIDDEN], want[SN_HIDDEN], d[SN_HIDDEN];
    vpps_value value;
    sn_chains c = build_chains(&n, 0);
    TEST_OK(vpps_forward(n.h, n.g, 1, &c.states[4], (float *[]){want}));
    TEST_OK(vpps_keep(n.h, n.g, c.states[4], &value));
    TEST_OK(open_step(&n, &c, &got));
    TEST_FAILS(vpps_read_kept(n.h, value, kept), VPPS_STATE, "step 1");
    vpps_graph_clear(n.g);
    const vpps_node state = vpps_kept(n.g, n.h, value), next = vpps_tanh(n.g, vpps_matvec(n.g, n.U, state));
    TEST_OK(vpps_step_backward(n.h, SN_CHAINS, given_scores));
    TEST_OK(vpps_read_kept(n.h, value, kept));
    sn_expect_near(kept, want, SN_HIDDEN, 0);
    TEST_OK(vpps_step_forward(n.h, n.g,
                              VPPS_REQUEST(.n_values = 1, .values = &next, .value_outs = (float *[]){kept},
                                           .n_gradients = 1, .gradients = &state, .gradient_outs = (float *[]){d})));
    TEST_OK(vpps_step_backward(n.h, 1, (const float *[]){kept}));
    double norm = 0;
    for (uint32_t k = 0; k < SN_HIDDEN; k++) norm += (double)d[k] * (double)d[k];
    ck_assert(norm > 0);
}

/* ---------------------------------------------------------------- between the halves */

SN_EACH(nothing_else_runs_while_a_step_is_open) {
    AT_END(sn_close) small_network a = sn_on(&settings[_i]), b = sn_on(&settings[_i]);
    half got;
    vpps_value value;
    sn_chains c = build_chains(&a, 0);
    TEST_OK(vpps_keep_data(a.h, 1, 1, given[0], &value));
    TEST_FAILS(vpps_step_backward(a.h, SN_CHAINS, given_scores), VPPS_STATE, "no step is open");
    TEST_FAILS(vpps_step_drop(a.h), VPPS_STATE, "no step is open");
    TEST_OK(vpps_step_forward(a.h, a.g,
                              VPPS_REQUEST(.n_values = 1, .values = c.scores, .value_outs = (float *[]){got.scores[0]},
                                           .no_parameters = true)));
    TEST_OK(vpps_step_backward(a.h, 1, given_scores));
    TEST_FAILS(vpps_update(a.h), VPPS_STATE, "no gradients");
    TEST_OK(open_step(&a, &c, &got));
    TEST_OK(vpps_step_drop(a.h));
    TEST_FAILS(vpps_step_drop(a.h), VPPS_STATE, "no step is open");
    TEST_OK(open_step(&a, &c, &got));
    sn_expect_refused(&a, a.h, false, "step 3 (batch 1) is open");
    TEST_OK(vpps_kept_shape(a.h, value, NULL, NULL));
    ck_assert_uint_eq(stats_of(a.h).batches, 0);
    TEST_FAILS(vpps_step_backward(a.h, SN_CHAINS - 1, given_scores), VPPS_ARGUMENT, "5 gradients; expected 6");
    TEST_FAILS(vpps_step_backward(a.h, SN_CHAINS, NULL), VPPS_ARGUMENT, "gradients");
    TEST_OK(vpps_step_backward(a.h, SN_CHAINS, given_scores));
    TEST_FAILS(vpps_step_backward(a.h, SN_CHAINS, given_scores), VPPS_STATE, "no step is open");
    TEST_OK(vpps_update(a.h));
    c = build_chains(&b, 0);
    TEST_OK(open_step(&b, &c, &got));
    TEST_OK(vpps_step_backward(b.h, SN_CHAINS, given_scores));
    TEST_OK(vpps_update(b.h));
    sn_expect_alike(&a, &b, 0);
    TEST_OK(open_step(&b, &c, &got)); /* the handle is destroyed while a step is open */
}

TEST(requests_that_make_no_sense) {
    AT_END(sn_close) small_network n = sn_on(&settings[0]);
    const sn_chains c = build_chains(&n, 0);
    const vpps_node none = VPPS_NO_NODE;
    float out[SN_HIDDEN];
    float *const outs[] = {out};
    TEST_FAILS(vpps_step_forward(n.h, n.g, NULL), VPPS_ARGUMENT, "request");
    TEST_FAILS(vpps_step_forward(n.h, n.g, VPPS_REQUEST(.n_values = 0)), VPPS_ARGUMENT, "names no values");
    TEST_FAILS(vpps_step_forward(n.h, n.g, VPPS_REQUEST(.n_values = 1, .value_outs = outs)), VPPS_ARGUMENT,
               "step_forward: the request has 1 values, but no list");
    TEST_FAILS(vpps_step_forward(n.h, n.g, VPPS_REQUEST(.n_values = 1, .values = &none, .value_outs = outs)),
               VPPS_ARGUMENT, "is not a node");
    TEST_FAILS(vpps_step_forward(n.h, n.g,
                                 VPPS_REQUEST(.n_values = 1, .values = c.scores, .value_outs = outs, .n_gradients = 1,
                                              .gradients = &none, .gradient_outs = outs)),
               VPPS_ARGUMENT, "is not a node");
    const vpps_node choice = vpps_argmax(n.g, c.scores[0]);
    TEST_FAILS(vpps_step_forward(n.h, n.g, VPPS_REQUEST(.n_values = 1, .values = &choice, .value_outs = outs)),
               VPPS_ARGUMENT, "no gradients");
    TEST_FAILS(vpps_step_drop(n.h), VPPS_STATE, "no step is open");
    OWNED(vpps_handle) *reader;
    vpps_options o = sn_options(1, VPPS_SGD);
    TEST_OK(vpps_handle_create_inference(&reader, n.h, &o));
    TEST_FAILS(vpps_step_forward(reader, n.g, VPPS_REQUEST(.n_values = 1, .values = c.scores, .value_outs = outs)),
               VPPS_STATE, "one for inference");
}

/* A batch that fits the pool in several waves may not fit it in one. */
TEST(a_step_that_does_not_fit_says_so) {
    enum { MANY = 400 };
    AT_END(sn_close) small_network n = sn_of(1);
    vpps_options o = sn_options(1, VPPS_SGD);
    o.pool_bytes = 200 << 10;
    TEST_OK(vpps_handle_create(&n.h, n.model, &o));
    vpps_node scores[MANY], terms[MANY];
    float(*out)[SN_CLASSES] = need(calloc(MANY, sizeof *out)), *outs[MANY];
    const float **gradients = need(calloc(MANY, sizeof *gradients));
    for (uint32_t few = 0; few < 2; few++) {
        const uint32_t many = few ? 10 : MANY;
        vpps_graph_clear(n.g);
        for (uint32_t i = 0; i < many; i++) {
            scores[i] = sn_scores(&n, sn_read(&n, i % SN_WORDS, VPPS_NO_NODE));
            terms[i] = vpps_cross_entropy(n.g, scores[i], i % SN_CLASSES);
            outs[i] = out[i];
            gradients[i] = out[i];
        }
        const vpps_node loss = vpps_sum(n.g, many, terms);
        TEST_OK(vpps_fb(n.h, n.g, loss, NULL));
        const vpps_status status =
            vpps_step_forward(n.h, n.g, VPPS_REQUEST(.n_values = many, .values = scores, .value_outs = outs));
        ck_assert_int_eq(status, few ? VPPS_OK : VPPS_POOL);
        if (!few) ck_assert(strstr(vpps_error_message(), "bytes of the pool, parameters included, in the 1 wave"));
    }
    TEST_OK(vpps_step_backward(n.h, 10, gradients));
    TEST_OK(vpps_update(n.h));
    VPPS_FREE(out, gradients);
}

/* ---------------------------------------------------------------- what is not finite */

/* options.nonfinite holds, even if the output depends on no parameter. */
TEST_EACH(given_gradients_that_are_not_finite, 0, 12) {
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    const vpps_nonfinite rule = (vpps_nonfinite)(_i % 3);
    vpps_options o = sn_options(2, VPPS_SGD);
    o.nonfinite = rule;
    AT_END(sn_close) small_network n = sn_with(1, &o);
    const sn_chains c = build_chains(&n, 0);
    const vpps_node aside = vpps_zeros(n.g, SN_CLASSES, 1), values[] = {c.scores[0], _i < 6 ? c.scores[1] : aside};
    float out[2][SN_CLASSES], g[SN_CLASSES] = {0, 0, bad[_i / 3 % 3]};
    size_t count;
    FREED float *before = handle_values(n.model, n.h, &count);
    TEST_OK(vpps_step_forward(
        n.h, n.g, VPPS_REQUEST(.n_values = 2, .values = values, .value_outs = (float *[]){out[0], out[1]})));
    TEST_OK(vpps_step_backward(n.h, 2, (const float *[]){given[0], g}));
    ck_assert_float_nan(latest_loss(n.h));
    TEST_OK(vpps_update(n.h));
    if (rule == VPPS_NONFINITE_STOP)
        TEST_FAILS(vpps_sync_latest_loss(n.h, NULL), VPPS_NONFINITE, "batch 1");
    else
        TEST_OK(vpps_sync_latest_loss(n.h, NULL));
    ck_assert_uint_eq(stats_of(n.h).skipped, rule != VPPS_NONFINITE_IGNORE);
    FREED float *after = handle_values(n.model, n.h, &count);
    ck_assert_int_eq(!memcmp(before, after, count * sizeof *before), rule != VPPS_NONFINITE_IGNORE);
    TEST_OK(
        vpps_step_forward(n.h, n.g, VPPS_REQUEST(.n_values = 1, .values = values, .value_outs = (float *[]){out[0]})));
    TEST_OK(vpps_step_backward(n.h, 1, (const float *[]){given[0]}));
    ck_assert_float_eq(latest_loss(n.h), 0);
}
