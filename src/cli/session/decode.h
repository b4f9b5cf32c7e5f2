/* decode.h - translates sentences with an encoder-decoder network, by greedy search or beam search. */
#pragma once

#include "models.h"

typedef struct decoder_options {
    uint32_t beam; /* hypotheses kept per source sentence, at least 1; 1: greedy search */
    /* Largest number of words of a translation, end word included; 0: 10 plus twice the number of words (or characters) of the source. */
    uint32_t max_words;
    float length_penalty; /* exponent alpha of beam search's length penalty (decode_batch); 0: no penalty */
    uint32_t n_best;      /* number of translations returned per source, at most `beam`; 0: 1 */
} decoder_options;

/* The network that translates, the graph that it is recorded on, and the handle of its model. */
typedef struct decoder {
    vpps_handle *handle;
    vpps_graph *graph; /* cleared by decoding */
    const network *net;
    void *instance;
    uint32_t classes, end_word;
    decoder_options options;
} decoder;

typedef struct decoded {
    uint32_t n;
    /* n + 1 entries: source i has translations of[i] .. of[i + 1] - 1, best first, at least one. */
    size_t *of;
    size_t *first;   /* translation k is words[first[k] .. first[k + 1]), without the end word */
    uint32_t *words; /* class ids */
    double *scores;  /* score of each translation, by which translations are ranked */
} decoded;

/* A callback that sets *x to source sentence (or lattice) i; the pointers in *x must stay valid until the next call. */
typedef vpps_status decode_example(void *context, uint32_t i, net_example *x);

/* Translates n sources together. Greedy search that the device can do alone (decode_by_device) takes one forward pass; otherwise one pass
 * runs all encoders, and then each further pass computes the next word of all hypotheses.
 *
 * A hypothesis Y with log-probability log P(Y) has the score log P(Y) / lp(Y), lp(Y) = (5 + |Y|)^alpha / (5 + 1)^alpha (Wu et al. 2016,
 * "Google's Neural Machine Translation System", eq. 14 without the coverage term); |Y| counts the end word. Each step keeps the `beam` best
 * unfinished hypotheses of a source; a hypothesis that finishes counts if it is among the step's `beam` best. An unfinished hypothesis is
 * dropped once its score can no longer beat the last of the n_best best finished ones. A source is done when no hypothesis is left or
 * max_words is reached; unfinished hypotheses count only if none has finished. Ties go to the continuation of the better hypothesis, then
 * to the lower word id, then to the hypothesis that finished earlier.
 *
 * Free *out with decoded_destroy. Fails with NONFINITE (logits), SHAPE (the number of logits), MEMORY, and as `example`, the network and vpps_forward do; *out is then empty. */
vpps_status decode_batch(const decoder *d, uint32_t n, decode_example *example, void *context, decoded *out);
void decoded_destroy(decoded *out);

/* Returns log sum over j of exp(x[j]); not finite if the sum has no logarithm. */
double decode_log_sum(const float *x, uint32_t n);

/* Returns whether the device can choose words itself, so that decode_batch translates greedily in one forward pass. */
bool decode_by_device(const decoder *d);
