/* device.c - the CPU device: memory, launching, parameters to and from the model. */
#include "runtime/cores.h"
#include "runtime/cpu/tile.h"
#include "script/update.h"

#include <math.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---------------------------------------------------------------- threads */

static void finish_part(vpps_vp *vp) {
    vpps_cpu *cpu = vp->cpu;
    if (!vpps_meet(cpu->meetings.finish, cpu->n_vps, vp->index, cpu->started)) return;
    cpu->batch.end_ns = vpps_now_ns();
    atomic_store(&cpu->done.value, cpu->started);
    vpps_wake(&cpu->done);
}

/* Runs thread i's share of the launch's virtual processors; cpu->threads threads run them. */
static void run_share(vpps_cpu *cpu, uint32_t i) {
    const uint32_t first = cpu->n_vps * i / cpu->threads, end = cpu->n_vps * (i + 1) / cpu->threads;
    vpps_run_vps(cpu, first, end);
    vpps_note_waiting(cpu->crowd);
    for (uint32_t v = first; v < end; v++) finish_part(&cpu->vps[v]);
}

/* Returns whether the caller's thread takes part in the launch. Otherwise, the caller may prepare the next batch meanwhile. */
static bool caller_takes_part(const vpps_cpu *cpu) { return cpu->device.caller_works && cpu->threads == cpu->n_vps; }

static void *work(void *argument) {
    vpps_vp *vp = argument;
    vpps_cpu *cpu = vp->cpu;
    const uint32_t worker = vp->index - cpu->device.caller_works;
    vpps_bind_vp(vp);
    finish_part(vp);
    for (uint32_t next = 1;; next++) {
        vpps_wait_for(cpu, &cpu->epoch[vpps_rung_of(worker)], next, 0, false);
        if (atomic_load(&cpu->quit)) return NULL;
        run_share(cpu, worker + caller_takes_part(cpu));
    }
}

static void wait_for_all(vpps_cpu *cpu) {
    vpps_wait_for(cpu, &cpu->done, cpu->started, 0, false);
    if (!cpu->batch.start_ns) return;
    cpu->batch.outcome.begin_ns = cpu->batch.start_ns;
    cpu->batch.outcome.end_ns = cpu->batch.end_ns;
    cpu->batch.outcome.device_ns = cpu->batch.outcome.end_ns - cpu->batch.outcome.begin_ns;
}

static void wake_workers(vpps_cpu *cpu, uint32_t n) {
    for (uint32_t r = 0; n && r <= vpps_rung_of(n - 1); r++) {
        atomic_fetch_add(&cpu->epoch[r].value, 1);
        vpps_wake(&cpu->epoch[r]);
    }
}

/* Starts the threads that run virtual processors, and waits until all are bound to CPUs. */
static vpps_status start_threads(vpps_cpu *cpu) {
    cpu->started++;
    for (uint32_t v = cpu->device.caller_works; v < cpu->n_vps; v++) {
        vpps_vp *vp = &cpu->vps[v];
        vp->has_thread = true;
        const int error = pthread_create(&vp->thread, NULL, work, vp);
        if (!error) continue;
        vp->has_thread = false;
        return vpps_fail(VPPS_DEVICE, "cpu: cannot start VP %u: %s", v, strerror(error));
    }
    if (cpu->device.caller_works) {
        vpps_bind_vp(&cpu->vps[0]);
        finish_part(&cpu->vps[0]);
    }
    wait_for_all(cpu);
    return VPPS_OK;
}

/* ---------------------------------------------------------------- memory */

/* Reserves address space for the pool; the system assigns memory to pages when they are touched. If the address space is limited, takes at
 * most half of it, since everything else needs some, too. */
