/* needs.h - what the loss or the request needs: which vertices, which gradients of their outputs, and so which compiled cells. Here a
 * strongly connected component of the types' graph is called a part, since components are those of the inputs' graph (components.h). */
#pragma once

#include "script/read.h"

typedef struct vpps_type_needs {
    uint32_t part;   /* strongly connected component, in topological order */
    bool needed;     /* a vertex of the type is */
    uint64_t linked; /* outputs that vertices read */
    vpps_cell_needs cell;
} vpps_type_needs;

typedef struct vpps_batch_needs {
    const vpps_reading *reading;
    const bool *needed;        /* of each vertex: by the loss or the request */
    const uint64_t *gradients; /* of each vertex, bit k: output k has a gradient */
    const uint32_t *levels;    /* of each vertex: after all vertices of its part that it reads */
    const vpps_type_needs *types;
    const uint64_t *edges; /* types x types bits: row reads column */
    uint32_t edge_words;   /* of a row */
    uint32_t n_parts;
} vpps_batch_needs;

/* Finds what a reading needs. False: out of memory. Types keep the parts that are found, as the guess for the next batch. */
bool vpps_find_needs(const vpps_reading *r, vpps_arena *arena, vpps_batch_needs *out);

/* Does a type read another? */
static inline bool vpps_reads(const vpps_batch_needs *n, uint32_t reader, uint32_t read) {
    return n->edges[(size_t)reader * n->edge_words + read / 64] >> (read % 64) & 1;
}

/* How many types of a part a policy can choose from. */
static inline uint32_t vpps_types_of_part(const vpps_batch_needs *n, uint32_t part) {
    uint32_t count = 0;
    for (uint32_t t = 0; t < n->reading->n_types; t++) count += n->types[t].part == part && n->types[t].needed;
    return count;
}
