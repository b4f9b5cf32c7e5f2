/* test_losses.c - compares vpps_cross_entropy_with with its definition in double precision, and its gradient with central differences: on the graph
 * and in a cell, with all kinds of weights, on the CPU and under software SIMT. */
#include "graph/graph.h"
#include "runtime/small_network.h"

static const sn_setting settings[] = {
    {.device = "cpu", .vps = 1},
    {.device = "cpu", .vps = 3},
    {.device = "cpu", .vps = 2, .portable = true},
    {.device = "simt", .vps = 2},
};

enum { MOST = 300 };
typedef enum weighting { UNWEIGHTED, CONSTANT, VECTOR, WEIGHTINGS } weighting;

static const uint32_t sizes[] = {1, 2, 5, 33, MOST};
static const float smoothings[] = {0, 0.1f, 1};
enum { CASES = VPPS_COUNT(sizes) * VPPS_COUNT(smoothings) * WEIGHTINGS * 2 };

/* One loss whose scores are a parameter. */
typedef struct loss_case {
    uint32_t rows, label;
    weighting weights;
    float smoothing;
    bool in_cell;
    float x[MOST], w[MOST];
} loss_case;

static loss_case make_case(uint32_t number) {
    loss_case c = {.rows = sizes[number % VPPS_COUNT(sizes)]};
    uint64_t random = 11 * number + 3;
    number /= VPPS_COUNT(sizes);
    c.smoothing = smoothings[number % VPPS_COUNT(smoothings)];
    number /= VPPS_COUNT(smoothings);
    c.weights = (weighting)(number % WEIGHTINGS);
    c.in_cell = number / WEIGHTINGS;
    c.label = vpps_random_below(&random, c.rows);
    for (uint32_t k = 0; k < c.rows; k++) {
        c.x[k] = 4 * vpps_random_unit(&random) - 2;
        c.w[k] = c.weights == UNWEIGHTED ? 1 : 3 * vpps_random_unit(&random);
    }
    return c;
}

/* Returns the loss by PyTorch's definition (CrossEntropyLoss with class indices and label_smoothing), term by term; score number `moved` is greater
 * by h. */
static double expected(const loss_case *c, uint32_t moved, double h) {
    double sum = 0, mixed = 0;
    for (uint32_t k = 0; k < c->rows; k++) sum += exp((double)c->x[k] + (k == moved ? h : 0));
    for (uint32_t k = 0; k < c->rows; k++) {
        const double log_p = (double)c->x[k] + (k == moved ? h : 0) - log(sum), term = -(double)c->w[k] * log_p;
        if (k == c->label) mixed += (1 - (double)c->smoothing) * term;
        mixed += (double)c->smoothing / c->rows * term;
    }
    return mixed;
}

static vpps_node add_loss(vpps_graph *g, const loss_case *c, vpps_param x, vpps_param w, uint32_t label,
                          vpps_node pulled) {
    const vpps_node weights = c->weights == UNWEIGHTED ? VPPS_NO_NODE
                              : c->weights == VECTOR   ? vpps_parameter(g, w)
                                                       : pulled;
    return vpps_cross_entropy_with(g, vpps_parameter(g, x), label, weights, c->smoothing);
}

/* Computes the loss in a cell that gets from outside its label and, unless they are a parameter, its weights. */
static vpps_node apply_loss(vpps_model *m, vpps_graph *g, const loss_case *c, vpps_param x, vpps_param w,
                            vpps_node weights) {
    vpps_graph *r = begin_cell(m, "loss");
    const vpps_node pulled = c->weights == CONSTANT ? vpps_pull(r, c->rows, 1) : VPPS_NO_NODE;
    TEST_OK(vpps_push(r, add_loss(r, c, x, w, vpps_pull_index(r), pulled)));
    const vpps_cell cell = end_cell(r);
    const vpps_vertex v = vpps_apply(g, VPPS_APPLICATION(.cell = cell, .n_pulls = c->weights == CONSTANT,
                                                         .pulls = &weights, .n_indices = 1, .indices = &c->label));
    return vpps_pushed(g, v, 0);
}

/* Software SIMT compiles one kernel for all cells together, so it gets fewer cases. */
static bool is_left_out(const sn_setting *s, const loss_case *c) {
    return strcmp(s->device, "simt") == 0 && c->rows != (c->in_cell ? 33 : 5);
}

static void check_loss(const sn_setting *s, const loss_case *c, float loss, const float *gradient) {
    const double wanted = expected(c, UINT32_MAX, 0), size = 1 + 3 * (double)c->rows, step = 1e-5;
    ck_assert_msg(fabs((double)loss - wanted) <= 2e-6 * (1 + fabs(wanted)),
                  "%s: %u rows, smoothing %g: %.9g, expected %.9g", s->device, c->rows, (double)c->smoothing,
                  (double)loss, wanted);
    for (uint32_t k = 0; k < c->rows; k++) {
        const double slope = (expected(c, k, step) - expected(c, k, -step)) / (2 * step);
        ck_assert_msg(fabs((double)gradient[k] - slope) <= 1e-6 * size,
                      "%s: element %u of %u: gradient %.9g, slope %.9g", s->device, k, c->rows, (double)gradient[k],
                      slope);
    }
}

