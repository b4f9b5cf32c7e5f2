/* translate.h - the decoder of translating networks, which predicts the target's words one after the other. Each
 * network has its own encoder. Equations: translate.c. */
#ifndef VPPS_TRANSLATE_H
#define VPPS_TRANSLATE_H

#include "sequence.h"

/* The decoder: first part of a translating network's struct. The decoder depends on these members of base.config: classes (number of words
 * of the target), embed, hidden, attention, input_feeding. */
typedef struct translate_net {
    part_net base; /* base.classifier is the output layer */
    part_embedding target;
    part_stack decoder;
    vpps_param W_a; /* exists with attention */
    vpps_cell attention;
    vpps_cell fed_step; /* with input feeding: a decoder step, all layers and attention in one cell */
    vpps_cell turn;     /* greedy search: the cell that chooses one word */
} translate_net;

/* Declares the parameters target (table), decoder.*, W_a (with attention), W_s and b_s, and records the cells. `decoder` is the shape of
 * the decoder's layers, which read words of the target. */
vpps_status translate_make(translate_net *t, vpps_model *model, part_stack_shape decoder);

/* Sets d to the values that the decoder reads from an encoder's vertices, which scatter (output) an LSTM's h and c, or a GRU's h. The
 * decoder starts from `last`, one vertex per layer. Attention reads h of at[1] .. at[n - 1], or of at[0], the start, if n is 1. */
vpps_status translate_encoded(translate_net *t, vpps_graph *g, const vpps_vertex *at, uint32_t n,
                              const vpps_vertex *last, net_decoding *d);

/* A network's `add`: adds the encoder (`encode`), then the decoder, which reads the target's words. Position k predicts word k + 1. */
vpps_status translate_add(void *net, vpps_graph *g, const net_example *x, net_heads heads, const net_scores *scores);
/* translate_decode and translate_greedy are a translating network's functions `decode` and `greedy` (models.h). */
vpps_status translate_decode(void *net, vpps_graph *g, uint32_t word, net_decoding *d);
vpps_status translate_greedy(void *net, vpps_graph *g, const net_decoding *d, net_greedy *out);

#endif
