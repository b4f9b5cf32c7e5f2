/* generate_outer.h - interfaces between the files that generate code for gradients of parameters (interp_templates/outer.cuh). An "outer"
 * is one sum of outer products dy x^T, or of vectors dy, that is added to a parameter's gradient. */
#pragma once

#include "codegen/generate_work.h"

enum {
    VPPS_MOST_OUTERS = 32,   /* most gradients (sums of dy x^T or dy) that are computed together */
    VPPS_OUTER_COLUMNS = 32, /* columns of a matrix in a block; teams of CTAs divide the blocks */
};

/* State while a cell's gradient function is generated. Outers (sums of dy x^T or dy) are numbered as in the cell's list. */
typedef struct vpps_outer_work {
    const vpps_generation *g;
    const vpps_compiled_cell *c;
    FILE *out;
    bool vectors_due; /* whether code for the gradients of vector parameters is still to be written */
    uint32_t shared_words;
} vpps_outer_work;

/* If sum `outer` (of dy x^T or dy) is the first of its parameter's gradient, returns the parameter: the sum overwrites
 * the gradient, unless earlier cells have added to it. Returns VPPS_NONE for later sums, which are always added. */
uint32_t vpps_outer_added_to(const vpps_outer_work *w, uint32_t outer);

/* Returns whether a matrix's gradient (a sum of products dy x^T) has so few rows that CTAs divide columns, not rows. */
bool vpps_outer_is_low(const vpps_outer_work *w, uint32_t outer);

/* Returns the most rows of a matrix's gradient (number `outer`, a sum of outer products dy x^T) that a CTA computes. */
uint32_t vpps_outer_rows(const vpps_outer_work *w, uint32_t outer);
/* Returns the most blocks of VPPS_OUTER_COLUMNS columns of a matrix's gradient (number `outer`) that a CTA computes. */
uint32_t vpps_outer_blocks(const vpps_outer_work *w, uint32_t outer);

/* Writes code that computes gradients of n different matrices in fp32: the sums of dy x^T with numbers list[0..n), n <=
 * VPPS_MOST_OUTERS. All vectors dy and x belong to vertices, or all belong to nodes that one list input reads. Returns
 * false, without output, if a CTA has more rows or columns than shared memory or the generator's tables can hold. */
bool vpps_generate_outer_tiles(vpps_outer_work *w, const uint32_t *list, uint32_t n);
/* Writes code that computes the sums of outer products dy x^T numbered list[0..n) in bf16, by strips (rows of dy times 32 columns of x). */
void vpps_generate_outer_strips(vpps_outer_work *w, const uint32_t *list, uint32_t n);
