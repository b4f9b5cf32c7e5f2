/* device.c - the GPU device: launches batches, takes their outcomes. Most take one copy to the GPU and one launch. */
#include "codegen/nvrtc.h"
#include "runtime/cores.h"
#include "runtime/gpu/gpu.h"
#include "script/update.h"

#include <math.h>

_Static_assert(sizeof(vpps_failure) == 32, "a failure is two quads, which are copied each at once");
_Static_assert(VPPS_COUNT(((vpps_arguments *)NULL)->states) == VPPS_MAX_STATES, "an address for every state");

static vpps_gpu_slot *slot_of(vpps_gpu *gpu, uint32_t launch) { return &gpu->slots[launch % VPPS_GPU_SLOTS]; }

static vpps_status await(vpps_gpu *gpu, uint32_t launch) {
    return gpu->table->await(gpu->driver, launch % VPPS_GPU_SLOTS);
}

/* ---------------------------------------------------------------- launching */

/* Returns the most nodes that `tile` successive vertices together have in a list input; starts[i]: vertex i's first. */
static uint32_t most_members(const uint32_t *starts, uint32_t n, uint32_t tile) {
    uint32_t most = 0;
    for (uint32_t i = 0; i < n; i++) most = vpps_max_u32(most, starts[vpps_min_u32(i + tile, n)] - starts[i]);
    return most;
}

static vpps_status need_scratch(vpps_gpu *gpu, const vpps_batch *batch) {
    enum { SLACK = 64 };
    uint64_t most = 0;
    for (uint32_t i = 0; i < gpu->header.n_blocks; i++) {
        const vpps_block *block = vpps_block_at(batch->script, i);
        const vpps_compiled_cell *c = batch->cells[block->cell];
        vpps_block_view view;
        vpps_view_block(batch->script, block, c, &view);
        const vpps_stage_room *rooms = gpu->kernel->plan.rooms + gpu->kernel->plan.first_stage[block->cell];
        for (uint32_t s = 0; s < c->n_stages; s++) {
            uint64_t words = (uint64_t)rooms[s].scratch_words[0] * rooms[s].tile;
            for (uint32_t d = 1; d <= c->n_lists; d++)
                words += (uint64_t)rooms[s].scratch_words[d] * most_members(view.lists[d], block->n, rooms[s].tile);
            if (words > most) most = words;
        }
    }
    if (most + SLACK > UINT32_MAX) return vpps_fail(VPPS_POOL, "%s: lists too long for a tile", gpu->table->name);
    gpu->scratch_words = ((uint32_t)most + 2 * SLACK - 1) / SLACK * SLACK;
    return vpps_gpu_reserve(gpu, &gpu->scratch,
                            4 * (gpu->kernel->plan.residents.memory_words + gpu->scratch_words) *
                                gpu->layout.target.n_vps);
}

/* Number of failure records in a ring. A launch writes its own record, reads the preceding launch's, and zeroes the record of the second
 * launch after it. The host may read records once all launches have ended. The number divides 2^32, where the launch counter wraps. */
enum { FAILURES = 2 * VPPS_GPU_SLOTS };

static uint64_t failure_at(const vpps_gpu *gpu, uint32_t launch) {
    return gpu->failures.address + launch % FAILURES * sizeof(vpps_failure);
}

/* Reserves zeroed counters for the batch's barriers in a slot (the buffers of one launch). */
static vpps_status need_counters(vpps_gpu *gpu, vpps_gpu_slot *slot) {
    const size_t words = (size_t)gpu->header.n_barriers * VPPS_COUNTER_WORDS, before = slot->counters.bytes;
    VPPS_TRY(vpps_gpu_reserve(gpu, &slot->counters, words * sizeof(uint32_t)));
    if (slot->counters.bytes != before)
        VPPS_TRY(gpu->table->clear(gpu->driver, slot->counters.address, slot->counters.bytes));
    slot->used = (uint32_t)words;
    return VPPS_OK;
}

/* Copies a program (script) to the GPU and launches the kernel that runs it. `entries`: address of the gradients of
 * lookup-table entries. `loss`: the batch's loss if an earlier launch computed it, else 0. `resumes`: the preceding
 * launch belongs to the same batch. A launch does nothing if the preceding one failed, so the host need not wait. */
