/* td_rnn.c - TD-RNN, a time-delay network on sentences, as in the evaluation of VPPS (MICRO 2018): two neighbours become
 * one vector, on every level by the same weights, until the sentence is one vector, which a multilayer perceptron
 * classifies:
 *
 *     h = tanh(W_l h_l + W_r h_r + b)        on the lowest level: h = the word's embedding
 *
 * The windows of every level overlap, as in the time-delay network of Peddinti, Povey and Khudanpur 2015 (figure 1); the
 * composition is that of Socher et al. 2013, "Recursive Deep Models for Semantic Compositionality Over a Sentiment
 * Treebank" (section 4.1). A sentence of n words has n (n - 1) / 2 inner vertices. Only the words and the root's label are
 * taken from the sentence's tree.
 *
 * Parameters, with V words, C classes, d = hidden, which is the embedding's size, too:
 *     V d + 2 d^2 + d + d (d + 1) + C (d + 1).
 */
#include "pyramid.h"

typedef struct td_rnn_net {
    part_net base;
    vpps_param embedding;
    vpps_param W_l, W_r, b; /* d x d matrices for the left and the right neighbour; a vector of d */
    vpps_cell leaf, inner;
} td_rnn_net;

static vpps_status declare(void *net, vpps_model *model) {
    td_rnn_net *t = net;
    const uint32_t d = t->base.config.hidden;
    const part_parameter parameters[] = {
        {&t->embedding, "embedding", t->base.config.words, d, 1, NULL},
        {&t->W_l, "W_l", 0, d, d, NULL},
        {&t->W_r, "W_r", 0, d, d, NULL},
        {&t->b, "b", 0, d, 0, NULL},
    };
    vpps_status s = parts_declare(model, parameters, sizeof parameters / sizeof *parameters);
    if (s != VPPS_OK) return s;
    return part_classifier_declare(&t->base.classifier, model, &t->base.config, d, d);
}

static vpps_status record_leaf(td_rnn_net *t, vpps_model *model) {
    vpps_graph *g;
    vpps_status s = vpps_cell_begin(model, "td-rnn leaf", &g);
    if (s != VPPS_OK) return s;
    vpps_scatter(g, part_dropout(&t->base.config, g, vpps_lookup(g, t->embedding, vpps_pull_index(g))));
    return vpps_cell_end(g, &t->leaf);
}

static vpps_status record_inner(td_rnn_net *t, vpps_model *model) {
    const uint32_t d = t->base.config.hidden;
    vpps_graph *g;
    vpps_status s = vpps_cell_begin(model, "td-rnn inner", &g);
    if (s != VPPS_OK) return s;
    vpps_node h_l = vpps_gather(g, 0, 0, d, 1), h_r = vpps_gather(g, 1, 0, d, 1);
    vpps_scatter(g, vpps_tanh(g, vpps_affine2(g, t->b, t->W_l, h_l, t->W_r, h_r)));
    return vpps_cell_end(g, &t->inner);
}

static vpps_status record(void *net, vpps_model *model) {
    td_rnn_net *t = net;
    vpps_status s = record_leaf(t, model);
    if (s == VPPS_OK) s = record_inner(t, model);
    if (s == VPPS_OK) s = part_classifier_record(&t->base.classifier, model);
    return s;
}

static vpps_status create(void **net, vpps_model *model, const net_config *config) {
    return part_create(net, sizeof(td_rnn_net), model, config, declare, record);
}

static vpps_status add(void *net, vpps_graph *g, const net_example *x, net_heads heads, const net_scores *scores) {
    td_rnn_net *t = net;
    return pyramid_add(g, x->tree, t->leaf, t->inner, &t->base.classifier, heads, scores, &t->base.scratch);
}

static const option_row options[] = {
    {"hidden", "N", "Size of h and of a word's embedding", OPTION_U32, offsetof(net_config, hidden), 1, 65536, true},
    {"dropout", "P", "Dropout on embeddings and before the classifier", OPTION_F32, offsetof(net_config, dropout), 0,
     0.99, false},
    {0},
};

extern const network td_rnn;
const network td_rnn = {
    .name = "td-rnn",
    .summary = "time-delay network, level by level: labels sentences",
    .source = "VPPS 2018; Peddinti, Povey and Khudanpur 2015; Socher et al. 2013",
    .options = options,
    .embedding = "embedding",
    .defaults = {.hidden = 512, .loss = NET_HEADS_ROOT},
    .create = create,
    .add = add,
    .destroy = part_destroy,
};
