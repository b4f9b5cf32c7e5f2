/* test_many.c - vertices and nodes made many at once equal those made one by one, to the last word; and the errors. */
#include "common/flat.h"
#include "common/training.h"

#include <pthread.h>

enum { SIZE = 3, WORDS = 7, VERTICES = 12 };

typedef struct network {
    vpps_model *model;
    vpps_param E, W;
    vpps_cell word, join, several;
} network;

static network open_network(void) {
    network n = {.model = new_model(3)};
    n.E = add_lookup(n.model, "E", WORDS, SIZE, 1);
    n.W = add_matrix(n.model, "W", SIZE, SIZE);

    vpps_graph *g = begin_cell(n.model, "word");
    vpps_node x = vpps_lookup(g, n.E, vpps_pull_index(g));
    TEST_OK(vpps_scatter(g, vpps_tanh(g, x)));
    TEST_OK(vpps_push(g, vpps_cross_entropy(g, x, vpps_pull_index(g))));
    TEST_OK(vpps_cell_end(g, &n.word));

    TEST_OK(vpps_cell_begin(n.model, "join", &g));
    x = vpps_matvec(g, n.W, vpps_gather(g, 0, 0, SIZE, 1));
    x = vpps_add(g, x, vpps_gather(g, 1, 0, SIZE, 1));
    TEST_OK(vpps_scatter(g, vpps_tanh(g, vpps_mul(g, x, vpps_pull(g, SIZE, 1)))));
    TEST_OK(vpps_push(g, x));
    TEST_OK(vpps_cell_end(g, &n.join));

    /* child 0, a list of children with a scalar for each, a list of nodes, a list of children */
    TEST_OK(vpps_cell_begin(n.model, "several", &g));
    const vpps_node s = vpps_gather(g, 0, 0, SIZE, 1), left = vpps_gather_list_of(g, 0, 0, SIZE, 1);
    const vpps_node weight = vpps_pull_list_of(g, 0, 1, 1), node = vpps_pull_list_of(g, 1, SIZE, 1);
    const vpps_node right = vpps_gather_list_of(g, 2, 0, SIZE, 1);
    x = vpps_weighted_sum_list(g, vpps_softmax_list(g, weight), left);
    TEST_OK(vpps_scatter(g, vpps_sum(g, 4, (vpps_node[]){s, x, node, right})));
    TEST_OK(vpps_push(g, x));
    TEST_OK(vpps_cell_end(g, &n.several));
    return n;
}

static void close_network(network *n) { vpps_model_destroy(n->model); }

/* ---------------------------------------------------------------- the same graph, both ways */

typedef struct rows {
    uint32_t indices[VERTICES][2];
    float data[VERTICES][SIZE];
    vpps_vertex pairs[VERTICES][2];   /* children of join: words, and earlier joins */
    uint32_t first[3][VERTICES + 1];  /* of several's lists */
    vpps_vertex start[VERTICES];      /* child 0 */
    vpps_vertex left[64], right[64];  /* members of lists 0 and 2 */
    vpps_node weights[64], nodes[64]; /* pulled for lists 0 and 1 */
} rows;

static uint32_t draw(uint64_t *state, uint32_t below) { return (uint32_t)((*state = vpps_mix64(*state)) % below); }

static rows draw_rows(uint64_t seed) {
    rows r;
    uint64_t state = seed;
    for (uint32_t i = 0; i < VERTICES; i++) {
        r.indices[i][0] = draw(&state, WORDS);
        r.indices[i][1] = draw(&state, SIZE);
        for (uint32_t k = 0; k < SIZE; k++) r.data[i][k] = (float)draw(&state, 100) * 0.01f;
        for (uint32_t k = 0; k < 2; k++) r.pairs[i][k] = draw(&state, VERTICES + i); /* also of the same call */
        r.start[i] = draw(&state, 2 * VERTICES + i);
    }
    for (uint32_t l = 0; l < 3; l++) {
        r.first[l][0] = 0;
        for (uint32_t i = 0; i < VERTICES; i++) {
            r.first[l][i + 1] = r.first[l][i] + draw(&state, 4);
            for (uint32_t k = r.first[l][i]; k < r.first[l][i + 1]; k++) {
                if (l == 0) r.left[k] = draw(&state, 2 * VERTICES + i);
                if (l == 2) r.right[k] = draw(&state, 2 * VERTICES + i);
                if (l == 1) r.nodes[k] = draw(&state, VERTICES);
                if (l == 0) r.weights[k] = UINT32_MAX; /* set once there are words */
            }
        }
    }
    return r;
}

