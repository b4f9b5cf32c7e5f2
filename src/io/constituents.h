/* constituents.h - the struct that holds constituent trees with any number of children, for the source files that fill it. */
#pragma once

#include "vocab.h"

struct vpps_constituents {
    vpps_vocab *vocab, *labels;
    vpps_labels form;
    vpps_constituent *nodes; /* the nodes of all trees, tree after tree */
    size_t n_nodes;
    struct vpps_constituent_range {
        size_t first_node;
        uint32_t n_nodes, n_leaves, line;
    } * trees;
    uint32_t n_trees;
};

/* Sets the line number that messages name to `line` for all trees from number `first` on. */
void vpps_constituents_set_line(vpps_constituents *c, uint32_t first, uint32_t line);
