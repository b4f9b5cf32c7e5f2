/* tree_fc.c - Tree-FC: one fully connected layer as the cell of every inner vertex, the benchmark that Looks, Herreshoff,
 * Hutchins and Norvig, "Deep Learning with Dynamic Computation Graphs" (ICLR 2017, TensorFlow Fold) measure dynamic
 * batching with, and Xu et al. 2018 ("Cavs", section 5) on complete binary trees of 256 leaves:
 *
 *     h = relu(W_l h_l + W_r h_r + b)        at a leaf: h = the word's embedding
 *
 * On generated complete trees only the root has a label, so the classifier stands there.
 *
 * Parameters, with V words, C classes, d = hidden, which is the embedding's size, too: V d + 2 d^2 + d + C (d + 1).
 */
#include "parts.h"

typedef struct tree_fc_net {
    part_net base;
    vpps_param embedding;
    vpps_param W_l, W_r, b; /* d x d matrices for the left and the right child; a vector of d */
    vpps_cell leaf, inner;
} tree_fc_net;

static vpps_status declare(void *net, vpps_model *model) {
    tree_fc_net *t = net;
    const uint32_t d = t->base.config.hidden;
    const part_parameter parameters[] = {
        {&t->embedding, "embedding", t->base.config.words, d, 1, NULL},
        {&t->W_l, "W_l", 0, d, d, NULL},
        {&t->W_r, "W_r", 0, d, d, NULL},
        {&t->b, "b", 0, d, 0, NULL},
    };
    vpps_status s = parts_declare(model, parameters, sizeof parameters / sizeof *parameters);
    if (s != VPPS_OK) return s;
    return part_classifier_declare(&t->base.classifier, model, &t->base.config, d, 0);
}

static vpps_status record_leaf(tree_fc_net *t, vpps_model *model) {
    vpps_graph *g;
    vpps_status s = vpps_cell_begin(model, "tree-fc leaf", &g);
    if (s != VPPS_OK) return s;
    const vpps_node h = part_dropout(&t->base.config, g, vpps_lookup(g, t->embedding, vpps_pull_index(g)));
    vpps_scatter(g, h);
    part_classifier_add(&t->base.classifier, g, h);
    return vpps_cell_end(g, &t->leaf);
}

static vpps_status record_inner(tree_fc_net *t, vpps_model *model) {
    const uint32_t d = t->base.config.hidden;
    vpps_graph *g;
    vpps_status s = vpps_cell_begin(model, "tree-fc inner", &g);
    if (s != VPPS_OK) return s;
    vpps_node h_l = vpps_gather(g, 0, 0, d, 1), h_r = vpps_gather(g, 1, 0, d, 1);
    const vpps_node h = vpps_relu(g, vpps_affine2(g, t->b, t->W_l, h_l, t->W_r, h_r));
    vpps_scatter(g, h);
    part_classifier_add(&t->base.classifier, g, h);
    return vpps_cell_end(g, &t->inner);
}

static vpps_status record(void *net, vpps_model *model) {
    tree_fc_net *t = net;
    const vpps_status s = record_leaf(t, model);
    return s == VPPS_OK ? record_inner(t, model) : s;
}

static vpps_status create(void **net, vpps_model *model, const net_config *config) {
    return part_create(net, sizeof(tree_fc_net), model, config, declare, record);
}

static vpps_status add(void *net, vpps_graph *g, const net_example *x, net_heads heads, const net_scores *scores) {
    tree_fc_net *t = net;
    return part_add_tree(g, x->tree, t->leaf, &t->inner, 1, NULL, &t->base.classifier, heads, scores, &t->base.scratch);
}

static const option_row options[] = {
    {"hidden", "N", "Size of h and of a word's embedding", OPTION_U32, offsetof(net_config, hidden), 1, 65536, true},
    {"dropout", "P", "Dropout on embeddings and before the classifier", OPTION_F32, offsetof(net_config, dropout), 0,
     0.99, false},
    {"loss", "nodes|root", "Train on every labelled node, or on the root alone", OPTION_CHOICE,
     offsetof(net_config, loss), 0, 0, false},
    {0},
};

extern const network tree_fc;
const network tree_fc = {
    .name = "tree-fc",
    .summary = "one layer at every vertex of complete binary trees",
    .source = "Looks, Herreshoff, Hutchins and Norvig 2017; Xu et al. 2018",
    .options = options,
    .embedding = "embedding",
    .defaults = {.hidden = 256, .loss = NET_HEADS_LABELLED},
    .generator = NET_COMPLETE_TREES,
    .create = create,
    .add = add,
    .destroy = part_destroy,
};
