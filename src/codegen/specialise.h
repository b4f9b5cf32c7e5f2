/* specialise.h - from compiled cells to a kernel without spills: source, compile, and fewer weights in registers until one is
 * clean. */
#pragma once

#include "codegen/compile.h"
#include "codegen/generate.h"
#include "plan/machine.h"

/* The means: a compiler (a driver's, or NVRTC alone), and functions that are told what happens. */
typedef struct vpps_specialiser {
    const vpps_model *model;
    const vpps_plan *pool;     /* where vectors and tables lie */
    const uint32_t *matrix_at; /* of every parameter: first word in the buffers of matrices */
    const vpps_machine *machine;
    /* Compiles a source; fills in the report. The artifact is the caller's business. */
    vpps_status (*compile)(void *context, const vpps_kernel_plan *plan, const char *source, const char *description,
                           vpps_cubin_report *report);
    /* NULL, or compiles to the disk cache alone, in another thread while `compile` runs: the kernel that is tried next if the present one
     * spills. */
    vpps_status (*beside)(void *context, const char *source, const char *description, vpps_cubin_report *report);
    void (*log)(void *context, const char *line); /* may be NULL: told that a kernel was rejected, and why */
    void *context;
    bool spills; /* accept a kernel that spills where all do: it is slower, not wrong */
} vpps_specialiser;

/* Makes the kernel of a plan whose machine and cells are filled in; the rest is filled in here. *registers: that a thread may
 * have for weights, 0: as many as go; then, those with which neither a frame nor spills are left. *source
 * (NULL: not wanted) is the caller's, to be freed. Fails with POOL when no kernel is clean and one that spills will not do, and with what compile fails with. Free
 * the plan with vpps_kernel_plan_free in any case. */
vpps_status vpps_specialise(const vpps_specialiser *s, vpps_kernel_plan *plan, uint32_t *registers, char **source,
                            vpps_cubin_report *report);

/* Words of shared memory that a CTA's weights may take, in a kernel of so many parameters. */
uint32_t vpps_shared_for_weights(const vpps_machine *machine, size_t n_params);

/* A line for people: cells, VPs, threads, registers. */
void vpps_kernel_describe(const vpps_kernel_plan *plan, char *text, size_t bytes);

/* Where the model's matrices lie one after the other: at[p] for each of its parameters; *words: of all. Fails with POOL: beyond
 * 2^32 elements. */
vpps_status vpps_lay_out_matrices(const vpps_model *model, uint32_t *at, size_t *words);
