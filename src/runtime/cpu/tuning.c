/* tuning.c - choices that the CPU device makes by measuring. Measured products decide how products are computed
 * (choices.h). With options.tune, measured batches decide whether threads divide work by matrix rows or vertices. */
#include "runtime/cpu/cpu.h"
#include "runtime/cpu/probe.h"
#include "runtime/cpu/processor.h"
#include "runtime/share.h"

#include <unistd.h>

static size_t elems_of_vp(const vpps_model *model, uint32_t n_vps) {
    size_t elems = 0;
    for (uint32_t p = 0; p < model->n_params; p++)
        if (model->params[p].kind == VPPS_MATRIX) elems += vpps_param_elems(&model->params[p]);
    return elems / n_vps;
}

static uint32_t mean_side(const vpps_model *model) {
    double sides = 0;
    for (uint32_t p = 0; p < model->n_params; p++) {
        const vpps_parameter_data *m = &model->params[p];
        if (m->kind == VPPS_MATRIX) sides += (double)vpps_param_elems(m) * vpps_min_u32(m->rows, m->cols);
    }
    const size_t elems = elems_of_vp(model, 1);
    return elems ? (uint32_t)(sides / (double)elems) : 0;
}

static void take(vpps_cpu *cpu, const vpps_cpu_choice *c) {
    cpu->choice = *c;
    cpu->kernels = cpu->units->kernels[c->kernels];
    cpu->precision.precision = c->precision;
    cpu->precision.parts = vpps_precision_parts(c->precision);
    cpu->precision.unit = vpps_bf16_unit_of(cpu->units, c->kernels,
                                            cpu->precision.parts ? (vpps_bf16_unit_id)c->unit : VPPS_BF16_VECTORS);
    cpu->device.precision = c->precision;
    cpu->device.unit = cpu->precision.unit.name;
}

/* Gives all processes the first one's choice of how products are computed, so that all compute the same bits. A process whose options name
 * another precision, or whose processor lacks the instructions, keeps its own; exchanging gradients then fails with STATE. */
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

vpps_status vpps_cpu_open_products(vpps_cpu *cpu) {
    const vpps_options *options = &cpu->options;
    const long cache = sysconf(_SC_LEVEL2_CACHE_SIZE);
    char why[160];
    cpu->units = vpps_units_of_this_cpu();
    const vpps_cpu_problem problem = {.asked = options->precision,
                                      .batch = options->batch,
                                      .elems = elems_of_vp(cpu->model, cpu->n_vps),
                                      .side = mean_side(cpu->model),
                                      .cache_bytes = cache > 0 ? (size_t)cache : 1 << 20,
                                      .portable = options->portable,
                                      .wanted = getenv("VPPS_ISA")};
    const vpps_probe *probe = options->no_tuning || options->portable ? NULL : vpps_probe_processor();
    cpu->probe = probe;
    if (probe && *probe->note) vpps_log_line(&cpu->options, "cpu: %s", probe->note);
    vpps_cpu_choice c =
        vpps_cpu_choose(cpu->units, &problem, probe ? probe->trials : NULL, probe ? probe->n : 0, why, sizeof why);
    VPPS_TRY(share_choice(options->communicator, cpu->units, options->precision, &c));
    take(cpu, &c);
    if (options->precision == VPPS_PRECISION_AUTO)
        vpps_log_line(&cpu->options, "multiplying in %s: %s", vpps_precision_names[c.precision], why);
    if (probe && probe->n && !probe->recalled)
        vpps_log_line(&cpu->options, "cpu: products by %s, as measured on this processor (vpps doctor)",
                      cpu->precision.unit.name);
    return VPPS_OK;
}

