/* plan.c - `vpps plan` prints which rows of which matrix lie in which registers, `vpps kernel` a network's kernel: its source, or what the
 * compiler says about it. */
#include "base/base.h"
#include "cli/commands/commands.h"
#include "cli/common/failure.h"
#include "cli/common/json.h"
#include "cli/output/kernel_plan_print.h"
#include "codegen/compile.h"
#include "codegen/nvrtc.h"
#include "codegen/specialise.h"
#include "runtime/gpu/gpu.h"
#include "runtime/handle.h"

/* A network, its first batch, and the GPU to compile for. */
typedef struct planner {
    settings *settings;
    session session;
    corpus corpus;
    vpps_node loss;
    vpps_machine machine;
    vpps_gpu_layout layout;
} planner;

static vpps_status planner_open(planner *x, settings *s) {
    const uint32_t groups = s->groups;
    x->settings = s;
    s->groups = 0; /* --groups is for the GPU, not for this session, which has no device */
    const vpps_status status = open_first_batch(&x->session, s, &x->corpus, true, &x->loss);
    s->groups = groups;
    return status;
}

static void planner_close(planner *x) {
    vpps_gpu_layout_free(&x->layout);
    session_close(&x->session);
    corpus_close(&x->corpus);
    *x = (planner){0};
}

/* Sets *out to the GPU that --arch names; without --arch to this machine's GPU, else to an sm_90. --sms replaces its number of SMs. */
static vpps_status planner_find_machine(const settings *s, vpps_machine *out) {
    if (s->arch) return vpps_machine_named(out, s->arch, s->sms);
    if (vpps_gpu_here(out) != VPPS_OK) return vpps_machine_named(out, "sm_90", s->sms);
    if (s->sms) out->sms = s->sms;
    return VPPS_OK;
}

static vpps_status compile_nothing(void *context, const vpps_kernel_plan *plan, const char *source,
                                   const char *description, vpps_cubin_report *report) {
    (void)context, (void)plan, (void)source, (void)description, (void)report;
    return VPPS_OK;
}

/* Makes the kernel for x->machine with rpw matrix rows per warp and `threads` threads per CTA; 0: what a device without
 * tuning takes. The caller sets s->compile (NULL: the source is made, but not compiled), s->log and s->context; this
 * function sets the other members. Free the plan with vpps_kernel_plan_free also after a failure. */
static vpps_status planner_specialise(planner *x, uint32_t rpw, uint32_t threads, vpps_specialiser *s,
                                      vpps_kernel_plan *plan, char **source, vpps_cubin_report *report) {
    vpps_options o = session_options(x->settings);
    const vpps_batch *b;
    uint32_t registers = 0;
    o.rpw = rpw;
    o.threads = threads;
    vpps_gpu_layout_free(&x->layout);
    VPPS_TRY(vpps_gpu_lay_out(&x->layout, x->session.model, &o, &x->machine, "GPU"));
    VPPS_TRY(vpps_handle_batch_for(x->session.handle, x->session.graph, x->loss, &x->layout.target, o.groups, &b));
    vpps_trial choices[VPPS_MOST_TRIALS];
    vpps_gpu_choices(&o, choices);
    *plan = vpps_gpu_kernel_plan(&x->layout, b->n_groups, &choices[0], (const vpps_compiled_cell *const *)b->cells,
                                 b->n_cells);
    s->model = x->session.model;
    s->pool = &x->layout.plan;
    s->matrix_at = x->layout.matrix_at;
    s->machine = &x->machine;
    if (!s->compile) s->compile = compile_nothing;
    return vpps_specialise(s, plan, &registers, source, report);
}

