/* translate.h - what networks that translate share: the decoder, which makes the target's words one after the other.
 * The encoder is the network's own. Equations: translate.c. */
#ifndef VPPS_TRANSLATE_H
#define VPPS_TRANSLATE_H

#include "sequence.h"

/* What a translating network's struct begins with. The decoder is described by base.config (classes: the target's
 * words, embed, hidden, attention). */
typedef struct translate_net {
    part_net base; /* its classifier is the output layer */
    part_embedding target;
    part_recurrent decoder;
    vpps_param W_a; /* with attention */
    vpps_cell attention;
    vpps_cell turn;        /* of greedy search: a word */
    vpps_node *remembered; /* what attention reads of the latest source */
    uint32_t n_remembered;
} translate_net;

/* Parameters: target (table), decoder.*, with attention W_a, W_s, b_s. base.config is set, as part_create
 * does. */
vpps_status translate_declare(translate_net *t, vpps_model *model, part_unit unit);
vpps_status translate_record(translate_net *t, vpps_model *model);
void translate_destroy(void *net);

/* What a network's `encode` ends with: the decoder starts from the last of the n vertices, which scatter an LSTM's h and
 * c or a GRU's h, and attention reads the h of all but the first, the start (unless there is nothing else). */
vpps_status translate_encoded(translate_net *t, vpps_graph *g, const vpps_vertex *at, uint32_t n, net_decoding *d);

typedef vpps_status translate_encode(void *net, vpps_graph *g, const net_example *x, net_decoding *d);

/* A network's `add`, given its `encode`: then the decoder along the target, word by word as it is; position k says word
 * k + 1. */
vpps_status translate_add(void *net, vpps_graph *g, const net_example *x, translate_encode *encode, net_heads heads,
                          const net_scores *scores);
/* A network's `decode`, and its `greedy`. */
vpps_status translate_decode(void *net, vpps_graph *g, uint32_t word, net_decoding *d);
vpps_status translate_greedy(void *net, vpps_graph *g, const net_decoding *d, net_greedy *out);

#endif
