/* device.c - see gpu.h. A batch is: one copy of the script, the counters cleared, one launch; where gradients are
 * deferred, a product a matrix and a second launch for the updates. */
#include "runtime/gpu/gpu.h"

#include <math.h>

/* What the kernel's templates, which no C compiler reads, take for granted. */
_Static_assert(sizeof(vpps_failure) <= VPPS_COUNTER_WORDS * sizeof(uint32_t),
               "a failure takes the first counter's place");
_Static_assert(VPPS_COUNT(((vpps_arguments *)NULL)->states) == VPPS_MAX_STATES, "an address for every state");
_Static_assert(VPPS_COUNT(((vpps_param_entry *)NULL)->states) == VPPS_MAX_STATES, "an offset for every state");

/* ---------------------------------------------------------------- launching */

/* The script in pinned memory, so that its copy to the device need not be waited for. */
static vpps_status pin_script(vpps_gpu *gpu, const uint32_t *script, size_t bytes, const void **out) {
    const uint32_t i = gpu->next_pinned ^= 1;
    if (gpu->pinned_bytes[i] < bytes) {
        if (gpu->pinned[i]) gpu->table->release_host(gpu->driver, gpu->pinned[i]);
        gpu->pinned[i] = NULL;
        gpu->pinned_bytes[i] = 0;
        VPPS_TRY(gpu->table->allocate_host(gpu->driver, bytes + bytes / 2, &gpu->pinned[i]));
        gpu->pinned_bytes[i] = bytes + bytes / 2;
    }
    memcpy(gpu->pinned[i], script, bytes);
    *out = gpu->pinned[i];
    return VPPS_OK;
}

static vpps_status run_part(vpps_gpu *gpu, uint32_t part) {
    const vpps_gpu_plan *now = &gpu->now;
    const vpps_arguments arguments = {
        .pool = gpu->pool.address,
        .script = gpu->script.address,
        .counters = gpu->counters.address + VPPS_COUNTER_WORDS * sizeof(uint32_t),
        .master = now->master.address,
        .gradients = now->gradients.address,
        .states = {now->states[0].address, now->states[1].address},
        .tables = now->tables.address,
        .resume = gpu->resume.address,
        .failure = gpu->counters.address,
        .watchdog_ns = vpps_driver_watchdog_ns(gpu->driver, gpu->options.watchdog_ms),
        .norms = gpu->plan.norms,
        .part = part,
    };
    return gpu->table->launch(gpu->driver, now->kernel, &now->shape, &arguments, sizeof arguments);
}

/* The products of one bundle: gradient of each matrix += (gradients of an output)^T (gathered list). */
static vpps_status multiply_bundle(vpps_gpu *gpu, const uint32_t *script, uint32_t address, uint32_t vectors) {
    const vpps_partition *p = &gpu->now.partition;
    const uint32_t *at = script + address, *lists = at + 2, *output = lists + 4 * (size_t)at[0];
    for (uint32_t o = 0; o < at[1]; o++, output += 5 + 2 * (size_t)output[4]) {
        for (uint32_t k = 0; k < output[4]; k++) {
            const uint32_t matrix = p->matrix_of_param[output[5 + 2 * k]],
                           *list = lists + 4 * (size_t)output[6 + 2 * k];
            const uint32_t copy = script[list[0] - 2];
            VPPS_TRY(gpu->table->multiply(
                gpu->driver, output[3], list[3], vectors, gpu->pool.address + 4 * (uint64_t)output[1],
                gpu->pool.address + 4 * (uint64_t)copy, gpu->now.gradients.address + 4 * p->matrices[matrix].gradient,
                gpu->touched[matrix]));
            gpu->touched[matrix] = true;
        }
    }
    return VPPS_OK;
}

static vpps_status run_batch(vpps_gpu *gpu, const uint32_t *script) {
    const vpps_driver_table *t = gpu->table;
    const vpps_script_header *h = &gpu->header;
    const size_t bytes = (size_t)h->words * sizeof *script;
    const size_t counters = ((size_t)h->n_barriers + 1) * VPPS_COUNTER_WORDS * sizeof(uint32_t);
    const void *pinned = NULL;
    VPPS_TRY(vpps_gpu_grow_pool(gpu, h->pool_words));
    VPPS_TRY(vpps_gpu_reserve(gpu, &gpu->script, bytes));
    VPPS_TRY(vpps_gpu_reserve(gpu, &gpu->counters, counters));
    VPPS_TRY(pin_script(gpu, script, bytes, &pinned));
    VPPS_TRY(t->write(gpu->driver, gpu->script.address, pinned, bytes));
    VPPS_TRY(t->clear(gpu->driver, gpu->counters.address, counters));
    if (h->update && gpu->gradients.end > gpu->gradients.first) {
        VPPS_TRY(t->clear(gpu->driver, gpu->pool.address + 4 * (uint64_t)gpu->gradients.first,
                          (size_t)(gpu->gradients.end - gpu->gradients.first) * sizeof(float)));
    }
    VPPS_TRY(t->start_clock(gpu->driver));
    VPPS_TRY(run_part(gpu, 0));
    if (h->n_bundles) {
        memset(gpu->touched, 0, gpu->model->n_params * sizeof *gpu->touched);
        for (uint32_t i = 0; i < h->n_bundles; i++) {
            VPPS_TRY(multiply_bundle(gpu, script, script[h->bundles + 2 * i], script[h->bundles + 2 * i + 1]));
        }
        VPPS_TRY(run_part(gpu, 1));
    }
    return t->stop_clock(gpu->driver);
}

