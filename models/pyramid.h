/* pyramid.h - turns a sentence into a pyramid of vertices, for the time-delay networks. */
#ifndef VPPS_PYRAMID_H
#define VPPS_PYRAMID_H

#include "parts.h"

/* Adds one vertex per word of the tree to a graph; then, level by level, one vertex per two neighbours of the preceding level, until one
 * vertex is left: n words make n (n - 1) / 2 inner vertices. Only the last vertex, the root, gets scores. The cells are leaf(word) and
 * inner(left, right), whose first output is the representation. */
vpps_status pyramid_add(vpps_graph *g, const vpps_tree *tree, vpps_cell leaf, vpps_cell inner,
                        const part_classifier *classifier, net_heads heads, const net_scores *scores,
                        part_vertices *scratch);

#endif
