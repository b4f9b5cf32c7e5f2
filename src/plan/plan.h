/* plan.h - which virtual processor (VP) owns which rows, and where parameters lie in memory. */
#pragma once

#include "base/base.h"

#define VPPS_NO_OFFSET UINT32_MAX

/* The rows that a virtual processor (VP) owns. Everything with equally many rows is divided in the same way: each VP gets consecutive
 * blocks of row_block rows. So a VP's work on its own rows never waits for other VPs. */
typedef struct vpps_rows {
    uint32_t first, end;
} vpps_rows;

static inline vpps_rows vpps_rows_of(uint32_t rows, uint32_t row_block, uint32_t n_vps, uint32_t vp) {
    uint64_t blocks = ((uint64_t)rows + row_block - 1) / row_block;
    uint64_t first = blocks * vp / n_vps * row_block, end = blocks * (vp + 1) / n_vps * row_block;
    vpps_rows r = {(uint32_t)(first < rows ? first : rows), (uint32_t)(end < rows ? end : rows)};
    return r;
}

/* Where parameters lie. Vectors and lookup tables lie at offsets in the pool of device memory; each device places matrices itself. */
typedef struct vpps_plan {
    uint32_t n_vps;
    uint32_t *values;    /* vector, lookup table: offset of its values in the pool; not used for matrices */
    uint32_t *gradients; /* vector: offset of its gradient in the pool; otherwise not used */
    uint32_t *states[2]; /* vector, lookup table: offset of its optimizer state in the pool */
    uint32_t norms;      /* offset in the pool of n_vps words: each virtual processor's sum of squared gradients */
    /* If lookup tables are sharded over processes, the pool's first `sharded` offsets name table entries as if whole
     * tables lay there; no memory belongs to them. */
    uint32_t sharded;
    uint32_t batch;      /* first offset of a batch's tensors in the pool */
    uint32_t pool_words; /* size of the pool in words */
} vpps_plan;
