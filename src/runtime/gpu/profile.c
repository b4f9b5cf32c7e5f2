/* profile.c - which choice is the fastest, measured on the batches that are trained anyway: no batch is run twice, none
 * is lost. First rows per warp, upwards, until one is slower; with the best of them the other strategies; with the best
 * strategy the other shapes of CTAs. The result is kept beside the compiled kernels, for the next run. */
#include "runtime/gpu/gpu.h"

#include "codegen/cache.h"
#include "codegen/emit.h"

#include <pthread.h>

/* The first batch after a change is not counted: caches are cold. */
enum { SKIPPED_BATCHES = 1, MEASURED_BATCHES = 5 };

static vpps_strategy strategy_of(const vpps_partition_choice *c) {
    static const struct {
        bool transposed, deferred;
    } rows[] = {{false, false},
#define X(id, name, transposed, deferred) {transposed, deferred},
                VPPS_STRATEGY_TABLE(X)
#undef X
    };
    size_t i = 1;
    while (i + 1 < VPPS_COUNT(rows) && (rows[i].transposed != c->transposed || rows[i].deferred != c->deferred)) i++;
    return (vpps_strategy)i;
}

static const char *strategy_name(vpps_strategy s) {
    static const char *const names[] = {"auto",
#define X(id, name, transposed, deferred) name,
                                        VPPS_STRATEGY_TABLE(X)
#undef X
    };
    return names[s];
}

static void describe(const vpps_gpu_trial *t, char *text, size_t bytes) {
    snprintf(text, bytes, "rpw %u, %u threads, %u CTAs an SM, %s", t->choice.rpw, t->choice.threads,
             t->choice.ctas_per_sm, strategy_name(t->result.strategy));
}

/* Does the trial differ from the best in just this: rows per warp, strategy, shape (0, 1, 2)? */
static bool differs_in(const vpps_trial *t, const vpps_trial *best, int what) {
    const bool rpw = t->rpw != best->rpw, strategy = t->strategy != best->strategy;
    const bool shape = t->threads != best->threads || t->ctas_per_sm != best->ctas_per_sm;
    return rpw == (what == 0) && strategy == (what == 1) && shape == (what == 2);
}

/* ---------------------------------------------------------------- the list */

static vpps_status list_trials(vpps_gpu *gpu) {
    const vpps_options *o = &gpu->options;
    vpps_partition_choice choices[VPPS_MAX_CHOICES];
    const vpps_partition_choice fixed = {.rpw = o->rpw, .threads = o->threads, .ctas_per_sm = o->ctas_per_sm};
    const uint32_t n = vpps_partition_choices(gpu->model, &gpu->machine, &fixed, false, choices, VPPS_MAX_CHOICES);
    gpu->trials = calloc(n + 1u, sizeof *gpu->trials);
    if (!gpu->trials) return vpps_fail(VPPS_MEMORY, "%s: out of memory", gpu->table->name);
    for (uint32_t i = 0; i < n; i++) {
        const vpps_strategy strategy = strategy_of(&choices[i]);
        if (o->strategy != VPPS_STRATEGY_AUTO && strategy != o->strategy) continue;
        vpps_gpu_trial *t = &gpu->trials[gpu->n_trials++];
        t->choice = choices[i];
        t->result = (vpps_trial){.rpw = choices[i].rpw,
                                 .threads = choices[i].threads,
                                 .ctas_per_sm = choices[i].ctas_per_sm,
                                 .vectors = choices[i].vectors,
                                 .strategy = strategy};
        if (!(t->ns_per_node = calloc(MEASURED_BATCHES, sizeof *t->ns_per_node))) {
            return vpps_fail(VPPS_MEMORY, "%s: out of memory", gpu->table->name);
        }
    }
    if (gpu->n_trials) return VPPS_OK;
    return vpps_fail(VPPS_POOL, "%s: no plan fits rpw %u, %u threads, %u CTAs an SM, strategy %s (0: any)",
                     gpu->table->name, o->rpw, o->threads, o->ctas_per_sm, strategy_name(o->strategy));
}

/* ---------------------------------------------------------------- compiling ahead
 *
 * Kernels for other rows per warp are compiled by threads while the first one is made and measured; they wait in the disk
 * cache. A failure shows when the trial's turn comes. */

typedef struct vpps_gpu_precompiler {
    pthread_t thread;
    const vpps_model *model;
    vpps_machine machine;
    vpps_optimizer_kind optimizer;
    vpps_partition_choice choice;
} vpps_gpu_precompiler;

static vpps_status compile_ahead(void *context, const vpps_partition *p, const char *source, const char *description,
                                 vpps_cubin_report *report) {
    (void)context;
    void *cubin = NULL;
    size_t bytes;
    VPPS_TRY(vpps_compile(source, "vpps_kernel", p->machine.arch, description, true, &cubin, &bytes, report));
    free(cubin);
    return VPPS_OK;
}

