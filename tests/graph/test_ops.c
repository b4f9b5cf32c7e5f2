/* test_ops.c - every operation of ops.def: forward against the double-precision reference, the reference's gradient
 * against central differences, the engine's gradient against the reference's.
 *
 * An operation's arguments are made from parameters, so all of them have gradients; the loss is the dot product of the
 * result with random numbers, so every element of it matters. */
#include "common/episode.h"
#include "common/meaning.h"

/* ---------------------------------------------------------------- where arguments come from */

typedef struct builder {
    vpps_model *model;
    vpps_graph *g;
    uint64_t random;
    uint32_t n_params, n_leaves;
    vpps_node results[64], terms[64];
    uint32_t n_results;
} builder;

static float draw(builder *b, meaning_domain d, uint32_t k) {
    const float u = vpps_random_unit(&b->random), sign = vpps_random_below(&b->random, 2) ? 1.0f : -1.0f;
    switch (d) {
    case ANY: return 3 * u - 1.5f;
    case AWAY: return sign * (0.2f + 1.3f * u);
    case POSITIVE: return 0.3f + 1.7f * u;
    case INSIDE: return 0.1f + 0.8f * u;
    case ROW: return 0.5f + (float)vpps_random_below(&b->random, 3);
    case GRID: return 0.4f * (float)((int)vpps_random_below(&b->random, 7) - 3) + 0.1f * (float)(k % 4);
    }
    return 0;
}

static vpps_param make_param(builder *b, vpps_param_kind kind, uint32_t count, uint32_t rows, uint32_t cols,
                             meaning_domain d, uint32_t k, float factor) {
    char name[32];
    snprintf(name, sizeof name, "p%u", b->n_params++);
    const size_t n = (size_t)count * rows * cols;
    FREED float *values = need(malloc(n * sizeof *values));
    for (size_t i = 0; i < n; i++) values[i] = factor * draw(b, d, k);
    const vpps_init init = {.kind = VPPS_INIT_VALUES, .values = values};
    vpps_param p = VPPS_NO_PARAM;
    if (kind == VPPS_MATRIX) TEST_OK(vpps_add_matrix(b->model, &p, name, rows, cols, &init));
    if (kind == VPPS_VECTOR) TEST_OK(vpps_add_vector(b->model, &p, name, rows, &init));
    if (kind == VPPS_LOOKUP) TEST_OK(vpps_add_lookup(b->model, &p, name, count, rows, cols, &init));
    return p;
}

static vpps_node constant(builder *b, uint32_t rows, uint32_t cols, float factor) {
    FREED float *data = need(malloc((size_t)rows * cols * sizeof *data));
    for (size_t i = 0; i < (size_t)rows * cols; i++) data[i] = factor * draw(b, AWAY, 0);
    const vpps_node x = vpps_input(b->g, rows, cols, data);
    return x;
}

/* Makes argument k of an operation: in turn a parameter (or a table's row), and bias + W x with a small W x. */
static vpps_node leaf(builder *b, uint32_t rows, uint32_t cols, meaning_domain d, uint32_t k) {
    const uint32_t way = b->n_leaves++ % 3;
    if (way == 0)
        return vpps_parameter(b->g, make_param(b, cols == 1 ? VPPS_VECTOR : VPPS_MATRIX, 1, rows, cols, d, k, 1));
    if (way == 1) {
        const vpps_param bias = make_param(b, VPPS_VECTOR, 1, rows, 1, d, k, 1);
        const vpps_param w = make_param(b, VPPS_MATRIX, 1, rows, 5, ANY, 0, 0.01f);
        return vpps_affine1(b->g, bias, w, constant(b, 5, cols, 0.2f));
    }
    const vpps_param table = make_param(b, VPPS_LOOKUP, 3, rows, cols, d, k, 1);
    return vpps_lookup(b->g, table, vpps_random_below(&b->random, 3));
}

/* ---------------------------------------------------------------- the table */

