/* phases.h - a batch's tasks: which stage (part of a cell) runs over which vertices, in which phase (time between two barriers). */
#pragma once

#include "script/steps.h"

/* A task: one stage of a cell (part of its program between two barriers) over n vertices of a block (of one type) from `first` on. */
typedef struct vpps_stage_task {
    uint32_t group, phase;
    uint32_t block, stage, first, n;
    uint32_t level; /* level of the task's vertices (vertices of one level run together); VPPS_NONE: all levels */
} vpps_stage_task;

/* Numbers of the phases (times between two barriers) in which the tasks of a block (vertices of one cell) run. first_backward: VPPS_NONE:
 * no backward task. slice_end: the phase after the block's slice (part of the batch), in which parameters' gradients are added up. */
typedef struct vpps_block_phases {
    uint32_t first, first_backward, last_forward, last_backward, slice_end;
} vpps_block_phases;

typedef struct vpps_tasks {
    const vpps_steps *steps;
    const vpps_stage_task *all; /* sorted by group of threads or CTAs, then by phase (time between barriers) */
    const vpps_block_phases *blocks;
    /* for each group of threads or CTAs: number of phases (times between two barriers). The last phase of each slice
     * (part of the batch) adds up parameters' gradients. */
    const uint32_t *group_phases;
    /* A training step in two halves stops after forward, so that the host can give gradients. For each group of threads
     * (GPU: CTAs): first phase (time between two barriers) after the stop; NULL: no stop. */
    const uint32_t *pauses;
    uint32_t n;
    uint32_t n_phases; /* the most phases (times between barriers) of any group, parameters' gradients aside */
} vpps_tasks;

/* Makes the batch's tasks and assigns them to phases (times between two barriers). False: out of memory. */
bool vpps_choose_phases(const vpps_steps *s, vpps_arena *arena, vpps_tasks *out);

/* Counts a task's items: items[0] becomes the number of its vertices, items[d] that of members (nodes read) of their list input d - 1. */
static inline void vpps_items_of_task(const vpps_steps *s, const vpps_stage_task *t, uint32_t *items) {
    const vpps_step_block *b = &s->blocks[t->block];
    items[0] = t->n;
    for (uint32_t d = 1; d <= vpps_cell_of_block(s, b)->n_lists; d++)
        items[d] = vpps_first_member(s, b, t->first + t->n, d) - vpps_first_member(s, b, t->first, d);
}
