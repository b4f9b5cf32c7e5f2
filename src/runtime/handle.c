/* handle.c - vpps_fb and what goes with it: schedule, launch, and take outcomes one batch later. */
#include "runtime/handle.h"
#include "runtime/layout.h"
#include "runtime/log.h"
#include "script/verify/verify.h"

#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>

static const vpps_device_table *const devices[] = {&vpps_device_cpu, &vpps_device_cuda, &vpps_device_simt};

const char *const vpps_precision_names[] = {
#define X(id, name) name,
    VPPS_PRECISION_TABLE(X)
#undef X
};

static vpps_options default_options(void) {
    return (vpps_options){
        .size = sizeof(vpps_options),
        .device = "cpu",
        .optimizer = {.kind = VPPS_SGD, .lr = 0.1f, .momentum = 0.9f, .beta1 = 0.9f, .beta2 = 0.999f, .epsilon = 1e-8f},
        .gradients = VPPS_GRADIENTS_DEFERRED,
        .nonfinite = VPPS_NONFINITE_STOP,
        .caller = VPPS_CALLER_AUTO,
        .watchdog_ms = 10000,
        .seed = 1,
    };
}

enum { LEAST_OPTIONS = VPPS_LEAST(vpps_options, optimizer) };

vpps_status vpps_options_init(vpps_options *options, size_t size) {
    VPPS_NEED(options);
    const vpps_options defaults = default_options();
    memcpy(options, &size, sizeof size);
    return vpps_give_struct(options, &defaults, sizeof defaults, LEAST_OPTIONS, "vpps_options");
}

static bool in_range(float x, float low, float high) { return x >= low && x <= high; }

static vpps_status check_options(const vpps_options *o) {
    const vpps_optimizer *p = &o->optimizer;
    if ((unsigned)p->kind >= VPPS_OPTIMIZERS || (unsigned)o->gradients > VPPS_GRADIENTS_AUTO ||
        (unsigned)o->nonfinite > VPPS_NONFINITE_IGNORE || (unsigned)o->caller > VPPS_CALLER_FREE ||
        (unsigned)o->precision > VPPS_PRECISION_AUTO) {
        return vpps_fail(VPPS_ARGUMENT, "options: an enumeration holds a value that it does not have");
    }
    if (!in_range(p->lr, 0, 1e30f) || !in_range(p->weight_decay, 0, 1e30f) || !in_range(p->clip, 0, 1e30f) ||
        !in_range(p->epsilon, 0, 1e30f)) {
        return vpps_fail(VPPS_ARGUMENT, "options: lr %g, weight decay %g, clip %g, epsilon %g; expected none negative",
                         (double)p->lr, (double)p->weight_decay, (double)p->clip, (double)p->epsilon);
    }
    if (!in_range(p->momentum, 0, 1) || !in_range(p->beta1, 0, 1) || !in_range(p->beta2, 0, 1) || p->beta1 == 1 ||
        p->beta2 == 1) {
        return vpps_fail(VPPS_ARGUMENT, "options: momentum %g, beta1 %g, beta2 %g; expected 0 to 1, betas below 1",
                         (double)p->momentum, (double)p->beta1, (double)p->beta2);
    }
    return VPPS_OK;
}

/* Creates the device of that name. */
static vpps_status open_device(vpps_handle *h, const char *name) {
    for (size_t i = 0; i < VPPS_COUNT(devices); i++) {
        if (strcmp(devices[i]->name, name) != 0) continue;
        if (!h->infers) return devices[i]->create(&h->device, h->model, &h->options, &h->plan);
        const vpps_model *parameters = vpps_snapshot_lock(h->snapshot, &h->version);
        const vpps_status status = devices[i]->create(&h->device, parameters, &h->options, &h->plan);
        vpps_snapshot_unlock(h->snapshot);
        return status;
    }
    return vpps_fail(VPPS_DEVICE, "device %s: unknown; there are: auto, cpu, cuda, simt", name);
}

/* A GPU if there is one. Only that there is none is no failure: whoever has a GPU wants to know why it is not used. */
static vpps_status open_any_device(vpps_handle *h) {
    char text[VPPS_MESSAGE_BYTES];
    if (vpps_device_cuda.find() != VPPS_OK) {
        vpps_log_line(&h->options, "using the cpu: %s", vpps_error_message());
        return open_device(h, "cpu");
    }
    const vpps_status status = open_device(h, "cuda");
    if (status != VPPS_DEVICE) return status;
    snprintf(text, sizeof text, "%s", vpps_error_message());
    return vpps_fail(status, "%s; there is a GPU, so \"auto\" does not take the cpu", text);
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
    h->stats.precision = vpps_precision_names[h->device->table->precision(h->device, &h->stats.precision_unit)];
}

/* As the caller asks for it: checked, and as this version has it. */
static vpps_status take_options(const vpps_options *given, vpps_options *own) {
    *own = default_options();
    if (given) VPPS_TRY(vpps_take_struct(own, sizeof *own, LEAST_OPTIONS, given, "vpps_options"));
    return check_options(own);
}

static vpps_status check_model(const vpps_model *model, const vpps_options *options, bool infers) {
    if (!infers && model->trainers) return vpps_fail(VPPS_STATE, "handle: the model has one already");
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
    if (snapshot) h->options.optimizer = (vpps_optimizer){.kind = VPPS_SGD}; /* no state */
    atomic_fetch_add(&model->handles, 1);
    if (!snapshot) atomic_fetch_add(&model->trainers, 1);
    return h;
}

