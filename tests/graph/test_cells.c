/* test_cells.c - compares applied cells with the same nodes written by hand: expanded, the graphs are equal, and so are the engine's losses and
 * parameters, to the last bit. Also tests the errors of recording and applying. */
#include "common/flat.h"
#include "common/meaning.h"
#include "common/training.h"

enum { HIDDEN = 33, EMBED = 17, WORDS = 9, CLASSES = 5 };

typedef struct network {
    vpps_model *model;
    vpps_graph *g;
    vpps_param E, W, U_l, U_r, V_l, V_r, U_f, b, b_f, C, b_c;
} network;

static network open_network(void) {
    network n;
    TEST_OK(vpps_model_create(&n.model, 3));
    TEST_OK(vpps_add_lookup(n.model, &n.E, "E", WORDS, EMBED, 1, NULL));
    TEST_OK(vpps_add_matrix(n.model, &n.W, "W", HIDDEN, EMBED, NULL));
    TEST_OK(vpps_add_matrix(n.model, &n.U_l, "U_l", HIDDEN, HIDDEN, NULL));
    TEST_OK(vpps_add_matrix(n.model, &n.U_r, "U_r", HIDDEN, HIDDEN, NULL));
    TEST_OK(vpps_add_matrix(n.model, &n.V_l, "V_l", HIDDEN, HIDDEN, NULL));
    TEST_OK(vpps_add_matrix(n.model, &n.V_r, "V_r", HIDDEN, HIDDEN, NULL));
    TEST_OK(vpps_add_matrix(n.model, &n.U_f, "U_f", HIDDEN, HIDDEN, NULL));
    TEST_OK(vpps_add_vector(n.model, &n.b, "b", HIDDEN, NULL));
    TEST_OK(vpps_add_vector(n.model, &n.b_f, "b_f", HIDDEN, NULL));
    TEST_OK(vpps_add_matrix(n.model, &n.C, "C", CLASSES, HIDDEN, NULL));
    TEST_OK(vpps_add_vector(n.model, &n.b_c, "b_c", CLASSES, NULL));
    TEST_OK(vpps_graph_create(&n.g, n.model));
    return n;
}

static void close_network(network *n) {
    vpps_graph_destroy(n->g);
    vpps_model_destroy(n->model);
}

/* ---------------------------------------------------------------- bodies, for cells and for hand-written nodes */

typedef struct state {
    vpps_node h, c;
} state;

static state leaf_body(const network *n, uint32_t word) {
    vpps_graph *g = n->g;
    const vpps_node x = vpps_affine1(g, n->b, n->W, vpps_lookup(g, n->E, word));
    const vpps_node c = vpps_mul(g, vpps_sigmoid(g, x), vpps_tanh(g, x));
    return (state){vpps_tanh(g, vpps_dropout(g, c, 0.25f)), c};
}

static state inner_body(const network *n, state l, state r) {
    vpps_graph *g = n->g;
    const vpps_node i = vpps_sigmoid(g, vpps_affine2(g, n->b, n->U_l, l.h, n->U_r, r.h));
    const vpps_node f = vpps_sigmoid(g, vpps_affine2(g, n->b_f, n->V_l, l.h, n->V_r, r.h));
    const vpps_node u = vpps_tanh(g, vpps_affine2(g, VPPS_NO_PARAM, n->V_r, l.h, n->U_l, r.h));
    const vpps_node products[] = {vpps_mul(g, i, u), vpps_mul(g, f, l.c), vpps_mul(g, i, r.c)};
    const vpps_node c = vpps_sum(g, 3, products);
    return (state){vpps_mul(g, f, vpps_tanh(g, c)), c};
}

static vpps_node head_body(const network *n, vpps_node h, uint32_t label, vpps_node *logits) {
    *logits = vpps_affine1(n->g, n->b_c, n->C, h);
    return vpps_cross_entropy(n->g, *logits, label);
}

typedef struct cells {
    vpps_cell leaf, inner, head, child_sum, step;
} cells;

/* Begins a cell; the returned recorder stands for the network's graph. */
static vpps_graph *begin_cell_on(network *n, const char *name) {
    TEST_OK(vpps_cell_begin(n->model, name, &n->g));
    return n->g;
}

static cells record_cells(const network *n) {
    cells c;
    network on = *n; /* the network with a recorder as its graph */
    vpps_graph *g;
    g = begin_cell_on(&on, "leaf");
    state s = leaf_body(&on, vpps_pull_index(g));
    TEST_OK(vpps_scatter(g, s.h));
    TEST_OK(vpps_scatter(g, s.c));
    TEST_OK(vpps_cell_end(g, &c.leaf));

    g = begin_cell_on(&on, "inner");
    const state l = {vpps_gather(g, 0, 0, HIDDEN, 1), vpps_gather(g, 0, 1, HIDDEN, 1)};
    const state r = {vpps_gather(g, 1, 0, HIDDEN, 1), vpps_gather(g, 1, 1, HIDDEN, 1)};
    s = inner_body(&on, l, r);
    TEST_OK(vpps_scatter(g, s.h));
    TEST_OK(vpps_scatter(g, s.c));
    TEST_OK(vpps_cell_end(g, &c.inner));

    g = begin_cell_on(&on, "head");
    const vpps_node h = vpps_pull(g, HIDDEN, 1);
    vpps_node logits;
    const vpps_node nll = head_body(&on, h, vpps_pull_index(g), &logits);
    TEST_OK(vpps_push(g, logits));
    TEST_OK(vpps_push(g, nll));
    TEST_OK(vpps_cell_end(g, &c.head));

    /* Child-Sum Tree-LSTM (Tai et al. 2015, section 3.1), somewhat shortened */
    g = begin_cell_on(&on, "child-sum");
    const vpps_node hs = vpps_gather_list(g, 0, HIDDEN, 1), cs = vpps_gather_list(g, 1, HIDDEN, 1);
    const vpps_node x = vpps_lookup(g, n->E, vpps_pull_index(g));
    const vpps_node sum = vpps_sum(g, 1, &hs);
    const vpps_node f = vpps_sigmoid(g, vpps_affine2(g, n->b_f, n->W, x, n->U_f, hs)); /* a list */
    const vpps_node i = vpps_sigmoid(g, vpps_affine2(g, n->b, n->W, x, n->U_l, sum));
    const vpps_node kept = vpps_mul(g, f, cs);
    const vpps_node ic = vpps_mul(g, i, vpps_tanh(g, sum));
    const vpps_node child_sum_c = vpps_sum(g, 2, (const vpps_node[]){ic, kept}); /* one value and the list's values */
    const vpps_node pool = vpps_max_of(g, 1, &cs), mean = vpps_average(g, 1, &kept);
    TEST_OK(vpps_scatter(g, vpps_add(g, vpps_tanh(g, child_sum_c), mean)));
    TEST_OK(vpps_scatter(g, child_sum_c));
    TEST_OK(vpps_push(g, pool));
    TEST_OK(vpps_cell_end(g, &c.child_sum));

    g = begin_cell_on(&on, "step");
    const vpps_node before = vpps_gather(g, 0, 0, HIDDEN, 1), input = vpps_pull(g, EMBED, 1);
    TEST_OK(vpps_scatter(g, vpps_tanh(g, vpps_affine2(g, n->b, n->W, input, n->U_l, before))));
    TEST_OK(vpps_scatter(g, before)); /* scatters what it gathered */
    TEST_OK(vpps_cell_end(g, &c.step));
    return c;
}

