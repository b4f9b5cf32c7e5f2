/* learned.h - learned batching policies: for each kind of graph, an automaton that chooses which vertex type (cell or op) runs next. */
#pragma once

#include "script/automaton.h"

/* A kind of graph: names of its vertex types (cells, ops), and which reads which. All batches of one network on one kind of data have the
 * same kind, whatever the network's size. */
typedef struct vpps_graph_kind {
    const char *names; /* names of the vertex types in graphs of this kind, sorted, with " | " between them */
    const void *key;
    size_t key_bytes;
} vpps_graph_kind;

/* Functions that store learned automata (policies that choose which type's vertices run next) between runs of a program. */
typedef struct vpps_policy_store {
    /* Returns a malloc'd copy of the stored automaton (learned policy), as vpps_automaton_pack made it; NULL: none is stored. */
    void *(*read)(const vpps_graph_kind *kind, size_t *bytes);
    void (*write)(const vpps_graph_kind *kind, const void *packed, size_t bytes);
} vpps_policy_store;

typedef struct vpps_learned_one {
    void *key;
    size_t key_bytes;
    vpps_automaton automaton;
} vpps_learned_one;

typedef struct vpps_learned {
    vpps_learned_one *all;
    uint32_t n;
    const vpps_policy_store *store; /* functions that store learned policies between runs; NULL: nothing is stored */
} vpps_learned;

/* Returns the automaton (learned policy) for a kind of graph: the one that `l` has; else the one that l->store reads (from an earlier run);
 * else one learned now from g, which l->store then writes. Valid until the next call. NULL: out of memory. */
const vpps_automaton *vpps_learned_for(vpps_learned *l, const vpps_typed_graph *g, const vpps_graph_kind *kind);
void vpps_learned_free(vpps_learned *l);
