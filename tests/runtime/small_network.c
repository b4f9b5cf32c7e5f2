#include "small_network.h"

#include "graph/graph.h"

small_network sn_of_sizes(uint64_t seed, uint32_t words, uint32_t embed, uint32_t hidden, uint32_t classes) {
    small_network n = {.h = NULL};
    TEST_OK(vpps_model_create(&n.model, seed));
    TEST_OK(vpps_add_lookup(n.model, &n.E, "E", words, embed, 1, NULL));
    TEST_OK(vpps_add_matrix(n.model, &n.W, "W", hidden, embed, NULL));
    TEST_OK(vpps_add_matrix(n.model, &n.U, "U", hidden, hidden, NULL));
    TEST_OK(vpps_add_vector(n.model, &n.b, "b", hidden, NULL));
    TEST_OK(vpps_add_matrix(n.model, &n.C, "C", classes, hidden, NULL));
    TEST_OK(vpps_add_vector(n.model, &n.b_c, "b_c", classes, NULL));
    TEST_OK(vpps_graph_create(&n.g, n.model));
    return n;
}

small_network sn_of(uint64_t seed) { return sn_of_sizes(seed, SN_WORDS, SN_EMBED, SN_HIDDEN, SN_CLASSES); }

small_network sn_with(uint64_t seed, const vpps_options *options) {
    small_network n = sn_of(seed);
    TEST_OK(vpps_handle_create(&n.h, n.model, options));
    return n;
}

void sn_close(small_network *n) { training_end(&(training){n->model, n->g, n->h}); }

vpps_node sn_read(const small_network *n, uint32_t word, vpps_node before) {
    const vpps_node x = vpps_lookup(n->g, n->E, word);
    if (before == VPPS_NO_NODE) return vpps_tanh(n->g, vpps_affine1(n->g, n->b, n->W, x));
    return vpps_tanh(n->g, vpps_affine2(n->g, n->b, n->W, x, n->U, before));
}

vpps_node sn_chain(const small_network *n, uint64_t *random, uint32_t words) {
    vpps_node state = VPPS_NO_NODE;
    for (; words > 0; words--) state = sn_read(n, vpps_random_below(random, SN_WORDS), state);
    return state;
}

vpps_node sn_scores(const small_network *n, vpps_node state) { return vpps_affine1(n->g, n->b_c, n->C, state); }
vpps_node sn_loss(const small_network *n, vpps_node state, uint32_t label) {
    return vpps_cross_entropy(n->g, sn_scores(n, state), label);
}

vpps_node sn_build(const small_network *n, uint32_t batch, float factor) {
    vpps_graph *g = n->g;
    uint64_t random = batch * 1000 + 17;
    vpps_graph_clear(g);
    vpps_node loss = vpps_input(g, 1, 1, &(float){0});
    for (uint32_t i = 0; i < 1 + batch % 4; i++) {
        const vpps_node state = sn_chain(n, &random, 1 + vpps_random_below(&random, 5) + (i == 0));
        loss = vpps_add(g, loss, sn_loss(n, vpps_dropout(g, state, 0.25f), vpps_random_below(&random, SN_CLASSES)));
    }
    return vpps_scale_by(g, loss, vpps_input(g, 1, 1, &factor));
}

vpps_node sn_build_many(const small_network *n, uint32_t first, uint32_t count) {
    vpps_node terms[64];
    vpps_graph_clear(n->g);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t random = (first + i) * 77 + 5;
        const vpps_node state = sn_chain(n, &random, 1 + vpps_random_below(&random, 6));
        terms[i] = sn_loss(n, state, vpps_random_below(&random, SN_CLASSES));
    }
    return vpps_scale(n->g, vpps_sum(n->g, count, terms), 1.0f / 32);
}

sn_chains sn_build_chains(const small_network *n, uint32_t batch, float dropout) {
    sn_chains c;
    vpps_graph_clear(n->g);
    for (uint32_t i = 0; i < SN_CHAINS; i++) {
        uint64_t random = (batch * SN_CHAINS + i) * 77 + 5;
        c.words[i] = vpps_graph_size(n->g); /* the next node */
        c.states[i] = sn_chain(n, &random, i + 1);
        c.scores[i] = sn_scores(n, dropout > 0 ? vpps_dropout(n->g, c.states[i], dropout) : c.states[i]);
    }
    return c;
}

void sn_parts(const small_network *n, vpps_node loss) {
    TEST_OK(vpps_backward(n->h, n->g, loss, NULL));
    TEST_OK(vpps_update(n->h));
}
void sn_fb(const small_network *n, uint32_t batch) { TEST_OK(vpps_fb(n->h, n->g, sn_build(n, batch, 1), NULL)); }
void sn_train(const small_network *n, uint32_t first, uint32_t end) {
    for (uint32_t k = first; k < end; k++) sn_fb(n, k);
    TEST_OK(vpps_read_parameters(n->h));
}
float sn_step(const small_network *n, uint32_t batch) { return train_batch(n->h, n->g, sn_build(n, batch, 1)); }

vpps_options sn_options(uint32_t vps, vpps_optimizer_kind optimizer) {
    vpps_options o = default_options();
    o.vps = vps;
    o.rpw = 1;
    o.threads = 64; /* number of threads of a CTA: software SIMT's time grows with it */
    o.pool_bytes = 16u << 20;
    o.verify = true;
    o.optimizer.kind = optimizer;
    o.optimizer.lr = optimizer == VPPS_ADAM || optimizer == VPPS_ADAMW ? 0.01f : 0.1f;
    o.optimizer.weight_decay = 0.01f;
    return o;
}