static vpps_status start(vpps_gpu *gpu, const vpps_gpu_script *script, uint64_t entries, float loss, bool resumes) {
    const vpps_driver_table *t = gpu->table;
    const uint32_t launch = gpu->launches;
    vpps_gpu_slot *slot = slot_of(gpu, launch), *last = slot_of(gpu, launch - 1);
    VPPS_TRY(need_counters(gpu, slot));
    /* waits for earlier launches if the buffer must grow */
    VPPS_TRY(vpps_gpu_reserve(gpu, &slot->script, slot->pinned_bytes));
    VPPS_TRY(t->upload(gpu->driver, slot->script.address, script->copy, script->words * sizeof *script->copy));
    *slot->end = (vpps_launch_end){.loss = loss};
    const vpps_failure begin = {.loss = loss};
    if (loss != 0) VPPS_TRY(t->write(gpu->driver, failure_at(gpu, launch), &begin, sizeof begin));
    const vpps_arguments arguments = {
        .pool = gpu->pool.address,
        .script = slot->script.address,
        .counters = slot->counters.address,
        .matrices = gpu->matrices.address,
        .gradients = gpu->gradients.address,
        .states = {gpu->states[0].address, gpu->states[1].address},
        .scratch = gpu->scratch.address,
        .entries = entries,
        .packed = gpu->products.packed.address,
        .failure = failure_at(gpu, launch),
        .before = failure_at(gpu, gpu->n_flights || resumes ? launch + FAILURES - 1 : launch + 1),
        .later = failure_at(gpu, launch + 2),
        .stale = last->counters.address,
        .end = (uintptr_t)slot->end,
        .watchdog_ns = vpps_driver_watchdog_ns(gpu->driver, gpu->options.watchdog_ms),
        .norms = gpu->layout.plan.norms,
        .scratch_words = gpu->scratch_words,
        .words = script->words,
        .stale_words = last->used,
        .resumes = resumes,
        .finite = gpu->n_flights && !resumes && gpu->options.nonfinite == VPPS_NONFINITE_STOP,
        .touched = script->touched,
    };
    const vpps_status status =
        t->launch(gpu->driver, gpu->kernel->loaded, &gpu->kernel->shape, &arguments, sizeof arguments);
    if (status == VPPS_MEMORY) VPPS_TRY(t->clear(gpu->driver, failure_at(gpu, launch), sizeof begin));
    VPPS_TRY(status);
    gpu->launches++; /* a failed launch is not counted: the next launch uses the same slot and the same failure record */
    return t->mark(gpu->driver, launch % VPPS_GPU_SLOTS);
}

/* Launches the tasks of a batch that `part` names. `adds`: adds to the gradients of earlier launches. */
static vpps_status start_batch(vpps_gpu *gpu, const vpps_batch *batch, vpps_gpu_part part, bool adds) {
    vpps_gpu_script script;
    VPPS_TRY(vpps_gpu_make_script(gpu, batch, part, adds, &script));
    VPPS_TRY(start(gpu, &script, gpu->pool.address, 0, false));
    if (part != VPPS_GPU_GRADIENTS || !vpps_gpu_packs(gpu)) return VPPS_OK;
    return vpps_gpu_multiply(gpu, slot_of(gpu, gpu->launches - 1)->script.address + 4 * (uint64_t)script.products);
}

/* Launches the tasks of a batch that compute gradients, which are added to the accumulated gradients. */
static vpps_status start_gradients(vpps_gpu *gpu, const vpps_batch *batch) {
    const bool adds = gpu->summing;
    if (!adds) gpu->start_ns = vpps_now_ns();
    if (!adds) VPPS_TRY(vpps_gpu_open_sum(gpu));
    VPPS_TRY(start_batch(gpu, batch, VPPS_GPU_GRADIENTS, adds));
    /* set after the launch: if the launch found no memory, there are no gradients, and the caller may repeat the call */
    gpu->summing = true;
    gpu->untaken = batch->script;
    vpps_gpu_mark_outers(batch, true, gpu->dense);
    return VPPS_OK;
}

