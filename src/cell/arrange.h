/* arrange.h - counts the copies of values that a compiled cell would need so that equal operations could run as one (Chen et al. 2023,
 * "ED-Batch", section 3), and finds an order of the values in memory that needs few copies. */
#pragma once

#include "cell/cell.h"

/* A batch: operations that run as one. Operation i reads element i of operands 1, 2, ...; its result is element i of operand 0. */
typedef struct vpps_layout_batch {
    uint32_t n_operands, width;
    const uint32_t *operands; /* operand o of operation i is operands[o * width + i] */
} vpps_layout_batch;

/* What batches (operations run as one) copy so that each operand's values, one for each operation, are adjacent. */
typedef struct vpps_layout_copies {
    /* number of operands (gathers) and results (scatters) that are copied, since their values are not adjacent in the operations' order */
    uint32_t gathers, scatters;
    /* number of operands copied whatever the values' order, since several operations of a batch read one value */
    uint32_t broadcasts;
    uint64_t gathered, scattered, broadcast; /* words copied by gathers, scatters and broadcasts */
} vpps_layout_copies;

/* Counts what batches (operations run as one) copy so that each operand's values are adjacent, if n values lie in this
 * order in memory. words[v]: size of value v; `place`: scratch memory, n elements. */
void vpps_count_copies(uint32_t n, const uint32_t *order, const vpps_layout_batch *batches, uint32_t n_batches,
                       const uint32_t *words, uint32_t *place, vpps_layout_copies *out);

/* Finds an order of n values in memory in which batches (operations run as one) copy few words to have adjacent
 * operands; order[p]: value at place p. Equal arguments give equal orders. The first n_forward batches (those of
 * forward) count most. False: out of memory. */
bool vpps_plan_layout(uint32_t n, const vpps_layout_batch *batches, uint32_t n_batches, uint32_t n_forward,
                      const uint32_t *words, uint32_t *order);

/* Copies of operands that are needed for one vertex (application of the cell), in forward and in backward. */
typedef struct vpps_cell_copies {
    vpps_layout_copies forward, backward;
} vpps_cell_copies;

typedef struct vpps_cell_layout {
    vpps_cell_copies as_made; /* the copies needed if values lie in memory in the order in which the cell makes them */
    /* the copies needed if values lie in the order that vpps_plan_layout finds; equal to as_made if that order needs more copied words */
    vpps_cell_copies arranged;
} vpps_cell_layout;

/* Counts copies, per vertex, that make operands adjacent, so that equal operations run as one. Error: VPPS_MEMORY. */
vpps_status vpps_arrange_cell(const vpps_compiled_cell *c, vpps_cell_layout *out);

/* Returns how many words are copied for a vertex, in forward and backward, to make operands and results adjacent. */
uint64_t vpps_copied_words(const vpps_cell_copies *x);
