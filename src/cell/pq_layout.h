/* pq_layout.h - finds an order of values so that the operands of operations that run as one are adjacent and in the same order (Chen et
 * al. 2023, "ED-Batch", section 3 and appendix B). */
#pragma once

#include "base/base.h"

enum { VPPS_LAYOUT_WIDTH = 64 /* most operations of a batch whose operands are laid out */ };

/* Operations that run as one. Each reads a value as operand 1, a value as operand 2, ..., and makes the value that is operand 0. */
typedef struct vpps_layout_batch {
    uint32_t n_operands, width;
    const uint32_t *operands; /* operand o of operation i is operands[o * width + i] */
} vpps_layout_batch;

/* Sets order[p] to the value at place p of n. Where possible, the operands of a batch are consecutive and have one order in all its
 * operands; earlier batches take precedence, and all else keeps the given order. False: out of memory. */
bool vpps_plan_layout(uint32_t n, const vpps_layout_batch *batches, uint32_t n_batches, uint32_t *order);

/* The copies that make operands adjacent, for an order of values: one copy for each operand. */
typedef struct vpps_layout_copies {
    uint32_t gathers, scatters; /* operands, and results, that are not adjacent or not in their batch's order */
    uint32_t broadcasts;        /* operands that hold a value twice, which no order avoids */
    uint64_t gathered, scattered, broadcast; /* words copied by gathers, scatters and broadcasts */
} vpps_layout_copies;

/* Counts copies; words[v] is the size of value v. False: out of memory. */
bool vpps_count_copies(uint32_t n, const uint32_t *order, const vpps_layout_batch *batches, uint32_t n_batches,
                       const uint32_t *words, vpps_layout_copies *out);