/* Sets gpu->dense[p] to whether the batch has a gradient of parameter p (matrix, vector or lookup table). */
static void mark_steps(const vpps_gpu *gpu, const vpps_batch *batch) {
    memset(gpu->dense, 0, gpu->model->n_params * sizeof *gpu->dense);
    vpps_gpu_mark_outers(batch, true, gpu->dense);
    for (uint32_t i = 0; i < gpu->header.n_tables; i++) gpu->dense[vpps_table_at(batch->script, i)->param] = true;
}

/* Starts a batch in two launches, between which cuBLAS computes gradients of matrices. Waits for neither launch. */
static vpps_status start_in_two(vpps_gpu *gpu, const vpps_batch *batch, vpps_gpu_flight *flight) {
    vpps_gpu_script script;
    flight->first = gpu->launches;
    VPPS_TRY(start_batch(gpu, batch, VPPS_GPU_GRADIENTS, false));
    vpps_status status = vpps_gpu_make_script(gpu, batch, VPPS_GPU_STEP, true, &script);
    if (status == VPPS_OK) status = start(gpu, &script, gpu->pool.address, 0, true);
    /* no memory for the launch of the update: callers take MEMORY to mean that nothing runs, so waits for the gradients' launch */
    if (status == VPPS_MEMORY) VPPS_TRY(vpps_gpu_finish(gpu));
    return status;
}

/* Sums accumulated gradients over all processes; launches tasks that compute their norm and update the parameters. */
static vpps_status start_update(vpps_gpu *gpu, const vpps_batch *batch, double loss) {
    vpps_gpu_script step;
    VPPS_TRY(vpps_gpu_open_update(gpu));
    if (gpu->share) VPPS_TRY(vpps_gpu_exchange(gpu, batch, &loss));
    VPPS_TRY(vpps_gpu_give_entries(gpu));
    VPPS_TRY(vpps_gpu_make_step(gpu, batch, &step));
    VPPS_TRY(start(gpu, &step, gpu->entries.address, (float)loss, false));
    vpps_gpu_zero_gradients(&gpu->device); /* only marks them as absent: the queued update still reads their memory */
    return VPPS_OK;
}

/* Starts a batch in two launches, between which processes exchange gradients. Waits for the first launch and for the other processes. */
static vpps_status start_shared(vpps_gpu *gpu, const vpps_batch *batch, vpps_gpu_flight *flight) {
    const uint32_t launch = gpu->launches;
    const vpps_launch_end *end = slot_of(gpu, launch)->end;
    VPPS_TRY(start_gradients(gpu, batch));
    VPPS_TRY(await(gpu, launch));
    flight->gradients_ns = end->end_ns - end->begin_ns;
    if (end->failed) return VPPS_OK; /* the batch's outcome reports the failure */
    VPPS_TRY(vpps_gpu_take_gradients(&gpu->device));
    return start_update(gpu, batch, (double)end->loss);
}

static vpps_status prepare(vpps_gpu *gpu, const vpps_batch *batch) {
    vpps_status status = vpps_gpu_need_kernel(gpu, batch);
    if (status == VPPS_OK) status = need_scratch(gpu, batch); /* allocates the kernel's scratch memory */
    if (status == VPPS_OK && vpps_gpu_packs(gpu) && gpu->header.update && batch->n_cells)
        status = vpps_gpu_plan_products(gpu, batch, gpu->summing && batch->goal != VPPS_GOAL_NODES);
    VPPS_TRY(vpps_gpu_note_kernel(gpu, status));
    return vpps_gpu_grow_pool(gpu, gpu->header.pool_words);
}

static vpps_status start_part(vpps_gpu *gpu, const vpps_batch *batch, vpps_gpu_flight *flight) {
    if (batch->half == VPPS_FORWARD_HALF) return start_batch(gpu, batch, VPPS_GPU_FORWARD, false);
    switch (batch->goal) {
    case VPPS_GOAL_UPDATE: return start_update(gpu, batch, gpu->sum_loss);
    case VPPS_GOAL_GRADIENTS: return start_gradients(gpu, batch);
    case VPPS_GOAL_NODES: return start_batch(gpu, batch, VPPS_GPU_GRADIENTS, false);
    default: break;
    }
    if (!flight->trains) return start_batch(gpu, batch, VPPS_GPU_WHOLE, false);
    if (gpu->share) return start_shared(gpu, batch, flight);
    mark_steps(gpu, batch);
    return vpps_gpu_packs(gpu) ? start_in_two(gpu, batch, flight) : start_batch(gpu, batch, VPPS_GPU_WHOLE, false);
}

