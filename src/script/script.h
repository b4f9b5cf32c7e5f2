/* script.h - from a graph to a script: one batch's program for the machine.
 *
 *   schedule.c  runs the steps of scheduling in order. Each step makes a value that later steps only read; the header named like
 *               the step's file describes the value. All values lie in an arena of the batch.
 *
 *   read.c      turns the graph into vertices (applied cells, other ops): their types (cell or op), what each reads, the loss's terms
 *   needs.c     finds needed vertices, outputs with gradients, recurrences: strongly connected components of the graph of types
 *   batching.c  chooses levels (vertices that run together), and groups of threads or CTAs (components.c: connected components)
 *     scopes.c    the graphs that batching policies see, and the levels that policies choose
 *     policies.c  the policies (walk.c: a walk through a graph batch by batch; automaton.c, learned.c: learned policies)
 *   cells.c     finds or compiles the batch's cells (history.c: cells of earlier batches; types.c: types of vertices)
 *   steps.c     sorts vertices into blocks (one type, one group, one part of the batch), and inside blocks by level
 *     deal.c      assigns connected components to groups and waves (parts of the batch), classifier vertices to slices (parts of waves)
 *   phases.c    makes tasks: a stage (part of a cell) over some vertices of a block, in a phase (time between two barriers)
 *   contributions.c  counts the gradients that vertices contribute, and lists their offsets
 *   memory.c    places a batch's tensors in the pool, the device's memory (allocate.c: by their lifetimes)
 *   encode.c    writes the words of blocks, lists and tasks (writer.c: appends them)
 *
 *   update.c    a script that only updates parameters
 */
#pragma once

#include "script/header.h"
#include "script/history.h"
#include "script/learned.h"
#include "script/policies.h"

/* What the script of a training batch does. */
typedef enum vpps_goal {
    VPPS_GOAL_STEP,      /* forward, backward, update */
    VPPS_GOAL_GRADIENTS, /* forward and backward; the device adds the gradients to its accumulated gradients */
    /* forward and backward, to get gradients of nodes; the accumulated gradients of parameters stay unchanged */
    VPPS_GOAL_NODES,
    VPPS_GOAL_UPDATE /* the gradients' norm and the update of the parameters, from the accumulated gradients */
} vpps_goal;

/* Which tasks of a script one launch runs. NO_HALF: all (no pause). FORWARD: the tasks before the pause. BACKWARD: the tasks after it. */
typedef enum vpps_half { VPPS_NO_HALF, VPPS_FORWARD_HALF, VPPS_BACKWARD_HALF } vpps_half;

/* Returns whether the script changes parameters. */
static inline bool vpps_goal_updates(vpps_goal goal) { return goal == VPPS_GOAL_STEP || goal == VPPS_GOAL_UPDATE; }

/* A request: what the script of a batch has to do. */
typedef struct vpps_batch_request {
    vpps_node loss;           /* training: the loss; VPPS_NO_NODE: inference, or training with `halves` */
    const vpps_node *outputs; /* nodes, never the loss, whose values the host reads after the script or at its pause */
    uint32_t n_outputs;
    /* Training in two halves: the script pauses after forward, the host writes gradients of the first n_given outputs, backward follows. */
    bool halves;
    uint32_t n_given;
    const vpps_node *gradient_nodes; /* training: nodes whose gradients the host reads; the loss is not among them */
    uint32_t n_gradient_nodes;
    vpps_goal goal;                  /* training: what the script does */
    const vpps_optimizer *optimizer; /* training: the optimizer, with its learning rate and other settings */
    /* training: for each parameter its own optimizer settings; NULL: all parameters use those of `optimizer` */
    const vpps_param_step *steps;
    vpps_gradients gradients;
    bool guard;    /* whether the update is skipped when the loss or a gradient is not finite */
    uint32_t step; /* number of the batch's update, counted from 1 */
    uint64_t dropout_key;
    bool no_dropout; /* whether dropout is off in training */
    /* number of groups of virtual processors, number of waves (parts of the batch that run in turn); 0: chosen by estimated cost */
    uint32_t groups, waves;
    bool keeps_groups; /* false: a batch that is one connected component runs in one group, whatever `groups` is */
    uint32_t slices;   /* number of slices of a wave (parts of its classifiers) to try first; 0: one */
    const vpps_policy *policy; /* batching policy for recurrences of several cells; NULL: "depth" */
    vpps_learned *learned;     /* learned policies (automata), if `policy` is a learned one */
} vpps_batch_request;

