/* pyramid.c - adds the vertices of a sentence, level by level, until one vertex is left (pyramid.h). */
#include "pyramid.h"

vpps_status pyramid_add(vpps_graph *g, const vpps_tree *tree, vpps_cell leaf, vpps_cell inner,
                        const part_classifier *classifier, net_heads heads, const net_scores *scores,
                        part_vertices *scratch) {
    vpps_vertex *at = part_reserve_vertices(scratch, tree->n_leaves);
    if (!at) return VPPS_MEMORY;
    uint32_t n = 0;
    for (uint32_t k = 0; k < tree->n_nodes; k++) {
        const vpps_tree_node *node = &tree->nodes[k];
        scores->logits[k] = scores->nll[k] = VPPS_NO_NODE;
        if (node->left < 0)
            at[n++] = vpps_apply(g, VPPS_APPLICATION(.cell = leaf, .n_indices = 1, .indices = &node->word));
    }
    for (; n > 1; n--) { /* at[i] is overwritten at once: the next pair of neighbours begins at at[i + 1] */
        for (uint32_t i = 0; i + 1 < n; i++)
            at[i] = vpps_apply(g, VPPS_APPLICATION(.cell = inner, .n_children = 2, .children = &at[i]));
    }
    const uint32_t root = tree->n_nodes - 1;
    const vpps_node h = vpps_scattered(g, at[0], 0);
    part_classify(classifier, g, root, &h, part_label(tree, root, heads), heads, scores);
    return vpps_graph_status(g);
}
