/* schedule.h - the results of the steps that make a script from a graph (scheduling), in the order of the steps. One function makes each
 * result, and only reads earlier results. All results lie in one arena and are valid until the next batch is scheduled. */
#pragma once

#include "script/encode.h"

typedef struct vpps_schedule {
    vpps_arena arena;
    vpps_row_marks marks;
    vpps_reading reading;   /* the vertices and their reads */
    vpps_batch_needs needs; /* the vertices and gradients that the loss or the request needs */
    /* level of each vertex (vertices of one level run together); number of groups of virtual processors */
    vpps_batching grouping;
    vpps_batching batching; /* a copy of `grouping` in which each vertex type has its compiled cell */
    vpps_steps steps;       /* the vertices, sorted into blocks (vertices of one type) and in blocks by level */
    /* tasks (stages, which are parts of cells, over vertices of a block), sorted by phase (time between two barriers) */
    vpps_tasks tasks;
    /* the counts of the terms of each gradient (a term for each vertex that reads the value) */
    vpps_contributions contributions;
    vpps_placement placement;  /* the tensors' offsets in the pool */
    vpps_script_places places; /* the offsets of the values that the host reads */
} vpps_schedule;
