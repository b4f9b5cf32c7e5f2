/* handle.h - a handle: a model, a device, and two programs, of which one is made while the other runs.
 *
 *   handle.c      life
 *   settings.c    what callers set: options, numbers of the optimiser, groups of parameters
 *   train.c       training steps and inference
 *   halves.c      training steps in two halves
 *   scripts.c     the script of a batch
 *   flight.c      batches in flight, and their outcomes
 *   parameters.c  parameters and gradients, to the model and from it
 *   keep.c        kept values
 *   inference.c   handles that compute beside the one that trains
 *   tell.c        statistics, trials, the trace
 */
#pragma once

#include "runtime/device.h"
#include "runtime/keeper.h"
#include "runtime/policies.h"
#include "runtime/request.h"
#include "runtime/snapshot.h"

/* What the device was told of batches that it may get. */
typedef struct vpps_foreseen {
    uint32_t cells;  /* n_compiled of the types then */
    uint32_t groups; /* fewer than batches have */
} vpps_foreseen;

/* A training step between its halves. */
typedef struct vpps_open_step {
    uint64_t number;     /* counted from 1; 0: none is open */
    uint64_t n_steps;    /* so far */
    uint64_t forward_ns; /* time of the device in the forward half, until the other half's outcome is taken */
    vpps_step_part part;
    float *given; /* gradients on their way to the device */
} vpps_open_step;

struct vpps_handle {
    vpps_model *model;
    vpps_options options;
    vpps_device *device;
    vpps_plan plan;
    const vpps_task_plan *machine;   /* the device's */
    vpps_types types;                /* compiled cells */
    vpps_profile grouping, batching; /* of groups, and, when these are chosen, of policies */
    const vpps_policy *policy;       /* where none is profiled, or of vpps_forward */
    vpps_learned learned;            /* automata */
    vpps_param_group *groups;        /* of each parameter; NULL: all step by the optimizer */
    vpps_param_step *steps;          /* what they come to, of the latest request */
    vpps_keeper keeper;              /* of kept values */
    uint32_t number;                 /* of this handle in the process, from 1 */
    vpps_snapshot
        *snapshot; /* the snapshot that it publishes, or reads; NULL: it trains, and there is no handle for inference */
    bool infers;   /* it reads one */
    uint64_t version; /* the snapshot's version that the device has */
    vpps_batch *programs[2];
    vpps_foreseen foreseen[2]; /* by batches that infer, that train */
    uint32_t next;             /* program for the next batch; the other may be in flight */
    bool in_flight;            /* a training batch was launched and its outcome is not taken yet */
    vpps_outcome latest;       /* of the latest training batch taken */
    uint64_t latest_number;
    uint64_t script_ns;         /* making the latest script took so long */
    uint64_t latest_end_ns;     /* of the training batch taken before; 0: none was */
    vpps_step_part latest_part; /* of the latest training batch launched */
    uint32_t n_backward;        /* calls of vpps_backward since the latest update */
    vpps_asked asked;           /* of the latest call of vpps_backward or vpps_step_forward */
    vpps_open_step open;
    bool told_deferred; /* the log has said that gradients are not accumulated level by level */
    bool pending;       /* the latest batch failed, and no call has returned that yet */
    vpps_status broken; /* not OK: the device failed, and nothing more runs; the message is in `failure` */
    char failure[VPPS_MESSAGE_BYTES + 32];
    vpps_stats stats;
    uint32_t vote;
    uint64_t slowest_ns, mean_ns; /* of the processes, summed over batches */
    vpps_trace *trace;            /* NULL: nothing is noted */
    uint32_t process;             /* vpps_process_number() of who made it */
};

/* ---- handle.c */

/* Is the handle there? Fails with ARGUMENT (NULL), STATE (it is another process's: this one is a child of fork(), and
 * has neither its threads nor its GPU). `call` is the public function's name. */
vpps_status vpps_handle_here(const vpps_handle *h, const char *call);

/* Can the handle be used? Fails likewise, and with STATE (a step is open). */
vpps_status vpps_handle_check(const vpps_handle *h, const char *call);

/* A handle; `snapshot` NULL: it trains. Else it reads that one, and holds it on success. Fails as vpps_handle_create does. */
vpps_status vpps_handle_open(vpps_handle **out, vpps_model *model, const vpps_options *given, vpps_snapshot *snapshot);

/* vpps_handle_check, of a handle that trains: STATE for others. */
vpps_status vpps_handle_trains(const vpps_handle *h, const char *call);

/* OK, or what broke the handle. */
vpps_status vpps_handle_whole(const vpps_handle *h);

/* All of these, of a handle that trains, and nothing is in flight. */
vpps_status vpps_handle_idle(vpps_handle *h, const char *call);

/* Tells the device's precision in the statistics. */
void vpps_handle_note_precision(vpps_handle *h);

/* ---- settings.c */

/* Checks a caller's options (NULL: the defaults) and converts them to this version's struct. Fails with ARGUMENT. */
vpps_status vpps_options_take(const vpps_options *given, vpps_options *own);

