/* request.h - results that a caller requests beside parameter gradients (vpps_request): values of nodes and their gradients. */
#pragma once

#include "runtime/reads.h"

/* A caller's request, converted to this version's struct. */
typedef struct vpps_asked {
    vpps_request request;
    vpps_node loss;
    /* Nodes whose values the script leaves in the pool, then nodes whose gradients it leaves there. The loss is not
     * among them: its value comes with the outcome, and its gradient is 1. */
    vpps_node *nodes;
    uint32_t n_values, n_gradients;
    vpps_pool_copy *reads;  /* the planned copies of the results to the caller, with capacity for all nodes */
    vpps_pointers pointers; /* where value_outs and gradient_outs are */
} vpps_asked;

/* Checks and copies a caller's request for a step on `loss`; VPPS_NO_NODE: for a step in two halves. NULL requests
 * nothing. `call` is the public function's name without prefix. Fails with ARGUMENT, MEMORY. */
vpps_status vpps_asked_take(vpps_asked *a, const char *call, const vpps_request *given, vpps_node loss);

static inline bool vpps_asked_nodes(const vpps_asked *a) { return a->request.n_values || a->request.n_gradients; }

/* Checks the places of the results of a request that is to run on the graph. Fails with ARGUMENT. */
vpps_status vpps_asked_check(const vpps_asked *a, vpps_device *d, const vpps_graph *g);

/* Notes where the batch's script leaves the requested results. The graph is not needed afterwards. */
void vpps_asked_place(vpps_asked *a, const vpps_batch *b, const vpps_graph *g);

/* Copies all requested results to the caller after the batch is finished. Fails with the device's error. */
vpps_status vpps_asked_read(vpps_asked *a, vpps_device *d, float loss);
/* Copies only the requested values, after the batch's forward half. */
vpps_status vpps_asked_read_values(vpps_asked *a, vpps_device *d);
/* Copies only the requested gradients. */
vpps_status vpps_asked_read_gradients(vpps_asked *a, vpps_device *d);
