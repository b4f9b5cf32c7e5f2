/* pq_tree.h - a PQ tree: all orders of some elements in which given sets are consecutive (Booth and Lueker 1976).
 *
 * A leaf is an element. The children of a P-node may come in any order, those of a Q-node in their order or its reverse. A P-node has
 * more than two children, a Q-node more than one. Nodes are never changed, only replaced, so an earlier root remains the root of
 * the earlier tree. */
#pragma once

#include "base/base.h"

typedef enum vpps_pq_kind { VPPS_PQ_LEAF, VPPS_PQ_P, VPPS_PQ_Q } vpps_pq_kind;

typedef struct vpps_pq_node {
    uint8_t kind;
    uint32_t leaf;     /* LEAF: the element */
    uint32_t first, n; /* the node's n children are links[first] and following */
    uint32_t size;     /* number of leaves in the node's subtree */
    uint32_t marked;   /* number of leaves below the node that were in the set of the latest vpps_pq_mark */
} vpps_pq_node;

typedef struct vpps_pq_tree {
    vpps_pq_node *nodes;
    uint32_t *links;
    uint32_t root, n_nodes, n_links, n_elements;
    uint8_t *in_set;   /* for each element: whether it is in the set that vpps_pq_mark or vpps_pq_reduce works on */
    uint32_t *scratch; /* stack of nodes that will become the children of a new node */
    uint32_t n_scratch;
} vpps_pq_tree;

typedef enum vpps_pq_result {
    VPPS_PQ_SAME,    /* the set is already consecutive in all orders of the tree */
    VPPS_PQ_REDUCED, /* the tree has fewer orders now */
    VPPS_PQ_NONE,    /* no order is left; the tree is unchanged */
    VPPS_PQ_MEMORY   /* out of memory; the tree is unchanged */
} vpps_pq_result;

/* Opens a tree of all orders of n elements; false: out of memory. vpps_pq_close frees the tree, also after a failed open. */
bool vpps_pq_open(vpps_pq_tree *t, uint32_t n);
void vpps_pq_close(vpps_pq_tree *t);

/* Keeps only the orders in which the n elements of the set, all different, are consecutive. */
vpps_pq_result vpps_pq_reduce(vpps_pq_tree *t, const uint32_t *set, uint32_t n);

/* Sets `marked` of every node: the number of leaves in its subtree that are in the set. */
void vpps_pq_mark(vpps_pq_tree *t, const uint32_t *set, uint32_t n);

static inline const uint32_t *vpps_pq_children(const vpps_pq_tree *t, uint32_t node) {
    return t->links + t->nodes[node].first;
}
