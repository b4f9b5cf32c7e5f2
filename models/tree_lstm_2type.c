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
    vpps_cell leaf_cell, inner_cells[KINDS];
} two_type_net;

/* Declares the parameters of one kind of inner cell. Their names end with the kind's number: U_i_l_1 and U_i_l_2. */
static vpps_status declare_inner(tree_lstm_inner *p, vpps_model *model, uint32_t d, uint32_t kind) {
    part_parameter parameters[] = {
        {&p->U_i_l, "U_i_l", 0, d, d, NULL},   {&p->U_i_r, "U_i_r", 0, d, d, NULL},
        {&p->U_o_l, "U_o_l", 0, d, d, NULL},   {&p->U_o_r, "U_o_r", 0, d, d, NULL},
        {&p->U_f_ll, "U_f_ll", 0, d, d, NULL}, {&p->U_f_lr, "U_f_lr", 0, d, d, NULL},
        {&p->U_f_rl, "U_f_rl", 0, d, d, NULL}, {&p->U_f_rr, "U_f_rr", 0, d, d, NULL},
        {&p->U_u_l, "U_u_l", 0, d, d, NULL},   {&p->U_u_r, "U_u_r", 0, d, d, NULL},
        {&p->b_i, "b_i", 0, d, 0, NULL},       {&p->b_o, "b_o", 0, d, 0, NULL},
        {&p->b_f, "b_f", 0, d, 0, &part_one},  {&p->b_u, "b_u", 0, d, 0, NULL},
    };
    enum { N = sizeof parameters / sizeof *parameters };
    char names[N][16];
    for (uint32_t i = 0; i < N; i++) {
        snprintf(names[i], sizeof names[i], "%s_%u", parameters[i].name, kind + 1);
        parameters[i].name = names[i];
    }
    return parts_declare(model, parameters, N);
}

static vpps_status declare(void *net, vpps_model *model) {
    two_type_net *t = net;
    const net_config *c = &t->base.config;
    const uint32_t d = c->hidden, e = c->embed;
    const part_parameter of_leaf[] = {
        {&t->leaf.embedding, "embedding", c->words, e, 1, &part_small},
        {&t->leaf.W_i, "W_i", 0, d, e, NULL},
        {&t->leaf.W_o, "W_o", 0, d, e, NULL},
        {&t->leaf.W_u, "W_u", 0, d, e, NULL},
        {&t->leaf.b_i, "b_i", 0, d, 0, NULL},
        {&t->leaf.b_o, "b_o", 0, d, 0, NULL},
        {&t->leaf.b_u, "b_u", 0, d, 0, NULL},
    };
    vpps_status s = parts_declare(model, of_leaf, sizeof of_leaf / sizeof *of_leaf);
    for (uint32_t kind = 0; s == VPPS_OK && kind < KINDS; kind++) {
        s = declare_inner(&t->inner[kind], model, d, kind);
    }
    if (s == VPPS_OK) s = part_classifier_declare(&t->base.classifier, model, c, c->hidden, 0);
    return s;
}

static vpps_status record(void *net, vpps_model *model) {
    static const char *const names[KINDS] = {"tree-lstm inner, kind 1", "tree-lstm inner, kind 2"};
    two_type_net *t = net;
    const net_config *config = &t->base.config;
    const part_classifier *c = &t->base.classifier;
    vpps_status s = tree_lstm_record_leaf(&t->leaf, config, c, model, "tree-lstm leaf", &t->leaf_cell);
    for (uint32_t kind = 0; s == VPPS_OK && kind < KINDS; kind++) {
        s = tree_lstm_record_inner(&t->inner[kind], config, c, model, names[kind], &t->inner_cells[kind]);
    }
    return s;
}

static vpps_status create(void **net, vpps_model *model, const net_config *config) {
    return part_create(net, sizeof(two_type_net), model, config, declare, record);
}

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

static vpps_status add(void *net, vpps_graph *g, const net_example *x, net_heads heads, const net_scores *scores) {
    two_type_net *t = net;
    return part_add_tree(g, x->tree, t->leaf_cell, t->inner_cells, KINDS, kind_of, &t->base.classifier, heads, scores,
                         &t->base.scratch);
}

extern const network tree_lstm_2type;
const network tree_lstm_2type = {
    .name = "tree-lstm-2type",
    .summary = "Tree-LSTM with two kinds of inner cell",
    .source = "Chen, Fegade, Chen, Gibbons and Mowry 2023 (ED-Batch)",
    .options = part_options,
    .embedding = "embedding",
    .defaults = {.embed = 256, .hidden = 256, .loss = NET_HEADS_LABELLED},
    .create = create,
    .add = add,
    .destroy = part_destroy,
};
