/* tuning.c - which choices a device begins with: an earlier profile's, from the cache, or a new one's, which it keeps there. */
#include "runtime/cpu/cpu.h"

#include "codegen/cache.h"
#include "runtime/cpu/processor.h"

#include <stdio.h>

enum { MOST = 1024 /* rows or columns that are measured: larger matrices are more of the same */ };

/* ---------------------------------------------------------------- shapes */

static vpps_cpu_shape shape_of(const vpps_cpu *cpu, uint32_t param) {
    const vpps_rows rows = vpps_rows_of_vp(cpu, param, cpu->n_vps - 1); /* the last one has the most */
    return (vpps_cpu_shape){vpps_min_u32(rows.end - rows.first, MOST),
                            vpps_min_u32(cpu->model->params[param].cols, MOST)};
}

static bool list_shapes(vpps_cpu *cpu) {
    vpps_cpu_tuning *t = &cpu->tuning;
    for (uint32_t p = 0; p < cpu->model->n_params; p++) {
        if (cpu->model->params[p].kind != VPPS_MATRIX) continue;
        const vpps_cpu_shape s = shape_of(cpu, p);
        uint32_t i = 0;
        while (i < t->n_shapes && !vpps_same_shape(t->shapes[i], s)) i++;
        if (i < t->n_shapes) continue;
        if (!VPPS_RESERVE(t->shapes, t->shapes_capacity, t->n_shapes + 1u)) return false;
        t->shapes[t->n_shapes++] = s;
    }
    return true;
}

/* The trials of a shape, which follow each other. */
static vpps_trial *trials_of(const vpps_cpu_tuning *t, vpps_cpu_shape s, uint32_t *n) {
    uint32_t first = 0;
    while (first < t->n_trials && !vpps_same_shape((vpps_cpu_shape){t->trials[first].rows, t->trials[first].cols}, s))
        first++;
    uint32_t end = first;
    while (end < t->n_trials && vpps_same_shape((vpps_cpu_shape){t->trials[end].rows, t->trials[end].cols}, s)) end++;
    *n = end - first;
    return t->trials + first;
}

/* ---------------------------------------------------------------- the cache */

/* What products depend on: the machine, these kernels, and the shapes. */
static vpps_cache_key key_of(const vpps_cpu *cpu, char *toolchain, size_t bytes) {
    char processor[VPPS_PROCESSOR_BYTES];
    vpps_processor_identity(processor, sizeof processor);
    snprintf(toolchain, bytes, "vpps " VPPS_VERSION ", %s, %s, %s by %s, %u VPs", processor, cpu->kernels->isa,
             vpps_precision_names[cpu->precision.precision], cpu->precision.unit.name, cpu->n_vps);
    return (vpps_cache_key){"tuning", "products of the CPU", toolchain, cpu->tuning.shapes,
                            cpu->tuning.n_shapes * sizeof *cpu->tuning.shapes};
}

static bool recall(vpps_cpu *cpu) {
    char toolchain[512];
    const vpps_cache_key key = key_of(cpu, toolchain, sizeof toolchain);
    void *bytes = NULL;
    size_t size = 0;
    if (vpps_cache_read(&key, &bytes, &size, NULL) != VPPS_OK || !bytes) return false;
    char *text = realloc(bytes, size + 1);
    if (text) text[size] = '\0';
    const bool ok = text && vpps_cpu_read_trials(&cpu->tuning, text);
    free(text ? text : bytes);
    return ok;
}

static void log_line(const vpps_cpu *cpu, const char *what, const char *why) {
    char line[VPPS_MESSAGE_BYTES + 64];
    snprintf(line, sizeof line, "cpu: %s%s", what, why);
    if (cpu->tuning.log) cpu->tuning.log(cpu->tuning.log_context, line);
}

static void remember(const vpps_cpu *cpu) {
    char toolchain[512], *text = vpps_cpu_write_trials(&cpu->tuning);
    const vpps_cache_key key = key_of(cpu, toolchain, sizeof toolchain);
    if (!text || vpps_cache_write(&key, text, strlen(text)) != VPPS_OK)
        log_line(cpu, "the choice could not be kept for other runs: ", text ? vpps_error_message() : "out of memory");
    free(text);
}

/* ---------------------------------------------------------------- life */