/* A call with arguments other than nodes. */
typedef vpps_node (*build_function)(builder *, uint32_t rows, uint32_t cols);

static vpps_node build_input(builder *b, uint32_t rows, uint32_t cols) { return constant(b, rows, cols, 1); }
static vpps_node build_constant(builder *b, uint32_t rows, uint32_t cols) {
    const float numbers[] = {0, 1, -0.5f, draw(b, AWAY, 0)};
    return vpps_constant(b->g, rows, cols, numbers[vpps_random_below(&b->random, 4)]);
}
static vpps_node build_lookup(builder *b, uint32_t rows, uint32_t cols) {
    const vpps_param table = make_param(b, VPPS_LOOKUP, 4, rows, cols, ANY, 0, 1);
    return vpps_lookup(b->g, table, vpps_random_below(&b->random, 4));
}
static vpps_node build_parameter(builder *b, uint32_t rows, uint32_t cols) {
    (void)cols;
    return vpps_parameter(b->g, make_param(b, VPPS_VECTOR, 1, rows, 1, ANY, 0, 1));
}
static vpps_node build_matrix(builder *b, uint32_t rows, uint32_t cols) {
    return vpps_parameter(b->g, make_param(b, VPPS_MATRIX, 1, rows, cols, ANY, 0, 1));
}
static const uint32_t edges[] = {1, 31, 32, 33, 257};

static vpps_node build_affine(builder *b, uint32_t rows, uint32_t cols) {
    vpps_param matrices[3];
    vpps_node xs[3];
    const uint32_t n = 1 + vpps_random_below(&b->random, 3);
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t inner = k ? 1 + vpps_random_below(&b->random, 20) : edges[vpps_random_below(&b->random, 5)];
        matrices[k] = make_param(b, VPPS_MATRIX, 1, rows, inner, ANY, 0, 0.3f);
        xs[k] = leaf(b, inner, cols, ANY, k);
    }
    const bool biased = vpps_random_below(&b->random, 2);
    const vpps_param bias = biased ? make_param(b, VPPS_VECTOR, 1, rows, 1, ANY, 0, 1) : VPPS_NO_PARAM;
    return vpps_affine(b->g, bias, n, matrices, xs);
}
static vpps_node build_scale(builder *b, uint32_t rows, uint32_t cols) {
    const float factor = draw(b, AWAY, 0);
    return vpps_scale(b->g, leaf(b, rows, cols, ANY, 0), factor);
}
static vpps_node build_elu(builder *b, uint32_t rows, uint32_t cols) {
    const float alpha = draw(b, POSITIVE, 0);
    return vpps_elu(b->g, leaf(b, rows, cols, AWAY, 0), alpha);
}
static vpps_node build_rms_norm(builder *b, uint32_t rows, uint32_t cols) {
    static const float epsilons[] = {1e-5f, 0.1f, 1};
    const vpps_node x = leaf(b, rows, cols, ANY, 0);
    return vpps_rms_norm(b->g, x, VPPS_NO_NODE, epsilons[vpps_random_below(&b->random, 3)]);
}
static vpps_node build_dropout(builder *b, uint32_t rows, uint32_t cols) {
    static const float rates[] = {0, 0.1f, 0.5f, 0.9f};
    return vpps_dropout(b->g, leaf(b, rows, cols, ANY, 0), rates[vpps_random_below(&b->random, 4)]);
}
static vpps_node build_slice(builder *b, uint32_t rows, uint32_t cols) {
    const uint32_t first = vpps_random_below(&b->random, 40), after = vpps_random_below(&b->random, 40);
    return vpps_slice(b->g, leaf(b, first + rows + after, cols, ANY, 0), first, rows);
}
static vpps_node build_reshape(builder *b, uint32_t rows, uint32_t cols) {
    if (vpps_random_below(&b->random, 2)) return vpps_reshape(b->g, leaf(b, rows, 2 * cols, ANY, 0), 2 * rows, cols);
    return vpps_reshape(b->g, leaf(b, 2 * rows, cols, ANY, 0), rows, 2 * cols);
}
static vpps_node build_select_rows(builder *b, uint32_t rows, uint32_t cols) {
    const uint32_t of = 3 + vpps_random_below(&b->random, 40);
    const vpps_node x = leaf(b, of, cols, ANY, 0);
    if (vpps_random_below(&b->random, 2)) return vpps_select_rows_at(b->g, x, leaf(b, rows, 1, ROW, 0));
    uint32_t numbers[260];
    for (uint32_t i = 0; i < rows; i++) numbers[i] = vpps_random_below(&b->random, of);
    return vpps_select_rows(b->g, x, rows, numbers);
}
static vpps_node build_weighted_sum(builder *b, uint32_t rows, uint32_t cols) {
    vpps_node xs[5];
    const uint32_t n = 1 + vpps_random_below(&b->random, 5);
    for (uint32_t k = 0; k < n; k++) xs[k] = leaf(b, rows, cols, ANY, k);
    const vpps_node weights = leaf(b, n, 1, ANY, 0);
    return vpps_weighted_sum(b->g, weights, n, xs);
}
static vpps_node build_cross_entropy(builder *b, uint32_t rows, uint32_t cols) {
    const vpps_node x = leaf(b, rows, cols, ANY, 0);
    return vpps_cross_entropy(b->g, x, vpps_random_below(&b->random, rows));
}
static vpps_node build_smooth_label(builder *b, uint32_t rows, uint32_t cols) {
    static const float smoothings[] = {0, 0.1f, 0.7f, 1};
    const vpps_node weights = leaf(b, rows, cols, ANY, 0);
    const uint32_t label = vpps_random_below(&b->random, rows);
    return vpps_smooth_label(b->g, weights, label, smoothings[vpps_random_below(&b->random, 4)]);
}
static vpps_node build_hinge(builder *b, uint32_t rows, uint32_t cols) {
    const vpps_node x = leaf(b, rows, cols, GRID, 0);
    return vpps_hinge(b->g, x, vpps_random_below(&b->random, rows), 0.7f);
}