/* What follows from the device. */
static vpps_status set_up(vpps_handle *h) {
    h->machine = h->device->table->machine(h->device);
    h->options.policy = NULL; /* the caller's text may go */
    h->options.device = h->stats.device = h->device->table->name;
    h->stats.decides = h->device->table->decides && !h->plan.sharded;
    h->stats.vps = h->plan.n_vps;
    h->types.widens = h->device->table->recompiles;
    vpps_handle_note_precision(h);
    h->stats.caller_works = h->device->table->caller_works(h->device);
    const bool host_vps = h->device->table->host_vps;
    if (h->options.groups == VPPS_GROUPS_PROFILE) {
        const uint32_t most = h->machine->most_groups;
        vpps_profile_groups(&h->grouping, h->plan.n_vps, most ? most : h->plan.n_vps);
    }
    if (!h->options.trace_events) return VPPS_OK;
    VPPS_TRY(vpps_trace_create(&h->trace, h->options.trace_events, host_vps ? h->plan.n_vps : 0));
    h->device->trace = h->trace;
    return VPPS_OK;
}

vpps_status vpps_handle_open(vpps_handle **out, vpps_model *model, const vpps_options *given, vpps_snapshot *snapshot) {
    vpps_options options;
    VPPS_TRY(take_options(given, &options));
    VPPS_TRY(check_model(model, &options, snapshot));
    if (!snapshot) VPPS_TRY(vpps_need_states(model, vpps_optimizer_states(options.optimizer.kind)));
    vpps_handle *h = new_handle(model, &options, snapshot);
    if (!h) return vpps_fail(VPPS_MEMORY, "handle: out of memory");
    vpps_status status = vpps_open_policy(options.policy, &h->policy, &h->batching);
    for (int i = 0; i < 2 && status == VPPS_OK; i++) status = vpps_batch_create(&h->programs[i]);
    const char *name = options.device ? options.device : "cpu";
    if (status == VPPS_OK) status = strcmp(name, "auto") ? open_device(h, name) : open_any_device(h);
    if (status == VPPS_OK) status = set_up(h);
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
    if (h->in_flight) vpps_handle_settle(h);
    if (h->device && here) h->device->table->destroy(h->device); /* its threads are not in a child of fork() */
    for (int i = 0; i < 2; i++) vpps_batch_destroy(h->programs[i]);
    vpps_types_free(&h->types);
    vpps_learned_free(&h->learned);
    vpps_keeper_free(&h->keeper);
    vpps_trace_destroy(h->trace);
    free(h->groups);
    free(h->steps);
    free(h->asked.nodes);
    free(h->asked.reads);
    vpps_snapshot_drop(h->snapshot);
    if (!h->infers) atomic_fetch_sub(&h->model->trainers, 1);
    atomic_fetch_sub(&h->model->handles, 1);
    free(h);
}

/* ---------------------------------------------------------------- outcomes */

/* When a span of the trace begins; nobody asks without one. */
static uint64_t trace_clock(const vpps_handle *h) { return h->trace ? vpps_now_ns() : 0; }

vpps_status vpps_handle_check(const vpps_handle *h, const char *call) {
    if (!h) return vpps_fail(VPPS_ARGUMENT, "%s: no handle given", call);
    if (h->process == vpps_process_number()) return VPPS_OK;
    return vpps_fail(VPPS_STATE, "%s: the handle belongs to the process that made it, and this one was forked from it",
                     call);
}

vpps_status vpps_handle_trains(const vpps_handle *h, const char *call) {
    VPPS_TRY(vpps_handle_check(h, call));
    return h->infers ? vpps_fail(VPPS_STATE, "%s: the handle is one for inference; expected the one that trains", call)
                     : VPPS_OK;
}

vpps_status vpps_handle_whole(const vpps_handle *h) {
    return h->broken == VPPS_OK ? VPPS_OK : vpps_fail(h->broken, "%s", h->failure);
}

/* What the device holds is unknown from now on, so nothing more runs. `batch`: number of the training batch that failed;
 * 0: vpps_forward did. */
static void break_handle(vpps_handle *h, vpps_status status, uint64_t batch, const char *message) {
    char what[32] = "forward";
    if (batch) snprintf(what, sizeof what, "batch %" PRIu64, batch);
    h->broken = status;
    snprintf(h->failure, sizeof h->failure, "%s: %s", what, message);
}

/* Does the latest training batch, whose outcome is there, step? */
static bool stepped(const vpps_handle *h) { return vpps_part_updates(h->latest_part); }

/* The device has not applied the latest batch where its loss or the norm of its gradient is not finite. */
static void check_finite(vpps_handle *h) {
    const bool loss = !isfinite(h->latest.loss);
    if (!loss && isfinite(h->latest.norm)) return;
    h->stats.skipped++;
    if (h->options.nonfinite != VPPS_NONFINITE_STOP) return;
    h->pending = true;
    h->latest.status = VPPS_NONFINITE;
    snprintf(h->latest.message, sizeof h->latest.message, "%s is %g; parameters are as before this batch",
             loss ? "the loss" : "the gradient's norm", (double)(loss ? h->latest.loss : h->latest.norm));
}

static void wait_for_device(vpps_handle *h, vpps_outcome *out) {
    const uint64_t begin = trace_clock(h);
    h->device->table->wait(h->device, out);
    vpps_trace_span(h->trace, "wait for device", begin);
    if (h->trace) vpps_trace_landed(h->trace, out->device_ns);
}

