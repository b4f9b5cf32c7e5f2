/* pq_layout.h - finds an order of values so that the operands of operations that run as one are adjacent and in the same order (Chen et
 * al. 2023, "ED-Batch", section 3 and appendix B). */
#pragma once

#include "base/base.h"

enum { VPPS_LAYOUT_WIDTH = 64 /* most operations of a batch that are put in order */ };

/* A batch: operations that run as one. Operation i reads value number i of operands 1, 2, ..., and makes value number i of operand 0. */
typedef struct vpps_layout_batch {
    uint32_t n_operands, width;
    const uint32_t *operands; /* operand o of operation i is operands[o * width + i] */
} vpps_layout_batch;

/* Sets order[p] to the value at place p of n. If possible, the values of each operand of a batch are consecutive, and all operands of a
 * batch have the same order. Earlier batches take precedence; values of no batch keep their order. False: out of memory. */
bool vpps_plan_layout(uint32_t n, const vpps_layout_batch *batches, uint32_t n_batches, uint32_t *order);

/* The copies that put values of operands side by side, if all values lie in a given order. An operand needs at most one copy. */
typedef struct vpps_layout_copies {
    /* numbers of operands (gathers) and of results (scatters) whose values are not adjacent in their batch's order */
    uint32_t gathers, scatters;
    uint32_t broadcasts; /* number of operands that name a value twice, and so are copied in any order */
    uint64_t gathered, scattered, broadcast; /* words copied by gathers, scatters and broadcasts */
} vpps_layout_copies;

/* Counts the copies that an order of values needs; words[v] is the size of value v. False: out of memory. */
bool vpps_count_copies(uint32_t n, const uint32_t *order, const vpps_layout_batch *batches, uint32_t n_batches,
                       const uint32_t *words, vpps_layout_copies *out);
