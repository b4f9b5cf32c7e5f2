/* plan.h - which VP owns which rows, and where parameters lie: common to schedulers and devices. */
#pragma once

#include "base/base.h"

#define VPPS_NO_OFFSET UINT32_MAX

/* Rows of a matrix, of a vector, and of every value with as many rows, are owned alike: blocks of row_block rows are dealt out in order. So
 * work that reads and writes only a VP's own rows needs no barrier against the same VP's other work. */
typedef struct vpps_rows {
    uint32_t first, end;
} vpps_rows;

static inline vpps_rows vpps_rows_of(uint32_t rows, uint32_t row_block, uint32_t n_vps, uint32_t vp) {
    uint64_t blocks = ((uint64_t)rows + row_block - 1) / row_block;
    uint64_t first = blocks * vp / n_vps * row_block, end = blocks * (vp + 1) / n_vps * row_block;
    vpps_rows r = {(uint32_t)(first < rows ? first : rows), (uint32_t)(end < rows ? end : rows)};
    return r;
}

/* Where parameters lie. Vectors and lookup tables lie in the pool, where scripts name them by their offsets; each device places matrices as
 * it likes. */
typedef struct vpps_plan {
    uint32_t n_vps;
    uint32_t *values;    /* vector, lookup: offset of the values; matrix: unused */
    uint32_t *gradients; /* vector: offset of the gradient; else unused */
    uint32_t *states[2]; /* vector, lookup: offset of the optimiser's state */
    uint32_t norms;      /* offset of n_vps words: the VPs' sums of squares */
    /* Where lookup tables are shared out over processes, the pool begins with as many words as whole tables would have. They have no
     * memory: scripts use their offsets as names of entries. */
    uint32_t sharded;
    uint32_t batch;      /* first offset of a batch's tensors */
    uint32_t pool_words; /* there are */
} vpps_plan;
