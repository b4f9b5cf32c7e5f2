/* tree_lstm.c - the binary N-ary Tree-LSTM of Tai, Socher and Manning, "Improved Semantic Representations From Tree-Structured Long
 * Short-Term Memory Networks" (ACL 2015), section 3.2 with N = 2, and the classifier of section 4.1.
 *
 * Equations 9 to 14 add W x (the word) to U h (the children). In a binarised constituency tree only leaves have a word and only inner
 * vertices have children, so each kind of vertex keeps the half that is not zero: 3 matrix products at a leaf, 10 at an inner vertex. Both
 * halves share the biases.
 *
 * Parameters, with V words, C classes, d = hidden, e = embed: V e + 3 d e + 10 d^2 + 4 d + C d + C. */
#include "tree_lstm.h"

typedef struct tree_lstm_net {
    part_net base;
    tree_lstm_leaf leaf;
    tree_lstm_inner inner;
    vpps_cell leaf_cell, inner_cell;
} tree_lstm_net;

/* ---------------------------------------------------------------- parameters */

static vpps_status declare(void *net, vpps_model *model) {
    tree_lstm_net *t = net;
    const net_config *c = &t->base.config;
    const uint32_t d = c->hidden, e = c->embed;
    part_classifier *classifier = &t->base.classifier;
    tree_lstm_leaf *leaf = &t->leaf;
    tree_lstm_inner *inner = &t->inner;
    /* Biases begin at zero, except forget gates; the paper does not say how they begin. */
    const part_parameter parameters[] = {
        {&leaf->embedding, "embedding", c->words, e, 1, &part_small},
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
        {&classifier->W_s, "W_s", 0, c->classes, d, NULL},
        {&inner->b_i, "b_i", 0, d, 0, NULL},
        {&inner->b_o, "b_o", 0, d, 0, NULL},
        {&inner->b_f, "b_f", 0, d, 0, &part_one},
        {&inner->b_u, "b_u", 0, d, 0, NULL},
        {&classifier->b_s, "b_s", 0, c->classes, 0, NULL},
    };
    const vpps_status s = parts_declare(model, parameters, sizeof parameters / sizeof *parameters);
    classifier->config = c;
    classifier->inputs = d;
    leaf->b_i = inner->b_i;
    leaf->b_o = inner->b_o;
    leaf->b_u = inner->b_u;
    return s;
}

/* ---------------------------------------------------------------- cells */

/* Records the cell of leaves: equations 9 to 14 of Tai et al. (2015) without children; a leaf has no forget gate. */
vpps_status tree_lstm_record_leaf(const tree_lstm_leaf *p, const net_config *config, const part_classifier *classifier,
                                  vpps_model *model, const char *name, vpps_cell *cell) {
    vpps_graph *g;
    const vpps_status s = vpps_cell_begin(model, name, &g);
    if (s != VPPS_OK) return s;
    vpps_node x = part_dropout(config, g, vpps_lookup(g, p->embedding, vpps_pull_index(g)));

    vpps_node i = vpps_sigmoid(g, vpps_affine1(g, p->b_i, p->W_i, x)); /*  (9) i = sigmoid(W_i x + b_i) */
    vpps_node o = vpps_sigmoid(g, vpps_affine1(g, p->b_o, p->W_o, x)); /* (11) o = sigmoid(W_o x + b_o) */
    vpps_node u = vpps_tanh(g, vpps_affine1(g, p->b_u, p->W_u, x));    /* (12) u = tanh(W_u x + b_u)    */
    vpps_node c = vpps_mul(g, i, u);                                   /* (13) c = i * u                */
    vpps_node h = vpps_mul(g, o, vpps_tanh(g, c));                     /* (14) h = o * tanh(c)          */

    vpps_scatter(g, h);
    vpps_scatter(g, c);
    if (classifier) part_classifier_add(classifier, g, h);
    return vpps_cell_end(g, cell);
}

