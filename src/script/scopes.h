/* scopes.h - a batch's vertices as batching policies see them: a graph whose vertices have types. */
#pragma once

#include "script/learned.h"
#include "script/needs.h"

typedef struct vpps_scope {
    vpps_typed_graph graph;
    vpps_graph_kind kind;
    uint32_t *vertices; /* for each vertex of `graph`: its number in the batch */
    uint32_t *types;    /* for each type of `graph`: its number in the batch; VPPS_NONE: classifiers inside cells */
    char *names;
    uint8_t *key;
} vpps_scope;

/* Makes the graph of the needed vertices of a strongly connected component (SCC) of several types, which a policy can order. */
vpps_status vpps_scope_of_scc(const vpps_batch_needs *n, uint32_t scc, vpps_scope *out);

/* Makes the graph of all needed vertices that compute something in forward, without table entries and inputs. A cell's work for the loss
 * alone, such as a classifier, is a vertex of its own, since it is postponed; it has one type for all cells. */
vpps_status vpps_scope_of_all(const vpps_batch_needs *n, vpps_scope *out);
void vpps_scope_free(vpps_scope *s);

/* Chooses the level of each vertex: by the request's policy where several types of vertices read each other in turn, elsewhere by depth.
 * Fails with MEMORY. */
vpps_status vpps_choose_levels(const vpps_batch_needs *n, const vpps_batch_request *request, vpps_arena *arena,
                               const uint32_t **out);