/* ---------------------------------------------------------------- the same network twice */

/* In a graph by hand, a vertex is a state. */
typedef struct vertex {
    vpps_vertex v;
    state s;
} vertex;

static state state_of(const network *n, const cells *c, vertex v) {
    return c ? (state){vpps_scattered(n->g, v.v, 0), vpps_scattered(n->g, v.v, 1)} : v.s;
}

static vertex add_leaf(const network *n, const cells *c, uint32_t word) {
    if (!c) return (vertex){.s = leaf_body(n, word)};
    return (vertex){.v = APPLY(n->g, c->leaf, INDICES(1, &word))};
}

static vertex add_inner(const network *n, const cells *c, vertex l, vertex r) {
    if (!c) return (vertex){.s = inner_body(n, l.s, r.s)};
    return (vertex){.v = APPLY(n->g, c->inner, CHILDREN(2, (vpps_vertex[]){l.v, r.v}))};
}

static vpps_node add_head(const network *n, const cells *c, vertex v, uint32_t label) {
    const vpps_node h = state_of(n, c, v).h;
    vpps_node logits;
    if (!c) return head_body(n, h, label, &logits);
    return vpps_pushed(n->g, APPLY(n->g, c->head, PULLS(1, &h), INDICES(1, &label)), 1);
}

static vpps_node map(const network *n, vpps_node (*f)(vpps_graph *, vpps_node), vpps_node *xs, uint32_t k) {
    for (uint32_t i = 0; i < k; i++) xs[i] = f(n->g, xs[i]);
    return xs[0];
}

static vertex add_child_sum(const network *n, const cells *c, uint32_t k, const vertex *children, uint32_t word,
                            vpps_node *pool) {
    vpps_graph *g = n->g;
    if (c) {
        vpps_vertex vs[8];
        for (uint32_t i = 0; i < k; i++) vs[i] = children[i].v;
        const vertex v = {.v = APPLY(g, c->child_sum, CHILDREN(k, vs), INDICES(1, &word))};
        *pool = vpps_pushed(g, v.v, 0);
        return v;
    }
    vpps_node hs[8], cs[8], f[8], terms[9];
    for (uint32_t i = 0; i < k; i++) hs[i] = children[i].s.h, cs[i] = children[i].s.c;
    const vpps_node x = vpps_lookup(g, n->E, word), sum = vpps_sum(g, k, hs);
    for (uint32_t i = 0; i < k; i++) f[i] = vpps_affine2(g, n->b_f, n->W, x, n->U_f, hs[i]);
    map(n, vpps_sigmoid, f, k);
    const vpps_node gate = vpps_sigmoid(g, vpps_affine2(g, n->b, n->W, x, n->U_l, sum));
    for (uint32_t i = 0; i < k; i++) terms[i + 1] = vpps_mul(g, f[i], cs[i]);
    terms[0] = vpps_tanh(g, sum);
    terms[0] = vpps_mul(g, gate, terms[0]);
    const vpps_node total = vpps_sum(g, k + 1, terms);
    *pool = vpps_max_of(g, k, cs);
    const vpps_node mean = vpps_average(g, k, terms + 1);
    return (vertex){.s = {vpps_add(g, vpps_tanh(g, total), mean), total}};
}

static vertex add_start(const network *n, const cells *c, vpps_node h, vpps_node other) {
    if (!c) return (vertex){.s = {h, other}};
    return (vertex){.v = vpps_source(n->g, 2, (vpps_node[]){h, other})};
}

static vertex add_step(const network *n, const cells *c, vertex v, vpps_node x) {
    if (c) return (vertex){.v = APPLY(n->g, c->step, CHILDREN(1, &v.v), PULLS(1, &x))};
    return (vertex){.s = {vpps_tanh(n->g, vpps_affine2(n->g, n->b, n->W, x, n->U_l, v.s.h)), v.s.h}};
}

enum { MAX_TERMS = 64 };

/* Builds a random binary tree with classified vertices, a tree with any number of children, and a chain. */
static vpps_node build(const network *n, const cells *c, uint64_t seed) {
    vpps_graph *g = n->g;
    uint64_t random = seed;
    vpps_node terms[MAX_TERMS];
    uint32_t n_terms = 0;
    vpps_graph_clear(g);

    vertex stack[16];
    const uint32_t leaves = 2 + vpps_random_below(&random, 8);
    for (uint32_t i = 0; i < leaves; i++) stack[i] = add_leaf(n, c, vpps_random_below(&random, WORDS));
    for (uint32_t k = leaves; k > 1; k--) {
        const uint32_t at = vpps_random_below(&random, k - 1);
        stack[at] = add_inner(n, c, stack[at], stack[at + 1]);
        for (uint32_t i = at + 1; i + 1 < k; i++) stack[i] = stack[i + 1];
        terms[n_terms++] = add_head(n, c, stack[at], vpps_random_below(&random, CLASSES));
    }

    vertex root = stack[0];
    for (uint32_t i = 0; i < 4; i++) {
        vertex children[8];
        const uint32_t k = 1 + vpps_random_below(&random, 5);
        for (uint32_t j = 0; j < k; j++)
            children[j] = j == k / 2 ? root : add_leaf(n, c, vpps_random_below(&random, WORDS));
        if (k > 2) children[0] = root; /* one vertex as two children */
        vpps_node pool;
        root = add_child_sum(n, c, k, children, vpps_random_below(&random, WORDS), &pool);
        terms[n_terms++] = vpps_sum_elements(g, vpps_square(g, pool));
    }

    vertex state_vertex = add_start(n, c, state_of(n, c, root).h, vpps_parameter(g, n->b_f));
    const uint32_t steps = 1 + vpps_random_below(&random, 6);
    for (uint32_t i = 0; i < steps; i++)
        state_vertex = add_step(n, c, state_vertex, vpps_lookup(g, n->E, vpps_random_below(&random, WORDS)));
    const state last = state_of(n, c, state_vertex);
    terms[n_terms++] = vpps_dot(g, last.h, last.c);
    terms[n_terms++] = add_head(n, c, state_vertex, 0);
    return vpps_average(g, n_terms, terms);
}

