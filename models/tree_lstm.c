/* tree_lstm.c - the binary N-ary Tree-LSTM of Tai, Socher and Manning, "Improved Semantic Representations From Tree-Structured Long
 * Short-Term Memory Networks" (ACL 2015), section 3.2 with N = 2, and the classifier of section 4.1.
 *
 * Equations 9 to 14 add W x (the word) to U h (the children). In a binarised constituency tree only leaves have a word and only inner
 * vertices have children, so each kind of vertex keeps the half that is not zero: 3 matrix products at a leaf, 10 at an inner vertex. Both
 * halves share the biases.
 *
 * Parameters, with V words, C classes, d = hidden, e = embed: V e + 3 d e + 10 d^2 + 4 d + C d + C. */
#include "tree_lstm.h"

vpps_status tree_lstm_declare_words(tree_lstm_leaf *p, vpps_model *model, const net_config *config,
                                    const vpps_init *embedding) {
    const uint32_t d = config->hidden, e = config->embed;
    const part_parameter parameters[] = {
        {&p->embedding, "embedding", config->words, e, 1, embedding},
        {&p->W_i, "W_i", 0, d, e, NULL},
        {&p->W_o, "W_o", 0, d, e, NULL},
        {&p->W_u, "W_u", 0, d, e, NULL},
    };
    return parts_declare(model, parameters, PART_COUNT(parameters));
}

vpps_status tree_lstm_declare_matrices(tree_lstm_inner *p, vpps_model *model, uint32_t hidden, const char *suffix) {
    static const char *const gates[TREE_GATES] = {"i_", "o_", "f_l", "f_r", "u_"};
    return part_pairs_declare(p->U, model, gates, TREE_GATES, hidden, suffix);
}

vpps_status tree_lstm_declare_biases(tree_lstm_inner *p, vpps_model *model, uint32_t hidden, const char *suffix,
                                     const vpps_init *forget) {
    for (int k = 0; k < TREE_GATES; k++) {
        char name[16];
        snprintf(name, sizeof name, "b_%c%s", "ioffu"[k], suffix);
        if (k != TREE_F_R) PART_TRY(vpps_add_vector(model, &p->b[k], name, hidden, k == TREE_F_L ? forget : NULL));
    }
    p->b[TREE_F_R] = p->b[TREE_F_L];
    return VPPS_OK;
}

void tree_lstm_share_biases(tree_lstm_net *t) {
    t->leaf.b_i = t->inner.b[TREE_I];
    t->leaf.b_o = t->inner.b[TREE_O];
    t->leaf.b_u = t->inner.b[TREE_U];
}

/* Records the cell of leaves: equations 9 to 14 of Tai et al. (2015) without children; a leaf has no forget gate. */
vpps_status tree_lstm_record_leaf(const tree_lstm_leaf *p, const net_config *config, const part_classifier *classifier,
                                  vpps_model *model, const char *name, vpps_cell *cell) {
    vpps_graph *g;
    PART_TRY(vpps_cell_begin(model, name, &g));
    vpps_node x = part_dropout(config, g, vpps_lookup(g, p->embedding, vpps_pull_index(g)));

    vpps_node i = vpps_sigmoid(g, vpps_affine1(g, p->b_i, p->W_i, x));
    vpps_node o = vpps_sigmoid(g, vpps_affine1(g, p->b_o, p->W_o, x));
    vpps_node u = vpps_tanh(g, vpps_affine1(g, p->b_u, p->W_u, x));
    vpps_node c = vpps_mul(g, i, u);
    vpps_node h = vpps_mul(g, o, vpps_tanh(g, c));

    vpps_scatter(g, h);
    vpps_scatter(g, c);
    if (classifier) part_classifier_add(classifier, g, h);
    return vpps_cell_end(g, cell);
}

static vpps_node gate(const tree_lstm_inner *p, vpps_graph *g, int k, vpps_node h_l, vpps_node h_r) {
    return vpps_affine2(g, p->b[k], p->U[k][0], h_l, p->U[k][1], h_r);
}