static json_t *matrices_json(const planner *x, const vpps_kernel_plan *p) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < p->residents.n; i++) {
        const vpps_resident *m = &p->residents.list[i];
        const vpps_parameter_data *data = &x->session.model->params[m->matrix];
        json_t *words = p->parts ? NULL : json_integer((json_int_t)vpps_words_of_thread(m));
        json_array_append_new(list, json_pack("{ss sI sI sb ss sI so*}", "name", data->name, "rows",
                                              (json_int_t)data->rows, "cols", (json_int_t)data->cols, "transposed",
                                              (int)m->transposed, "level", vpps_resident_levels[m->level], "rows_of_vp",
                                              (json_int_t)m->rows, "words_of_thread", words));
    }
    for (uint32_t i = 0; i < x->session.model->n_params; i++) {
        const vpps_parameter_data *data = &x->session.model->params[i];
        if (!vpps_in_memory(p, x->session.model, i)) continue;
        json_array_append_new(list, json_pack("{ss sI sI sb ss}", "name", data->name, "rows", (json_int_t)data->rows,
                                              "cols", (json_int_t)data->cols, "transposed", 0, "level", "memory"));
    }
    return list;
}

static json_t *fragments_json(const planner *x, const vpps_kernel_plan *p) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < p->residents.n_fragments; i++) {
        const vpps_fragment *f = &p->residents.fragments[i];
        char name[256];
        vpps_name_fragment(x->session.model, f, name, sizeof name);
        json_array_append_new(list, json_pack("{ss sI ss sI}", "rows_of", name, "cols", (json_int_t)f->length, "level",
                                              vpps_resident_levels[f->level], "words_of_thread",
                                              (json_int_t)vpps_fragment_words(f, p->parts)));
    }
    return list;
}

static json_t *plan_json(const planner *x, const vpps_kernel_plan *p) {
    char arch[16];
    snprintf(arch, sizeof arch, "sm_%u", x->machine.arch);
    /* NULL leaves the member out: fp32 kernels have no fragments (weights as tensor cores read them) */
    json_t *fragments = p->parts ? fragments_json(x, p) : NULL;
    return json_pack("{ss ss ss sI sI sI sI sI sI sI sI so sI sI sI sI so so*}", "machine", x->machine.name,
                     "precision", vpps_precision_names[x->layout.precision], "arch", arch, "sms",
                     (json_int_t)x->machine.sms, "vps", (json_int_t)p->n_vps, "group", (json_int_t)p->group, "rpw",
                     (json_int_t)p->row_unit, "threads", (json_int_t)p->threads, "cells", (json_int_t)p->n_cells,
                     "stages", (json_int_t)p->first_stage[p->n_cells], "registers", (json_int_t)p->residents.registers,
                     "register_share", report_number(vpps_register_share(p, &x->machine)), "shared_bytes",
                     4 * (json_int_t)p->residents.shared_words, "tile_bytes", 4 * (json_int_t)p->tile_words,
                     "script_bytes", 4 * (json_int_t)p->script_words, "late_bytes", 4 * (json_int_t)p->staged_words,
                     "matrices", matrices_json(x, p), "fragments", fragments);
}

static void print_choice(const planner *x, const vpps_kernel_plan *p) {
    uint32_t levels[VPPS_RESIDENT_STREAM + 1] = {0};
    for (uint32_t i = 0; i < p->residents.n; i++) levels[p->residents.list[i].level]++;
    printf("%4u %8u %6u %10u %5.1f %% %10u %8u %8u\n", p->row_unit, p->threads, p->n_vps, p->residents.registers,
           100 * vpps_register_share(p, &x->machine), levels[VPPS_RESIDENT_REGISTERS], levels[VPPS_RESIDENT_SHARED],
           levels[VPPS_RESIDENT_STREAM]);
}

/* Makes the kernel's plan for `choice` (rows per block, threads per CTA). Prints the plan, with --all in one row, or adds it to `plans`. */
static vpps_status show_plan(planner *x, const vpps_trial *choice, json_t *plans) {
    const settings *s = x->settings;
    vpps_specialiser nothing = {0};
    VPPS_CLOSED_BY(vpps_kernel_plan_free) vpps_kernel_plan p = {0};
    vpps_cubin_report report;
    VPPS_TRY(planner_specialise(x, choice->rpw ? choice->rpw : 1, choice->threads, &nothing, &p, NULL, &report));
    if (!s->json && !s->all) return vpps_kernel_plan_print(&p, x->session.model, &x->machine, s->vps_shown, stdout);
    if (s->json)
        json_array_append_new(plans, plan_json(x, &p));
    else
        print_choice(x, &p);
    return VPPS_OK;
}

