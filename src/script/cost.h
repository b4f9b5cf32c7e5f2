/* cost.h - the cost of a script's tasks in operations and bytes, by the cost column of tasks.def. */
#pragma once

#include "script/script.h"

/* Flops of the compiled cells' work, of all virtual processors together, counted as vpps_cost does. Bytes of memory that a task reads and
 * writes: each value once for every item, each matrix once, as if nothing were cached. */
typedef struct vpps_task_cost {
    uint64_t product_flops, other_flops, bytes;
} vpps_task_cost;

/* Adds the cost of one task of the batch's script to *sum. */
void vpps_add_task_cost(const vpps_batch *b, const vpps_model *model, const vpps_task *t, vpps_task_cost *sum);

/* Returns the cost of the whole script. A task that all virtual processors do together stands in every group's list but counts once. */
vpps_task_cost vpps_cost_of_batch(const vpps_batch *b, const vpps_model *model);
