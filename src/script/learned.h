/* learned.h - the automata of a handle: one for each kind of graph that it has seen. */
#pragma once

#include "script/automaton.h"

/* What tells one kind of graph from another: the types by name, and which of them reads which. It is the same for every batch
 * of one network on one kind of data, and for every size of the network. */
typedef struct vpps_graph_kind {
    const char *names; /* of the types, in their order, with " | " between them */
    const void *key;
    size_t key_bytes;
} vpps_graph_kind;

/* Where automata are kept from run to run. */
typedef struct vpps_policy_store {
    void *(*read)(const vpps_graph_kind *kind, size_t *bytes); /* malloc'd; NULL: there is none */
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
    const vpps_policy_store *store; /* NULL: none */
    uint64_t learn_ns;              /* learning took */
} vpps_learned;

/* The automaton for the graph: one that the handle has already, one from the store, or one that is learned on this graph now. NULL: out of
 * memory. It lives until the next call. */
const vpps_automaton *vpps_learned_for(vpps_learned *l, const vpps_typed_graph *g, const vpps_graph_kind *kind);
void vpps_learned_free(vpps_learned *l);
