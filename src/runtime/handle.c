/* handle.c - creation and end of a handle, and checks whether it can be used. */
#include "runtime/handle.h"
#include "runtime/devices.h"
#include "runtime/layout.h"
#include "runtime/log.h"

#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>

const char *const vpps_precision_names[] = {
#define X(id, name) name,
    VPPS_PRECISION_TABLE(X)
#undef X
};

const char *const vpps_gradient_makers[] = {[VPPS_GRADIENTS_DEFERRED] = "kernel",
                                            [VPPS_GRADIENTS_ACCUMULATE] = "kernel",
                                            [VPPS_GRADIENTS_CUBLAS] = "cublas",
                                            [VPPS_GRADIENTS_AUTO] = NULL,
                                            [VPPS_GRADIENTS_CUBLAS_TF32] = "cublas-tf32"};

static vpps_status create_device(vpps_handle *h, const vpps_device_table *device) {
    if (!h->infers) return device->create(&h->device, h->model, &h->options, &h->plan);
    const vpps_model *parameters = vpps_snapshot_lock(h->snapshot, &h->version);
    const vpps_status status = device->create(&h->device, parameters, &h->options, &h->plan);
    vpps_snapshot_unlock(h->snapshot);
    return status;
}

/* Opens the device that the options name. If "auto" selects a device that cannot be opened, the call fails, so that the user learns why. */
static vpps_status open_device(vpps_handle *h) {
    const vpps_device_table *device;
    const char *name = h->options.device ? h->options.device : vpps_devices[0]->name;
    const bool any = !vpps_device_named(name);
    VPPS_TRY(vpps_device_meant(name, &device));
    if (any && !device->find) vpps_log_line(&h->options, "using the %s: %s", device->name, vpps_error_message());
    const vpps_status status = create_device(h, device);
    if (!any || !device->find || status != VPPS_DEVICE) return status;
    char text[VPPS_MESSAGE_BYTES];
    snprintf(text, sizeof text, "%s", vpps_error_message());
    return vpps_fail(status, "%s; the device %s is there, so \"auto\" does not take the %s", text, device->name,
                     vpps_devices[0]->name);
}

static vpps_status check_shards(const vpps_model *model, const vpps_communicator *c) {
    const uint32_t rank = vpps_communicator_rank(c), size = vpps_communicator_size(c);
    if (model->shards < 2 || (model->rank == rank && model->shards == size)) return VPPS_OK;
    return vpps_fail(VPPS_ARGUMENT,
                     "handle: the model's lookup tables are shared out, and this is process %u of %u; the options' "
                     "communicator has it as %u of %u",
                     model->rank, model->shards, rank, size);
}

void vpps_handle_note_precision(vpps_handle *h) {
    h->stats.precision = vpps_precision_names[h->device->precision];
    h->stats.precision_unit = h->device->unit;
}

static vpps_status check_model(const vpps_model *model, const vpps_options *options, bool infers) {
    if (!infers && model->trainers)
        return vpps_fail(
            VPPS_STATE,
            "handle: the model has one already; expected that to be ended before, by vpps_handle_destroy, or in "
            "Python by close() of the other trainer: the model keeps what it has learned");
    if (!infers) return check_shards(model, options->communicator);
    if (options->communicator)
        return vpps_fail(VPPS_ARGUMENT, "handle: a communicator is given; one for inference has no processes");
    return VPPS_OK;
}

static vpps_handle *new_handle(vpps_model *model, const vpps_options *options, vpps_snapshot *snapshot) {
    static atomic_uint handles;
    vpps_handle *h = calloc(1, sizeof *h);
    if (!h) return NULL;
    h->model = model;
    h->number = atomic_fetch_add(&handles, 1) + 1;
    h->options = *options;
    h->process = vpps_process_number();
    h->latest.loss = NAN;
    h->learned.store = &vpps_policies_on_disk;
    h->stats.rank = vpps_communicator_rank(options->communicator);
    h->stats.processes = vpps_communicator_size(options->communicator);
    h->infers = snapshot != NULL;
    if (snapshot) h->snapshot = vpps_snapshot_share(snapshot);
    if (snapshot) h->options.optimizer = (vpps_optimizer){.kind = VPPS_SGD}; /* inference only: no optimiser state */
    atomic_fetch_add(&model->handles, 1);
    if (!snapshot) atomic_fetch_add(&model->trainers, 1);
    return h;
}