static vpps_status gpu_launch(vpps_device *d, const vpps_batch *batch) {
    vpps_gpu *gpu = (vpps_gpu *)d;
    VPPS_TRY(vpps_gpu_take_gradients(d));
    memcpy(&gpu->header, batch->script, sizeof gpu->header);
    d->unstarted = true;
    VPPS_TRY(prepare(gpu, batch));
    d->unstarted = false;
    vpps_gpu_flight flight = {.goal = batch->goal,
                              .trains = gpu->header.update != 0,
                              .first = VPPS_NONE,
                              .steps = gpu->flights[gpu->n_flights].steps};
    const size_t bytes = gpu->model->n_params * sizeof *gpu->dense;
    memcpy(flight.steps, gpu->dense, bytes);
    flight.status = start_part(gpu, batch, &flight);
    if (flight.status == VPPS_MEMORY) memcpy(gpu->dense, flight.steps, bytes); /* nothing was launched */
    memcpy(flight.steps, gpu->dense, bytes);
    const bool steps = gpu->share && flight.trains && vpps_goal_updates(batch->goal);
    /* no retry after an update: other processes may have updated, too */
    if (steps && flight.status == VPPS_MEMORY) flight.status = VPPS_DEVICE;
    flight.last = gpu->launches - 1;
    if (flight.first == VPPS_NONE) flight.first = flight.last;
    if (flight.status != VPPS_MEMORY) gpu->flights[gpu->n_flights++] = flight; /* MEMORY: nothing was launched */
    return flight.status;
}

/* Returns whether a training batch may be launched while another one runs. Both must be whole training steps of a single process, in which
 * the host never waits. Returns false if updates may be skipped while the optimiser's bias corrections depend on the number of updates. */
static bool gpu_queues(const vpps_device *d, const vpps_batch *batch) {
    const vpps_gpu *gpu = (const vpps_gpu *)d;
    return gpu->n_flights == 1 && gpu->flights[0].status == VPPS_OK && gpu->flights[0].goal == VPPS_GOAL_STEP &&
           gpu->flights[0].trains && batch->goal == VPPS_GOAL_STEP && !gpu->share &&
           !(gpu->options.nonfinite == VPPS_NONFINITE_SKIP && vpps_corrects_means(gpu->options.optimizer.kind));
}

/* ---------------------------------------------------------------- outcomes */

/* Returns whether the latest batch has ended. The kernel's first CTA writes the end time. A kernel that was killed
 * writes none, so every 64th call asks the driver too. */
static bool gpu_finished(vpps_device *d) {
    enum { ASKED_EVERY = 64 };
    vpps_gpu *gpu = (vpps_gpu *)d;
    if (!gpu->n_flights) return true;
    const vpps_gpu_flight *f = &gpu->flights[gpu->n_flights - 1];
    if (f->status != VPPS_OK) return true;
    /* end of the launch, which the kernel writes after everything else */
    const volatile unsigned long long *end_ns = &slot_of(gpu, f->last)->end->end_ns;
    return (*end_ns || ++gpu->polls % ASKED_EVERY == 0) && gpu->table->passed(gpu->driver, f->last % VPPS_GPU_SLOTS);
}

static void tell_failure(const vpps_gpu *gpu, const vpps_failure *f, vpps_outcome *out) {
    const double seconds = (double)vpps_driver_watchdog_ns(gpu->driver, gpu->options.watchdog_ms) * 1e-9;
    if (f->failed == VPPS_FAILURE_STALL) {
        out->status = VPPS_STALL;
        snprintf(out->message, sizeof out->message,
                 "VP %u, task at word %u: waited %.1f s at barrier %u, which has %u of %u signals", f->vp, f->address,
                 seconds, f->value, f->have, f->wanted);
    } else if (f->failed == VPPS_FAILURE_BEFORE) {
        out->status = VPPS_STATE;
        snprintf(out->message, sizeof out->message, "it was queued after one that failed");
    } else {
        out->status = VPPS_SCRIPT;
        snprintf(out->message, sizeof out->message,
                 "VP %u, task at word %u: %u is no known task, or the script is cut short", f->vp, f->address,
                 f->value);
    }
}

