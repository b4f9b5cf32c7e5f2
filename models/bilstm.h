/* bilstm.h - two LSTMs over one sequence, the one from left to right, the other from right to left: what the taggers
 * share. */
#ifndef VPPS_BILSTM_H
#define VPPS_BILSTM_H

#include "sequence.h"

/* What the two LSTMs made of a sequence x_0 .. x_n-1: the vertex forward_at[k] has read x_0 .. x_k,
 * backward_at[k] x_n-1 .. x_k. */
typedef struct bilstm {
    part_recurrent forward, backward;
    vpps_node *x;
    vpps_vertex *forward_at, *backward_at;
    uint32_t room; /* elements of each of these three */
} bilstm;

/* The sizes of a bilstm: what both LSTMs read, and what each of them remembers. */
typedef struct bilstm_sizes {
    uint32_t inputs, forward, backward;
} bilstm_sizes;

/* Parameters are FORWARD.W_i, BACKWARD.W_i and so on. */
vpps_status bilstm_declare(bilstm *b, vpps_model *model, const char *forward, const char *backward, bilstm_sizes sizes);
vpps_status bilstm_record(bilstm *b, vpps_model *model, const char *forward, const char *backward);
void bilstm_free(bilstm *b);

/* Makes room in x, forward_at and backward_at for a sequence of n; the caller then fills x. Fails with MEMORY. */
vpps_status bilstm_reserve(bilstm *b, uint32_t n);

/* Runs both over x_0 .. x_n-1. */
void bilstm_run(bilstm *b, vpps_graph *g, uint32_t n);

/* A tagger's second half, the same whatever x is: the tag of word k from [h_f(k); h_b(k)]. The parameters are
 * forward.*, backward.* and the classifier's. */
vpps_status bilstm_declare_tagger(bilstm *b, part_classifier *c, vpps_model *model, const net_config *config);
vpps_status bilstm_tag(bilstm *b, const part_classifier *c, vpps_graph *g, const vpps_sentence *sentence,
                       net_heads heads, const net_scores *scores);

/* Rows of both taggers' option tables. */
#define BILSTM_OPTIONS                                                                                                 \
    PART_HIDDEN("Size of the state of each of the two LSTMs"),                                                         \
        {"mlp", "N", "Units of the classifier's hidden layer; 0: none", OPTION_U32, offsetof(net_config, mlp), 0,      \
         65536, true},                                                                                                 \
        PART_DROPOUT("Dropout on embeddings and before each layer of the classifier")

#endif
