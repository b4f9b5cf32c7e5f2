/* tree_lstm_2type.c - a Tree-LSTM with two kinds of inner cell: the workload TreeLSTM-2Type of Chen, Fegade, Chen, Gibbons and Mowry,
 * "ED-Batch: Efficient Automatic Batching of Dynamic Neural Networks via Learned Finite State Machines" (ICML 2023), where every inner
 * vertex takes one of two kinds with probability 1/2. What can be batched together then no longer follows from depth alone.
 *
 * Both kinds, and the leaves, are those of tree_lstm.c (equations 9 to 14 of Tai, Socher and Manning 2015), each with parameters of its
 * own, biases included.
 *
 * A node's kind is a hash of the tree's number of nodes, the node's index and its left child's index. So a tree has the same graph in every
 * epoch, in evaluation, and after loading a checkpoint.
 *
 * Parameters, with V words, C classes, d = hidden, e = embed: V e + 3 d e + 3 d + 2 (10 d^2 + 4 d) + C d + C. */
#include "tree_lstm.h"

enum { KINDS = 2 };

typedef struct two_type_net {
    part_net base;
    tree_lstm_leaf leaf;
    tree_lstm_inner inner[KINDS];
} two_type_net;

/* Mixes bits as SplitMix64 does (Steele, Lea and Flood 2014). */
static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint32_t kind_of(const vpps_tree *tree, uint32_t node) {
    const uint64_t place = ((uint64_t)node << 32) + (uint64_t)tree->nodes[node].left;
    return (uint32_t)(mix(mix(tree->n_nodes) + place) >> 63);
}

/* Inner nodes have one of two kinds of cell. The names of a kind's parameters end with its number: U_i_l_1, U_i_l_2. */
static vpps_status build(void *net, vpps_model *model) {
    static const char *const suffixes[KINDS] = {"_1", "_2"}, *const names[KINDS] = {"tree-lstm inner, kind 1",
                                                                                    "tree-lstm inner, kind 2"};
    two_type_net *t = net;
    const net_config *config = &t->base.config;
    const uint32_t d = config->hidden;
    part_classifier *c = &t->base.classifier;
    const part_parameter biases[] = {{&t->leaf.b_i, "b_i", 0, d, 0, NULL},
                                     {&t->leaf.b_o, "b_o", 0, d, 0, NULL},
                                     {&t->leaf.b_u, "b_u", 0, d, 0, NULL}};
    t->base.choose = kind_of;
    PART_TRY(tree_lstm_declare_words(&t->leaf, model, config, &part_small));
    PART_TRY(parts_declare(model, biases, PART_COUNT(biases)));
    for (int k = 0; k < KINDS; k++) {
        PART_TRY(tree_lstm_declare_matrices(&t->inner[k], model, d, suffixes[k]));
        PART_TRY(tree_lstm_declare_biases(&t->inner[k], model, d, suffixes[k], &part_one));
    }
    PART_TRY(part_classifier_declare(c, model, config, d, 0));
    PART_TRY(tree_lstm_record_leaf(&t->leaf, config, c, model, "tree-lstm leaf", &t->base.leaf));
    for (int k = 0; k < KINDS; k++)
        PART_TRY(tree_lstm_record_inner(&t->inner[k], config, c, model, names[k], &t->base.inner[k]));
    return VPPS_OK;
}

const network tree_lstm_2type = {
    .name = "tree-lstm-2type",
    .summary = "Tree-LSTM with two kinds of inner cell",
    .source = "Chen, Fegade, Chen, Gibbons and Mowry 2023 (ED-Batch)",
    .options = part_options,
    .embedding = "embedding",
    .defaults = {.embed = 256, .hidden = 256, .loss = NET_HEADS_LABELLED},
    .bytes = sizeof(two_type_net),
    .build = build,
    .add = part_tree_add,
};