void vpps_cpu_choice_text(const vpps_device *d, char *text) {
    const vpps_cpu *cpu = (const vpps_cpu *)d;
    char choice[VPPS_CHOICE_BYTES], processor[VPPS_PROCESSOR_BYTES];
    _Static_assert(VPPS_CHOICE_BYTES + VPPS_PROCESSOR_BYTES + 4 <= VPPS_CHOICE_TEXT, "room for both");
    vpps_cpu_write_choice(cpu->units, &cpu->choice, choice);
    vpps_processor_identity(processor, sizeof processor);
    snprintf(text, VPPS_CHOICE_TEXT, "%s of %s", choice, processor);
}

/* Returns whether c may replace the current choice: neither the options nor the environment may ask for another. */
static bool may_take(const vpps_cpu *cpu, const vpps_cpu_choice *c) {
    const vpps_precision asked = cpu->options.precision;
    return !cpu->options.portable && !getenv("VPPS_ISA") && (asked == VPPS_PRECISION_AUTO || asked == c->precision);
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
    vpps_log_line(&cpu->options, "multiplying in %s: as the run did that the parameters are from",
                  vpps_precision_names[c.precision]);
    const vpps_status status = vpps_make_packs(cpu);
    if (status != VPPS_OK) take(cpu, &before);
    return status;
}

vpps_status vpps_cpu_tune(vpps_device *d) {
    /* Threads divide a stage (part of a cell) by vertices, not by matrix rows, if its matrices (transposed ones, too)
     * have fewer than FEW elements: they fit every cache, and exchanging values takes longer. If a thread has WIDE
     * vertices of a level, it reads the matrices seldom, and the limit is MANY, which fit its cache. */
    enum { FEW = 1 << 16, MANY = (1 << 19) + 1, WIDE = 24 };
    const char *split = vpps_profile_current(&d->profile)->split;
    vpps_row_rule *rule = &((vpps_cpu *)d)->target.rows;
    rule->split_elems = !strcmp(split, "rows") ? 0 : !strcmp(split, "vertices") ? UINT32_MAX : FEW;
    rule->wide = rule->split_elems == FEW ? WIDE : 0;
    rule->wide_elems = MANY;
    return VPPS_OK;
}

static void name(const vpps_trial *t, char text[VPPS_CANDIDATE_BYTES]) {
    snprintf(text, VPPS_CANDIDATE_BYTES, "%s", t->split);
}

void vpps_cpu_open_splits(vpps_cpu *cpu) {
    char processor[VPPS_PROCESSOR_BYTES], *text = NULL;
    const bool open = cpu->n_vps > 1 && !cpu->options.no_tuning && elems_of_vp(cpu->model, 1);
    vpps_profile *p = &cpu->device.profile;
    *p = (vpps_profile){.trials = {{.split = "size"}, {.split = "rows"}, {.split = "vertices"}},
                        .n = 3,
                        .batches = VPPS_TRIAL_BATCHES,
                        .margin = 0.1,
                        .name = name,
                        .memory = {.what = "how a CPU's stages are shared out", .model = cpu->model},
                        .options = &cpu->options};
    vpps_processor_identity(processor, sizeof processor);
    snprintf(p->memory.machine, sizeof p->memory.machine, "vpps " VPPS_VERSION ", %s, %s by %s, %u VPs", processor,
             vpps_precision_names[cpu->precision.precision], cpu->precision.unit.name, cpu->n_vps);
    if (open && (text = vpps_recall(&p->memory))) vpps_profile_resume(p, text);
    if (p->done)
        vpps_log_line(&cpu->options, "cpu: stages shared out by %s, as vpps tune has measured on this machine", text);
    else if (!open || !cpu->options.tune)
        p->n = 0;
    free(text);
    vpps_cpu_tune(&cpu->device);
}

bool vpps_cpu_measured(const vpps_device *d, uint32_t i, vpps_trial *out) {
    const vpps_cpu *cpu = (const vpps_cpu *)d;
    if (!cpu->probe || i >= cpu->probe->n) return false;
    *out = cpu->probe->trials[i];
    if (vpps_cpu_is_chosen(cpu->units, &cpu->choice, out))
        out->state = cpu->probe->recalled ? VPPS_TRIAL_REMEMBERED : VPPS_TRIAL_CURRENT;
    return true;
}