TEST(flat_graphs_are_equal) {
    AT_END(close_network) network a = open_network(), b = open_network();
    const cells c = record_cells(&a);
    for (uint64_t seed = 0; seed < 50; seed++) {
        const vpps_node x = build(&a, &c, seed), y = build(&b, NULL, seed);
        TEST_OK(vpps_graph_status(a.g));
        TEST_OK(vpps_graph_status(b.g));
        flat_graph *p = flatten(a.g), *q = flatten(b.g);
        ck_assert_uint_eq(p->of[x], q->of[y]);
        const uint32_t at = flat_difference(p, q);
        ck_assert_msg(at == UINT32_MAX, "seed %u, node %u: %s by cell, %s by hand", (unsigned)seed, at,
                      at < p->n_nodes ? vpps_ops[p->nodes[at].s.op].name : "none",
                      at < q->n_nodes ? vpps_ops[q->nodes[at].s.op].name : "none");
        ck_assert_uint_eq(vpps_graph_size(a.g), p->n_nodes);
        ck_assert_uint_eq(vpps_graph_size(b.g), p->n_nodes);
        for (uint32_t i = 0; i < a.g->n_nodes; i++) {
            const vpps_signature *s = &p->nodes[p->of[i]].s;
            uint32_t rows, cols;
            TEST_OK(vpps_node_shape(a.g, i, &rows, &cols));
            ck_assert(rows == s->rows && cols == s->cols);
        }
        flat_graph_free(p);
        flat_graph_free(q);
    }
}

/* A cell is compiled as a whole, which changes the order of some sums. */
static bool close_to(float a, float b) { return fabsf(a - b) <= 1e-5f * (1 + fabsf(b)); }

/* Compares the parameters that n[0] has trained with cells, and n[1] with single ops. */
static void expect_equal_parameters(const network n[2], uint32_t vps) {
    for (uint32_t p = 0; p < vpps_param_count(n[0].model); p++) {
        const float *by_cells = vpps_param_values(n[0].model, p), *by_hand = vpps_param_values(n[1].model, p);
        for (size_t i = 0; i < vpps_param_elems(&n[0].model->params[p]); i++)
            ck_assert_msg(close_to(by_cells[i], by_hand[i]),
                          "%u VPs: parameter %s, element %zu: %.9g by cells, %.9g by hand", vps,
                          n[0].model->params[p].name, i, (double)by_cells[i], (double)by_hand[i]);
    }
}

/* Makes h of two gates that share their words' product but not their state's, after two words. */
static void gates_body(const network *n, vpps_node h, vpps_node x, vpps_node *out) {
    vpps_graph *g = n->g;
    const vpps_node i = vpps_sigmoid(g, vpps_affine2(g, n->b, n->W, x, n->U_l, h));
    *out = vpps_mul(g, i, vpps_tanh(g, vpps_affine2(g, n->b, n->W, x, n->U_r, h)));
}

static vpps_cell record_gates(const network *n) {
    network recorder = *n;
    TEST_OK(vpps_cell_begin(n->model, "gates", &recorder.g));
    const vpps_node h = vpps_gather(recorder.g, 0, 0, HIDDEN, 1), x = vpps_pull(recorder.g, EMBED, 1);
    vpps_node out;
    gates_body(&recorder, h, x, &out);
    TEST_OK(vpps_scatter(recorder.g, out));
    return end_cell(recorder.g);
}

/* Sets h[] to the state after each of two words: by the cell, or (UINT32_MAX) op by op. */
static void add_gates(const network *n, vpps_cell cell, vpps_node *h) {
    vpps_node before = vpps_zeros(n->g, HIDDEN, 1);
    vpps_vertex v = cell == UINT32_MAX ? 0 : vpps_source(n->g, 1, &before);
    for (uint32_t t = 0; t < 2; t++) {
        const vpps_node word = vpps_lookup(n->g, n->E, t);
        if (cell == UINT32_MAX) {
            gates_body(n, before, word, &h[t]);
        } else {
            v = APPLY(n->g, cell, CHILDREN(1, &v), PULLS(1, &word));
            h[t] = vpps_scattered(n->g, v, 0);
        }
        before = h[t];
    }
}

/* A value that is computed before the recurrence and read twice in it must be read before another is stored in its place. */
TEST(shared_products_are_read_in_time) {
    for (uint32_t k = 0; k < 4; k++) {
        const bool forward = k % 2;
        network n[2] = {open_network(), open_network()};
        const vpps_cell cell = record_gates(&n[0]);
        vpps_options o = default_options();
        o.vps = 1 + k / 2;
        o.verify = true;
        o.optimizer.lr = 1;
        float states[2][2][HIDDEN];
        for (uint32_t i = 0; i < 2; i++) {
            vpps_node h[2];
            add_gates(&n[i], i ? UINT32_MAX : cell, h);
            float *outs[] = {states[i][0], states[i][1]};
            OWNED(vpps_handle) *handle = new_handle(n[i].model, &o);
            if (forward) TEST_OK(vpps_forward(handle, n[i].g, 2, h, outs));
            TEST_OK(vpps_fb(handle, n[i].g, vpps_sum_elements(n[i].g, vpps_square(n[i].g, h[1])), NULL));
            TEST_OK(vpps_read_parameters(handle));
        }
        for (uint32_t e = 0; forward && e < 2 * HIDDEN; e++)
            ck_assert_msg(close_to(states[0][e / HIDDEN][e % HIDDEN], states[1][e / HIDDEN][e % HIDDEN]),
                          "%u VPs, word %u, element %u: %.9g, by hand %.9g", o.vps, e / HIDDEN, e % HIDDEN,
                          (double)states[0][e / HIDDEN][e % HIDDEN], (double)states[1][e / HIDDEN][e % HIDDEN]);
        expect_equal_parameters(n, o.vps);
        for (uint32_t i = 0; i < 2; i++) close_network(&n[i]);
    }
}