static void *precompile(void *argument) {
    vpps_gpu_precompiler *c = argument;
    const vpps_specialiser s = {c->model, &c->machine, c->optimizer, compile_ahead, NULL, c};
    vpps_partition p;
    vpps_cubin_report report;
    vpps_specialise(&s, &c->choice, &p, NULL, &report);
    vpps_partition_destroy(&p);
    return NULL;
}

static void start_precompilers(vpps_gpu *gpu) {
    if (!gpu->table->by_nvrtc || gpu->chosen) return;
    gpu->precompilers = calloc(gpu->n_trials, sizeof *gpu->precompilers);
    for (uint32_t i = 1; i < gpu->n_trials && gpu->precompilers; i++) {
        vpps_gpu_precompiler *c = &gpu->precompilers[gpu->n_precompilers];
        if (!differs_in(&gpu->trials[i].result, &gpu->trials[0].result, 0)) continue;
        *c = (vpps_gpu_precompiler){.model = gpu->model,
                                    .machine = gpu->machine,
                                    .optimizer = gpu->options.optimizer.kind,
                                    .choice = gpu->trials[i].choice};
        if (pthread_create(&c->thread, NULL, precompile, c)) return; /* then it is compiled when its turn comes */
        gpu->n_precompilers++;
    }
}

void vpps_gpu_end_profile(vpps_gpu *gpu) {
    for (uint32_t i = 0; i < gpu->n_precompilers; i++) pthread_join(gpu->precompilers[i].thread, NULL);
    free(gpu->precompilers);
    for (uint32_t i = 0; i < gpu->n_trials; i++) free(gpu->trials[i].ns_per_node);
    free(gpu->trials);
}

/* ---------------------------------------------------------------- what an earlier run chose */

/* Identifies the model, the machine and what was left open: by the source of the first choice's kernel. */
static vpps_status tuning_key(const vpps_gpu *gpu, char **source, char *toolchain, size_t bytes, vpps_cache_key *key) {
    const vpps_options *o = &gpu->options;
    vpps_partition p;
    vpps_status status = vpps_partition_create(&p, gpu->model, &gpu->machine, &gpu->trials[0].choice);
    if (status == VPPS_OK) status = vpps_emit_kernel(&p, o->optimizer.kind, source);
    vpps_partition_destroy(&p);
    VPPS_TRY(status);
    snprintf(toolchain, bytes, "%s, sm_%u, %u SMs; rpw %u, threads %u, ctas %u, strategy %s", gpu->machine.name,
             gpu->machine.arch, gpu->machine.sms, o->rpw, o->threads, o->ctas_per_sm, strategy_name(o->strategy));
    *key = (vpps_cache_key){"tuning", "the fastest plan", toolchain, *source, strlen(*source)};
    return VPPS_OK;
}

/* The trial that is remembered, or n_trials. */
static uint32_t recall(const vpps_gpu *gpu) {
    char toolchain[512], *source = NULL, text[128];
    vpps_cache_key key;
    void *bytes = NULL;
    size_t size = 0;
    uint32_t found = gpu->n_trials, rpw, threads, ctas, strategy;
    if (tuning_key(gpu, &source, toolchain, sizeof toolchain, &key) == VPPS_OK &&
        vpps_cache_read(&key, &bytes, &size, NULL) == VPPS_OK && bytes && size < sizeof text) {
        memcpy(text, bytes, size);
        text[size] = '\0';
        if (sscanf(text, "%u %u %u %u", &rpw, &threads, &ctas, &strategy) == 4) {
            for (found = 0; found < gpu->n_trials; found++) {
                const vpps_trial *t = &gpu->trials[found].result;
                if (t->rpw == rpw && t->threads == threads && t->ctas_per_sm == ctas && t->strategy == strategy) break;
            }
        }
    }
    free(bytes);
    free(source);
    return found;
}

static void remember(const vpps_gpu *gpu) {
    char toolchain[512], *source = NULL, text[128];
    vpps_cache_key key;
    const vpps_trial *t = &gpu->trials[gpu->current].result;
    snprintf(text, sizeof text, "%u %u %u %u", t->rpw, t->threads, t->ctas_per_sm, (uint32_t)t->strategy);
    if (tuning_key(gpu, &source, toolchain, sizeof toolchain, &key) != VPPS_OK ||
        vpps_cache_write(&key, text, strlen(text)) != VPPS_OK) {
        vpps_gpu_log(gpu, "the choice could not be kept for the next run: %s", vpps_error_message());
    }
    free(source);
}

/* ---------------------------------------------------------------- trying */

/* What the choice needs of the driver beside its kernel is there before it is adopted, not in the middle of a batch. */
static vpps_status adopt(vpps_gpu *gpu, const vpps_partition_choice *choice) {
    if (choice->deferred) VPPS_TRY(gpu->table->prepare_products(gpu->driver));
    return vpps_gpu_adopt(gpu, choice);
}

