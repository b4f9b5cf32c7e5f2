/* gat.c - graph attention networks: Velickovic et al., "Graph Attention Networks" (ICLR 2018), with the scores of Brody, Alon and Yahav,
 * "How Attentive are Graph Attention Networks?" (GATv2, ICLR 2022), equation 7, on graphs whose edges have types. `gat` classifies
 * nodes, `gat-classifier` whole graphs.
 *
 * Node i has a word, with the embedding E, and F real numbers f_i; D is dropout:
 *     h_i = W_x D(E[w_i]) + W_n f_i + b_x
 * Both ends of an edge read it, each with a vector t for the edge's type and direction (as by Schlichtkrull et al., "Modeling Relational Data with
 * Graph Convolutional Networks", 2018). N(i) is a list of pairs (j, t). An edge from j to i adds a pair in which t is the type's row of `forward`; an
 * edge from i to j adds one in which t is its row of `backward`; an edge from i to itself adds both. Round by round, with H heads of s = ceil(d / H)
 * elements:
 *     q_i    = W_q h_i + b_q      v_j = W_v h_j
 *     score  = a . leaky(q_i + v_j + t)               for each head, by its rows; leaky(x) = max(x, 0.2 x)
 *     alpha  = e^score / sum of e^score over N(i)
 *     m_i    = sum of alpha (v_j + t) over N(i)       all heads' stacked; zeros if N(i) is empty
 *     h_i    = h_i + D(elu(W_o m_i + W_h h_i + b_o))
 * Nodes:   p(label of i)  = softmax(W_s D(h_i) + b_s)
 * Graphs:  p(label)       = softmax(W_s D(mean of all h_i) + b_s)
 *
 * Parameters, with V words, T types, C classes, e = embed, d = hidden, r = H s, L = rounds:
 *     V e + d (e + F + 1) + L (3 r d + 2 T r + 2 r + d^2 + d) + C (d + 1).
 */
#include "parts.h"

#include <string.h>

enum { FORWARD, BACKWARD, DIRECTIONS };

typedef struct gat_round {
    vpps_param types[DIRECTIONS], W_q, b_q, W_v, a, W_o, W_h, b_o;
    /* a cell per direction: outputs the trained vector t that stands for an edge's type, cut into one piece per head */
    vpps_cell type[DIRECTIONS];
    /* The cell of a node in this round. Children: the preceding round's vertices of the node, then of its neighbours. A
     * list for each attention head has, for each neighbour, that head's piece of the edge type's vector t. */
    vpps_cell node;
} gat_round;

typedef struct gat_net {
    part_net base;
    uint32_t head; /* number of elements of a head of attention */
    vpps_param embedding, W_x, W_n, b_x;
    gat_round rounds[NET_LAYERS];
    vpps_cell word, mean;
} gat_net;

/* Numbers of the outputs of a node's cell: h, q, then v of each head. */
enum { NODE_H, NODE_Q, NODE_V };

static uint32_t rounds_of(const gat_net *t) { return t->base.config.layers ? t->base.config.layers : 1; }

/* ---------------------------------------------------------------- parameters */

static vpps_status declare_round(gat_round *r, vpps_model *model, uint32_t number, const net_config *c, uint32_t rows) {
    const uint32_t d = c->hidden;
    const part_parameter parameters[] = {
        {&r->types[FORWARD], "forward", c->edge_types, rows, 1, &part_small},
        {&r->types[BACKWARD], "backward", c->edge_types, rows, 1, &part_small},
        {&r->W_q, "W_q", 0, rows, d, NULL},
        {&r->b_q, "b_q", 0, rows, 0, NULL},
        {&r->W_v, "W_v", 0, rows, d, NULL},
        {&r->a, "a", 0, rows, 0, &part_small},
        {&r->W_o, "W_o", 0, d, rows, NULL},
        {&r->W_h, "W_h", 0, d, d, NULL},
        {&r->b_o, "b_o", 0, d, 0, NULL},
    };
    return parts_declare_layer(model, "round", number, parameters, PART_COUNT(parameters));
}

/* ---------------------------------------------------------------- cells */

static vpps_node rows_of(const gat_net *t, vpps_graph *g, vpps_node x, uint32_t k) {
    return vpps_slice(g, x, k * t->head, t->head);
}

/* Records the outputs of a node's cell: h, and the query q and value v for attention in round r (NULL: none
 * follows). */