static vpps_status map_pool(vpps_cpu *cpu, bool chosen) {
    struct rlimit limit; /* ulimit -v */
    const bool limited = getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    const size_t half = limited ? limit.rlim_cur / 2 : SIZE_MAX;
    for (;;) {
        const uint32_t sharded = cpu->plan.sharded, words = cpu->plan.pool_words - sharded;
        const bool least = chosen || words / 2 <= cpu->plan.batch - sharded;
        cpu->pool_bytes = (size_t)words * sizeof(float);
        cpu->pool_memory = least || cpu->pool_bytes <= half ? vpps_map_pages(cpu->pool_bytes) : NULL;
        if (cpu->pool_memory) {
            cpu->pool = (float *)((uintptr_t)cpu->pool_memory - sharded * sizeof(float));
            return VPPS_OK;
        }
        if (least) { return vpps_fail(VPPS_MEMORY, "cpu: cannot map a pool of %zu bytes", cpu->pool_bytes); }
        cpu->plan.pool_words = sharded + words / 2;
    }
}

/* ---------------------------------------------------------------- parameters to and from the model */

static bool cpu_holds(const vpps_device *d, vpps_param p, uint32_t which) {
    const vpps_cpu *cpu = (const vpps_cpu *)d;
    const vpps_parameter_data *data = &cpu->model->params[p];
    if (which == VPPS_ARRAY_GRADIENT) return cpu->sum.open && cpu->vps[0].touched[p] == cpu->sum.number;
    if (data->kind == VPPS_MATRIX) return which < VPPS_ARRAY_STATES + cpu->n_states;
    return !vpps_is_sharded(data) && vpps_place_in_pool(&cpu->plan, p, which) != VPPS_NO_OFFSET;
}

static vpps_status cpu_move(vpps_device *d, vpps_param p, uint32_t which, float *array, bool in) {
    vpps_cpu *cpu = (vpps_cpu *)d;
    const vpps_parameter_data *data = &cpu->model->params[p];
    if (!array) return VPPS_OK; /* NULL stands for a new optimiser state, all zeros; this memory is still zero */
    if (data->kind == VPPS_MATRIX) {
        vpps_copy_matrix(cpu, p, array, which, !in);
    } else {
        float *own = cpu->pool + vpps_place_in_pool(&cpu->plan, p, which);
        memcpy(in ? own : array, in ? array : own, vpps_param_elems(data) * sizeof *own);
    }
    for (uint32_t v = 0; v < cpu->n_vps && in && which == VPPS_ARRAY_GRADIENT; v++)
        cpu->vps[v].touched[p] = cpu->sum.number;
    return VPPS_OK;
}

static void cpu_destroy(vpps_device *d) {
    vpps_cpu *cpu = (vpps_cpu *)d;
    if (!cpu) return;
    atomic_store(&cpu->quit, true);
    wake_workers(cpu, 1u << (VPPS_RUNGS - 1));
    for (uint32_t v = 0; cpu->vps && v < cpu->n_vps; v++) {
        vpps_vp *vp = &cpu->vps[v];
        if (vp->has_thread) pthread_join(vp->thread, NULL);
        vpps_unmap_pages(vp->scratch, vp->scratch_floats * sizeof(float));
        vpps_unmap_pages(vp->vectors, vp->vector_capacity * sizeof *vp->vectors);
        VPPS_FREE_ARRAYS(vp->packed, vp->pointers, vp->terms, vp->bf16_terms, vp->sums, vp->d_at, vp->live, vp->pairs,
                         vp->copies);
        VPPS_FREE(vp->touched, vp->by_update, vp->copy_of);
    }
    vpps_entries_close(cpu->entries);
    vpps_device_close(&cpu->device);
    vpps_share_close(cpu->share);
    vpps_unmap_pages(cpu->pool_memory, cpu->pool_bytes);
    pthread_mutex_destroy(&cpu->failure_lock);
    vpps_free_matrices(cpu);
    VPPS_FREE(cpu->plan.values, cpu->counters);
    vpps_meetings_close(cpu);
    VPPS_FREE_ARRAYS(cpu->batch.views, cpu->batch.segments);
    VPPS_FREE(cpu->norms, cpu->batch.corrections, cpu->places.at, cpu->chosen, cpu->batch.uses, cpu->batch.vectors,
              cpu->vps, cpu);
}

