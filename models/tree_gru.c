/* tree_gru.c - the binary Tree-GRU of Chen, Huang, Chiang and Chen, "Improved Neural Machine Translation with a
 * Syntax-Aware Encoder and Decoder" (ACL 2017), section 3.2, the bottom-up tree encoder: two reset gates and three
 * update gates, each with a matrix for either child. ED-Batch (Chen et al. 2023) measures a network of this kind.
 *
 * An inner vertex with children l and r:
 *     r_l = sigmoid(U_rl_l h_l + U_rl_r h_r + b_rl)
 *     r_r = sigmoid(U_rr_l h_l + U_rr_r h_r + b_rr)
 *     z_l = sigmoid(U_zl_l h_l + U_zl_r h_r + b_zl)
 *     z_r = sigmoid(U_zr_l h_l + U_zr_r h_r + b_zr)
 *     z   = sigmoid(U_z_l h_l  + U_z_r h_r  + b_z)
 *     u   = tanh(U_u_l (r_l * h_l) + U_u_r (r_r * h_r) + b_u)
 *     h   = z_l * h_l + z_r * h_r + z * u
 *
 * Difference: the paper's leaves are the states of a sequential encoder; here a leaf is the same unit with a word and without
 * children, as in Tree-LSTMs, and shares the biases:
 *     h   = sigmoid(W_z x + b_z) * tanh(W_u x + b_u)
 * The classifier is that of Tree-LSTMs (Tai, Socher and Manning 2015, section 4.1).
 *
 * Parameters, with V words, C classes, d = hidden, e = embed: V e + 2 d e + 12 d^2 + 6 d + C d + C.
 */
#include "parts.h"

typedef struct tree_gru_net {
    part_net base;
    vpps_param embedding;
    vpps_param W_z, W_u; /* hidden x embed */
    /* hidden x hidden matrices; names end with the gate and the child (l: left, r: right) whose h they multiply */
    vpps_param U_rl_l, U_rl_r, U_rr_l, U_rr_r;
    vpps_param U_zl_l, U_zl_r, U_zr_l, U_zr_r, U_z_l, U_z_r; /* matrices of the update gates z_l, z_r and z */
    vpps_param U_u_l, U_u_r;
    vpps_param b_rl, b_rr, b_zl, b_zr, b_z, b_u; /* vectors of `hidden` */
    vpps_cell leaf, inner;
} tree_gru_net;

static vpps_status declare(void *net, vpps_model *model) {
    tree_gru_net *t = net;
    const net_config *c = &t->base.config;
    const uint32_t d = c->hidden, e = c->embed;
    const part_parameter parameters[] = {
        {&t->embedding, "embedding", c->words, e, 1, &part_small},
        {&t->W_z, "W_z", 0, d, e, NULL},
        {&t->W_u, "W_u", 0, d, e, NULL},
        {&t->U_rl_l, "U_rl_l", 0, d, d, NULL},
        {&t->U_rl_r, "U_rl_r", 0, d, d, NULL},
        {&t->U_rr_l, "U_rr_l", 0, d, d, NULL},
        {&t->U_rr_r, "U_rr_r", 0, d, d, NULL},
        {&t->U_zl_l, "U_zl_l", 0, d, d, NULL},
        {&t->U_zl_r, "U_zl_r", 0, d, d, NULL},
        {&t->U_zr_l, "U_zr_l", 0, d, d, NULL},
        {&t->U_zr_r, "U_zr_r", 0, d, d, NULL},
        {&t->U_z_l, "U_z_l", 0, d, d, NULL},
        {&t->U_z_r, "U_z_r", 0, d, d, NULL},
        {&t->U_u_l, "U_u_l", 0, d, d, NULL},
        {&t->U_u_r, "U_u_r", 0, d, d, NULL},
        {&t->b_rl, "b_rl", 0, d, 0, NULL},
        {&t->b_rr, "b_rr", 0, d, 0, NULL},
        {&t->b_zl, "b_zl", 0, d, 0, NULL},
        {&t->b_zr, "b_zr", 0, d, 0, NULL},
        {&t->b_z, "b_z", 0, d, 0, NULL},
        {&t->b_u, "b_u", 0, d, 0, NULL},
    };
    const vpps_status s = parts_declare(model, parameters, sizeof parameters / sizeof *parameters);
    return s == VPPS_OK ? part_classifier_declare(&t->base.classifier, model, c, c->hidden, 0) : s;
}

