/* specialise.h - from a model to a kernel without spills: plan, source, compile, and smaller plans until one is clean. */
#ifndef VPPS_SPECIALISE_H
#define VPPS_SPECIALISE_H

#include "codegen/compile.h"
#include "plan/partition.h"

/* How it is done: a compiler (a driver's, or NVRTC alone) and where the story goes. */
typedef struct vpps_specialiser {
    const vpps_model *model;
    const vpps_machine *machine;
    vpps_optimizer_kind optimizer;
    /* Compiles a plan's source; fills in the report. The artifact is the caller's business. */
    vpps_status (*compile)(void *context, const vpps_partition *p, const char *source, const char *description,
                           vpps_cubin_report *report);
    void (*log)(void *context, const char *line); /* may be NULL: a plan was rejected, and why */
    void *context;
} vpps_specialiser;

/* Makes the kernel of a choice. A frame or spills reject the plan; the next smaller one is tried: fewer vectors at a time,
 * then fewer registers. *out and *source (NULL: not wanted) are of the plan that compiled cleanly. Fails with POOL when
 * none does, and with what compile fails with. Free *out with vpps_partition_destroy, *source with free. */
vpps_status vpps_specialise(const vpps_specialiser *s, const vpps_partition_choice *choice, vpps_partition *out,
                            char **source, vpps_cubin_report *report);

#endif
