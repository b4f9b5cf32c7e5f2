/* plan.h - for `vpps plan` and `vpps kernel`: compiles the cells of a network's first batch, and the kernel made of
 * them, for a GPU. No GPU is needed. */
#pragma once

#include "cli/session/session.h"
#include "codegen/kernel_plan_print.h"
#include "codegen/specialise.h"
#include "runtime/gpu/gpu.h"

#include <jansson.h>

/* A network, its first batch, and the GPU to compile for. */
typedef struct planner {
    settings *settings;
    session session;
    corpus corpus;
    vpps_node loss;
    vpps_machine machine;
    vpps_gpu_layout layout;
} planner;

/* Opens the network and builds its first batch. Free with planner_close in any case. */
vpps_status planner_open(planner *x, settings *s);
void planner_close(planner *x);

/* Sets *out to the GPU that --arch names; without --arch to this machine's GPU, else to an sm_90. --sms replaces its number of SMs. */
vpps_status planner_find_machine(const settings *s, vpps_machine *out);

/* Compiles the kernel for x->machine with rpw rows per warp and `threads` threads per CTA (0: the profile's first
 * choice). *s says how to compile; its model, pool and machine are filled in here; without `compile` nothing is
 * compiled. Free the plan with vpps_kernel_plan_free also after a failure. */
vpps_status planner_specialise(planner *x, uint32_t rpw, uint32_t threads, vpps_specialiser *s, vpps_kernel_plan *plan,
                               char **source, vpps_cubin_report *report);

/* Returns a plan as JSON; NULL: out of memory. */
json_t *plan_json(const planner *x, const vpps_kernel_plan *p);