static vpps_node build_lookup_at(builder *b, uint32_t rows, uint32_t cols) {
    const vpps_param table = make_param(b, VPPS_LOOKUP, 4, rows, cols, ANY, 0, 1);
    const float numbers[] = {0, 1, 2.5f, 3, -1, 17};
    return vpps_lookup_at(b->g, table, vpps_constant(b->g, 1, 1, numbers[vpps_random_below(&b->random, 6)]));
}

/* The functions that make operations with more arguments than nodes (meaning_calls makes the others). */
#define UNARY(name) NULL
#define LISTED(name) NULL
#define BINARY(name) NULL
#define NARY(name) NULL
#define OWN(name) build_##name
static const build_function own[VPPS_OP_COUNT] = {
#define OP(id, name, call, ...) [VPPS_OP_##id] = call(name),
#include "graph/ops.def"
#undef OP
};

/* ---------------------------------------------------------------- graphs */

/* Adds one instance of the operation, and its term of the loss. */
static void add_instance(builder *b, vpps_op op, uint32_t rows, uint32_t cols) {
    const meaning_call *c = &meaning_calls[op];
    const meaning_domain domains[] = {meaning_cases[op].a, meaning_cases[op].b};
    const vpps_shape_rule rule = vpps_ops[op].shape;
    vpps_node x;
    if (c->unary) {
        x = c->unary(b->g, leaf(b, rows, cols, domains[0], 0));
    } else if (c->binary) {
        const bool scaled = rule == VPPS_SHAPE_SCALED, product = rule == VPPS_SHAPE_PRODUCT;
        const uint32_t inner = 1 + vpps_random_below(&b->random, 40);
        const vpps_node first = leaf(b, rows, product ? inner : cols, domains[0], 0);
        x = c->binary(b->g, first, leaf(b, product ? inner : scaled ? 1 : rows, scaled ? 1 : cols, domains[1], 1));
    } else if (c->many) {
        vpps_node xs[4];
        const bool stacked = rule == VPPS_SHAPE_STACKED;
        const uint32_t n = 1 + vpps_random_below(&b->random, 4);
        for (uint32_t k = 0; k < n; k++)
            xs[k] = leaf(b, stacked && k ? 1 + vpps_random_below(&b->random, 40) : rows, cols, domains[0], k);
        if (stacked && n > 3) xs[3] = xs[0]; /* one node twice */
        x = c->many(b->g, n, xs);
    } else {
        x = own[op](b, rows, cols);
    }
    ck_assert_msg(x != VPPS_NO_NODE, "%s %ux%u: %s", vpps_ops[op].name, rows, cols, vpps_error_message());
    uint32_t its_rows, its_cols;
    TEST_OK(vpps_node_shape(b->g, x, &its_rows, &its_cols));
    b->results[b->n_results] = x;
    b->terms[b->n_results++] = vpps_dot(b->g, x, constant(b, its_rows, its_cols, 1));
}

