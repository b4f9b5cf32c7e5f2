/* handle.h - a handle: a model, a device, and two scripts (tasks of a batch), one of which is made while the other runs.
 *
 *   handle.c      creation and end
 *   settings.c    what callers set: options, numbers of the optimiser, groups of parameters
 *   train.c       training steps and inference
 *   halves.c      training steps whose forward and backward are separate calls
 *   scripts.c     makes the script of a batch
 *   flight.c      launches batches, and takes their outcomes
 *   parameters.c  copies parameters and gradients to and from the model
 *   kept_values.c values that stay on the device between batches
 *   inference.c   handles that compute beside the one that trains
 *   statistics.c  statistics, trials, the trace */
#pragma once

#include "runtime/device.h"
#include "runtime/kept_space.h"
#include "runtime/policies.h"
#include "runtime/request.h"
#include "runtime/snapshot.h"

/* The state of a training step between its forward call and its backward call. */
typedef struct vpps_open_step {
    uint64_t number;  /* number, from 1, of the training step whose backward call is still to come; 0: there is none */
    uint64_t n_steps; /* number of training steps begun so far */
    uint64_t forward_ns; /* device time of the forward call, until it is added to the outcome of the backward call */
    vpps_goal goal;
    float *given; /* the caller's gradients, gathered so that one copy moves them to the device */
} vpps_open_step;

struct vpps_handle {
    vpps_model *model;
    vpps_options options;
    vpps_device *device;
    vpps_pool_plan plan;
    /* device properties by which scripts (tasks) are made; owned by the device */
    const vpps_target *target;
    vpps_history history; /* facts about earlier batches for the scheduler, such as compiled cells */
    /* measurements that choose the number of groups of virtual processors, i.e. CTAs or threads, and the batching policy */
    vpps_profile grouping, batching;
    const vpps_policy *policy; /* the batching policy in use: decides which vertices run together */
    vpps_learned learned;      /* learned batching automata */
    vpps_param_group *groups;  /* for each parameter: its own rates; NULL: the optimizer's rates apply to all */
    vpps_param_step *steps;    /* for each parameter: learning rate, momentum and weight decay for the latest batch */
    vpps_kept_space kept;      /* places of the values that stay on the device between batches */
    uint32_t number;           /* number of this handle in the process, counted from 1 */
    /* Copies of the parameters that this handle publishes or, for inference, reads; NULL: no other handle reads this one's parameters. */
    vpps_snapshot *snapshot;
    bool infers;      /* whether the handle only infers, with parameters that a training handle publishes (snapshot) */
    uint64_t version; /* if `infers`: how often vpps_publish_parameters had run when the device took its parameters */
    vpps_batch *programs[2];
    uint32_t next;       /* index in `programs` of the next batch's program (script); the other one may be running */
    bool in_flight;      /* whether a training batch is running, or its outcome was not taken yet */
    vpps_outcome latest; /* outcome of the latest finished training batch */
    uint64_t latest_number;
    uint64_t script_ns;     /* time spent on making the latest script (tasks of a batch) */
    uint64_t latest_end_ns; /* end of the preceding training batch by the device's clock; 0: none */
    vpps_goal latest_goal;  /* work of the latest launch: a whole step, gradients alone, or an update alone */
    uint32_t n_backward;    /* calls of vpps_backward since the last update */
    /* values and gradients that the caller of the latest vpps_backward or vpps_step_forward has asked for */
    vpps_asked asked;
    vpps_open_step open;
    vpps_pointers pointers; /* whether callers' arrays lie in host memory or in the device's */
    bool told_deferred;     /* whether the log has said that VPPS_GRADIENTS_ACCUMULATE is not used */
    bool pending;           /* whether the latest batch failed, and no call has returned the failure yet */
    vpps_status broken;     /* not OK: the device failed, and nothing more runs; the message is in `failure` */
    char failure[VPPS_MESSAGE_BYTES + 32];
    vpps_stats stats;
    uint32_t vote;
    /* times from launch to gradients, summed over batches: each batch's slowest process, and mean over processes */
    uint64_t slowest_ns, mean_ns;
    vpps_trace *trace; /* records time spans; NULL: nothing is recorded */
    uint32_t process;  /* vpps_process_number() of the process that created the handle */
};

