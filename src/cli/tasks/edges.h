/* edges.h - generated graphs with edges of types. */
#pragma once

#include "io/edge_lists.h"

/* The text of n graphs, to be freed. *bytes is its length. NULL: out of memory. */
char *edges_generate(uint64_t seed, uint32_t n, uint32_t numbers, size_t *bytes);
