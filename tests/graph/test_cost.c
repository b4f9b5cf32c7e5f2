/* test_cost.c - compares vpps_graph_cost with counts by hand, and with the same graph without cells. */
#include "common/training.h"

typedef struct fixture {
    vpps_model *model;
    vpps_graph *g;
    vpps_param W, U, b, E, M; /* W 4x3, U 4x4, b 4, E 6 entries of 3x1, M 2 entries of 3x2 */
} fixture;

static fixture open_fixture(void) {
    fixture f;
    TEST_OK(vpps_model_create(&f.model, 1));
    TEST_OK(vpps_add_lookup(f.model, &f.M, "M", 2, 3, 2, NULL));
    TEST_OK(vpps_add_matrix(f.model, &f.W, "W", 4, 3, NULL));
    TEST_OK(vpps_add_lookup(f.model, &f.E, "E", 6, 3, 1, NULL));
    TEST_OK(vpps_add_matrix(f.model, &f.U, "U", 4, 4, NULL));
    TEST_OK(vpps_add_vector(f.model, &f.b, "b", 4, NULL));
    TEST_OK(vpps_graph_create(&f.g, f.model));
    return f;
}

static void close_fixture(fixture *f) {
    vpps_graph_destroy(f->g);
    vpps_model_destroy(f->model);
}

static vpps_cost cost_of(vpps_graph *g) {
    vpps_cost c = {.size = sizeof c};
    TEST_OK(vpps_graph_cost(g, &c));
    ck_assert_uint_eq(c.nodes, vpps_graph_size(g));
    return c;
}

/* Checks the graph's cost since the last clear, then clears the graph. */
static void expect(vpps_graph *g, const char *what, vpps_cost wanted) {
    const vpps_cost c = cost_of(g);
#define SAME(field)                                                                                                    \
    ck_assert_msg(c.field == wanted.field, "%s: %s is %llu instead of %llu", what, #field,                             \
                  (unsigned long long)c.field, (unsigned long long)wanted.field)
    SAME(nodes);
    SAME(product_flops);
    SAME(other_flops);
    SAME(parameter_bytes);
    SAME(value_bytes);
#undef SAME
    vpps_graph_clear(g);
}

static const float numbers[16] = {0.5f, 0.25f, 0.5f, 0.25f, 0.5f, 0.25f, 0.5f, 0.25f};

/* ---------------------------------------------------------------- products and parameters */

TEST_GROUP("cost");

TEST(an_affine_node) {
    AT_END(close_fixture) fixture f = open_fixture();
    vpps_graph *g = f.g;
    expect(g, "nothing", (vpps_cost){0});

    /* W x and W's gradient; the bias and its gradient; an update of 12 + 4 elements. x has no gradient. */
    vpps_affine1(g, f.b, f.W, vpps_input(g, 3, 1, numbers));
    expect(g, "of an input", (vpps_cost){0, 2, 2 * 24, 4 + 4 + 2 * 16, 8 * 16, 3 * 8 + 4 * 16});

    /* The entry has a gradient: a third product and an update of 3 elements. The entry counts as a parameter, not as a value. */
    vpps_affine1(g, f.b, f.W, vpps_lookup(g, f.E, 5));
    expect(g, "of an entry", (vpps_cost){0, 2, 3 * 24, 4 + 4 + 2 * 19, 8 * 19, 4 * 16});

    /* What depends on a trained matrix has a gradient: tanh forward and backward. */
    vpps_tanh(g, vpps_matvec(g, f.W, vpps_input(g, 3, 1, numbers)));
    expect(g, "without bias", (vpps_cost){0, 3, 2 * 24, 4 + 3 * 4 + 2 * 12, 8 * 12, 3 * 8 + 2 * 4 * 16});

    /* Two columns, no bias. */
    vpps_matvec(g, f.W, vpps_lookup(g, f.M, 1));
    expect(g, "of columns", (vpps_cost){0, 2, 3 * 48, 2 * 18, 8 * 18, 8 * 16});

    /* Two products; only the first one has both gradients. */
    vpps_affine2(g, f.b, f.W, vpps_lookup(g, f.E, 0), f.U, vpps_input(g, 4, 1, numbers));
    expect(g, "of two", (vpps_cost){0, 3, 3 * 24 + 2 * 32, 4 + 4 + 2 * 35, 8 * 35, 4 * 8 + 4 * 16});
}

