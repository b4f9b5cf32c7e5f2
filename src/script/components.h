/* components.h - the connected components of a batch's graph (one for each input as a rule), which need nothing of each other. */
#pragma once

#include "script/needs.h"

/* The components of a batch's graph: needed vertices that are joined through reads. */
typedef struct vpps_components {
    const uint32_t *of; /* number of each needed vertex's component, in the order of their first vertices */
    uint32_t n;
} vpps_components;

/* False: out of memory. */
bool vpps_find_components(const vpps_batch_needs *n, vpps_arena *arena, vpps_components *out);
