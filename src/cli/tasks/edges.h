/* edges.h - generated graphs with edges of types. */
#ifndef VPPS_CLI_TASKS_EDGES_H
#define VPPS_CLI_TASKS_EDGES_H

#include "io/edge_lists.h"

/* The text of n graphs, to be freed. *bytes is its length. NULL: out of memory. */
char *edges_generate(uint64_t seed, uint32_t n, uint32_t numbers, size_t *bytes);

#endif
