/* batching.h - how a batch can run: levels of vertices, and groups of virtual processors (VPs). */
#pragma once

#include "script/components.h"

typedef struct vpps_batched_type {
    uint64_t items[VPPS_AXES]; /* for each axis: number of needed vertices, or of members of one of their lists */
    uint32_t n_levels;         /* number of levels at which the type has needed vertices */
} vpps_batched_type;

typedef struct vpps_batching {
    const vpps_batch_needs *needs;
    const uint32_t *levels; /* for each vertex: its level, chosen by the policy */
    const vpps_batched_type *types;
    const bool *heads;          /* for each type: whether only the loss reads its vertices (a classifier head) */
    vpps_components components; /* connected components of the graph; computed at first use (n 0: not yet) */
    uint32_t n_groups, group_size, n_vps;
    /* number of groups of virtual processors in which recent batches ran, this batch included; kept for the next batch */
    vpps_usual_groups usual;
    uint64_t level_cost; /* fixed cost of a level for a group, in flops like vpps_cost_of_item */
    /* members that vpps_compile_cells adds: for each type its cell (NULL: not needed), and the cell's index in `kernel`, the list of the batch's
     * cells or, on a device that compiles kernels, of the kernel's */
    vpps_compiled_cell **cells, **kernel;
    uint32_t *cell_numbers, n_kernel;
} vpps_batching;

/* Chooses the vertices' levels and the number of groups; not yet the cells. Fails with MEMORY. */
vpps_status vpps_choose_batching(const vpps_batch_needs *n, const vpps_history *history, const vpps_target *target,
                                 const vpps_batch_request *request, vpps_arena *arena, vpps_batching *out);

/* Gives the batching with its cells, which are compiled if the history lacks them. Fails as compiling a cell does. */
vpps_status vpps_compile_cells(const vpps_batching *b, vpps_history *history, const vpps_target *target,
                               vpps_arena *arena, vpps_batching *out);

/* Returns the number of words that vertices keep for backward: those of classifier heads (`heads`), or all others. */
uint64_t vpps_kept_words(const vpps_batching *b, bool heads);

/* Returns the number of words that all vertices write: their kept values and the gradients that they contribute. */
uint64_t vpps_passed_words(const vpps_batching *b);

/* Returns the flops of one vertex of the cell (axis 0; at least 1), or of one member of a list (axis > 0). */
static inline uint64_t vpps_cost_of_item(const vpps_compiled_cell *c, uint32_t axis) { return c->flops[axis] + !axis; }
