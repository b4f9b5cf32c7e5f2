/* arrange.h - the copies that a compiled cell would need so that equal operations could run as one (Chen et al. 2023, "ED-Batch", section
 * 3), and an order of the cell's values that needs few. */
#pragma once

#include "cell/cell.h"

/* A batch: operations that run as one. Operation number i reads element i of each argument list (operands 1, 2, ...), and its result is element i of
 * the result list (operand 0). */
typedef struct vpps_layout_batch {
    uint32_t n_operands, width;
    const uint32_t *operands; /* operand o of operation i is operands[o * width + i] */
} vpps_layout_batch;

/* The number of copies that put the values of each operand side by side, given an order of all values. An operand needs at most one copy. */
typedef struct vpps_layout_copies {
    /* numbers of operands (gathers) and of results (scatters) whose values are not adjacent in their batch's order */
    uint32_t gathers, scatters;
    uint32_t broadcasts; /* number of operands in which a value occurs twice; these are copied whatever the order */
    uint64_t gathered, scattered, broadcast; /* words copied by gathers, scatters and broadcasts */
} vpps_layout_copies;

/* Counts the copies that an order of n values needs; words[v] is the size of value v. `place` is scratch memory for n numbers. */
void vpps_count_copies(uint32_t n, const uint32_t *order, const vpps_layout_batch *batches, uint32_t n_batches,
                       const uint32_t *words, uint32_t *place, vpps_layout_copies *out);

/* Sets order[p] to the value at place p of n, so that few words are gathered and scattered, above all for the first n_forward batches, which
 * belong to forward. Equal arguments give equal orders. False: out of memory. */
bool vpps_plan_layout(uint32_t n, const vpps_layout_batch *batches, uint32_t n_batches, uint32_t n_forward,
                      const uint32_t *words, uint32_t *order);

/* Copies of operands that are needed for one vertex (application of the cell), in forward and in backward. */
typedef struct vpps_cell_copies {
    vpps_layout_copies forward, backward;
} vpps_cell_copies;

typedef struct vpps_cell_layout {
    vpps_cell_copies as_made; /* the copies if values lie in order of creation */
    /* the copies in the order that vpps_plan_layout finds, or in order of creation if that needs fewer */
    vpps_cell_copies arranged;
} vpps_cell_layout;

/* Counts the copies that a compiled cell would need. Fails with MEMORY. */
vpps_status vpps_arrange_cell(const vpps_compiled_cell *c, vpps_cell_layout *out);

/* Returns the number of words that are gathered and scattered for a vertex, in forward and backward together. */
uint64_t vpps_copied_words(const vpps_cell_copies *x);
