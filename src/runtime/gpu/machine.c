/* machine.c - see machine.h. A batch is: one copy of the script, the counters cleared, one launch. */
#include "runtime/gpu/machine.h"

#include <math.h>
#include <stdarg.h>

_Static_assert(sizeof(vpps_failure) <= VPPS_COUNTER_WORDS * sizeof(uint32_t),
               "a failure takes the first counter's place");
_Static_assert(VPPS_COUNT(((vpps_machine_arguments *)NULL)->states) == VPPS_MAX_STATES, "an address for every state");

static void log_line(const vpps_gpu_machine *gpu, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void log_line(const vpps_gpu_machine *gpu, const char *format, ...) {
    char line[VPPS_MESSAGE_BYTES];
    if (!gpu->options.log) return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    gpu->options.log(gpu->options.log_context, line);
}

/* ---------------------------------------------------------------- memory */

static void release(vpps_gpu_machine *gpu, vpps_machine_buffer *buffer) {
    if (buffer->bytes) gpu->table->release(gpu->driver, buffer->address);
    *buffer = (vpps_machine_buffer){0};
}

/* Makes `bytes` of room; the content is lost when it grows. */
static vpps_status reserve(vpps_gpu_machine *gpu, vpps_machine_buffer *buffer, size_t bytes) {
    if (bytes <= buffer->bytes) return VPPS_OK;
    release(gpu, buffer);
    VPPS_TRY(gpu->table->allocate(gpu->driver, bytes, &buffer->address));
    buffer->bytes = bytes;
    return VPPS_OK;
}

static vpps_status settle(vpps_gpu_machine *gpu) {
    uint64_t unused;
    return gpu->table->wait(gpu->driver, &unused);
}

/* The pool grows with the batches; vectors and tables move along. The old one goes when the new one is there. */
static vpps_status grow_pool(vpps_gpu_machine *gpu, uint32_t words) {
    const size_t needed = (size_t)words * sizeof(float), kept = (size_t)gpu->plan.batch * sizeof(float);
    if (needed <= gpu->pool.bytes) return VPPS_OK;
    vpps_machine_buffer larger = {0};
    if (reserve(gpu, &larger, needed + needed / 4) != VPPS_OK) VPPS_TRY(reserve(gpu, &larger, needed));
    if (gpu->pool.bytes) {
        float *parameters = malloc(kept + 1);
        vpps_status status = parameters ? VPPS_OK : vpps_fail(VPPS_MEMORY, "%s: out of memory", gpu->table->name);
        if (status == VPPS_OK) status = gpu->table->read(gpu->driver, parameters, gpu->pool.address, kept);
        if (status == VPPS_OK) status = gpu->table->write(gpu->driver, larger.address, parameters, kept);
        if (status == VPPS_OK) status = settle(gpu);
        free(parameters);
        if (status != VPPS_OK) {
            release(gpu, &larger);
            return status;
        }
    }
    release(gpu, &gpu->pool);
    gpu->pool = larger;
    return VPPS_OK;
}

/* ---------------------------------------------------------------- parameters to and from the model */

/* Where an array of a parameter lies: its values (state < 0) or a state. 0: there is none. */
static uint64_t array_at(const vpps_gpu_machine *gpu, uint32_t p, int state) {
    if (gpu->model->params[p].kind == VPPS_MATRIX) {
        if (state >= (int)gpu->n_states) return 0;
        return (state < 0 ? gpu->matrices.address : gpu->states[state].address) + 4 * (uint64_t)gpu->matrix_at[p];
    }
    const uint32_t at = state < 0 ? gpu->plan.values[p] : gpu->plan.states[state][p];
    return at == VPPS_NO_OFFSET ? 0 : gpu->pool.address + 4 * (uint64_t)at;
}

static vpps_status machine_read_parameters(vpps_device *d, vpps_model *model) {
    vpps_gpu_machine *gpu = (vpps_gpu_machine *)d;
    for (uint32_t p = 0; p < model->n_params; p++) {
        vpps_parameter_data *data = &model->params[p];
        const size_t bytes = vpps_param_elems(data) * sizeof(float);
        for (int s = -1; s < VPPS_MAX_STATES; s++) {
            const uint64_t at = array_at(gpu, p, s);
            if (!at) continue;
            if (s >= 0 && !data->states[s]) data->states[s] = malloc(bytes);
            float *to = s < 0 ? data->values : data->states[s];
            if (!to) return vpps_fail(VPPS_MEMORY, "parameter %s: out of memory", data->name);
            VPPS_TRY(gpu->table->read(gpu->driver, to, at, bytes));
        }
    }
    return VPPS_OK;
}

static vpps_status machine_write_parameters(vpps_device *d, const vpps_model *model) {
    vpps_gpu_machine *gpu = (vpps_gpu_machine *)d;
    for (uint32_t p = 0; p < model->n_params; p++) {
        const vpps_parameter_data *data = &model->params[p];
        const size_t bytes = vpps_param_elems(data) * sizeof(float);
        for (int s = -1; s < VPPS_MAX_STATES; s++) {
            const uint64_t at = array_at(gpu, p, s);
            const float *from = s < 0 ? data->values : data->states[s];
            if (!at) continue;
            if (from) {
                VPPS_TRY(gpu->table->write(gpu->driver, at, from, bytes));
            } else {
                VPPS_TRY(gpu->table->clear(gpu->driver, at, bytes));
            }
        }
    }
    return settle(gpu);
}

/* ---------------------------------------------------------------- the kernel */

enum { TILE_WORDS = 13312, STATIC_WORDS = 2048 /* of shared memory: at most, about */ };

/* *taken: registers that weights have. */
static vpps_status load_kernel(vpps_gpu_machine *gpu, uint32_t registers, uint32_t *taken, bool *clean) {
    const uint32_t cta_words = gpu->machine.cta_shared_bytes / 4, other = TILE_WORDS + STATIC_WORDS;
    const vpps_kernel_room room = {.threads = gpu->options.threads ? gpu->options.threads : 256,
                                   .registers = registers,
                                   .shared_words = cta_words > other ? cta_words - other : 0};
    char *source, description[128];
    vpps_kernel *kernel = NULL;
    vpps_kernel_plan plan = {.n_vps = gpu->tasks.n_vps,
                             .group = gpu->tasks.n_vps / gpu->tasks.groups,
                             .row_unit = gpu->tasks.row_unit,
                             .optimizer = gpu->options.optimizer.kind,
                             .n_states = gpu->n_states,
                             .cells = gpu->cells,
                             .n_cells = gpu->n_cells};
    vpps_status status = vpps_generate_kernel(&plan, gpu->model, &gpu->plan, gpu->matrix_at, &room, &source);
    if (status != VPPS_OK) {
        vpps_kernel_plan_free(&plan);
        return status;
    }
    const vpps_launch_shape shape = {plan.n_vps, plan.threads, vpps_kernel_shared_bytes(&plan)};
    snprintf(description, sizeof description,
             "%u cells, %u VPs of %u threads in groups of %u, %u registers for weights", plan.n_cells, plan.n_vps,
             plan.threads, plan.group, plan.residents.registers);
    gpu->report = (vpps_cubin_report){0};
    status = gpu->table->load(gpu->driver, source, description, &shape, &kernel, &gpu->report);
    free(source);
    *taken = plan.residents.registers;
    *clean = status == VPPS_OK && !gpu->report.frame_bytes && !gpu->report.spill_bytes;
    if (status == VPPS_OK && !*clean)
        log_line(gpu, "rejected: %s: %u registers, frame of %u bytes, %u bytes spilled", description,
                 gpu->report.registers, gpu->report.frame_bytes, gpu->report.spill_bytes);
    if (!*clean) {
        if (kernel) gpu->table->unload(gpu->driver, kernel);
        vpps_kernel_plan_free(&plan);
        return status;
    }
    if (gpu->kernel) gpu->table->unload(gpu->driver, gpu->kernel);
    vpps_kernel_plan_free(&gpu->kernel_plan);
    gpu->kernel = kernel;
    gpu->kernel_plan = plan;
    gpu->shape = shape;
    gpu->registers = registers;
    log_line(gpu, "kernel of %s: %u registers, ready after %.2f s%s", description, gpu->report.registers,
             gpu->report.seconds, gpu->report.cached ? " (from the cache)" : "");
    return VPPS_OK;
}

/* The most registers for weights with which nothing is spilled. */
static vpps_status make_kernel(vpps_gpu_machine *gpu) {
    enum { MOST = 160, STEP = 16 };
    bool clean = false;
    for (uint32_t registers = gpu->registers ? gpu->registers : MOST, taken;; registers = taken - STEP) {
        VPPS_TRY(load_kernel(gpu, registers, &taken, &clean));
        if (clean) return VPPS_OK;
        if (taken < STEP) break;
    }
    return vpps_fail(VPPS_DEVICE, "%s: no kernel of the model's cells without spills", gpu->table->name);
}

static uint32_t find_cell(const vpps_gpu_machine *gpu, const vpps_compiled_cell *cell) {
    uint32_t i = 0;
    while (i < gpu->n_cells && gpu->cells[i] != cell) i++;
    return i;
}

/* A kernel that has all cells of the batch, and their numbers in it. */
static vpps_status need_cells(vpps_gpu_machine *gpu, const vpps_batch *batch) {
    const uint32_t before = gpu->n_cells;
    if (!VPPS_RESERVE(gpu->number, gpu->number_capacity, batch->n_cells + 1u) ||
        !VPPS_RESERVE(gpu->cells, gpu->cells_capacity, gpu->n_cells + batch->n_cells + 1u)) {
        return vpps_fail(VPPS_MEMORY, "%s: out of memory", gpu->table->name);
    }
    for (uint32_t i = 0; i < batch->n_cells; i++) {
        gpu->number[i] = find_cell(gpu, batch->cells[i]);
        if (gpu->number[i] == gpu->n_cells) gpu->cells[gpu->n_cells++] = batch->cells[i];
    }
    if (gpu->n_cells == before && gpu->kernel) return VPPS_OK;
    const vpps_status status = make_kernel(gpu);
    if (status != VPPS_OK) gpu->n_cells = before;
    return status;
}

/* ---------------------------------------------------------------- launching */

/* Most members of a list that `tile` consecutive vertices have. */
static uint32_t most_members(const uint32_t *starts, uint32_t n, uint32_t tile) {
    uint32_t most = 0;
    for (uint32_t i = 0; i < n; i++) most = vpps_max_u32(most, starts[vpps_min_u32(i + tile, n)] - starts[i]);
    return most;
}

/* Scratch memory for the batch's tiles. */
static vpps_status need_scratch(vpps_gpu_machine *gpu, const vpps_batch *batch) {
    enum { SLACK = 64 };
    uint64_t most = 0;
    for (uint32_t i = 0; i < gpu->header.n_blocks; i++) {
        const vpps_block *block = vpps_block_at(batch->script, i);
        const vpps_compiled_cell *c = batch->cells[block->cell];
        vpps_block_view view;
        vpps_view_block(batch->script, block, c, &view);
        const vpps_stage_room *rooms = gpu->kernel_plan.rooms + gpu->kernel_plan.first_stage[gpu->number[block->cell]];
        for (uint32_t s = 0; s < c->n_stages; s++) {
            uint64_t words = (uint64_t)rooms[s].scratch_words[0] * rooms[s].tile;
            for (uint32_t d = 1; d <= c->n_lists; d++)
                words += (uint64_t)rooms[s].scratch_words[d] * most_members(view.lists[d], block->n, rooms[s].tile);
            if (words > most) most = words;
        }
    }
    if (most + SLACK > UINT32_MAX) return vpps_fail(VPPS_POOL, "%s: lists too long for a tile", gpu->table->name);
    gpu->scratch_words = ((uint32_t)most + 2 * SLACK - 1) / SLACK * SLACK;
    return reserve(gpu, &gpu->scratch, 4 * (size_t)gpu->scratch_words * gpu->tasks.n_vps);
}

/* A copy of the script in pinned memory, so that its way to the device need not be waited for, with cells and stages by their
 * numbers in the kernel. */
static vpps_status copy_script(vpps_gpu_machine *gpu, const vpps_batch *batch, const void **out) {
    const uint32_t k = gpu->next_pinned ^= 1;
    const size_t bytes = batch->script_words * sizeof *batch->script;
    if (gpu->pinned_bytes[k] < bytes) {
        if (gpu->pinned[k]) gpu->table->release_host(gpu->driver, gpu->pinned[k]);
        gpu->pinned[k] = NULL;
        gpu->pinned_bytes[k] = 0;
        VPPS_TRY(gpu->table->allocate_host(gpu->driver, bytes + bytes / 2, &gpu->pinned[k]));
        gpu->pinned_bytes[k] = bytes + bytes / 2;
    }
    uint32_t *script = memcpy(gpu->pinned[k], batch->script, bytes);
    const uint32_t *starts = script + VPPS_TASK_HEADER_WORDS;
    for (uint32_t at = starts[0]; at < starts[gpu->header.n_groups]; at += 1 + vpps_tasks[script[at]].words) {
        if (script[at] != VPPS_TASK_STAGE) continue;
        const vpps_block *block = vpps_block_at(batch->script, script[at + 1]);
        script[at + 2] += gpu->kernel_plan.first_stage[gpu->number[block->cell]];
    }
    for (uint32_t i = 0; i < gpu->header.n_blocks; i++) {
        uint32_t *cell = script + gpu->header.blocks + (size_t)i * VPPS_BLOCK_WORDS + offsetof(vpps_block, cell) / 4;
        *cell = gpu->number[*cell];
    }
    *out = script;
    return VPPS_OK;
}

static vpps_status start_batch(vpps_gpu_machine *gpu, const vpps_batch *batch) {
    const vpps_driver_table *t = gpu->table;
    const size_t counters = ((size_t)gpu->header.n_barriers + 1) * VPPS_COUNTER_WORDS * sizeof(uint32_t);
    const void *script;
    VPPS_TRY(reserve(gpu, &gpu->script, batch->script_words * sizeof *batch->script));
    VPPS_TRY(reserve(gpu, &gpu->counters, counters));
    VPPS_TRY(copy_script(gpu, batch, &script));
    VPPS_TRY(t->write(gpu->driver, gpu->script.address, script, batch->script_words * sizeof *batch->script));
    VPPS_TRY(t->clear(gpu->driver, gpu->counters.address, counters));
    const vpps_machine_arguments arguments = {
        .pool = gpu->pool.address,
        .script = gpu->script.address,
        .counters = gpu->counters.address + VPPS_COUNTER_WORDS * sizeof(uint32_t),
        .matrices = gpu->matrices.address,
        .gradients = gpu->gradients.address,
        .states = {gpu->states[0].address, gpu->states[1].address},
        .scratch = gpu->scratch.address,
        .failure = gpu->counters.address,
        .watchdog_ns = vpps_driver_watchdog_ns(gpu->driver, gpu->options.watchdog_ms),
        .norms = gpu->plan.norms,
        .scratch_words = gpu->scratch_words,
    };
    VPPS_TRY(t->start_clock(gpu->driver));
    VPPS_TRY(t->launch(gpu->driver, gpu->kernel, &gpu->shape, &arguments, sizeof arguments));
    return t->stop_clock(gpu->driver);
}

static vpps_status machine_launch(vpps_device *d, const vpps_batch *batch) {
    vpps_gpu_machine *gpu = (vpps_gpu_machine *)d;
    memcpy(&gpu->header, batch->script, sizeof gpu->header);
    VPPS_TRY(need_cells(gpu, batch));
    VPPS_TRY(need_scratch(gpu, batch));
    VPPS_TRY(grow_pool(gpu, gpu->header.pool_words));
    gpu->in_flight = true;
    gpu->launch_status = start_batch(gpu, batch);
    return gpu->launch_status;
}

/* ---------------------------------------------------------------- outcomes */

static bool machine_finished(vpps_device *d) {
    vpps_gpu_machine *gpu = (vpps_gpu_machine *)d;
    return !gpu->in_flight || gpu->launch_status != VPPS_OK || gpu->table->finished(gpu->driver);
}

static void tell_failure(const vpps_gpu_machine *gpu, const vpps_failure *f, vpps_outcome *out) {
    const double seconds = (double)vpps_driver_watchdog_ns(gpu->driver, gpu->options.watchdog_ms) * 1e-9;
    if (f->failed == VPPS_FAILURE_STALL) {
        out->status = VPPS_STALL;
        snprintf(out->message, sizeof out->message,
                 "VP %u, instruction at word %u: waited %.1f s at barrier %u, which has %u of %u signals", f->vp,
                 f->address, seconds, f->value, f->have, f->wanted);
    } else {
        out->status = VPPS_SCRIPT;
        snprintf(out->message, sizeof out->message, "VP %u, instruction at word %u: task %u is unknown or cut short",
                 f->vp, f->address, f->value);
    }
}

static vpps_status take_outcome(vpps_gpu_machine *gpu, vpps_outcome *out) {
    vpps_failure end;
    VPPS_TRY(gpu->launch_status);
    VPPS_TRY(gpu->table->wait(gpu->driver, &out->device_ns));
    VPPS_TRY(gpu->table->read(gpu->driver, &end, gpu->counters.address, sizeof end));
    if (end.failed) {
        tell_failure(gpu, &end, out);
    } else if (gpu->header.update) {
        out->loss = end.loss;
        out->norm = end.norm;
    }
    return VPPS_OK;
}

static void machine_wait(vpps_device *d, vpps_outcome *out) {
    vpps_gpu_machine *gpu = (vpps_gpu_machine *)d;
    if (gpu->in_flight) {
        gpu->outcome = (vpps_outcome){.status = VPPS_OK, .loss = NAN};
        const vpps_status status = take_outcome(gpu, &gpu->outcome);
        if (status != VPPS_OK) {
            gpu->outcome.status = status;
            snprintf(gpu->outcome.message, sizeof gpu->outcome.message, "%s", vpps_error_message());
        }
        gpu->in_flight = false;
    }
    *out = gpu->outcome;
}

static vpps_status machine_read(vpps_device *d, uint32_t offset, uint32_t words, float *out) {
    vpps_gpu_machine *gpu = (vpps_gpu_machine *)d;
    return gpu->table->read(gpu->driver, out, gpu->pool.address + 4 * (uint64_t)offset, words * sizeof *out);
}

static bool machine_caller_works(const vpps_device *d) {
    (void)d;
    return false;
}

static const vpps_task_plan *machine_tasks(const vpps_device *d) { return &((const vpps_gpu_machine *)d)->tasks; }

/* ---------------------------------------------------------------- life */

static void machine_destroy(vpps_device *d) {
    vpps_gpu_machine *gpu = (vpps_gpu_machine *)d;
    if (!gpu) return;
    if (gpu->driver) {
        if (gpu->in_flight) settle(gpu);
        if (gpu->kernel) gpu->table->unload(gpu->driver, gpu->kernel);
        vpps_machine_buffer *buffers[] = {&gpu->pool,      &gpu->script,    &gpu->counters,  &gpu->matrices,
                                          &gpu->gradients, &gpu->states[0], &gpu->states[1], &gpu->scratch};
        for (size_t i = 0; i < VPPS_COUNT(buffers); i++) release(gpu, buffers[i]);
        for (size_t i = 0; i < VPPS_COUNT(gpu->pinned); i++)
            if (gpu->pinned[i]) gpu->table->release_host(gpu->driver, gpu->pinned[i]);
        gpu->table->close(gpu->driver);
    }
    vpps_kernel_plan_free(&gpu->kernel_plan);
    free(gpu->plan.values);
    free(gpu->matrix_at);
    free(gpu->cells);
    free(gpu->number);
    free(gpu);
}

static vpps_status lay_out_matrices(vpps_gpu_machine *gpu) {
    enum { ALIGNED = 64 };
    uint64_t at = 0;
    gpu->matrix_at = calloc(gpu->model->n_params + 1, sizeof *gpu->matrix_at);
    if (!gpu->matrix_at) return vpps_fail(VPPS_MEMORY, "%s: out of memory", gpu->table->name);
    for (uint32_t p = 0; p < gpu->model->n_params; p++) {
        if (gpu->model->params[p].kind != VPPS_MATRIX) continue;
        gpu->matrix_at[p] = (uint32_t)at;
        at += (vpps_param_elems(&gpu->model->params[p]) + ALIGNED - 1) / ALIGNED * ALIGNED;
        if (at > UINT32_MAX) return vpps_fail(VPPS_POOL, "%s: matrices of more than 2^32 elements", gpu->table->name);
    }
    gpu->matrix_words = (size_t)at;
    const size_t bytes = (gpu->matrix_words + 1) * sizeof(float);
    VPPS_TRY(reserve(gpu, &gpu->matrices, bytes));
    VPPS_TRY(reserve(gpu, &gpu->gradients, bytes));
    for (uint32_t s = 0; s < gpu->n_states; s++) VPPS_TRY(reserve(gpu, &gpu->states[s], bytes));
    return VPPS_OK;
}

static vpps_status set_up(vpps_gpu_machine *gpu) {
    enum { LEAST_ROWS = 32, SPLIT_ELEMS = 4096 };
    vpps_rows gradients;
    const vpps_options *o = &gpu->options;
    VPPS_TRY(gpu->table->open(&gpu->driver, &gpu->machine));
    gpu->driver->limit_ns = vpps_driver_limit_ns(o->watchdog_ms);
    if (gpu->driver->kernels_time_out)
        log_line(gpu, "%s drives a display: kernels of more than some seconds are ended", gpu->machine.name);
    const uint32_t n_vps = o->vps ? vpps_min_u32(o->vps, gpu->machine.sms) : gpu->machine.sms;
    const uint32_t groups = o->groups && o->groups != VPPS_GROUPS_PROFILE ? o->groups : 1;
    if (n_vps % groups) {
        return vpps_fail(VPPS_ARGUMENT, "%s: %u groups of %u VPs; expected a divisor", gpu->table->name, groups, n_vps);
    }
    gpu->n_states = vpps_optimizer_states(o->optimizer.kind);
    VPPS_TRY(vpps_lay_out_pool(&gpu->plan, gpu->model, o, n_vps, gpu->table->name, &gradients));
    const uint64_t room = gpu->table->free_bytes(gpu->driver) / 4 * 3 / 4; /* words, less a quarter for the rest */
    if (!o->pool_bytes && room < gpu->plan.pool_words)
        gpu->plan.pool_words = (uint32_t)(room > gpu->plan.batch ? room : gpu->plan.batch + 1u);
    gpu->plan.n_vps = n_vps;
    gpu->plan.row_block = o->rpw ? o->rpw : 1;
    VPPS_TRY(lay_out_matrices(gpu));
    VPPS_TRY(grow_pool(gpu, gpu->plan.batch + 1));
    gpu->tasks = (vpps_task_plan){.n_vps = n_vps,
                                  .values = gpu->plan.values,
                                  .batch = gpu->plan.batch,
                                  .pool_words = gpu->plan.pool_words,
                                  .groups = groups,
                                  .row_unit = gpu->plan.row_block,
                                  .least_rows = LEAST_ROWS,
                                  .columns = true,
                                  .split_elems = SPLIT_ELEMS};
    return machine_write_parameters(&gpu->device, gpu->model);
}

vpps_status vpps_gpu_machine_create(vpps_device **out, const vpps_device_table *device, const vpps_driver_table *driver,
                                    const vpps_model *model, const vpps_options *options, vpps_plan *plan) {
    *out = NULL;
    vpps_gpu_machine *gpu = calloc(1, sizeof *gpu);
    if (!gpu) return vpps_fail(VPPS_MEMORY, "%s: out of memory", driver->name);
    gpu->device.table = device;
    gpu->table = driver;
    gpu->model = model;
    gpu->options = *options;
    const vpps_status status = set_up(gpu);
    if (status != VPPS_OK) {
        machine_destroy(&gpu->device);
        return status;
    }
    *plan = gpu->plan;
    *out = &gpu->device;
    return VPPS_OK;
}

static vpps_status create_cuda(vpps_device **out, const vpps_model *model, const vpps_options *options,
                               vpps_plan *plan) {
    return vpps_gpu_machine_create(out, &vpps_device_cuda_cells, &vpps_driver_cuda, model, options, plan);
}

static vpps_status create_simt(vpps_device **out, const vpps_model *model, const vpps_options *options,
                               vpps_plan *plan) {
    return vpps_gpu_machine_create(out, &vpps_device_simt_cells, &vpps_driver_simt, model, options, plan);
}

#define MACHINE(device_name, create_device)                                                                            \
    {                                                                                                                  \
        .name = device_name, .create = create_device, .destroy = machine_destroy, .machine = machine_tasks,            \
        .launch_batch = machine_launch, .finished = machine_finished, .wait = machine_wait, .read = machine_read,      \
        .read_parameters = machine_read_parameters, .write_parameters = machine_write_parameters,                      \
        .caller_works = machine_caller_works                                                                           \
    }

const vpps_device_table vpps_device_cuda_cells = MACHINE("cuda-cells", create_cuda);
const vpps_device_table vpps_device_simt_cells = MACHINE("simt-cells", create_simt);
