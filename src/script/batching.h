/* batching.h - how a batch may be run together: the level of each vertex, the compiled cell of each type, and the groups of VPs. */
#pragma once

#include "script/components.h"

typedef struct vpps_batched_type {
    vpps_compiled_cell *cell;  /* NULL: no vertex of the type is needed */
    uint32_t cell_number;      /* among the script's cells */
    uint64_t items[VPPS_AXES]; /* vertices that are needed, and members of their lists */
    uint32_t n_levels;         /* of these vertices */
} vpps_batched_type;

typedef struct vpps_batching {
    const vpps_batch_needs *needs;
    const uint32_t *levels; /* of each vertex: as the policy chose them */
    const vpps_batched_type *types;
    const bool *heads;          /* of each type: see heads.h */
    vpps_components components; /* n 0: not found yet; who needs them finds them */
    uint32_t n_groups, group_size, n_vps;
    vpps_usual_groups usual; /* of batches up to this one; vpps_schedule_batch keeps it for the next */
    uint64_t level_cost;     /* of a group's level, whatever runs in it; as that of items */
} vpps_batching;

/* Fails with MEMORY, and with what compiling a cell fails with. */
vpps_status vpps_choose_batching(const vpps_batch_needs *n, vpps_types *types, const vpps_task_plan *machine,
                                 const vpps_batch_request *request, vpps_arena *arena, vpps_batching *out);

/* Words that all vertices of heads keep together, or all other vertices. */
uint64_t vpps_kept_words(const vpps_batching *b, bool heads);

/* Words that all vertices write: their records and contributions. */
uint64_t vpps_passed_words(const vpps_batching *b);

/* The cost of a vertex of a type, above 0, and of a member of a list. */
static inline uint64_t vpps_cost_of_item(const vpps_batched_type *t, uint32_t axis) {
    return t->cell->flops[axis] + !axis;
}
