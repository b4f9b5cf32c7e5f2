/* generate_outer.h - what the files share that write gradients of parameters: see interp_templates/outer.cuh. */
#pragma once

#include "codegen/generate_work.h"

enum {
    VPPS_MOST_OUTERS = 32,   /* whose sums are made at once */
    VPPS_OUTER_COLUMNS = 32, /* in blocks of so many, the columns of matrices are dealt to teams */
};

/* A function being written. The cell's outers are numbered as in its list. */
typedef struct vpps_outer_work {
    const vpps_generation *g;
    const vpps_compiled_cell *c;
    FILE *out;
    bool vectors_due;      /* the gradients of vectors are not written yet */
    uint32_t shared_words; /* that are needed */
} vpps_outer_work;

/* The parameter to whose gradient the outer adds, if there is one; VPPS_NONE: it adds in any case, for another outer was before it. */
uint32_t vpps_outer_added_to(const vpps_outer_work *w, uint32_t outer);

/* Is the outer's matrix low: vpps_is_low in the kernel. */
bool vpps_outer_is_low(const vpps_outer_work *w, uint32_t outer);

/* Rows of the outer's matrix that a VP has at most, as vpps_matrix_rows in the kernel says; blocks of columns likewise. */
uint32_t vpps_outer_rows(const vpps_outer_work *w, uint32_t outer);
uint32_t vpps_outer_blocks(const vpps_outer_work *w, uint32_t outer);

/* Write the gradients of outers list[0..n), VPPS_MOST_OUTERS at most, of different matrices and of values with one column and the same
 * axis: in fp32 by tiles, in bf16 by strips. False: they have more rows than a warp has lanes, or more parts than fit, and nothing was
 * written. */
bool vpps_generate_outer_tiles(vpps_outer_work *w, const uint32_t *list, uint32_t n);
void vpps_generate_outer_strips(vpps_outer_work *w, const uint32_t *list, uint32_t n);