static void count_share(vpps_handle *h) {
    const vpps_share_cost *cost = &h->latest.shared;
    h->stats.total_exchange_ns += cost->exchange_ns + cost->fetch_ns;
    h->stats.total_sent_bytes += cost->sent_bytes;
    h->slowest_ns += cost->slowest_ns;
    h->mean_ns += cost->mean_ns;
    h->stats.imbalance = h->mean_ns ? (double)h->slowest_ns / (double)h->mean_ns - 1 : 0;
}

/* What the device had to wait between two training batches. */
static void count_gap(vpps_handle *h) {
    vpps_stats *s = &h->stats;
    const uint64_t before = h->latest_end_ns;
    const bool known = before && h->latest.begin_ns >= before && h->latest.end_ns >= h->latest.begin_ns;
    s->wall_ns = known ? h->latest.end_ns - before : 0;
    s->gap_ns = known ? h->latest.begin_ns - before : 0;
    s->total_wall_ns += s->wall_ns;
    s->total_gap_ns += s->gap_ns;
    h->latest_end_ns = h->latest.end_ns;
}

/* The profiles, one after the other: of the device's own choice, of groups, and, when these are chosen, of policies. */
enum { PROFILES = 3 };
static vpps_profile *profile_of(vpps_handle *h, uint32_t i) {
    vpps_profile *const all[PROFILES] = {&h->device->profile, &h->grouping, &h->batching};
    return all[i];
}

/* The profile whose candidates batches run with. NULL: all choices are made. */
static vpps_profile *open_profile(vpps_handle *h) {
    for (uint32_t i = 0; i < PROFILES; i++)
        if (vpps_profile_goes_on(profile_of(h, i))) return profile_of(h, i);
    return NULL;
}

/* A profile compares whole batches. */
static void note_trial(vpps_handle *h) {
    vpps_profile *p = open_profile(h);
    if (!p || h->latest_part != VPPS_STEP_WHOLE) return;
    const uint32_t groups = vpps_profile_current(p)->groups;
    vpps_profile_note(p, !groups || groups == h->stats.groups, h->stats.nodes, h->latest.own_ns);
}

void vpps_handle_settle(vpps_handle *h) {
    if (!h->in_flight || h->process != vpps_process_number()) return;
    wait_for_device(h, &h->latest);
    h->in_flight = false;
    h->stats.device_ns = h->latest.device_ns;
    h->stats.total_device_ns += h->latest.device_ns;
    count_gap(h);
    count_share(h);
    if (h->latest.status != VPPS_OK) {
        break_handle(h, h->latest.status, h->latest_number, h->latest.message);
        return;
    }
    note_trial(h);
    const vpps_status kept = vpps_keep_settled(h);
    if (kept != VPPS_OK) {
        break_handle(h, kept, h->latest_number, vpps_error_message());
    } else if (h->options.nonfinite != VPPS_NONFINITE_IGNORE && stepped(h)) {
        check_finite(h);
    }
}

void vpps_handle_vote(vpps_handle *h, uint32_t vote) { h->vote = vote; }
uint32_t vpps_handle_votes(const vpps_handle *h) { return h->latest.shared.votes; }

static vpps_status latest_failure(const vpps_handle *h) {
    return vpps_fail(h->latest.status, "batch %" PRIu64 ": %s", h->latest_number, h->latest.message);
}

/* OK, what broke the handle, or the failure that an earlier batch left, once. */
static vpps_status report(vpps_handle *h) {
    VPPS_TRY(vpps_handle_whole(h));
    if (!h->pending) return VPPS_OK;
    h->pending = false;
    return latest_failure(h);
}

/* ---------------------------------------------------------------- scripts */

static vpps_status verify_batch(const vpps_task_plan *machine, const vpps_batch *b, const vpps_graph *g,
                                const vpps_batch_request *request) {
    uint32_t *outputs = malloc((request->n_outputs + (size_t)request->n_gradient_nodes + 1) * sizeof *outputs);
    if (!outputs) return vpps_fail(VPPS_MEMORY, "verify: out of memory");
    uint32_t *gradients = outputs + request->n_outputs;
    for (uint32_t i = 0; i < request->n_outputs; i++) outputs[i] = vpps_batch_output(b, i);
    for (uint32_t i = 0; i < request->n_gradient_nodes; i++) gradients[i] = vpps_batch_gradient(b, i);
    const vpps_status status =
        vpps_verify_batch(b->script, b->script_words, b->cells, b->n_cells, machine, g, request, outputs, gradients);
    free(outputs);
    return status;
}

/* A profile's candidate counts once its turn has come. */
static uint32_t groups_for(vpps_handle *h, bool training) {
    if (h->options.groups != VPPS_GROUPS_PROFILE) return h->options.groups;
    return training && h->grouping.n && open_profile(h) != &h->device->profile
               ? vpps_profile_current(&h->grouping)->groups
               : 0;
}

static const vpps_policy *policy_for(vpps_handle *h, bool training) {
    const vpps_profile *open = open_profile(h);
    if (training && h->batching.n && (!open || open == &h->batching))
        h->policy = vpps_policy_find(vpps_profile_current(&h->batching)->policy);
    return h->policy;
}

