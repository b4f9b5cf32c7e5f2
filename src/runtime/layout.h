/* layout.h - where parameters lie in a device's memory pool. */
#pragma once

#include "script/script.h"

/* Assigns offsets in a device's memory pool to vectors and lookup tables, their optimiser states, and a partial sum of the gradient's norm
 * for each of max_vps virtual processors (threads, CTAs). Writes the offsets to *plan, and the range of the vectors' gradients to
 * *gradients. `device`: its name in messages. Fails with MEMORY, POOL. The plan's arrays are one allocation: free(plan->values). */
vpps_status vpps_lay_out_pool(vpps_pool_plan *plan, const vpps_model *model, const vpps_options *options,
                              uint32_t max_vps, const char *device, vpps_rows *gradients);

/* Returns the offset, in device memory, of a vector's or table's array (`which`: VPPS_ARRAY_VALUES, ...); VPPS_NO_OFFSET: there is none. */
uint32_t vpps_place_in_pool(const vpps_pool_plan *plan, vpps_param param, uint32_t which);

/* Returns how many state arrays an optimiser has for each parameter, such as 2 for Adam. */
uint32_t vpps_optimizer_states(vpps_optimizer_kind kind);
