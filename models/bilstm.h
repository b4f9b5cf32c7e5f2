/* bilstm.h - bidirectional LSTMs for the taggers: two LSTMs over one sequence, left to right and right to left, in one layer or more.
 *
 * At position k layer 1 reads x_k. Both LSTMs of every other layer read D([h_f(k); h_b(k)]) of the preceding layer, where h_f and h_b are
 * its two LSTMs' states and D is dropout. */
#ifndef VPPS_BILSTM_H
#define VPPS_BILSTM_H

#include "crf.h"
#include "sequence.h"

/* A bidirectional LSTM over a sequence x_0 .. x_n-1. forward_at[k] is the last layer's vertex that has read x_0 .. x_k,
 * backward_at[k] the one that has read x_n-1 .. x_k. */
typedef struct bilstm {
    part_stack forward, backward;
    part_crf crf; /* a tagger's conditional random field, used if net_config.crf */
    /* cell that outputs dropout([h_f; h_b]), h_f from child 0, a forward vertex, h_b from child 1, a backward one */
    vpps_cell join;
    vpps_node *x;
    vpps_vertex *forward_at, *backward_at;
    uint32_t room; /* capacity of x, forward_at and backward_at */
} bilstm;

/* Sizes: the elements of x, the elements of each LSTM's state, and the number of layers (0: one). */
typedef struct bilstm_sizes {
    uint32_t inputs, forward, backward, layers;
} bilstm_sizes;

/* bilstm_declare declares the LSTMs' parameters (FORWARD.W_i, BACKWARD.W_i, ..., in layer 2 FORWARD2.W_i, ...), bilstm_record records their
 * cells. With more than one layer, also call bilstm_record_join. */
vpps_status bilstm_declare(bilstm *b, vpps_model *model, const char *forward, const char *backward, bilstm_sizes sizes);
vpps_status bilstm_record(bilstm *b, vpps_model *model, const char *forward, const char *backward);
/* Records the cell `join`, which outputs D([h_f; h_b]) with the network's dropout D. */
vpps_status bilstm_record_join(bilstm *b, const net_config *config, vpps_model *model, const char *name);
void bilstm_free(bilstm *b);

/* Grows x, forward_at and backward_at to n entries; the caller then fills x. Fails with MEMORY. */
vpps_status bilstm_reserve(bilstm *b, uint32_t n);

/* Runs all layers over x_0 .. x_n-1, and overwrites x. */
void bilstm_run(bilstm *b, vpps_graph *g, uint32_t n);
/* Applies the cell `join` to a forward and a backward vertex. */
vpps_node bilstm_join(const bilstm *b, vpps_graph *g, vpps_vertex forward, vpps_vertex backward);

/* A tagger without its embeddings: reads x, and predicts word k's tag from [h_f(k); h_b(k)] of the last layer. bilstm_declare_tagger
 * declares forward.*, backward.* and the classifier's parameters; bilstm_record_tagger records the cells, whose names begin with `name`;
 * bilstm_tag adds a sentence to a graph. */
vpps_status bilstm_declare_tagger(bilstm *b, part_classifier *c, vpps_model *model, const net_config *config);
vpps_status bilstm_record_tagger(bilstm *b, part_classifier *c, vpps_model *model, const char *name);
vpps_status bilstm_tag(bilstm *b, const part_classifier *c, vpps_graph *g, const vpps_sentence *sentence,
                       net_heads heads, const net_scores *scores);

/* A tagger's function `chain` (models.h): sets `chain` to the scores of pairs of successive tags. */
void bilstm_chain(const bilstm *b, vpps_graph *g, vpps_node chain[NET_CHAIN]);

/* Rows for the taggers' tables of command-line options. */
#define BILSTM_OPTIONS                                                                                                 \
    PART_HIDDEN("Size of the state of each of the two LSTMs"),                                                         \
        PART_LAYERS("Layers of two LSTMs, which read both of the layer below"),                                        \
        {"mlp", "N", "Units of the classifier's hidden layer; 0: none", OPTION_U32, offsetof(net_config, mlp), 0,      \
         65536, true},                                                                                                 \
        PART_DROPOUT("Dropout on embeddings, between layers and before each layer of the classifier")

#endif