static vpps_status set_up(vpps_handle *h) {
    h->target = h->device->target;
    /* The policy "share" makes few steps (a cell over some vertices). On a CPU, each step reads the weights; a GPU keeps them on chip. */
    if (!h->options.policy && !h->target->most_cells) h->policy = vpps_policy_find("share");
    h->options.policy = NULL; /* the caller's string may not outlive this call */
    h->stats.gpu = h->device->number;
    h->options.device = h->stats.device = h->device->table->name;
    h->stats.decides = h->device->table->decides && !h->plan.sharded;
    h->stats.vps = h->plan.n_vps;
    vpps_handle_note_precision(h);
    h->stats.caller_works = h->device->caller_works;
    const bool host_vps = h->device->table->host_vps;
    if (h->options.groups == VPPS_GROUPS_PROFILE)
        vpps_profile_groups(&h->grouping, h->plan.n_vps, h->target->most_groups);
    if (!h->options.trace_events) return VPPS_OK;
    VPPS_TRY(vpps_trace_create(&h->trace, h->options.trace_events, host_vps ? h->plan.n_vps : 0));
    h->device->trace = h->trace;
    return VPPS_OK;
}

vpps_status vpps_handle_open(vpps_handle **out, vpps_model *model, const vpps_options *given, vpps_snapshot *snapshot) {
    vpps_options options;
    VPPS_TRY(vpps_options_take(given, &options));
    VPPS_TRY(check_model(model, &options, snapshot));
    vpps_handle *h = new_handle(model, &options, snapshot);
    if (!h) return vpps_fail(VPPS_MEMORY, "handle: out of memory");
    vpps_status status = vpps_open_policy(options.policy, &h->policy, &h->batching);
    for (int i = 0; i < 2 && status == VPPS_OK; i++) status = vpps_batch_create(&h->programs[i]);
    if (status == VPPS_OK) status = open_device(h);
    if (status == VPPS_OK) status = set_up(h);
    if (status == VPPS_OK && !snapshot) {
        vpps_take_over_states(model, options.optimizer.kind);
        status = vpps_need_states(model, vpps_optimizer_states(options.optimizer.kind), true);
    }
    if (status == VPPS_OK) return *out = h, VPPS_OK;
    vpps_handle_destroy(h);
    return status;
}

vpps_status vpps_handle_create(vpps_handle **out, vpps_model *model, const vpps_options *options) {
    VPPS_NEED(out);
    *out = NULL;
    VPPS_NEED(model);
    return vpps_handle_open(out, model, options, NULL);
}

void vpps_handle_destroy(vpps_handle *h) {
    if (!h) return;
    const bool here = h->process == vpps_process_number();
    if (h->in_flight) vpps_handle_finish(h);
    if (h->device && here) h->device->table->destroy(h->device); /* a child of fork() has no threads of the device */
    for (int i = 0; i < 2; i++) vpps_batch_destroy(h->programs[i]);
    vpps_history_free(&h->history);
    vpps_learned_free(&h->learned);
    vpps_kept_space_free(&h->kept);
    vpps_trace_destroy(h->trace);
    VPPS_FREE_ARRAYS(h->asked.nodes, h->asked.reads, h->open.given);
    VPPS_FREE(h->groups, h->steps);
    vpps_snapshot_drop(h->snapshot);
    if (!h->infers) atomic_fetch_sub(&h->model->trainers, 1);
    atomic_fetch_sub(&h->model->handles, 1);
    free(h);
}

vpps_status vpps_handle_here(const vpps_handle *h, const char *call) {
    if (!h) return vpps_fail(VPPS_ARGUMENT, "%s: no handle given", call);
    if (h->process == vpps_process_number()) return VPPS_OK;
    return vpps_fail(VPPS_STATE, "%s: the handle belongs to the process that made it, and this one was forked from it",
                     call);
}

vpps_status vpps_handle_check(const vpps_handle *h, const char *call) {
    VPPS_TRY(vpps_handle_here(h, call));
    if (!h->open.number || h->broken != VPPS_OK) return VPPS_OK;
    return vpps_fail(VPPS_STATE,
                     "%s: step %" PRIu64 " (batch %" PRIu64
                     ") is open between forward and backward; expected vpps_step_backward or vpps_step_drop",
                     call, h->open.number, h->model->batches + 1);
}

vpps_status vpps_handle_trains(const vpps_handle *h, const char *call) {
    VPPS_TRY(vpps_handle_check(h, call));
    return h->infers ? vpps_fail(VPPS_STATE, "%s: the handle is one for inference; expected the one that trains", call)
                     : VPPS_OK;
}

vpps_status vpps_handle_whole(const vpps_handle *h) {
    return h->broken == VPPS_OK ? VPPS_OK : vpps_fail(h->broken, "%s", h->failure);
}

vpps_status vpps_handle_idle(vpps_handle *h, const char *call) {
    VPPS_TRY(vpps_handle_trains(h, call));
    vpps_handle_finish(h);
    return vpps_handle_whole(h);
}
