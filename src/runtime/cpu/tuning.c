/* tuning.c - a device's choices: of its products (choices.h), by the trials of this processor, and of how stages are shared out, which
 * options.tune tries on the batches that are trained. */
#include "runtime/cpu/cpu.h"
#include "runtime/cpu/probe.h"
#include "runtime/cpu/processor.h"
#include "runtime/share.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

static void log_line(const vpps_cpu *cpu, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void log_line(const vpps_cpu *cpu, const char *format, ...) {
    char line[VPPS_MESSAGE_BYTES + 64];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (cpu->tuning.log) cpu->tuning.log(cpu->tuning.log_context, line);
}

/* ---------------------------------------------------------------- products */

static size_t elems_of_vp(const vpps_model *model, uint32_t n_vps) {
    size_t elems = 0;
    for (uint32_t p = 0; p < model->n_params; p++)
        if (model->params[p].kind == VPPS_MATRIX) elems += vpps_param_elems(&model->params[p]);
    return elems / n_vps;
}

static void take(vpps_cpu *cpu, const vpps_cpu_choice *c) {
    cpu->choice = *c;
    cpu->kernels = cpu->units->kernels[c->kernels];
    cpu->precision.precision = c->precision;
    cpu->precision.parts = vpps_precision_parts(c->precision);
    cpu->precision.unit = vpps_bf16_unit_of(cpu->units, c->kernels,
                                            cpu->precision.parts ? (vpps_bf16_unit_id)c->unit : VPPS_BF16_VECTORS);
}

/* All processes take the choice of the first one, where they can: their bits should not depend on whose times were better. One that
 * was asked for another precision, or has none of these units, keeps its own choice, and vpps_share_open tells. */
static vpps_status share_choice(vpps_communicator *c, const vpps_cpu_units *units, vpps_precision asked,
                                vpps_cpu_choice *choice) {
    char text[VPPS_SHARE_TEXT] = "";
    vpps_cpu_choice first;
    _Static_assert((int)VPPS_CHOICE_BYTES <= (int)VPPS_SHARE_TEXT, "a choice has room");
    if (vpps_communicator_size(c) < 2) return VPPS_OK;
    vpps_cpu_write_choice(units, choice, text);
    VPPS_TRY(vpps_share_text(c, text));
    if (!vpps_cpu_read_choice(units, text, &first)) return VPPS_OK;
    if (asked == VPPS_PRECISION_AUTO || asked == first.precision) *choice = first;
    return VPPS_OK;
}

vpps_status vpps_cpu_open_products(vpps_cpu *cpu, const vpps_options *options) {
    const long cache = sysconf(_SC_LEVEL2_CACHE_SIZE);
    const bool fixed = options->no_tuning || options->portable;
    char why[160];
    cpu->tuning.log = options->log;
    cpu->tuning.log_context = options->log_context;
    cpu->tuning.asked = options->precision;
    cpu->tuning.portable = options->portable;
    cpu->units = vpps_units_of_this_cpu();
    const vpps_cpu_problem problem = {.asked = options->precision,
                                      .batch = options->batch,
                                      .elems = elems_of_vp(cpu->model, cpu->n_vps),
                                      .cache_bytes = cache > 0 ? (size_t)cache : 1 << 20,
                                      .portable = options->portable,
                                      .wanted = getenv("VPPS_ISA")};
    cpu->tuning.probe = fixed ? NULL : vpps_probe_processor();
    const vpps_probe *probe = cpu->tuning.probe;
    if (probe && *probe->note) log_line(cpu, "cpu: %s", probe->note);
    vpps_cpu_choice c =
        vpps_cpu_choose(cpu->units, &problem, probe ? probe->trials : NULL, probe ? probe->n : 0, why, sizeof why);
    VPPS_TRY(share_choice(options->communicator, cpu->units, options->precision, &c));
    take(cpu, &c);
    if (options->precision == VPPS_PRECISION_AUTO)
        log_line(cpu, "multiplying in %s: %s", vpps_precision_names[c.precision], why);
    if (probe && probe->n && !probe->recalled)
        log_line(cpu, "cpu: products by %s, as measured on this processor (vpps doctor)", cpu->precision.unit.name);
    return VPPS_OK;
}

/* ---------------------------------------------------------------- in checkpoints: "avx512 amx fp32 96 3 48 of PROCESSOR" */

void vpps_cpu_choice_text(const vpps_device *d, char *text) {
    const vpps_cpu *cpu = (const vpps_cpu *)d;
    char choice[VPPS_CHOICE_BYTES], processor[VPPS_PROCESSOR_BYTES];
    _Static_assert(VPPS_CHOICE_BYTES + VPPS_PROCESSOR_BYTES + 4 <= VPPS_CHOICE_TEXT, "room for both");
    vpps_cpu_write_choice(cpu->units, &cpu->choice, choice);
    vpps_processor_identity(processor, sizeof processor);
    snprintf(text, VPPS_CHOICE_TEXT, "%s of %s", choice, processor);
}

/* What the options or the environment ask for by name stays. */
static bool may_take(const vpps_cpu *cpu, const vpps_cpu_choice *c) {
    const vpps_precision asked = cpu->tuning.asked;
    return !cpu->tuning.portable && !getenv("VPPS_ISA") && (asked == VPPS_PRECISION_AUTO || asked == c->precision);
}

vpps_status vpps_cpu_take_choice(vpps_device *d, const char *text) {
    vpps_cpu *cpu = (vpps_cpu *)d;
    char choice[VPPS_CHOICE_BYTES], processor[VPPS_PROCESSOR_BYTES];
    vpps_cpu_choice c;
    const vpps_cpu_choice before = cpu->choice;
    const char *of = strstr(text, " of ");
    vpps_processor_identity(processor, sizeof processor);
    if (!of || strcmp(of + 4, processor) != 0) return VPPS_OK;
    snprintf(choice, sizeof choice, "%.*s", (int)(of - text), text);
    if (!vpps_cpu_read_choice(cpu->units, choice, &c) || !may_take(cpu, &c)) return VPPS_OK;
    take(cpu, &c);
    if (c.precision == before.precision) return VPPS_OK;
    log_line(cpu, "multiplying in %s: as the run did that the parameters are from", vpps_precision_names[c.precision]);
    const vpps_status status = vpps_make_packs(cpu);
    if (status != VPPS_OK) take(cpu, &before);
    return status;
}

/* ---------------------------------------------------------------- splits */

/* Stages of cells with so many elements of matrices are shared out by rows. */
static uint32_t split_elems_of(const char *split) {
    enum {
        BYTES = 1 << 18
    }; /* below it, a cell's matrices fit every cache, and what VPs hand each other is what takes time */
    return !strcmp(split, "rows") ? 0 : !strcmp(split, "vertices") ? UINT32_MAX : BYTES / (uint32_t)sizeof(float);
}

static void take_split(vpps_cpu *cpu, const vpps_trial *t) { cpu->machine.split_elems = split_elems_of(t->split); }

/* What the fastest split depends on. `shapes`: malloc'd, the caller's. False: out of memory. */
static bool key_of_split(const vpps_cpu *cpu, char *toolchain, size_t bytes, char **shapes, vpps_cache_key *key) {
    char processor[VPPS_PROCESSOR_BYTES];
    size_t size = 0;
    *shapes = NULL;
    FILE *f = open_memstream(shapes, &size);
    if (!f) return false;
    for (uint32_t p = 0; p < cpu->model->n_params; p++) {
        const vpps_parameter_data *data = &cpu->model->params[p];
        if (data->kind == VPPS_MATRIX) fprintf(f, "%u %u\n", data->rows, data->cols);
    }
    if (fclose(f)) return false;
    vpps_processor_identity(processor, sizeof processor);
    snprintf(toolchain, bytes, "vpps " VPPS_VERSION ", %s, %s by %s, %u VPs", processor,
             vpps_precision_names[cpu->precision.precision], cpu->precision.unit.name, cpu->n_vps);
    *key = (vpps_cache_key){"tuning", "how a CPU's stages are shared out", toolchain, *shapes, size};
    return true;
}

static void recall_split(vpps_cpu *cpu) {
    vpps_profile *p = &cpu->tuning.splits;
    char toolchain[512], *shapes, *text = NULL;
    vpps_cache_key key;
    if (key_of_split(cpu, toolchain, sizeof toolchain, &shapes, &key)) text = vpps_profile_recall(&key);
    for (uint32_t i = 0; text && i < p->n; i++) {
        if (strcmp(text, p->trials[i].split) != 0) continue;
        p->trials[i].state = VPPS_TRIAL_REMEMBERED;
        p->done = true;
        take_split(cpu, &p->trials[i]);
        log_line(cpu, "cpu: stages shared out by %s, as vpps tune has measured on this machine", text);
    }
    free(text);
    free(shapes);
}

static void keep_split(const vpps_cpu *cpu, const char *split) {
    char toolchain[512], *shapes;
    vpps_cache_key key;
    const bool made = key_of_split(cpu, toolchain, sizeof toolchain, &shapes, &key);
    if (!made || vpps_profile_keep(&key, split) != VPPS_OK)
        log_line(cpu, "cpu: the choice could not be kept for other runs: %s",
                 made ? vpps_error_message() : "out of memory");
    free(shapes);
}

void vpps_cpu_open_splits(vpps_cpu *cpu, const vpps_options *options) {
    vpps_profile *p = &cpu->tuning.splits;
    vpps_profile_splits(p);
    take_split(cpu, &p->trials[0]);
    if (cpu->n_vps > 1 && !options->no_tuning && elems_of_vp(cpu->model, 1)) recall_split(cpu);
    if (!p->done && (cpu->n_vps == 1 || !options->tune || options->no_tuning || !elems_of_vp(cpu->model, 1))) p->n = 0;
}

/* ---------------------------------------------------------------- the device's table */

bool vpps_cpu_is_tuning(const vpps_device *d) { return vpps_profile_goes_on(&((const vpps_cpu *)d)->tuning.splits); }

vpps_status vpps_cpu_tune(vpps_device *d) {
    vpps_cpu *cpu = (vpps_cpu *)d;
    vpps_profile *p = &cpu->tuning.splits;
    vpps_profile_note(p, true, cpu->trained_nodes, cpu->outcome.device_ns);
    const vpps_trial *next = vpps_profile_next(p);
    take_split(cpu, next);
    if (p->done) keep_split(cpu, next->split);
    return VPPS_OK;
}

uint32_t vpps_cpu_trials(const vpps_device *d, vpps_trial *out, uint32_t room, bool *done) {
    const vpps_cpu *cpu = (const vpps_cpu *)d;
    const vpps_probe *probe = cpu->tuning.probe;
    const uint32_t products = probe ? probe->n : 0, n = products + cpu->tuning.splits.n;
    for (uint32_t i = 0; i < n && i < room; i++) {
        out[i] = i < products ? probe->trials[i] : cpu->tuning.splits.trials[i - products];
        if (i < products && vpps_cpu_is_chosen(cpu->units, &cpu->choice, &out[i]))
            out[i].state = probe->recalled ? VPPS_TRIAL_REMEMBERED : VPPS_TRIAL_CURRENT;
    }
    *done = !vpps_cpu_is_tuning(d);
    return n;
}