/* ---- flight.c */

/* Waits for the batch in flight and takes its outcome; does nothing in a child of fork(). */
void vpps_handle_settle(vpps_handle *h);

/* Several processes: `vote` goes along with this process's next batches; the sum of all processes' votes comes back with the
 * latest batch that was taken (0: none was), the same in all. */
void vpps_handle_vote(vpps_handle *h, uint32_t vote);
uint32_t vpps_handle_votes(const vpps_handle *h);

/* To be called with the outcome of a batch: after a failure the device's contents are unknown, and nothing more runs. OK changes nothing.
 * `batch`: number of the training batch; 0: vpps_forward. Returns what vpps_handle_whole does, or OK. */
vpps_status vpps_handle_break(vpps_handle *h, vpps_status status, uint64_t batch, const char *message);

/* OK, what broke the handle, or the failure that the latest training batch left, once. */
vpps_status vpps_handle_report(vpps_handle *h);

/* The profiles, one after the other: of the device's own choice, of groups, and, when these are chosen, of policies. Then the one whose
 * candidates batches run with; NULL: all choices are made. */
enum { VPPS_PROFILES = 3 };
vpps_profile *vpps_profile_of(vpps_handle *h, uint32_t i);
vpps_profile *vpps_handle_profile(vpps_handle *h);

/* Between two batches: the next candidate. Fails as the device's `tune`. */
vpps_status vpps_handle_tune(vpps_handle *h);

/* Starts the script that was made, of training batch number `batch`, or 0: of vpps_forward. A launch that fails leaves the
 * device as unknown as a batch that does, but where nothing was started: with MEMORY; with POOL, where a device that chooses
 * has no kernel for the batch; while its profile goes on, another candidate is due; and where the device says so (`unstarted`), as of a
 * kernel that cannot be made. */
vpps_status vpps_handle_launch(vpps_handle *h, uint64_t batch);

/* Returns the failure of the preceding batch, if there is one, or its loss (may be NULL); and starts this batch. */
vpps_status vpps_handle_start(vpps_handle *h, vpps_graph *g, const vpps_batch_request *request, uint64_t batch,
                              float *stale_loss);

/* Waits for the oldest launch that was not waited for. */
void vpps_handle_wait(vpps_handle *h, vpps_outcome *out);

/* ---- train.c */

/* A training batch was launched. */
void vpps_handle_note_flight(vpps_handle *h, uint64_t number, vpps_step_part part);

/* Counts the next program's script, of this graph, in the statistics. */
void vpps_handle_count_script(vpps_handle *h, const vpps_graph *g);

/* ---- scripts.c */

/* The request of a training batch. */
vpps_batch_request vpps_handle_request(vpps_handle *h, vpps_node loss, vpps_step_part part);

/* Adds what the caller's vpps_request asks for. */
void vpps_handle_ask(const vpps_handle *h, vpps_batch_request *request);

/* Makes the next program's script, for that machine, in as many groups as the request says; 0: as the options say. Fails as vpps_fb
 * does. */
vpps_status vpps_handle_script(vpps_handle *h, const vpps_task_plan *machine, vpps_graph *g,
                               const vpps_batch_request *asked);

/* Tells the device what batches it can expect after the one that was launched: the graph's inference, once there are new cells; and another number
 * of groups. Not while a profile goes on, whose choices decide that. */
void vpps_handle_foresee(vpps_handle *h, vpps_graph *g, const vpps_batch_request *launched);

/* The training batch of a graph, scheduled and not run. Valid until the next call with the handle. Fails as vpps_fb does. */
vpps_status vpps_handle_batch(vpps_handle *h, vpps_graph *g, vpps_node loss, const vpps_batch **out);

/* Likewise for another device's machine, which executes its cells, in so many groups; 0: as the machine chooses. */
vpps_status vpps_handle_batch_for(vpps_handle *h, vpps_graph *g, vpps_node loss, const vpps_task_plan *machine,
                                  uint32_t groups, const vpps_batch **out);

/* ---- inference.c */

/* The device of a handle for inference gets the newest parameters; nothing is in flight. Fails with DEVICE, MEMORY. */
vpps_status vpps_handle_refresh(vpps_handle *h);

/* ---- keep.c */

/* Kept values, around a run of a graph. check: can the graph read those that it names? STATE otherwise. ask: adds the nodes
 * that are to be kept to what the request reads; fails with MEMORY, ARGUMENT (one is the loss). launched: the request's batch runs,
 * or has run. settled: its values are copied to their places; fails as the device does. */
vpps_status vpps_keep_check(const vpps_handle *h, const vpps_graph *g);
vpps_status vpps_keep_ask(vpps_handle *h, const vpps_graph *g, vpps_batch_request *request);
void vpps_keep_launched(vpps_handle *h, vpps_graph *g, const vpps_batch *b);
vpps_status vpps_keep_settled(vpps_handle *h);
