/* cost.h - counts the floating-point operations and the bytes of a script's tasks. */
#pragma once

#include "script/script.h"

/* The cost of tasks, summed over all virtual processors. Flops: of the compiled cells, in matrix products and in other operations. Bytes: read
 * from and written to memory; each value counts once for every vertex or list member, each matrix once. */
typedef struct vpps_task_cost {
    uint64_t product_flops, other_flops, bytes;
} vpps_task_cost;

/* Adds the cost of one task of the batch's script to *sum. */
void vpps_add_task_cost(const vpps_batch *b, const vpps_model *model, const vpps_task *t, vpps_task_cost *sum);

/* Returns the cost of the whole script. A task that all virtual processors run together is in every group's list of tasks but counts once. */
vpps_task_cost vpps_cost_of_batch(const vpps_batch *b, const vpps_model *model);
