/* plan.h - what `vpps plan` and `vpps kernel` share: how a network's matrices lie on a GPU, and the kernel made for that. */
#ifndef VPPS_CLI_PLAN_H
#define VPPS_CLI_PLAN_H

#include "cli/corpus.h"
#include "plan/partition.h"

#include <jansson.h>

/* A network's model, without a handle, and the plans that fit a machine. */
typedef struct planner {
    settings *settings;
    corpus corpus;
    vpps_model *model;
    void *net;
    vpps_machine machine;
    vpps_partition_choice choices[VPPS_MAX_CHOICES]; /* the most promising first */
    uint32_t n_choices;
} planner;

/* Declares the network on a model: words and classes are a checkpoint's, or the data's, or 1000 and 5 (1000 where words are said). Free with
 * planner_close in any case. */
vpps_status planner_open(planner *x, settings *s);
void planner_close(planner *x);

/* The machine of --arch; without it the GPU that is here, else an sm_90. --sms replaces its number of SMs. */
vpps_status planner_find_machine(const settings *s, vpps_machine *out);

/* Fills in the choices of x->machine that the options leave; at least one, or it fails with POOL. */
vpps_status planner_choose(planner *x);

/* A plan as JSON; NULL: out of memory. */
json_t *plan_json(const vpps_partition *p, const vpps_model *model);

#endif
