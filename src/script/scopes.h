/* scopes.h - a scope: the graph for which a batching policy chooses in which order vertices run. It has the vertices of one recurrence of a
 * batch (of types that read each other), with their types (cells, ops). */
#pragma once

#include "script/learned.h"
#include "script/needs.h"

typedef struct vpps_scope {
    vpps_typed_graph graph;
    vpps_graph_kind kind;
    uint32_t *vertices; /* for each vertex of this graph: number of that vertex in the batch */
    uint32_t *types;    /* for each type: its number in the batch */
    char *names;
    uint8_t *key;
} vpps_scope;

/* Makes the graph in which a batching policy orders the vertices of one recurrence, of the types (cells) in strongly
 * connected component number scc; vertices that need not be computed are left out. The graph lies in the arena. */
vpps_status vpps_scope_of_scc(const vpps_batch_needs *n, uint32_t scc, vpps_arena *arena, vpps_scope *out);

/* Chooses each vertex's level (vertices of one level run together): in recurrences of several cells by the request's
 * batching policy, elsewhere by the vertex's depth. Fails with MEMORY. */
vpps_status vpps_choose_levels(const vpps_batch_needs *n, const vpps_batch_request *request, vpps_arena *arena,
                               const uint32_t **out);
