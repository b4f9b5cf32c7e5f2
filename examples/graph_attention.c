/* graph_attention.c - a graph network whose edges have types, with attention: at each node, in each of two rounds,
 *
 *     score of edge e from u:  a_e = (Q h) . (h_u + T[type of e])
 *     h' = tanh(W h + M sum over edges of softmax(a)_e (h_u * S[type of e]) + b)
 *
 * as in graph attention networks (Velickovic et al. 2018), with a vector for each type of edge. Nodes are red or not. A node is to be
 * told whether an edge of type 0 leads to it from a node that an edge of type 1 leads to from a red one. Of the nodes of 200 new graphs
 * at least 0.95 are told right.
 *
 * Each graph is built by vpps_apply_many: one call a round, however many nodes and edges it has.
 *
 *     cc graph_attention.c $(pkg-config --cflags --libs vpps) -o graph_attention && ./graph_attention
 */
#include "example.h"

enum { COLOURS = 4, RED = 0, TYPES = 3, HIDDEN = 32, ROUNDS = 2, MOST_NODES = 12, MOST_EDGES = 36 };
enum { BATCH = 16, BATCHES = 450, TEST = 200 };

typedef struct network {
    vpps_model *model;
    vpps_param colours, W_s, b_s;
    vpps_param Q[ROUNDS], W[ROUNDS], M[ROUNDS], b[ROUNDS], T[ROUNDS], S[ROUNDS];
    vpps_cell start, round[ROUNDS], type, head;
} network;

static void declare(network *n) {
    TRY(vpps_model_create(&n->model, 1));
    TRY(vpps_add_lookup(n->model, &n->colours, "colours", COLOURS, HIDDEN, 1, NULL));
    TRY(vpps_add_matrix(n->model, &n->W_s, "W_s", 2, HIDDEN, NULL));
    TRY(vpps_add_vector(n->model, &n->b_s, "b_s", 2, NULL));
    for (int r = 0; r < ROUNDS; r++) {
        char name[6][8];
        for (int k = 0; k < 6; k++) snprintf(name[k], sizeof name[k], "%c%d", "QWMbTS"[k], r);
        TRY(vpps_add_matrix(n->model, &n->Q[r], name[0], HIDDEN, HIDDEN, NULL));
        TRY(vpps_add_matrix(n->model, &n->W[r], name[1], HIDDEN, HIDDEN, NULL));
        TRY(vpps_add_matrix(n->model, &n->M[r], name[2], HIDDEN, HIDDEN, NULL));
        TRY(vpps_add_vector(n->model, &n->b[r], name[3], HIDDEN, NULL));
        TRY(vpps_add_lookup(n->model, &n->T[r], name[4], TYPES, HIDDEN, 1, NULL));
        TRY(vpps_add_lookup(n->model, &n->S[r], name[5], TYPES, HIDDEN, 1, NULL));
    }
}

/* A round: child 0 is the node itself, the list are those that edges come from, with two vectors pulled for each edge. */
static void record_round(network *n, int r) {
    vpps_graph *g;
    TRY(vpps_cell_begin(n->model, r ? "round 1" : "round 0", &g));
    const vpps_node h = vpps_gather(g, 0, 0, HIDDEN, 1), u = vpps_gather_list_from(g, 1, 0, HIDDEN, 1);
    const vpps_node key = vpps_pull_list(g, HIDDEN, 1), factor = vpps_pull_list(g, HIDDEN, 1);
    const vpps_node score = vpps_dot(g, vpps_add(g, u, key), vpps_matvec(g, n->Q[r], h));
    const vpps_node sum = vpps_weighted_sum_list(g, vpps_softmax_list(g, score), vpps_mul(g, u, factor));
    TRY(vpps_scatter(g, vpps_tanh(g, vpps_affine2(g, n->b[r], n->W[r], h, n->M[r], sum))));
    TRY(vpps_cell_end(g, &n->round[r]));
}

static void record(network *n) {
    vpps_graph *g;
    TRY(vpps_cell_begin(n->model, "start", &g));
    TRY(vpps_scatter(g, vpps_lookup(g, n->colours, vpps_pull_index(g))));
    TRY(vpps_cell_end(g, &n->start));
    for (int r = 0; r < ROUNDS; r++) record_round(n, r);

    TRY(vpps_cell_begin(n->model, "head", &g));
    const vpps_node scores = vpps_affine1(g, n->b_s, n->W_s, vpps_gather(g, 0, 0, HIDDEN, 1));
    TRY(vpps_push(g, vpps_cross_entropy(g, scores, vpps_pull_index(g))));
    TRY(vpps_push(g, scores));
    TRY(vpps_cell_end(g, &n->head));
}

/* ---------------------------------------------------------------- data */

/* Edges are sorted by the node that they lead to: those into node v are first[v] .. first[v + 1] - 1. */
typedef struct example {
    uint32_t n, colour[MOST_NODES], label[MOST_NODES];
    uint32_t first[MOST_NODES + 1], from[MOST_EDGES], type[MOST_EDGES];
} example;

