/* constituents.h - the inside of n-ary trees, for their reader. */
#pragma once

#include "vocab.h"

struct vpps_constituents {
    vpps_vocab *vocab, *labels;
    vpps_labels form;
    vpps_constituent *nodes; /* of all trees, one after the other */
    size_t n_nodes;
    struct vpps_constituent_range {
        size_t first_node;
        uint32_t n_nodes, n_leaves, line;
    } * trees;
    uint32_t n_trees;
};

/* Says that the trees from number `first` on stand at `line` of their text. */
void vpps_constituents_set_line(vpps_constituents *c, uint32_t first, uint32_t line);

/* How long a label is without the function tags and indices at its end. */
size_t vpps_label_without_tags(const char *label, size_t len);