static vpps_status read_failure(vpps_gpu *gpu, uint32_t launch, vpps_outcome *out) {
    vpps_failure f;
    VPPS_TRY(gpu->table->read(gpu->driver, &f, failure_at(gpu, launch), sizeof f));
    tell_failure(gpu, &f, out);
    return VPPS_OK;
}

static vpps_status take_outcome(vpps_gpu *gpu, const vpps_gpu_flight *flight, vpps_outcome *out) {
    const vpps_launch_end *first = slot_of(gpu, flight->first)->end, *end = slot_of(gpu, flight->last)->end;
    VPPS_TRY(flight->status);
    VPPS_TRY(await(gpu, flight->last));
    out->begin_ns = first->begin_ns;
    out->end_ns = end->end_ns;
    out->device_ns = out->own_ns = end->end_ns - first->begin_ns;
    if (first->failed) return read_failure(gpu, flight->first, out);
    if (end->failed) return read_failure(gpu, flight->last, out);
    if (!flight->trains) return VPPS_OK;
    out->loss = end->loss;
    out->device_ns = out->own_ns += flight->gradients_ns; /* plus an earlier launch's time, not the gap between both */
    if (flight->goal == VPPS_GOAL_GRADIENTS) gpu->sum_loss += (double)end->loss;
    if (!vpps_goal_updates(flight->goal)) return VPPS_OK;
    out->norm = end->norm;
    const bool skipped =
        gpu->options.nonfinite != VPPS_NONFINITE_IGNORE && !(isfinite(out->loss) && isfinite(out->norm));
    for (uint32_t p = 0; p < gpu->model->n_params && !skipped; p++) gpu->device.updates[p] += flight->steps[p];
    if (gpu->share) out->shared = vpps_share_cost_of(gpu->share);
    return VPPS_OK;
}

static void gpu_wait(vpps_device *d, vpps_outcome *out) {
    vpps_gpu *gpu = (vpps_gpu *)d;
    if (gpu->n_flights) {
        const vpps_gpu_flight flight = gpu->flights[0];
        gpu->flights[0] = gpu->flights[1];
        gpu->flights[1].steps = flight.steps;
        gpu->n_flights--;
        gpu->outcome = (vpps_outcome){.status = VPPS_OK, .loss = NAN};
        const vpps_status status = take_outcome(gpu, &flight, &gpu->outcome);
        if (status != VPPS_OK) {
            gpu->outcome.status = status;
            snprintf(gpu->outcome.message, sizeof gpu->outcome.message, "%s", vpps_error_message());
        }
    }
    *out = gpu->outcome;
}

static vpps_status gpu_read(vpps_device *d, uint32_t offset, uint32_t words, float *out) {
    vpps_gpu *gpu = (vpps_gpu *)d;
    VPPS_TRY(vpps_gpu_restore_pool(gpu));
    return gpu->table->read(gpu->driver, out, gpu->pool.address + 4 * (uint64_t)offset, words * sizeof *out);
}

static vpps_status gpu_write(vpps_device *d, uint32_t offset, uint32_t words, const float *from) {
    vpps_gpu *gpu = (vpps_gpu *)d;
    VPPS_TRY(vpps_gpu_restore_pool(gpu));
    return gpu->table->write(gpu->driver, gpu->pool.address + 4 * (uint64_t)offset, from, words * sizeof *from);
}

static vpps_status gpu_copy(vpps_device *d, uint32_t to, uint32_t from, uint32_t words) {
    vpps_gpu *gpu = (vpps_gpu *)d;
    VPPS_TRY(vpps_gpu_restore_pool(gpu));
    const uint64_t pool = gpu->pool.address;
    return gpu->table->copy(gpu->driver, pool + 4 * (uint64_t)to, pool + 4 * (uint64_t)from, 4 * (size_t)words);
}

static vpps_status gpu_settle(vpps_device *d) { return vpps_gpu_finish((vpps_gpu *)d); }

/* ---------------------------------------------------------------- life */

