/* policies.h - batching policies: in which batch each vertex of a typed graph runs. */
#pragma once

#include "script/automaton.h"

typedef struct vpps_policy {
    const char *name;
    const char *text;
    bool learned; /* it needs an automaton */
    /* steps[v] becomes the number of v's batch, which is higher than those of the vertices that v reads; vertices of one batch have one
     * type. *n: the number of batches. False: out of memory. */
    bool (*choose)(const vpps_typed_graph *g, const vpps_automaton *a, uint32_t *steps, uint32_t *n);
} vpps_policy;

extern const vpps_policy vpps_policies[]; /* the first one is the default; ends with a NULL name */

/* NULL: there is none. */
const vpps_policy *vpps_policy_find(const char *name);
