/* kernel_plan_print.h - a kernel's plan for people: where matrices lie, and what each VP holds. */
#pragma once

#include "codegen/kernel_plan.h"
#include "plan/machine.h"

extern const char *const vpps_resident_levels[]; /* names, in the order of vpps_resident_level */

/* Rows of it that a VP owns: a matrix's rows, or, transposed, its columns. */
vpps_rows vpps_resident_rows(const vpps_kernel_plan *p, const vpps_model *model, const vpps_resident *m, uint32_t vp);

/* The matrices whose rows a fragment has, as text. */
void vpps_name_fragment(const vpps_model *model, const vpps_fragment *f, char *text, size_t bytes);

/* Is that parameter a matrix of too few rows to be dealt, which one VP multiplies with where it lies? */
bool vpps_in_memory(const vpps_kernel_plan *p, const vpps_model *model, vpps_param param);

/* Of all SMs' registers, those that hold weights: 0 to 1. */
double vpps_register_share(const vpps_kernel_plan *p, const vpps_machine *machine);

/* Tables: the machine, every matrix, then a row a VP (at most `vps` of them; 0: all). Fails with IO. */
vpps_status vpps_kernel_plan_print(const vpps_kernel_plan *p, const vpps_model *model, const vpps_machine *machine,
                                   uint32_t vps, FILE *file);
