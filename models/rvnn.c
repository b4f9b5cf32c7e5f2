/* rvnn.c - the recursive network: Socher, Lin, Ng and Manning, "Parsing Natural Scenes and Natural Language with
 * Recursive Neural Networks" (ICML 2011), section 3, with a separate matrix for leaves. VPPS (MICRO 2018) is measured
 * with this network and vectors of 512 elements.
 *
 *     leaf    h = tanh(W_leaf x + b_leaf)
 *     inner   h = tanh(W_l h_l + W_r h_r + b)        W [h_l; h_r] in the paper
 *
 * Differences: the paper's f is the logistic function; the authors' later networks on words have tanh, which is symmetric
 * about 0 (Socher et al. 2013, "Recursive Deep Models for Semantic Compositionality Over a Sentiment Treebank",
 * section 4). Irsoy and Cardie 2014, "Deep Recursive Neural Networks for Compositionality in Language", also separate leaves
 * from inner vertices, by two matrices in the parent; here the leaf has one matrix, and so a representation that the
 * classifier can read. The classifier is that of Tree-LSTMs (Tai, Socher and Manning 2015, section 4.1).
 *
 * Parameters, with V words, C classes, d = hidden, e = embed: V e + d e + 2 d^2 + 2 d + C d + C.
 */
#include "parts.h"

typedef struct rvnn_net {
    part_net base;
    vpps_param embedding;
    vpps_param W_leaf;   /* hidden x embed */
    vpps_param W_l, W_r; /* hidden x hidden */
    vpps_param b_leaf, b;
} rvnn_net;

static vpps_status build(void *net, vpps_model *model) {
    rvnn_net *r = net;
    const net_config *c = &r->base.config;
    const uint32_t d = c->hidden, e = c->embed;
    const part_parameter parameters[] = {
        {&r->embedding, "embedding", c->words, e, 1, &part_small},
        {&r->W_leaf, "W_leaf", 0, d, e, NULL},
        {&r->W_l, "W_l", 0, d, d, NULL},
        {&r->W_r, "W_r", 0, d, d, NULL},
        {&r->b_leaf, "b_leaf", 0, d, 0, NULL},
        {&r->b, "b", 0, d, 0, NULL},
    };
    vpps_graph *g;
    PART_TRY(parts_declare(model, parameters, PART_COUNT(parameters)));
    PART_TRY(part_classifier_declare(&r->base.classifier, model, c, c->hidden, 0));

    PART_TRY(vpps_cell_begin(model, "rvnn leaf", &g));
    vpps_node x = part_dropout(c, g, vpps_lookup(g, r->embedding, vpps_pull_index(g)));
    vpps_node h = vpps_tanh(g, vpps_affine1(g, r->b_leaf, r->W_leaf, x));
    PART_TRY(part_tree_end(&r->base, g, h, &r->base.leaf));

    PART_TRY(vpps_cell_begin(model, "rvnn inner", &g));
    vpps_node h_l = vpps_gather(g, 0, 0, d, 1), h_r = vpps_gather(g, 1, 0, d, 1);
    h = vpps_tanh(g, vpps_affine2(g, r->b, r->W_l, h_l, r->W_r, h_r));
    return part_tree_end(&r->base, g, h, r->base.inner);
}

const network rvnn = {
    .name = "rvnn",
    .summary = "recursive network: one tanh layer an inner vertex",
    .source = "Socher, Lin, Ng and Manning 2011; Irsoy and Cardie 2014",
    .options = part_options,
    .embedding = "embedding",
    .defaults = {.embed = 512, .hidden = 512, .loss = NET_HEADS_LABELLED},
    .bytes = sizeof(rvnn_net),
    .build = build,
    .add = part_tree_add,
};
