/* probe.c - see probe.h. */
#include "runtime/cpu/probe.h"
#include "codegen/cache.h"
#include "runtime/cpu/measure.h"
#include "runtime/cpu/processor.h"
#include "runtime/device.h"
#include "runtime/profile.h"

#include <pthread.h>
#include <stdio.h>

/* ---------------------------------------------------------------- as text: "avx512 fp32 forward 16 near 123.4" */

char *vpps_probe_write(const vpps_trial *trials, uint32_t n) {
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    if (!f) return NULL;
    for (uint32_t i = 0; i < n; i++) {
        const vpps_trial *t = &trials[i];
        fprintf(f, "%s %s %s %u %s %.2f\n", t->unit, t->precision, t->product, t->vectors, t->far ? "far" : "near",
                t->ns_per_vector);
    }
    if (fclose(f)) return free(text), NULL;
    return text;
}

/* The units' own name that is the same; NULL: none. */
static const char *unit_named(const vpps_cpu_units *u, const char *name) {
    for (uint32_t i = 0; i < u->n_kernels; i++)
        if (!strcmp(name, u->kernels[i]->isa)) return u->kernels[i]->isa;
    for (uint32_t i = 0; i < VPPS_BF16_UNITS; i++)
        if (u->bf16[i].product && !strcmp(name, u->bf16[i].name)) return u->bf16[i].name;
    return NULL;
}

static bool read_line(const vpps_cpu_units *u, const char *line, vpps_trial *out) {
    char unit[16], precision[16], way[16], where[8];
    vpps_trial t = {.state = VPPS_TRIAL_MEASURED};
    int end = 0;
    if (sscanf(line, "%15s %15s %15s %u %7s %lf%n", unit, precision, way, &t.vectors, where, &t.ns_per_vector, &end) !=
            6 ||
        line[end] || !(t.ns_per_vector > 0) || !t.vectors)
        return false;
    t.unit = unit_named(u, unit);
    for (uint32_t i = 0; i < VPPS_CPU_WAYS; i++)
        if (!strcmp(way, vpps_cpu_ways[i])) t.product = vpps_cpu_ways[i];
    for (int i = 0; i < VPPS_PRECISION_AUTO; i++)
        if (!strcmp(precision, vpps_precision_names[i])) t.precision = vpps_precision_names[i];
    t.far = !strcmp(where, "far");
    if (!t.unit || !t.product || !t.precision || (!t.far && strcmp(where, "near") != 0)) return false;
    *out = t;
    return true;
}

uint32_t vpps_probe_read(const vpps_cpu_units *u, char *text, vpps_trial *trials) {
    uint32_t n = 0;
    for (char *next, *line = strtok_r(text, "\n", &next); line; line = strtok_r(NULL, "\n", &next))
        if (n == VPPS_CPU_TRIALS || !read_line(u, line, &trials[n++])) return 0;
    return n;
}

/* ---------------------------------------------------------------- once a process */

/* What times depend on: the processor, and how the kernels were compiled. */
static vpps_cache_key key_of(const vpps_cpu_units *u, char *toolchain, size_t bytes) {
    char processor[VPPS_PROCESSOR_BYTES];
    vpps_processor_identity(processor, sizeof processor);
    size_t used = (size_t)snprintf(toolchain, bytes, "vpps " VPPS_VERSION " by %.100s, %s:", __VERSION__, processor);
    for (uint32_t i = 0; i < u->n_kernels && used < bytes; i++)
        used += (size_t)snprintf(toolchain + used, bytes - used, " %s", u->kernels[i]->isa);
    for (uint32_t i = 0; i < VPPS_BF16_UNITS && used < bytes; i++)
        if (u->bf16[i].product) used += (size_t)snprintf(toolchain + used, bytes - used, " %s", u->bf16[i].name);
    return (vpps_cache_key){"tuning", "products of this processor", toolchain, "3", 1};
}

static uint32_t recall(const vpps_cpu_units *u, const vpps_cache_key *key, vpps_trial *trials) {
    char *text = vpps_profile_recall(key);
    const uint32_t n = text ? vpps_probe_read(u, text, trials) : 0;
    free(text);
    return n;
}

static void keep(vpps_probe *p, const vpps_cache_key *key) {
    char *text = vpps_probe_write(p->trials, p->n);
    if (!text || vpps_profile_keep(key, text) != VPPS_OK)
        snprintf(p->note, sizeof p->note, "what was measured could not be kept for other runs: %.180s",
                 text ? vpps_error_message() : "out of memory");
    free(text);
}

static vpps_probe probe;

static void make(void) {
    static vpps_trial trials[VPPS_CPU_TRIALS];
    const vpps_cpu_units *u = vpps_units_of_this_cpu();
    char toolchain[512];
    const vpps_cache_key key = key_of(u, toolchain, sizeof toolchain);
    probe.trials = trials;
    probe.n = recall(u, &key, trials);
    probe.recalled = probe.n > 0;
    if (probe.recalled) return;
    const int lock = vpps_cache_lock();
    probe.n = recall(u, &key, trials);
    probe.recalled = probe.n > 0; /* another process made them meanwhile */
    if (!probe.recalled) {
        probe.n = vpps_cpu_measure(u, trials);
        if (probe.n)
            keep(&probe, &key);
        else
            snprintf(probe.note, sizeof probe.note,
                     "products were not measured: that would take too long, or memory is short");
    }
    vpps_cache_unlock(lock);
}

const vpps_probe *vpps_probe_processor(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make);
    return &probe;
}