/* What values decide runs in inference, on a device that can. */
static vpps_status check_decided(const vpps_handle *h, const vpps_graph *g, bool training) {
    if (!g->decides || (!training && h->stats.decides)) return VPPS_OK;
    if (training) return vpps_fail(VPPS_ARGUMENT, "fb: argmax and lookup_at have no gradients; expected vpps_forward");
    return vpps_fail(VPPS_DEVICE,
                     "device %s: does not run argmax and lookup_at; expected cpu, and tables that are not shared out",
                     h->stats.device);
}

/* Where there are too many types of vertices, those go that were not used for longest. The batch in flight has ended then. Gradients
 * that add up, and a trace, may still ask for the cells of batches before. */
static void drop_types(vpps_handle *h) {
    if (!vpps_types_are_full(&h->types) || h->n_backward || h->trace) return;
    vpps_handle_settle(h);
    if (h->device->table->forget_cells) h->device->table->forget_cells(h->device);
    vpps_types_drop(&h->types);
}

static vpps_status make_script_for(vpps_handle *h, const vpps_task_plan *machine, vpps_graph *g,
                                   const vpps_batch_request *asked, uint64_t *host_ns) {
    const uint64_t start = vpps_now_ns();
    const bool training = asked->loss != VPPS_NO_NODE;
    vpps_batch *b = h->programs[h->next];
    vpps_batch_request request = *asked;
    if (g->model != h->model) return vpps_fail(VPPS_ARGUMENT, "the graph belongs to another model than the handle");
    VPPS_TRY(vpps_graph_status(g));
    VPPS_TRY(check_decided(h, g, training));
    VPPS_TRY(vpps_keep_check(h, g));
    drop_types(h);
    request.groups = groups_for(h, training);
    request.waves = h->options.waves;
    request.slices = h->options.slices;
    request.policy = policy_for(h, training);
    request.learned = &h->learned;
    VPPS_TRY(vpps_schedule_batch(b, &h->types, machine, g, &request));
    *host_ns = vpps_now_ns() - start;
    vpps_trace_span(h->trace, "schedule", start);
    return h->options.verify ? verify_batch(machine, b, g, &request) : VPPS_OK;
}

static vpps_status make_script(vpps_handle *h, vpps_graph *g, const vpps_batch_request *asked, uint64_t *host_ns) {
    return make_script_for(h, h->machine, g, asked, host_ns);
}

/* Masks of dropout differ from process to process, and from call to call of vpps_backward; those of a batch's only or first call
 * are those of vpps_fb. */
static uint64_t dropout_key(const vpps_handle *h, uint64_t batch) {
    const uint64_t seed = vpps_mix64(h->stats.rank) ^ vpps_mix64((uint64_t)h->n_backward << 32); /* mixed, 0 stays 0 */
    return vpps_dropout_key(seed ^ h->options.seed, batch);
}

/* What each parameter steps by; NULL: all by the optimizer. */
static const vpps_param_step *steps_of_groups(vpps_handle *h) {
    const vpps_optimizer *o = &h->options.optimizer;
    for (size_t p = 0; h->groups && p < h->model->n_params; p++) {
        const vpps_param_group *g = &h->groups[p];
        h->steps[p] = (vpps_param_step){.lr = isnan(g->lr) ? o->lr : g->lr,
                                        .momentum = isnan(g->momentum) ? o->momentum : g->momentum,
                                        .weight_decay = isnan(g->weight_decay) ? o->weight_decay : g->weight_decay};
    }
    return h->steps;
}

static vpps_batch_request training_request(vpps_handle *h, vpps_node loss, vpps_step_part part) {
    uint64_t batch = h->model->batches + 1;
    return (vpps_batch_request){
        .loss = loss,
        .part = part,
        .optimizer = &h->options.optimizer,
        .steps = steps_of_groups(h),
        .gradients = h->options.gradients,
        .guard = h->options.nonfinite != VPPS_NONFINITE_IGNORE,
        .step = (uint32_t)batch,
        .dropout_key = dropout_key(h, batch),
    };
}

static void count_script(vpps_handle *h, const vpps_graph *g, uint64_t host_ns) {
    vpps_stats *stats = &h->stats;
    const vpps_batch *b = h->programs[h->next];
    stats->nodes = g->size;
    stats->levels = b->n_levels;
    stats->phases = b->n_phases;
    stats->instructions = b->n_tasks;
    stats->script_bytes = b->script_words * 4;
    stats->pool_bytes = (uint64_t)(b->pool_words - h->plan.sharded) * 4;
    stats->live_bytes = 4 * (b->parameter_words + b->live_words - h->plan.sharded);
    stats->groups = b->n_groups;
    stats->waves = b->n_waves;
    stats->slices = b->n_slices;
    stats->steps = b->n_steps;
    stats->gathered_bytes = 4 * b->gathered_words;
    stats->policy = h->policy->name;
    if (!b->n_choices && vpps_profile_goes_on(&h->batching)) h->batching.n = 0; /* nothing to choose */
    stats->host_ns = host_ns;
    stats->total_nodes += g->size;
    stats->total_host_ns += host_ns;
    if (stats->pool_bytes > stats->peak_pool_bytes) stats->peak_pool_bytes = stats->pool_bytes;
}

/* Between two batches: the next candidate. */
static vpps_status tune(vpps_handle *h) {
    if (open_profile(h)) vpps_handle_settle(h); /* which candidate it ran with must be known */
    return h->device->table->tune ? h->device->table->tune(h->device) : VPPS_OK;
}

/* Starts the script that was made, of training batch number `batch`, or 0: of vpps_forward. A launch that fails leaves the
 * device as unknown as a batch that does, but where nothing was started: with MEMORY, and with POOL, where a device that chooses
 * has no kernel for the batch; while it is looking for the fastest choice, another one is due. */
