/* generate_outer.h - what functions for gradients of parameters share. */
#ifndef VPPS_GENERATE_OUTER_H
#define VPPS_GENERATE_OUTER_H

#include "codegen/generate_work.h"

enum { VPPS_MOST_OUTERS = 32 /* whose sums are made at once */ };

/* A function being written. The cell's outers are numbered as in its list. */
typedef struct vpps_outer_work {
    const vpps_generation *g;
    const vpps_compiled_cell *c;
    FILE *out;
    bool vectors_due;      /* the gradients of vectors are not written yet */
    uint32_t shared_words; /* that are needed */
} vpps_outer_work;

/* Declares where the arrays of task t's block lie and a value's vectors in them, its items' columns: n from number `first` on. */
void vpps_outer_vectors(const vpps_outer_work *w, uint32_t v);

/* Word 0 of vector k of these: an index of the pool. */
void vpps_outer_vector(const vpps_outer_work *w, uint32_t v, const char *k);

/* The gradients of vectors, summed up by all warps: then they are not due any more. */
void vpps_outer_sum_vectors(vpps_outer_work *w);

/* Is it the first that adds to its parameter's gradient? */
bool vpps_outer_is_first(const vpps_compiled_cell *c, uint32_t outer);

/* Rows and columns of the outer's matrix that a VP has at most, as vpps_matrix_rows and vpps_matrix_columns in the kernel say. */
uint32_t vpps_outer_rows(const vpps_outer_work *w, uint32_t outer);
uint32_t vpps_outer_columns(const vpps_outer_work *w, uint32_t outer);

/* Writes the gradients in fp32 of outers list[0..n), VPPS_MOST_OUTERS at most, of different matrices and of values with one column
 * and the same axis. False: they have more rows than a warp has lanes, or more parts than fit, and nothing was written. */
bool vpps_generate_outer_tiles(vpps_outer_work *w, const uint32_t *list, uint32_t n);

/* Writes the code that copies factors for cuBLAS (packing.h). A task's word `pass_record` is an address in the script; a word for each of the
 * cell's operands lies there, which says where the operand's vectors go. */
void vpps_generate_packing(const vpps_outer_work *w);

#endif