static void scatter_node(const gat_net *t, vpps_graph *g, const gat_round *r, vpps_node h) {
    vpps_scatter(g, h);
    if (!r) return;
    const vpps_node v = vpps_matvec(g, r->W_v, h);
    vpps_scatter(g, vpps_affine1(g, r->b_q, r->W_q, h));
    for (uint32_t k = 0; k < t->base.config.heads; k++) vpps_scatter(g, rows_of(t, g, v, k));
}

static vpps_status record_word(gat_net *t, vpps_model *model) {
    const net_config *c = &t->base.config;
    vpps_graph *g;
    PART_TRY(vpps_cell_begin(model, "gat word", &g));
    const vpps_node x = part_dropout(c, g, vpps_lookup(g, t->embedding, vpps_pull_index(g)));
    const vpps_node h = c->numbers ? vpps_affine2(g, t->b_x, t->W_x, x, t->W_n, vpps_pull(g, c->numbers, 1))
                                   : vpps_affine1(g, t->b_x, t->W_x, x);
    scatter_node(t, g, t->rounds, h);
    return vpps_cell_end(g, &t->word);
}

static vpps_status record_type(const gat_net *t, vpps_model *model, gat_round *r, int direction) {
    vpps_graph *g;
    PART_TRY(vpps_cell_begin(model, direction == FORWARD ? "gat type" : "gat type backward", &g));
    const vpps_node type = vpps_lookup(g, r->types[direction], vpps_pull_index(g));
    for (uint32_t k = 0; k < t->base.config.heads; k++) vpps_push(g, rows_of(t, g, type, k));
    return vpps_cell_end(g, &r->type[direction]);
}

/* Records attention over the neighbours, and returns m_i: the weighted sums of all heads, stacked. */
static vpps_node attend(const gat_net *t, vpps_graph *g, const gat_round *r, vpps_node q) {
    vpps_node sums[PART_MOST_HEADS];
    const vpps_node a = vpps_parameter(g, r->a);
    for (uint32_t k = 0; k < t->base.config.heads; k++) {
        const vpps_node v = vpps_gather_list_from(g, 1, NODE_V + k, t->head, 1);
        const vpps_node said = vpps_add(g, v, vpps_pull_list(g, t->head, 1));
        const vpps_node z = vpps_add(g, said, rows_of(t, g, q, k));
        const vpps_node score = vpps_dot(g, vpps_max(g, z, vpps_scale(g, z, 0.2f)), rows_of(t, g, a, k));
        sums[k] = vpps_weighted_sum_list(g, vpps_softmax_list(g, score), said);
    }
    return vpps_concat(g, t->base.config.heads, sums);
}

static vpps_status record_node(gat_net *t, vpps_model *model, uint32_t number) {
    const net_config *c = &t->base.config;
    gat_round *r = &t->rounds[number];
    vpps_graph *g;
    PART_TRY(vpps_cell_begin(model, "gat node", &g));
    const vpps_node h = vpps_gather(g, 0, NODE_H, c->hidden, 1);
    const vpps_node m = attend(t, g, r, vpps_gather(g, 0, NODE_Q, c->heads * t->head, 1));
    const vpps_node more = vpps_elu(g, vpps_affine2(g, r->b_o, r->W_o, m, r->W_h, h), 1);
    scatter_node(t, g, number + 1 < rounds_of(t) ? r + 1 : NULL, vpps_add(g, h, part_dropout(c, g, more)));
    return vpps_cell_end(g, &r->node);
}

static vpps_status build(void *net, vpps_model *model) {
    gat_net *t = net;
    const net_config *c = &t->base.config;
    const part_parameter parameters[] = {
        {&t->embedding, "embedding", c->words, c->embed, 1, &part_small},
        {&t->W_x, "W_x", 0, c->hidden, c->embed, NULL},
        {&t->b_x, "b_x", 0, c->hidden, 0, NULL},
        {&t->W_n, "W_n", 0, c->hidden, c->numbers, NULL},
    };
    if (rounds_of(t) > NET_LAYERS || !c->heads || c->heads > PART_MOST_HEADS) return VPPS_ARGUMENT;
    t->head = (c->hidden + c->heads - 1) / c->heads;
    PART_TRY(parts_declare(model, parameters, c->numbers ? 4 : 3));
    for (uint32_t l = 0; l < rounds_of(t); l++) PART_TRY(declare_round(&t->rounds[l], model, l, c, c->heads * t->head));
    PART_TRY(record_word(t, model));
    for (uint32_t l = 0; l < rounds_of(t); l++) {
        PART_TRY(record_type(t, model, &t->rounds[l], FORWARD));
        PART_TRY(record_type(t, model, &t->rounds[l], BACKWARD));
        PART_TRY(record_node(t, model, l));
    }
    return part_classifier_make(&t->base.classifier, model, c, c->hidden, 0);
}

