/* edge_lists.h - graphs whose edges have types, as lists of nodes and edges:
 *
 *     graph toxic
 *     node carbon ring 0.5
 *     node oxygen - 1.5
 *     # the first node, the second one, the type
 *     edge 1 2 double
 *
 * A line begins with a keyword; words have white space between. Lines that begin with '#', and those without words, are skipped.
 *   graph [LABEL]                     a graph begins; it has at least one node
 *   node WORD [LABEL [NUMBER ...]]    nodes are numbered 1, 2, ... in their graph. As many numbers as edge_lists.numbers says
 *   edge FROM TO [TYPE]               between nodes above it. Edges without a type have "-", which is one
 * "-" stands for a label that is not known.
 */
#pragma once

#include "vpps_data.h"

/* Nodes of a graph, from 0; the type is an id of edge_lists.types. */
typedef struct vpps_edge {
    uint32_t from, to, type;
} vpps_edge;

typedef struct vpps_edge_lists {
    vpps_vocab *types;
    float *values;    /* `numbers` of each node */
    vpps_edge *edges; /* of all graphs */
    struct vpps_edge_list {
        size_t first_node, first_edge;
        uint32_t n_edges;
    } * graphs;
    size_t n_edges;
    uint32_t numbers; /* the caller sets it before anything is read */
} vpps_edge_lists;

/* An empty one. Fails with MEMORY. */
vpps_status vpps_edge_lists_create(vpps_edge_lists **out);
void vpps_edge_lists_destroy(vpps_edge_lists *e);

/* Which labels are read: the others are left out. */
typedef enum vpps_edge_labels { VPPS_NODE_LABELS, VPPS_GRAPH_LABELS, VPPS_NO_LABELS } vpps_edge_labels;

/* Adds all graphs of a text, or none, to e and, as sentences, to `nodes`, of which there must be as many in both: the words of a
 * sentence are a graph's nodes, its tags their labels (VPPS_NO_WORD: none), or its label is the graph's. Fails with FORMAT, MEMORY, and
 * STATE where other labels were read before. */
vpps_status vpps_edge_lists_read_text(vpps_edge_lists *e, vpps_sentences *nodes, const char *name, const char *text,
                                      size_t len, vpps_edge_labels labels);

/* Where a label belongs in a line of the format: of a node or a graph, begin == end where there is none. False: the line is neither. */
bool vpps_edge_lists_label(const char *begin, const char *end, vpps_edge_labels labels, const char **at,
                           const char **label_end);
