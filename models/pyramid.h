/* pyramid.h - a sentence as a pyramid of vertices, for the time-delay networks. */
#ifndef VPPS_PYRAMID_H
#define VPPS_PYRAMID_H

#include "parts.h"

/* A vertex for each word of the tree, in order; then, level by level, one for each two neighbours, until one is left:
 * n words make n (n - 1) / 2 inner vertices. Only that last one, the root's, gets scores. leaf(word) and
 * inner(left, right) scatter the representation first. */
vpps_status pyramid_add(vpps_graph *g, const vpps_tree *tree, vpps_cell leaf, vpps_cell inner,
                        const part_classifier *classifier, net_heads heads, const net_scores *scores,
                        part_vertices *scratch);

#endif
