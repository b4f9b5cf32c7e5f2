/* needs.h - finds the vertices and gradients that the loss or the request needs, and what the compiled cells must compute. SCC: a strongly
 * connected component of the graph of vertex types; this graph has an edge where one type reads another. */
#pragma once

#include "script/read.h"

typedef struct vpps_type_needs {
    uint32_t scc;            /* number of the cell's or op's strongly connected component (SCC), in topological order */
    bool needed;             /* whether the loss or the request needs a vertex of the type */
    uint64_t linked;         /* outputs, as bits, that other vertices read */
    uint64_t differentiable; /* outputs (bits) that depend on a trained parameter or a requested gradient's node */
    vpps_cell_needs cell;
} vpps_type_needs;

typedef struct vpps_batch_needs {
    const vpps_reading *reading;
    const bool *needed;        /* for each vertex: whether the loss or the request needs it */
    const uint64_t *gradients; /* for each vertex: the set of its outputs that have a gradient, as bits */
    /* for each vertex: its level, above the levels of vertices it reads that have its own cell, or one that reads it back, directly or not (SCC) */
    const uint32_t *levels;
    const vpps_type_needs *types;
    const uint64_t *edges; /* bit matrix: whether vertices of the row's type read vertices of the column's type */
    uint32_t edge_words;   /* number of 64-bit words in a row of the bit matrix `edges` */
    uint32_t n_sccs;
} vpps_batch_needs;

/* Finds the vertices and gradients to be computed, and which vertex types (cells) read which. False: out of memory. */
bool vpps_find_needs(const vpps_reading *r, vpps_arena *arena, vpps_batch_needs *out);

/* Returns whether vertices of type `reader` read vertices of type `read`. */
static inline bool vpps_reads(const vpps_batch_needs *n, uint32_t reader, uint32_t read) {
    return n->edges[(size_t)reader * n->edge_words + read / 64] >> (read % 64) & 1;
}

/* Returns how many needed cells and ops component number scc has: types that read each other. If several, a policy orders their vertices. */
static inline uint32_t vpps_types_of_scc(const vpps_batch_needs *n, uint32_t scc) {
    uint32_t count = 0;
    for (uint32_t t = 0; t < n->reading->n_types; t++) count += n->types[t].scc == scc && n->types[t].needed;
    return count;
}
