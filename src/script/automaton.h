/* automaton.h - a learned batching policy: an automaton whose state is the set of types with ready vertices (the frontier) chooses the type
 * that runs next (Chen et al. 2023, "ED-Batch", sections 2.2 and 2.3). Tabular Q-learning with N-step bootstrapping on one graph; the
 * result serves all graphs with the same types, whatever their sizes. */
#pragma once

#include "base/index.h"
#include "script/walk.h"

/* Encodings of a frontier as a state: X(id, name, most trials, text). SORT, MAX and BASE are the paper's encodings, which prefers SORT; its
 * appendix A.4 asks for finer ones where types alone do not suffice. */
#define VPPS_ENCODING_TABLE(X)                                                                                         \
    X(SORT, "sort", 350, "its types, from the one with the most vertices to the one with the fewest")                  \
    X(SHARE, "share", 200, "as sort, and how many times fewer than the most each has, in powers of 2")                 \
    X(PHASE, "phase", 200, "as sort, and how many eighths of the graph are left")                                      \
    X(MAX, "max", 50, "its types, and which has the most vertices")                                                    \
    X(BASE, "base", 50, "its types")                                                                                   \
    X(RATIO, "ratio", 150, "as sort, and whether all, half or less of what its own graph's frontier has are ready")

typedef enum vpps_encoding {
#define X(id, name, trials, text) VPPS_ENCODING_##id,
    VPPS_ENCODING_TABLE(X)
#undef X
        VPPS_ENCODINGS
} vpps_encoding;

const char *vpps_encoding_name(vpps_encoding encoding);
const char *vpps_encoding_text(vpps_encoding encoding);

/* A state of the automaton: the types with ready vertices in the encoding's order, each with its Q value, then more words. */
typedef struct vpps_state {
    uint32_t first, n; /* index of the state's first word in `words` and in `q`; number of types with ready vertices */
    uint32_t n_words;  /* number of words that encode the state; the first n are types */
} vpps_state;

typedef struct vpps_automaton {
    uint32_t encoding; /* vpps_encoding */
    uint32_t n_types;
    uint32_t trials; /* number of learning trials, including those of encodings tried earlier */
    /* for the graph that the automaton was learned on: number of batches that it needs, and a lower bound */
    uint32_t batches, bound;
    vpps_state *states;
    uint32_t n_states;
    uint32_t *words;
    float *q;
    uint32_t n_values;  /* number of words of all states together */
    vpps_index numbers; /* hash index of the states by their words */
} vpps_automaton;

enum {
    VPPS_LEARN_CHECK = 50, /* number of trials between two evaluations of the learned policy */
    /* Vertices that all trials together may run, per permitted trial: a larger graph gets fewer trials. 1,000 trials take about 1 s on a
     * core. */
    VPPS_LEARN_VERTICES = 20 * 1000
};

/* Learns an automaton for the given graph. Learning ends when the graph's lower bound of batches is reached or each encoding's trials are
 * used up. *a: the automaton that needs the fewest batches. Equal graphs give equal automata. False: out of memory. */
bool vpps_automaton_learn(vpps_automaton *a, const vpps_typed_graph *g);
void vpps_automaton_free(vpps_automaton *a);

/* Returns the type to run next: the one with the best Q value in the state, or, in an unknown state or with `a` NULL, with the highest
 * ratio. */
uint32_t vpps_automaton_next(const vpps_automaton *a, vpps_walk *w);

/* Returns the type on the frontier with the highest vpps_walk_ratio; at a tie, the first type. */
uint32_t vpps_best_ratio(vpps_walk *w);

/* Convert an automaton to bytes (malloc'd; NULL: out of memory) and back (false: the bytes are no automaton for n_types types). */
void *vpps_automaton_pack(const vpps_automaton *a, size_t *bytes);
bool vpps_automaton_unpack(vpps_automaton *a, uint32_t n_types, void *packed, size_t bytes);