void sn_expect_alike(const small_network *a, const small_network *b, double most) {
    size_t n, m;
    double apart = 0;
    FREED float *x = handle_values(a->model, a->h, &n), *y = handle_values(b->model, b->h, &m);
    ck_assert_uint_eq(n, m);
    for (size_t i = 0; i < n; i++) apart = fmax(apart, fabs((double)x[i] - (double)y[i]));
    ck_assert_msg(most > 0 || models_are_equal(a->model, b->model, true), "bits differ, by %g at most", apart);
    ck_assert_msg(apart <= most, "parameters differ by %g", apart);
}

void sn_expect_refused(const small_network *n, vpps_handle *h, bool only_training, const char *text) {
#define REFUSES(call) TEST_FAILS(call, VPPS_STATE, text)
    const vpps_node loss = sn_build(n, 1, 1);
    float x[SN_HIDDEN] = {0}, *const outs[] = {x};
    bool done;
    vpps_handle *reader;
    vpps_value value;
    REFUSES(vpps_fb(h, n->g, loss, NULL));
    REFUSES(vpps_backward(h, n->g, loss, NULL));
    REFUSES(vpps_step_forward(h, n->g, VPPS_REQUEST(.n_values = 1, .values = &loss, .value_outs = outs)));
    REFUSES(vpps_update(h));
    REFUSES(vpps_zero_gradients(h));
    REFUSES(vpps_read_gradients(h));
    REFUSES(vpps_write_gradients(h));
    REFUSES(vpps_read_parameters(h));
    REFUSES(vpps_write_parameters(h));
    REFUSES(vpps_publish_parameters(h));
    REFUSES(vpps_handle_create_inference(&reader, h, NULL));
    ck_assert_ptr_null(reader);
    REFUSES(vpps_poll_loss(h, &done, x));
    REFUSES(vpps_sync_latest_loss(h, x));
    REFUSES(vpps_set_learning_rate(h, 0.5f));
    REFUSES(vpps_set_momentum(h, 0.5f));
    REFUSES(vpps_set_weight_decay(h, 0.5f));
    REFUSES(vpps_set_param_group(h, 1, &n->W, NULL));
    REFUSES(vpps_save(h, "/dev/null", NULL, 0));
    REFUSES(vpps_load(h, "/dev/null"));
    REFUSES(vpps_disassemble(h, n->g, loss, stderr));
    if (only_training) return;
    REFUSES(vpps_forward(h, n->g, 1, &loss, outs));
    REFUSES(vpps_forward_end(h));
    REFUSES(vpps_keep(h, n->g, loss, &value));
    REFUSES(vpps_keep_data(h, 1, 1, x, &value));
    REFUSES(vpps_read_kept(h, 1, x));
    REFUSES(vpps_release(h, 1));
#undef REFUSES
}

const sn_setting sn_usual[] = {
    {.device = "cpu", .vps = 1, .optimizer = VPPS_MOMENTUM},
    {.device = "cpu", .vps = 2, .optimizer = VPPS_ADAM, .waves = 2},
    {.device = "cpu", .vps = 3, .optimizer = VPPS_MOMENTUM, .slices = 2, .clip = 0.5f},
    {.device = "cpu", .vps = 16, .optimizer = VPPS_MOMENTUM, .caller = VPPS_CALLER_FREE},
    {.device = "cpu", .vps = 8, .optimizer = VPPS_MOMENTUM, .precision = VPPS_PRECISION_BF16},
    {.device = "cpu", .vps = 2, .optimizer = VPPS_MOMENTUM, .precision = VPPS_PRECISION_BF16X3},
    {.device = "simt", .vps = 2, .optimizer = VPPS_MOMENTUM},
    {.device = "simt", .vps = 4, .optimizer = VPPS_MOMENTUM, .precision = VPPS_PRECISION_BF16, .waves = 2, .slices = 2},
};

vpps_options sn_options_on(const sn_setting *s) {
    vpps_options o = sn_options(s->vps, s->optimizer);
    o.device = s->device;
    o.no_tuning = strcmp(s->device, "cpu") != 0;
    o.waves = s->waves;
    o.slices = s->slices;
    o.precision = s->precision;
    o.caller = s->caller;
    o.optimizer.clip = s->clip;
    if (s->optimizer == VPPS_SGD) o.optimizer.weight_decay = 0; /* the plain one */
    o.gradients = s->gradients;
    o.portable = s->portable;
    return o;
}

small_network sn_on(const sn_setting *s) {
    const vpps_options o = sn_options_on(s);
    return sn_with(1, &o);
}

int sn_here(const sn_setting *settings, int n) {
    static const char *told;
    for (; gpu_left_out() && n && !strcmp(settings[n - 1].device, "simt"); n--)
        if (!told) TEST_LEFT_OUT("settings of software SIMT: %s", told = gpu_left_out());
    return n;
}

double sn_error(const sn_setting *s) {
    return s->precision == VPPS_PRECISION_BF16 ? 2e-2 : s->precision == VPPS_PRECISION_BF16X3 ? 1e-4 : 1e-5;
}

void sn_expect_near(const float *got, const float *want, size_t n, double error) {
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(fabs((double)got[i] - (double)want[i]) <= error * (1 + fabs((double)want[i])),
                      "element %zu: %.9g; expected %.9g", i, (double)got[i], (double)want[i]);
}
