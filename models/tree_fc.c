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
} tree_fc_net;

static vpps_status build(void *net, vpps_model *model) {
    tree_fc_net *t = net;
    const uint32_t d = t->base.config.hidden;
    const part_parameter parameters[] = {
        {&t->embedding, "embedding", t->base.config.words, d, 1, NULL},
        {&t->W_l, "W_l", 0, d, d, NULL},
        {&t->W_r, "W_r", 0, d, d, NULL},
        {&t->b, "b", 0, d, 0, NULL},
    };
    vpps_graph *g;
    PART_TRY(parts_declare(model, parameters, PART_COUNT(parameters)));
    PART_TRY(part_classifier_declare(&t->base.classifier, model, &t->base.config, d, 0));

    PART_TRY(vpps_cell_begin(model, "tree-fc leaf", &g));
    vpps_node h = part_dropout(&t->base.config, g, vpps_lookup(g, t->embedding, vpps_pull_index(g)));
    PART_TRY(part_tree_end(&t->base, g, h, &t->base.leaf));

    PART_TRY(vpps_cell_begin(model, "tree-fc inner", &g));
    vpps_node h_l = vpps_gather(g, 0, 0, d, 1), h_r = vpps_gather(g, 1, 0, d, 1);
    h = vpps_relu(g, vpps_affine2(g, t->b, t->W_l, h_l, t->W_r, h_r));
    return part_tree_end(&t->base, g, h, t->base.inner);
}

static const option_row options[] = {
    PART_HIDDEN("Size of h and of a word's embedding"),
    PART_DROPOUT("Dropout on embeddings and before the classifier"),
    PART_LOSS,
    {0},
};

const network tree_fc = {
    .name = "tree-fc",
    .summary = "one layer at every vertex of complete binary trees",
    .source = "Looks, Herreshoff, Hutchins and Norvig 2017; Xu et al. 2018",
    .options = options,
    .embedding = "embedding",
    .defaults = {.hidden = 256, .loss = NET_HEADS_LABELLED},
    .generator = NET_COMPLETE_TREES,
    .bytes = sizeof(tree_fc_net),
    .build = build,
    .add = part_tree_add,
};