/* Records the cell of inner vertices, which have two children l and r and no word: equations 9 to 14 of Tai et al. (2015). */
vpps_status tree_lstm_record_inner(const tree_lstm_inner *p, const net_config *config,
                                   const part_classifier *classifier, vpps_model *model, const char *name,
                                   vpps_cell *cell) {
    const uint32_t d = config->hidden;
    vpps_graph *g;
    const vpps_status s = vpps_cell_begin(model, name, &g);
    if (s != VPPS_OK) return s;
    vpps_node h_l = vpps_gather(g, 0, 0, d, 1), c_l = vpps_gather(g, 0, 1, d, 1);
    vpps_node h_r = vpps_gather(g, 1, 0, d, 1), c_r = vpps_gather(g, 1, 1, d, 1);

    /*  (9) i   = sigmoid(U_i_l h_l  + U_i_r h_r  + b_i)
     * (11) o   = sigmoid(U_o_l h_l  + U_o_r h_r  + b_o)
     * (10) f_l = sigmoid(U_f_ll h_l + U_f_lr h_r + b_f)
     *      f_r = sigmoid(U_f_rl h_l + U_f_rr h_r + b_f)
     * (12) u   = tanh(U_u_l h_l     + U_u_r h_r  + b_u) */
    vpps_node i = vpps_sigmoid(g, vpps_affine2(g, p->b_i, p->U_i_l, h_l, p->U_i_r, h_r));
    vpps_node o = vpps_sigmoid(g, vpps_affine2(g, p->b_o, p->U_o_l, h_l, p->U_o_r, h_r));
    vpps_node f_l = vpps_sigmoid(g, vpps_affine2(g, p->b_f, p->U_f_ll, h_l, p->U_f_lr, h_r));
    vpps_node f_r = vpps_sigmoid(g, vpps_affine2(g, p->b_f, p->U_f_rl, h_l, p->U_f_rr, h_r));
    vpps_node u = vpps_tanh(g, vpps_affine2(g, p->b_u, p->U_u_l, h_l, p->U_u_r, h_r));

    /* (13) c = i * u + f_l * c_l + f_r * c_r */
    const vpps_node products[] = {vpps_mul(g, i, u), vpps_mul(g, f_l, c_l), vpps_mul(g, f_r, c_r)};
    vpps_node c = vpps_sum(g, 3, products);
    vpps_node h = vpps_mul(g, o, vpps_tanh(g, c)); /* (14) h = o * tanh(c) */

    vpps_scatter(g, h);
    vpps_scatter(g, c);
    if (classifier) part_classifier_add(classifier, g, h);
    return vpps_cell_end(g, cell);
}

static vpps_status record(void *net, vpps_model *model) {
    tree_lstm_net *t = net;
    const net_config *config = &t->base.config;
    const part_classifier *c = &t->base.classifier;
    const vpps_status s = tree_lstm_record_leaf(&t->leaf, config, c, model, "tree-lstm leaf", &t->leaf_cell);
    return s == VPPS_OK ? tree_lstm_record_inner(&t->inner, config, c, model, "tree-lstm inner", &t->inner_cell) : s;
}

static vpps_status create(void **net, vpps_model *model, const net_config *config) {
    return part_create(net, sizeof(tree_lstm_net), model, config, declare, record);
}

static vpps_status add(void *net, vpps_graph *g, const net_example *x, net_heads heads, const net_scores *scores) {
    tree_lstm_net *t = net;
    return part_add_tree(g, x->tree, t->leaf_cell, &t->inner_cell, 1, NULL, &t->base.classifier, heads, scores,
                         &t->base.scratch);
}

extern const network tree_lstm;
const network tree_lstm = {
    .name = "tree-lstm",
    .summary = "binary Tree-LSTM: labels trees and their nodes",
    .source = "Tai, Socher and Manning 2015, section 3.2",
    .options = part_options,
    .embedding = "embedding",
    .defaults = {.embed = 256, .hidden = 256, .loss = NET_HEADS_LABELLED},
    .create = create,
    .add = add,
    .destroy = part_destroy,
};