static void gpu_forget_cells(vpps_device *d) {
    vpps_gpu *gpu = (vpps_gpu *)d;
    vpps_gpu_forget_kernels(gpu);
}

static void gpu_destroy(vpps_device *d) {
    vpps_gpu *gpu = (vpps_gpu *)d;
    if (!gpu) return;
    if (gpu->driver && gpu->n_flights) vpps_gpu_finish(gpu);
    vpps_gpu_close_share(gpu);
    vpps_gpu_close_products(gpu);
    if (gpu->driver) {
        gpu_forget_cells(d);
        gpu->table->close(gpu->driver); /* frees all buffers */
    }
    vpps_gpu_layout_free(&gpu->layout);
    vpps_device_close(&gpu->device);
    VPPS_FREE_ARRAYS(gpu->segments, gpu->rows);
    VPPS_FREE(gpu->rescued, gpu->dense, gpu->flights[0].steps, gpu->flights[1].steps, gpu);
}

/* Allocates memory for what launches report: failures, and results, which the kernel writes to the host's memory. */
static vpps_status make_ends(vpps_gpu *gpu) {
    const vpps_driver_table *t = gpu->table;
    VPPS_TRY(vpps_gpu_reserve(gpu, &gpu->failures, FAILURES * sizeof(vpps_failure)));
    VPPS_TRY(t->clear(gpu->driver, gpu->failures.address, FAILURES * sizeof(vpps_failure)));
    for (uint32_t i = 0; i < VPPS_GPU_SLOTS; i++) {
        void *end;
        VPPS_TRY(t->allocate_host(gpu->driver, sizeof *gpu->slots[i].end, &end));
        gpu->slots[i].end = end;
    }
    return VPPS_OK;
}

static vpps_status set_up(vpps_gpu *gpu) {
    VPPS_TRY(gpu->table->open(&gpu->driver, vpps_gpu_number(gpu->options.communicator), &gpu->machine));
    gpu->device.number = gpu->machine.number;
    gpu->driver->limit_ns = vpps_driver_limit_ns(gpu->options.watchdog_ms);
    if (gpu->driver->kernels_time_out)
        vpps_log_line(&gpu->options, "%s drives a display: kernels of more than some seconds are ended",
                      gpu->machine.name);
    vpps_gpu_layout *l = &gpu->layout;
    VPPS_TRY(vpps_gpu_lay_out(l, gpu->model, &gpu->options, &gpu->machine, gpu->table->name));
    gpu->device.target = &l->target;
    gpu->device.precision = l->precision;
    gpu->device.unit = l->precision == VPPS_PRECISION_FP32 ? vpps_precision_names[l->precision] : "mma";
    l->target.ahead = gpu->table->prepare && vpps_cores_allowed() > 1; /* on one core, compiling would delay batches */
    if (gpu->options.precision == VPPS_PRECISION_AUTO)
        vpps_log_line(&gpu->options, "multiplying in %s: %s", vpps_precision_names[l->precision], l->why);
    if (gpu->options.gradients == VPPS_GRADIENTS_CUBLAS_TF32 && l->precision != VPPS_PRECISION_FP32)
        gpu->options.gradients = VPPS_GRADIENTS_CUBLAS; /* TF32 is for fp32 operands; here cuBLAS gets bf16 ones */
    if (l->plan.sharded)
        return vpps_fail(VPPS_DEVICE,
                         "device %s: has whole lookup tables; with tables that are shared out, expected cpu",
                         gpu->table->name);
    const uint64_t room = gpu->table->free_bytes(gpu->driver) / 4 * 3 / 4; /* in words: three quarters of free memory */
    if (!gpu->options.pool_bytes && room < l->plan.pool_words)
        l->plan.pool_words = l->target.pool_words = (uint32_t)(room > l->plan.batch ? room : l->plan.batch + 1u);
    const size_t bytes = (l->matrix_words + 1) * sizeof(float);
    VPPS_TRY(vpps_gpu_reserve(gpu, &gpu->matrices, bytes));
    VPPS_TRY(vpps_gpu_reserve(gpu, &gpu->gradients, bytes));
    for (uint32_t s = 0; s < l->n_states; s++) VPPS_TRY(vpps_gpu_reserve(gpu, &gpu->states[s], bytes));
    VPPS_TRY(vpps_gpu_grow_pool(gpu, l->plan.batch + 1));
    VPPS_TRY(make_ends(gpu));
    vpps_gpu_start_profile(gpu);
    /* opens cuBLAS before the first batch, so that a missing library is reported at once */
    if (vpps_by_cublas(gpu->options.gradients)) VPPS_TRY(vpps_cublas_open(&gpu->products.cublas, gpu->driver));
    const size_t n_params = gpu->model->n_params;
    gpu->dense = calloc(n_params + 1, sizeof *gpu->dense);
    for (int i = 0; i < 2; i++) gpu->flights[i].steps = calloc(n_params + 1, sizeof *gpu->flights[i].steps);
    if (!gpu->dense || !gpu->flights[0].steps || !gpu->flights[1].steps)
        return vpps_fail(VPPS_MEMORY, "%s: out of memory", gpu->table->name);
    VPPS_TRY(vpps_device_open(&gpu->device, gpu->model));
    VPPS_TRY(vpps_device_write_parameters(&gpu->device, gpu->model, gpu->options.optimizer.kind));
    return vpps_gpu_open_share(gpu);
}