TEST(parameters_count_once) {
    AT_END(close_fixture) fixture f = open_fixture();
    vpps_graph *g = f.g;
    /* U is used twice, the first entry twice, the last once: 16 + 4 + 2 x 3 elements, and W's 12. */
    vpps_node h = vpps_affine1(g, f.b, f.W, vpps_lookup(g, f.E, 0));
    h = vpps_affine1(g, f.b, f.U, h);
    h = vpps_affine2(g, f.b, f.U, h, f.W, vpps_lookup(g, f.E, 0));
    vpps_affine2(g, f.b, f.W, vpps_lookup(g, f.E, 5), f.U, h);
    expect(g, "shared", (vpps_cost){0, 7, 9 * 24 + 9 * 32, 4 * 8 + 2 * 38, 8 * 38, 4 * 4 * 16});

    vpps_parameter(g, f.b);
    vpps_parameter(g, f.b);
    expect(g, "a vector", (vpps_cost){0, 2, 0, 2 * 4, 8 * 4, 0});
    vpps_parameter(g, f.W);
    vpps_parameter(g, f.W); /* two copies, each with a gradient */
    expect(g, "a matrix", (vpps_cost){0, 2, 0, 2 * 12, 8 * 12, 2 * 16 * 12});
}

TEST(frozen_parameters_are_read) {
    AT_END(close_fixture) fixture f = open_fixture();
    vpps_graph *g = f.g;
    TEST_OK(vpps_freeze(f.model, f.W, true));
    TEST_OK(vpps_freeze(f.model, f.b, true));
    vpps_affine1(g, f.b, f.W, vpps_lookup(g, f.E, 0)); /* only the entry has a gradient */
    expect(g, "frozen matrix", (vpps_cost){0, 2, 2 * 24, 4 + 2 * 3, 4 * 16 + 8 * 3, 4 * 16});
    TEST_OK(vpps_freeze(f.model, f.E, true));
    vpps_tanh(g, vpps_affine1(g, f.b, f.W, vpps_lookup(g, f.E, 0))); /* nothing has */
    expect(g, "all frozen", (vpps_cost){0, 3, 24, 4 + 4, 4 * 19, 2 * 4 * 8});
}

TEST(products_of_nodes) {
    AT_END(close_fixture) fixture f = open_fixture();
    vpps_graph *g = f.g;
    /* (3 x 2)(2 x 2): 12 multiply-adds in each of the three products */
    vpps_matmul(g, vpps_lookup(g, f.M, 0), vpps_input(g, 2, 2, numbers));
    expect(g, "one factor trained", (vpps_cost){0, 3, 2 * 24, 2 * 6, 8 * 6, 4 * 8 + 6 * 16});
    vpps_matmul(g, vpps_input(g, 3, 2, numbers), vpps_input(g, 2, 2, numbers));
    expect(g, "none trained", (vpps_cost){0, 3, 24, 0, 0, 6 * 8 + 4 * 8 + 6 * 8});
    vpps_matmul(g, vpps_lookup(g, f.M, 0), vpps_slice(g, vpps_lookup(g, f.M, 1), 0, 2));
    expect(g, "both trained", (vpps_cost){0, 4, 3 * 24, 2 * 12, 8 * 12, 4 * 16 + 6 * 16});
}

/* ---------------------------------------------------------------- the other operations */