/* ---- handle.c */

/* Checks that a handle is given and belongs to this process. Fails with ARGUMENT if it is NULL, and with STATE in a
 * child of fork(), which has neither the handle's threads nor its GPU. `call` is the public function's name. */
vpps_status vpps_handle_here(const vpps_handle *h, const char *call);

/* Checks that the handle can be used. Fails with ARGUMENT if it is NULL; with STATE in a child of fork(), and between a
 * training step's forward and backward calls. */
vpps_status vpps_handle_check(const vpps_handle *h, const char *call);

/* Opens a handle: for training if `snapshot` is NULL, else for inference with the snapshot's parameters. Fails as vpps_handle_create. */
vpps_status vpps_handle_open(vpps_handle **out, vpps_model *model, const vpps_options *given, vpps_snapshot *snapshot);

/* Checks that the handle can be used for training. Fails as vpps_handle_check does, and with STATE if the handle is for inference. */
vpps_status vpps_handle_trains(const vpps_handle *h, const char *call);

/* Returns OK, or the failure that made the handle unusable. */
vpps_status vpps_handle_whole(const vpps_handle *h);

/* Checks that the handle is for training and usable, and waits for the batch in flight. */
vpps_status vpps_handle_idle(vpps_handle *h, const char *call);

void vpps_handle_note_precision(vpps_handle *h);

/* ---- settings.c */

/* Checks a caller's options (NULL: the defaults) and converts them from the caller's struct version to this one. Fails with ARGUMENT. */
vpps_status vpps_options_take(const vpps_options *given, vpps_options *own);

/* ---- flight.c */

/* Waits for the batch in flight and takes its outcome; does nothing in a child of fork(). */
void vpps_handle_finish(vpps_handle *h);

/* Sends `vote`, any number, with this process's next batches. All processes get the sum of their numbers, by which they can agree. */
void vpps_handle_vote(vpps_handle *h, uint32_t vote);
/* Returns the sum of the numbers (votes) that all processes sent with the latest finished batch, equal in all processes; at first 0. */
uint32_t vpps_handle_votes(const vpps_handle *h);

/* Makes the handle unusable after a batch failed with `status`, since the device's contents are then unknown. With OK, does nothing.
 * `batch` is the training batch's number; 0: vpps_forward. Returns OK or the failure. */
vpps_status vpps_handle_break(vpps_handle *h, vpps_status status, uint64_t batch, const char *message);

/* Returns OK, the failure that made the handle unusable, or, once, the failure of the latest training batch. */
vpps_status vpps_handle_report(vpps_handle *h);

/* Number of choices that are made by timing batches (profiles): the device's settings, the number of groups of CTAs or
 * threads, and the batching policy (which vertices run together). */
enum { VPPS_PROFILES = 3 };
vpps_profile *vpps_profile_of(vpps_handle *h, uint32_t i);
/* Returns the profile (measurement of alternatives) that is still running, or NULL if all profiles have made their choice. */
vpps_profile *vpps_handle_profile(vpps_handle *h);

/* Lets the device take the next setting to be timed, such as a variant of the kernel. Fails as the device's `tune`. */
vpps_status vpps_handle_tune(vpps_handle *h);

/* Launches the program (script) that was made last, of training batch number `batch`, or of vpps_forward if `batch` is
 * 0. A failure makes the handle unusable, unless nothing was started: after MEMORY; if the device set `unstarted`; or
 * after POOL (the batch needs too much device memory) on a GPU, where another variant of the kernel may fit. */
vpps_status vpps_handle_launch(vpps_handle *h, uint64_t batch);

