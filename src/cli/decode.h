/* decode.h - translations of a network of pairs: greedy search and beam search. */
#pragma once

#include "models.h"

typedef struct decoder_options {
    uint32_t beam;        /* hypotheses of a source that are kept; 1: greedy search */
    uint32_t max_words;   /* of a translation, its end word counted; 0: 10 and twice the source's words or characters */
    float length_penalty; /* alpha below; 0: none. Greedy search has none */
    uint32_t n_best;      /* translations of a source that are told, at most as many as `beam`; 0: 1 */
} decoder_options;

/* Whose translations: a network, as it was recorded on a graph, and the handle of its model. */
typedef struct decoder {
    vpps_handle *handle;
    vpps_graph *graph; /* is cleared */
    const network *net;
    void *instance;
    uint32_t classes, end_word;
    bool by_host; /* states and memory come to the host between words; else they stay on the device while it has room */
    decoder_options options;
} decoder;

typedef struct decoded {
    uint32_t n;
    size_t *of; /* n + 1: source i's translations are those from of[i] up to of[i + 1], the best first; at least one */
    size_t *first;   /* translation k is words[first[k] .. first[k + 1]), without the end word */
    uint32_t *words; /* ids of classes */
    double *scores;  /* of each translation: what they are ranked by */
} decoded;

/* Room for n sources' `total` translations. False: out of memory. */
bool decoded_create(decoded *out, uint32_t n, size_t total);

/* Makes *x source number i; what it points to needs to live until the next call. */
typedef vpps_status decode_example(void *context, uint32_t i, net_example *x);

/* Translates n sources together. Greedy search, where the device can decide (decode_by_device): one forward pass for all.
 * Else one for all encoders, then one for each word of all hypotheses.
 *
 * A hypothesis Y with log-probability log P(Y) has the score log P(Y) / lp(Y), lp(Y) = (5 + |Y|)^alpha / (5 + 1)^alpha, of Wu et al. 2016
 * ("Google's Neural Machine Translation System", eq. 14 without the coverage of sources); |Y| counts the end word. At every step a source
 * keeps the `beam` best hypotheses that go on; one that ends counts if it is among the `beam` best of the step. A hypothesis that goes on
 * is dropped once its score cannot become better than that of the last of the n_best best ended ones; a source is done when it has none
 * left, or max_words. What has not ended by then counts only if nothing has. Among equals, the continuation of the better hypothesis wins,
 * then the word with the lower id, and a hypothesis that ended earlier.
 *
 * Frees with decoded_destroy. Fails with ARGUMENT (options, the network's kind), NONFINITE (logits), SHAPE (their
 * number), MEMORY, and as `example`, the network and vpps_forward do; *out is then empty. */
vpps_status decode_batch(const decoder *d, uint32_t n, decode_example *example, void *context, decoded *out);
void decoded_destroy(decoded *out);

/* How long the source's translation may become, its end word counted. */
uint64_t decode_most_words(const decoder *d, const net_example *x);

/* decode_greedy.c: greedy search as one forward pass; may it be made so? */
bool decode_by_device(const decoder *d);
vpps_status decode_greedy(const decoder *d, uint32_t n, decode_example *example, void *context, decoded *out);
