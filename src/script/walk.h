/* walk.h - a graph whose vertices have types (cells or ops), and a walk through it, batch by batch: each batch runs all vertices of one
 * type that are ready (Chen et al. 2023, "ED-Batch", algorithm 1). G is the graph of the vertices that have not run. G^a has G's
 * vertices of type a, and an edge between two of them if a path of G, through vertices of any types, connects them. */
#pragma once

#include "base/base.h"

typedef struct vpps_typed_graph {
    uint32_t n, n_types;
    uint32_t *types;   /* for each vertex: the cell or op that it applies; a batch is of one type */
    uint32_t *first;   /* vertex v reads sources[first[v]] to sources[first[v + 1] - 1]; n + 1 numbers */
    uint32_t *sources; /* numbers of vertices that are read, each smaller than the reading vertex's number */
} vpps_typed_graph;

/* Computes a lower bound of the number of batches, for any policy: the sum, over all types, of the most vertices of the type on one path of
 * the graph (ED-Batch, equation 2). False: out of memory. */
bool vpps_batches_bound(const vpps_typed_graph *g, uint32_t *bound);

typedef struct vpps_walk {
    const vpps_typed_graph *graph;
    uint32_t *first_reader, *readers; /* vertex v is read by readers[first_reader[v]] to [first_reader[v + 1] - 1] */
    uint32_t *waiting;                /* for each vertex: number of the vertices that it reads and that have not run */
    uint32_t *next, *heads;           /* vertices that are ready to run: for each type a list, ended by UINT32_MAX */
    uint32_t *ready, *left; /* for each type: how many vertices can run next, and how many are in no batch yet */
    bool counted;           /* whether `blockers` and `unblocked` are valid (vpps_walk_ratio sets them) */
    /* for each vertex and type a: number of the vertices that it reads, that have not run, and that have type a or depend on type a */
    uint32_t *blockers;
    /* for each type: number of its vertices that have not run and depend on no other vertex of the type that has not run */
    uint32_t *unblocked;
    uint32_t *stack;
    uint32_t *words; /* scratch for vpps_automaton_next: two words for each cell or op, and one more */
    uint32_t n_left, n_batches;
} vpps_walk;

/* vpps_walk_open begins a walk (false: no memory); restart begins anew, with no vertex run; close frees it, also after a failed open. */
bool vpps_walk_open(vpps_walk *w, const vpps_typed_graph *g);
void vpps_walk_restart(vpps_walk *w);
void vpps_walk_close(vpps_walk *w);

/* Simulates one batch: counts all ready vertices of a type as run, then those as ready that waited only for them. Returns the batch's
 * number of vertices. Unless steps is NULL, sets steps[v] to the batch's index for each vertex v of the batch. */
uint32_t vpps_walk_run(vpps_walk *w, uint32_t type, uint32_t *steps);

/* Returns the number of ready vertices of a type, divided by the number of its vertices that have not run and depend on no other vertex of
 * the type that has not run (ED-Batch: |Frontier_a(G)| / |Frontier(G^a)|). Result 1: running this type next is optimal. */
double vpps_walk_ratio(vpps_walk *w, uint32_t type);
