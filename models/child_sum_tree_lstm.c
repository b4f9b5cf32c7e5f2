/* child_sum_tree_lstm.c - the Child-Sum Tree-LSTM of Tai, Socher and Manning, "Improved Semantic Representations From
 * Tree-Structured Long Short-Term Memory Networks" (ACL 2015), section 3.1, on dependency trees, and the classifier of section 4.1.
 *
 * Word j with embedding x, whose dependents are the words C(j):
 *     h~   = sum of h_k over k in C(j)                       (2)
 *     i    = sigmoid(W_i x + U_i h~ + b_i)                   (3)
 *     f_k  = sigmoid(W_f x + U_f h_k + b_f)   for each k     (4)
 *     o    = sigmoid(W_o x + U_o h~ + b_o)                   (5)
 *     u    = tanh(W_u x + U_u h~ + b_u)                      (6)
 *     c    = i * u + sum of f_k * c_k over k in C(j)         (7)
 *     h    = o * tanh(c)                                     (8)
 * A word's class is predicted from h alone: from the word and its descendants. The order of the words does not matter. The paper
 * labels the phrases of sentiment trees; here labels are what the examples have: relations to heads, or labels of sentences at
 * their roots.
 *
 * Parameters, with V words, C classes, d = hidden, e = embed: V e + 4 d (e + d + 1) + C d + C.
 */
#include "parts.h"

#include <stdlib.h>
#include <string.h>

enum { I, F, O, U, GATES };

typedef struct child_sum_net {
    part_net base;
    vpps_param embedding, W[GATES], U[GATES], b[GATES];
    vpps_cell word;
    uint32_t *order; /* scratch memory of order_words, for sentences of fewer than `capacity` words */
    uint32_t capacity;
} child_sum_net;

static vpps_status declare(void *net, vpps_model *model) {
    child_sum_net *t = net;
    const net_config *c = &t->base.config;
    const uint32_t d = c->hidden, e = c->embed;
    const part_parameter parameters[] = {
        {&t->embedding, "embedding", c->words, e, 1, &part_small},
        {&t->W[I], "W_i", 0, d, e, NULL},
        {&t->U[I], "U_i", 0, d, d, NULL},
        {&t->b[I], "b_i", 0, d, 0, NULL},
        {&t->W[F], "W_f", 0, d, e, NULL},
        {&t->U[F], "U_f", 0, d, d, NULL},
        {&t->b[F], "b_f", 0, d, 0, &part_one},
        {&t->W[O], "W_o", 0, d, e, NULL},
        {&t->U[O], "U_o", 0, d, d, NULL},
        {&t->b[O], "b_o", 0, d, 0, NULL},
        {&t->W[U], "W_u", 0, d, e, NULL},
        {&t->U[U], "U_u", 0, d, d, NULL},
        {&t->b[U], "b_u", 0, d, 0, NULL},
    };
    const vpps_status s = parts_declare(model, parameters, sizeof parameters / sizeof *parameters);
    return s == VPPS_OK ? part_classifier_declare(&t->base.classifier, model, c, d, 0) : s;
}

/* Returns W x + U h + b of gate k. h may be a list of children's states; then the result is a list. */
static vpps_node gate(const child_sum_net *t, vpps_graph *g, int k, vpps_node x, vpps_node h) {
    return vpps_affine2(g, t->b[k], t->W[k], x, t->U[k], h);
}

static vpps_status record(void *net, vpps_model *model) {
    child_sum_net *t = net;
    const net_config *config = &t->base.config;
    const uint32_t d = config->hidden;
    vpps_graph *g;
    vpps_status s = vpps_cell_begin(model, "child-sum-tree-lstm word", &g);
    if (s != VPPS_OK) return s;
    vpps_node x = part_dropout(config, g, vpps_lookup(g, t->embedding, vpps_pull_index(g)));
    const vpps_node h_k = vpps_gather_list(g, 0, d, 1), c_k = vpps_gather_list(g, 1, d, 1);

    const vpps_node sum = vpps_sum(g, 1, &h_k);             /* eq. (2) */
    vpps_node i = vpps_sigmoid(g, gate(t, g, I, x, sum));   /* eq. (3) */
    vpps_node f_k = vpps_sigmoid(g, gate(t, g, F, x, h_k)); /* eq. (4) */
    vpps_node o = vpps_sigmoid(g, gate(t, g, O, x, sum));   /* eq. (5) */
    vpps_node u = vpps_tanh(g, gate(t, g, U, x, sum));      /* eq. (6) */
    const vpps_node kept = vpps_mul(g, f_k, c_k);
    vpps_node c = vpps_add(g, vpps_mul(g, i, u), vpps_sum(g, 1, &kept)); /* eq. (7) */
    vpps_node h = vpps_mul(g, o, vpps_tanh(g, c));                       /* eq. (8) */

    vpps_scatter(g, h);
    vpps_scatter(g, c);
    s = vpps_cell_end(g, &t->word);
    return s == VPPS_OK ? part_classifier_record(&t->base.classifier, model) : s;
}

