/* request.h - a caller's request (vpps_request) for values and gradients of nodes: checks it and copies the results to the caller. */
#pragma once

#include "runtime/pool_reads.h"

/* A caller's request for values and gradients of nodes, and where its results are. */
typedef struct vpps_asked {
    vpps_request request;
    vpps_node loss;
    /* n_values nodes whose values, then n_gradients nodes whose gradients the batch leaves in the pool (device memory). The loss is no such
     * node: its value is in the batch's outcome, and its gradient is 1. */
    vpps_node *nodes;
    uint32_t n_values, n_gradients;
    vpps_pool_copy *reads;  /* planned copies of the results from device memory to the caller's arrays */
    vpps_pointers pointers; /* whether the caller's arrays are in the host's or device's memory */
} vpps_asked;

/* Checks a caller's request, which lists nodes whose values or gradients a step must return, and copies it to *a.
 * `given` NULL: no nodes. `loss`: the step's loss; VPPS_NO_NODE if forward and backward are separate calls. `call`: the
 * public function's name for messages. Fails with ARGUMENT, MEMORY. */
vpps_status vpps_asked_take(vpps_asked *a, const char *call, const vpps_request *given, vpps_node loss);

static inline bool vpps_asked_nodes(const vpps_asked *a) { return a->request.n_values || a->request.n_gradients; }

/* Checks the arrays to which results of the request on graph g will be copied. Fails with ARGUMENT. */
vpps_status vpps_asked_check(const vpps_asked *a, vpps_device *d, const vpps_graph *g);

/* Notes where in device memory batch b leaves the requested results. The graph is not needed afterwards. */
void vpps_asked_place(vpps_asked *a, const vpps_batch *b, const vpps_graph *g);

/* Copies all requested results to the caller's arrays after the batch is finished. Fails with the device's error. */
vpps_status vpps_asked_read(vpps_asked *a, vpps_device *d, float loss);
vpps_status vpps_asked_read_values(vpps_asked *a, vpps_device *d);
vpps_status vpps_asked_read_gradients(vpps_asked *a, vpps_device *d);
