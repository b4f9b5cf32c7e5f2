/* scopes.h - a scope: the graph for which a batching policy chooses in which order vertices run. It has all vertices of a batch, or those
 * of one recurrence (of types that read each other), with their types (cells, ops). */
#pragma once

#include "script/learned.h"
#include "script/needs.h"

typedef struct vpps_scope {
    vpps_typed_graph graph;
    vpps_graph_kind kind;
    uint32_t *vertices; /* for each vertex of this graph: number of that vertex in the batch */
    uint32_t *types;    /* for each type: its number in the batch; VPPS_NONE: classifiers (only the loss reads them) */
    char *names;
    uint8_t *key;
} vpps_scope;

/* Makes the graph in which a batching policy orders the vertices of one recurrence, of the types (cells) in strongly
 * connected component number scc; vertices that need not be computed are left out. The graph lies in the arena. */
vpps_status vpps_scope_of_scc(const vpps_batch_needs *n, uint32_t scc, vpps_arena *arena, vpps_scope *out);

/* Makes the graph in which a batching policy orders all vertices that the batch computes; vertices that only look up a
 * table's row are left out. Operations that only the loss needs, such as a cell's classifier, run later: they are a
 * second vertex, whose type is the same for all cells. */
vpps_status vpps_scope_of_all(const vpps_batch_needs *n, vpps_arena *arena, vpps_scope *out);

/* Returns the name of a vertex type (cell or op); `type` is an element of vpps_scope.types. */
const char *vpps_scope_type_name(const vpps_reading *r, uint32_t type);

/* Chooses each vertex's level (vertices of one level run together): in recurrences of several cells by the request's
 * batching policy, elsewhere by the vertex's depth. Fails with MEMORY. */
vpps_status vpps_choose_levels(const vpps_batch_needs *n, const vpps_batch_request *request, vpps_arena *arena,
                               const uint32_t **out);