static vpps_status make_vps(vpps_cpu *cpu) {
    cpu->vps = calloc(cpu->n_vps, sizeof *cpu->vps);
    cpu->norms = calloc(cpu->n_vps, sizeof *cpu->norms);
    cpu->batch.corrections = calloc(cpu->model->n_params + 1, sizeof *cpu->batch.corrections);
    cpu->batch.uses = calloc(cpu->model->n_params + 1, sizeof *cpu->batch.uses);
    cpu->batch.vectors = calloc(cpu->model->n_params + 1, sizeof *cpu->batch.vectors);
    bool ok = cpu->vps && cpu->norms && cpu->batch.corrections && cpu->batch.uses && cpu->batch.vectors;
    for (uint32_t v = 0; ok && v < cpu->n_vps; v++) {
        cpu->vps[v].cpu = cpu;
        cpu->vps[v].index = v;
        cpu->vps[v].touched = calloc(cpu->model->n_params + 1, sizeof *cpu->vps[v].touched);
        cpu->vps[v].by_update = calloc(cpu->model->n_params + 1, sizeof *cpu->vps[v].by_update);
        cpu->vps[v].copy_of = calloc(cpu->model->n_params + 1, sizeof *cpu->vps[v].copy_of);
        ok = cpu->vps[v].touched && cpu->vps[v].by_update && cpu->vps[v].copy_of;
    }
    return ok ? VPPS_OK : vpps_fail(VPPS_MEMORY, "cpu: out of memory");
}

static vpps_status set_up(vpps_cpu *cpu, const vpps_model *model, const vpps_options *options) {
    enum { MAX_VPS = 1024, SPIN_NS = 50 * 1000 };
    enum { WAVE_BYTES = 1 << 25 /* kept per wave */, CACHE_BYTES = 1 << 21 /* per core */, CACHED_VERTICES = 32 };
    const uint32_t n_allowed = vpps_cores_allowed();
    cpu->n_vps = options->vps ? options->vps : n_allowed;
    if (options->groups && options->groups != VPPS_GROUPS_PROFILE && cpu->n_vps % options->groups)
        return vpps_fail(VPPS_ARGUMENT, "cpu: %u groups of %u VPs; expected a divisor", options->groups, cpu->n_vps);
    if (cpu->n_vps > MAX_VPS) return vpps_fail(VPPS_ARGUMENT, "cpu: %u VPs; expected at most %d", cpu->n_vps, MAX_VPS);
    cpu->device.caller_works =
        options->caller == VPPS_CALLER_WORKS || (options->caller == VPPS_CALLER_AUTO && cpu->n_vps >= n_allowed);
    cpu->spin_ns = cpu->n_vps > n_allowed ? 0 : SPIN_NS;
    cpu->watchdog_ns = (uint64_t)(options->watchdog_ms ? options->watchdog_ms : 10000) * 1000000;
    VPPS_TRY(vpps_cpu_open_products(cpu));
    cpu->n_states = vpps_optimizer_states(options->optimizer.kind);
    cpu->plan.n_vps = cpu->n_vps;
    VPPS_TRY(vpps_lay_out_pool(&cpu->plan, model, options, cpu->n_vps, "cpu", &cpu->gradients));
    VPPS_TRY(map_pool(cpu, options->pool_bytes != 0));
    VPPS_TRY(make_vps(cpu));
    VPPS_TRY(vpps_meetings_open(cpu));
    VPPS_TRY(vpps_device_open(&cpu->device, model));
    VPPS_TRY(vpps_make_matrices(cpu, cpu->n_states));
    VPPS_TRY(vpps_make_packs(cpu));
    if (vpps_communicator_size(options->communicator) > 1) VPPS_TRY(vpps_cpu_open_share(cpu, options->communicator));
    if (cpu->plan.sharded) VPPS_TRY(vpps_entries_open(&cpu->entries, cpu, options->communicator));
    cpu->device.target = &cpu->target;
    cpu->target = (vpps_target){.n_vps = cpu->n_vps,
                                .values = cpu->plan.values,
                                .batch = cpu->plan.batch,
                                .pool_words = cpu->plan.pool_words,
                                .rows = {.unit = VPPS_ROW_UNIT, .enough = VPPS_ENOUGH_ROWS},
                                .scales = true,
                                .in_place = true,
                                .most_groups = cpu->n_vps,
                                .choose_groups = vpps_cpu_groups,
                                .waves = {.kept_words = WAVE_BYTES / 4,
                                          .cached_words = (uint64_t)cpu->n_vps * CACHE_BYTES / 4,
                                          .cached_vertices = CACHED_VERTICES}};
    vpps_cpu_open_splits(cpu);
    VPPS_TRY(vpps_cpu_choose_places(cpu));
    VPPS_TRY(start_threads(cpu));
    return vpps_device_write_parameters(&cpu->device, model, options->optimizer.kind);
}

