/* plan.h - for `vpps plan` and `vpps kernel`: the cells of a network's first batch, compiled for a GPU, and the kernel that is made of
 * them. No GPU is needed. */
#pragma once

#include "cli/session.h"
#include "codegen/kernel_plan_print.h"
#include "codegen/specialise.h"
#include "runtime/gpu/gpu.h"

#include <jansson.h>

/* A network, its first batch, and the GPU it is planned for. */
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

/* The machine of --arch; without it the GPU that is here, else an sm_90. --sms replaces its number of SMs. */
vpps_status planner_find_machine(const settings *s, vpps_machine *out);

/* The kernel for x->machine by these rows and threads (0: the profile's first). `s` says how it is compiled: its model, pool and
 * machine are filled in; with no `compile` it is not. Free the plan with vpps_kernel_plan_free in any case. */
vpps_status planner_specialise(planner *x, uint32_t rpw, uint32_t threads, vpps_specialiser *s, vpps_kernel_plan *plan,
                               char **source, vpps_cubin_report *report);

/* A plan as JSON; NULL: out of memory. */
json_t *plan_json(const planner *x, const vpps_kernel_plan *p);
