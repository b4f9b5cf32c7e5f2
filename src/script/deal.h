/* deal.h - assigns each vertex to a wave (part of the batch; waves run in turn), a group of virtual processors, and a slice (part of a wave). */
#pragma once

#include "script/batching.h"

/* Assigns connected components to at most *n_waves waves of equal cost, which run one after the other in the same memory, and in each wave to
 * groups of virtual processors. *n_waves becomes the number of waves. place[v] becomes the number of vertex v's wave times the number of groups,
 * plus the number of v's group. Returns false if out of memory. */
bool vpps_deal_components(const vpps_batching *b, vpps_arena *arena, uint32_t *n_waves, uint32_t *place);

/* Assigns each wave's vertices that only the loss reads (classifier heads) to at most *n_slices slices that keep equally many words; *n_slices
 * becomes the number of slices. A wave's slices run one after the other in the same memory, forward and backward, between the forward and the
 * backward of the wave's other vertices. The gradients that a slice computes for other vertices stay. place[v], from vpps_deal_components,
 * becomes the slice's number, counted through all waves, times the number of groups of virtual processors, plus the group's number. Returns false
 * if out of memory. */
bool vpps_deal_heads(const vpps_batching *b, vpps_arena *arena, uint32_t n_waves, uint32_t *n_slices, uint32_t *place);