/* Records the cell of inner vertices, which have two children l and r and no word: equations 9 to 14 of Tai et al. (2015). */
vpps_status tree_lstm_record_inner(const tree_lstm_inner *p, const net_config *config,
                                   const part_classifier *classifier, vpps_model *model, const char *name,
                                   vpps_cell *cell) {
    const uint32_t d = config->hidden;
    vpps_graph *g;
    PART_TRY(vpps_cell_begin(model, name, &g));
    vpps_node h_l = vpps_gather(g, 0, 0, d, 1), c_l = vpps_gather(g, 0, 1, d, 1);
    vpps_node h_r = vpps_gather(g, 1, 0, d, 1), c_r = vpps_gather(g, 1, 1, d, 1);

    /*  (9) i   = sigmoid(U_i_l h_l  + U_i_r h_r  + b_i)
     * (11) o   = sigmoid(U_o_l h_l  + U_o_r h_r  + b_o)
     * (10) f_l = sigmoid(U_f_ll h_l + U_f_lr h_r + b_f)
     *      f_r = sigmoid(U_f_rl h_l + U_f_rr h_r + b_f)
     * (12) u   = tanh(U_u_l h_l     + U_u_r h_r  + b_u) */
    vpps_node i = vpps_sigmoid(g, gate(p, g, TREE_I, h_l, h_r));
    vpps_node o = vpps_sigmoid(g, gate(p, g, TREE_O, h_l, h_r));
    vpps_node f_l = vpps_sigmoid(g, gate(p, g, TREE_F_L, h_l, h_r));
    vpps_node f_r = vpps_sigmoid(g, gate(p, g, TREE_F_R, h_l, h_r));
    vpps_node u = vpps_tanh(g, gate(p, g, TREE_U, h_l, h_r));

    const vpps_node products[] = {vpps_mul(g, i, u), vpps_mul(g, f_l, c_l), vpps_mul(g, f_r, c_r)};
    vpps_node c = vpps_sum(g, 3, products);
    vpps_node h = vpps_mul(g, o, vpps_tanh(g, c));

    vpps_scatter(g, h);
    vpps_scatter(g, c);
    if (classifier) part_classifier_add(classifier, g, h);
    return vpps_cell_end(g, cell);
}

static vpps_status build(void *net, vpps_model *model) {
    tree_lstm_net *t = net;
    const net_config *config = &t->base.config;
    const uint32_t d = config->hidden;
    part_classifier *c = &t->base.classifier;
    PART_TRY(tree_lstm_declare_words(&t->leaf, model, config, &part_small));
    PART_TRY(tree_lstm_declare_matrices(&t->inner, model, d, ""));
    PART_TRY(vpps_add_matrix(model, &c->W_s, "W_s", config->classes, d, NULL));
    /* Biases begin at zero, except forget gates; the paper does not say how they begin. */
    PART_TRY(tree_lstm_declare_biases(&t->inner, model, d, "", &part_one));
    PART_TRY(vpps_add_vector(model, &c->b_s, "b_s", config->classes, NULL));
    c->config = config;
    c->inputs = d;
    tree_lstm_share_biases(t);
    PART_TRY(tree_lstm_record_leaf(&t->leaf, config, c, model, "tree-lstm leaf", &t->base.leaf));
    return tree_lstm_record_inner(&t->inner, config, c, model, "tree-lstm inner", t->base.inner);
}

const network tree_lstm = {
    .name = "tree-lstm",
    .summary = "binary Tree-LSTM: labels trees and their nodes",
    .source = "Tai, Socher and Manning 2015, section 3.2",
    .options = part_options,
    .embedding = "embedding",
    .defaults = {.embed = 256, .hidden = 256, .loss = NET_HEADS_LABELLED},
    .bytes = sizeof(tree_lstm_net),
    .build = build,
    .add = part_tree_add,
};
