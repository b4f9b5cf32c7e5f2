/* device.c - the CPU device: memory, threads, launching. */
#include "runtime/cpu/cpu.h"

#include <math.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#if VPPS_WITH_XSMM
#include <libxsmm.h>
#endif

/* ---------------------------------------------------------------- threads */

/* Waits, spinning for a moment, then asleep, until the shared word is no longer `old`. */
static void wait_while_equal(vpps_cpu *cpu, atomic_uint *word, uint32_t old) {
    enum { BEFORE_SLEEP = 20000 };
    for (uint32_t i = 0; i < BEFORE_SLEEP; i++) {
        if (atomic_load_explicit(word, memory_order_acquire) != old) return;
        if (cpu->oversubscribed && i > 20) break;
        vpps_relax(cpu, i);
    }
    pthread_mutex_lock(&cpu->lock);
    atomic_fetch_add(&cpu->sleepers, 1);
    while (atomic_load(word) == old) pthread_cond_wait(&cpu->changed, &cpu->lock);
    atomic_fetch_sub(&cpu->sleepers, 1);
    pthread_mutex_unlock(&cpu->lock);
}

/* After a change of a shared word. Both sides use sequentially consistent operations: either the sleeper sees the
 * change, or this sees the sleeper. */
static void wake(vpps_cpu *cpu) {
    if (!atomic_load(&cpu->sleepers)) return;
    pthread_mutex_lock(&cpu->lock);
    pthread_cond_broadcast(&cpu->changed);
    pthread_mutex_unlock(&cpu->lock);
}

static void finish_part(vpps_vp *vp) {
    vpps_cpu *cpu = vp->cpu;
    vp->end_ns = vpps_now_ns();
    atomic_fetch_sub(&cpu->running, 1);
    wake(cpu);
}

static void *work(void *argument) {
    vpps_vp *vp = argument;
    vpps_cpu *cpu = vp->cpu;
    for (uint32_t seen = 0;; seen++) {
        wait_while_equal(cpu, &cpu->epoch, seen);
        if (atomic_load(&cpu->quit)) return NULL;
        vpps_vp_run(vp);
        finish_part(vp);
    }
}

/* Pins VP threads to the cores the process may use, one each where there are enough. */
static vpps_status start_threads(vpps_cpu *cpu, const cpu_set_t *allowed, uint32_t n_allowed) {
    uint32_t core = 0;
    for (uint32_t v = 0; v < cpu->n_vps; v++) {
        vpps_vp *vp = &cpu->vps[v];
        while (!CPU_ISSET(core % CPU_SETSIZE, allowed)) core++;
        if (!(v == 0 && cpu->caller_works)) {
            int error = pthread_create(&vp->thread, NULL, work, vp);
            if (error) return vpps_fail(VPPS_DEVICE, "cpu: cannot start VP %u: %s", v, strerror(error));
            vp->has_thread = true;
            if (cpu->n_vps <= n_allowed) {
                cpu_set_t one;
                CPU_ZERO(&one);
                CPU_SET(core % CPU_SETSIZE, &one);
                pthread_setaffinity_np(vp->thread, sizeof one, &one); /* a wish: without it the VP still works */
            }
        }
        core++;
    }
    return VPPS_OK;
}

/* ---------------------------------------------------------------- memory */

/* Address space only: pages come when they are touched. Where even that is limited, as much as there is. */
static vpps_status map_pool(vpps_cpu *cpu, bool chosen) {
    for (;;) {
        size_t bytes = (size_t)cpu->plan.pool_words * sizeof(float);
        void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (at != MAP_FAILED) {
            cpu->pool = at;
            cpu->pool_bytes = bytes;
            madvise(at, bytes, MADV_HUGEPAGE);
            return VPPS_OK;
        }
        if (chosen || cpu->plan.pool_words / 2 <= cpu->plan.batch) {
            return vpps_fail(VPPS_MEMORY, "cpu: cannot map a pool of %zu bytes", bytes);
        }
        cpu->plan.pool_words /= 2;
    }
}