static void builder_open(builder *b, uint64_t seed) {
    *b = (builder){.random = seed};
    TEST_OK(vpps_model_create(&b->model, seed));
    TEST_OK(vpps_graph_create(&b->g, b->model));
}

static void builder_close(builder *b) {
    vpps_graph_destroy(b->g);
    vpps_model_destroy(b->model);
}

/* Builds the graph and returns its loss. `rows` 0: all edge sizes side by side, as vectors and matrices. */
static vpps_node build_graph(builder *b, vpps_op op, uint64_t seed, uint32_t rows, uint32_t cols) {
    builder_open(b, seed);
    if (rows) {
        add_instance(b, op, rows, cols);
    } else {
        for (size_t i = 0; i < VPPS_COUNT(edges); i++) add_instance(b, op, edges[i], 1);
        add_instance(b, op, 2 + vpps_random_below(&b->random, 200), 1);
        add_instance(b, op, edges[vpps_random_below(&b->random, 4)], 1);
        if (meaning_cases[op].shapes == MATRICES) {
            add_instance(b, op, 1, 3);
            add_instance(b, op, 33, 2);
            add_instance(b, op, 2 + vpps_random_below(&b->random, 20), 2 + vpps_random_below(&b->random, 20));
        }
    }
    const vpps_node loss = vpps_sum(b->g, b->n_results, b->terms);
    TEST_OK(vpps_graph_status(b->g));
    for (uint32_t i = 0; i < b->n_results; i++) {
        const vpps_op got = (vpps_op)vpps_plain_signature(b->g, b->results[i])->op;
        ck_assert_msg(got == op, "the call for %s made %s", vpps_ops[op].name, vpps_ops[got].name);
    }
    return loss;
}

static const uint64_t dropout_seed = 77;
static ref_mode training_mode(const builder *b) {
    return (ref_mode){.training = true, .dropout_key = vpps_dropout_key(dropout_seed, b->model->batches + 1)};
}

/* ---------------------------------------------------------------- reference against central differences */

static double loss_value(builder *b, const ref_model *m, vpps_node loss) {
    const ref_mode mode = training_mode(b);
    OWNED(ref_run) *r = need(ref_forward(b->g, m, &mode));
    const double value = r->values[r->first[loss]];
    return value;
}

TEST_GROUP("ops", .seconds = 120);

