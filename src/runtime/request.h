/* request.h - results of a step beside the gradients of parameters: values of nodes, and their gradients (vpps_request). */
#pragma once

#include "runtime/reads.h"

/* A request as this version has it. */
typedef struct vpps_asked {
    vpps_request request;
    vpps_node loss;
    /* The nodes whose values, then those whose gradients, the script leaves in the pool: all of the request except the loss, whose value is
     * in the outcome and whose gradient is 1. */
    vpps_node *nodes;
    uint32_t n_values, n_gradients;
    vpps_pool_read *reads; /* room for all of them; vpps_forward uses it, too */
} vpps_asked;

/* Takes over a caller's request for a step on `loss`, or, VPPS_NO_NODE, in halves; NULL: for nothing. `call` is the public function, without
 * its prefix. Fails with ARGUMENT, MEMORY. */
vpps_status vpps_asked_take(vpps_asked *a, const char *call, const vpps_request *given, vpps_node loss);

static inline bool vpps_asked_nodes(const vpps_asked *a) { return a->request.n_values || a->request.n_gradients; }

/* Notes where the script of the batch leaves what was asked for. The graph is not needed any more. */
void vpps_asked_place(vpps_asked *a, const vpps_batch *b, const vpps_graph *g);

/* Copies what was asked for to the caller, now that the batch, or its forward half, is finished: all of it; values or gradients alone. Fail
 * with the device's error. */
vpps_status vpps_asked_read(vpps_asked *a, vpps_device *d, float loss);
vpps_status vpps_asked_read_values(vpps_asked *a, vpps_device *d);
vpps_status vpps_asked_read_gradients(vpps_asked *a, vpps_device *d);
