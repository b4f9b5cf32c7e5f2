/* batching.h - how a batch can run: levels of vertices, compiled cells of types, and groups of virtual processors (VPs). */
#pragma once

#include "script/components.h"

typedef struct vpps_batched_type {
    vpps_compiled_cell *cell;  /* the type's compiled cell; NULL: no vertex of the type is needed */
    uint32_t cell_number;      /* the cell's number among the script's cells */
    uint64_t items[VPPS_AXES]; /* number of needed vertices, and of members of their lists */
    uint32_t n_levels;         /* number of levels that these vertices have */
} vpps_batched_type;

typedef struct vpps_batching {
    const vpps_batch_needs *needs;
    const uint32_t *levels; /* level of each vertex, chosen by the policy */
    const vpps_batched_type *types;
    const bool *heads;          /* for each type: whether only the loss reads it (a head, heads.h) */
    vpps_components components; /* connected components of the graph; found when first needed (n 0: not yet) */
    uint32_t n_groups, group_size, n_vps;
    /* the number of groups of VPs that recent batches ran in, this one included; vpps_schedule_batch keeps it for the next batch */
    vpps_usual_groups usual;
    uint64_t level_cost; /* fixed cost of a level of a group, in the unit of vpps_cost_of_item */
} vpps_batching;

/* Chooses levels, compiled cells and groups. Fails with MEMORY, and as compiling a cell fails. */
vpps_status vpps_choose_batching(const vpps_batch_needs *n, vpps_types *types, const vpps_task_plan *machine,
                                 const vpps_batch_request *request, vpps_arena *arena, vpps_batching *out);

/* Returns the words that the vertices of heads keep (`heads`), or those of all other vertices. */
uint64_t vpps_kept_words(const vpps_batching *b, bool heads);

/* Returns the words that all vertices write: their records and contributions. */
uint64_t vpps_passed_words(const vpps_batching *b);

/* Returns the cost of a vertex of a type (axis 0, greater than 0) or of a member of a list. */
static inline uint64_t vpps_cost_of_item(const vpps_batched_type *t, uint32_t axis) {
    return t->cell->flops[axis] + !axis;
}
