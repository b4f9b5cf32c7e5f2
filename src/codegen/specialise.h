/* specialise.h - makes a kernel without spills from compiled cells: generates, compiles, and retries with fewer weights in registers. */
#pragma once

#include "codegen/compile.h"
#include "codegen/generate.h"
#include "plan/machine.h"

/* Inputs and callbacks: a compiler (a driver's, or NVRTC alone), and functions that are told about progress. */
typedef struct vpps_specialiser {
    const vpps_model *model;
    const vpps_plan *pool;     /* where vectors and lookup tables lie */
    const uint32_t *matrix_at; /* indexed by parameter: its first word in the buffers of matrices */
    const vpps_machine *machine;
    /* Compiles a source and fills in the report. Keeping the artifact is the caller's task. */
    vpps_status (*compile)(void *context, const vpps_kernel_plan *plan, const char *source, const char *description,
                           vpps_cubin_report *report);
    /* May be NULL. Compiles into the disk cache only, while `compile` runs: the kernel to try next if this one spills. */
    vpps_status (*beside)(void *context, const char *source, const char *description, vpps_cubin_report *report);
    void (*log)(void *context, const char *line); /* may be NULL; is told that a kernel was rejected, and why */
    void *context;
    bool spills; /* accept a kernel that spills if all kernels do: slower, but correct */
} vpps_specialiser;

/* Makes the kernel of a plan whose machine and cells are filled in, and fills in the rest. *registers: in, the most
 * registers of a thread for weights (0: as many as possible); out, the number with which the kernel has neither a stack
 * frame nor spills. The caller frees *source (`source` may be NULL), and the plan with vpps_kernel_plan_free, also
 * after a failure. Fails with POOL if no kernel is acceptable, and as `compile` does. */
vpps_status vpps_specialise(const vpps_specialiser *s, vpps_kernel_plan *plan, uint32_t *registers, char **source,
                            vpps_cubin_report *report);

/* Returns the words of shared memory that a CTA's weights may take, in a kernel of n_params parameters. */
uint32_t vpps_shared_for_weights(const vpps_machine *machine, size_t n_params);

/* Writes one readable line: cells, VPs, threads, registers. */
void vpps_kernel_describe(const vpps_kernel_plan *plan, char *text, size_t bytes);

/* Places the model's matrices one after the other: at[p] is the first word of parameter p, *words their total. Fails
 * with POOL if there are more than 2^32 elements. */
vpps_status vpps_lay_out_matrices(const vpps_model *model, uint32_t *at, size_t *words);