TEST_GROUP("losses", .seconds = 120);

TEST_EACH(is_its_definition, 0, SN_HERE) {
    const sn_setting *s = &settings[_i];
    loss_case cases[CASES];
    vpps_param x[CASES], w[CASES];
    vpps_node nodes[CASES];
    float losses[CASES], *outs[CASES];
    uint32_t n = 0;
    AT_END(training_end) training t = training_of(1);
    for (uint32_t i = 0; i < CASES; i++) {
        loss_case *c = &cases[n];
        char name[32];
        *c = make_case(i);
        if (is_left_out(s, c)) continue;
        snprintf(name, sizeof name, "x%u", n);
        TEST_OK(vpps_add_vector(t.model, &x[n], name, c->rows, &(vpps_init){.kind = VPPS_INIT_VALUES, .values = c->x}));
        *name = 'w';
        TEST_OK(vpps_add_vector(t.model, &w[n], name, c->rows, &(vpps_init){.kind = VPPS_INIT_VALUES, .values = c->w}));
        TEST_OK(vpps_freeze(t.model, w[n], true));
        outs[n] = &losses[n];
        n++;
    }
    ck_assert_uint_gt(n, 0);
    vpps_options o = sn_options_on(s);
    o.pool_bytes = 64u << 20;
    training_start(&t, &o);
    for (uint32_t i = 0; i < n; i++) {
        const loss_case *c = &cases[i];
        const vpps_node weights = c->weights == CONSTANT ? vpps_input(t.g, c->rows, 1, c->w) : VPPS_NO_NODE;
        nodes[i] = c->in_cell ? apply_loss(t.model, t.g, c, x[i], w[i], weights)
                              : add_loss(t.g, c, x[i], w[i], c->label, weights);
    }
    TEST_OK(vpps_forward(t.h, t.g, n, nodes, outs));
    TEST_OK(vpps_backward(t.h, t.g, vpps_sum(t.g, n, nodes), NULL));
    float sum = latest_loss(t.h);
    TEST_OK(vpps_read_gradients(t.h));
    for (uint32_t i = 0; i < n; i++) {
        check_loss(s, &cases[i], losses[i], gradient_of(&t, x[i]));
        sum -= losses[i];
    }
    ck_assert_float_le(fabsf(sum), 0.05f);
}

/* Classes with a score of -inf do no harm, whatever their weights. */
TEST(weights_pass_over_scores_of_minus_infinity) {
    const float x[] = {0.5f, -INFINITY, 1.5f}, w[] = {2, 7, 0.25f};
    float plain, weighted, *outs[] = {&plain, &weighted};
    AT_END(training_end) training t = training_of(1);
    training_start(&t, NULL);
    const vpps_node scores = vpps_input(t.g, 3, 1, x), weights = vpps_input(t.g, 3, 1, w);
    const vpps_node nodes[] = {vpps_cross_entropy(t.g, scores, 2), vpps_cross_entropy_with(t.g, scores, 2, weights, 0)};
    TEST_OK(vpps_forward(t.h, t.g, 2, nodes, outs));
    ck_assert_float_eq(weighted, 0.25f * plain);
    ck_assert(isfinite(weighted));
}

/* Scores that are all far from 0 lose no precision: the loss depends on their differences. */
TEST_EACH(smoothing_of_great_scores_keeps_their_differences, 0, SN_HERE) {
    const float near[] = {0.5f, -1.25f, 1.5f, 0}, far[] = {1e5f + 0.5f, 1e5f - 1.25f, 1e5f + 1.5f, 1e5f};
    float values[2], *outs[] = {&values[0], &values[1]};
    const vpps_options o = sn_options_on(&settings[_i]);
    AT_END(training_end) training t = training_of(1);
    training_start(&t, &o);
    vpps_node losses[2];
    for (uint32_t i = 0; i < 2; i++)
        losses[i] = vpps_cross_entropy_with(t.g, vpps_input(t.g, 4, 1, i ? far : near), 2, VPPS_NO_NODE, 0.1f);
    TEST_OK(vpps_forward(t.h, t.g, 2, losses, outs));
    ck_assert_float_eq_tol(values[1], values[0], 1e-6f);
}

/* Without weights and smoothing the node is vpps_cross_entropy's, with equal bits. */
TEST(without_both_it_is_cross_entropy) {
    AT_END(training_end) training t = training_of(1);
    const vpps_node x = vpps_input(t.g, 3, 1, (float[]){1, 2, 3});
    const uint32_t before = vpps_graph_size(t.g);
    const vpps_node loss = vpps_cross_entropy_with(t.g, x, 1, VPPS_NO_NODE, 0);
    ck_assert_uint_eq(vpps_graph_size(t.g), before + 1);
    ck_assert_uint_eq(vpps_plain_signature(t.g, loss)->op, VPPS_OP_CROSS_ENTROPY);
}