static inline bool vpps_request_trains(const vpps_batch_request *r) { return r->loss != VPPS_NO_NODE || r->halves; }

/* The properties of a batch from which a device's rule finds the number of groups of virtual processors. */
typedef struct vpps_batch_extent {
    uint32_t n_vps;
    double flops; /* number of floating-point operations in the batch, divided by n_vps */
    /* mean number of vertices at a level of a recurrence, which is the number of vectors that a matrix multiplies */
    double vectors;
    double levels; /* number of levels (steps of recurrences), in forward and backward together */
    double elems;  /* number of elements of all matrices */
    double rows;   /* number of rows of the largest matrix */
} vpps_batch_extent;

/* A device's rule: returns the number of groups of virtual processors with which a batch of this extent runs fastest: a divisor of n_vps,
 * at least 1 and at most `most`. */
typedef uint32_t vpps_group_rule(const vpps_batch_extent *e, uint32_t most);

/* Limits of a wave (a part of the batch that runs forward and backward before the next part). The number of waves follows from these limits
 * unless the request gives that number. 0: no limit. */
typedef struct vpps_wave_rule {
    uint64_t kept_words; /* most words that vertices of a wave (part of the batch) keep for backward */
    /* most words that a wave (part of the batch) writes, so that these words stay in caches */
    uint64_t cached_words;
    /* waves (parts of the batch) are made smaller for the caches only while a step has at least this many vertices per virtual processor */
    uint32_t cached_vertices;
} vpps_wave_rule;

/* What the scheduler knows of a device: its virtual processors, its memory, and its rules for dividing work among virtual processors. */
typedef struct vpps_target {
    uint32_t n_vps;
    const uint32_t *values; /* for each vector and lookup table: offset of its values in the pool (memory) */
    uint32_t batch;         /* first offset in the pool that tensors of a batch may use */
    uint32_t pool_words;    /* size of the pool (the device's memory) in words */
    vpps_row_rule rows;     /* how virtual processors divide the rows of matrices */
    /* whether the device can read gradients stored as two factors (scales), and operands in memory without a copy (in_place) */
    bool scales, in_place;
    uint32_t most_cells;  /* most cells of one compiled kernel; 0: the device compiles no kernels */
    bool ahead;           /* whether the device compiles kernels ahead, while batches run */
    uint32_t most_groups; /* most groups of virtual processors that run a batch, unless its request gives the number */
    /* function that gives the number of groups of processors, if most_groups is more than 1 */
    vpps_group_rule *choose_groups;
    uint32_t level_flops; /* least time of a level (step), as flops that one virtual processor could do in this time */
    vpps_wave_rule waves;
} vpps_target;

#define VPPS_NO_OFFSET UINT32_MAX

/* Where parameters lie: vectors and lookup tables at offsets in the pool of device memory (VPPS_NO_OFFSET: nowhere); each
 * device places matrices itself. `values`, `gradients` and `states` have an element for each parameter. */
