/* chain_paths.h - finds a sentence's likeliest tags, given scores of which tag follows which. */
#pragma once

#include "vpps_data.h"

/* Scores of successive tags, which are added to the network's logits to choose a sentence's tags together. */
typedef struct tag_chain {
    uint32_t classes;   /* number of tags; 0: tags do not depend on each other */
    float *next;        /* next[i * classes + j]: score of tag i directly after tag j */
    float *begin, *end; /* begin: score of each tag as a sentence's first tag; end: as its last tag */
} tag_chain;

/* Sets tags[0 .. n) to the likeliest tags of n words together (Viterbi 1967), given each word's logits. Fails with MEMORY. */
vpps_status chain_decode(const tag_chain *ch, uint32_t n, const float *const *logits, int32_t *tags);

/* Sets log_p[k * classes + i] to the log of tag i's marginal probability at word k. log_p may be the array of logits. Fails with MEMORY. */
vpps_status chain_marginals(const tag_chain *ch, uint32_t n, const float *const *logits, float *log_p);
