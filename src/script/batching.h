/* batching.h - how a batch can run: levels of vertices, compiled cells of types, and groups of virtual processors (VPs). */
#pragma once

#include "script/components.h"

typedef struct vpps_batched_type {
    vpps_compiled_cell *cell;  /* the type's compiled cell; NULL: no vertex of the type is needed */
    uint32_t cell_number;      /* index of the compiled cell among the script's cells */
    uint64_t items[VPPS_AXES]; /* for each axis: number of needed vertices, or of members of one of their lists */
    uint32_t n_levels;         /* number of levels at which the type has needed vertices */
} vpps_batched_type;

typedef struct vpps_batching {
    const vpps_batch_needs *needs;
    const uint32_t *levels; /* for each vertex: its level, chosen by the policy */
    const vpps_batched_type *types;
    const bool *heads; /* for each type: whether only the loss reads its vertices (a classifier head, heads.h) */
    vpps_components components; /* connected components of the graph; computed at first use (n 0: not yet) */
    uint32_t n_groups, group_size, n_vps;
    /* number of groups of virtual processors in which recent batches ran, this batch included; kept for the next batch */
    vpps_usual_groups usual;
    uint64_t level_cost; /* fixed cost of a level for a group, in flops like vpps_cost_of_item */
} vpps_batching;

/* Chooses the vertices' levels, the types' compiled cells and the number of groups. Fails with MEMORY or as compiling a cell does. */
vpps_status vpps_choose_batching(const vpps_batch_needs *n, vpps_types *types, const vpps_task_plan *machine,
                                 const vpps_batch_request *request, vpps_arena *arena, vpps_batching *out);

/* Returns the number of words that vertices keep for backward: those of classifier heads (`heads`), or all others. */
uint64_t vpps_kept_words(const vpps_batching *b, bool heads);

/* Returns the number of words that all vertices write: their kept values and the gradients that they contribute. */
uint64_t vpps_passed_words(const vpps_batching *b);

/* Returns the flops of one vertex of the type (axis 0; at least 1), or of one member of a list (axis > 0). */
static inline uint64_t vpps_cost_of_item(const vpps_batched_type *t, uint32_t axis) {
    return t->cell->flops[axis] + !axis;
}