TEST_EACH(reference_gradient_is_the_slope, 0, VPPS_OP_COUNT) {
    const vpps_op op = (vpps_op)_i;
    if (vpps_ops[op].op_class == VPPS_CLASS_DECIDED) return; /* it has none */
    AT_END(builder_close) builder b;
    const vpps_node loss = build_graph(&b, op, test_seed() * 1000 + op, 0, 0);
    OWNED(ref_model) *m = ref_model_create(b.model);
    const ref_mode mode = training_mode(&b);
    OWNED(ref_run) *r = need(ref_forward(b.g, m, &mode));
    ref_backward(r, m, loss);
    uint64_t random = 5;
    for (uint32_t p = 0; p < m->n; p++) {
        const uint32_t elems = (uint32_t)(m->first[p + 1] - m->first[p]);
        for (uint32_t k = 0; k < 6; k++) {
            const uint32_t e = k == 0 ? 0 : k == 1 ? elems - 1 : vpps_random_below(&random, elems);
            double *w = &m->values[m->first[p] + e];
            const double old = *w, h = 1e-5;
            *w = old + h;
            const double above = loss_value(&b, m, loss);
            *w = old - h;
            const double below = loss_value(&b, m, loss);
            *w = old;
            /* the error of the difference: h^2 times the third derivative, and the loss's rounding over h */
            const double slope = (above - below) / (2 * h), got = r->param_grads[m->first[p] + e];
            ck_assert_msg(fabs(slope - got) <= 1e-6 * (1 + fabs(slope)) + 1e-9 * fabs(above),
                          "%s: gradient of %s[%u] is %.9g, the slope is %.9g", vpps_ops[op].name,
                          b.model->params[p].name, e, got, slope);
        }
    }
}

/* ---------------------------------------------------------------- engine against reference */

typedef struct configuration {
    uint32_t vps;
    vpps_gradients gradients;
    bool portable;
} configuration;

static vpps_options options_of(const configuration *c) {
    vpps_options o = default_options();
    o.vps = c->vps;
    o.gradients = c->gradients;
    o.portable = c->portable;
    o.verify = true;
    o.seed = dropout_seed;
    o.pool_bytes = 64u << 20;
    o.optimizer = (vpps_optimizer){.kind = VPPS_SGD, .lr = 1};
    return o;
}

/* Compares the values of all nodes, the loss and, after a step of SGD, the parameters, within the rounding of the operation alone. */
static void check_configuration(vpps_op op, uint64_t seed, uint32_t rows, uint32_t cols, const configuration *c) {
    AT_END(builder_close) builder b;
    const vpps_node loss = build_graph(&b, op, seed, rows, cols);
    const vpps_options options = options_of(c);
    const bool decided = vpps_ops[op].op_class == VPPS_CLASS_DECIDED; /* it has no gradient */
    const episode x = {.model = b.model,
                       .g = {b.g},
                       .loss = {loss},
                       .n_batches = !decided,
                       .noise = meaning_cases[op].noise,
                       .most_read = EPISODE_READ};
    AT_END(forget_expectation) expectation e = expect_of(&x, &options);
    ck_assert(e.usable);
    const char *wrong = episode_check(&x, &e, &options, EPISODE_FORWARD);
    ck_assert_msg(!wrong, "%s (%u VPs, %s%s, seed %llu, rows %u, cols %u): %s", vpps_ops[op].name, c->vps,
                  c->gradients == VPPS_GRADIENTS_DEFERRED ? "deferred" : "accumulate", c->portable ? ", portable" : "",
                  (unsigned long long)seed, rows, cols, wrong);
    if (decided) {
        OWNED(vpps_handle) *h = new_handle(b.model, &options);
        TEST_FAILS(vpps_fb(h, b.g, loss, NULL), VPPS_ARGUMENT, "no gradients");
    }
}

TEST_EACH(engine_is_the_reference, 0, VPPS_OP_COUNT) {
    const vpps_op op = (vpps_op)_i;
    static const uint32_t vps[] = {1, 2, 3, 8};
    uint64_t random = test_seed() * 77 + op;
    for (uint32_t k = 0; k < (test_full() ? 16 : 4); k++) {
        const uint32_t j =
            test_full() ? k / 4 : k + op; /* both choices in all combinations; with all numbers of VPs, over the ops */
        const configuration c = {vps[k % 4], j & 1 ? VPPS_GRADIENTS_ACCUMULATE : VPPS_GRADIENTS_DEFERRED, j >> 1 & 1};
        check_configuration(op, vpps_random(&random) % 1000000, 0, 0, &c);
        const uint32_t rows = 1 + vpps_random_below(&random, 64);
        const bool matrix = meaning_cases[op].shapes == MATRICES && vpps_random_below(&random, 2);
        check_configuration(op, vpps_random(&random) % 1000000, rows, matrix ? 2 + vpps_random_below(&random, 8) : 1,
                            &c);
    }
}

