/* script.h - from a graph to a script: one batch's program for the machine.
 *
 *   schedule.c  the steps, one after the other. Each makes a value that the next ones only read; a header of the same name
 *               describes the value. All lie in an arena of the batch.
 *
 *   read.c      the graph as vertices: their types, what each reads, what the loss is made of
 *   needs.c     what is needed, what has gradients, strongly connected components of the types' graph
 *   batching.c  levels, compiled cells, groups of VPs; components.c: the inputs' graphs; heads.c: classifiers and the like
 *     scopes.c    a batch as batching policies see it, and the levels that they choose
 *     policies.c  the policies; walk.c: through a graph batch by batch; automaton.c, learned.c: what is learned
 *   steps.c     blocks, and their vertices level by level
 *     deal.c      components to waves and groups, heads to slices of waves
 *   phases.c    tasks: which stage of which block runs over which vertices, and in which phase
 *   contributions.c  how much vertices contribute to which gradients, and the lists of where it lies
 *   memory.c    where a batch's tensors lie in the pool; allocate.c: by when they live
 *   encode.c    the words: blocks, lists, tasks; writer.c: one after the other
 *
 *   update.c    a script of the update alone
 *   cost.c      what the tasks cost
 */
#pragma once

#include "script/header.h"
#include "script/learned.h"
#include "script/policies.h"
#include "script/types.h"

/* Which part of a training step a script does. */
typedef enum vpps_step_part {
    VPPS_STEP_WHOLE,     /* forward, backward, update */
    VPPS_STEP_GRADIENTS, /* forward, backward: the device keeps the gradients, and adds the next ones to them */
    VPPS_STEP_NODES, /* forward, backward to nodes: no parameter gets a gradient, and the gradients that the device keeps stay */
    VPPS_STEP_UPDATE /* the norm and the update, with the gradients that the device keeps */
} vpps_step_part;

/* Which tasks of a script with a pause a launch runs: all, where there is none; those before it; those after it. */
typedef enum vpps_half { VPPS_NO_HALF, VPPS_FORWARD_HALF, VPPS_BACKWARD_HALF } vpps_half;

/* Does it change parameters? */
static inline bool vpps_part_updates(vpps_step_part part) {
    return part == VPPS_STEP_WHOLE || part == VPPS_STEP_UPDATE;
}

/* What a script is to do. */
typedef struct vpps_batch_request {
    vpps_node loss;           /* training; VPPS_NO_NODE: inference of `outputs`, or training in halves */
    const vpps_node *outputs; /* nodes whose values are read afterwards, or at the pause; none is the loss */
    uint32_t n_outputs;
    bool
        halves; /* forward; a pause, at which the host gives gradients of the first n_given outputs; backward from these */
    uint32_t n_given;
    const vpps_node *gradient_nodes; /* training: nodes whose gradients are read afterwards; none is the loss */
    uint32_t n_gradient_nodes;
    vpps_step_part part;             /* training */
    const vpps_optimizer *optimizer; /* training */
    const vpps_param_step *steps;    /* training: what each parameter steps by; NULL: all by the optimizer */
    vpps_gradients gradients;
    bool guard;    /* no update when the loss or a gradient is not finite */
    uint32_t step; /* number of this update, from 1 */
    uint64_t dropout_key;
    bool no_dropout;           /* training with dropout off */
    uint32_t groups, waves;    /* 0: by cost */
    bool keeps_groups;         /* even for a batch of one component, which else runs in one group */
    uint32_t slices;           /* of a wave, at least; 0: 1 */
    const vpps_policy *policy; /* of recurrences of several cells; NULL: the default */
    vpps_learned *learned;     /* the automata of a policy that is learned */
} vpps_batch_request;

static inline bool vpps_request_trains(const vpps_batch_request *r) { return r->loss != VPPS_NO_NODE || r->halves; }

/* The properties of a batch that the choice of its groups of VPs depends on. */
typedef struct vpps_batch_extent {
    uint32_t n_vps;
    double flops;   /* of a VP */
    double vectors; /* of a level of the recurrences */
    double levels;  /* that all VPs of a group go through together, forward and backward */
    double elems;   /* of all matrices */
    double rows;    /* of the largest one */
} vpps_batch_extent;

/* The number of groups in which a device runs such a batch fastest: a divisor of n_vps, at most `most`, which is at least 1. */
typedef uint32_t vpps_group_rule(const vpps_batch_extent *e, uint32_t most);