typedef struct vpps_pool_plan {
    uint32_t n_vps;
    uint32_t *values;    /* offset of a vector's or lookup table's values; not used for matrices */
    uint32_t *gradients; /* offset of a vector's gradient; not used for tables and matrices */
    uint32_t *states[2]; /* offsets of the optimizer's states of a vector or lookup table; not used for matrices */
    uint32_t norms;      /* offset of n_vps words: each virtual processor's sum of squared gradients */
    /* If lookup tables are divided among processes: offsets below `sharded` stand for table entries, as if the whole tables lay at the
     * pool's beginning. This process has no memory at these offsets. */
    uint32_t sharded;
    uint32_t batch;      /* first offset of a batch's tensors in the pool */
    uint32_t pool_words; /* size of the pool in words */
} vpps_pool_plan;

struct vpps_schedule;

typedef struct vpps_batch {
    uint32_t *script; /* the script (the batch's program), an array of 32-bit words */
    size_t script_words;
    vpps_compiled_cell **cells; /* the compiled cells; the script names a cell by its index in this array */
    uint32_t n_cells;
    vpps_goal goal;
    vpps_half half; /* half of the script, forward or backward, that the next launch runs */
    uint32_t n_levels, n_phases, n_tasks, n_groups, n_waves, n_slices, pool_words;
    uint32_t n_vertices, n_nodes; /* numbers of vertices and of nodes of the graph */
    uint32_t n_steps;             /* number of forward steps; a step runs vertices of one cell together */
    uint32_t parameter_words;     /* number of words that parameters take in the pool */
    uint64_t live_words;          /* the most words of tensors (not parameters) that are in use at the same time */
    /* number of recurrences of several cells: only in these do batching policies make a difference */
    uint32_t n_choices;
    struct vpps_schedule *schedule; /* the intermediate values of scheduling (schedule.h) */
} vpps_batch;

vpps_status vpps_batch_create(vpps_batch **out);
void vpps_batch_destroy(vpps_batch *b);

/* Makes b->script for the graph. `history` owns the compiled cells and must outlive the script. Fails with the graph's own error, or with
 * SHAPE, ARGUMENT, MEMORY, POOL (the message gives the needed and the available bytes). */
vpps_status vpps_schedule_batch(vpps_batch *b, vpps_history *history, const vpps_target *target, vpps_graph *g,
                                const vpps_batch_request *request);

/* Sets only b->cells and b->n_groups, so that kernels can be compiled ahead. For later batches the call changes nothing, except that
 * `history` keeps the cells that it compiled. */
vpps_status vpps_choose_cells(vpps_batch *b, vpps_history *history, const vpps_target *target, vpps_graph *g,
                              const vpps_batch_request *request);

/* Sets b->cells and b->n_groups for an inference that may follow batch `trained`: cells for all outputs of the vertices it needed. */
vpps_status vpps_choose_inference_cells(vpps_batch *b, const vpps_batch *trained, vpps_history *history,
                                        const vpps_target *target, vpps_graph *g, const vpps_batch_request *request);

/* Makes a script that only computes the gradients' norm and updates the parameters, for request->groups groups. Fails with MEMORY. */
vpps_status vpps_schedule_update(vpps_batch *b, const vpps_target *target, const vpps_model *model,
                                 const vpps_batch_request *request);

/* Returns the offset in the pool at which the value of the request's output i lies after the script has run. */
uint32_t vpps_batch_output(const vpps_batch *b, uint32_t i);

/* Returns the offset in the pool of the gradient of the request's gradient node i; VPPS_NONE: the loss does not depend on the node. */
uint32_t vpps_batch_gradient(const vpps_batch *b, uint32_t i);

/* Where the host writes a gradient while a script pauses between forward and backward: at words [at, at + words) of the array below. */
typedef struct vpps_given {
    uint32_t at, words;
} vpps_given;
/* The array in which the host writes n gradients: words [first, first + words) of the pool. Word 0 of the array is for the loss. */
typedef struct vpps_given_array {
    uint32_t first, words, n;
    const vpps_given *gradients;
} vpps_given_array;
const vpps_given_array *vpps_batch_given(const vpps_batch *b);

/* Prints a script for people. Fails with IO. */
vpps_status vpps_print_batch(const vpps_batch *b, const vpps_model *model, FILE *file);
