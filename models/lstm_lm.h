/* lstm_lm.h - the LSTM language model; the networks that use it differ only in the length of their examples. */
#ifndef VPPS_LSTM_LM_H
#define VPPS_LSTM_LM_H

#include "sequence.h"

vpps_status lstm_lm_create(void **net, vpps_model *model, const net_config *config);
vpps_status lstm_lm_add(void *net, vpps_graph *g, const net_example *x, net_heads heads, const net_scores *scores);

/* A language model's function `decode` (models.h): adds one step of generation. Without states in d, the step is the first. */
vpps_status lstm_lm_decode(void *net, vpps_graph *g, uint32_t word, net_decoding *d);

/* Rows of a table of command-line options: hidden, embed, layers, dropout. */
#define LSTM_LM_OPTIONS                                                                                                \
    PART_HIDDEN("Size of the LSTM's states"), PART_EMBED("Size of a word's embedding"),                                \
        PART_LAYERS("Layers of LSTMs, each reads the one below"),                                                      \
        PART_DROPOUT("Dropout on embeddings, between layers and before the output layer")

#endif