static vpps_status build_classifier(void *net, vpps_model *model) {
    gat_net *t = net;
    vpps_graph *g;
    PART_TRY(build(t, model));
    PART_TRY(vpps_cell_begin(model, "gat graph", &g));
    const vpps_node h = vpps_gather_list(g, NODE_H, t->base.config.hidden, 1);
    vpps_push(g, vpps_average(g, 1, &h));
    return vpps_cell_end(g, &t->mean);
}

/* ---------------------------------------------------------------- a graph */

/* An example's nodes with their neighbours, and the vertices that compute the nodes' vectors h, round by round. */
typedef struct linked {
    uint32_t n;       /* number of nodes */
    vpps_vertex *at;  /* for each node: the vertex that has computed its vector in the preceding round */
    vpps_vertex *now; /* for each node: the vertex that computes its vector in the current round */
    uint32_t *first;  /* node i has the neighbours near[first[i]] to near[first[i + 1] - 1] */
    uint32_t *near;   /* neighbouring nodes */
    uint32_t *type;   /* type[k]: DIRECTIONS * edge type + direction of neighbour near[k] */
    /* of_type[DIRECTIONS * edge type + direction]: the vertex (application of a cell) that outputs the trained vector
     * which stands for this edge type and direction in the current round; VPPS_NO_VERTEX: no such vertex yet */
    vpps_vertex *of_type;
    vpps_vertex *children; /* memory for the children of one node */
    vpps_node *pulls; /* scratch: what one node's cell reads of its edges' type vectors; per head, a piece per edge */
} linked;

static void list_neighbours(linked *l, const net_example *x) {
    memset(l->first, 0, ((size_t)l->n + 2) * sizeof *l->first);
    for (uint32_t e = 0; e < x->n_edges; e++) {
        l->first[x->edges[e].to + 2]++;
        l->first[x->edges[e].from + 2]++;
    }
    for (uint32_t i = 0; i < l->n; i++) l->first[i + 2] += l->first[i + 1];
    /* first[i + 1]: where node i's next neighbour goes in `near`; after this loop, where node i's neighbours end */
    for (uint32_t e = 0; e < x->n_edges; e++) {
        const net_edge *edge = &x->edges[e];
        const uint32_t to = l->first[edge->to + 1]++;
        l->near[to] = edge->from;
        l->type[to] = DIRECTIONS * edge->type + FORWARD;
        const uint32_t from = l->first[edge->from + 1]++;
        l->near[from] = edge->to;
        l->type[from] = DIRECTIONS * edge->type + BACKWARD;
    }
}

/* Lists the neighbours of each node of an example. The arrays of *l are t's scratch memory. Returns false when out of memory. */
static bool link_nodes(gat_net *t, const net_example *x, linked *l) {
    const net_config *c = &t->base.config;
    const uint32_t n = x->sentence.n_words;
    const uint64_t ends = 2 * (uint64_t)x->n_edges,
                   words = 3 * (uint64_t)n + 2 + 2 * ends + DIRECTIONS * (uint64_t)c->edge_types,
                   room = words + 1 + ends + c->heads * ends;
    if (room > UINT32_MAX) return false;
    uint32_t *at = part_reserve(t->base.scratch, (size_t)room);
    if (!at) return false;
    l->n = n;
    l->at = at;
    l->now = l->at + n;
    l->first = l->now + n;
    l->near = l->first + n + 2;
    l->type = l->near + ends;
    l->of_type = l->type + ends;
    l->children = l->of_type + DIRECTIONS * (size_t)c->edge_types;
    l->pulls = l->children + 1 + ends;
    list_neighbours(l, x);
    return true;
}

/* Returns the vertex that outputs the vector of an edge type in a direction; all such edges of the example share the vertex. */
static vpps_vertex vertex_of_type(const gat_round *r, vpps_graph *g, linked *l, uint32_t number) {
    const uint32_t type = number / DIRECTIONS;
    if (l->of_type[number] == VPPS_NO_VERTEX) {
        l->of_type[number] =
            vpps_apply(g, VPPS_APPLICATION(.cell = r->type[number % DIRECTIONS], .n_indices = 1, .indices = &type));
    }
    return l->of_type[number];
}