static void build_many(const network *n, vpps_graph *g, rows *r, vpps_node *out) {
    const vpps_node inputs = vpps_input_many(g, VERTICES, SIZE, 1, r->data[0]);
    ck_assert_uint_eq(inputs, 0);
    ck_assert_uint_eq(
        vpps_apply_many(g, VPPS_APPLICATIONS(.cell = n->word, .n = VERTICES, .n_indices = 2, .indices = r->indices[0])),
        0);
    vpps_vertex all[3 * VERTICES];
    vpps_node pulls[VERTICES], nll[VERTICES];
    for (uint32_t i = 0; i < 3 * VERTICES; i++) all[i] = i;
    for (uint32_t i = 0; i < VERTICES; i++) pulls[i] = inputs + i;
    TEST_OK(vpps_pushed_many(g, VERTICES, all, 0, nll));
    for (uint32_t k = 0; k < r->first[0][VERTICES]; k++) r->weights[k] = nll[k % VERTICES];
    ck_assert_uint_eq(vpps_graph_vertices(g), VERTICES);
    ck_assert_uint_eq(vpps_apply_many(g, VPPS_APPLICATIONS(.cell = n->join, .n = VERTICES, .n_children = 2,
                                                           .children = r->pairs[0], .n_pulls = 1, .pulls = pulls)),
                      VERTICES);
    const vpps_members_of lists[] = {{r->first[0], r->left}, {r->first[1], NULL}, {r->first[2], r->right}};
    ck_assert_uint_eq(
        vpps_apply_many(g, VPPS_APPLICATIONS(.cell = n->several, .n = VERTICES, .n_children = 1, .children = r->start,
                                             .n_lists = 3, .lists = lists, .n_pull_lists = 2,
                                             .pull_lists = (const vpps_node *[]){r->weights, r->nodes})),
        2 * VERTICES);
    ck_assert_uint_eq(vpps_apply_many(g, VPPS_APPLICATIONS(.cell = n->several)), 3 * VERTICES);
    TEST_OK(vpps_scattered_many(g, 3 * VERTICES, all, 0, out));
}

static void build_each(const network *n, vpps_graph *g, const rows *r, vpps_node *out) {
    vpps_node inputs[VERTICES];
    for (uint32_t i = 0; i < VERTICES; i++) inputs[i] = vpps_input(g, SIZE, 1, r->data[i]);
    for (uint32_t i = 0; i < VERTICES; i++) APPLY(g, n->word, INDICES(2, r->indices[i]));
    for (uint32_t i = 0; i < VERTICES; i++) APPLY(g, n->join, CHILDREN(2, r->pairs[i]), PULLS(1, &inputs[i]));
    for (uint32_t i = 0; i < VERTICES; i++) {
        vpps_vertex children[16] = {r->start[i]};
        uint32_t members[3], c = 1;
        for (uint32_t l = 0; l < 3; l++) members[l] = r->first[l][i + 1] - r->first[l][i];
        for (uint32_t k = 0; k < members[0]; k++) children[c++] = r->left[r->first[0][i] + k];
        for (uint32_t k = 0; k < members[2]; k++) children[c++] = r->right[r->first[2][i] + k];
        APPLY(g, n->several, CHILDREN(c, children), .n_pull_lists = 2,
              .pull_lists = (const vpps_node *[]){r->weights + r->first[0][i], r->nodes + r->first[1][i]}, .n_lists = 3,
              .list_members = members);
    }
    for (uint32_t v = 0; v < 3 * VERTICES; v++) out[v] = vpps_scattered(g, v, 0);
}

TEST_GROUP("many");

