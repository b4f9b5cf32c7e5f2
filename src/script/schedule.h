/* schedule.h - the scheduler's values, in the order in which they are made: each is made by one function, which only reads the preceding
 * ones. They lie in one arena and are valid until the batch is scheduled anew. */
#pragma once

#include "script/encode.h"

typedef struct vpps_schedule {
    vpps_arena arena;
    vpps_row_marks marks;
    vpps_reading reading;             /* vertices, and what they read */
    vpps_batch_needs needs;           /* which are needed, and for what */
    vpps_batching batching;           /* levels, compiled cells, groups */
    vpps_steps steps;                 /* blocks of vertices that run together */
    vpps_tasks tasks;                 /* their stages, phase by phase */
    vpps_contributions contributions; /* to gradients */
    vpps_placement placement;         /* tensors in the pool */
    vpps_script_places places;        /* where the script has put what the host reads */
} vpps_schedule;