/* Adopts trial i; false (and it is rejected) when it cannot be. */
static bool try_trial(vpps_gpu *gpu, uint32_t i) {
    vpps_gpu_trial *t = &gpu->trials[i];
    char text[128];
    describe(t, text, sizeof text);
    const uint64_t start = vpps_now_ns();
    if (adopt(gpu, &t->choice) != VPPS_OK) {
        t->result.state = VPPS_TRIAL_REJECTED;
        vpps_gpu_log(gpu, "%s: %s", text, vpps_error_message());
        return false;
    }
    vpps_trial *before = &gpu->trials[gpu->current].result;
    if (before->state == VPPS_TRIAL_CURRENT) before->state = VPPS_TRIAL_MEASURED;
    gpu->current = i;
    t->result.state = VPPS_TRIAL_CURRENT;
    t->result.vectors = gpu->now.partition.choice.vectors;
    t->result.registers = gpu->now.report.registers;
    t->result.load_seconds = (double)(vpps_now_ns() - start) * 1e-9;
    vpps_gpu_log(gpu, "%s: %u VPs, %u registers a thread, kernel ready after %.2f s%s", text, gpu->plan.n_vps,
                 t->result.registers, t->result.load_seconds, gpu->now.report.cached ? " (from the cache)" : "");
    return true;
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

void vpps_gpu_measure(vpps_gpu *gpu, uint64_t device_ns, uint32_t nodes) {
    vpps_gpu_trial *t = &gpu->trials[gpu->current];
    if (gpu->chosen || gpu->due) return;
    const uint32_t batch = t->result.batches++;
    if (batch < SKIPPED_BATCHES) return;
    t->ns_per_node[batch - SKIPPED_BATCHES] = (double)device_ns / (nodes ? nodes : 1);
    if (batch + 1 < SKIPPED_BATCHES + MEASURED_BATCHES) return;
    t->result.batches = MEASURED_BATCHES;
    qsort(t->ns_per_node, MEASURED_BATCHES, sizeof *t->ns_per_node, by_value);
    t->result.ns_per_node = t->ns_per_node[MEASURED_BATCHES / 2];
    gpu->due = true;
}

static uint32_t best_trial(const vpps_gpu *gpu) {
    uint32_t best = gpu->current;
    for (uint32_t i = 0; i < gpu->n_trials; i++) {
        const double ns = gpu->trials[i].result.ns_per_node;
        if (ns > 0 && ns < gpu->trials[best].result.ns_per_node) best = i;
    }
    return best;
}

/* The trial to try next, or n_trials: rows per warp only upwards, and only while they get faster. */
static uint32_t next_trial(const vpps_gpu *gpu) {
    const uint32_t best_index = best_trial(gpu);
    const vpps_trial *best = &gpu->trials[best_index].result;
    for (int what = 0; what < 3; what++) {
        for (uint32_t i = 0; i < gpu->n_trials; i++) {
            const vpps_trial *t = &gpu->trials[i].result;
            if (t->state != VPPS_TRIAL_WAITING || !differs_in(t, best, what)) continue;
            if (what == 0 && (t->rpw < best->rpw || gpu->current != best_index)) continue;
            return i;
        }
    }
    return gpu->n_trials;
}

static vpps_status choose(vpps_gpu *gpu) {
    const uint32_t best = best_trial(gpu);
    char text[128];
    if (best != gpu->current && !try_trial(gpu, best)) return vpps_fail(VPPS_DEVICE, "%s", vpps_error_message());
    gpu->chosen = true;
    describe(&gpu->trials[best], text, sizeof text);
    vpps_gpu_log(gpu, "chosen: %s, %.0f ns a node", text, gpu->trials[best].result.ns_per_node);
    remember(gpu);
    return VPPS_OK;
}

vpps_status vpps_gpu_next_trial(vpps_gpu *gpu) {
    const vpps_gpu_trial *t = &gpu->trials[gpu->current];
    char text[128];
    gpu->due = false;
    describe(t, text, sizeof text);
    vpps_gpu_log(gpu, "measured: %s: %.0f ns a node (median of %u batches)", text, t->result.ns_per_node,
                 t->result.batches);
    for (uint32_t i; (i = next_trial(gpu)) < gpu->n_trials;) {
        if (try_trial(gpu, i)) return VPPS_OK;
    }
    return choose(gpu);
}

vpps_status vpps_gpu_start_profile(vpps_gpu *gpu) {
    VPPS_TRY(list_trials(gpu));
    gpu->chosen = gpu->options.no_tuning || gpu->n_trials == 1;
    const uint32_t remembered = gpu->chosen ? gpu->n_trials : recall(gpu);
    if (remembered < gpu->n_trials && try_trial(gpu, remembered)) {
        gpu->trials[remembered].result.state = VPPS_TRIAL_REMEMBERED;
        gpu->chosen = true;
        return VPPS_OK;
    }
    start_precompilers(gpu);
    for (uint32_t i = 0; i < gpu->n_trials; i++) {
        if (try_trial(gpu, i)) return VPPS_OK;
    }
    char reason[VPPS_MESSAGE_BYTES];
    snprintf(reason, sizeof reason, "%s", vpps_error_message());
    return vpps_fail(VPPS_DEVICE, "%s: no kernel could be made; the last: %s", gpu->table->name, reason);
}
