/* policies.h - batching policies. A policy divides a graph's vertices into batches that run in turn, each of one type (cell or op). */
#pragma once

#include "script/automaton.h"

typedef struct vpps_policy {
    const char *name;
    bool learned; /* whether `next` needs an automaton: a learned rule that picks the vertex type (cell) to run next */
    /* Returns the vertex type (cell) whose ready vertices run next. `a`: the learned rule, NULL unless `learned`.
     * `next` itself is NULL for "depth", by which vertices of one type and depth run at once. */
    uint32_t (*next)(const vpps_automaton *a, vpps_walk *w);
} vpps_policy;

extern const vpps_policy vpps_policies[]; /* all batching policies, "depth" first; the name NULL ends the array */

/* Divides a graph's vertices into n steps; a step runs at once vertices of one type (cell), after the vertices that
 * they read. Sets steps[v] to vertex v's step. a: the learned rule if p->learned. False: out of memory. */
bool vpps_policy_choose(const vpps_policy *p, const vpps_typed_graph *g, const vpps_automaton *a, uint32_t *steps,
                        uint32_t *n);

/* Returns the batching policy (the rule for which cell's vertices run next) of this name; NULL: there is none. */
const vpps_policy *vpps_policy_find(const char *name);
