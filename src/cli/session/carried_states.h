/* carried_states.h - recurrent states that a network carries from one piece of a text to the next (--carry).
 *
 * The text is cut into as many streams as a batch has examples. A stream is a sequence of pieces; lengths differ by at most one piece. Each
 * batch holds the next piece of every stream; gradients do not cross the border between pieces. The states stay on the device. */
#pragma once

#include "models.h"

/* The recurrent states of one stream (sequence of pieces of text, of which a batch reads one piece). */
typedef struct carry_stream {
    /* states: after the piece of the stream's text that the current batch reads; before: after the preceding piece */
    vpps_value states[NET_STATES], before[NET_STATES];
} carry_stream;

typedef struct carry {
    carry_stream *streams;
    uint32_t n_streams, n_states; /* n_states: recurrent states of each text (stream); 0: no graph has run yet */
    /* number of the stream (sequence of pieces of text) of the next graph's first example */
    uint32_t first;
} carry;

/* Orders n pieces of text for batches: the first piece of each stream, then the second piece of each, and so on. */
void carry_order(const uint32_t *examples, uint32_t n, uint32_t n_streams, uint32_t *order);

/* Begins to read n_streams texts piece by piece; no text has recurrent states yet. Fails with MEMORY. Call carry_free in any case, before
 * the engine's handle (vpps_handle) is destroyed. */
vpps_status carry_open(carry *c, uint32_t n_streams);
void carry_free(carry *c, vpps_handle *h);

/* carry_take, called before example i is added to the graph, sets d to the states that the example begins with. carry_keep, called
 * afterwards, stores the states in d that the example ends with. They fail as vpps_kept and vpps_keep do. */
void carry_take(const carry *c, vpps_handle *h, vpps_graph *g, uint32_t i, net_decoding *d);
vpps_status carry_keep(carry *c, vpps_handle *h, vpps_graph *g, uint32_t i, const net_decoding *d);

/* Writes all streams' recurrent states as text, which the caller frees. Fails with MEMORY, or as vpps_read_kept. */
vpps_status carry_to_text(const carry *c, vpps_handle *h, char **out);
/* Sets the network's recurrent states, a set for each of the n_streams texts that are read side by side, from what carry_to_text wrote to
 * checkpoint `path`. Fails with MEMORY, FORMAT (states of another number of texts), or as vpps_keep_data does. */
vpps_status carry_from_text(carry *c, vpps_handle *h, const char *path, const char *text);