static vpps_status launch(vpps_handle *h, uint64_t batch) {
    const vpps_batch *b = h->programs[h->next];
    const vpps_device_table *table = h->device->table;
    const uint64_t begin = trace_clock(h);
    if (h->trace) vpps_trace_launch(h->trace, batch, b->n_vertices, b->n_tasks);
    h->device->vote = h->vote;
    const vpps_status status = table->launch(h->device, b);
    vpps_trace_span(h->trace, "launch", begin);
    if (status == VPPS_MEMORY || (status == VPPS_POOL && !table->host_vps)) return status;
    if (status != VPPS_OK) break_handle(h, status, batch, vpps_error_message());
    return vpps_handle_whole(h);
}

/* Can the script that was made be launched before the batch in flight is waited for? Nothing that comes from outcomes is open, and
 * nobody looks at what happens when. */
static bool may_queue(vpps_handle *h, const vpps_graph *g) {
    const vpps_device_table *table = h->device->table;
    return h->in_flight && !h->infers && !h->n_backward && !h->trace && !h->keeper.n_copies && !g->n_keeps &&
           !open_profile(h) && table->queues && table->queues(h->device, h->programs[h->next]);
}

/* Launches the script behind the batch in flight, and takes that one's outcome: if it is a failure, this batch has done nothing, and
 * is forgotten. */
static vpps_status queue(vpps_handle *h, uint64_t batch, float *stale_loss) {
    vpps_outcome none;
    const vpps_status launched = launch(h, batch);
    vpps_handle_settle(h);
    const vpps_status before = report(h);
    if (before != VPPS_OK && launched == VPPS_OK) wait_for_device(h, &none);
    VPPS_TRY(before);
    if (stale_loss) *stale_loss = h->latest.loss;
    return launched;
}

/* The batch before is over, its failure, if there is one, told, or its loss (may be NULL); and this one runs. */
static vpps_status start(vpps_handle *h, vpps_graph *g, const vpps_batch_request *request, uint64_t batch,
                         uint64_t *host_ns, float *stale_loss) {
    VPPS_TRY(make_script(h, g, request, host_ns));
    if (batch && may_queue(h, g)) return queue(h, batch, stale_loss);
    vpps_handle_settle(h);
    VPPS_TRY(report(h));
    VPPS_TRY(vpps_handle_refresh(h));
    if (stale_loss) *stale_loss = h->latest.loss;
    vpps_status status;
    while ((status = launch(h, batch)) == VPPS_POOL && vpps_profile_goes_on(&h->device->profile) && !h->n_backward) {
        VPPS_TRY(tune(h));
        VPPS_TRY(make_script(h, g, request, host_ns));
    }
    return status;
}

/* A training batch was launched. */
static void note_flight(vpps_handle *h, uint64_t number, vpps_step_part part) {
    h->latest_number = number;
    h->latest_part = part;
    h->in_flight = true;
    h->next ^= 1;
}

/* Forward and backward of a graph, with an update, or without and with what was asked for. */
static vpps_status train(vpps_handle *h, vpps_graph *g, vpps_node loss, vpps_step_part part, float *stale_loss) {
    const char *call = part == VPPS_STEP_WHOLE ? "fb" : "backward";
    VPPS_TRY(vpps_graph_status(g));
    VPPS_TRY(vpps_handle_whole(h));
    if (loss == VPPS_NO_NODE &&
        h->stats.processes > 1) { /* nothing of this batch is here, but its gradients are to come */
        vpps_graph_clear(g);
        loss = vpps_zeros(g, 1, 1);
        VPPS_TRY(vpps_graph_status(g));
    }
    if (loss == VPPS_NO_NODE) return vpps_fail(VPPS_ARGUMENT, "%s: no loss given", call);
    if (part == VPPS_STEP_WHOLE && h->n_backward) {
        return vpps_fail(VPPS_STATE,
                         "fb: gradients of %u calls of vpps_backward are there; expected vpps_update or "
                         "vpps_zero_gradients before",
                         h->n_backward);
    }
    if (!h->n_backward) VPPS_TRY(tune(h)); /* gradients are added up by one choice */
    VPPS_TRY(report(h));
    vpps_batch_request request = training_request(h, loss, part);
    if (part != VPPS_STEP_WHOLE) {
        request.outputs = h->asked.nodes;
        request.n_outputs = h->asked.n_values;
        request.gradient_nodes = h->asked.nodes + h->asked.n_values;
        request.n_gradient_nodes = h->asked.n_gradients;
    }
    uint64_t host_ns;
    VPPS_TRY(vpps_keep_ask(h, g, &request));
    VPPS_TRY(start(h, g, &request, h->model->batches + 1, &host_ns, stale_loss));
    count_script(h, g, host_ns);
    vpps_keep_launched(h, g, h->programs[h->next]);
    return VPPS_OK;
}

vpps_status vpps_fb(vpps_handle *h, vpps_graph *g, vpps_node loss, float *stale_loss) {
    VPPS_TRY(vpps_handle_trains(h, "vpps_fb"));
    VPPS_NEED(g);
    if (stale_loss) *stale_loss = NAN;
    VPPS_TRY(train(h, g, loss, VPPS_STEP_WHOLE, stale_loss));
    note_flight(h, ++h->model->batches, VPPS_STEP_WHOLE);
    return VPPS_OK;
}

