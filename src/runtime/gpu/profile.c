/* profile.c - which choice is the fastest, measured on the batches that are trained anyway: no batch is run twice, none is
 * lost. First rows per warp, upwards, until more are slower; with the best of them the other numbers of threads. Where a driver can
 * compile ahead, batches go on with one choice until the next one's kernel is there. The result is kept beside the compiled kernels, for the next run. */
#include "runtime/gpu/gpu.h"

#include "codegen/cache.h"
#include "runtime/profile.h"

#include <stdio.h>

static const uint32_t most_rpw = 8, threads_of[] = {256, 384, 512};

static void describe(const vpps_trial *t, char *text, size_t bytes) {
    snprintf(text, bytes, "rpw %u, %u threads", t->rpw, t->threads);
}

/* ---------------------------------------------------------------- the list */

_Static_assert(4 + VPPS_COUNT(threads_of) - 1 <= VPPS_GPU_TRIALS, "room for 1, 2, 4, 8 rows, then all threads");

uint32_t vpps_gpu_choices(const vpps_options *o, vpps_trial *out) {
    uint32_t n = 0;
    const uint32_t threads = o->threads ? o->threads : threads_of[0];
    for (uint32_t rpw = 1; rpw <= most_rpw; rpw *= 2)
        if (!o->rpw || rpw == 1) out[n++] = (vpps_trial){.rpw = o->rpw ? o->rpw : rpw, .threads = threads};
    for (size_t i = 1; i < VPPS_COUNT(threads_of) && !o->threads; i++)
        out[n++] = (vpps_trial){.rpw = o->rpw, .threads = threads_of[i]};
    return n;
}

/* ---------------------------------------------------------------- what an earlier run chose */

/* Identifies the model, the machine and what was left open. */
static vpps_status tuning_key(const vpps_gpu *gpu, char **shapes, char *toolchain, size_t bytes, vpps_cache_key *key) {
    const vpps_options *o = &gpu->options;
    size_t size;
    FILE *f = open_memstream(shapes, &size);
    if (!f) return vpps_fail(VPPS_MEMORY, "%s: out of memory", gpu->table->name);
    for (uint32_t i = 0; i < gpu->model->n_params; i++) {
        const vpps_parameter_data *p = &gpu->model->params[i];
        fprintf(f, "%s %d %u %u %u\n", p->name, (int)p->kind, p->rows, p->cols, p->count);
    }
    if (fclose(f)) return vpps_fail(VPPS_MEMORY, "%s: out of memory", gpu->table->name);
    snprintf(toolchain, bytes, "%s, sm_%u, %u VPs in %u groups; rpw %u, threads %u, optimiser %d, %s",
             gpu->machine.name, gpu->machine.arch, gpu->layout.tasks.n_vps, gpu->layout.tasks.groups, o->rpw,
             o->threads, (int)o->optimizer.kind, vpps_precision_names[gpu->layout.precision]);
    *key = (vpps_cache_key){"tuning", "the fastest choice", toolchain, *shapes, size};
    return VPPS_OK;
}

/* The trial that is remembered, or n_trials. */
static uint32_t recall(vpps_gpu *gpu) {
    char toolchain[512], *shapes = NULL, text[64];
    vpps_cache_key key;
    void *bytes = NULL;
    size_t size = 0;
    uint32_t found = gpu->n_trials, rpw, threads;
    if (tuning_key(gpu, &shapes, toolchain, sizeof toolchain, &key) == VPPS_OK &&
        vpps_cache_read(&key, &bytes, &size, NULL) == VPPS_OK && bytes && size < sizeof text) {
        memcpy(text, bytes, size);
        text[size] = '\0';
        if (sscanf(text, "%u %u", &rpw, &threads) == 2 && rpw) {
            for (found = 0; found < gpu->n_trials; found++) {
                vpps_trial *t = &gpu->trials[found];
                if (!t->rpw && t->threads == threads) t->rpw = rpw;
                if (t->rpw == rpw && t->threads == threads) break;
            }
        }
    }
    free(bytes);
    free(shapes);
    return found;
}

static void remember(const vpps_gpu *gpu) {
    char toolchain[512], *shapes = NULL, text[64];
    vpps_cache_key key;
    const vpps_trial *t = &gpu->trials[gpu->current];
    snprintf(text, sizeof text, "%u %u", t->rpw, t->threads);
    if (tuning_key(gpu, &shapes, toolchain, sizeof toolchain, &key) != VPPS_OK ||
        vpps_cache_write(&key, text, strlen(text)) != VPPS_OK) {
        vpps_gpu_log(gpu, "the choice could not be kept for the next run: %s", vpps_error_message());
    }
    free(shapes);
}

/* ---------------------------------------------------------------- trying */

