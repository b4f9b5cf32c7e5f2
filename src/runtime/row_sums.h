/* row_sums.h - sums gradients of lookup-table entries over several batches, until the optimiser's update. A device computes one batch's
 * gradients in its own memory; the sums are in host memory. */
#pragma once

#include "graph/model.h"

/* Gradients of n entries of a lookup table, one after the other. */
typedef struct vpps_row_segment {
    vpps_param param;
    uint32_t n;
    const uint32_t *rows; /* for each of the n entries: its index in the lookup table */
    float *gradients;
} vpps_row_segment;

typedef struct vpps_row_sums vpps_row_sums;

/* Creates sums of gradients, of no entry yet, for the model's lookup tables. The model must outlive the sums. Fails with MEMORY. */
vpps_status vpps_row_sums_create(vpps_row_sums **out, const vpps_model *model);
void vpps_row_sums_destroy(vpps_row_sums *sums);

/* Adds n segments (each of one table's gradients) to the sums. A segment has an entry at most once. Fails with MEMORY, adding nothing. */
vpps_status vpps_row_sums_add(vpps_row_sums *sums, const vpps_row_segment *segments, uint32_t n);

/* For each given entry of the table whose gradient is already in the sums, replaces this sum by the given gradient. */
void vpps_row_sums_set(vpps_row_sums *sums, vpps_param table, uint32_t n, const uint32_t *entries,
                       const float *gradients);

/* Removes sums. Segments (gradients) that vpps_row_sums_of returned keep their contents until the next addition. */
void vpps_row_sums_clear(vpps_row_sums *sums);

/* Returns the summed gradients of a table (n is 0 if there are none), valid until the next change of the sums. */
vpps_row_segment vpps_row_sums_of(const vpps_row_sums *sums, vpps_param table);

/* Lists in *segments (grown by VPPS_RESERVE) the summed gradients of each lookup table's entries, without frozen
 * tables; valid until the next change of the sums. Fails with MEMORY. */
vpps_status vpps_row_sums_list(const vpps_row_sums *sums, vpps_row_segment **segments, uint32_t *n);
