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
    vpps_node *remembered; /* for the encoder to fill: see translate_remember */
    uint32_t n_remembered;
} translate_net;

/* Parameters: target (table), decoder.*, with attention W_a, W_s, b_s. base.config is set, as part_create
 * does. */
vpps_status translate_declare(translate_net *t, vpps_model *model, part_unit unit);
vpps_status translate_record(translate_net *t, vpps_graph *g);
void translate_destroy(void *net);

/* For encoders: room for n memory vectors, which live until the next call; without attention, or out of memory, NULL.
 * An encoder sets d's states to what the decoder starts from, `hidden` elements each (an LSTM: h, c; a GRU: h), and
 * with attention d's memory to at least one vector of `hidden` elements. */
vpps_node *translate_remember(translate_net *t, uint32_t n);

/* The decoder along the target, word by word as it is: position k says word k + 1. `d` is as encode left it. */
vpps_status translate_add(translate_net *t, vpps_graph *g, const net_decoding *d, const vpps_sentence *target,
                          net_heads heads, const net_scores *scores);
/* A network's `decode`. */
vpps_status translate_decode(void *net, vpps_graph *g, uint32_t word, net_decoding *d);

#endif