static vpps_status plan(planner *x, settings *s) {
    VPPS_TRY(planner_find_machine(s, &x->machine));
    VPPS_TRY(planner_open(x, s));
    json_auto_t *plans = json_array();
    const vpps_options o = session_options(s);
    vpps_trial choices[VPPS_MOST_TRIALS];
    const uint32_t n = vpps_gpu_choices(&o, choices);
    if (s->all && !s->json)
        printf("%4s %8s %6s %10s %7s %10s %8s %8s\n", "rpw", "threads", "VPs", "registers", "share", "matrices",
               "shared", "stream");
    for (uint32_t i = 0; i < (s->all ? n : 1); i++) VPPS_TRY(show_plan(x, &choices[i], plans));
    if (!s->json) return flush_stdout();
    return report_json_line(json_pack("{ss sO}", "model", s->network->name, "plans", plans), stdout);
}

int command_plan(settings *s) {
    VPPS_CLOSED_BY(planner_close) planner x = {0};
    return exit_code(plan(&x, s));
}

/* ---------------------------------------------------------------- the kernel's source */

static vpps_status print_source(planner *x) {
    vpps_specialiser nothing = {0};
    VPPS_CLOSED_BY(vpps_kernel_plan_free) vpps_kernel_plan plan = {0};
    vpps_cubin_report report;
    VPPS_FREED char *source = NULL;
    VPPS_TRY(planner_find_machine(x->settings, &x->machine));
    VPPS_TRY(planner_specialise(x, x->settings->rpw, x->settings->threads, &nothing, &plan, &source, &report));
    fputs(source, stdout);
    return flush_stdout();
}

/* ---------------------------------------------------------------- the compiler's report */

/* The result of compiling for one architecture. */
typedef struct outcome {
    planner *planner;
    vpps_kernel_plan plan;
    vpps_cubin_report report;
    json_t *rejected; /* messages that tell why kernels were rejected */
} outcome;

static vpps_status compile(void *context, const vpps_kernel_plan *plan, const char *source, const char *description,
                           vpps_cubin_report *report) {
    const outcome *o = context;
    VPPS_FREED void *cubin = NULL;
    size_t bytes;
    (void)plan;
    return vpps_compile(source, "vpps_kernel", o->planner->machine.arch, description, !o->planner->settings->no_cache,
                        &cubin, &bytes, report);
}

static void note_rejected(void *context, const char *line) {
    const outcome *o = context;
    json_array_append_new(o->rejected, json_string(line));
}

static json_t *outcome_json(const outcome *o, vpps_status status) {
    if (status != VPPS_OK)
        return json_pack("{so ss sO}", "arch", json_sprintf("sm_%u", o->planner->machine.arch), "error",
                         vpps_error_message(), "rejected", o->rejected);
    char text[256];
    const vpps_cubin_report *r = &o->report;
    vpps_kernel_describe(&o->plan, text, sizeof text);
    json_t *kernel = plan_json(o->planner, &o->plan);
    json_object_update_new(kernel, json_pack("{ss sI sI sI sI sI so sb sO}", "description", text, "kernel_registers",
                                             (json_int_t)r->registers, "frame_bytes", (json_int_t)r->frame_bytes,
                                             "static_shared_bytes", (json_int_t)r->shared_bytes, "dynamic_shared_bytes",
                                             (json_int_t)vpps_kernel_shared_bytes(&o->plan), "cubin_bytes",
                                             (json_int_t)r->cubin_bytes, "compile_seconds", report_number(r->seconds),
                                             "cached", (int)r->cached, "rejected", o->rejected));
    return kernel;
}

