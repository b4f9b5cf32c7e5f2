/* treebank.h - the struct that holds binary trees, for the reader and the generators that fill it. */
#pragma once

#include "vocab.h"

struct vpps_treebank {
    vpps_vocab *vocab;
    vpps_tree_node *nodes; /* the nodes of all trees, tree after tree */
    size_t n_nodes;
    struct vpps_tree_range {
        size_t first_node;
        uint32_t n_nodes, n_leaves, line;
    } * trees;
    uint32_t n_trees;
    uint32_t classes;
};

/* Sizes of a vpps_treebank before trees are added; after a failure, vpps_treebank_restore goes back to these sizes. */
typedef struct vpps_treebank_mark {
    size_t n_nodes;
    uint32_t n_trees, n_words, classes;
} vpps_treebank_mark;

vpps_treebank_mark vpps_treebank_extent(const vpps_treebank *tb);
void vpps_treebank_restore(vpps_treebank *tb, vpps_treebank_mark mark);

/* Appends a node to the tree under construction, which starts at node `first`; *index is the new node's number in that
 * tree. An inner node's word must be VPPS_NO_WORD. Fails with MEMORY. */
vpps_status vpps_treebank_add_node(vpps_treebank *tb, size_t first, vpps_tree_node node, int32_t *index);

/* Completes a tree: its nodes are those from `first` on, an odd number, since trees are binary. `line` is the tree's
 * first line in its text, 0 without a text. Fails with MEMORY. */
vpps_status vpps_treebank_add_tree(vpps_treebank *tb, size_t first, uint32_t line);

/* Sets the line number that messages name to `line` for all trees from number `first` on. */
void vpps_treebank_set_line(vpps_treebank *tb, uint32_t first, uint32_t line);

/* Prints a label: its name; with `names` NULL, or without a name, its number. */
void vpps_tree_print_label(FILE *file, int32_t label, const vpps_vocab *names);
/* Prints a tree in brackets. labels[k]: label of node k in place of its own; NULL: nodes have their own labels. Fails with MEMORY. */
vpps_status vpps_tree_print(FILE *file, vpps_tree tree, const vpps_vocab *words, const int32_t *labels,
                            const vpps_vocab *names);