/* Starts a batch of the graph. Before that, returns the failure of the preceding batch or sets *stale_loss (may be NULL) to its loss. */
vpps_status vpps_handle_start(vpps_handle *h, vpps_graph *g, const vpps_batch_request *request, uint64_t batch,
                              float *stale_loss);

/* Waits for the oldest launch whose outcome was not taken, and takes it. */
void vpps_handle_wait(vpps_handle *h, vpps_outcome *out);

/* ---- train.c */

void vpps_handle_note_flight(vpps_handle *h, uint64_t number, vpps_goal goal);

/* Starts a training batch of the graph, and notes its statistics. Asks also for the values that are to stay on the device. */
vpps_status vpps_handle_train(vpps_handle *h, vpps_graph *g, vpps_batch_request *request, float *stale_loss);

/* ---- halves.c */

/* Waits until forward ends, then copies the requested values to the caller. batch: the training batch's number; else 0. */
vpps_status vpps_handle_end_forward(vpps_handle *h, vpps_graph *g, uint64_t batch, uint64_t *device_ns);

/* ---- scripts.c */

/* Returns the request that describes a training batch to the scheduler. */
vpps_batch_request vpps_handle_request(vpps_handle *h, vpps_node loss, vpps_goal goal);

/* Adds the nodes whose values or gradients the caller asked for (vpps_request) to the batch's request. */
void vpps_handle_ask(const vpps_handle *h, vpps_batch_request *request);

/* Makes the next batch's script (tasks) for `target`. `request` tells the number of groups of CTAs or threads; 0: the options tell it. */
vpps_status vpps_handle_script(vpps_handle *h, const vpps_target *target, vpps_graph *g,
                               const vpps_batch_request *asked);

/* If the batch just launched has new cells (vertex functions), tells the device which batches are likely next, so that
 * it compiles their kernels: training in fewer groups of CTAs, and inference on this graph. Does nothing while settings
 * are still being timed (profile), as the next batches depend on the fastest. */
void vpps_handle_foresee(vpps_handle *h, vpps_graph *g, const vpps_batch_request *launched);

/* Makes the script (tasks) of a training batch without running it. The result is valid until the handle's next call. Fails as vpps_fb. */
vpps_status vpps_handle_batch(vpps_handle *h, vpps_graph *g, vpps_node loss, const vpps_batch **out);

/* Makes a batch's program (script) for another device (`target`) and number of CTA or thread groups (0: automatic). */
vpps_status vpps_handle_batch_for(vpps_handle *h, vpps_graph *g, vpps_node loss, const vpps_target *target,
                                  uint32_t groups, const vpps_batch **out);

/* ---- inference.c */

/* Copies the newest published parameters to the device of a handle for inference; nothing may be in flight. Fails with DEVICE, MEMORY. */
vpps_status vpps_handle_refresh(vpps_handle *h);

/* ---- kept_values.c */

/* Checks that all kept values (vpps_keep) that the graph reads are on the device. Fails with STATE. */
vpps_status vpps_keep_check(const vpps_handle *h, const vpps_graph *g);
/* Adds the nodes whose values are to stay on the device to the request's outputs. Fails with MEMORY, or ARGUMENT if one is the loss. */
vpps_status vpps_keep_ask(vpps_handle *h, const vpps_graph *g, vpps_batch_request *request);
/* Some values that are to stay on the device are parameters: copies these to their lasting places, before batch b updates parameters.
 * Nothing may be in flight. Fails as the device does. */
vpps_status vpps_keep_parameters(vpps_handle *h, const vpps_graph *g, const vpps_batch *b);
/* Notes where in device memory the launched batch leaves those values that are to stay on the device, except parameters. */
void vpps_keep_launched(vpps_handle *h, vpps_graph *g, const vpps_batch *b);
/* Copies the finished batch's values that are to stay on the device to their lasting places. Fails as the device does. */
vpps_status vpps_keep_finished(vpps_handle *h);
