/* gpu_zoo.c - see gpu_zoo.h. */
#include "gpu_zoo.h"

#include "runtime/handle.h"

/* cols 0: a vector. */
static vpps_param param(const gpu_zoo *zoo, const char *name, uint32_t number, uint32_t rows, uint32_t cols) {
    const float spread = cols ? 1.5f / sqrtf((float)cols) : 0.5f;
    const vpps_init init = {.kind = VPPS_INIT_UNIFORM, .a = -spread, .b = spread};
    vpps_param p;
    char text[16];
    snprintf(text, sizeof text, "%s%u", name, number);
    TEST_OK(cols ? vpps_add_matrix(zoo->model, &p, text, rows, cols, &init)
                 : vpps_add_vector(zoo->model, &p, text, rows, &init));
    return p;
}

gpu_zoo zoo_of(const uint32_t size[ZOO_SIZES], uint64_t seed) {
    gpu_zoo made = {.h = NULL}, *const zoo = &made;
    const uint32_t x = size[0], a = size[1], b = size[2], c = size[3];
    memcpy(zoo->size, size, sizeof zoo->size);
    TEST_OK(vpps_model_create(&zoo->model, seed));
    TEST_OK(vpps_add_lookup(zoo->model, &zoo->E, "E", ZOO_WORDS, x, 1, NULL));
    for (uint32_t i = 0; i < 3; i++) zoo->A[i] = param(zoo, "A", i, a, x);
    zoo->B[0] = param(zoo, "B", 0, b, a);
    zoo->B[1] = param(zoo, "B", 1, b, x);
    zoo->C[0] = param(zoo, "C", 0, c, b);
    zoo->C[1] = param(zoo, "C", 1, c, a);
    zoo->C[2] = param(zoo, "C", 2, c, x);
    zoo->D = param(zoo, "D", 0, x, c);
    for (uint32_t i = 0; i < 3; i++) zoo->U[i] = param(zoo, "U", i, a, b);
    for (uint32_t i = 0; i < ZOO_SIZES; i++) zoo->b[i] = param(zoo, "b", i, size[i], 0);
    for (uint32_t i = 0; i < ZOO_OUTPUTS; i++) {
        const vpps_param p = param(zoo, "u", i, a, 0);
        if (i == 0) zoo->first_bias = p;
    }
    TEST_OK(vpps_graph_create(&zoo->g, zoo->model));
    return made;
}

gpu_zoo zoo_with(const uint32_t size[ZOO_SIZES], uint64_t seed, const vpps_options *options) {
    gpu_zoo zoo = zoo_of(size, seed);
    TEST_OK(vpps_handle_create(&zoo.h, zoo.model, options));
    return zoo;
}

void zoo_close(gpu_zoo *zoo) { training_end(&(training){zoo->model, zoo->g, zoo->h}); }

/* Makes a step: a list with three outputs, then lists with two pairs and three pairs, and back to the chain's vector. */
static vpps_node step(const gpu_zoo *zoo, vpps_graph *g, vpps_node x) {
    const vpps_node p = vpps_tanh(g, vpps_affine1(g, zoo->b[1], zoo->A[0], x)),
                    q = vpps_sigmoid(g, vpps_affine1(g, zoo->b[1], zoo->A[1], x)),
                    r = vpps_tanh(g, vpps_matvec(g, zoo->A[2], x));
    const vpps_node a = vpps_add(g, vpps_mul(g, p, q), r);
    const vpps_node b = vpps_tanh(g, vpps_affine2(g, zoo->b[2], zoo->B[0], a, zoo->B[1], x));
    const vpps_node args[] = {b, a, x};
    const vpps_node c = vpps_tanh(g, vpps_affine(g, zoo->b[3], 3, zoo->C, args));
    return vpps_tanh(g, vpps_affine1(g, zoo->b[0], zoo->D, c));
}

/* Makes one list with more outputs than the kernel processes together, some with a bias each. */
static vpps_node many_outputs(const gpu_zoo *zoo, vpps_graph *g, vpps_node x) {
    vpps_node outputs[ZOO_OUTPUTS];
    const vpps_node b = vpps_tanh(g, vpps_matvec(g, zoo->B[1], x));
    for (uint32_t i = 0; i < ZOO_OUTPUTS; i++) {
        const vpps_param bias = i % 7 == 3 ? VPPS_NO_PARAM : zoo->first_bias + i;
        outputs[i] = vpps_tanh(g, i % 5 == 2 ? vpps_affine2(g, bias, zoo->U[i % 3], b, zoo->A[i % 2], x)
                                             : vpps_affine1(g, bias, zoo->U[i % 3], b));
    }
    const vpps_node all[] = {vpps_average(g, ZOO_OUTPUTS, outputs),
                             vpps_tanh(g, vpps_matmul(g, vpps_parameter(g, zoo->U[0]), b))};
    return vpps_average(g, 2, all);
}

