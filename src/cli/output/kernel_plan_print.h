/* kernel_plan_print.h - prints a kernel's plan: where weights are stored, and which rows of weights each virtual processor (CTA) keeps. */
#pragma once

#include "codegen/kernel_plan.h"
#include "codegen/machine.h"

extern const char *const vpps_resident_levels[]; /* names for vpps_resident_level: registers, shared memory, ... */

/* Returns the rows of a matrix (columns, if m is transposed) that are assigned to virtual processor (CTA) number vp. */
vpps_rows vpps_resident_rows(const vpps_kernel_plan *p, const vpps_model *model, const vpps_resident *m, uint32_t vp);

/* Writes the names of the matrices whose rows are in a fragment (eight rows of weights, an operand of the tensor-core instruction mma). */
void vpps_name_fragment(const vpps_model *model, const vpps_fragment *f, char *text, size_t bytes);

/* Returns whether the parameter is a matrix that is not divided among virtual processors (CTAs), but read from device memory by each. */
bool vpps_in_memory(const vpps_kernel_plan *p, const vpps_model *model, vpps_param param);

/* Returns the fraction of all SMs' registers that hold weights. */
double vpps_register_share(const vpps_kernel_plan *p, const vpps_machine *machine);

/* Prints the machine, every matrix, and one line for each of the first `vps` virtual processors (CTAs); `vps` 0: all. Fails with IO. */
vpps_status vpps_kernel_plan_print(const vpps_kernel_plan *p, const vpps_model *model, const vpps_machine *machine,
                                   uint32_t vps, FILE *file);
