/* batching.h - how a batch can run: levels of vertices, and groups of virtual processors (VPs: CTAs of a GPU, threads of a CPU). */
#pragma once

#include "script/components.h"

typedef struct vpps_batched_type {
    /* [0]: number of the type's vertices that the loss or a requested value depends on; [d]: number of nodes that they
     * read through list input d - 1 (an input that takes any number of nodes) */
    uint64_t items[VPPS_AXES];
    uint32_t n_levels; /* 1 + highest level of the type's needed vertices (vertices of one level run together) */
} vpps_batched_type;

typedef struct vpps_batching {
    const vpps_batch_needs *needs;
    /* for each vertex: its level (vertices of one level run together), by the batching policy */
    const uint32_t *levels;
    const vpps_batched_type *types;
    const bool *heads; /* for each type: whether only the loss reads its vertices (a classifier head) */
    /* connected components (sets of vertices joined by reads); computed at first use (n 0: not yet) */
    vpps_components components;
    uint32_t n_groups, group_size, n_vps;
    /* number of groups of VPs (CTAs, threads) in use, and how many batches in a row would have run best in fewer */
    vpps_usual_groups usual;
    /* least time of a level (vertices that run together), in flops that a group of threads or CTAs does meanwhile */
    uint64_t level_cost;
    /* Set by vpps_compile_cells. cells[t]: the compiled cell of type t (NULL: not needed); cell_numbers[t]: its index in `kernel`. kernel:
     * the batch's n_kernel cells or, on a device that compiles kernels, all cells of the kernel that runs the batch. */
    vpps_compiled_cell **cells, **kernel;
    uint32_t *cell_numbers, n_kernel;
} vpps_batching;

/* Chooses levels (vertices that run together) and the number of groups of threads or CTAs. Fails with MEMORY. */
vpps_status vpps_choose_batching(const vpps_batch_needs *n, const vpps_history *history, const vpps_target *target,
                                 const vpps_batch_request *request, vpps_arena *arena, vpps_batching *out);

/* Sets *out to b and, for each vertex type, the compiled cell (program that computes its vertices): one that `history`
 * has from an earlier batch, or a new one. Fails with MEMORY. */
vpps_status vpps_compile_cells(const vpps_batching *b, vpps_history *history, const vpps_target *target,
                               vpps_arena *arena, vpps_batching *out);

/* Returns how many words vertices keep for backward: classifiers (vertices that only the loss reads) if `heads`, else all others. */
uint64_t vpps_kept_words(const vpps_batching *b, bool heads);

/* Returns the number of words that all vertices write: values kept for backward, and gradients for the vertices that they read. */
uint64_t vpps_passed_words(const vpps_batching *b);

/* Returns the flops of a vertex (axis 0; at least 1), or of one node of list axis - 1 (an input of many nodes). */
static inline uint64_t vpps_cost_of_item(const vpps_compiled_cell *c, uint32_t axis) { return c->flops[axis] + !axis; }
