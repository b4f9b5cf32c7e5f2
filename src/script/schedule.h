/* schedule.h - the results of scheduling, i.e. of the steps that turn a batch's graph into a program for the device, in
 * the steps' order. A step only reads earlier results. All are valid until the next batch is scheduled. */
#pragma once

#include "script/encode.h"

typedef struct vpps_schedule {
    vpps_arena arena;
    vpps_row_marks marks;
    vpps_reading reading;   /* the batch's vertices, and whose outputs each of them reads */
    vpps_batch_needs needs; /* the vertices and gradients that the loss or the request needs */
    /* at which level (vertices computed at once) each vertex runs; into how many groups threads or CTAs are divided */
    vpps_batching grouping;
    vpps_batching batching; /* levels and groups as in `grouping`, and in addition the compiled cell of each type */
    vpps_steps steps;       /* the vertices, sorted into blocks (vertices of one type) and in blocks by level */
    vpps_tasks tasks;       /* parts of cells (stages) over vertices, sorted by phase (time between two barriers) */
    /* the counts of the terms of each gradient (a term for each vertex that reads the value) */
    vpps_contributions contributions;
    vpps_placement placement;  /* the tensors' offsets in device memory */
    vpps_script_places places; /* the offsets of the values that the host reads */
} vpps_schedule;
