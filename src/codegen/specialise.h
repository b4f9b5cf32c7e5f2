/* specialise.h - makes a kernel without register spills: generates and compiles it, and retries with fewer weights in registers. */
#pragma once

#include "codegen/compile.h"
#include "codegen/generate.h"
#include "codegen/machine.h"

/* Inputs and callbacks of vpps_specialise: the model, a compiler (a GPU driver's, or NVRTC alone), and a log. */
typedef struct vpps_specialiser {
    const vpps_model *model;
    const vpps_pool_plan *pool; /* offsets of vectors and lookup tables in the pool of device memory */
    const uint32_t *matrix_at;  /* for each parameter that is a matrix: its first word in the buffer of matrices */
    const vpps_machine *machine;
    /* Compiles a kernel's source, keeps the binary in `context`, and fills in *report: registers, stack, time. */
    vpps_status (*compile)(void *context, const vpps_kernel_plan *plan, const char *source, const char *description,
                           vpps_cubin_report *report);
    void (*log)(void *context, const char *line); /* may be NULL; gets a line that says why a kernel was rejected */
    void *context;
    bool spills; /* whether a kernel that spills registers, slow but correct, is accepted if all kernels spill */
} vpps_specialiser;

/* Completes a plan whose CTAs, threads and cells are filled in, and makes its kernel, which is accepted if it spills
 * no registers, or if fewer registers for weights cannot help. *registers: in, the most registers of a thread for
 * weights (0: as many as possible); out, that limit for the accepted kernel. The caller frees *source (may be NULL),
 * and the plan with vpps_kernel_plan_free, also after a failure. Fails with POOL (no kernel accepted), and as
 * `compile` does. */
vpps_status vpps_specialise(const vpps_specialiser *s, vpps_kernel_plan *plan, uint32_t *registers, char **source,
                            vpps_cubin_report *report);

/* Returns the words of shared memory that a CTA's weights may take, in a kernel for a model of n_params parameters. */
uint32_t vpps_shared_for_weights(const vpps_machine *machine, size_t n_params);

/* Writes one line that describes the kernel: cells, CTAs, threads, registers. */
void vpps_kernel_describe(const vpps_kernel_plan *plan, char *text, size_t bytes);

/* Places the model's matrices one after the other in a buffer: at[p] is the first word of parameter p, *words the total of all.
 * Fails with POOL if there are more than 2^32 elements. */
vpps_status vpps_lay_out_matrices(const vpps_model *model, uint32_t *at, size_t *words);
