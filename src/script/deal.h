/* deal.h - which wave, group and slice each vertex runs in. */
#ifndef VPPS_SCRIPT_DEAL_H
#define VPPS_SCRIPT_DEAL_H

#include "script/batching.h"

/* Deals components, which need nothing of each other, to waves of equal cost, at most *n_waves, which becomes how many there are,
 * and in each to the groups. What one wave keeps lies where the preceding wave kept its own. place[v]: vertex v's wave times the number
 * of groups, plus its group. False: out of memory. */
bool vpps_deal_components(const vpps_batching *b, vpps_arena *arena, uint32_t *n_waves, uint32_t *place);

/* Deals the heads' vertices of each wave to at most *n_slices slices that keep alike; *n_slices becomes how many there are. A wave
 * runs slice by slice, forward and backward, while the rest of it waits: what one slice keeps lies where the preceding slice kept its
 * own, and what it contributes to the rest stays until the rest's backward. place[v] before: as above; then: the slice, numbered
 * through all waves, times the number of groups, plus the group. False: out of memory. */
bool vpps_deal_heads(const vpps_batching *b, vpps_arena *arena, uint32_t n_waves, uint32_t *n_slices, uint32_t *place);

#endif