/* How much of a batch is one wave, unless the request says how many waves there are. 0: no limit. */
typedef struct vpps_wave_rule {
    uint64_t kept_words;      /* that a wave's vertices keep */
    uint64_t cached_words;    /* that they keep and contribute, as long as its steps stay wide enough */
    uint32_t cached_vertices; /* for each VP: a step that is wide enough */
} vpps_wave_rule;

/* What the scheduler knows of a device. */
typedef struct vpps_task_plan {
    uint32_t n_vps;
    const uint32_t *values;         /* vector, lookup: offset of the values */
    uint32_t batch;                 /* first offset of a batch's tensors */
    uint32_t pool_words;            /* there are */
    vpps_row_rule rows;             /* for the compiler of cells */
    bool scales;                    /* likewise */
    bool recompiles;                /* a new compiled cell makes a new kernel: cells and numbers of groups are reused */
    uint32_t most_groups;           /* a batch runs in no more groups, unless its request says how many */
    vpps_group_rule *choose_groups; /* of a batch, where most_groups is more than 1 */
    uint32_t level_flops;           /* of a VP, in the time that a level takes at least */
    vpps_wave_rule waves;
} vpps_task_plan;

struct vpps_schedule;

typedef struct vpps_batch {
    uint32_t *script; /* the result */
    size_t script_words;
    vpps_compiled_cell **cells; /* of the script's blocks, by number */
    uint32_t n_cells;
    vpps_step_part part;
    vpps_half half; /* that the next launch runs */
    uint32_t n_levels, n_phases, n_tasks, n_groups, n_waves, n_slices, pool_words;
    uint32_t n_vertices, n_nodes;   /* of the graph */
    uint32_t n_steps;               /* forward: vertices of one cell that run together */
    uint32_t parameter_words;       /* of the pool */
    uint64_t live_words;            /* of the rest: the most words that tensors take that live at once */
    uint32_t n_choices;             /* recurrences of several cells, where policies differ */
    struct vpps_schedule *schedule; /* schedule.h */
} vpps_batch;

vpps_status vpps_batch_create(vpps_batch **out);
void vpps_batch_destroy(vpps_batch *b);

/* Makes b->script for the graph. `types` is where compiled cells are kept; it outlives the script. Fails with the graph's
 * error, SHAPE, ARGUMENT, MEMORY, POOL (message: bytes that would do, and that there are). */
vpps_status vpps_schedule_batch(vpps_batch *b, vpps_types *types, const vpps_task_plan *machine, vpps_graph *g,
                                const vpps_batch_request *request);

/* The same up to the batch's compiled cells and groups: b->cells, b->n_groups. There is no script, and the batch does not count where later
 * batches choose their groups. */
vpps_status vpps_choose_cells(vpps_batch *b, vpps_types *types, const vpps_task_plan *machine, vpps_graph *g,
                              const vpps_batch_request *request);

/* Likewise of the inference that is likely for the graph of a training batch: of all outputs of the vertices that it needed. */
vpps_status vpps_choose_inference_cells(vpps_batch *b, const vpps_batch *trained, vpps_types *types,
                                        const vpps_task_plan *machine, vpps_graph *g,
                                        const vpps_batch_request *request);

/* Makes b->script, of the norm and the update alone, for request->groups equal groups of VPs. Fails with MEMORY. */
vpps_status vpps_schedule_update(vpps_batch *b, const vpps_task_plan *machine, const vpps_model *model,
                                 const vpps_batch_request *request);

/* Offset where output number i of the request lies when the script has run. */
uint32_t vpps_batch_output(const vpps_batch *b, uint32_t i);

/* Likewise the gradient of gradient node i. VPPS_NONE: the loss does not depend on it. */
uint32_t vpps_batch_gradient(const vpps_batch *b, uint32_t i);

/* Where the host writes gradients at the pause: one array in the pool from `first` on. Its first word is the step's loss. Gradient i is
 * `words` words from word `at` of the array on. */
typedef struct vpps_given {
    uint32_t at, words;
} vpps_given;
typedef struct vpps_given_array {
    uint32_t first, words, n;
    const vpps_given *gradients;
} vpps_given_array;
const vpps_given_array *vpps_batch_given(const vpps_batch *b);

/* Prints a script so that a person can read it. `g` may be NULL; else parameters are named, and costs are told. Fails with
 * IO. */
vpps_status vpps_print_batch(const vpps_batch *b, const vpps_graph *g, FILE *file);
