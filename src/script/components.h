/* components.h - the connected components of a batch's graph, usually one per example. No vertex reads a vertex of another component. */
#pragma once

#include "script/needs.h"

typedef struct vpps_components {
    /* for each vertex that the loss or the caller needs: its component's number, in the order of first vertices */
    const uint32_t *of;
    uint32_t n;
} vpps_components;

/* Finds the connected components of the needed vertices: two vertices are in one component if a chain of reads, in any
 * direction, joins them. False: out of memory. */
bool vpps_find_components(const vpps_batch_needs *n, vpps_arena *arena, vpps_components *out);
