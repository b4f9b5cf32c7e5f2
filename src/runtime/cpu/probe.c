/* probe.c - measures matrix products on this processor once, and stores the times in the disk cache. */
#include "runtime/cpu/probe.h"
#include "codegen/cache.h"
#include "runtime/cpu/measure.h"
#include "runtime/cpu/processor.h"
#include "runtime/device.h"
#include "runtime/profile.h"

#include <pthread.h>

enum { LINE = 64 };

/* Writes the name of a trial (measured product), without its time. Returns the text's length. */
static size_t name(const vpps_trial *t, char text[LINE]) {
    return (size_t)snprintf(text, LINE, "%s %s %s %u %s ", t->unit, t->precision, t->product, t->vectors,
                            t->far ? "far" : "near");
}

char *vpps_probe_write(const vpps_trial *trials, uint32_t n) {
    char *text = NULL, line[LINE];
    size_t size;
    FILE *f = open_memstream(&text, &size);
    for (uint32_t i = 0; f && i < n; i++) {
        name(&trials[i], line);
        fprintf(f, "%s%.2f\n", line, trials[i].ns_per_vector);
    }
    if (!f || fclose(f)) return free(text), NULL;
    return text;
}

uint32_t vpps_probe_read(const vpps_cpu_units *u, const char *text, vpps_trial *trials) {
    vpps_cpu_maker by[VPPS_CPU_TRIALS];
    const uint32_t n = vpps_cpu_list_trials(u, trials, by);
    for (uint32_t i = 0; i < n; i++) {
        char line[LINE], *end;
        const size_t length = name(&trials[i], line);
        if (strncmp(text, line, length) != 0) return 0;
        trials[i].ns_per_vector = strtod(text + length, &end);
        if (!(trials[i].ns_per_vector > 0) || *end != '\n') return 0;
        text = end + 1;
    }
    return *text ? 0 : n;
}

/* Returns the key under which times are stored: the processor, how the kernels were compiled, and the method of measuring (WAY). */
static vpps_memory memory_of(const vpps_cpu_units *u) {
    enum { WAY = 4 };
    vpps_memory m = {.what = "products of this processor"};
    vpps_cpu_maker makers[VPPS_MOST_MAKERS];
    const uint32_t n = vpps_cpu_makers(u, makers);
    char processor[VPPS_PROCESSOR_BYTES];
    vpps_processor_identity(processor, sizeof processor);
    size_t used =
        (size_t)snprintf(m.machine, sizeof m.machine,
                         "vpps " VPPS_VERSION " by %.100s, measured in way %d, %s:", __VERSION__, WAY, processor);
    for (uint32_t i = 0; i < n && used < sizeof m.machine; i++)
        used += (size_t)snprintf(m.machine + used, sizeof m.machine - used, " %s %s", makers[i].name,
                                 vpps_precision_names[makers[i].precision]);
    return m;
}

static bool recall(vpps_probe *p, const vpps_cpu_units *u, const vpps_memory *m) {
    char *text = vpps_recall(m);
    p->n = text ? vpps_probe_read(u, text, p->trials) : 0;
    free(text);
    return p->recalled = p->n > 0;
}

static void keep(vpps_probe *p, const vpps_memory *m) {
    char *text = vpps_probe_write(p->trials, p->n);
    if (!text || vpps_remember(m, text) != VPPS_OK)
        snprintf(p->note, sizeof p->note, "what was measured could not be kept for other runs: %.180s",
                 text ? vpps_error_message() : "out of memory");
    free(text);
}

static vpps_probe probe;

static void make(void) {
    static vpps_trial trials[VPPS_CPU_TRIALS];
    const vpps_cpu_units *u = vpps_units_of_this_cpu();
    const vpps_memory memory = memory_of(u);
    probe.trials = trials;
    if (recall(&probe, u, &memory)) return;
    const int lock = vpps_cache_lock(4 * vpps_cpu_measure_limit_ms()); /* a long limit: the machine may be busy */
    if (!recall(&probe, u, &memory)) { /* true: no other process has measured while this one waited for the lock */
        probe.n = vpps_cpu_measure(u, trials);
        if (probe.n)
            keep(&probe, &memory);
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