/* From the next batch on; its kernel is made when that comes. */
static void take(vpps_gpu *gpu, uint32_t i) {
    vpps_trial *before = &gpu->trials[gpu->current];
    if (before->state == VPPS_TRIAL_CURRENT) before->state = VPPS_TRIAL_MEASURED;
    gpu->current = i;
    gpu->trials[i].state = VPPS_TRIAL_CURRENT;
    gpu->layout.tasks.row_unit = gpu->trials[i].rpw;
    vpps_gpu_forget_kernels(gpu);
}

vpps_status vpps_gpu_note_kernel(vpps_gpu *gpu, vpps_status made) {
    vpps_trial *t = &gpu->trials[gpu->current];
    char text[64];
    if (made == VPPS_OK) {
        t->registers = gpu->kernel->report.registers;
        t->load_seconds = gpu->kernel->report.seconds;
    }
    if (made == VPPS_OK || made == VPPS_MEMORY || gpu->chosen) return made;
    describe(t, text, sizeof text);
    vpps_gpu_log(gpu, "%s: %s", text, vpps_error_message());
    t->state = VPPS_TRIAL_REJECTED;
    gpu->due = true;
    return VPPS_POOL;
}

void vpps_gpu_measure(vpps_gpu *gpu, uint64_t device_ns) {
    vpps_trial *t = &gpu->trials[gpu->current];
    if (gpu->chosen || gpu->due) return;
    const uint32_t batch = t->batches++;
    if (batch < VPPS_GPU_SKIPPED) return;
    gpu->ns[batch - VPPS_GPU_SKIPPED] = (double)device_ns / (gpu->nodes ? gpu->nodes : 1);
    if (batch + 1 < VPPS_GPU_SKIPPED + VPPS_GPU_MEASURED) return;
    t->batches = VPPS_GPU_MEASURED;
    t->ns_per_node = vpps_median(gpu->ns, VPPS_GPU_MEASURED);
    gpu->due = true;
}

/* The fastest of those that were measured, or n_trials. */
static uint32_t best_trial(const vpps_gpu *gpu) {
    uint32_t best = gpu->n_trials;
    for (uint32_t i = 0; i < gpu->n_trials; i++) {
        const double ns = gpu->trials[i].ns_per_node;
        if (ns > 0 && (best == gpu->n_trials || ns < gpu->trials[best].ns_per_node)) best = i;
    }
    return best;
}

/* The trial to try next, or n_trials: rows per warp, of the first number of threads, only while they get faster. */
static uint32_t next_trial(vpps_gpu *gpu) {
    const uint32_t best = best_trial(gpu);
    bool faster = true;
    for (uint32_t i = 0; i < gpu->n_trials; i++) {
        vpps_trial *t = &gpu->trials[i];
        if (t->ns_per_node > 0) faster = i == best;
        if (t->state != VPPS_TRIAL_WAITING || (t->threads == gpu->trials[0].threads && !faster)) continue;
        if (!t->rpw) t->rpw = best == gpu->n_trials ? 1 : gpu->trials[best].rpw;
        return i;
    }
    return gpu->n_trials;
}

/* Where no choice has a kernel that does not spill, the first is taken, and may. */
static void choose(vpps_gpu *gpu) {
    const uint32_t best = best_trial(gpu);
    char text[64];
    gpu->chosen = true;
    if (best == gpu->n_trials) {
        take(gpu, 0);
        return;
    }
    if (best != gpu->current) take(gpu, best);
    describe(&gpu->trials[best], text, sizeof text);
    vpps_gpu_log(gpu, "chosen: %s, %.0f ns a node", text, gpu->trials[best].ns_per_node);
    remember(gpu);
}

void vpps_gpu_next_trial(vpps_gpu *gpu) {
    const vpps_trial *t = &gpu->trials[gpu->current];
    const uint32_t i = next_trial(gpu);
    char text[64];
    if (i < gpu->n_trials && t->state != VPPS_TRIAL_REJECTED && !vpps_gpu_is_ahead(gpu, &gpu->trials[i])) return;
    gpu->due = false;
    describe(t, text, sizeof text);
    if (t->ns_per_node > 0)
        vpps_gpu_log(gpu, "measured: %s: %.0f ns a node (median of %u batches)", text, t->ns_per_node, t->batches);
    if (i == gpu->n_trials)
        choose(gpu);
    else
        take(gpu, i);
}

vpps_status vpps_gpu_start_profile(vpps_gpu *gpu) {
    gpu->n_trials = vpps_gpu_choices(&gpu->options, gpu->trials);
    gpu->chosen = gpu->options.no_tuning || gpu->n_trials == 1;
    const uint32_t remembered = gpu->chosen ? gpu->n_trials : recall(gpu);
    take(gpu, remembered < gpu->n_trials ? remembered : 0);
    if (remembered < gpu->n_trials) {
        gpu->trials[remembered].state = VPPS_TRIAL_REMEMBERED;
        gpu->chosen = true;
    }
    return VPPS_OK;
}
