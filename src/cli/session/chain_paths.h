/* chain_paths.h - paths through the tags of a sentence, by scores of which tag follows which. */
#pragma once

#include "vpps_data.h"

/* Scores of which tag follows which. */
typedef struct tag_chain {
    uint32_t classes;   /* 0: there is no chain: tags do not depend on each other */
    float *next;        /* of tag j and, after it, tag i: [i * classes + j] */
    float *begin, *end; /* of the first tag and of the last */
} tag_chain;

/* The likeliest tags of n words together (Viterbi 1967). logits: each word's. Fails with MEMORY. */
vpps_status chain_decode(const tag_chain *ch, uint32_t n, const float *const *logits, int32_t *tags);

/* log_p[k * classes + i]: the log of the probability of tag i at word k, whatever the other tags are. Fails with
 * MEMORY. */
vpps_status chain_marginals(const tag_chain *ch, uint32_t n, const float *const *logits, float *log_p);
