/* scopes.h - a batch's vertices as policies see them: a graph of types. */
#pragma once

#include "script/learned.h"
#include "script/needs.h"

typedef struct vpps_scope {
    vpps_typed_graph graph;
    vpps_graph_kind kind;
    uint32_t *vertices; /* which of the batch's each is */
    uint32_t *types;    /* of the reading; VPPS_NONE: classifiers that lie in cells */
    char *names;
    uint8_t *key;
} vpps_scope;

/* The needed vertices of a part (needs.h) with several types; with one type there is nothing to choose. */
vpps_status vpps_scope_of_part(const vpps_batch_needs *n, uint32_t part, vpps_scope *out);

/* All needed vertices that compute something in forward; entries of tables and inputs do not, since they are read where they lie. What a
 * cell computes for the loss alone, as a classifier, counts as a vertex of its own, of one type for all cells, since it is lazy. */
vpps_status vpps_scope_of_all(const vpps_batch_needs *n, vpps_scope *out);
void vpps_scope_free(vpps_scope *s);

/* The level of each vertex: chosen by the request's policy in every recurrence of more than one type, else the depth. Fails with MEMORY. */
vpps_status vpps_choose_levels(const vpps_batch_needs *n, const vpps_batch_request *request, vpps_arena *arena,
                               const uint32_t **out);
