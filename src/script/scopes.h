/* scopes.h - a batch's vertices as batching policies see them: a graph whose vertices have types. */
#pragma once

#include "script/learned.h"
#include "script/needs.h"

typedef struct vpps_scope {
    vpps_typed_graph graph;
    vpps_graph_kind kind;
    uint32_t *vertices; /* for each vertex of `graph`: its number in the batch */
    uint32_t *types;    /* for each type of `graph`: its number in the batch; VPPS_NONE: work for the loss alone */
    char *names;
    uint8_t *key;
} vpps_scope;

/* Makes the graph that a policy orders: the needed vertices of one strongly connected component (SCC) of the types' graph. */
vpps_status vpps_scope_of_scc(const vpps_batch_needs *n, uint32_t scc, vpps_scope *out);

/* Makes the graph of all needed vertices that compute something in forward: no table entries, no inputs. A cell's work that only the loss
 * needs, such as a classifier, is postponed and so is a separate vertex; all such vertices have one type. */
vpps_status vpps_scope_of_all(const vpps_batch_needs *n, vpps_scope *out);
void vpps_scope_free(vpps_scope *s);

/* Chooses each vertex's level: by the request's policy in strongly connected components of several types, elsewhere by the depth in the
 * component. Fails with MEMORY. */
vpps_status vpps_choose_levels(const vpps_batch_needs *n, const vpps_batch_request *request, vpps_arena *arena,
                               const uint32_t **out);