/* ---------------------------------------------------------------- cells */

static vpps_status record_leaf(tree_gru_net *t, vpps_model *model) {
    vpps_graph *g;
    const vpps_status s = vpps_cell_begin(model, "tree-gru leaf", &g);
    if (s != VPPS_OK) return s;
    vpps_node x = part_dropout(&t->base.config, g, vpps_lookup(g, t->embedding, vpps_pull_index(g)));

    vpps_node z = vpps_sigmoid(g, vpps_affine1(g, t->b_z, t->W_z, x));
    vpps_node u = vpps_tanh(g, vpps_affine1(g, t->b_u, t->W_u, x));

    const vpps_node h = vpps_mul(g, z, u);
    vpps_scatter(g, h);
    part_classifier_add(&t->base.classifier, g, h);
    return vpps_cell_end(g, &t->leaf);
}

static vpps_status record_inner(tree_gru_net *t, vpps_model *model) {
    const uint32_t d = t->base.config.hidden;
    vpps_graph *g;
    const vpps_status s = vpps_cell_begin(model, "tree-gru inner", &g);
    if (s != VPPS_OK) return s;
    vpps_node h_l = vpps_gather(g, 0, 0, d, 1), h_r = vpps_gather(g, 1, 0, d, 1);

    vpps_node r_l = vpps_sigmoid(g, vpps_affine2(g, t->b_rl, t->U_rl_l, h_l, t->U_rl_r, h_r));
    vpps_node r_r = vpps_sigmoid(g, vpps_affine2(g, t->b_rr, t->U_rr_l, h_l, t->U_rr_r, h_r));
    vpps_node z_l = vpps_sigmoid(g, vpps_affine2(g, t->b_zl, t->U_zl_l, h_l, t->U_zl_r, h_r));
    vpps_node z_r = vpps_sigmoid(g, vpps_affine2(g, t->b_zr, t->U_zr_l, h_l, t->U_zr_r, h_r));
    vpps_node z = vpps_sigmoid(g, vpps_affine2(g, t->b_z, t->U_z_l, h_l, t->U_z_r, h_r));
    vpps_node kept_l = vpps_mul(g, r_l, h_l), kept_r = vpps_mul(g, r_r, h_r);
    vpps_node u = vpps_tanh(g, vpps_affine2(g, t->b_u, t->U_u_l, kept_l, t->U_u_r, kept_r));

    const vpps_node products[] = {vpps_mul(g, z_l, h_l), vpps_mul(g, z_r, h_r), vpps_mul(g, z, u)};
    const vpps_node h = vpps_sum(g, 3, products);
    vpps_scatter(g, h);
    part_classifier_add(&t->base.classifier, g, h);
    return vpps_cell_end(g, &t->inner);
}

static vpps_status record(void *net, vpps_model *model) {
    tree_gru_net *t = net;
    const vpps_status s = record_leaf(t, model);
    return s == VPPS_OK ? record_inner(t, model) : s;
}

static vpps_status create(void **net, vpps_model *model, const net_config *config) {
    return part_create(net, sizeof(tree_gru_net), model, config, declare, record);
}

static vpps_status add(void *net, vpps_graph *g, const net_example *x, net_heads heads, const net_scores *scores) {
    tree_gru_net *t = net;
    return part_add_tree(g, x->tree, t->leaf, &t->inner, 1, NULL, &t->base.classifier, heads, scores, &t->base.scratch);
}

extern const network tree_gru;
const network tree_gru = {
    .name = "tree-gru",
    .summary = "binary Tree-GRU with two gates a child: labels trees",
    .source = "Chen, Huang, Chiang and Chen 2017, section 3.2",
    .options = part_options,
    .embedding = "embedding",
    .defaults = {.embed = 256, .hidden = 256, .loss = NET_HEADS_LABELLED},
    .create = create,
    .add = add,
    .destroy = part_destroy,
};
