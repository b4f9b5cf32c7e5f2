/* components.h - the connected components of a batch's graph, usually one for each input; components do not read each other. */
#pragma once

#include "script/needs.h"

/* The connected components of a batch: needed vertices that are joined through reads. */
typedef struct vpps_components {
    const uint32_t *of; /* for each needed vertex: its component; components are numbered by their first vertices */
    uint32_t n;
} vpps_components;

/* Finds the connected components of the needed vertices. False: out of memory. */
bool vpps_find_components(const vpps_batch_needs *n, vpps_arena *arena, vpps_components *out);
