/* phases.h - a batch's tasks: which stage runs over which vertices, and between which two barriers of its group. */
#pragma once

#include "script/steps.h"

/* A task: a stage of a block's cell over n of the block's vertices from `first` on. */
typedef struct vpps_stage_task {
    uint32_t group, phase;
    uint32_t block, stage, first, n;
    uint32_t level; /* the vertices' level; VPPS_NONE: all levels */
} vpps_stage_task;

/* Phases of a block, relative to its tasks: the first one, the first and last backward one, the last forward one; and the end of its
 * slice, in which parameters' gradients are made. First phases are VPPS_NONE without such a task. */
typedef struct vpps_block_phases {
    uint32_t first, first_backward, last_forward, last_backward, slice_end;
} vpps_block_phases;

typedef struct vpps_tasks {
    const vpps_steps *steps;
    const vpps_stage_task *all; /* tasks, sorted by group and phase */
    const vpps_block_phases *blocks;
    const uint32_t *group_phases; /* number of phases of each group, the ends of slices included */
    const uint32_t *pauses;       /* a step in two halves: each group's first phase of backward; else NULL */
    uint32_t n;
    uint32_t n_phases; /* most phases of a group, without the ends of slices */
} vpps_tasks;

/* Assigns stages of blocks to phases. False: out of memory. */
bool vpps_choose_phases(const vpps_steps *s, vpps_arena *arena, vpps_tasks *out);

/* Gives the number of items of each axis (vertices, members of lists) that a task runs over. */
static inline void vpps_items_of_task(const vpps_steps *s, const vpps_stage_task *t, uint32_t *items) {
    const vpps_step_block *b = &s->blocks[t->block];
    items[0] = t->n;
    for (uint32_t d = 1; d <= vpps_cell_of_block(s, b)->n_lists; d++)
        items[d] = vpps_first_member(s, b, t->first + t->n, d) - vpps_first_member(s, b, t->first, d);
}
