/* flat.h - a graph in which each applied cell is expanded to the ops that a user without cells would have called. The reference evaluates such
 * graphs, and tests compare them. */
#pragma once

#include "graph/graph.h"

typedef struct flat_node {
    vpps_signature s;
    const vpps_param *matrices; /* matrices of an affine node */
    uint32_t args, n_args;      /* arguments, in the graph's `args` */
    uint32_t imm;               /* as in vpps_op_node; for a dropout, the number of its first element */
} flat_node;

/* A list's members are consecutive nodes. A softmax over a list is a stack of the members, its softmax, and a slice for each member; a weighted sum
 * is preceded by a stack of its weights, a stack of members by the zeros below them. */
typedef struct flat_graph {
    flat_node *nodes;
    uint32_t n_nodes;
    uint32_t *args; /* nodes; each is smaller than the node that reads it */
    size_t n_args;
    uint32_t *of; /* for each node of the graph: its node here */
    uint64_t dropout_elems;
} flat_graph;

/* Expands a graph, which must have no error. */
flat_graph *flatten(const vpps_graph *g);
void flat_graph_free(flat_graph *f);

/* Returns the first node in which two graphs of one model differ; UINT32_MAX: they are equal. */
uint32_t flat_difference(const flat_graph *a, const flat_graph *b);