static vpps_status cpu_create(vpps_device **out, const vpps_model *model, const vpps_options *options,
                              vpps_pool_plan *plan) {
    *out = NULL;
    if (vpps_by_cublas(options->gradients))
        return vpps_fail(VPPS_DEVICE, "cpu: gradients by cuBLAS are a GPU's; expected others");
    void *memory = NULL;
    if (posix_memalign(&memory, 64, sizeof(vpps_cpu))) return vpps_fail(VPPS_MEMORY, "cpu: out of memory");
    vpps_cpu *cpu = memset(memory, 0, sizeof(vpps_cpu));
    cpu->device.table = &vpps_device_cpu;
    cpu->model = model;
    cpu->options = *options;
    pthread_mutex_init(&cpu->failure_lock, NULL);
    vpps_status status = set_up(cpu, model, options);
    if (status != VPPS_OK) {
        cpu_destroy(&cpu->device);
        return status;
    }
    *plan = cpu->plan;
    *out = &cpu->device;
    return VPPS_OK;
}

/* ---------------------------------------------------------------- batches */

static vpps_status need_counters(vpps_cpu *cpu, uint32_t n) {
    if (n > cpu->n_counters) {
        void *counters = NULL;
        if (posix_memalign(&counters, 64, 2 * (size_t)n * sizeof *cpu->counters))
            return vpps_fail(VPPS_MEMORY, "cpu: out of memory for %u barriers", n);
        free(cpu->counters);
        cpu->counters = memset(counters, 0, 2 * (size_t)n * sizeof *cpu->counters);
        cpu->n_counters = 2 * (size_t)n;
    }
    for (uint32_t i = 0; i < n; i++) atomic_store_explicit(&cpu->counters[i].value, 0, memory_order_relaxed);
    return VPPS_OK;
}

/* Lists, for each lookup table, the entries for which the batch computes gradients, and where these gradients are. */
static vpps_status make_segments(vpps_cpu *cpu) {
    cpu->batch.n_segments = cpu->batch.header.n_tables;
    if (!VPPS_RESERVE(cpu->batch.segments, cpu->batch.n_segments + 1u))
        return vpps_fail(VPPS_MEMORY, "cpu: out of memory for %u tables", cpu->batch.n_segments);
    for (uint32_t i = 0; i < cpu->batch.n_segments; i++) {
        const vpps_table *t = vpps_table_at(cpu->batch.script, i);
        cpu->batch.segments[i] =
            (vpps_row_segment){t->param, t->n, cpu->batch.script + t->rows, cpu->pool + t->gradients};
    }
    return VPPS_OK;
}