static void print_outcome(const outcome *o, vpps_status status) {
    const vpps_machine *m = &o->planner->machine;
    size_t i;
    json_t *line;
    printf("%-11s %s, %u SMs\n", "machine", m->name, m->sms);
    json_array_foreach(o->rejected, i, line) printf("%-11s %s\n", "", json_string_value(line));
    if (status != VPPS_OK) {
        printf("%-11s %s\n\n", "failed", vpps_error_message());
        return;
    }
    const vpps_cubin_report *r = &o->report;
    char text[256];
    vpps_kernel_describe(&o->plan, text, sizeof text);
    printf("%-11s %s\n", "plan", text);
    printf("%-11s %u a thread, frame of %u bytes\n", "registers", r->registers, r->frame_bytes);
    printf("%-11s %u bytes static, %u dynamic\n", "shared", r->shared_bytes, vpps_kernel_shared_bytes(&o->plan));
    printf("%-11s %u bytes\n", "CUBIN", r->cubin_bytes);
    if (r->cached)
        printf("%-11s from the cache\n\n", "compiled");
    else
        printf("%-11s in %.2f s\n\n", "compiled", r->seconds);
}

static bool all_architectures(const settings *s) { return s->arch && strcmp(s->arch, "all") == 0; }

/* Makes the kernel for x->machine. Prints the outcome as text, or adds it to the list `kernels`. If no kernel could be
 * made, and --arch is not `all`, prints only why each tried kernel was rejected. */
static vpps_status report_machine(planner *x, json_t *kernels) {
    outcome o = {.planner = x, .rejected = json_array()};
    const settings *s = x->settings;
    size_t i;
    json_t *line;
    vpps_specialiser specialiser = {.compile = compile, .log = note_rejected, .context = &o};
    const vpps_status status = planner_specialise(x, s->rpw, s->threads, &specialiser, &o.plan, NULL, &o.report);
    if (status != VPPS_OK && !all_architectures(s))
        json_array_foreach(o.rejected, i, line) fprintf(stderr, "%s\n", json_string_value(line));
    else if (kernels)
        json_array_append_new(kernels, outcome_json(&o, status));
    else
        print_outcome(&o, status);
    json_decref(o.rejected);
    vpps_kernel_plan_free(&o.plan);
    return status;
}

/* Compiles for every machine that the compiler knows. Returns the first failure after all have been tried. */
static vpps_status report_all(planner *x, json_t *kernels) {
    const vpps_nvrtc *nvrtc;
    char message[VPPS_MESSAGE_BYTES] = "";
    vpps_status first = VPPS_OK;
    VPPS_TRY(vpps_nvrtc_open(&nvrtc));
    for (uint32_t i = 0; i < nvrtc->n_architectures; i++) {
        char name[16];
        snprintf(name, sizeof name, "sm_%u", nvrtc->architectures[i]);
        if (vpps_machine_named(&x->machine, name, x->settings->sms) != VPPS_OK) continue;
        const vpps_status status = report_machine(x, kernels);
        if (status == VPPS_OK || first != VPPS_OK) continue;
        first = status;
        snprintf(message, sizeof message, "%s: %.400s", name, vpps_error_message());
    }
    if (first != VPPS_OK) vpps_restore_message(message);
    return first;
}

static vpps_status print_report(planner *x) {
    const settings *s = x->settings;
    json_auto_t *kernels = s->json ? json_array() : NULL;
    vpps_status status = all_architectures(s) ? report_all(x, kernels) : planner_find_machine(s, &x->machine);
    if (status == VPPS_OK && !all_architectures(s)) status = report_machine(x, kernels);
    char message[VPPS_MESSAGE_BYTES];
    snprintf(message, sizeof message, "%s", vpps_error_message());
    const vpps_status written =
        json_array_size(kernels)
            ? report_json_line(json_pack("{ss sO}", "model", s->network->name, "kernels", kernels), stdout)
            : flush_stdout();
    if (status == VPPS_OK) return written;
    vpps_restore_message(message);
    return status;
}

int command_kernel(settings *s) {
    if (all_architectures(s) && !s->report) return report_usage("kernel", "--arch all is for --report");
    VPPS_CLOSED_BY(planner_close) planner x = {0};
    const vpps_status status = planner_open(&x, s);
    if (status != VPPS_OK) return exit_code(status);
    return exit_code(s->report ? print_report(&x) : print_source(&x));
}