static vpps_status gpu_launch(vpps_device *d, const uint32_t *script) {
    vpps_gpu *gpu = (vpps_gpu *)d;
    memcpy(&gpu->header, script, sizeof gpu->header);
    gpu->launch_status = run_batch(gpu, script);
    gpu->in_flight = gpu->launch_status != VPPS_MEMORY; /* memory is found before anything is started */
    return gpu->launch_status;
}

/* ---------------------------------------------------------------- outcomes */

static bool gpu_finished(vpps_device *d) {
    vpps_gpu *gpu = (vpps_gpu *)d;
    return !gpu->in_flight || gpu->launch_status != VPPS_OK || gpu->table->finished(gpu->driver);
}

static void tell_failure(const vpps_gpu *gpu, const vpps_failure *f, vpps_outcome *out) {
    const double seconds = (double)vpps_driver_watchdog_ns(gpu->driver, gpu->options.watchdog_ms) * 1e-9;
    if (f->failed == VPPS_FAILURE_STALL) {
        out->status = VPPS_STALL;
        snprintf(out->message, sizeof out->message,
                 "VP %u, instruction at word %u: waited %.1f s at barrier %u, which has %u of %u signals", f->vp,
                 f->address, seconds, f->value, f->have, f->wanted);
    } else {
        out->status = VPPS_SCRIPT;
        snprintf(out->message, sizeof out->message, "VP %u, instruction at word %u: opcode %u is unknown or cut short",
                 f->vp, f->address, f->value);
    }
}

static vpps_status take_outcome(vpps_gpu *gpu, vpps_outcome *out) {
    vpps_failure failure;
    VPPS_TRY(gpu->launch_status);
    VPPS_TRY(gpu->table->wait(gpu->driver, &out->device_ns));
    VPPS_TRY(gpu->table->read(gpu->driver, &failure, gpu->counters.address, sizeof failure));
    if (failure.failed) {
        tell_failure(gpu, &failure, out);
        return VPPS_OK;
    }
    if (gpu->header.loss == VPPS_NO_OFFSET) return VPPS_OK;
    const uint64_t loss = gpu->pool.address + 4 * (uint64_t)gpu->header.loss;
    VPPS_TRY(gpu->table->read(gpu->driver, &out->loss, loss, sizeof out->loss));
    out->norm = failure.norm;
    vpps_gpu_measure(gpu, out->device_ns, gpu->header.nodes);
    return VPPS_OK;
}