/* Finds and checks the arrays of each block (vertices of one cell) in the batch's program; lays out its buffers. */
static vpps_status view_blocks(vpps_cpu *cpu, const uint32_t *script, const vpps_batch *batch) {
    const uint32_t n_blocks = cpu->batch.header.n_blocks;
    if (!VPPS_RESERVE(cpu->batch.views, n_blocks + 1u))
        return vpps_fail(VPPS_MEMORY, "cpu: out of memory for %u blocks", n_blocks);
    for (uint32_t i = 0; i < n_blocks; i++) {
        const vpps_block *block = vpps_block_at(script, i);
        vpps_view_block(script, block, batch->cells[block->cell], &cpu->batch.views[i]);
        VPPS_TRY(vpps_check_block(&cpu->batch.header, &cpu->batch.views[i], i));
        VPPS_TRY(vpps_make_tiles(batch->cells[block->cell], cpu->choice.tile));
    }
    return VPPS_OK;
}

/* Sets the script (program) to run: the batch's or, if processes divide lookup tables, a copy that reads fetched table entries. */
static vpps_status take_script(vpps_cpu *cpu, const vpps_batch *batch) {
    cpu->batch.script = batch->script;
    cpu->batch.goal = batch->goal;
    cpu->batch.header = *vpps_task_header_of(batch->script);
    if (!cpu->entries || cpu->batch.goal == VPPS_GOAL_UPDATE) return view_blocks(cpu, batch->script, batch);
    uint32_t *copy = vpps_entries_script(cpu->entries, batch);
    if (!copy) return vpps_fail(VPPS_MEMORY, "cpu: out of memory for a script of %zu words", batch->script_words);
    cpu->batch.script = copy;
    VPPS_TRY(view_blocks(cpu, copy, batch));
    return vpps_entries_fetch(cpu->entries, cpu, copy);
}

/* Computes the bias corrections of the optimiser (such as Adam's) for this batch's step. */
static void find_corrections(vpps_cpu *cpu) {
    for (uint32_t p = 0; p < cpu->model->n_params && cpu->batch.header.update; p++) {
        if (p && cpu->device.updates[p] == cpu->device.updates[p - 1]) {
            memcpy(cpu->batch.corrections[p], cpu->batch.corrections[p - 1], sizeof cpu->batch.corrections[p]);
        } else {
            vpps_correct_means(&cpu->batch.header, cpu->device.updates[p] + 1, cpu->batch.corrections[p]);
        }
    }
}

vpps_status vpps_cpu_prepare(vpps_cpu *cpu, const vpps_batch *batch) {
    VPPS_TRY(vpps_check_script(cpu, batch));
    VPPS_TRY(vpps_choose_meetings(cpu, batch->script));
    if (!cpu->meetings.taken) VPPS_TRY(need_counters(cpu, vpps_task_header_of(batch->script)->n_barriers));
    cpu->batch.half = batch->half;
    if (cpu->batch.half != VPPS_BACKWARD_HALF) { /* backward continues the program of the forward launch */
        VPPS_TRY(vpps_cpu_take_gradients(&cpu->device));
        VPPS_TRY(take_script(cpu, batch));
        VPPS_TRY(cpu->batch.goal == VPPS_GOAL_UPDATE ? vpps_open_update(cpu) : make_segments(cpu));
    }
    find_corrections(cpu);
    vpps_choose_updates(cpu);
    cpu->launch++;
    vpps_choose_copies(cpu);
    if (cpu->batch.goal != VPPS_GOAL_UPDATE && cpu->batch.half != VPPS_FORWARD_HALF && cpu->batch.header.update)
        vpps_open_sum(cpu);
    cpu->squares = 0;
    cpu->batch.outcome = (vpps_outcome){.status = VPPS_OK, .loss = NAN};
    atomic_store(&cpu->batch.failed, false);
    return VPPS_OK;
}

