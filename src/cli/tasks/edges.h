/* edges.h - generates graphs whose edges have types. */
#pragma once

#include "io/edge_lists.h"

/* Returns n graphs as text of *bytes bytes, with `numbers` features per node. The caller frees it. NULL: out of memory. */
char *edges_generate(uint64_t seed, uint32_t n, uint32_t numbers, size_t *bytes);
