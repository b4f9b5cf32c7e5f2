/* outer.h - sums of outer products dy x^T, which are gradients of matrices. outer.c computes them; updates.c computes a gradient as a part
 * of the update, some rows of the matrix at a time, where that is cheaper than storing the gradient. */
#pragma once

#include "runtime/cpu/cpu.h"

static const size_t VPPS_NO_COPY = SIZE_MAX; /* value in vp->copy_of */

/* Sets out[] to the addresses of an operand's columns, for n vertices of a block (vertices of one cell) from `first` on
 * or, if the operand has a value for each node that a list input reads, for n such nodes. */
void vpps_point_to(const vpps_cpu *cpu, const vpps_block_view *view, const vpps_operand *x, uint32_t first, uint32_t n,
                   const float **out);

/* Returns how many vectors (columns) an operand has for vertices [at, at + count) or, if it has a value for each node
 * that a list input reads, for these nodes. *first: number of the first vertex or node. */
uint32_t vpps_outer_vectors(const vpps_block_view *view, const vpps_operand *x, uint32_t at, uint32_t count,
                            uint32_t *first);

/* Returns operand x of outer product number i, dy x^T, of the cell. NULL: no x, or an earlier outer product has the same x. */
static inline const vpps_operand *vpps_new_factor(const vpps_compiled_cell *c, uint32_t i) {
    const vpps_operand *x = vpps_outer_of(c, i).x;
    for (uint32_t j = 0; j < i && x; j++)
        if (vpps_same_value(vpps_outer_of(c, j).x, x)) x = NULL;
    return x;
}

/* Returns how many floats of vp->scratch the packed vectors x (of k elements) and dy take; sums of dy x^T follow. */
size_t vpps_outer_floats(const vpps_cpu *cpu, uint32_t k);

/* Packs n vectors x of k elements for vpps_add_outer, in the virtual processor's (thread's) scratch memory. */
void vpps_pack_outer(const vpps_vp *vp, uint32_t n, uint32_t k, const float *const *x);

/* Computes the gradient of a block of matrix rows: `to` = (`add`: +=) sum over n vectors of d[v] x[v]^T, x packed by vpps_pack_outer. */
void vpps_add_outer(const vpps_vp *vp, const vpps_matrix_block *block, uint32_t n, uint32_t k, const float *const *d,
                    float *to, bool add);

/* Returns the virtual processor's (thread's) share of n table entries. */
vpps_rows vpps_own_entries(const vpps_vp *vp, uint32_t n);
