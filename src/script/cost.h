/* cost.h - the cost of a script's tasks in operations and bytes, by the cost column of tasks.def. */
#pragma once

#include "script/script.h"

/* Operations of all virtual processors together, counted as vpps_cost counts them, of what the compiled cells do. Bytes of the pool and
 * of matrices that a task reads and writes: each value once for every item, each matrix once, whatever caches hold. */
typedef struct vpps_task_cost {
    uint64_t product_flops, other_flops, bytes;
} vpps_task_cost;

/* Adds the cost of a task of the batch's script. */
void vpps_add_task_cost(const vpps_batch *b, const vpps_model *model, const vpps_task *t, vpps_task_cost *sum);

/* Returns the cost of the whole script. A task that all VPs do together is in every group's list, and counts once. */
vpps_task_cost vpps_cost_of_batch(const vpps_batch *b, const vpps_model *model);