/* Stages of cells with so many elements of matrices are shared out by rows. */
static uint32_t split_elems_of(const char *split) {
    enum {
        BYTES = 1 << 18
    }; /* below it, a cell's matrices fit every cache, and what VPs hand each other is what takes time */
    return !strcmp(split, "rows") ? 0 : !strcmp(split, "vertices") ? UINT32_MAX : BYTES / (uint32_t)sizeof(float);
}

static void take_split(vpps_cpu *cpu, const vpps_trial *t) { cpu->machine.split_elems = split_elems_of(t->split); }

static void take_ways(vpps_cpu *cpu) {
    for (uint32_t p = 0; p < cpu->model->n_params; p++) {
        if (cpu->model->params[p].kind != VPPS_MATRIX) continue;
        uint32_t n;
        vpps_trial *trials = trials_of(&cpu->tuning, shape_of(cpu, p), &n);
        if (n) cpu->choices[p] = vpps_cpu_choose_ways(trials, n);
    }
}

static size_t matrix_bytes_of_vp(const vpps_cpu *cpu) {
    size_t elems = 0;
    for (uint32_t p = 0; p < cpu->model->n_params; p++)
        if (cpu->model->params[p].kind == VPPS_MATRIX) elems += vpps_param_elems(&cpu->model->params[p]);
    return elems * sizeof(float) / cpu->n_vps;
}

vpps_status vpps_cpu_choose(vpps_cpu *cpu, const vpps_options *options) {
    vpps_cpu_tuning *t = &cpu->tuning;
    t->log = options->log;
    t->log_context = options->log_context;
    for (uint32_t p = 0; p < cpu->model->n_params; p++)
        cpu->choices[p] = cpu->precision.unit.product_t ? vpps_cpu_spreads : vpps_cpu_defaults;
    vpps_profile_splits(&t->splits);
    take_split(cpu, &t->splits.trials[0]);
    if (cpu->n_vps == 1) t->splits.n = 0;
    bool ok = options->no_tuning || list_shapes(cpu);
    if (!ok || !t->n_shapes) {
        t->splits.n = 0;
        return ok ? VPPS_OK : vpps_fail(VPPS_MEMORY, "cpu: out of memory for the shapes of products");
    }
    const bool recalled = recall(cpu);
    if (recalled) {
        log_line(cpu, "products as vpps tune has measured them on this machine", "");
        t->splits.done = true;
        for (uint32_t i = 0; i < t->splits.n; i++)
            if (t->splits.trials[i].state == VPPS_TRIAL_REMEMBERED) take_split(cpu, &t->splits.trials[i]);
    } else if (!options->tune) {
        t->splits.n = 0;
    } else {
        vpps_profile_splits(&t->splits);
        if (cpu->n_vps == 1) t->splits.n = 0;
        for (uint32_t i = 0; i < t->n_shapes && ok && !cpu->precision.parts; i++)
            ok = vpps_cpu_measure(t, cpu->kernels, t->shapes[i], matrix_bytes_of_vp(cpu));
        if (!ok) return vpps_fail(VPPS_MEMORY, "cpu: out of memory for a profile of products");
        if (!t->splits.n) remember(cpu);
    }
    take_ways(cpu);
    for (uint32_t i = 0; i < t->n_trials && recalled; i++)
        if (t->trials[i].state == VPPS_TRIAL_CURRENT) t->trials[i].state = VPPS_TRIAL_REMEMBERED;
    return VPPS_OK;
}

bool vpps_cpu_is_tuning(const vpps_device *d) { return vpps_profile_goes_on(&((const vpps_cpu *)d)->tuning.splits); }

vpps_status vpps_cpu_tune(vpps_device *d) {
    vpps_cpu *cpu = (vpps_cpu *)d;
    vpps_profile *p = &cpu->tuning.splits;
    vpps_profile_note(p, true, cpu->trained_nodes, cpu->outcome.device_ns);
    take_split(cpu, vpps_profile_next(p));
    if (p->done) remember(cpu);
    return VPPS_OK;
}

uint32_t vpps_cpu_trials(const vpps_device *d, vpps_trial *out, uint32_t room, bool *done) {
    const vpps_cpu_tuning *t = &((const vpps_cpu *)d)->tuning;
    for (uint32_t i = 0; i < t->n_trials + t->splits.n && i < room; i++)
        out[i] = i < t->n_trials ? t->trials[i] : t->splits.trials[i - t->n_trials];
    *done = !vpps_cpu_is_tuning(d);
    return t->n_trials + t->splits.n;
}
