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

enum { R_L, R_R, Z_L, Z_R, Z, U, GATES };

typedef struct tree_gru_net {
    part_net base;
    vpps_param embedding;
    vpps_param W_z, W_u; /* hidden x embed */
    part_pair U[GATES];
    vpps_param b[GATES];
} tree_gru_net;

static vpps_status record_leaf(tree_gru_net *t, vpps_model *model) {
    vpps_graph *g;
    PART_TRY(vpps_cell_begin(model, "tree-gru leaf", &g));
    vpps_node x = part_dropout(&t->base.config, g, vpps_lookup(g, t->embedding, vpps_pull_index(g)));
    vpps_node z = vpps_sigmoid(g, vpps_affine1(g, t->b[Z], t->W_z, x));
    vpps_node u = vpps_tanh(g, vpps_affine1(g, t->b[U], t->W_u, x));
    return part_tree_end(&t->base, g, vpps_mul(g, z, u), &t->base.leaf);
}

static vpps_node gate(const tree_gru_net *t, vpps_graph *g, int k, vpps_node h_l, vpps_node h_r) {
    return vpps_affine2(g, t->b[k], t->U[k][0], h_l, t->U[k][1], h_r);
}

static vpps_status record_inner(tree_gru_net *t, vpps_model *model) {
    const uint32_t d = t->base.config.hidden;
    vpps_graph *g;
    PART_TRY(vpps_cell_begin(model, "tree-gru inner", &g));
    vpps_node h_l = vpps_gather(g, 0, 0, d, 1), h_r = vpps_gather(g, 1, 0, d, 1);

    vpps_node r_l = vpps_sigmoid(g, gate(t, g, R_L, h_l, h_r));
    vpps_node r_r = vpps_sigmoid(g, gate(t, g, R_R, h_l, h_r));
    vpps_node z_l = vpps_sigmoid(g, gate(t, g, Z_L, h_l, h_r));
    vpps_node z_r = vpps_sigmoid(g, gate(t, g, Z_R, h_l, h_r));
    vpps_node z = vpps_sigmoid(g, gate(t, g, Z, h_l, h_r));
    vpps_node kept_l = vpps_mul(g, r_l, h_l), kept_r = vpps_mul(g, r_r, h_r);
    vpps_node u = vpps_tanh(g, gate(t, g, U, kept_l, kept_r));

    const vpps_node products[] = {vpps_mul(g, z_l, h_l), vpps_mul(g, z_r, h_r), vpps_mul(g, z, u)};
    return part_tree_end(&t->base, g, vpps_sum(g, 3, products), &t->base.inner[0]);
}

static vpps_status build(void *net, vpps_model *model) {
    static const char *const gates[GATES] = {"rl_", "rr_", "zl_", "zr_", "z_", "u_"};
    tree_gru_net *t = net;
    const net_config *c = &t->base.config;
    const uint32_t d = c->hidden, e = c->embed;
    const part_parameter words[] = {
        {&t->embedding, "embedding", c->words, e, 1, &part_small},
        {&t->W_z, "W_z", 0, d, e, NULL},
        {&t->W_u, "W_u", 0, d, e, NULL},
    };
    const part_parameter biases[] = {
        {&t->b[R_L], "b_rl", 0, d, 0, NULL}, {&t->b[R_R], "b_rr", 0, d, 0, NULL}, {&t->b[Z_L], "b_zl", 0, d, 0, NULL},
        {&t->b[Z_R], "b_zr", 0, d, 0, NULL}, {&t->b[Z], "b_z", 0, d, 0, NULL},    {&t->b[U], "b_u", 0, d, 0, NULL},
    };
    PART_TRY(parts_declare(model, words, PART_COUNT(words)));
    PART_TRY(part_pairs_declare(t->U, model, gates, GATES, d, ""));
    PART_TRY(parts_declare(model, biases, PART_COUNT(biases)));
    PART_TRY(part_classifier_declare(&t->base.classifier, model, c, d, 0));
    PART_TRY(record_leaf(t, model));
    return record_inner(t, model);
}

const network tree_gru = {
    .name = "tree-gru",
    .summary = "binary Tree-GRU with two gates a child: labels trees",
    .source = "Chen, Huang, Chiang and Chen 2017, section 3.2",
    .options = part_options,
    .embedding = "embedding",
    .defaults = {.embed = 256, .hidden = 256, .loss = NET_HEADS_LABELLED},
    .bytes = sizeof(tree_gru_net),
    .build = build,
    .add = part_tree_add,
};
