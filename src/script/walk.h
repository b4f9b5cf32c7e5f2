/* walk.h - a graph whose vertices have types, and a walk through it: one batch after the other, all of one type that are
 * ready (Chen et al. 2023, "ED-Batch", algorithm 1). G is what has not run; G^a its vertices of type a, where one
 * comes after another if a path of G, through whatever types, leads there. */
#pragma once

#include "base/base.h"

typedef struct vpps_typed_graph {
    uint32_t n, n_types;
    uint32_t *types;   /* of each vertex */
    uint32_t *first;   /* [n + 1]: what vertex v reads is sources[first[v]] up to sources[first[v + 1]] */
    uint32_t *sources; /* vertices before the reader */
} vpps_typed_graph;

void vpps_typed_graph_free(vpps_typed_graph *g);

/* The depth of every vertex: 0 where it reads nothing. */
void vpps_typed_depths(const vpps_typed_graph *g, uint32_t *depths);

/* A lower bound on any policy's batches: the sum over types of the depth of G^a (ED-Batch, equation 2). False: out of memory. */
bool vpps_batches_bound(const vpps_typed_graph *g, uint32_t *bound);

typedef struct vpps_walk {
    const vpps_typed_graph *graph;
    uint32_t *first_reader, *readers; /* as first and sources, the other way round */
    uint32_t *waiting;                /* of each vertex: sources that have not run */
    uint32_t *next, *heads;           /* the frontier, a list a type; ends with UINT32_MAX */
    uint32_t *ready, *left;           /* of each type: vertices on the frontier, and in G */
    uint64_t *depth_sums;             /* of each type: of its vertices in G */
    uint32_t *depths;
    bool counted;        /* the next two are up to date: they are computed when a ratio is first asked for */
    uint32_t *blockers;  /* of each vertex and type a: sources that are, or come after, vertices of type a in G */
    uint32_t *unblocked; /* of each type a: vertices of G^a that read nothing of it */
    uint32_t *stack;
    uint32_t *words; /* for automata: two a type, and one */
    uint32_t n_left, n_batches;
} vpps_walk;

/* A walk at its beginning. False: out of memory. Close it in any case. */
bool vpps_walk_open(vpps_walk *w, const vpps_typed_graph *g);
void vpps_walk_restart(vpps_walk *w);
void vpps_walk_close(vpps_walk *w);

/* Runs the frontier's vertices of a type and returns their number; their batch's number goes to `steps`, which may be NULL. */
uint32_t vpps_walk_run(vpps_walk *w, uint32_t type, uint32_t *steps);

/* |Frontier_a(G)| / |Frontier(G^a)|: 1 where a shortest sequence of batches begins with type a (lemma 2.1). The type must
 * be on the frontier. */
double vpps_walk_ratio(vpps_walk *w, uint32_t type);
