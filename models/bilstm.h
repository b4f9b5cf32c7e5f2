/* bilstm.h - bidirectional LSTMs for the taggers: two LSTMs over one sequence, left to right and right to left, in one layer or more.
 *
 * At position k layer 1 reads x_k. Both LSTMs of every other layer read D([h_f(k); h_b(k)]) of the preceding layer: h_f and h_b are the
 * states of that layer's LSTMs, D is dropout. */
#ifndef VPPS_BILSTM_H
#define VPPS_BILSTM_H

#include "sequence.h"

/* A bidirectional LSTM over a sequence x_0 .. x_n-1. forward_at[k] is the last layer's vertex that has read x_0 .. x_k,
 * backward_at[k] the one that has read x_n-1 .. x_k. */
typedef struct bilstm {
    part_stack forward, backward;
    /* cell that outputs dropout([h_f; h_b]) of two children: h_f of child 0, a forward vertex, and h_b of child 1, a backward vertex */
    vpps_cell join;
    vpps_node *x;
    vpps_vertex *forward_at, *backward_at;
} bilstm;

/* Sizes of a bilstm, and how the names of its parameters and cells begin (forward, backward, join). `join` NULL: no cell `join`. */
typedef struct bilstm_shape {
    const char *forward, *backward, *join;
    uint32_t inputs, forward_hidden, backward_hidden; /* elements of x, and of each LSTM's state */
    uint32_t layers;                                  /* 0: one */
} bilstm_shape;

/* Adds the LSTMs to `model`: parameters FORWARD.W_i, BACKWARD.W_i, ... (in layer 2 FORWARD2.W_i, ...), cells NAME
 * FORWARD, NAME BACKWARD and, unless shape.join is NULL, NAME JOIN (b->join, which concatenates both LSTMs' states).
 * FORWARD, BACKWARD and JOIN stand for the strings in `shape`, NAME for the network's name. */
vpps_status bilstm_make(bilstm *b, const part_net *net, vpps_model *model, bilstm_shape shape);

/* Makes room for n entries of x, forward_at and backward_at in `memory`; the caller then fills x. Fails with MEMORY. */
vpps_status bilstm_reserve(bilstm *b, part_memory *memory, uint32_t n);

/* Runs all layers over x_0 .. x_n-1, and overwrites x. */
void bilstm_run(bilstm *b, vpps_graph *g, uint32_t n);
/* Applies the cell `join` to a forward and a backward vertex. */
vpps_node bilstm_join(const bilstm *b, vpps_graph *g, vpps_vertex forward, vpps_vertex backward);

/* A network that predicts from [h_f(k); h_b(k)] of the last layer. */
typedef struct bilstm_net {
    part_net base;
    part_embedding words;
    bilstm sentence;
} bilstm_net;

/* A network's `build`: bilstm_words makes the embeddings of words, bilstm_predictor the rest, bilstm_build both. Names of cells begin with
 * the network's. */
vpps_status bilstm_words(bilstm_net *n, vpps_model *model);
vpps_status bilstm_predictor(bilstm_net *n, vpps_model *model);
vpps_status bilstm_build(void *net, vpps_model *model);
/* Sets x to the embeddings of a sentence's words. Fails with MEMORY. */
vpps_status bilstm_embed(bilstm_net *n, vpps_graph *g, const vpps_sentence *sentence);
/* Runs a tagger over x, and predicts the tags of the words. */
vpps_status bilstm_tag(bilstm_net *n, vpps_graph *g, const vpps_sentence *sentence, net_heads heads,
                       const net_scores *scores);

/* Rows for the taggers' tables of command-line options. */
#define BILSTM_OPTIONS                                                                                                 \
    PART_HIDDEN("Size of the state of each of the two LSTMs"),                                                         \
        PART_LAYERS("Layers of two LSTMs, which read both of the layer below"),                                        \
        {"mlp", "N", "Units of the classifier's hidden layer; 0: none", OPTION_U32, offsetof(net_config, mlp), 0,      \
         65536, true},                                                                                                 \
        PART_DROPOUT("Dropout on embeddings, between layers and before each layer of the classifier")

#endif
