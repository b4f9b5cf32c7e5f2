#include "small_network.h"

#include "common/testing.h"
#include "graph/graph.h"

#include <math.h>

void sn_open(small_network *n, uint64_t seed) {
    TEST_OK(vpps_model_create(&n->model, seed));
    TEST_OK(vpps_add_lookup(n->model, &n->E, "E", SN_WORDS, SN_EMBED, 1, NULL));
    TEST_OK(vpps_add_matrix(n->model, &n->W, "W", SN_HIDDEN, SN_EMBED, NULL));
    TEST_OK(vpps_add_matrix(n->model, &n->U, "U", SN_HIDDEN, SN_HIDDEN, NULL));
    TEST_OK(vpps_add_vector(n->model, &n->b, "b", SN_HIDDEN, NULL));
    TEST_OK(vpps_add_matrix(n->model, &n->C, "C", SN_CLASSES, SN_HIDDEN, NULL));
    TEST_OK(vpps_add_vector(n->model, &n->b_c, "b_c", SN_CLASSES, NULL));
    TEST_OK(vpps_graph_create(&n->g, n->model));
}

void sn_close(small_network *n) {
    vpps_graph_destroy(n->g);
    vpps_model_destroy(n->model);
}

vpps_node sn_build(const small_network *n, uint32_t batch, float factor) {
    vpps_graph *g = n->g;
    uint64_t random = batch * 1000 + 17;
    vpps_node terms[8];
    const uint32_t chains = 1 + batch % 4;
    vpps_graph_clear(g);
    for (uint32_t i = 0; i < chains; i++) {
        vpps_node h =
            vpps_tanh(g, vpps_affine1(g, n->b, n->W, vpps_lookup(g, n->E, vpps_random_below(&random, SN_WORDS))));
        for (uint32_t length = vpps_random_below(&random, 6); length > 0; length--) {
            const vpps_node x = vpps_lookup(g, n->E, vpps_random_below(&random, SN_WORDS));
            h = vpps_tanh(g, vpps_affine2(g, n->b, n->W, x, n->U, h));
        }
        const vpps_node logits = vpps_affine1(g, n->b_c, n->C, vpps_dropout(g, h, 0.25f));
        terms[i] = vpps_cross_entropy(g, logits, vpps_random_below(&random, SN_CLASSES));
    }
    const vpps_node scale = vpps_input(g, 1, 1, &factor);
    return vpps_scale_by(g, vpps_sum(g, chains, terms), scale);
}

float *sn_values(const small_network *n, size_t *count) {
    *count = 0;
    for (uint32_t p = 0; p < SN_PARAMS; p++) *count += vpps_param_elems(&n->model->params[p]);
    float *values = malloc(*count * sizeof *values);
    ck_assert_ptr_nonnull(values);
    size_t at = 0;
    for (uint32_t p = 0; p < SN_PARAMS; p++) {
        const size_t elems = vpps_param_elems(&n->model->params[p]);
        memcpy(values + at, n->model->params[p].values, elems * sizeof *values);
        at += elems;
    }
    return values;
}

vpps_options sn_options(uint32_t vps, vpps_optimizer_kind optimizer) {
    vpps_options o;
    vpps_options_default(&o);
    o.vps = vps;
    o.rpw = 1;
    o.threads = 64; /* of a CTA: software SIMT takes its time by them */
    o.pool_bytes = 16u << 20;
    o.verify = true;
    o.optimizer.kind = optimizer;
    o.optimizer.lr = optimizer == VPPS_ADAM || optimizer == VPPS_ADAMW ? 0.01f : 0.1f;
    o.optimizer.weight_decay = 0.01f;
    return o;
}

float *sn_handle_values(const small_network *n, vpps_handle *h, size_t *count) {
    TEST_OK(vpps_read_parameters(h));
    return sn_values(n, count);
}

void sn_expect_alike(const small_network *a, vpps_handle *ha, const small_network *b, vpps_handle *hb, double most) {
    size_t n, m;
    double apart = 0;
    float *x = sn_handle_values(a, ha, &n), *y = sn_handle_values(b, hb, &m);
    ck_assert_uint_eq(n, m);
    for (size_t i = 0; i < n; i++) apart = fmax(apart, fabs((double)x[i] - (double)y[i]));
    ck_assert_msg(most > 0 || !memcmp(x, y, n * sizeof *x), "bits differ, by %g at most", apart);
    ck_assert_msg(apart <= most, "parameters differ by %g", apart);
    free(x);
    free(y);
}