TEST(many_is_each) {
    AT_END(close_network) network n = open_network();
    OWNED(vpps_graph) *a = new_graph(n.model), *b = new_graph(n.model);
    for (uint64_t seed = 0; seed < 20; seed++) {
        rows r = draw_rows(seed);
        vpps_node out_a[3 * VERTICES], out_b[3 * VERTICES];
        vpps_graph_clear(a);
        vpps_graph_clear(b);
        build_many(&n, a, &r, out_a);
        build_each(&n, b, &r, out_b);
        TEST_OK(vpps_graph_status(a));
        TEST_OK(vpps_graph_status(b));
        ck_assert_mem_eq(out_a, out_b, sizeof out_a);
        flat_graph *p = flatten(a), *q = flatten(b);
        ck_assert_uint_gt(p->n_nodes, 100);
        ck_assert_uint_eq(flat_difference(p, q), UINT32_MAX);
        flat_graph_free(p);
        flat_graph_free(q);
        ck_assert_uint_eq(a->n_data, b->n_data);
        ck_assert_mem_eq(a->data, b->data, a->n_data * sizeof *a->data);
    }
}

/* ---------------------------------------------------------------- one thread trains, another builds */

enum { BATCHES = 30 };

typedef struct worker {
    const network *n;
    vpps_graph *g;
    vpps_handle *h;
    vpps_status status;
} worker;

static void *train(void *argument) {
    worker *t = argument;
    for (uint32_t i = 0; i < BATCHES && t->status == VPPS_OK; i++) {
        rows r = draw_rows(i);
        vpps_node out[3 * VERTICES];
        vpps_graph_clear(t->g);
        build_many(t->n, t->g, &r, out);
        const vpps_node loss = vpps_pushed(t->g, i % VERTICES, 0);
        t->status = vpps_fb(t->h, t->g, loss, NULL);
    }
    return NULL;
}

TEST(another_thread_builds_meanwhile) {
    AT_END(close_network) network n = open_network();
    OWNED(vpps_graph) *g = new_graph(n.model), *other = new_graph(n.model);
    OWNED(vpps_handle) *h = new_handle(n.model, NULL);
    worker t = {.n = &n, .g = other, .h = h};
    pthread_t thread;
    uint32_t nodes = 0;
    ck_assert_int_eq(pthread_create(&thread, NULL, train, &t), 0);
    for (uint32_t i = 0; i < BATCHES; i++) {
        rows r = draw_rows(7);
        vpps_node out[3 * VERTICES];
        vpps_graph_clear(g);
        build_many(&n, g, &r, out);
        TEST_OK(vpps_graph_status(g));
        if (i) ck_assert_uint_eq(vpps_graph_size(g), nodes);
        nodes = vpps_graph_size(g);
    }
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_msg(t.status == VPPS_OK, "%s", vpps_status_name(t.status));
}

/* ---------------------------------------------------------------- errors */

#define FAILS(a, expected, text)                                                                                       \
    do {                                                                                                               \
        vpps_graph_clear(g);                                                                                           \
        ck_assert_uint_eq(vpps_input_many(g, 2, SIZE, 1, data[0]), 0);                                                 \
        ck_assert_uint_eq(vpps_apply_many(g, a), VPPS_NO_VERTEX);                                                      \
        TEST_FAILS(vpps_graph_status(g), expected, text);                                                              \
    } while (0)
#define OF(...) VPPS_APPLICATIONS(__VA_ARGS__)

/* Checks that the message of the graph's failure ends with a whole character of the cell's name. */
static void check_cut(const vpps_graph *g) {
    static const char begin[] = "apply ab";
    TEST_FAILS(vpps_graph_status(g), VPPS_SHAPE, begin);
    const char *name = strstr(vpps_error_message(), begin) + strlen(begin);
    ck_assert_uint_gt(strlen(name), 400);
    for (; *name; name += 3) ck_assert_int_eq(strncmp(name, "\xe2\x82\xac", 3), 0);
}

/* A cell's name is longer than a message. */
TEST(messages_are_cut_between_characters) {
    char euros[603] = "ab";
    for (size_t i = 2; i < sizeof euros - 1; i += 3) memcpy(euros + i, "\xe2\x82\xac", 4);
    OWNED(vpps_model) *m = new_model(1);
    const float data[SIZE + 1] = {0};
    vpps_graph *r = begin_cell(m, euros);
    TEST_OK(vpps_scatter(r, vpps_tanh(r, vpps_pull(r, SIZE, 1))));
    const vpps_cell cell = end_cell(r);
    OWNED(vpps_graph) *g = new_graph(m);
    const vpps_node x = vpps_input(g, SIZE + 1, 1, data);
    APPLY(g, cell, PULLS(1, &x));
    check_cut(g);
    vpps_graph_clear(g);
    vpps_input(g, SIZE + 1, 1, data);
    vpps_apply_many(g, OF(.cell = cell, .n = 1, .n_pulls = 1, .pulls = &x));
    check_cut(g);
}