/* ---------------------------------------------------------------- errors */

static void fails_sticky(vpps_graph *g, bool failed, vpps_status status, const char *what, const char *a,
                         const char *b) {
    ck_assert_msg(failed, "%s: succeeded", what);
    TEST_FAILS(vpps_graph_status(g), status, a);
    ck_assert_msg(strstr(vpps_error_message(), b), "%s: the message \"%s\" lacks \"%s\"", what, vpps_error_message(),
                  b);
    vpps_graph_clear(g);
}

TEST(applying_checks_counts_and_shapes) {
    AT_END(close_network) network n = open_network();
    vpps_graph *g = n.g;
    const cells c = record_cells(&n);
    const uint32_t word = 1, far = WORDS;
    vpps_vertex v, two[2];
#define FRESH                                                                                                          \
    vpps_graph_clear(g);                                                                                               \
    v = APPLY(g, c.leaf, INDICES(1, &word));                                                                           \
    two[0] = two[1] = v;                                                                                               \
    TEST_OK(vpps_graph_status(g))
#define BAD(call, status, a, b)                                                                                        \
    fails_sticky(g, (call) == VPPS_NO_VERTEX, VPPS_##status, #call, a, b);                                             \
    FRESH
    FRESH;
    BAD(APPLY(g, c.inner, CHILDREN(1, &v)), ARGUMENT, "inner", "1 children");
    BAD(APPLY(g, c.leaf, CHILDREN(1, &v), INDICES(1, &word)), ARGUMENT, "leaf", "1 children");
    BAD(APPLY(g, c.leaf), ARGUMENT, "leaf", "0 indices");
    BAD(APPLY(g, c.leaf, INDICES(1, &far)), ARGUMENT, "leaf", "lookup");
    BAD(APPLY(g, c.child_sum, INDICES(1, &word)), ARGUMENT, "child-sum", "at least 1");
    BAD(APPLY(g, c.head, INDICES(1, &word)), ARGUMENT, "head",
        "given 0 children, 0 pulls, 1 indices; expected 0 children, 1 pulls, 1 indices");
    vpps_node h = vpps_scattered(g, v, 0);
    const uint32_t label = CLASSES;
    BAD(APPLY(g, c.head, PULLS(1, &h), INDICES(1, &label)), ARGUMENT, "head", "cross_entropy");
    h = vpps_lookup(g, n.E, 0);
    BAD(APPLY(g, c.head, PULLS(1, &h), INDICES(1, &word)), SHAPE, "head", "17 x 1");
    two[1] = 77;
    BAD(APPLY(g, c.inner, CHILDREN(2, two)), ARGUMENT, "apply", "77");
    two[1] = vpps_source(g, 1, &(vpps_node){vpps_scattered(g, v, 0)});
    BAD(APPLY(g, c.inner, CHILDREN(2, two)), ARGUMENT, "source", "output 1");
    h = vpps_lookup(g, n.E, 0);
    two[1] = vpps_source(g, 2, (vpps_node[]){h, h});
    BAD(APPLY(g, c.inner, CHILDREN(2, two)), SHAPE, "inner", "17 x 1");
    /* vertices of a cell that scatters words, as children */
    network on = n;
    vpps_graph *r = begin_cell_on(&on, "words");
    const vpps_node x = vpps_lookup(r, n.E, vpps_pull_index(r));
    TEST_OK(vpps_scatter(r, x));
    TEST_OK(vpps_scatter(r, x));
    const vpps_cell words = end_cell(r);
    two[1] = APPLY(g, words, INDICES(1, &word));
    BAD(APPLY(g, c.inner, CHILDREN(2, two)), SHAPE, "inner", "child 1 gives 17 x 1");
    two[1] = APPLY(g, words, INDICES(1, &word));
    BAD(APPLY(g, c.child_sum, CHILDREN(2, two), INDICES(1, &word)), SHAPE, "child-sum", "17 x 1");
    BAD(APPLY(g, 99), ARGUMENT, "apply", "cell");
    BAD(vpps_pushed(g, v, 0), ARGUMENT, "leaf", "0");
    BAD(vpps_scattered(g, v, 2), ARGUMENT, "leaf", "2");
    /* a failed apply changes nothing, and its result makes later calls fail */
    const uint32_t size = vpps_graph_size(g);
    v = APPLY(g, c.inner, CHILDREN(1, two));
    ck_assert_uint_eq(v, VPPS_NO_VERTEX);
    ck_assert_uint_eq(vpps_scattered(g, v, 0), VPPS_NO_NODE);
    ck_assert_uint_eq(APPLY(g, c.inner, CHILDREN(2, two)), VPPS_NO_VERTEX);
    TEST_FAILS(vpps_graph_status(g), VPPS_ARGUMENT, "1 children");
    ck_assert_uint_eq(vpps_graph_size(g), size);
}

TEST(recording_errors) {
    AT_END(close_network) network n = open_network();
    vpps_graph *g = n.g, *r;
    vpps_cell c;
    TEST_FAILS(vpps_cell_begin(n.model, "", &r), VPPS_ARGUMENT, "name");
    ck_assert_ptr_null(r);
    TEST_FAILS(vpps_cell_begin(n.model, NULL, &r), VPPS_ARGUMENT, "name");
    static const char *const no_names[] = {"two\nlines", "\x1b[2J", "\x7f", "\xc2\x80", "\xc3", "a\xff"};
    for (size_t i = 0; i < VPPS_COUNT(no_names); i++)
        TEST_FAILS(vpps_cell_begin(n.model, no_names[i], &r), VPPS_ARGUMENT, "cell_begin: the name");
    TEST_FAILS(vpps_cell_begin(NULL, "no model", &r), VPPS_ARGUMENT, "model");
    TEST_FAILS(vpps_cell_end(NULL, &c), VPPS_ARGUMENT, "cell_end");
    ck_assert_uint_eq(c, UINT32_MAX);
    TEST_FAILS(vpps_cell_end(g, &c), VPPS_STATE, "cell_begin"); /* an ordinary graph stays unchanged */
    TEST_FAILS(vpps_scatter(g, 0), VPPS_STATE, "scatter");
    TEST_FAILS(vpps_push(g, 0), VPPS_STATE, "push");
    TEST_OK(vpps_graph_status(g));

    /* an operation's error ends the recording, and vpps_cell_end reports it; the model gets no cell */
    const size_t n_cells = n.model->n_cells;
    TEST_OK(vpps_cell_begin(n.model, "wrong shapes", &r));
    const vpps_node bad = vpps_add(r, vpps_gather(r, 0, 0, 4, 1), vpps_gather(r, 0, 1, 5, 1));
    ck_assert_uint_eq(bad, VPPS_NO_NODE);
    ck_assert_int_ne(vpps_scatter(r, bad), VPPS_OK);
    TEST_FAILS(vpps_cell_end(r, &c), VPPS_SHAPE, "add");
    ck_assert_msg(strstr(vpps_error_message(), "4 x 1") && strstr(vpps_error_message(), "5 x 1"), "%s",
                  vpps_error_message());
    ck_assert_uint_eq(c, UINT32_MAX);

    TEST_OK(vpps_cell_begin(n.model, "list out", &r));
    const vpps_node list = vpps_gather_list(r, 0, 4, 1);
    ck_assert_int_ne(vpps_scatter(r, vpps_tanh(r, list)), VPPS_OK);
    TEST_FAILS(vpps_cell_end(r, &c), VPPS_SHAPE, "list");
    TEST_OK(vpps_cell_begin(n.model, "list pushed", &r));
    ck_assert_int_ne(vpps_push(r, vpps_gather_list(r, 0, 4, 1)), VPPS_OK);
    TEST_FAILS(vpps_cell_end(r, &c), VPPS_SHAPE, "list");

    TEST_OK(vpps_cell_begin(n.model, "two shapes for one output", &r));
    vpps_gather(r, 0, 0, 4, 1);
    ck_assert_uint_eq(vpps_gather(r, 0, 0, 5, 1), VPPS_NO_NODE);
    TEST_FAILS(vpps_cell_end(r, &c), VPPS_SHAPE, "gather");

    TEST_OK(vpps_cell_begin(n.model, "data", &r));
    const float data[4] = {0};
    ck_assert_uint_eq(vpps_input(r, 4, 1, data), VPPS_NO_NODE);
    TEST_FAILS(vpps_cell_end(r, &c), VPPS_STATE, "pull");
    ck_assert_uint_eq(n.model->n_cells, n_cells);
    TEST_OK(vpps_graph_status(g)); /* the graph was not involved */
}

/* A cell with the most of everything that a cell may have, and with one more: the error has the number. */
TEST(limits_of_cells) {
    enum { MOST = VPPS_CELL_MOST };
    static const char *const what[] = {"inputs", "outputs", "lookups", "indices"};
    for (uint32_t kind = 0; kind < 4; kind++) {
        for (uint32_t more = 0; more < 2; more++) {
            AT_END(close_network) network n = open_network();
            vpps_cell cell;
            vpps_node values[MOST + 1], ins[MOST + 1];
            uint32_t indices[MOST + 1];
            const uint32_t count = MOST + more;
            vpps_graph *r = begin_cell(n.model, "many");
            const vpps_node x = kind ? vpps_pull(r, CLASSES, 1) : VPPS_NO_NODE;
            for (uint32_t i = 0; i < count; i++) {
                indices[i] = i % CLASSES;
                if (kind == 0) values[i] = vpps_pull(r, CLASSES, 1);
                if (kind == 1) values[i] = vpps_scale(r, x, (float)(i + 1));
                if (kind == 2) values[i] = vpps_lookup(r, n.E, vpps_pull_index(r));
                if (kind == 3) values[i] = vpps_cross_entropy(r, x, vpps_pull_index(r));
            }
            for (uint32_t i = 0; i < count && kind == 1; i++) TEST_OK(vpps_scatter(r, values[i]));
            if (kind != 1) TEST_OK(vpps_scatter(r, vpps_sum_elements(r, vpps_sum(r, count, values))));
            if (more) {
                char number[16];
                snprintf(number, sizeof number, "has %d", MOST + 1);
                TEST_FAILS(vpps_cell_end(r, &cell), VPPS_ARGUMENT, what[kind]);
                ck_assert_ptr_nonnull(strstr(vpps_error_message(), number));
                ck_assert_ptr_nonnull(strstr(vpps_error_message(), "at most 64"));
                ck_assert_uint_eq(cell, UINT32_MAX);
                continue;
            }
            TEST_OK(vpps_cell_end(r, &cell));
            const float data[CLASSES] = {0.5f, -1, 2, 0.25f, 1};
            for (uint32_t i = 0; i < count; i++) ins[i] = vpps_input(n.g, CLASSES, 1, data);
            const uint32_t n_pulls = kind == 0 ? count : 1;
            const vpps_vertex v = APPLY(n.g, cell, PULLS(n_pulls, ins), INDICES(kind > 1 ? count : 0, indices));
            vpps_options o = default_options();
            o.vps = 2;
            o.verify = true;
            float loss;
            OWNED(vpps_handle) *h = new_handle(n.model, &o);
            TEST_OK(vpps_fb(h, n.g, vpps_sum_elements(n.g, vpps_scattered(n.g, v, kind == 1 ? count - 1 : 0)), NULL));
            TEST_OK(vpps_sync_latest_loss(h, &loss));
            if (kind < 2) ck_assert_float_eq_tol(loss, 2.75f * MOST, 1e-3f);
        }
    }
}

/* A recorder only records. */
TEST(recorders_are_no_graphs) {
    AT_END(close_network) network n = open_network();
    const cells known = record_cells(&n);
    const uint32_t word = 0;
    vpps_cell c;
    vpps_graph *r = begin_cell(n.model, "apply inside");
    const vpps_application leaf = {.size = sizeof leaf, .cell = known.leaf, .n_indices = 1, .indices = &word};
    ck_assert_uint_eq(vpps_apply(r, &leaf), VPPS_NO_VERTEX);
    TEST_FAILS(vpps_cell_end(r, &c), VPPS_STATE, "apply");

    TEST_OK(vpps_cell_begin(n.model, "source inside", &r));
    ck_assert_uint_eq(vpps_source(r, 0, NULL), VPPS_NO_VERTEX);
    TEST_FAILS(vpps_cell_end(r, &c), VPPS_STATE, "source");

    TEST_OK(vpps_cell_begin(n.model, "cleared", &r));
    vpps_graph_clear(r);
    ck_assert_uint_eq(vpps_gather(r, 0, 0, 4, 1), VPPS_NO_NODE);
    TEST_FAILS(vpps_cell_end(r, &c), VPPS_STATE, "cleared");

    vpps_options o = default_options();
    o.vps = 1;
    OWNED(vpps_handle) *h = new_handle(n.model, &o);
    TEST_OK(vpps_cell_begin(n.model, "unfinished", &r));
    const vpps_node x = vpps_sum_elements(r, vpps_lookup(r, n.E, 0));
    ck_assert_uint_eq(vpps_graph_size(r), 2);
    TEST_FAILS(vpps_fb(h, r, x, NULL), VPPS_STATE, "unfinished");
    TEST_OK(vpps_push(r, x)); /* and the recording continues */
    TEST_OK(vpps_cell_end(r, &c));

    /* a dropped recording leaves nothing behind */
    const size_t n_cells = n.model->n_cells;
    TEST_OK(vpps_cell_begin(n.model, "dropped", &r));
    vpps_scatter(r, vpps_tanh(r, vpps_gather(r, 0, 0, 4, 1)));
    vpps_graph_destroy(r);
    ck_assert_uint_eq(n.model->n_cells, n_cells);
}

/* One index more than can be told apart was once mistaken for the first one. */
TEST(pulled_indices_are_limited) {
    enum { MOST = 65535 };
    AT_END(close_network) network n = open_network();
    vpps_graph *g = n.g, *r;
    vpps_cell c;
    for (uint32_t more = 0; more < 2; more++) {
        TEST_OK(vpps_cell_begin(n.model, "many", &r));
        uint32_t last = 0;
        for (uint32_t i = 0; i < MOST; i++) last = vpps_pull_index(r);
        TEST_OK(vpps_graph_status(r));
        if (more) ck_assert_uint_eq(vpps_pull_index(r), VPPS_NO_NODE);
        vpps_push(r, vpps_sum_elements(r, vpps_lookup(r, n.E, last)));
        if (!more) TEST_OK(vpps_cell_end(r, &c));
        if (more) TEST_FAILS(vpps_cell_end(r, &c), VPPS_ARGUMENT, "pull_index: cell many pulls 65535 indices");
    }
    FREED uint32_t *indices = need(calloc(MOST, sizeof *indices)); /* the last index is the one that is used */
    indices[MOST - 1] = WORDS - 1;
    const vpps_node by_cell = vpps_pushed(g, APPLY(g, 0, INDICES(MOST, indices)), 0);
    const vpps_node nodes[] = {by_cell, vpps_sum_elements(g, vpps_lookup(g, n.E, WORDS - 1))};
    float values[2];
    OWNED(vpps_handle) *h = new_handle(n.model, NULL);
    TEST_OK(vpps_forward(h, g, 2, nodes, (float *[]){&values[0], &values[1]}));
    ck_assert_float_eq(values[0], values[1]);
}

TEST(nodes_of_a_cell_stay_inside) {
    AT_END(close_network) network n = open_network();
    vpps_graph *g = n.g, *r;
    TEST_OK(vpps_cell_begin(n.model, "cell", &r));
    const vpps_node gathered = vpps_gather(r, 0, 0, EMBED, 1);
    TEST_OK(vpps_scatter(r, vpps_tanh(r, gathered)));
    vpps_cell c = end_cell(r);
    vpps_lookup(g, n.E, 0);
    fails_sticky(g, vpps_tanh(g, gathered) == VPPS_NO_NODE, VPPS_ARGUMENT, "a cell's input outside", "tanh", "node");
    vpps_node outside[20];
    for (uint32_t i = 0; i < 20; i++) outside[i] = vpps_lookup(g, n.E, i % WORDS);
    TEST_OK(vpps_cell_begin(n.model, "takes from outside", &r));
    vpps_tanh(r, outside[19]);
    TEST_FAILS(vpps_cell_end(r, &c), VPPS_ARGUMENT, "tanh");
    TEST_OK(vpps_graph_status(g)); /* the nodes made before are still valid */
    ck_assert_uint_eq(vpps_tanh(g, outside[19]), 20);
}

/* One recording serves graphs made before and after it, in turn, in training and inference, while a handle exists: with the same bits as if each
 * graph had a model of its own. */
TEST(cells_serve_any_number_of_graphs) {
    enum { GRAPHS = 3, ROUNDS = 6 };
    float losses[GRAPHS + 1][ROUNDS]; /* the last one: with one graph alone */
    for (uint32_t alone = 0; alone < 2; alone++) {
        AT_END(close_network) network n = open_network();
        network views[GRAPHS];
        vpps_graph *open = begin_cell(n.model, "all the while");
        const vpps_node gathered = vpps_gather(open, 0, 0, HIDDEN, 1);
        vpps_options o = default_options();
        o.vps = 2;
        OWNED(vpps_handle) *h = new_handle(n.model, &o);
        for (uint32_t i = 0; i < GRAPHS; i++) {
            views[i] = n;
            if (i == 1) TEST_OK(vpps_graph_create(&views[i].g, n.model));
        }
        const cells c = record_cells(&n);
        TEST_OK(vpps_graph_create(&views[2].g, n.model));
        for (uint32_t round = 0; round < ROUNDS; round++) {
            network *v = &views[alone ? 0 : round % GRAPHS];
            if (round == 3) (void)record_cells(&n); /* more cells are recorded between batches */
            const vpps_node loss = build(v, &c, round);
            TEST_OK(vpps_fb(h, v->g, loss, NULL));
            TEST_OK(vpps_sync_latest_loss(h, &losses[alone ? GRAPHS : 0][round]));
            float *const out = &losses[alone ? 2 : 1][round];
            TEST_OK(vpps_forward(h, v->g, 1, &loss, &out));
        }
        TEST_OK(vpps_scatter(open, vpps_tanh(open, gathered)));
        ck_assert_uint_eq(end_cell(open), n.model->n_cells - 1);
        vpps_graph_destroy(views[1].g);
        vpps_graph_destroy(views[2].g);
    }
    ck_assert(!memcmp(losses[0], losses[GRAPHS], sizeof losses[0]));
    ck_assert(!memcmp(losses[1], losses[2], sizeof losses[1]));
}

/* ---------------------------------------------------------------- lists */

enum { MOST_MEMBERS = 5 };

/* Adds up the rows of a stack of MOST_MEMBERS members, each with a factor of its own. */
static vpps_node fold(vpps_graph *g, vpps_node stack) {
    vpps_node terms[MOST_MEMBERS];
    for (uint32_t k = 0; k < MOST_MEMBERS; k++)
        terms[k] = vpps_scale(g, vpps_slice(g, stack, k * EMBED, EMBED), 0.5f * (float)k - 0.75f);
    return vpps_sum(g, MOST_MEMBERS, terms);
}

/* Records a cell whose state attends to the other children, with a bias for each edge. */
static vpps_cell record_attention(const network *n) {
    vpps_graph *g = begin_cell(n->model, "attention");
    const vpps_node s = vpps_gather(g, 0, 0, EMBED, 1), h = vpps_gather_list_from(g, 1, 0, EMBED, 1);
    const vpps_node bias = vpps_pull_list(g, 1, 1);
    const vpps_node a = vpps_softmax_list(g, vpps_add(g, vpps_dot(g, h, s), bias));
    TEST_OK(vpps_push(g, vpps_add(g, s, vpps_weighted_sum_list(g, a, h))));
    TEST_OK(vpps_push(g, vpps_weighted_sum_list(g, bias, h)));
    TEST_OK(vpps_scatter(g, vpps_sum(g, 1, &h)));
    TEST_OK(vpps_push(g, vpps_average(g, 1, &h)));
    TEST_OK(vpps_push(g, fold(g, vpps_concat_list(g, vpps_tanh(g, h), MOST_MEMBERS))));
    return end_cell(g);
}

/* Consecutive vertices share the nodes of equal lists, but not of lists that differ in length, a member or a pulled node. */
TEST(equal_lists_are_shared) {
    /* child 0, the second member, the number of members, the first pulled node, and whether the lists are shared */
    static const uint32_t rows[][5] = {{0, 1, 2, 0, 0}, {1, 1, 2, 0, 1}, {1, 2, 2, 0, 0},
                                       {1, 2, 2, 1, 0}, {1, 2, 1, 1, 0}, {0, 2, 1, 1, 1}};
    AT_END(close_network) network n = open_network();
    const vpps_cell cell = record_attention(&n);
    vpps_node word[3], bias[3];
    for (uint32_t k = 0; k < 3; k++) {
        word[k] = vpps_lookup(n.g, n.E, k);
        bias[k] = vpps_slice(n.g, word[k], k, 1);
        ck_assert_uint_eq(vpps_source(n.g, 1, &word[k]), k);
    }
    for (uint32_t i = 0, at = 0; i < VPPS_COUNT(rows); i++) {
        const uint32_t members = rows[i][2], children[] = {rows[i][0], 0, rows[i][1]};
        const vpps_node *list = bias + rows[i][3];
        const vpps_vertex v = APPLY(n.g, cell, CHILDREN(1 + members, children), .n_pull_lists = 1, .n_members = members,
                                    .pull_lists = &list);
        const uint32_t *nodes = vpps_listed_nodes(n.g, vpps_cell_of(n.g, cell), n.g->words + n.g->vertices[v].at);
        ck_assert_int_eq(nodes - n.g->words == at, rows[i][4]);
        for (uint32_t k = 0; k < members; k++)
            ck_assert(nodes[k] == word[children[1 + k]] && nodes[members + k] == list[k]);
        at = (uint32_t)(nodes - n.g->words);
    }
}

TEST(sums_between_vertices_of_one_list) { /* a sum of nine nodes is also a vertex with a list */
    AT_END(close_network) network n = open_network();
    const vpps_cell cell = record_attention(&n);
    vpps_options o = default_options();
    o.verify = true;
    OWNED(vpps_handle) *h = new_handle(n.model, &o);
    const vpps_node x = vpps_lookup(n.g, n.E, 1), list[] = {vpps_slice(n.g, x, 0, 1), vpps_slice(n.g, x, 1, 1)},
                    *lists = list;
    const vpps_vertex source = vpps_source(n.g, 1, &x), children[] = {source, source, source};
    vpps_node y = x;
    for (int i = 0; i < 30; i++) {
        const vpps_vertex v =
            APPLY(n.g, cell, CHILDREN(3, children), .n_pull_lists = 1, .n_members = 2, .pull_lists = &lists);
        const vpps_node p = vpps_pushed(n.g, v, 0);
        y = vpps_sum(n.g, 9, (vpps_node[]){p, p, p, p, p, p, p, p, y});
    }
    TEST_OK(vpps_fb(h, n.g, vpps_sum_elements(n.g, y), NULL));
}

TEST(errors_of_lists) {
    AT_END(close_network) network n = open_network();
    vpps_graph *g = n.g, *r;
    vpps_cell c;
    const vpps_node s = vpps_lookup(g, n.E, 0);
    fails_sticky(g, vpps_softmax_list(g, s) == VPPS_NO_NODE, VPPS_STATE, "softmax_list outside", "softmax_list",
                 "cell");
#define BAD_RECORDING(status, a, b, ...)                                                                               \
    TEST_OK(vpps_cell_begin(n.model, "bad", &r));                                                                      \
    ck_assert_uint_eq((__VA_ARGS__), VPPS_NO_NODE);                                                                    \
    TEST_FAILS(vpps_cell_end(r, &c), VPPS_##status, a);                                                                \
    ck_assert_msg(strstr(vpps_error_message(), b), "%s", vpps_error_message())
    BAD_RECORDING(SHAPE, "softmax_list", "expected a list of scalars", vpps_softmax_list(r, vpps_pull(r, 1, 1)));
    BAD_RECORDING(SHAPE, "softmax_list", "a list of 3 x 1", vpps_softmax_list(r, vpps_pull_list(r, 3, 1)));
    BAD_RECORDING(SHAPE, "weighted_sum_list", "a value of 3 x 1",
                  vpps_weighted_sum_list(r, vpps_pull_list(r, 1, 1), vpps_pull(r, 3, 1)));
    BAD_RECORDING(ARGUMENT, "gather_list", "from child 1 on",
                  (vpps_gather_list(r, 0, 3, 1), vpps_gather_list_from(r, 1, 0, 3, 1)));
    BAD_RECORDING(SHAPE, "pull_list", "0 x 1", vpps_pull_list(r, 0, 1));
    BAD_RECORDING(SHAPE, "concat_list", "a value of 3 x 1", vpps_concat_list(r, vpps_pull(r, 3, 1), 2));
    BAD_RECORDING(ARGUMENT, "concat_list", "at most 0 members", vpps_concat_list(r, vpps_pull_list(r, 3, 1), 0));
    BAD_RECORDING(ARGUMENT, "concat_list", "less than 2^22 elements",
                  vpps_concat_list(r, vpps_pull_list(r, 1024, 4), 1024));

    const vpps_cell attention = record_attention(&n);
#define BAD_LIST(count, lists, members, text)                                                                          \
    do {                                                                                                               \
        vpps_graph_clear(g);                                                                                           \
        const vpps_node node = vpps_lookup(g, n.E, 0), bias = vpps_slice(g, node, 0, 1), *list = &bias;                \
        vpps_vertex children[MOST_MEMBERS + 2];                                                                        \
        for (size_t i = 0; i < VPPS_COUNT(children); i++) children[i] = vpps_source(g, 1, &node);                      \
        const vpps_vertex v = APPLY(g, attention, CHILDREN(count, children), .n_pull_lists = lists,                    \
                                    .n_members = members, .pull_lists = &list);                                        \
        fails_sticky(g, v == VPPS_NO_VERTEX, VPPS_ARGUMENT, "apply", "attention", text);                               \
    } while (0)
    BAD_LIST(0, 1, 0, "0 children");
    BAD_LIST(2, 0, 0, "expected 1 of 1");
    BAD_LIST(2, 1, 2, "1 pulled lists of 2 nodes; expected 1 of 1");
    BAD_LIST(1, 1, 1, "expected 1 of 0");
    BAD_LIST(MOST_MEMBERS + 2, 1, MOST_MEMBERS + 1, "a list of 6 members; expected at most 5");
}

/* Nodes at equal positions in vertices of one cell are different nodes if the vertices' lists have different lengths. */
TEST(sums_tell_vertices_with_lists_apart) {
    AT_END(close_network) network n = open_network();
    vpps_graph *g = n.g, *r;
    TEST_OK(vpps_cell_begin(n.model, "parts", &r));
    const vpps_node member = vpps_tanh(r, vpps_gather_list(r, 0, EMBED, 1)), all = vpps_sum(r, 1, &member);
    TEST_OK(vpps_push(r, all));
    TEST_OK(vpps_push(r, vpps_slice(r, all, 0, 1)));
    const vpps_cell c = end_cell(r);
    const vpps_vertex leaf = vpps_source(g, 1, &(vpps_node){vpps_lookup(g, n.E, 0)}), children[] = {leaf, leaf};
    const vpps_vertex one = APPLY(g, c, CHILDREN(1, children));
    const vpps_vertex two = APPLY(g, c, CHILDREN(2, children));
    const vpps_node slices[] = {vpps_pushed(g, one, 1), vpps_pushed(g, two, 1)};
    ck_assert_uint_ne(vpps_sum(g, 2, slices), VPPS_NO_NODE);
    const vpps_node mixed[] = {vpps_pushed(g, one, 1), vpps_pushed(g, two, 0)};
    fails_sticky(g, vpps_sum(g, 2, mixed) == VPPS_NO_NODE, VPPS_SHAPE, "sum", "expected", "1 x 1");
}

TEST(errors_of_several_lists) {
    AT_END(close_network) network n = open_network();
    vpps_cell c;
    vpps_graph *g = n.g, *r;
    vpps_node a, b;
#define LIST(number) vpps_pull_list_of(r, number, 1, 1)
    BAD_RECORDING(SHAPE, "add: members of list 0 and of list 1", "cell bad",
                  (a = LIST(0), b = LIST(1), vpps_add(r, a, b)));
    BAD_RECORDING(SHAPE, "weighted_sum_list: members of list 0 and of list 1", "expected those of one list",
                  (a = LIST(0), b = LIST(1), vpps_weighted_sum_list(r, a, b)));
    BAD_RECORDING(ARGUMENT, "pull_list: list 1 in cell bad", "0 so far; expected at most list 0", LIST(1));
    BAD_RECORDING(ARGUMENT, "gather_list: list 4 in cell bad", "4 so far; expected at most list 3",
                  (LIST(0), LIST(1), LIST(2), LIST(3), vpps_gather_list_of(r, 4, 0, 1, 1)));
#undef LIST
    TEST_OK(vpps_cell_begin(n.model, "two", &r));
    const vpps_node left = vpps_gather_list_of(r, 0, 0, EMBED, 1), right = vpps_gather_list_of(r, 1, 0, EMBED, 1);
    const vpps_node edge = vpps_pull_list_of(r, 1, EMBED, 1), s = vpps_gather(r, 0, 0, EMBED, 1);
    TEST_OK(vpps_scatter(r, vpps_add(r, s, vpps_max_of(r, 2, (vpps_node[]){left, right}))));
    TEST_OK(vpps_push(r, vpps_concat_list(r, edge, 2)));
    c = end_cell(r);
#define BAD_LISTS(count, lists, first, second, pulled, text)                                                           \
    do {                                                                                                               \
        vpps_graph_clear(g);                                                                                           \
        const vpps_node node = vpps_lookup(g, n.E, 0), nodes[] = {node, node, node}, *list = nodes;                    \
        vpps_vertex children[5];                                                                                       \
        for (size_t i = 0; i < VPPS_COUNT(children); i++) children[i] = vpps_source(g, 1, &node);                      \
        const vpps_vertex v = APPLY(g, c, CHILDREN(count, children), .n_pull_lists = pulled, .pull_lists = &list,      \
                                    .n_lists = lists, .list_members = (uint32_t[]){first, second});                    \
        fails_sticky(g, v == VPPS_NO_VERTEX, VPPS_ARGUMENT, "apply", "two", text);                                     \
    } while (0)
    BAD_LISTS(3, 0, 1, 1, 1, "members of 0 lists; expected 2");
    BAD_LISTS(3, 1, 1, 1, 1, "members of 1 lists; expected 2");
    BAD_LISTS(4, 2, 1, 1, 1, "given 4 children, 0 pulls, 0 indices; expected 3 children,");
    BAD_LISTS(2, 2, 1, 1, 1, "given 2 children, 0 pulls, 0 indices; expected 3 children,");
    BAD_LISTS(3, 2, 1, 1, 2, "2 pulled lists; expected 1");
    BAD_LISTS(2, 2, 0, 1, 1, "a list of 0 members; expected at least 1");
    BAD_LISTS(5, 2, 1, 3, 1, "a list of 3 members; expected at most 2");
}
