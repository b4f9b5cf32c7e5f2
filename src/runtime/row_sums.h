/* row_sums.h - sums of gradients of lookup tables' entries over launches, until the update. A device makes the gradients of one batch in
 * its own memory; the sums are in the host's. */
#pragma once

#include "graph/model.h"

/* Entries of a lookup table with their gradients, one after the other. */
typedef struct vpps_row_segment {
    vpps_param param;
    uint32_t n;
    const uint32_t *rows; /* numbers of entries */
    float *gradients;
} vpps_row_segment;

typedef struct vpps_row_sums vpps_row_sums;

/* Of the model's tables, which outlives it; empty. Fails with MEMORY. */
vpps_status vpps_row_sums_create(vpps_row_sums **out, const vpps_model *model);
void vpps_row_sums_destroy(vpps_row_sums *sums);

/* Adds the gradients of these segments, of which each has an entry once at most. Fails with MEMORY; then nothing was added. */
vpps_status vpps_row_sums_add(vpps_row_sums *sums, const vpps_row_segment *segments, uint32_t n);

/* Overwrites the sums of those of these entries that have one. */
void vpps_row_sums_set(vpps_row_sums *sums, vpps_param table, uint32_t n, const uint32_t *entries,
                       const float *gradients);

/* Forgets all sums. What vpps_row_sums_of gave stays as it is until the next addition. */
void vpps_row_sums_clear(vpps_row_sums *sums);

/* The sums of a table; n is 0 where there are none. Valid until the next change. */
vpps_row_segment vpps_row_sums_of(const vpps_row_sums *sums, vpps_param table);