static vpps_vertex add_node(const gat_net *t, const gat_round *r, vpps_graph *g, linked *l, uint32_t i) {
    const uint32_t heads = t->base.config.heads, first = l->first[i], n = l->first[i + 1] - first;
    const vpps_node *lists[PART_MOST_HEADS];
    l->children[0] = l->at[i];
    for (uint32_t k = 0; k < heads; k++) lists[k] = l->pulls + (size_t)k * n;
    for (uint32_t m = 0; m < n; m++) {
        const vpps_vertex type = vertex_of_type(r, g, l, l->type[first + m]);
        l->children[1 + m] = l->at[l->near[first + m]];
        for (uint32_t k = 0; k < heads; k++) l->pulls[(size_t)k * n + m] = vpps_pushed(g, type, k);
    }
    return vpps_apply(g, VPPS_APPLICATION(.cell = r->node, .n_children = n + 1, .children = l->children,
                                          .n_pull_lists = heads, .n_members = n, .pull_lists = lists));
}

static vpps_status add_rounds(gat_net *t, vpps_graph *g, const net_example *x, linked *l) {
    const net_config *c = &t->base.config;
    if (!link_nodes(t, x, l)) return VPPS_MEMORY;
    const vpps_node numbers = c->numbers ? vpps_input_many(g, l->n, c->numbers, 1, x->numbers) : 0;
    for (uint32_t i = 0; i < l->n; i++) {
        const vpps_node own = numbers + i;
        l->at[i] = vpps_apply(g, VPPS_APPLICATION(.cell = t->word, .n_pulls = c->numbers ? 1 : 0, .pulls = &own,
                                                  .n_indices = 1, .indices = &x->sentence.words[i]));
    }
    for (uint32_t r = 0; r < rounds_of(t); r++) {
        for (uint32_t k = 0; k < DIRECTIONS * c->edge_types; k++) l->of_type[k] = VPPS_NO_VERTEX;
        for (uint32_t i = 0; i < l->n; i++) l->now[i] = add_node(t, &t->rounds[r], g, l, i);
        vpps_vertex *before = l->at;
        l->at = l->now;
        l->now = before;
    }
    return vpps_graph_status(g);
}

static vpps_status add(void *net, vpps_graph *g, const net_example *x, net_heads heads, const net_scores *scores) {
    gat_net *t = net;
    linked l;
    PART_TRY(add_rounds(t, g, x, &l));
    return part_classify_words(&t->base, g, l.n, l.at, NULL, x->sentence.tags, heads, scores);
}

static vpps_status add_classifier(void *net, vpps_graph *g, const net_example *x, net_heads heads,
                                  const net_scores *scores) {
    gat_net *t = net;
    linked l;
    PART_TRY(add_rounds(t, g, x, &l));
    const vpps_vertex mean = vpps_apply(g, VPPS_APPLICATION(.cell = t->mean, .n_children = l.n, .children = l.at));
    const vpps_node h = vpps_pushed(g, mean, 0);
    part_classify(&t->base.classifier, g, 0, &h, x->label, heads, scores);
    return vpps_graph_status(g);
}

static const option_row options[] = {
    PART_HIDDEN("Size of a node's state"),
    PART_EMBED("Size of a word's embedding"),
    {"rounds", "N", "How often each node reads its neighbours", OPTION_U32, offsetof(net_config, layers), 1, NET_LAYERS,
     true},
    PART_HEADS,
    {"numbers", "N", "Real numbers that each node has beside its word", OPTION_U32, offsetof(net_config, numbers), 0,
     65536, true},
    PART_DROPOUT("Dropout on embeddings, on what a round adds and before the classifier"),
    {0},
};

const network gat = {
    .name = "gat",
    .summary = "graph attention over edges with types: labels nodes",
    .source = "Velickovic et al. 2018; Brody et al. 2022",
    .options = options,
    .embedding = "embedding",
    .kind = NET_NODES,
    .defaults = {.embed = 64, .hidden = 64, .layers = 2, .heads = 4},
    .bytes = sizeof(gat_net),
    .build = build,
    .add = add,
};
const network gat_classifier = {
    .name = "gat-classifier",
    .summary = "the same: labels graphs",
    .source = "Velickovic et al. 2018; Brody et al. 2022",
    .options = options,
    .embedding = "embedding",
    .kind = NET_GRAPHS,
    .defaults = {.embed = 64, .hidden = 64, .layers = 2, .heads = 4},
    .bytes = sizeof(gat_net),
    .build = build_classifier,
    .add = add_classifier,
};