static bool leads(const example *x, uint32_t v, uint32_t type, const bool *from) {
    for (uint32_t e = x->first[v]; e < x->first[v + 1]; e++)
        if (x->type[e] == type && from[x->from[e]]) return true;
    return false;
}

static example draw_example(void) {
    example x = {.n = 4 + draw(MOST_NODES - 3)};
    bool red[MOST_NODES], reached_by_red[MOST_NODES];
    for (uint32_t v = 0, edges = 0; v < x.n; v++) {
        x.colour[v] = draw(COLOURS);
        red[v] = x.colour[v] == RED;
        for (uint32_t k = draw(4); k > 0; k--, edges++) {
            x.from[edges] = draw(x.n);
            x.type[edges] = draw(TYPES);
        }
        x.first[v + 1] = edges;
    }
    for (uint32_t v = 0; v < x.n; v++) reached_by_red[v] = leads(&x, v, 1, red);
    for (uint32_t v = 0; v < x.n; v++) x.label[v] = leads(&x, v, 0, reached_by_red);
    return x;
}

/* ---------------------------------------------------------------- the graph of one example */

/* The heads' first vertex; as many as nodes. */
static vpps_vertex add(const network *n, vpps_graph *g, const example *x) {
    vpps_vertex at =
        vpps_apply_many(g, VPPS_APPLICATIONS(.cell = n->start, .n = x->n, .n_indices = 1, .indices = x->colour));
    vpps_vertex own[MOST_NODES], from[MOST_EDGES];
    vpps_node keys[MOST_EDGES], factors[MOST_EDGES];
    const uint32_t edges = x->first[x->n];
    for (int r = 0; r < ROUNDS; r++) {
        for (uint32_t v = 0; v < x->n; v++) own[v] = at + v;
        for (uint32_t e = 0; e < edges; e++) {
            from[e] = at + x->from[e];
            keys[e] = vpps_lookup(g, n->T[r], x->type[e]);
            factors[e] = vpps_lookup(g, n->S[r], x->type[e]);
        }
        const vpps_members_of list = {x->first, from};
        const vpps_node *const pulled[] = {keys, factors};
        at = vpps_apply_many(g,
                             VPPS_APPLICATIONS(.cell = n->round[r], .n = x->n, .n_children = 1, .children = own,
                                               .n_lists = 1, .lists = &list, .n_pull_lists = 2, .pull_lists = pulled));
    }
    for (uint32_t v = 0; v < x->n; v++) own[v] = at + v;
    return vpps_apply_many(g, VPPS_APPLICATIONS(.cell = n->head, .n = x->n, .n_children = 1, .children = own,
                                                .n_indices = 1, .indices = x->label));
}

static double accuracy(const network *n, vpps_handle *h, vpps_graph *g) {
    uint32_t right = 0, all = 0;
    for (int k = 0; k < TEST; k++) {
        const example x = draw_example();
        float scores[MOST_NODES][2], *outs[MOST_NODES];
        vpps_node nodes[MOST_NODES];
        vpps_graph_clear(g);
        const vpps_vertex heads = add(n, g, &x);
        for (uint32_t v = 0; v < x.n; v++) nodes[v] = vpps_pushed(g, heads + v, 1), outs[v] = scores[v];
        TRY(vpps_forward(h, g, x.n, nodes, outs));
        for (uint32_t v = 0; v < x.n; v++) right += (scores[v][1] > scores[v][0]) == x.label[v];
        all += x.n;
    }
    return (double)right / all;
}

int main(void) {
    network n;
    declare(&n);
    record(&n);
    vpps_options options;
    vpps_options_default(&options);
    options.optimizer.kind = VPPS_ADAM;
    options.optimizer.lr = 0.003f;
    vpps_handle *h;
    vpps_graph *g;
    TRY(vpps_handle_create(&h, n.model, &options));
    TRY(vpps_graph_create(&g, n.model));
    for (int batch = 1; batch <= BATCHES; batch++) {
        vpps_node losses[BATCH * MOST_NODES];
        uint32_t count = 0;
        float loss;
        vpps_graph_clear(g);
        for (int k = 0; k < BATCH; k++) {
            const example x = draw_example();
            const vpps_vertex heads = add(&n, g, &x);
            for (uint32_t v = 0; v < x.n; v++) losses[count++] = vpps_pushed(g, heads + v, 0);
        }
        TRY(vpps_fb(h, g, vpps_average(g, count, losses), &loss));
        if (batch % 150 == 0) printf("batch %d  loss %.4f\n", batch - 1, (double)loss);
    }
    const double right = accuracy(&n, h, g);
    vpps_graph_destroy(g);
    vpps_handle_destroy(h);
    vpps_model_destroy(n.model);
    return reached("accuracy", right, right >= 0.95);
}
