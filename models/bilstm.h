/* bilstm.h - two LSTMs over one sequence, the one from left to right, the other from right to left, in one
 * layer or more: what the taggers share.
 *
 * Layer 1 reads x_k, every other layer reads D([h_f(k); h_b(k)]) of the layer below it, where D is dropout: both of
 * its LSTMs read the same. */
#ifndef VPPS_BILSTM_H
#define VPPS_BILSTM_H

#include "crf.h"
#include "sequence.h"

/* The vertices of the last layer's two LSTMs over a sequence x_0 .. x_n-1: forward_at[k] has read x_0 .. x_k, backward_at[k] x_n-1 ..
 * x_k. */
typedef struct bilstm {
    part_stack forward, backward;
    part_crf crf;   /* of a tagger, with net_config.crf */
    vpps_cell join; /* children: a vertex of each; pushes D([h_f; h_b]) */
    vpps_node *x;
    vpps_vertex *forward_at, *backward_at;
    uint32_t room; /* elements of each of these three */
} bilstm;

/* The sizes of a bilstm: what both LSTMs read, what each of them remembers, and how many layers there are (0: one). */
typedef struct bilstm_sizes {
    uint32_t inputs, forward, backward, layers;
} bilstm_sizes;

/* Parameters are FORWARD.W_i, BACKWARD.W_i and so on, in layer 2 FORWARD2.W_i and BACKWARD2.W_i. Where there are more
 * layers than one, record the join, too. */
vpps_status bilstm_declare(bilstm *b, vpps_model *model, const char *forward, const char *backward, bilstm_sizes sizes);
vpps_status bilstm_record(bilstm *b, vpps_model *model, const char *forward, const char *backward);
/* Records `join`, with the network's dropout. */
vpps_status bilstm_record_join(bilstm *b, const net_config *config, vpps_model *model, const char *name);
void bilstm_free(bilstm *b);

/* Makes room in x, forward_at and backward_at for a sequence of n; the caller then fills x. Fails with MEMORY. */
vpps_status bilstm_reserve(bilstm *b, uint32_t n);

/* Runs all layers over x_0 .. x_n-1, and overwrites x. */
void bilstm_run(bilstm *b, vpps_graph *g, uint32_t n);
/* Joins both vertices by the cell `join`. */
vpps_node bilstm_join(const bilstm *b, vpps_graph *g, vpps_vertex forward, vpps_vertex backward);

/* A tagger's second half, independent of the origin of x: the tag of word k from [h_f(k); h_b(k)] of the last layer. The parameters are
 * forward.*, backward.* and the classifier's. Cells are called NAME forward, and so on. */
vpps_status bilstm_declare_tagger(bilstm *b, part_classifier *c, vpps_model *model, const net_config *config);
vpps_status bilstm_record_tagger(bilstm *b, part_classifier *c, vpps_model *model, const char *name);
vpps_status bilstm_tag(bilstm *b, const part_classifier *c, vpps_graph *g, const vpps_sentence *sentence,
                       net_heads heads, const net_scores *scores);

/* `chain` of a tagger. */
void bilstm_chain(const bilstm *b, vpps_graph *g, vpps_node chain[NET_CHAIN]);

/* Rows of both taggers' option tables. */
#define BILSTM_OPTIONS                                                                                                 \
    PART_HIDDEN("Size of the state of each of the two LSTMs"),                                                         \
        PART_LAYERS("Layers of two LSTMs, which read both of the layer below"),                                        \
        {"mlp", "N", "Units of the classifier's hidden layer; 0: none", OPTION_U32, offsetof(net_config, mlp), 0,      \
         65536, true},                                                                                                 \
        PART_DROPOUT("Dropout on embeddings, between layers and before each layer of the classifier")

#endif