static void gpu_wait(vpps_device *d, vpps_outcome *out) {
    vpps_gpu *gpu = (vpps_gpu *)d;
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

static vpps_status gpu_read(vpps_device *d, uint32_t offset, uint32_t words, float *out) {
    vpps_gpu *gpu = (vpps_gpu *)d;
    return gpu->table->read(gpu->driver, out, gpu->pool.address + 4 * (uint64_t)offset, words * sizeof *out);
}

static vpps_status gpu_read_parameters(vpps_device *d, vpps_model *model) {
    VPPS_TRY(vpps_gpu_restore_pool((vpps_gpu *)d));
    return vpps_gpu_read_parameters((vpps_gpu *)d, model);
}
static vpps_status gpu_write_parameters(vpps_device *d, const vpps_model *model) {
    VPPS_TRY(vpps_gpu_restore_pool((vpps_gpu *)d));
    return vpps_gpu_write_parameters((vpps_gpu *)d, model);
}

static bool gpu_caller_works(const vpps_device *d) {
    (void)d;
    return false;
}

/* ---------------------------------------------------------------- the profile */

static bool gpu_tuning(const vpps_device *d) {
    const vpps_gpu *gpu = (const vpps_gpu *)d;
    return !gpu->chosen;
}

static vpps_status gpu_tune(vpps_device *d, vpps_plan *plan) {
    vpps_gpu *gpu = (vpps_gpu *)d;
    if (!gpu->due) return VPPS_OK;
    VPPS_TRY(vpps_gpu_next_trial(gpu));
    *plan = gpu->plan;
    return VPPS_OK;
}

static uint32_t gpu_trials(const vpps_device *d, vpps_trial *out, uint32_t room, bool *done) {
    const vpps_gpu *gpu = (const vpps_gpu *)d;
    for (uint32_t i = 0; i < gpu->n_trials && i < room; i++) out[i] = gpu->trials[i].result;
    *done = gpu->chosen;
    return gpu->n_trials;
}

/* ---------------------------------------------------------------- life */

static void gpu_destroy(vpps_device *d) {
    vpps_gpu *gpu = (vpps_gpu *)d;
    if (!gpu) return;
    vpps_gpu_end_profile(gpu);
    if (gpu->driver) {
        if (gpu->in_flight) vpps_gpu_settle(gpu);
        vpps_gpu_close_plan(gpu, &gpu->now);
        vpps_gpu_buffer *buffers[] = {&gpu->pool, &gpu->script, &gpu->counters, &gpu->resume};
        for (size_t i = 0; i < VPPS_COUNT(buffers); i++) vpps_gpu_release(gpu, buffers[i]);
        for (size_t i = 0; i < VPPS_COUNT(gpu->pinned); i++) {
            if (gpu->pinned[i]) gpu->table->release_host(gpu->driver, gpu->pinned[i]);
        }
        gpu->table->close(gpu->driver);
    }
    free(gpu->plan.values);
    free(gpu->touched);
    free(gpu->rescued);
    free(gpu);
}

static vpps_status set_up(vpps_gpu *gpu) {
    const uint32_t most_vps = 2; /* CTAs an SM */
    VPPS_TRY(gpu->table->open(&gpu->driver, &gpu->machine));
    gpu->driver->limit_ns = vpps_driver_limit_ns(gpu->options.watchdog_ms);
    if (gpu->driver->kernels_time_out) {
        vpps_gpu_log(gpu, "%s drives a display: kernels of more than some seconds are ended", gpu->machine.name);
    }
    const uint32_t max_vps = most_vps * gpu->machine.sms;
    if (!(gpu->touched = calloc(gpu->model->n_params + 1, sizeof *gpu->touched))) {
        return vpps_fail(VPPS_MEMORY, "%s: out of memory", gpu->table->name);
    }
    VPPS_TRY(vpps_lay_out_pool(&gpu->plan, gpu->model, &gpu->options, max_vps, gpu->table->name, &gpu->gradients));
    const uint64_t room = gpu->table->free_bytes(gpu->driver) / 4 * 3 / 4; /* words, less a quarter for the rest */
    if (!gpu->options.pool_bytes && room < gpu->plan.pool_words) {
        gpu->plan.pool_words = (uint32_t)(room > gpu->plan.batch ? room : gpu->plan.batch + 1u);
    }
    VPPS_TRY(vpps_gpu_reserve(gpu, &gpu->resume, max_vps * sizeof(uint32_t)));
    VPPS_TRY(vpps_gpu_grow_pool(gpu, gpu->plan.batch + 1));
    VPPS_TRY(gpu->table->clear(gpu->driver, gpu->pool.address, (size_t)gpu->plan.batch * sizeof(float)));
    VPPS_TRY(vpps_gpu_start_profile(gpu));
    return vpps_gpu_write_parameters(gpu, gpu->model);
}

vpps_status vpps_gpu_create(vpps_device **out, const vpps_device_table *device, const vpps_driver_table *driver,
                            const vpps_model *model, const vpps_options *options, vpps_plan *plan) {
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
    *plan = gpu->plan;
    *out = &gpu->device;
    return VPPS_OK;
}

static vpps_status create_cuda(vpps_device **out, const vpps_model *model, const vpps_options *options,
                               vpps_plan *plan) {
    return vpps_gpu_create(out, &vpps_device_cuda, &vpps_driver_cuda, model, options, plan);
}

static vpps_status create_simt(vpps_device **out, const vpps_model *model, const vpps_options *options,
                               vpps_plan *plan) {
    return vpps_gpu_create(out, &vpps_device_simt, &vpps_driver_simt, model, options, plan);
}

#define GPU_DEVICE(device_name, find_device, create_device)                                                            \
    {                                                                                                                  \
        .name = device_name, .find = find_device, .create = create_device, .destroy = gpu_destroy,                     \
        .launch = gpu_launch, .finished = gpu_finished, .wait = gpu_wait, .read = gpu_read,                            \
        .read_parameters = gpu_read_parameters, .write_parameters = gpu_write_parameters,                              \
        .caller_works = gpu_caller_works, .tuning = gpu_tuning, .tune = gpu_tune, .trials = gpu_trials                 \
    }

const vpps_device_table vpps_device_cuda = GPU_DEVICE("cuda", vpps_cuda_find, create_cuda);
const vpps_device_table vpps_device_simt = GPU_DEVICE("simt", NULL, create_simt);