/* Each op on a (and b, c): forward only if these are inputs; with backward if they are entries of E. */
#define EACH_OP(X)                                                                                                     \
    X(vpps_add(g, a, b), 3, 0)                                                                                         \
    X(vpps_sub(g, a, b), 3, 0)                                                                                         \
    X(vpps_mul(g, a, b), 3, 6)                                                                                         \
    X(vpps_div(g, a, b), 3, 9)                                                                                         \
    X(vpps_max(g, a, b), 3, 6)                                                                                         \
    X(vpps_min(g, a, b), 3, 6)                                                                                         \
    X(vpps_sum(g, 3, ((vpps_node[]){a, b, c})), 9, 0)                                                                  \
    X(vpps_average(g, 3, ((vpps_node[]){a, b, c})), 9, 9)                                                              \
    X(vpps_max_of(g, 3, ((vpps_node[]){a, b, c})), 9, 9)                                                               \
    X(vpps_min_of(g, 3, ((vpps_node[]){a, b, c})), 9, 9)                                                               \
    X(vpps_negate(g, a), 0, 0)                                                                                         \
    X(vpps_one_minus(g, a), 3, 0)                                                                                      \
    X(vpps_reciprocal(g, a), 3, 6)                                                                                     \
    X(vpps_scale(g, a, 2), 3, 3)                                                                                       \
    X(vpps_sigmoid(g, a), 3, 9)                                                                                        \
    X(vpps_tanh(g, a), 3, 9)                                                                                           \
    X(vpps_relu(g, a), 3, 3)                                                                                           \
    X(vpps_elu(g, a, 1), 12, 9)                                                                                        \
    X(vpps_gelu(g, a), 27, 54)                                                                                         \
    X(vpps_gelu_erf(g, a), 15, 27)                                                                                     \
    X(vpps_exp(g, a), 3, 3)                                                                                            \
    X(vpps_log(g, a), 3, 3)                                                                                            \
    X(vpps_square(g, a), 3, 6)                                                                                         \
    X(vpps_sqrt(g, a), 3, 6)                                                                                           \
    X(vpps_abs(g, a), 3, 6)                                                                                            \
    X(vpps_dropout(g, a, 0.5f), 6, 6)                                                                                  \
    X(vpps_concat(g, 2, ((vpps_node[]){a, b})), 0, 0)                                                                  \
    X(vpps_slice(g, a, 1, 2), 0, 0)                                                                                    \
    X(vpps_transpose(g, a), 0, 0)                                                                                      \
    X(vpps_hstack(g, 2, ((vpps_node[]){a, b})), 0, 0)                                                                  \
    X(vpps_select_rows(g, a, 2, ((const uint32_t[]){2, 2})), 0, 0)                                                     \
    X(vpps_dot(g, a, b), 6, 6)                                                                                         \
    X(vpps_squared_distance(g, a, b), 9, 12)                                                                           \
    X(vpps_sum_elements(g, a), 3, 0)                                                                                   \
    X(vpps_softmax(g, a), 15, 12)                                                                                      \
    X(vpps_log_softmax(g, a), 15, 12)                                                                                  \
    X(vpps_log_sum_exp(g, a), 12, 9)                                                                                   \
    X(vpps_broadcast(g, a, 3, 1), 0, 0)                                                                                \
    X(vpps_centre(g, a), 6, 6)                                                                                         \
    X(vpps_rms_norm(g, a, VPPS_NO_NODE, 1), 9, 21)                                                                     \
    X(vpps_layer_norm(g, a, b, c, 1), 21, 33)                                                                          \
    X(vpps_weighted_sum(g, a, 3, ((vpps_node[]){a, b, c})), 18, 27)                                                    \
    X(vpps_cross_entropy(g, a, 1), 12, 9)                                                                              \
    X(vpps_smooth_label(g, a, 1, 0.1f), 6, 6)                                                                          \
    X(vpps_hinge(g, a, 1, 1), 9, 9)                                                                                    \
    X(vpps_binary_log_loss(g, a, b), 24, 30)

