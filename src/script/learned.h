/* learned.h - learned batching policies: for each kind of graph, an automaton that chooses which vertex type (cell or op) runs next. */
#pragma once

#include "script/automaton.h"

/* A kind of graph: names of its vertex types (cells, ops), and which reads which. All batches of one network on one kind of data have the
 * same kind, whatever the network's size. */
typedef struct vpps_graph_kind {
    const char *names; /* names of the cells and ops that the graph's vertices apply, sorted, with " | " between them */
    const void *key;
    size_t key_bytes;
} vpps_graph_kind;

/* Functions that store learned automata (policies that choose which type's vertices run next) between runs of a program. */
typedef struct vpps_policy_store {
    /* Returns a malloc'd copy of the learned rule (which cell runs next) that is stored for `kind`; NULL: none is. */
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
    const vpps_policy_store *store; /* saves learned rules (which cell runs next) for later runs; NULL: saves nothing */
} vpps_learned;

/* Returns a learned rule (automaton) that picks the cell to run next in graphs of one kind: from `l`, else from
 * l->store (an earlier run's), else learned now from g and stored. Valid until the next call. NULL: out of memory. */
const vpps_automaton *vpps_learned_for(vpps_learned *l, const vpps_typed_graph *g, const vpps_graph_kind *kind);
void vpps_learned_free(vpps_learned *l);