static vpps_status cpu_launch(vpps_device *d, const vpps_batch *batch) {
    vpps_cpu *cpu = (vpps_cpu *)d;
    VPPS_TRY(vpps_cpu_prepare(cpu, batch));
    vpps_choose_threads(cpu, batch);
    cpu->batch.start_ns = vpps_now_ns();
    cpu->started++;
    wake_workers(cpu, cpu->threads - caller_takes_part(cpu));
    if (caller_takes_part(cpu)) run_share(cpu, 0);
    if (caller_takes_part(cpu) || cpu->options.caller == VPPS_CALLER_WORKS) wait_for_all(cpu);
    return VPPS_OK;
}

static bool cpu_finished(vpps_device *d) {
    vpps_cpu *cpu = (vpps_cpu *)d;
    return atomic_load(&cpu->done.value) == cpu->started;
}

static void cpu_wait(vpps_device *d, vpps_outcome *out) {
    vpps_cpu *cpu = (vpps_cpu *)d;
    wait_for_all(cpu);
    if (cpu->batch.outcome.status == VPPS_OK && cpu->batch.header.update) {
        cpu->batch.outcome.loss = (float)cpu->batch.loss;
        const bool steps = vpps_goal_updates(cpu->batch.goal);
        cpu->batch.outcome.norm = cpu->batch.header.guard && steps ? (float)vpps_cpu_norm(cpu) : 0;
        if (cpu->share && steps) cpu->batch.outcome.shared = vpps_share_cost_of(cpu->share);
        if (cpu->entries) vpps_entries_cost(cpu->entries, &cpu->batch.outcome.shared);
    }
    cpu->batch.outcome.own_ns = cpu->batch.outcome.device_ns - cpu->batch.outcome.shared.exchange_ns;
    *out = cpu->batch.outcome;
}

static vpps_status cpu_read(vpps_device *d, uint32_t offset, uint32_t words, float *out) {
    const vpps_cpu *cpu = (vpps_cpu *)d;
    if (offset < cpu->plan.sharded) offset = vpps_entry_place(cpu->entries, offset);
    if (offset == VPPS_NO_OFFSET) return vpps_fail(VPPS_SCRIPT, "cpu: an entry is read that was not looked up");
    memcpy(out, cpu->pool + offset, words * sizeof *out);
    return VPPS_OK;
}

static vpps_status cpu_reserve_kept(vpps_device *d, uint32_t words) {
    VPPS_TRY(vpps_cpu_take_gradients(d)); /* moves table gradients out of the memory that is to be reserved */
    ((vpps_cpu *)d)->target.batch += words;
    return VPPS_OK;
}

static vpps_status cpu_write(vpps_device *d, uint32_t offset, uint32_t words, const float *from) {
    memcpy(((vpps_cpu *)d)->pool + offset, from, words * sizeof *from);
    return VPPS_OK;
}

static vpps_status cpu_copy(vpps_device *d, uint32_t to, uint32_t from, uint32_t words) {
    return cpu_read(d, from, words, ((vpps_cpu *)d)->pool + to);
}

static vpps_status cpu_forward_end(vpps_device *d) {
    const vpps_cpu *cpu = (vpps_cpu *)d;
    return cpu->entries ? vpps_entries_serve(cpu->entries) : VPPS_OK;
}

const vpps_device_table vpps_device_cpu = {.name = "cpu",
                                           .decides = true,
                                           .host_vps = true,
                                           .create = cpu_create,
                                           .destroy = cpu_destroy,
                                           .launch = cpu_launch,
                                           .finished = cpu_finished,
                                           .wait = cpu_wait,
                                           .read = cpu_read,
                                           .reserve_kept = cpu_reserve_kept,
                                           .write = cpu_write,
                                           .copy = cpu_copy,
                                           .forward_end = cpu_forward_end,
                                           .holds = cpu_holds,
                                           .move = cpu_move,
                                           .take_gradients = vpps_cpu_take_gradients,
                                           .zero_gradients = vpps_cpu_zero_gradients,
                                           .choice = vpps_cpu_choice_text,
                                           .take_choice = vpps_cpu_take_choice,
                                           .tune = vpps_cpu_tune,
                                           .measured = vpps_cpu_measured};
