/* carry.h - states that a network takes from one piece of a text to the next (--carry).
 *
 * The text is cut into as many streams as a batch has examples, of as many pieces each, or one less. A batch has the next piece of
 * every stream; gradients end where a piece begins. The states stay on the device. */
#pragma once

#include "models.h"

/* What one stream has left. */
typedef struct carry_stream {
    vpps_value states[NET_STATES], before[NET_STATES]; /* before: those that the graph at hand reads */
} carry_stream;

typedef struct carry {
    carry_stream *streams;
    uint32_t n_streams, n_states; /* n_states 0: nothing was carried yet */
    uint32_t first;               /* stream of the first example of the next graph */
} carry;

/* Puts n examples into the order in which batches take them. */
void carry_order(const uint32_t *examples, uint32_t n, uint32_t n_streams, uint32_t *order);

/* All streams begin. Fails with MEMORY. Free in any case, before the handle. */
vpps_status carry_open(carry *c, uint32_t n_streams);
void carry_free(carry *c, vpps_handle *h);

/* Example number i of the graph is about to be added: d has the states that it begins with. Then: d has those that it leaves. Fail as
 * vpps_kept and vpps_keep do. */
void carry_take(const carry *c, vpps_handle *h, vpps_graph *g, uint32_t i, net_decoding *d);
vpps_status carry_keep(carry *c, vpps_handle *h, vpps_graph *g, uint32_t i, const net_decoding *d);

/* As text, for a checkpoint, which the caller frees; and from it. Fail with MEMORY, FORMAT (not a text of so many streams), and as
 * vpps_read_kept and vpps_keep_data do. */
vpps_status carry_to_text(const carry *c, vpps_handle *h, char **out);
vpps_status carry_from_text(carry *c, vpps_handle *h, const char *path, const char *text);
