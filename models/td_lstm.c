/* td_lstm.c - TD-LSTM, the time-delay network of td_rnn.c with LSTM transformations, as in the evaluation of VPPS (MICRO 2018): two
 * neighbours (h_l, c_l) and (h_r, c_r) become one by the binary Tree-LSTM of Tai, Socher and Manning 2015, section 3.2, equations 9 to 14
 * (tree_lstm.c has them), on every level by the same weights; a word becomes a pair by the same equations without children. A multilayer
 * perceptron classifies the last h.
 *
 * Parameters, with V words, C classes, d = hidden, e = embed: V e + 3 d e + 10 d^2 + 4 d + d (d + 1) + C (d + 1). */
#include "tree_lstm.h"

static vpps_status build(void *net, vpps_model *model) {
    tree_lstm_net *t = net;
    const net_config *c = &t->base.config;
    PART_TRY(tree_lstm_declare_words(&t->leaf, model, c, NULL));
    PART_TRY(tree_lstm_declare_matrices(&t->inner, model, c->hidden, ""));
    /* Forget gates begin half open (bias 0), unlike those of Tree-LSTMs: a new cell is then the mean of its two
     * neighbours' cells plus the new part. With open gates it would be their sum, and double from level to level. */
    PART_TRY(tree_lstm_declare_biases(&t->inner, model, c->hidden, "", NULL));
    tree_lstm_share_biases(t);
    PART_TRY(tree_lstm_record_leaf(&t->leaf, c, NULL, model, "td-lstm leaf", &t->base.leaf));
    PART_TRY(tree_lstm_record_inner(&t->inner, c, NULL, model, "td-lstm inner", t->base.inner));
    return part_classifier_make(&t->base.classifier, model, c, c->hidden, c->hidden);
}

const network td_lstm = {
    .name = "td-lstm",
    .summary = "time-delay network of LSTMs: labels sentences",
    .source = "VPPS 2018; Tai, Socher and Manning 2015, section 3.2",
    .options = part_root_options,
    .embedding = "embedding",
    .defaults = {.embed = 256, .hidden = 256, .loss = NET_HEADS_ROOT},
    .bytes = sizeof(tree_lstm_net),
    .build = build,
    .add = part_pyramid_add,
};
