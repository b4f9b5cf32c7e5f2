/* automaton.h - a batching policy that is learned: which type runs next follows from which types are on the frontier (Chen
 * et al. 2023, "ED-Batch", sections 2.2 and 2.3). Tabular Q-learning with N-step bootstrapping on one graph; what is
 * learned serves all graphs with the same types, whatever their sizes. */
#pragma once

#include "base/index.h"
#include "script/walk.h"

/* Encodings, each of which says what a state knows of a frontier: X(id, name, trials at most, text). The paper has the first, the fourth
 * and the fifth, of which it prefers the first; its appendix A.4 asks for more where types do not tell enough. */
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

/* A state: types on the frontier, in the encoding's order, each with its value Q; and what else the encoding says. */
typedef struct vpps_state {
    uint32_t first, n; /* in words, and in q */
    uint32_t n_words;  /* the first n are types */
} vpps_state;

typedef struct vpps_automaton {
    uint32_t encoding; /* vpps_encoding */
    uint32_t n_types;
    uint32_t trials;         /* it was learned in, those of the encodings before included */
    uint32_t batches, bound; /* of the graph that it was learned on */
    vpps_state *states;
    uint32_t n_states;
    uint32_t *words;
    float *q;
    uint32_t n_values;  /* words of all states */
    vpps_index numbers; /* of states, by their words */
} vpps_automaton;

enum {
    VPPS_LEARN_CHECK = 50, /* trials from one look at what has been learned to the next */
    /* Vertices that run in each trial on average, at most: of larger graphs fewer trials are made. So 1,000 trials take about
     * a second of one core. */
    VPPS_LEARN_VERTICES = 20 * 1000
};

/* Learns an automaton for the given graph, until the graph's bound is reached, or the trials and vertices of each encoding are used up; *a
 * is the automaton that needs fewest batches. Equal graphs give equal automata. False: out of memory. */
bool vpps_automaton_learn(vpps_automaton *a, const vpps_typed_graph *g);
void vpps_automaton_free(vpps_automaton *a);

/* The type to run next: the best one of the state, or, in an unknown state, the one with the highest ratio. `a` NULL: always the latter. */
uint32_t vpps_automaton_next(const vpps_automaton *a, vpps_walk *w);

/* The type on the frontier with the highest ratio (walk.h); the first at a tie. */
uint32_t vpps_best_ratio(vpps_walk *w);

/* An automaton as bytes. pack: malloc'd; NULL: out of memory. unpack: false: the bytes are no automaton for so many types. */
void *vpps_automaton_pack(const vpps_automaton *a, size_t *bytes);
bool vpps_automaton_unpack(vpps_automaton *a, uint32_t n_types, void *packed, size_t bytes);