/* Makes values of several columns. */
static vpps_node columns(const gpu_zoo *zoo, vpps_graph *g, uint64_t *random) {
    enum { COLUMNS = 5 };
    const size_t n = (size_t)zoo->size[0] * COLUMNS;
    float *data = need(malloc(n * sizeof *data));
    for (size_t i = 0; i < n; i++) data[i] = 2 * vpps_random_unit(random) - 1;
    const vpps_node x = vpps_input(g, zoo->size[0], COLUMNS, data);
    free(data);
    const vpps_node a = vpps_tanh(g, vpps_affine1(g, zoo->b[1], zoo->A[0], x));
    return vpps_sum_elements(g, vpps_tanh(g, vpps_affine2(g, VPPS_NO_PARAM, zoo->B[0], a, zoo->B[1], x)));
}

vpps_node zoo_build(const gpu_zoo *zoo, vpps_graph *g, uint32_t chains, uint64_t seed, float factor) {
    enum { MOST = 64 };
    uint64_t random = seed;
    vpps_node terms[MOST + 2];
    ck_assert_uint_le(chains, MOST);
    vpps_graph_clear(g);
    for (uint32_t i = 0; i < chains; i++) {
        vpps_node x = vpps_lookup(g, zoo->E, vpps_random_below(&random, ZOO_WORDS));
        for (uint32_t steps = 1 + vpps_random_below(&random, 2); steps > 0; steps--) x = step(zoo, g, x);
        terms[i] = vpps_cross_entropy(g, x, vpps_random_below(&random, zoo->size[0]));
        if (zoo->size[0] == 1) terms[i] = vpps_sum_elements(g, vpps_square(g, x));
    }
    const vpps_node x = vpps_lookup(g, zoo->E, vpps_random_below(&random, ZOO_WORDS));
    terms[chains] = vpps_sum_elements(g, many_outputs(zoo, g, x));
    terms[chains + 1] = columns(zoo, g, &random);
    return vpps_scale_by(g, vpps_sum(g, chains + 2, terms), vpps_input(g, 1, 1, &factor));
}

episode zoo_episode(const gpu_zoo *zoo, const uint32_t *chains, uint32_t n_batches) {
    episode x = {.model = zoo->model, .n_batches = n_batches};
    for (uint32_t k = 0; k < n_batches; k++) {
        x.g[k] = new_graph(zoo->model);
        x.loss[k] = zoo_build(zoo, x.g[k], chains[k], test_seed() * 100 + k, 0.1f);
        TEST_OK(vpps_graph_status(x.g[k]));
    }
    return x;
}

void zoo_forget(episode *x) {
    for (uint32_t k = 0; k < EPISODE_BATCHES; k++) vpps_graph_destroy(x->g[k]);
}

const gpu_layout zoo_layouts[ZOO_LAYOUTS] = {{4, 128, 1, 1}, {5, 96, 2, 1}, {6, 64, 4, 2}, {2, 512, 3, 1}};

void expect_agreement(const episode *x, const vpps_options *o, const gpu_layout *layout, int ways, bool *usable) {
    AT_END(forget_expectation) expectation e = expect_of(x, o);
    const char *finding = e.usable ? episode_check(x, &e, o, ways) : NULL;
    ck_assert(e.usable || usable);
    if (usable) *usable = e.usable;
    ck_assert_msg(!finding, "%s, %u slices, optimiser %d, clip %g, %s: %s", vpps_precision_names[o->precision],
                  o->slices, (int)o->optimizer.kind, (double)o->optimizer.clip, gpu_layout_text(layout), finding);
}

void expect_agreement_of(const training *t, vpps_node loss, vpps_precision precision, const gpu_layout *layout,
                         int ways) {
    const episode x = {.model = t->model, .g = {t->g}, .loss = {loss}, .n_batches = 1};
    vpps_options o = gpu_options(layout, VPPS_SGD);
    TEST_OK(vpps_graph_status(t->g));
    o.precision = precision;
    expect_agreement(&x, &o, layout, ways, NULL);
}

bool expect_agreement_on(const rg_case *c, const vpps_options *o, const gpu_layout *layout, int ways) {
    AT_END(rg_destroy) rg_built built;
    bool usable;
    TEST_OK(rg_build(&built, c, NULL));
    AT_END(episode_forget) episode x = episode_of(&built, ways);
    expect_agreement(&x, o, layout, ways, &usable);
    return usable;
}
