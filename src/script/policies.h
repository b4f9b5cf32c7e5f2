/* policies.h - batching policies. A policy divides a graph's vertices into batches that run in turn, each of one type (cell or op). */
#pragma once

#include "script/automaton.h"

typedef struct vpps_policy {
    const char *name;
    const char *text;
    bool learned; /* whether the batching policy needs an automaton, learned from a graph, that chooses the next type */
    /* Returns the type whose ready vertices run next; `a` is NULL unless `learned`. NULL: vertices of one type and depth run at once. */
    uint32_t (*next)(const vpps_automaton *a, vpps_walk *w);
} vpps_policy;

extern const vpps_policy vpps_policies[]; /* all batching policies, "depth" first; the name NULL ends the array */

/* Sets steps[v] to the number of vertex v's batch, which is higher than the batches of all vertices that v reads, and *n to the number of
 * batches. False: out of memory. */
bool vpps_policy_choose(const vpps_policy *p, const vpps_typed_graph *g, const vpps_automaton *a, uint32_t *steps,
                        uint32_t *n);

/* Returns the policy of this name; NULL: there is none. */
const vpps_policy *vpps_policy_find(const char *name);
