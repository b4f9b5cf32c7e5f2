/* automaton.h - a learned batching policy: an automaton that chooses which vertex type (cell or op) runs next. The automaton's state is the
 * set of types with ready vertices (the frontier; Chen et al. 2023, "ED-Batch", sections 2.2 and 2.3). It is learned on one graph, by
 * tabular Q-learning with N-step bootstrapping, and serves all graphs with the same types, whatever their sizes. */
#pragma once

#include "base/index.h"
#include "script/walk.h"

/* Ways to encode a state, i.e. the set of cells and ops that have vertices ready to run. ED-Batch (Chen et al. 2023) has SORT, MAX and BASE,
 * and prefers SORT. SHARE, PHASE and RATIO add numbers, for graphs in which SORT gives too few states. */
typedef enum vpps_encoding {
    VPPS_ENCODING_SORT,  /* its types, from the one with the most vertices to the one with the fewest */
    VPPS_ENCODING_SHARE, /* as SORT, and how many times fewer than the most each has, in powers of 2 */
    VPPS_ENCODING_PHASE, /* as SORT, and how many eighths of the graph are left */
    VPPS_ENCODING_MAX,   /* its types, and which has the most vertices */
    VPPS_ENCODING_BASE,  /* its types */
    VPPS_ENCODING_RATIO, /* as SORT, and whether all, half or less of what its own graph's frontier has are ready */
    VPPS_ENCODINGS
} vpps_encoding;

/* A state of the automaton, encoded as words: first the numbers of the types that have ready vertices, in the order of the encoding
 * (vpps_encoding), each with its Q value; then further numbers, if the encoding has any. */
typedef struct vpps_state {
    /* first: index of the state's first element in vpps_automaton.words and .q; n: number of its Q values */
    uint32_t first, n;
    /* words that encode the state: numbers of the types with ready vertices, then what the encoding SHARE, PHASE or RATIO adds */
    uint32_t n_words;
} vpps_state;

typedef struct vpps_automaton {
    uint32_t encoding; /* vpps_encoding */
    uint32_t n_types;
    uint32_t trials; /* number of learning trials (runs over the graph), summed over the tried ways to encode a state */
    /* For the graph from which the automaton was learned: number of batches into which it divides the graph; lower bound for any policy. */
    uint32_t batches, bound;
    vpps_state *states;
    uint32_t n_states;
    uint32_t *words;
    float *q;
    uint32_t n_values;  /* number of elements of `words`, and of `q` */
    vpps_index numbers; /* index that finds a state's number by a hash of its words */
} vpps_automaton;

enum {
    VPPS_LEARN_CHECK = 50, /* number of trials (runs over the graph) between two evaluations of the learned policy */
    /* Limits the time to learn a policy on a large graph: the trials (runs over the graph) with one encoding of states, at most n (table
     * above), run at most n * VPPS_LEARN_VERTICES vertices together: about 1 s on a core. */
    VPPS_LEARN_VERTICES = 20 * 1000
};

/* Learns, for graph g, an automaton: a policy that divides a graph into batches (sets of vertices of one type that run together). Tries
 * each way of encoding a state (vpps_encoding) with its own number of learning trials; *a becomes the automaton that divides g into the
 * fewest batches. Ends when the number of batches reaches its lower bound (vpps_batches_bound), or when all trials are used up. Equal
 * graphs give equal automata. False: no memory. */
bool vpps_automaton_learn(vpps_automaton *a, const vpps_typed_graph *g);
void vpps_automaton_free(vpps_automaton *a);

/* Returns the type that runs next in w, which simulates a graph's batches: the type with the best Q value in its state. If the state is
 * unknown or `a` is NULL: the type with the highest vpps_walk_ratio (ED-Batch's sufficient condition, section 5.3); at a tie, the first. */
uint32_t vpps_automaton_next(const vpps_automaton *a, vpps_walk *w);

/* Returns the index in `words` and `q` of a state's greatest Q value; the cell or op words[index] runs next. */
uint32_t vpps_automaton_best(const vpps_automaton *a, const vpps_state *s);

/* Returns the automaton as *bytes bytes, which the caller frees; NULL: out of memory. */
void *vpps_automaton_pack(const vpps_automaton *a, size_t *bytes);
/* Turns such bytes back into an automaton. Returns false if they are none, or one for another number of vertex types (cells, ops). */
bool vpps_automaton_unpack(vpps_automaton *a, uint32_t n_types, void *packed, size_t bytes);
