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
#include "parts.h"

typedef struct td_rnn_net {
    part_net base;
    vpps_param embedding;
    vpps_param W_l, W_r, b; /* d x d matrices for the left and the right neighbour; a vector of d */
} td_rnn_net;

static vpps_status build(void *net, vpps_model *model) {
    td_rnn_net *t = net;
    const uint32_t d = t->base.config.hidden;
    const part_parameter parameters[] = {
        {&t->embedding, "embedding", t->base.config.words, d, 1, NULL},
        {&t->W_l, "W_l", 0, d, d, NULL},
        {&t->W_r, "W_r", 0, d, d, NULL},
        {&t->b, "b", 0, d, 0, NULL},
    };
    vpps_graph *g;
    PART_TRY(parts_declare(model, parameters, PART_COUNT(parameters)));

    PART_TRY(vpps_cell_begin(model, "td-rnn leaf", &g));
    vpps_scatter(g, part_dropout(&t->base.config, g, vpps_lookup(g, t->embedding, vpps_pull_index(g))));
    PART_TRY(vpps_cell_end(g, &t->base.leaf));

    PART_TRY(vpps_cell_begin(model, "td-rnn inner", &g));
    vpps_node h_l = vpps_gather(g, 0, 0, d, 1), h_r = vpps_gather(g, 1, 0, d, 1);
    vpps_scatter(g, vpps_tanh(g, vpps_affine2(g, t->b, t->W_l, h_l, t->W_r, h_r)));
    PART_TRY(vpps_cell_end(g, t->base.inner));
    return part_classifier_make(&t->base.classifier, model, &t->base.config, d, d);
}

static const option_row options[] = {
    PART_HIDDEN("Size of h and of a word's embedding"),
    PART_DROPOUT("Dropout on embeddings and before the classifier"),
    {0},
};

const network td_rnn = {
    .name = "td-rnn",
    .summary = "time-delay network, level by level: labels sentences",
    .source = "VPPS 2018; Peddinti, Povey and Khudanpur 2015; Socher et al. 2013",
    .options = options,
    .embedding = "embedding",
    .defaults = {.hidden = 512, .loss = NET_HEADS_ROOT},
    .bytes = sizeof(td_rnn_net),
    .build = build,
    .add = part_pyramid_add,
};
