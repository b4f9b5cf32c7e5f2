#include "small_network.h"

#include "graph/graph.h"
#include "runtime/simt/fiber.h"

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

vpps_node sn_build(const small_network *n, uint32_t batch, float factor) {
    vpps_graph *g = n->g;
    uint64_t random = batch * 1000 + 17;
    const uint32_t chains = 1 + batch % 4;
    vpps_graph_clear(g);
    vpps_node loss = vpps_input(g, 1, 1, &(float){0});
    for (uint32_t i = 0; i < chains; i++) {
        vpps_node h =
            vpps_tanh(g, vpps_affine1(g, n->b, n->W, vpps_lookup(g, n->E, vpps_random_below(&random, SN_WORDS))));
        for (uint32_t length = vpps_random_below(&random, 5) + (i == 0); length > 0; length--) {
            const vpps_node x = vpps_lookup(g, n->E, vpps_random_below(&random, SN_WORDS));
            h = vpps_tanh(g, vpps_affine2(g, n->b, n->W, x, n->U, h));
        }
        const vpps_node logits = vpps_affine1(g, n->b_c, n->C, vpps_dropout(g, h, 0.25f));
        loss = vpps_add(g, loss, vpps_cross_entropy(g, logits, vpps_random_below(&random, SN_CLASSES)));
    }
    return vpps_scale_by(g, loss, vpps_input(g, 1, 1, &factor));
}

sn_chains sn_build_chains(const small_network *n, uint32_t batch, float dropout) {
    vpps_graph *g = n->g;
    sn_chains c;
    vpps_graph_clear(g);
    for (uint32_t i = 0; i < SN_CHAINS; i++) {
        uint64_t random = (batch * SN_CHAINS + i) * 77 + 5;
        c.words[i] = vpps_lookup(g, n->E, vpps_random_below(&random, SN_WORDS));
        c.states[i] = vpps_tanh(g, vpps_affine1(g, n->b, n->W, c.words[i]));
        for (uint32_t length = i; length > 0; length--) {
            const vpps_node x = vpps_lookup(g, n->E, vpps_random_below(&random, SN_WORDS));
            c.states[i] = vpps_tanh(g, vpps_affine2(g, n->b, n->W, x, n->U, c.states[i]));
        }
        c.scores[i] = vpps_affine1(g, n->b_c, n->C, dropout > 0 ? vpps_dropout(g, c.states[i], dropout) : c.states[i]);
    }
    return c;
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
    ck_assert_msg(most > 0 || !memcmp(x, y, n * sizeof *x), "bits differ, by %g at most", apart);
    ck_assert_msg(apart <= most, "parameters differ by %g", apart);
}

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
    return o;
}

small_network sn_on(const sn_setting *s) {
    const vpps_options o = sn_options_on(s);
    return sn_with(1, &o);
}

int sn_settings(const sn_setting *settings, int n) {
    int here = n;
    while (VPPS_SIMT_TSAN && here && !strcmp(settings[here - 1].device, "simt")) here--;
    if (here < n) TEST_LEFT_OUT("%d settings of software SIMT: ThreadSanitizer cannot follow its stacks", n - here);
    return here;
}

double sn_error(const sn_setting *s) {
    return s->precision == VPPS_PRECISION_BF16 ? 2e-2 : s->precision == VPPS_PRECISION_BF16X3 ? 1e-4 : 1e-5;
}

void sn_expect_near(const float *got, const float *want, size_t n, double error) {
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(fabs((double)got[i] - (double)want[i]) <= error * (1 + fabs((double)want[i])),
                      "element %zu: %.9g; expected %.9g", i, (double)got[i], (double)want[i]);
}
