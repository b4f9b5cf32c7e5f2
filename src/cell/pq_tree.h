/* pq_tree.h - all orders of some elements in which given sets are consecutive (Booth and Lueker 1976).
 *
 * A leaf is an element; the children of a P-node come in any order, those of a Q-node in theirs or the other way round. A
 * P-node has more than two children, a Q-node more than one. Nodes are never changed, only replaced, so that an earlier root is
 * the tree as it was.
 */
#pragma once

#include "base/base.h"

typedef enum vpps_pq_kind { VPPS_PQ_LEAF, VPPS_PQ_P, VPPS_PQ_Q } vpps_pq_kind;

typedef struct vpps_pq_node {
    uint8_t kind;
    uint32_t leaf;     /* LEAF: the element */
    uint32_t first, n; /* children: in links */
    uint32_t size;     /* leaves below */
    uint32_t marked;   /* of those, in the set of the latest vpps_pq_mark */
} vpps_pq_node;

typedef struct vpps_pq_tree {
    vpps_pq_node *nodes;
    uint32_t *links;
    uint32_t root, n_nodes, n_links, n_elements;
    uint8_t *in_set;   /* of each element */
    uint32_t *scratch; /* a stack of children that are being put together */
    uint32_t n_scratch;
} vpps_pq_tree;

typedef enum vpps_pq_result {
    VPPS_PQ_SAME,    /* the set was consecutive in all orders */
    VPPS_PQ_REDUCED, /* the tree has fewer orders now */
    VPPS_PQ_NONE,    /* no order is left: the tree is as it was */
    VPPS_PQ_MEMORY   /* out of memory: the tree is as it was */
} vpps_pq_result;

/* All orders of n elements. False: out of memory. Close it in any case. */
bool vpps_pq_open(vpps_pq_tree *t, uint32_t n);
void vpps_pq_close(vpps_pq_tree *t);

/* Leaves only the orders in which the n different elements of the set are consecutive. */
vpps_pq_result vpps_pq_reduce(vpps_pq_tree *t, const uint32_t *set, uint32_t n);

/* Counts, in every node, how many of the set lie below it. */
void vpps_pq_mark(vpps_pq_tree *t, const uint32_t *set, uint32_t n);

static inline const uint32_t *vpps_pq_children(const vpps_pq_tree *t, uint32_t node) {
    return t->links + t->nodes[node].first;
}