/* ---------------------------------------------------------------- ties and corners, as documented in vpps.h */

/* Makes one SGD step with lr 1 on the sum of the elements of f(a, b): returns what is subtracted from a and from b. */
static void slopes(vpps_node (*f)(vpps_graph *, vpps_node, vpps_node), float a, float b, float *da, float *db) {
    vpps_param pa, pb;
    const vpps_init ia = {.kind = VPPS_INIT_CONSTANT, .a = a}, ib = {.kind = VPPS_INIT_CONSTANT, .a = b};
    AT_END(training_end) training t = training_of(1);
    TEST_OK(vpps_add_vector(t.model, &pa, "a", 40, &ia));
    TEST_OK(vpps_add_vector(t.model, &pb, "b", 40, &ib));
    const configuration c = {2, VPPS_GRADIENTS_DEFERRED, false};
    const vpps_options options = options_of(&c);
    training_start(&t, &options);
    const vpps_node y = f(t.g, vpps_parameter(t.g, pa), vpps_parameter(t.g, pb));
    TEST_OK(vpps_fb(t.h, t.g, vpps_sum_elements(t.g, y), NULL));
    TEST_OK(vpps_read_parameters(t.h));
    *da = a - vpps_param_values(t.model, pa)[39];
    *db = b - vpps_param_values(t.model, pb)[39];
    for (int i = 0; i < 40; i++) {
        ck_assert_float_eq(vpps_param_values(t.model, pa)[i], vpps_param_values(t.model, pa)[39]);
        ck_assert_float_eq(vpps_param_values(t.model, pb)[i], vpps_param_values(t.model, pb)[39]);
    }
}

static vpps_node max_of_two(vpps_graph *g, vpps_node a, vpps_node b) {
    return vpps_max_of(g, 2, (const vpps_node[]){a, b});
}
static vpps_node min_of_two(vpps_graph *g, vpps_node a, vpps_node b) {
    return vpps_min_of(g, 2, (const vpps_node[]){a, b});
}
static vpps_node relu_first(vpps_graph *g, vpps_node a, vpps_node b) { return vpps_add(g, vpps_relu(g, a), b); }
static vpps_node abs_first(vpps_graph *g, vpps_node a, vpps_node b) { return vpps_add(g, vpps_abs(g, a), b); }

TEST(ties_go_where_documented) {
    static const struct {
        const char *name;
        vpps_node (*f)(vpps_graph *, vpps_node, vpps_node);
        float a, b, da, db;
    } rows[] = {
        {"max", vpps_max, 0.5f, 0.5f, 1, 0},
        {"min", vpps_min, 0.5f, 0.5f, 1, 0},
        {"max_of", max_of_two, 0.5f, 0.5f, 1, 0},
        {"min_of", min_of_two, 0.5f, 0.5f, 1, 0},
        {"max of -0 and 0", vpps_max, -0.0f, 0.0f, 1, 0},
        {"max_of -0 and 0", max_of_two, -0.0f, 0.0f, 1, 0},
        {"relu at 0", relu_first, 0, 1, 0, 1},
        {"relu at -0", relu_first, -0.0f, 1, 0, 1},
        {"abs at 0", abs_first, 0, 1, 0, 1},
        {"abs below 0", abs_first, -0.5f, 1, -1, 1},
    };
    for (size_t i = 0; i < VPPS_COUNT(rows); i++) {
        float da, db;
        slopes(rows[i].f, rows[i].a, rows[i].b, &da, &db);
        ck_assert_msg(da == rows[i].da && db == rows[i].db, "%s: gradients %g and %g instead of %g and %g",
                      rows[i].name, (double)da, (double)db, (double)rows[i].da, (double)rows[i].db);
    }
}