/* The VP's panels, one block. */
static vpps_status make_panels(vpps_vp *vp, const vpps_model *model, uint32_t states) {
    vp->panels = calloc(model->n_params + 1, sizeof *vp->panels);
    if (!vp->panels) return vpps_fail(VPPS_MEMORY, "cpu: out of memory");
    for (int pass = 0; pass < 2; pass++) {
        size_t next = 0;
        for (uint32_t i = 0; i < model->n_params; i++) {
            const vpps_parameter_data *data = &model->params[i];
            vpps_panel *p = &vp->panels[i];
            if (data->kind != VPPS_MATRIX) continue;
            vpps_rows rows = vpps_vp_rows(vp, data->rows);
            vpps_rows cols = vpps_vp_rows(vp, data->cols);
            *p = (vpps_panel){.n_rows = rows.end - rows.first,
                              .first_row = rows.first,
                              .n_cols = cols.end - cols.first,
                              .first_col = cols.first};
            size_t elems = ((size_t)p->n_rows * data->cols + 15) & ~(size_t)15;
            float **parts[] = {&p->values, &p->gradient, &p->states[0], &p->states[1]};
            _Static_assert(VPPS_COUNT(parts) == 2 + VPPS_MAX_STATES, "a panel has a place for every state");
            for (uint32_t k = 0; k < 2 + states; k++, next += elems) {
                if (pass) *parts[k] = vp->panel_memory + next;
            }
            if (pass) p->transposed = vp->panel_memory + next;
            next += ((size_t)p->n_cols * data->rows + 15) & ~(size_t)15;
        }
        if (pass) break;
        void *memory = NULL;
        if (posix_memalign(&memory, 64, (next + 16) * sizeof(float))) {
            return vpps_fail(VPPS_MEMORY, "cpu: out of memory for VP %u's rows, %zu bytes", vp->index, next * 4);
        }
        memset(memory, 0, (next + 16) * sizeof(float));
        vp->panel_memory = memory;
    }
    return VPPS_OK;
}

/* ---------------------------------------------------------------- parameters to and from the model */

/* Matrix rows between the model's row-after-row copy and the VPs' panels. */
static void copy_matrix(vpps_cpu *cpu, uint32_t param, float *rows_of_model, int part, bool to_model) {
    const vpps_parameter_data *data = &cpu->model->params[param];
    for (uint32_t v = 0; v < cpu->n_vps; v++) {
        const vpps_panel *p = &cpu->vps[v].panels[param];
        float *panel = part < 0 ? p->values : p->states[part];
        for (uint32_t r = 0; r < p->n_rows; r++) {
            float *row = rows_of_model + (size_t)(p->first_row + r) * data->cols;
            for (uint32_t c = 0; c < data->cols; c++) {
                float *element = &panel[(size_t)c * p->n_rows + r];
                if (to_model) {
                    row[c] = *element;
                } else {
                    *element = row[c];
                }
            }
        }
    }
}

static vpps_status cpu_pull(vpps_device *d, vpps_model *model) {
    vpps_cpu *cpu = (vpps_cpu *)d;
    for (uint32_t i = 0; i < model->n_params; i++) {
        vpps_parameter_data *data = &model->params[i];
        size_t bytes = vpps_param_elems(data) * sizeof(float);
        bool matrix = data->kind == VPPS_MATRIX;
        if (matrix) {
            copy_matrix(cpu, i, data->values, -1, true);
        } else {
            memcpy(data->values, cpu->pool + cpu->plan.values[i], bytes);
        }
        for (int s = 0; s < VPPS_MAX_STATES; s++) {
            bool has = matrix ? cpu->vps[0].panels[i].states[s] != NULL : cpu->plan.states[s][i] != VPPS_NO_OFFSET;
            if (!has) continue;
            if (!data->states[s]) data->states[s] = malloc(bytes);
            if (!data->states[s]) return vpps_fail(VPPS_MEMORY, "parameter %s: out of memory", data->name);
            if (matrix) {
                copy_matrix(cpu, i, data->states[s], s, true);
            } else {
                memcpy(data->states[s], cpu->pool + cpu->plan.states[s][i], bytes);
            }
        }
    }
    return VPPS_OK;
}

