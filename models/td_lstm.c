/* td_lstm.c - TD-LSTM, the time-delay network of td_rnn.c with LSTM transformations, as in the evaluation of VPPS (MICRO 2018): two
 * neighbours (h_l, c_l) and (h_r, c_r) become one by the binary Tree-LSTM of Tai, Socher and Manning 2015, section 3.2, equations 9 to 14
 * (tree_lstm.c has them), on every level by the same weights; a word becomes a pair by the same equations without children. A multilayer
 * perceptron classifies the last h.
 *
 * Parameters, with V words, C classes, d = hidden, e = embed: V e + 3 d e + 10 d^2 + 4 d + d (d + 1) + C (d + 1). */
#include "pyramid.h"
#include "tree_lstm.h"

typedef struct td_lstm_net {
    part_net base;
    tree_lstm_leaf leaf;
    tree_lstm_inner inner;
    vpps_cell leaf_cell, inner_cell;
} td_lstm_net;

static vpps_status declare(void *net, vpps_model *model) {
    td_lstm_net *t = net;
    const net_config *c = &t->base.config;
    const uint32_t d = c->hidden, e = c->embed;
    tree_lstm_leaf *leaf = &t->leaf;
    tree_lstm_inner *inner = &t->inner;
    /* Forget gates begin half open (bias 0), unlike those of Tree-LSTMs: a new cell is then the mean of its two
     * neighbours' cells plus the new part. With open gates it would be their sum, and double from level to level. */
    const part_parameter parameters[] = {
        {&leaf->embedding, "embedding", c->words, e, 1, NULL},
        {&leaf->W_i, "W_i", 0, d, e, NULL},
        {&leaf->W_o, "W_o", 0, d, e, NULL},
        {&leaf->W_u, "W_u", 0, d, e, NULL},
        {&inner->U_i_l, "U_i_l", 0, d, d, NULL},
        {&inner->U_i_r, "U_i_r", 0, d, d, NULL},
        {&inner->U_o_l, "U_o_l", 0, d, d, NULL},
        {&inner->U_o_r, "U_o_r", 0, d, d, NULL},
        {&inner->U_f_ll, "U_f_ll", 0, d, d, NULL},
        {&inner->U_f_lr, "U_f_lr", 0, d, d, NULL},
        {&inner->U_f_rl, "U_f_rl", 0, d, d, NULL},
        {&inner->U_f_rr, "U_f_rr", 0, d, d, NULL},
        {&inner->U_u_l, "U_u_l", 0, d, d, NULL},
        {&inner->U_u_r, "U_u_r", 0, d, d, NULL},
        {&inner->b_i, "b_i", 0, d, 0, NULL},
        {&inner->b_o, "b_o", 0, d, 0, NULL},
        {&inner->b_f, "b_f", 0, d, 0, NULL},
        {&inner->b_u, "b_u", 0, d, 0, NULL},
    };
    const vpps_status s = parts_declare(model, parameters, sizeof parameters / sizeof *parameters);
    if (s != VPPS_OK) return s;
    leaf->b_i = inner->b_i;
    leaf->b_o = inner->b_o;
    leaf->b_u = inner->b_u;
    return part_classifier_declare(&t->base.classifier, model, c, c->hidden, c->hidden);
}

static vpps_status record(void *net, vpps_model *model) {
    td_lstm_net *t = net;
    const net_config *c = &t->base.config;
    vpps_status s = tree_lstm_record_leaf(&t->leaf, c, NULL, model, "td-lstm leaf", &t->leaf_cell);
    if (s == VPPS_OK) s = tree_lstm_record_inner(&t->inner, c, NULL, model, "td-lstm inner", &t->inner_cell);
    if (s == VPPS_OK) s = part_classifier_record(&t->base.classifier, model);
    return s;
}

static vpps_status create(void **net, vpps_model *model, const net_config *config) {
    return part_create(net, sizeof(td_lstm_net), model, config, declare, record);
}

static vpps_status add(void *net, vpps_graph *g, const net_example *x, net_heads heads, const net_scores *scores) {
    td_lstm_net *t = net;
    return pyramid_add(g, x->tree, t->leaf_cell, t->inner_cell, &t->base.classifier, heads, scores, &t->base.scratch);
}

extern const network td_lstm;
const network td_lstm = {
    .name = "td-lstm",
    .summary = "time-delay network of LSTMs: labels sentences",
    .source = "VPPS 2018; Tai, Socher and Manning 2015, section 3.2",
    .options = part_root_options,
    .embedding = "embedding",
    .defaults = {.embed = 256, .hidden = 256, .loss = NET_HEADS_ROOT},
    .create = create,
    .add = add,
    .destroy = part_destroy,
};