TEST(operations) {
    AT_END(close_fixture) fixture f = open_fixture();
    vpps_graph *g = f.g;
    for (int trained = 0; trained < 2; trained++) {
        vpps_node a, b, c;
#define LEAF(i) (trained ? vpps_lookup(g, f.E, i) : vpps_input(g, 3, 1, numbers))
#define CHECK(call, forward, backward)                                                                                 \
    a = LEAF(0), b = LEAF(1), c = LEAF(2);                                                                             \
    {                                                                                                                  \
        const uint64_t leaves = cost_of(g).other_flops;                                                                \
        call;                                                                                                          \
        TEST_OK(vpps_graph_status(g));                                                                                 \
        const uint64_t flops = cost_of(g).other_flops - leaves;                                                        \
        ck_assert_msg(flops == (forward) + (trained ? (backward) : 0u), "%s: %llu flops", #call,                       \
                      (unsigned long long)flops);                                                                      \
        vpps_graph_clear(g);                                                                                           \
    }
        EACH_OP(CHECK)
        CHECK(vpps_scale_by(g, a, vpps_slice(g, b, 0, 1)), 3, 9)
#undef CHECK
#undef LEAF
    }
}

/* ---------------------------------------------------------------- cells */

/* A vertex with any number of children: a list of gates, sums of lists, a word, a pulled value. */
static vpps_node body(const fixture *f, uint32_t n, const vpps_node *hs, vpps_node x, vpps_node pulled,
                      bool recording) {
    vpps_graph *g = f->g;
    vpps_node gates[8], kept[8], all[9];
    const uint32_t lists = recording ? 1 : n;
    for (uint32_t i = 0; i < lists; i++) gates[i] = vpps_affine2(g, f->b, f->W, x, f->U, hs[i]);
    for (uint32_t i = 0; i < lists; i++) gates[i] = vpps_sigmoid(g, gates[i]);
    for (uint32_t i = 0; i < lists; i++) kept[i] = all[i + 1] = vpps_mul(g, gates[i], hs[i]);
    all[0] = vpps_mul(g, pulled, vpps_average(g, lists, kept));
    return vpps_tanh(g, vpps_add(g, vpps_sum(g, lists + 1, all), vpps_max_of(g, lists, hs)));
}

static vpps_cost cost_of_tree(const fixture *f, bool cells) {
    vpps_graph *g = f->g;
    static const struct { uint32_t children, word; } vertices[] = {{1, 2}, {3, 0}, {5, 2}, {2, 5}};
    vpps_cell cell = 0;
    if (cells) {
        fixture r = *f;
        TEST_OK(vpps_cell_begin(f->model, "vertex", &r.g));
        const vpps_node hs = vpps_gather_list(r.g, 0, 4, 1), x = vpps_lookup(r.g, f->E, vpps_pull_index(r.g));
        TEST_OK(vpps_scatter(r.g, body(&r, 1, &hs, x, vpps_pull(r.g, 4, 1), true)));
        vpps_cost c = {.size = sizeof c};
        TEST_FAILS(vpps_graph_cost(r.g, &c), VPPS_STATE, "vertex");
        TEST_OK(vpps_cell_end(r.g, &cell));
    }
    vpps_node h = vpps_input(g, 4, 1, numbers);
    const vpps_node pulled = vpps_parameter(g, f->b);
    for (size_t i = 0; i < sizeof vertices / sizeof *vertices; i++) {
        vpps_node hs[8];
        vpps_vertex children[8];
        for (uint32_t k = 0; k < vertices[i].children; k++) {
            hs[k] = h;
            if (cells) children[k] = vpps_source(g, 1, &h);
        }
        if (cells) {
            const vpps_vertex v = APPLY(g, cell, CHILDREN(vertices[i].children, children), PULLS(1, &pulled),
                                        INDICES(1, &vertices[i].word));
            h = vpps_scattered(g, v, 0);
        } else {
            h = body(f, vertices[i].children, hs, vpps_lookup(g, f->E, vertices[i].word), pulled, false);
        }
    }
    vpps_cross_entropy(g, h, 1);
    TEST_OK(vpps_graph_status(g));
    return cost_of(g);
}