vpps_status vpps_gpu_create(vpps_device **out, const vpps_device_table *device, const vpps_driver_table *driver,
                            const vpps_model *model, const vpps_options *options, vpps_pool_plan *plan) {
    *out = NULL;
    vpps_gpu *gpu = calloc(1, sizeof *gpu);
    if (!gpu) return vpps_fail(VPPS_MEMORY, "%s: out of memory", driver->name);
    gpu->device.table = device;
    gpu->table = driver;
    gpu->model = model;
    gpu->options = *options;
    const vpps_status status = set_up(gpu);
    if (status != VPPS_OK) {
        gpu_destroy(&gpu->device);
        return status;
    }
    *plan = gpu->layout.plan;
    *out = &gpu->device;
    return VPPS_OK;
}

/* Creates the device cuda. Opens NVRTC (CUDA's compiler) at once, so that its absence is reported before the first batch. */
static vpps_status create_cuda(vpps_device **out, const vpps_model *model, const vpps_options *options,
                               vpps_pool_plan *plan) {
    const vpps_nvrtc *compiler;
    VPPS_TRY(vpps_gpu_create(out, &vpps_device_cuda, &vpps_driver_cuda, model, options, plan));
    const vpps_status status = vpps_nvrtc_open(&compiler); /* opened last: the driver's version selects the NVRTC */
    if (status == VPPS_OK) return VPPS_OK;
    gpu_destroy(*out);
    *out = NULL;
    return status;
}

static vpps_status create_simt(vpps_device **out, const vpps_model *model, const vpps_options *options,
                               vpps_pool_plan *plan) {
    return vpps_gpu_create(out, &vpps_device_simt, &vpps_driver_simt, model, options, plan);
}

#define GPU_TABLE                                                                                                      \
    .destroy = gpu_destroy, .launch = gpu_launch, .queues = gpu_queues, .finished = gpu_finished, .wait = gpu_wait,    \
    .read = gpu_read, .write = gpu_write, .copy = gpu_copy, .lend = vpps_gpu_lend,                                     \
    .check_array = vpps_gpu_check_array, .trade = vpps_gpu_trade, .reserve_kept = vpps_gpu_reserve_kept,               \
    .forget_cells = gpu_forget_cells, .holds = vpps_gpu_holds, .move = vpps_gpu_move, .settle = gpu_settle,            \
    .take_gradients = vpps_gpu_take_gradients, .zero_gradients = vpps_gpu_zero_gradients, .tune = vpps_gpu_tune,       \
    .compile_ahead = vpps_gpu_compile_ahead

const vpps_device_table vpps_device_cuda = {.name = "cuda",
                                            .alias = "gpu",
                                            .examine = vpps_examine_cuda,
                                            .find = vpps_cuda_find,
                                            .create = create_cuda,
                                            GPU_TABLE};
const vpps_device_table vpps_device_simt = {.name = "simt",
                                            .note = "a GPU's kernel on the CPU, slowly",
                                            .stands_in = true,
                                            .examine = vpps_examine_simt,
                                            .create = create_simt,
                                            GPU_TABLE};
