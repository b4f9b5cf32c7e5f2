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

#include <string.h>

enum { I, F, O, U };

typedef struct child_sum_net {
    part_net base;
    vpps_param embedding;
    part_gates gates;
    vpps_cell word;
} child_sum_net;

static vpps_status build(void *net, vpps_model *model) {
    child_sum_net *t = net;
    const net_config *config = &t->base.config;
    const uint32_t d = config->hidden;
    vpps_graph *g;
    PART_TRY(vpps_add_lookup(model, &t->embedding, "embedding", config->words, config->embed, 1, &part_small));
    PART_TRY(part_gates_declare(&t->gates, model, "", "ifou", config->embed, d));
    PART_TRY(vpps_cell_begin(model, "child-sum-tree-lstm word", &g));
    vpps_node x = part_dropout(config, g, vpps_lookup(g, t->embedding, vpps_pull_index(g)));
    const vpps_node h_k = vpps_gather_list(g, 0, d, 1), c_k = vpps_gather_list(g, 1, d, 1);

    const vpps_node sum = vpps_sum(g, 1, &h_k);                          /* eq. (2) */
    vpps_node i = vpps_sigmoid(g, part_gate(&t->gates, g, I, x, sum));   /* eq. (3) */
    vpps_node f_k = vpps_sigmoid(g, part_gate(&t->gates, g, F, x, h_k)); /* eq. (4) */
    vpps_node o = vpps_sigmoid(g, part_gate(&t->gates, g, O, x, sum));   /* eq. (5) */
    vpps_node u = vpps_tanh(g, part_gate(&t->gates, g, U, x, sum));      /* eq. (6) */
    const vpps_node kept = vpps_mul(g, f_k, c_k);
    vpps_node c = vpps_add(g, vpps_mul(g, i, u), vpps_sum(g, 1, &kept)); /* eq. (7) */
    vpps_node h = vpps_mul(g, o, vpps_tanh(g, c));                       /* eq. (8) */

    vpps_scatter(g, h);
    vpps_scatter(g, c);
    PART_TRY(vpps_cell_end(g, &t->word));
    return part_classifier_make(&t->base.classifier, model, config, d, 0);
}

/* A sentence's words, heads before their dependents. The dependents of word k are children[first[k + 1]] to
 * children[first[k + 2]] - 1; the roots are children[first[0]] to children[first[1]] - 1. */
typedef struct tree_order {
    /* words: the n words' numbers, heads before dependents; children: word numbers, all dependents of a word together */
    uint32_t *words, *children;
    /* where in `children` the roots begin, the dependents of each of the n words begin, and the last dependents end */
    uint32_t *first;
} tree_order;

/* Orders a sentence's n words so that heads come before their dependents. heads[k]: number of word k's head, from 1; 0:
 * word k is a root. The result's arrays lie in `memory`, which must have room for 3 n + 2 numbers. */
static tree_order order_words(uint32_t *memory, const uint32_t *heads, uint32_t n) {
    uint32_t *words = memory, *children = words + n, *first = children + n, n_words = 0;
    memset(first, 0, (n + 2) * sizeof *first);
    for (uint32_t k = 0; k < n; k++) first[heads[k]]++;
    for (uint32_t h = 0; h <= n; h++) first[h + 1] += first[h];
    for (uint32_t k = n; k-- > 0;) children[--first[heads[k]]] = k; /* fills each list from its end, first[] */
    while (n_words < first[1]) words[n_words] = children[n_words], n_words++;
    for (uint32_t at = 0; at < n_words; at++) {
        for (uint32_t c = first[words[at] + 1]; c < first[words[at] + 2]; c++) words[n_words++] = children[c];
    }
    return (tree_order){words, children, first};
}

static vpps_status add(void *net, vpps_graph *g, const net_example *x, net_heads heads, const net_scores *scores) {
    child_sum_net *t = net;
    const vpps_sentence *s = &x->sentence;
    vpps_vertex *at = part_reserve(t->base.scratch, 5 * (size_t)s->n_words + 2), *children = at + s->n_words;
    if (!at) return VPPS_MEMORY;
    const tree_order order = order_words(children + s->n_words, s->heads, s->n_words);
    for (uint32_t a = s->n_words; a-- > 0;) { /* adds dependents before their heads */
        const uint32_t k = order.words[a], first = order.first[k + 1], n = order.first[k + 2] - first;
        for (uint32_t c = 0; c < n; c++) children[c] = at[order.children[first + c]];
        at[k] = vpps_apply(g, VPPS_APPLICATION(.cell = t->word, .n_children = n, .children = children, .n_indices = 1,
                                               .indices = &s->words[k]));
    }
    return part_classify_words(&t->base, g, s->n_words, at, NULL, s->tags, heads, scores);
}

static const option_row options[] = {
    PART_HIDDEN("Size of a word's state"),
    PART_EMBED("Size of a word's embedding"),
    PART_DROPOUT("Dropout on embeddings and before the classifier"),
    {0},
};

const network child_sum_tree_lstm = {
    .name = "child-sum-tree-lstm",
    .summary = "Child-Sum Tree-LSTM: labels words of dependency trees",
    .source = "Tai, Socher and Manning 2015, section 3.1",
    .options = options,
    .embedding = "embedding",
    .kind = NET_DEPENDENCIES,
    .defaults = {.embed = 128, .hidden = 128},
    .bytes = sizeof(child_sum_net),
    .build = build,
    .add = add,
};