static vpps_status create(void **net, vpps_model *model, const net_config *config) {
    return part_create(net, sizeof(child_sum_net), model, config, declare, record);
}

static void destroy(void *net) {
    child_sum_net *t = net;
    if (t) free(t->order);
    part_destroy(t);
}

/* ---------------------------------------------------------------- a tree */

/* A sentence's words, heads before their dependents. The dependents of word k are children[first[k + 1]] to
 * children[first[k + 2]] - 1; the roots are children[first[0]] to children[first[1]] - 1. */
typedef struct tree_order {
    /* words: the n words' numbers, heads before dependents; children: word numbers, all dependents of a word together */
    uint32_t *words, *children;
    uint32_t *first; /* n + 2 entries: index of the first element of each list in `children` */
} tree_order;

/* Orders a sentence's n words by their heads. The arrays of *out are t's scratch memory. Returns false when out of memory. */
static bool order_words(child_sum_net *t, const uint32_t *heads, uint32_t n, tree_order *out) {
    if (n >= t->capacity) {
        uint32_t *grown = realloc(t->order, (3 * (size_t)n + 2) * sizeof *grown);
        if (!grown) return false;
        t->order = grown;
        t->capacity = n + 1;
    }
    uint32_t *words = t->order, *children = words + n, *first = children + n, n_words = 0;
    *out = (tree_order){words, children, first};
    memset(first, 0, (n + 2) * sizeof *first);
    for (uint32_t k = 0; k < n; k++) first[heads[k]]++;
    for (uint32_t h = 0; h <= n; h++) first[h + 1] += first[h];
    for (uint32_t k = n; k-- > 0;) children[--first[heads[k]]] = k; /* turns the end of each list into its beginning */
    while (n_words < first[1]) words[n_words] = children[n_words], n_words++;
    for (uint32_t at = 0; at < n_words; at++) {
        for (uint32_t c = first[words[at] + 1]; c < first[words[at] + 2]; c++) words[n_words++] = children[c];
    }
    return true;
}

static vpps_status add(void *net, vpps_graph *g, const net_example *x, net_heads heads, const net_scores *scores) {
    child_sum_net *t = net;
    const vpps_sentence *s = &x->sentence;
    tree_order order;
    vpps_vertex *at = part_reserve_vertices(&t->base.scratch, 2 * s->n_words);
    if (!at || !order_words(t, s->heads, s->n_words, &order)) return VPPS_MEMORY;
    vpps_vertex *children = at + s->n_words;
    for (uint32_t a = s->n_words; a-- > 0;) { /* adds dependents before their heads */
        const uint32_t k = order.words[a], first = order.first[k + 1], n = order.first[k + 2] - first;
        for (uint32_t c = 0; c < n; c++) children[c] = at[order.children[first + c]];
        at[k] = vpps_apply(g, VPPS_APPLICATION(.cell = t->word, .n_children = n, .children = children, .n_indices = 1,
                                               .indices = &s->words[k]));
    }
    for (uint32_t k = 0; k < s->n_words; k++) {
        const vpps_node h = vpps_scattered(g, at[k], 0);
        part_classify(&t->base.classifier, g, k, &h, s->tags ? s->tags[k] : VPPS_NO_WORD, heads, scores);
    }
    return vpps_graph_status(g);
}

static const option_row options[] = {
    PART_HIDDEN("Size of a word's state"),
    PART_EMBED("Size of a word's embedding"),
    PART_DROPOUT("Dropout on embeddings and before the classifier"),
    {0},
};

extern const network child_sum_tree_lstm;
const network child_sum_tree_lstm = {
    .name = "child-sum-tree-lstm",
    .summary = "Child-Sum Tree-LSTM: labels words of dependency trees",
    .source = "Tai, Socher and Manning 2015, section 3.1",
    .options = options,
    .embedding = "embedding",
    .kind = NET_DEPENDENCIES,
    .defaults = {.embed = 128, .hidden = 128},
    .create = create,
    .add = add,
    .destroy = destroy,
};
