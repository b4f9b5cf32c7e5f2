/* plan.h - which VP owns which rows, and where parameters lie; used by schedulers and devices. */
#pragma once

#include "base/base.h"

#define VPPS_NO_OFFSET UINT32_MAX

/* A VP's range of rows. Matrices, vectors and values with equally many rows are divided equally: blocks of row_block
 * rows are dealt in order. So work on a VP's own rows needs no barrier against other work of that VP. */
typedef struct vpps_rows {
    uint32_t first, end;
} vpps_rows;

static inline vpps_rows vpps_rows_of(uint32_t rows, uint32_t row_block, uint32_t n_vps, uint32_t vp) {
    uint64_t blocks = ((uint64_t)rows + row_block - 1) / row_block;
    uint64_t first = blocks * vp / n_vps * row_block, end = blocks * (vp + 1) / n_vps * row_block;
    vpps_rows r = {(uint32_t)(first < rows ? first : rows), (uint32_t)(end < rows ? end : rows)};
    return r;
}

/* Where parameters lie. Vectors and lookup tables lie in the pool of device memory, and scripts name them by offsets.
 * Each device places matrices itself. */
typedef struct vpps_plan {
    uint32_t n_vps;
    uint32_t *values;    /* vector, lookup: offset of the values; unused for matrices */
    uint32_t *gradients; /* vector: offset of the gradient; otherwise unused */
    uint32_t *states[2]; /* vector, lookup: offset of the optimiser's state */
    uint32_t norms;      /* offset of n_vps words: each VP's sum of squared gradients */
    /* If lookup tables are sharded over processes, the pool's first `sharded` offsets name table entries as if whole
     * tables lay there; no memory belongs to them. */
    uint32_t sharded;
    uint32_t batch;      /* first offset of a batch's tensors in the pool */
    uint32_t pool_words; /* size of the pool */
} vpps_plan;
