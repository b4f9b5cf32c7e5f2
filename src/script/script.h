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

/* What a training batch's program (script), which the device runs, has to compute. */
typedef enum vpps_goal {
    VPPS_GOAL_STEP,      /* forward, backward, update */
    VPPS_GOAL_GRADIENTS, /* forward and backward; the device adds the gradients to its accumulated gradients */
    VPPS_GOAL_NODES, /* forward and backward, for nodes' gradients; parameters' accumulated gradients do not change */
    VPPS_GOAL_UPDATE /* the gradients' norm and the update of the parameters, from the accumulated gradients */
} vpps_goal;

/* Which tasks of a batch's program one launch runs: all; or, of a training step in two halves, those before or those
 * after the stop, at which the host writes outputs' gradients. */
typedef enum vpps_half { VPPS_NO_HALF, VPPS_FORWARD_HALF, VPPS_BACKWARD_HALF } vpps_half;

/* Returns whether a batch's program for this goal changes the parameters. */
static inline bool vpps_goal_updates(vpps_goal goal) { return goal == VPPS_GOAL_STEP || goal == VPPS_GOAL_UPDATE; }

/* What the caller of the scheduler wants of a batch's program (script), which the device will run. */
typedef struct vpps_batch_request {
    vpps_node loss; /* training: the loss; VPPS_NO_NODE: inference, or the caller computes the loss after forward */
    const vpps_node *outputs; /* nodes, never the loss, whose values the host reads */
    uint32_t n_outputs;
    /* training in two halves: after forward the host reads outputs and gives gradients of the first n_given of them */
    bool halves;
    uint32_t n_given;
    const vpps_node *gradient_nodes; /* training: nodes whose gradients the host reads; the loss is not among them */
    uint32_t n_gradient_nodes;
    vpps_goal goal;                  /* training: which parts of a step the device computes */
    const vpps_optimizer *optimizer; /* training: the optimizer, with its learning rate and other settings */
    const vpps_param_step *steps;    /* training: each parameter's own settings; NULL: all use those of `optimizer` */
    vpps_gradients gradients;
    bool guard;    /* whether the update is skipped when the loss or a gradient is not finite */
    uint32_t step; /* number of the batch's update, counted from 1 */
    uint64_t dropout_key;
    bool no_dropout; /* whether dropout is off in training */
    /* groups: number of groups of threads or CTAs, which compute different examples; waves: number of parts of the
     * batch that run in turn; 0: chosen by estimated cost */
    uint32_t groups, waves;
    bool keeps_groups; /* whether a batch of one connected graph has `groups` groups of threads or CTAs; false: one */
    uint32_t slices; /* parts, run in turn, of the vertices that only the loss reads; more if memory is short; 0: one */
    const vpps_policy *policy; /* rule for which cell runs next in recurrences of several cells; NULL: "depth" */
    vpps_learned *learned;     /* learned rules of which cell runs next, if `policy` uses such rules */
} vpps_batch_request;

static inline bool vpps_request_trains(const vpps_batch_request *r) { return r->loss != VPPS_NO_NODE || r->halves; }

/* The sizes of a batch from which a device's rule finds into how many groups its threads or CTAs are divided. */
typedef struct vpps_batch_extent {
    uint32_t n_vps;
    double flops;   /* floating-point operations of the batch for each of n_vps virtual processors (threads or CTAs) */
    double vectors; /* mean number of vertices at a level of a recurrence: vectors that a matrix multiplies */
    double levels;  /* number of levels (steps of recurrences), in forward and backward together */
    double elems;   /* number of elements of all matrices */
    double rows;    /* number of rows of the largest matrix */
    /* streamed[g]: words of weights that, with g groups, each virtual processor reads from memory at each level; NULL: not known */
    const uint32_t *streamed;
} vpps_batch_extent;

/* A device's rule. Returns the number of groups of threads or CTAs, which compute different examples, with which a
 * batch of these sizes runs fastest: a divisor of e->n_vps, from 1 to `most`. */
typedef uint32_t vpps_group_rule(const vpps_batch_extent *e, uint32_t most);

/* Limits of a wave (a part of the batch that runs forward and backward before the next part). The number of waves follows from these limits
 * unless the request gives that number. 0: no limit. */
typedef struct vpps_wave_rule {
    uint64_t kept_words;   /* most words that vertices of a wave (part of the batch) keep for backward */
    uint64_t cached_words; /* most words that a wave (part of the batch) writes, so that they stay in caches */
    /* To fit caches, waves (batch parts) shrink to at least so many vertices of a cell and level per thread or CTA. */
    uint32_t cached_vertices;
} vpps_wave_rule;

/* What the scheduler, which writes batches' programs, knows of a device: its virtual processors (threads of a CPU, CTAs
 * of a GPU), its memory, and its rules for dividing work among them. */
typedef struct vpps_target {
    uint32_t n_vps;
    const uint32_t *values; /* for each vector and lookup table: offset of its values in the pool (memory) */
    uint32_t batch;         /* first offset in device memory that tensors of a batch may use */
    uint32_t pool_words;    /* size of the pool (the device's memory) in words */
    vpps_row_rule rows;     /* how threads or CTAs divide the rows of matrices */
    /* whether the device can read gradients stored as two factors (scales), and operands in memory without a copy (in_place) */
    bool scales, in_place;
    uint32_t most_cells;  /* most cells of one compiled kernel; 0: the device compiles no kernels */
    bool ahead;           /* whether the device compiles kernels ahead, while batches run */
    uint32_t most_groups; /* most groups of threads or CTAs (each computes some examples), unless a request says more */
    vpps_group_rule *choose_groups; /* used if most_groups is more than 1 */
    const uint32_t *streamed;       /* for choose_groups (vpps_batch_extent) */
    uint32_t level_flops; /* least time of a step of a recurrence, as flops that one thread or CTA could do meanwhile */
    vpps_wave_rule waves;
} vpps_target;

