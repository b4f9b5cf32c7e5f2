/* flat.h - a graph with every applied cell written out: the ops that a user without cells would have called. What the reference
 * evaluates, and what graphs are compared by. */
#pragma once

#include "graph/graph.h"

typedef struct flat_node {
    vpps_signature s;
    const vpps_param *matrices; /* of an affine one */
    uint32_t args, n_args;      /* in the graph's args */
    uint32_t imm;               /* as vpps_op_node has it; of a dropout, the number of its first element */
} flat_node;

/* A list's members are nodes one after the other. A softmax over one is a stack of the members, its softmax, and a slice for each
 * member; a weighted sum has its weights stacked before it, a stack of members the zeros below them. */
typedef struct flat_graph {
    flat_node *nodes;
    uint32_t n_nodes;
    uint32_t *args; /* nodes; smaller than the one that reads them */
    size_t n_args;
    uint32_t *of; /* of every node of the graph: the one here */
    uint64_t dropout_elems;
} flat_graph;

/* The graph has no error. */
flat_graph *flatten(const vpps_graph *g);
void flat_graph_free(flat_graph *f);

/* The first node in which two graphs of one model differ; UINT32_MAX: they are equal. */
uint32_t flat_difference(const flat_graph *a, const flat_graph *b);
