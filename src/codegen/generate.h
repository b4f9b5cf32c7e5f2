/* generate.h - generates the source text of the kernel for a set of compiled cells: one function per stage (part of a cell), one per
 * cell's parameter gradients, and the template files of interp_templates. */
#pragma once

#include "codegen/kernel_plan.h"

/* Fills in the kernel's plan and generates its source. `pool` has the offsets of vectors and tables, matrix_at each matrix's first word in
 * the buffer of all matrices, `room` the registers and shared memory for weights. The caller frees *source, and the plan's arrays with
 * vpps_kernel_plan_free, also after a failure. Fails with MEMORY. */
vpps_status vpps_generate_kernel(vpps_kernel_plan *plan, const vpps_model *model, const vpps_pool_plan *pool,
                                 const uint32_t *matrix_at, const vpps_kernel_room *room, char **source);
void vpps_kernel_plan_free(vpps_kernel_plan *plan);