static vpps_status cpu_push(vpps_device *d, const vpps_model *model) {
    vpps_cpu *cpu = (vpps_cpu *)d;
    for (uint32_t i = 0; i < model->n_params; i++) {
        const vpps_parameter_data *data = &model->params[i];
        size_t bytes = vpps_param_elems(data) * sizeof(float);
        if (data->kind == VPPS_MATRIX) {
            copy_matrix(cpu, i, data->values, -1, false);
            for (int s = 0; s < VPPS_MAX_STATES; s++) {
                if (data->states[s] && cpu->vps[0].panels[i].states[s]) copy_matrix(cpu, i, data->states[s], s, false);
            }
            continue;
        }
        memcpy(cpu->pool + cpu->plan.values[i], data->values, bytes);
        for (int s = 0; s < VPPS_MAX_STATES; s++) {
            if (data->states[s] && cpu->plan.states[s][i] != VPPS_NO_OFFSET) {
                memcpy(cpu->pool + cpu->plan.states[s][i], data->states[s], bytes);
            }
        }
    }
    return VPPS_OK;
}

/* ---------------------------------------------------------------- life */

static void cpu_destroy(vpps_device *d) {
    vpps_cpu *cpu = (vpps_cpu *)d;
    if (!cpu) return;
    atomic_store(&cpu->quit, true);
    atomic_fetch_add(&cpu->epoch, 1);
    wake(cpu);
    for (uint32_t v = 0; cpu->vps && v < cpu->n_vps; v++) {
        vpps_vp *vp = &cpu->vps[v];
        if (vp->has_thread) pthread_join(vp->thread, NULL);
        free(vp->panels);
        free(vp->panel_memory);
        free(vp->scratch);
        free(vp->pointers);
        free(vp->products);
    }
    if (cpu->pool) munmap(cpu->pool, cpu->pool_bytes);
    pthread_mutex_destroy(&cpu->lock);
    pthread_mutex_destroy(&cpu->failure_lock);
    pthread_cond_destroy(&cpu->changed);
    free(cpu->plan.values);
    free(cpu->counters);
    free(cpu->vps);
    free(cpu);
}

static vpps_status set_up(vpps_cpu *cpu, const vpps_model *model, const vpps_options *options) {
    enum { MAX_VPS = 1024 };
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed)) {
        CPU_ZERO(&allowed);
        CPU_SET(0, &allowed);
    }
    uint32_t n_allowed = (uint32_t)CPU_COUNT(&allowed);
    cpu->n_vps = options->vps ? options->vps : n_allowed;
    if (cpu->n_vps > MAX_VPS) return vpps_fail(VPPS_ARGUMENT, "cpu: %u VPs; expected at most %d", cpu->n_vps, MAX_VPS);
    cpu->caller_works =
        options->caller == VPPS_CALLER_WORKS || (options->caller == VPPS_CALLER_AUTO && cpu->n_vps >= n_allowed);
    cpu->oversubscribed = cpu->n_vps + !cpu->caller_works > n_allowed;
    cpu->watchdog_ns = (uint64_t)(options->watchdog_ms ? options->watchdog_ms : 10000) * 1000000;
    cpu->kernels = vpps_kernels_choose(options->portable);
#if VPPS_WITH_XSMM
    cpu->use_xsmm = !options->portable;
    if (cpu->use_xsmm) libxsmm_init();
#endif
    cpu->plan.n_vps = cpu->n_vps;
    cpu->plan.row_block = 16; /* a vector register, and a cache line, of floats */
    cpu->plan.ew_grain = 128;
    VPPS_TRY(vpps_lay_out_pool(&cpu->plan, model, options, cpu->n_vps, "cpu", &cpu->gradients));
    VPPS_TRY(map_pool(cpu, options->pool_bytes != 0));
    void *vps = NULL;
    if (!(vps = calloc(cpu->n_vps, sizeof *cpu->vps))) return vpps_fail(VPPS_MEMORY, "cpu: out of memory");
    cpu->vps = vps;
    for (uint32_t v = 0; v < cpu->n_vps; v++) {
        cpu->vps[v].cpu = cpu;
        cpu->vps[v].index = v;
        VPPS_TRY(make_panels(&cpu->vps[v], model, vpps_optimizer_states(options->optimizer.kind)));
    }
    cpu_push(&cpu->device, model);
    return start_threads(cpu, &allowed, n_allowed);
}

