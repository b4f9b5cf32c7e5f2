/* carry.h - recurrent states that a network carries from one piece of a text to the next (--carry).
 *
 * The text is cut into as many streams as a batch has examples. A stream is a sequence of pieces; lengths differ by
 * at most one piece. Each batch holds the next piece of every stream; gradients do not cross the border between
 * pieces. The states stay on the device. */
#pragma once

#include "models.h"

/* The states at the end of one stream's latest piece. */
typedef struct carry_stream {
    vpps_value states[NET_STATES], before[NET_STATES]; /* before: the states that the current graph reads */
} carry_stream;

typedef struct carry {
    carry_stream *streams;
    uint32_t n_streams, n_states; /* n_states: states per stream; 0: nothing was carried yet */
    uint32_t first;               /* the stream of the next graph's first example */
} carry;

/* Orders n examples as batches take them: example by example, one of each stream in turn. */
void carry_order(const uint32_t *examples, uint32_t n, uint32_t n_streams, uint32_t *order);

/* Starts all streams without states. Fails with MEMORY. Call carry_free in any case, before the handle is destroyed. */
vpps_status carry_open(carry *c, uint32_t n_streams);
void carry_free(carry *c, vpps_handle *h);

/* carry_take, before example i of the graph is added, sets d to the states the example begins with. carry_keep, after
 * it, stores the states in d that the example ends with. They fail as vpps_kept and vpps_keep do. */
void carry_take(const carry *c, vpps_handle *h, vpps_graph *g, uint32_t i, net_decoding *d);
vpps_status carry_keep(carry *c, vpps_handle *h, vpps_graph *g, uint32_t i, const net_decoding *d);

/* Write all states as text for a checkpoint, which the caller frees, and read them back. They fail with MEMORY, FORMAT
 * (no text of n_streams streams), and as vpps_read_kept and vpps_keep_data do. */
vpps_status carry_to_text(const carry *c, vpps_handle *h, char **out);
vpps_status carry_from_text(carry *c, vpps_handle *h, const char *path, const char *text);