/* Waits for the batch in flight, and copies what was asked of it. */
static vpps_status read_asked(vpps_handle *h, const vpps_graph *g) {
    vpps_handle_settle(h);
    VPPS_TRY(vpps_handle_whole(h));
    const vpps_status status = vpps_asked_read(&h->asked, h->device, h->programs[h->next ^ 1], g, h->latest.loss);
    if (status != VPPS_OK) break_handle(h, status, h->latest_number, vpps_error_message());
    return vpps_handle_whole(h);
}

vpps_status vpps_backward(vpps_handle *h, vpps_graph *g, vpps_node loss, const vpps_request *request) {
    VPPS_TRY(vpps_handle_trains(h, "vpps_backward"));
    VPPS_NEED(g);
    VPPS_TRY(vpps_asked_take(&h->asked, request, loss));
    const vpps_step_part part = h->asked.request.no_parameters ? VPPS_STEP_NODES : VPPS_STEP_GRADIENTS;
    VPPS_TRY(train(h, g, loss, part, NULL));
    h->n_backward += part == VPPS_STEP_GRADIENTS;
    note_flight(h, h->model->batches + 1, part);
    return vpps_asked_nodes(&h->asked) ? read_asked(h, g) : VPPS_OK;
}

vpps_status vpps_update(vpps_handle *h) {
    VPPS_TRY(vpps_handle_trains(h, "vpps_update"));
    VPPS_TRY(vpps_handle_whole(h));
    if (!h->n_backward) return vpps_fail(VPPS_STATE, "update: there are no gradients; expected vpps_backward before");
    vpps_batch_request request = training_request(h, VPPS_NO_NODE, VPPS_STEP_UPDATE);
    request.groups = h->stats.groups;
    VPPS_TRY(vpps_schedule_update(h->programs[h->next], h->machine, h->model, &request));
    vpps_handle_settle(h);
    VPPS_TRY(report(h));
    VPPS_TRY(launch(h, h->model->batches + 1));
    h->n_backward = 0;
    note_flight(h, ++h->model->batches, VPPS_STEP_UPDATE);
    return VPPS_OK;
}

vpps_status vpps_zero_gradients(vpps_handle *h) {
    VPPS_TRY(vpps_handle_trains(h, "vpps_zero_gradients"));
    vpps_handle_settle(h);
    VPPS_TRY(vpps_handle_whole(h));
    h->n_backward = 0;
    h->device->table->zero_gradients(h->device);
    return VPPS_OK;
}

vpps_status vpps_read_gradients(vpps_handle *h) {
    VPPS_TRY(vpps_handle_trains(h, "vpps_read_gradients"));
    vpps_handle_settle(h);
    VPPS_TRY(vpps_handle_whole(h));
    return h->device->table->read_gradients(h->device, h->model);
}

vpps_status vpps_write_gradients(vpps_handle *h) {
    VPPS_TRY(vpps_handle_trains(h, "vpps_write_gradients"));
    vpps_handle_settle(h);
    VPPS_TRY(vpps_handle_whole(h));
    if (!h->n_backward)
        return vpps_fail(VPPS_STATE, "write: there are no gradients to replace; expected vpps_backward before");
    return h->device->table->write_gradients(h->device, h->model);
}

vpps_status vpps_poll_loss(vpps_handle *h, bool *done, float *loss) {
    VPPS_TRY(vpps_handle_trains(h, "vpps_poll_loss"));
    VPPS_NEED(done);
    *done = false;
    VPPS_TRY(vpps_handle_whole(h));
    if (!h->latest_number) return vpps_fail(VPPS_STATE, "poll: no batch was run yet");
    if (h->in_flight && !h->device->table->finished(h->device)) return VPPS_OK;
    return *done = true, vpps_sync_latest_loss(h, loss);
}

vpps_status vpps_sync_latest_loss(vpps_handle *h, float *loss) {
    VPPS_TRY(vpps_handle_trains(h, "vpps_sync_latest_loss"));
    vpps_handle_settle(h);
    VPPS_TRY(vpps_handle_whole(h));
    if (!h->latest_number) return vpps_fail(VPPS_STATE, "sync: no batch was run yet");
    h->pending = false;
    if (loss) *loss = h->latest.loss;
    return h->latest.status == VPPS_OK ? VPPS_OK : latest_failure(h);
}

vpps_status vpps_forward(vpps_handle *h, vpps_graph *g, uint32_t n, const vpps_node *nodes, float *const *outs) {
    VPPS_TRY(vpps_handle_check(h, "vpps_forward"));
    VPPS_NEED(g);
    if (n) VPPS_NEED(nodes);
    if (n) VPPS_NEED(outs);
    VPPS_TRY(vpps_graph_status(g));
    VPPS_TRY(vpps_handle_whole(h));
    for (uint32_t i = 0; i < n; i++)
        if (!outs[i]) return vpps_fail(VPPS_ARGUMENT, "forward: outs[%u] is NULL", i);
    if (!VPPS_RESERVE(h->asked.reads, h->asked.reads_capacity, (size_t)n + 1))
        return vpps_fail(VPPS_MEMORY, "forward: out of memory for %u values", n);
    vpps_batch_request request = {.loss = VPPS_NO_NODE, .outputs = nodes, .n_outputs = n};
    uint64_t host_ns;
    VPPS_TRY(vpps_keep_ask(h, g, &request));
    if (!request.n_outputs)
        return vpps_fail(VPPS_ARGUMENT, "forward: no nodes given, and none of the graph's is to be kept");
    VPPS_TRY(start(h, g, &request, 0, &host_ns, NULL));
    const vpps_batch *b = h->programs[h->next];
    vpps_outcome outcome;
    wait_for_device(h, &outcome);
    vpps_keep_launched(h, g, b);
    if (outcome.status != VPPS_OK) break_handle(h, outcome.status, 0, outcome.message);
    const vpps_status kept = h->broken == VPPS_OK ? vpps_keep_settled(h) : VPPS_OK;
    if (kept != VPPS_OK) break_handle(h, kept, 0, vpps_error_message());
    VPPS_TRY(vpps_handle_whole(h));
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t words = vpps_words(vpps_plain_signature(g, nodes[i]));
        h->asked.reads[i] = (vpps_pool_read){vpps_batch_output(b, i), words, outs[i]};
    }
    const vpps_status status = vpps_read_pool(h->device, n, h->asked.reads);
    if (status != VPPS_OK) break_handle(h, status, 0, vpps_error_message());
    return vpps_handle_whole(h);
}

