/* outer.h - the vectors of outer products, and the gradients that they add up to: what outer.c makes, and what updates.c makes anew where the
 * update computes a gradient itself. */
#pragma once

#include "runtime/cpu/cpu.h"

static const size_t VPPS_NO_COPY = SIZE_MAX; /* value in vp->copy_of */

/* Points out[] to a value's columns, for n items of the block from `first` on: its vertices, or the members of their lists if the value is
 * made once for each member. */
void vpps_point_to(const vpps_cpu *cpu, const vpps_block_view *view, uint32_t value, uint32_t first, uint32_t n,
                   const float **out);

/* Returns the number of a value's vectors for vertices [at, at + count); *first is its first item. */
uint32_t vpps_outer_vectors(const vpps_block_view *view, uint32_t value, uint32_t at, uint32_t count, uint32_t *first);

/* Returns the floats of scratch memory for packed vectors x of k elements and their vectors dy. A block's gradient follows. */
size_t vpps_outer_floats(const vpps_cpu *cpu, uint32_t k);

/* Packs n vectors x of k elements into the VP's scratch memory. */
void vpps_pack_outer(const vpps_vp *vp, uint32_t n, uint32_t k, const float *const *x);

/* Computes `to`, a block's gradient, = or += the sum over n vectors of d[v] x[v]^T, where x is packed in the VP's scratch memory. */
void vpps_add_outer(const vpps_vp *vp, const vpps_matrix_block *block, uint32_t n, uint32_t k, const float *const *d,
                    float *to, bool add);

/* Returns the VP's share of n table entries. */
vpps_rows vpps_own_entries(const vpps_vp *vp, uint32_t n);
