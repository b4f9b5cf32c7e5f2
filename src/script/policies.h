/* policies.h - batching policies, which choose the step in which each vertex of a graph runs; a step runs vertices of one type. */
#pragma once

#include "script/automaton.h"

typedef struct vpps_policy {
    const char *name;
    const char *text;
    bool learned; /* whether the policy needs a learned automaton */
    /* Sets steps[v] to the number of vertex v's batch, which is higher than the numbers of the vertices that v reads; vertices of one batch
     * have one type. *n: the number of batches. False: out of memory. */
    bool (*choose)(const vpps_typed_graph *g, const vpps_automaton *a, uint32_t *steps, uint32_t *n);
} vpps_policy;

extern const vpps_policy vpps_policies[]; /* the policies; the first is the default; the last has the name NULL */

/* Returns the policy of this name; NULL: there is none. */
const vpps_policy *vpps_policy_find(const char *name);