TEST(cells_cost_what_they_expand_to) {
    AT_END(close_fixture) fixture f = open_fixture();
    const vpps_cost by_hand = cost_of_tree(&f, false);
    vpps_graph_clear(f.g);
    const vpps_cost by_cells = cost_of_tree(&f, true);
    ck_assert(!memcmp(&by_hand, &by_cells, sizeof by_hand));
    /* 11 gates, each W x + U h, three times; but the first vertex's child is an input, without a gradient */
    ck_assert_uint_eq(by_cells.product_flops, 11 * 3 * (24 + 32) - 32);
    /* 4 vertices with a word: all of W, U, b, and three entries of E */
    ck_assert_uint_eq(by_cells.parameter_bytes, 8 * (12 + 16 + 4 + 3 * 3));
    /* the input; 3 list nodes per child and 6 others per vertex, of 4 elements; the loss; no gradient of the input's maximum */
    ck_assert_uint_eq(by_cells.value_bytes, 4 * 8 + (11 * 3 + 4 * 6) * 4 * 16 + 16 - 4 * 8);
}

/* A list of m scalars and one of m vectors of 4: softmax has m numbers; a weighted sum reads all members; a stack has room for 5. */
TEST(an_op_over_a_list_costs_its_members) {
    AT_END(close_fixture) fixture f = open_fixture();
    vpps_graph *r = begin_cell(f.model, "attention");
    const vpps_node h = vpps_gather_list(r, 0, 4, 1), w = vpps_softmax_list(r, vpps_gather_list(r, 1, 1, 1));
    TEST_OK(vpps_scatter(r, vpps_weighted_sum_list(r, w, h)));
    TEST_OK(vpps_scatter(r, vpps_concat_list(r, h, 5)));
    const vpps_cell cell = end_cell(r);
    for (uint32_t m = 0; m < 5; m++) {
        vpps_vertex children[5];
        vpps_graph_clear(f.g);
        for (uint32_t k = 0; k < m; k++)
            children[k] = vpps_source(f.g, 2, (vpps_node[]){vpps_parameter(f.g, f.b), vpps_input(f.g, 1, 1, numbers)});
        APPLY(f.g, cell, CHILDREN(m, children));
        TEST_OK(vpps_graph_status(f.g));
        const uint64_t gradient = m ? 8 : 0; /* of both results, through vector b */
        expect(f.g, "attention",
               (vpps_cost){0, 2 * m + m + 2, 0, (m ? 2 * 4 : 0) + 5 * m + 4 * m * (2 + 3), m ? 8 * 4 : 0,
                           8 * m + 8 * m + (8 + gradient) * (4 + 20)});
    }
}

/* A softmax over a million neighbours is counted in time that grows with their number; growing with its square, it would take hours. */
TEST(the_cost_of_a_long_list_is_counted_soon) {
    enum { MEMBERS = 1000000 };
    AT_END(close_fixture) fixture f = open_fixture();
    vpps_graph *r = begin_cell(f.model, "hub");
    const vpps_node w = vpps_softmax_list(r, vpps_gather_list(r, 0, 1, 1));
    TEST_OK(vpps_scatter(r, vpps_weighted_sum_list(r, w, vpps_gather_list(r, 0, 1, 1))));
    const vpps_cell cell = end_cell(r);
    FREED vpps_vertex *children = need(malloc(MEMBERS * sizeof *children));
    const vpps_node one = vpps_input(f.g, 1, 1, numbers);
    children[0] = vpps_source(f.g, 1, &one);
    for (uint32_t k = 1; k < MEMBERS; k++) children[k] = children[0];
    APPLY(f.g, cell, CHILDREN(MEMBERS, children));
    TEST_OK(vpps_graph_status(f.g));
    vpps_cost cost = {.size = sizeof cost};
    TEST_OK(vpps_graph_cost(f.g, &cost));
    ck_assert_uint_gt(cost.value_bytes, 8ull * MEMBERS);
}

TEST(errors) {
    AT_END(close_fixture) fixture f = open_fixture();
    vpps_cost c = {.size = sizeof c};
    vpps_add(f.g, vpps_lookup(f.g, f.E, 0), vpps_parameter(f.g, f.b));
    TEST_FAILS(vpps_graph_cost(f.g, &c), VPPS_SHAPE, "add");
    ck_assert_uint_eq(c.nodes, 0);
}