vpps_status vpps_forward_end(vpps_handle *h) {
    VPPS_TRY(vpps_handle_check(h, "vpps_forward_end"));
    VPPS_TRY(vpps_handle_whole(h));
    const vpps_device_table *table = h->device->table;
    if (!table->forward_end) return VPPS_OK;
    vpps_handle_settle(h);
    const vpps_status status = table->forward_end(h->device);
    if (status != VPPS_OK) break_handle(h, status, 0, vpps_error_message());
    return vpps_handle_whole(h);
}

vpps_status vpps_disassemble(vpps_handle *h, vpps_graph *g, vpps_node loss, FILE *file) {
    VPPS_TRY(vpps_handle_trains(h, "vpps_disassemble"));
    VPPS_NEED(g);
    VPPS_NEED(file);
    VPPS_TRY(vpps_graph_status(g));
    if (loss == VPPS_NO_NODE) return vpps_fail(VPPS_ARGUMENT, "disassemble: no loss given");
    const vpps_batch_request request = training_request(h, loss, VPPS_STEP_WHOLE);
    uint64_t host_ns;
    VPPS_TRY(make_script(h, g, &request, &host_ns));
    return vpps_print_batch(h->programs[h->next], g, file);
}

vpps_status vpps_handle_batch(vpps_handle *h, vpps_graph *g, vpps_node loss, const vpps_task_plan *machine,
                              const vpps_batch **out) {
    VPPS_TRY(vpps_graph_status(g));
    if (loss == VPPS_NO_NODE) return vpps_fail(VPPS_ARGUMENT, "batch: no loss given");
    const vpps_batch_request request = training_request(h, loss, VPPS_STEP_WHOLE);
    uint64_t host_ns;
    VPPS_TRY(make_script_for(h, machine ? machine : h->machine, g, &request, &host_ns));
    *out = h->programs[h->next];
    return VPPS_OK;
}

/* ---------------------------------------------------------------- tracing */

vpps_status vpps_trace_begin(vpps_handle *h, const char *name) {
    VPPS_TRY(vpps_handle_check(h, "vpps_trace_begin"));
    VPPS_NEED(name);
    vpps_trace *t = h->trace;
    if (!t) return VPPS_OK;
    if (!name) return vpps_fail(VPPS_ARGUMENT, "trace: no name given");
    if (t->n_open == VPPS_OPEN_SPANS) {
        return vpps_fail(VPPS_STATE, "trace: %.40s begins inside %d others; expected at most that", name, t->n_open);
    }
    vpps_span_note *span = &t->open[t->n_open++];
    if (snprintf(span->name, sizeof span->name, "%s", name) >= (int)sizeof span->name)
        vpps_drop_cut_character(span->name);
    span->begin_ns = vpps_now_ns();
    return VPPS_OK;
}

vpps_status vpps_trace_end(vpps_handle *h) {
    VPPS_TRY(vpps_handle_check(h, "vpps_trace_end"));
    vpps_trace *t = h->trace;
    if (!t) return VPPS_OK;
    if (!t->n_open) return vpps_fail(VPPS_STATE, "trace: nothing to end; expected vpps_trace_begin before");
    const vpps_span_note *span = &t->open[--t->n_open];
    vpps_trace_span(t, span->name, span->begin_ns);
    return VPPS_OK;
}

vpps_status vpps_trace_write(vpps_handle *h, FILE *file) {
    VPPS_TRY(vpps_handle_check(h, "vpps_trace_write"));
    VPPS_NEED(file);
    if (!h->trace) return vpps_fail(VPPS_STATE, "trace: nothing was noted; expected options.trace_events above 0");
    vpps_handle_settle(h);
    return vpps_trace_print(h->trace, h->model, h->options.device, file);
}

/* ---------------------------------------------------------------- settings and state */

static vpps_status set_number(float x, float most, const char *what, float *out) {
    if (!in_range(x, 0, most)) {
        return most == 1 ? vpps_fail(VPPS_ARGUMENT, "%s %g; expected 0 to 1", what, (double)x)
                         : vpps_fail(VPPS_ARGUMENT, "%s %g; expected 0 or more", what, (double)x);
    }
    *out = x;
    return VPPS_OK;
}

vpps_status vpps_set_learning_rate(vpps_handle *h, float lr) {
    VPPS_TRY(vpps_handle_trains(h, "vpps_set_learning_rate"));
    return set_number(lr, 1e30f, "learning rate", &h->options.optimizer.lr);
}