TEST(errors) {
    AT_END(close_network) network n = open_network();
    OWNED(vpps_graph) *g = new_graph(n.model);
    const float data[2][SIZE] = {{0}};
    const uint32_t indices[] = {1, 1, WORDS, 0}, children[] = {0, 1, 7, 0}, down[] = {0, 2, 1}, up[] = {0, 0, 1},
                   late[] = {1, 1, 1};
    const vpps_node *const pulled[] = {children, children};
    FAILS(OF(.cell = 99, .n = 1), VPPS_ARGUMENT, "no such cell");
    FAILS(OF(.cell = n.word, .n = 2, .n_indices = 2), VPPS_ARGUMENT, "indices is NULL");
    FAILS(OF(.cell = n.word, .n = 2, .n_indices = 2, .indices = indices), VPPS_ARGUMENT,
          "vertex 1 of 2: apply word: index 7 for lookup; expected below 7");
    FAILS(OF(.cell = n.word, .n = 2, .n_indices = 1, .indices = indices), VPPS_ARGUMENT, "vertex 0 of 2: ");
    FAILS(OF(.cell = n.join, .n = 2, .n_children = 2, .children = children, .n_pulls = 1, .pulls = children),
          VPPS_ARGUMENT, "vertex 0 of 2: apply: 0 is not a vertex"); /* itself */
    const vpps_members_of good = {up, children}, bad = {down, children}, begins_late = {late, children};
    const vpps_members_of none = {up, NULL}, nothing = {NULL, children};
    const struct {
        vpps_members_of lists[3];
        const char *text;
    } cases[] = {{{bad, good, good}, "list 0: first decreases from 2 to 1 at vertex 1"},
                 {{good, begins_late, good}, "list 1: first does not begin with 0"},
                 {{good, good, none}, "list 2: children is NULL"},
                 {{good, nothing, good}, "list 1: first is NULL"}};
    for (size_t i = 0; i < VPPS_COUNT(cases); i++)
        FAILS(OF(.cell = n.several, .n = 2, .n_children = 1, .children = children, .n_lists = 3,
                 .lists = cases[i].lists, .n_pull_lists = 2, .pull_lists = pulled),
              VPPS_ARGUMENT, cases[i].text);
    FAILS(OF(.cell = n.several, .n = 2, .n_children = 1, .children = children, .n_lists = 2, .lists = cases[0].lists,
             .n_pull_lists = 2, .pull_lists = pulled),
          VPPS_ARGUMENT, "members of 2 lists, 2 pulled lists; expected 3 and 2");
    FAILS(OF(.cell = n.several, .n = 2, .n_children = 1, .children = children, .n_lists = 3), VPPS_ARGUMENT,
          "lists is NULL");

    vpps_graph_clear(g);
    ck_assert_uint_eq(vpps_input_many(g, 1, SIZE, 1, NULL), VPPS_NO_NODE);
    TEST_FAILS(vpps_graph_status(g), VPPS_ARGUMENT, "input_many: data is NULL");
    vpps_graph_clear(g);
    ck_assert_uint_eq(vpps_input_many(g, 0, SIZE, 1, NULL), 0);
    vpps_node out[2];
    TEST_OK(vpps_pushed_many(g, 0, NULL, 0, NULL));
    vpps_apply_many(g, VPPS_APPLICATIONS(.cell = n.word, .n = 1, .n_indices = 2, .indices = indices));
    TEST_FAILS(vpps_pushed_many(g, 2, children, 0, out), VPPS_ARGUMENT, "1 is not a vertex");

    OWNED(vpps_graph) *r = begin_cell(n.model, "recorder");
    ck_assert_uint_eq(vpps_apply_many(r, VPPS_APPLICATIONS(.cell = n.word, .n = 1)), VPPS_NO_VERTEX);
    TEST_FAILS(vpps_graph_status(r), VPPS_STATE, "a cell is being recorded");
}
