/* deal.h - decides when and where each vertex is computed. A batch is cut into waves, which run one after the other in the same memory. A
 * wave's vertices are assigned to groups of virtual processors (threads or CTAs). A group runs the classifier heads (vertices that only
 * the loss reads) of a wave in parts, called slices, one after the other, so that the heads need less memory at once. */
#pragma once

#include "script/batching.h"

/* Assigns connected components (sets of vertices joined by reads) to at most *n_waves waves of equal cost, which run one
 * after the other in the same memory, and in each wave to groups of threads or CTAs. *n_waves becomes the number of waves.
 * place[v] becomes (number of v's wave) * (number of groups) + (number of v's group). Returns false if out of memory. */
bool vpps_deal_components(const vpps_batching *b, vpps_arena *arena, uint32_t *n_waves, uint32_t *place);

/* Divides the classifiers (vertices that only the loss reads) of each wave (part of the batch) into at most *n_slices
 * slices of similar size in memory. *n_slices becomes the number of slices of a wave. A wave runs forward of its other
 * vertices; then, slice after slice in the same memory, forward and backward of classifiers; then backward of the
 * others, whose gradients from classifiers stay in memory. place[v], from vpps_deal_components, becomes (v's slice,
 * counted through all waves) * (number of groups of threads or CTAs) + (v's group). False: out of memory. */
bool vpps_deal_heads(const vpps_batching *b, vpps_arena *arena, uint32_t n_waves, uint32_t *n_slices, uint32_t *place);
