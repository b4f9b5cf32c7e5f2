/* generate.h - the kernel of a set of compiled cells, as text: a function for every stage and every cell's gradients, straight-line
 * code with weights in registers, and what is the same for all kernels, the files of interp_templates. */
#pragma once

#include "codegen/kernel_plan.h"

/* Plans and writes the kernel. `pool`: where vectors and tables lie. matrix_at: first word of every matrix in the buffers of
 * matrices. `room`: for weights. *source is the caller's to free, the plan's arrays vpps_kernel_plan_free's, in any case. Fails
 * with MEMORY. */
vpps_status vpps_generate_kernel(vpps_kernel_plan *plan, const vpps_model *model, const vpps_plan *pool,
                                 const uint32_t *matrix_at, const vpps_kernel_room *room, char **source);
void vpps_kernel_plan_free(vpps_kernel_plan *plan);
