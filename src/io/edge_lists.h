/* edge_lists.h - a text format for graphs whose edges have types:
 *
 *     graph toxic
 *     node carbon ring 0.5
 *     node oxygen - 1.5
 *     # the first node, the second one, the type
 *     edge 1 2 double
 *
 * A line begins with a keyword; white space separates its words. Lines that begin with '#' and blank lines are
 * skipped.
 *   graph [LABEL]                     begins a graph, which has at least one node
 *   node WORD [LABEL [NUMBER ...]]    adds a node, numbered from 1 in its graph, with edge_lists.numbers NUMBERs
 *   edge FROM TO [TYPE]               adds an edge between two earlier nodes of the graph; without TYPE its type is "-"
 * The label "-" stands for an unknown one. */
#pragma once

#include "vpps_data.h"

/* An edge between two nodes, numbered from 0 within their graph; its type is an id of edge_lists.types. */
typedef struct vpps_edge {
    uint32_t from, to, type;
} vpps_edge;

typedef struct vpps_edge_lists {
    vpps_vocab *types;
    float *values;    /* features of the nodes, `numbers` per node */
    vpps_edge *edges; /* the edges of all graphs, graph after graph */
    struct vpps_edge_list {
        size_t first_node, first_edge;
        uint32_t n_edges;
    } * graphs;
    size_t n_edges;
    uint32_t numbers; /* number of features per node; the caller sets it before reading */
} vpps_edge_lists;

/* Makes an empty collection of graphs. Fails with MEMORY. */
vpps_status vpps_edge_lists_create(vpps_edge_lists **out);
void vpps_edge_lists_destroy(vpps_edge_lists *e);

/* Names the labels that a reader takes: labels of nodes, labels of graphs, or none. */
typedef enum vpps_edge_labels { VPPS_NODE_LABELS, VPPS_GRAPH_LABELS, VPPS_NO_LABELS } vpps_edge_labels;

/* Adds the graphs of a text to e, and one sentence per graph to `nodes`: words are the graph's nodes. With VPPS_NODE_LABELS the sentence's
 * tags are the nodes' labels (VPPS_NO_WORD: unlabelled), with VPPS_GRAPH_LABELS its label is the graph's. e and `nodes` must hold equally
 * many entries before. Adds nothing on failure. Fails with FORMAT, MEMORY, and STATE when earlier texts were read with other labels. */
vpps_status vpps_edge_lists_read_text(vpps_edge_lists *e, vpps_sentences *nodes, const char *name, const char *text,
                                      size_t len, vpps_edge_labels labels);

/* Finds the label in a line that begins with "node" (VPPS_NODE_LABELS) or "graph" (other `labels`): *at .. *label_end, an empty range if
 * the line has no label. Returns false for any other line. */
bool vpps_edge_lists_label(const char *begin, const char *end, vpps_edge_labels labels, const char **at,
                           const char **label_end);
