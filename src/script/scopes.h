/* scopes.h - makes the graphs that batching policies see (scopes): some of a batch's vertices, with their types. */
#pragma once

#include "script/learned.h"
#include "script/needs.h"

typedef struct vpps_scope {
    vpps_typed_graph graph;
    vpps_graph_kind kind;
    uint32_t *vertices; /* for each vertex of this graph: number of that vertex in the batch */
    /* for each type of this graph: its number in the batch; VPPS_NONE: the type of vertices added for classifiers inside cells */
    uint32_t *types;
    char *names;
    uint8_t *key;
} vpps_scope;

/* Makes the graph, for a policy, of the needed vertices of one strongly connected component (SCC) of the types' graph, numbered from 0. The
 * scope's memory belongs to the arena. */
vpps_status vpps_scope_of_scc(const vpps_batch_needs *n, uint32_t scc, vpps_arena *arena, vpps_scope *out);

/* Makes the graph, for a policy, of all needed vertices that compute something in forward (no table entries, no inputs). Operations whose
 * results only the loss needs, such as a cell's classifier, run later: a second vertex is added for them. The second vertices of all cells
 * have one type. */
vpps_status vpps_scope_of_all(const vpps_batch_needs *n, vpps_arena *arena, vpps_scope *out);

/* Returns the name of a vertex type (cell or op); `type` is an element of vpps_scope.types. */
const char *vpps_scope_type_name(const vpps_reading *r, uint32_t type);

/* Chooses each vertex's level (vertices of one level run together): in recurrences of several vertex types by the request's batching
 * policy, elsewhere by the vertex's depth. Fails with MEMORY. */
vpps_status vpps_choose_levels(const vpps_batch_needs *n, const vpps_batch_request *request, vpps_arena *arena,
                               const uint32_t **out);
