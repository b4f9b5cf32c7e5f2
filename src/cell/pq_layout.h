/* pq_layout.h - finds an order of values in which the operands of operations that run as one lie together and in the same order (Chen et
 * al. 2023, "ED-Batch", section 3 and appendix B). */
#pragma once

#include "base/base.h"

enum { VPPS_LAYOUT_WIDTH = 64 /* members of a batch whose operands are laid out */ };

/* Operations that run as one: each reads one value as operand 1, one as operand 2, ..., and makes the one that is operand 0. */
typedef struct vpps_layout_batch {
    uint32_t n_operands, width;
    const uint32_t *operands; /* operand o of operation i: [o * width + i] */
} vpps_layout_batch;

/* order[p] becomes the value that lies at place p of n. Operands become consecutive, and have one order in all operands of a batch, where
 * possible; earlier batches take precedence, and the rest keep the given order. False: out of memory. */
bool vpps_plan_layout(uint32_t n, const vpps_layout_batch *batches, uint32_t n_batches, uint32_t *order);

/* The copies that are needed so that operands lie together, in an order of values: one kernel for each operand. */
typedef struct vpps_layout_copies {
    uint32_t gathers, scatters; /* operands, and results, that lie apart or in another order than their batch runs in */
    uint32_t broadcasts;        /* operands that hold a value twice: no order can help */
    uint64_t gathered, scattered, broadcast; /* of what `words` says of each value */
} vpps_layout_copies;

/* words[v]: of value v. False: out of memory. */
bool vpps_count_copies(uint32_t n, const uint32_t *order, const vpps_layout_batch *batches, uint32_t n_batches,
                       const uint32_t *words, vpps_layout_copies *out);