vpps_status vpps_set_momentum(vpps_handle *h, float momentum) {
    VPPS_TRY(vpps_handle_trains(h, "vpps_set_momentum"));
    return set_number(momentum, 1, "momentum", &h->options.optimizer.momentum);
}

vpps_status vpps_set_weight_decay(vpps_handle *h, float weight_decay) {
    VPPS_TRY(vpps_handle_trains(h, "vpps_set_weight_decay"));
    return set_number(weight_decay, 1e30f, "weight decay", &h->options.optimizer.weight_decay);
}

/* Every parameter's group, of the optimizer's numbers at first. */
static vpps_status need_groups(vpps_handle *h) {
    if (h->groups) return VPPS_OK;
    const size_t n = h->model->n_params;
    vpps_param_group *groups = malloc((n + 1) * sizeof *groups);
    vpps_param_step *steps = malloc((n + 1) * sizeof *steps);
    if (!groups || !steps) {
        free(groups);
        free(steps);
        return vpps_fail(VPPS_MEMORY, "parameters' groups: out of memory");
    }
    for (size_t p = 0; p < n; p++)
        groups[p] =
            (vpps_param_group){.size = sizeof(vpps_param_group), .lr = NAN, .momentum = NAN, .weight_decay = NAN};
    h->groups = groups;
    h->steps = steps;
    return VPPS_OK;
}

vpps_status vpps_set_param_group(vpps_handle *h, uint32_t n, const vpps_param *params, const vpps_param_group *group) {
    VPPS_TRY(vpps_handle_trains(h, "vpps_set_param_group"));
    if (n) VPPS_NEED(params);
    vpps_param_group numbers = {.lr = NAN, .momentum = NAN, .weight_decay = NAN};
    if (group) VPPS_TRY(vpps_take_struct(&numbers, sizeof numbers, sizeof numbers, group, "vpps_param_group"));
    float checked;
    if (!isnan(numbers.lr)) VPPS_TRY(set_number(numbers.lr, 1e30f, "group: learning rate", &checked));
    if (!isnan(numbers.momentum)) VPPS_TRY(set_number(numbers.momentum, 1, "group: momentum", &checked));
    if (!isnan(numbers.weight_decay))
        VPPS_TRY(set_number(numbers.weight_decay, 1e30f, "group: weight decay", &checked));
    for (uint32_t i = 0; i < n; i++)
        if (params[i] >= h->model->n_params)
            return vpps_fail(VPPS_ARGUMENT, "group: %u is not a parameter; the model has %zu", params[i],
                             h->model->n_params);
    VPPS_TRY(need_groups(h));
    for (uint32_t i = 0; i < n; i++) h->groups[params[i]] = numbers;
    return VPPS_OK;
}

vpps_status vpps_read_parameters(vpps_handle *h) {
    VPPS_TRY(vpps_handle_trains(h, "vpps_read_parameters"));
    vpps_handle_settle(h);
    VPPS_TRY(vpps_handle_whole(h));
    return h->device->table->read_parameters(h->device, h->model, true);
}

vpps_status vpps_write_parameters(vpps_handle *h) {
    VPPS_TRY(vpps_handle_trains(h, "vpps_write_parameters"));
    vpps_handle_settle(h);
    VPPS_TRY(vpps_handle_whole(h));
    return h->device->table->write_parameters(h->device, h->model);
}

vpps_status vpps_handle_stats(vpps_handle *h, vpps_stats *out) {
    VPPS_TRY(vpps_handle_check(h, "vpps_handle_stats"));
    VPPS_NEED(out);
    vpps_stats stats = h->stats;
    stats.kept_values = h->keeper.n_live;
    stats.kept_bytes = 4 * (uint64_t)h->keeper.used_words;
    stats.keep_bytes = 4 * (uint64_t)h->keeper.words;
    if (!h->infers) stats.batches = h->model->batches - (h->in_flight && stepped(h));
    return vpps_give_struct(out, &stats, sizeof stats, VPPS_LEAST(vpps_stats, policy), "vpps_stats");
}

/* Writes one trial to the caller's array, whose elements have the size that the first one says. */
static vpps_status give_trial(const vpps_trial *trial, vpps_trial *out, uint32_t i) {
    const size_t size = out->size;
    void *to = (char *)out + i * size;
    memcpy(to, &size, sizeof size);
    return vpps_give_struct(to, trial, sizeof *trial, VPPS_LEAST(vpps_trial, load_seconds), "vpps_trial");
}

vpps_status vpps_handle_trials(vpps_handle *h, vpps_trial *out, uint32_t *n, bool *done) {
    VPPS_TRY(vpps_handle_check(h, "vpps_handle_trials"));
    VPPS_NEED(n);
    VPPS_NEED(done);
    const uint32_t room = *n;
    if (room) VPPS_NEED(out);
    const vpps_device_table *table = h->device->table;
    vpps_trial t;
    *done = !open_profile(h);
    for (*n = 0; table->measured && table->measured(h->device, *n, &t); ++*n)
        if (*n < room) VPPS_TRY(give_trial(&t, out, *n));
    for (uint32_t i = 0; i < PROFILES; i++) {
        const vpps_profile *p = profile_of(h, i);
        for (uint32_t k = 0; k < p->n; k++, ++*n)
            if (*n < room) VPPS_TRY(give_trial(&p->trials[k], out, *n));
    }
    return VPPS_OK;
}