static vpps_status cpu_create(vpps_device **out, const vpps_model *model, const vpps_options *options,
                              vpps_plan *plan) {
    *out = NULL;
    void *memory = NULL;
    if (posix_memalign(&memory, 64, sizeof(vpps_cpu))) return vpps_fail(VPPS_MEMORY, "cpu: out of memory");
    vpps_cpu *cpu = memset(memory, 0, sizeof(vpps_cpu));
    cpu->device.table = &vpps_device_cpu;
    cpu->model = model;
    pthread_mutex_init(&cpu->lock, NULL);
    pthread_mutex_init(&cpu->failure_lock, NULL);
    pthread_cond_init(&cpu->changed, NULL);
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

static vpps_status cpu_launch(vpps_device *d, const uint32_t *script) {
    vpps_cpu *cpu = (vpps_cpu *)d;
    cpu->script = script;
    memcpy(&cpu->header, script, sizeof cpu->header);
    uint32_t n = cpu->header.n_barriers;
    if (n > cpu->n_counters) {
        void *counters = NULL;
        if (posix_memalign(&counters, 64, 2 * (size_t)n * sizeof *cpu->counters)) {
            return vpps_fail(VPPS_MEMORY, "cpu: out of memory for %u barriers", n);
        }
        free(cpu->counters);
        cpu->counters = counters;
        cpu->n_counters = 2 * (size_t)n;
    }
    for (uint32_t i = 0; i < n; i++) atomic_store_explicit(&cpu->counters[i].value, 0, memory_order_relaxed);
    const vpps_rows gradients = cpu->gradients; /* of vectors; panels know by `touched` */
    if (cpu->header.update) memset(cpu->pool + gradients.first, 0, (gradients.end - gradients.first) * sizeof(float));
    cpu->launch++;
    cpu->outcome = (vpps_outcome){.status = VPPS_OK, .loss = NAN};
    atomic_store(&cpu->failed, false);
    cpu->start_ns = vpps_now_ns();
    atomic_store(&cpu->running, cpu->n_vps);
    atomic_fetch_add(&cpu->epoch, 1);
    wake(cpu);
    if (cpu->caller_works) {
        vpps_vp_run(&cpu->vps[0]);
        finish_part(&cpu->vps[0]);
        for (uint32_t left; (left = atomic_load(&cpu->running));) wait_while_equal(cpu, &cpu->running, left);
    }
    return VPPS_OK;
}

static bool cpu_finished(vpps_device *d) { return atomic_load(&((vpps_cpu *)d)->running) == 0; }

static void cpu_wait(vpps_device *d, vpps_outcome *out) {
    vpps_cpu *cpu = (vpps_cpu *)d;
    for (uint32_t left; (left = atomic_load(&cpu->running));) wait_while_equal(cpu, &cpu->running, left);
    for (uint32_t v = 0; v < cpu->n_vps; v++) { /* the last one's end is the batch's */
        const uint64_t ns = cpu->vps[v].end_ns - cpu->start_ns;
        if (ns > cpu->outcome.device_ns) cpu->outcome.device_ns = ns;
    }
    if (cpu->outcome.status == VPPS_OK && cpu->header.loss != VPPS_NO_OFFSET) {
        cpu->outcome.loss = cpu->pool[cpu->header.loss];
        cpu->outcome.norm = (float)vpps_cpu_norm(cpu);
    }
    *out = cpu->outcome;
}

static vpps_status cpu_read(vpps_device *d, uint32_t offset, uint32_t words, float *out) {
    memcpy(out, ((vpps_cpu *)d)->pool + offset, words * sizeof *out);
    return VPPS_OK;
}

static bool cpu_caller_works(const vpps_device *d) { return ((const vpps_cpu *)d)->caller_works; }

const vpps_device_table vpps_device_cpu = {"cpu",    cpu_create, cpu_destroy, cpu_launch, cpu_finished,
                                           cpu_wait, cpu_read,   cpu_pull,    cpu_push,   cpu_caller_works,
                                           NULL,     NULL,       NULL};
