/* plan.h - who owns which rows, and where parameters lie: what schedulers and devices agree on. */
#ifndef VPPS_PLAN_PLAN_H
#define VPPS_PLAN_PLAN_H

#include "base/base.h"

#define VPPS_NO_OFFSET UINT32_MAX

/* Rows of a matrix, of a vector, and of every value with as many rows, are owned alike: blocks of row_block rows are
 * dealt out in order. So what reads and writes only its own rows needs no barrier against the same VP's other work. */
typedef struct vpps_rows {
    uint32_t first, end;
} vpps_rows;

static inline vpps_rows vpps_rows_of(uint32_t rows, uint32_t row_block, uint32_t n_vps, uint32_t vp) {
    uint64_t blocks = ((uint64_t)rows + row_block - 1) / row_block;
    uint64_t first = blocks * vp / n_vps * row_block, end = blocks * (vp + 1) / n_vps * row_block;
    vpps_rows r = {(uint32_t)(first < rows ? first : rows), (uint32_t)(end < rows ? end : rows)};
    return r;
}

/* Where parameters lie: what the scheduler and a device agree on. Matrices are the device's own business; vectors and
 * lookup tables lie in the pool, where scripts name them by their offsets. */
typedef struct vpps_plan {
    uint32_t n_vps;
    uint32_t *values;    /* vector, lookup: offset of the values; matrix: unused */
    uint32_t *gradients; /* vector: offset of the gradient; else unused */
    uint32_t *states[2]; /* vector, lookup: offset of the optimiser's state */
    uint32_t norms;      /* offset of n_vps words: the VPs' sums of squares */
    /* The first words of the pool are, where lookup tables are shared out over processes, the places that these would have:
     * a script names entries by them. These words have no memory. */
    uint32_t sharded;
    uint32_t batch;      /* first offset of a batch's tensors */
    uint32_t pool_words; /* there are */
} vpps_plan;

#endif
