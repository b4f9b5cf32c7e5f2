/* treebank.h - the internals of a treebank, for the reader and the generators that fill it. */
#pragma once

#include "vocab.h"

struct vpps_treebank {
    vpps_vocab *vocab;
    vpps_tree_node *nodes; /* of all trees, one after the other */
    size_t n_nodes;
    struct vpps_tree_range {
        size_t first_node;
        uint32_t n_nodes, n_leaves, line;
    } * trees;
    uint32_t n_trees;
    uint32_t classes;
};

/* A treebank's extent: what a failed reader or generator puts back. */
typedef struct vpps_treebank_mark {
    size_t n_nodes;
    uint32_t n_trees, n_words, classes;
} vpps_treebank_mark;

vpps_treebank_mark vpps_treebank_extent(const vpps_treebank *tb);
void vpps_treebank_restore(vpps_treebank *tb, vpps_treebank_mark mark);

/* Appends a node to the tree that is being built, the one that starts at node `first`; *index is its number in that
 * tree. Inner nodes give word VPPS_NO_WORD. Fails with MEMORY. */
vpps_status vpps_treebank_add_node(vpps_treebank *tb, size_t first, vpps_tree_node node, int32_t *index);

/* Makes the nodes from `first` on a tree; their count is odd, a binary tree's. `line` is where it begins in its text, 0
 * without one. Fails with MEMORY. */
vpps_status vpps_treebank_add_tree(vpps_treebank *tb, size_t first, uint32_t line);

/* Says that the trees from number `first` on stand at `line` of their text. */
void vpps_treebank_set_line(vpps_treebank *tb, uint32_t first, uint32_t line);
