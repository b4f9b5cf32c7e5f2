/* layout.h - where parameters lie in a device's pool. */
#pragma once

#include "graph/model.h"
#include "plan/plan.h"

/* Fills in a plan, except how rows are dealt: vectors and tables, their state, norms of at most max_vps VPs. The vectors' gradients are one
 * block, from *gradients on. `device` names it in messages. Fails with MEMORY, POOL. The plan's arrays are one allocation:
 * free(plan->values). */
vpps_status vpps_lay_out_pool(vpps_plan *plan, const vpps_model *model, const vpps_options *options, uint32_t max_vps,
                              const char *device, vpps_rows *gradients);

/* State arrays a parameter needs with this optimiser. */
uint32_t vpps_optimizer_states(vpps_optimizer_kind kind);