#define VPPS_NO_OFFSET UINT32_MAX

/* Where parameters lie: vectors and lookup tables at offsets in the pool of device memory (VPPS_NO_OFFSET: nowhere); each
 * device places matrices itself. `values`, `gradients` and `states` have an element for each parameter. */
typedef struct vpps_pool_plan {
    uint32_t n_vps;
    uint32_t *values;    /* offset in the pool of the values of a vector or lookup table; not used for matrices */
    uint32_t *gradients; /* offset of a vector's gradient; not used for tables and matrices */
    uint32_t *states[2]; /* offsets of the optimizer's states of a vector or lookup table; not used for matrices */
    uint32_t norms;      /* offset of n_vps words: each thread's or CTA's sum of squared gradients */
    /* If lookup tables are divided among processes: offsets below `sharded` stand for table entries, as if the whole tables lay at the
     * pool's beginning. This process has no memory at these offsets. */
    uint32_t sharded;
    uint32_t batch;      /* first offset of a batch's tensors in device memory */
    uint32_t pool_words; /* size of the pool (device memory) in words */
} vpps_pool_plan;

struct vpps_schedule;

typedef struct vpps_batch {
    uint32_t *script; /* the script (the batch's program), an array of 32-bit words */
    size_t script_words;
    vpps_compiled_cell **cells; /* the compiled cells; the batch's program names a cell by its index here */
    uint32_t n_cells;
    vpps_goal goal;
    vpps_half half; /* which tasks of the batch's program the next launch runs: all, forward's, backward's */
    uint32_t n_levels, n_phases, n_tasks, n_groups, n_waves, n_slices, pool_words;
    uint32_t n_vertices, n_nodes; /* numbers of applied cells and single ops; of all ops, those in cells included */
    uint32_t n_steps;             /* number of forward steps; a step runs vertices of one cell together */
    uint32_t parameter_words;     /* number of words that parameters take in device memory */
    uint64_t live_words;          /* the most words of tensors (not parameters) that are in use at the same time */
    uint32_t n_choices;           /* number of sets of cells that read each other (a batching policy orders each set) */
    struct vpps_schedule *schedule; /* the intermediate values of scheduling (schedule.h) */
} vpps_batch;

vpps_status vpps_batch_create(vpps_batch **out);
void vpps_batch_destroy(vpps_batch *b);

/* Makes b->script, a program that the device runs for the graph. `history` owns its compiled cells and must outlive it.
 * Fails with the graph's own error, SHAPE, ARGUMENT, MEMORY, POOL (then the message gives the bytes). */
vpps_status vpps_schedule_batch(vpps_batch *b, vpps_history *history, const vpps_target *target, vpps_graph *g,
                                const vpps_batch_request *request);

/* Sets only b->cells, the compiled cells that the graph needs, and b->n_groups, so that a kernel can be compiled before
 * such a batch runs. Does not count as a batch: in `history`, only new types and compiled cells are added. */
vpps_status vpps_choose_cells(vpps_batch *b, vpps_history *history, const vpps_target *target, vpps_graph *g,
                              const vpps_batch_request *request);

/* Sets b->cells (compiled cells) and b->n_groups for an inference batch of all outputs of all vertices that the
 * training batch `trained` computed, so that a kernel for inference can be compiled ahead. */
vpps_status vpps_choose_inference_cells(vpps_batch *b, const vpps_batch *trained, vpps_history *history,
                                        const vpps_target *target, vpps_graph *g, const vpps_batch_request *request);

/* Makes b->script, a program that only computes the gradients' norm and updates the parameters, for request->groups
 * groups of threads or CTAs. Fails with MEMORY. */
vpps_status vpps_schedule_update(vpps_batch *b, const vpps_target *target, const vpps_model *model,
                                 const vpps_batch_request *request);

/* Returns at which word of the device's memory (pool) the value of request->outputs[i] lies after the batch has run. */
uint32_t vpps_batch_output(const vpps_batch *b, uint32_t i);

/* Returns at which word of the device's memory (pool) the gradient of request->gradient_nodes[i] lies after the batch
 * has run; VPPS_NONE: the loss does not depend on the node. */
uint32_t vpps_batch_gradient(const vpps_batch *b, uint32_t i);

/* Where the host writes the gradient of an output between forward and backward, if the caller computes the loss: words
 * [at, at + words) of one array for all such gradients (vpps_given_array). */
typedef struct vpps_given {
    uint32_t at, words;
} vpps_given;
/* Array in device memory, words [first, first + words): the host writes the caller's loss (word 0), and the caller's gradients of n outputs. */
typedef struct vpps_given_array {
    uint32_t first, words, n;
    const vpps_given *gradients;
} vpps_given_array;
const vpps_given_array *vpps_batch_given(const vpps_batch *b);

/* Prints a batch's program (script) as text, a line for each task. Fails with IO. */
vpps_status vpps_print_batch(const vpps_batch *b, const vpps_model *model, FILE *file);
