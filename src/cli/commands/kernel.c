/* kernel.c - `vpps kernel`: prints the source of a network's kernel, or what the compiler says about it. */
#include "base/base.h"
#include "cli/commands/commands.h"
#include "cli/commands/plan.h"
#include "cli/common/failure.h"
#include "cli/common/json.h"
#include "codegen/compile.h"
#include "codegen/nvrtc.h"

/* ---------------------------------------------------------------- source */

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

/* ---------------------------------------------------------------- report */

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

/* Compiles the kernel with the first choice of rows per warp and threads, as a device without tuning does. */
static vpps_status specialise(outcome *o) {
    const settings *s = o->planner->settings;
    vpps_specialiser specialiser = {.compile = compile, .log = note_rejected, .context = o};
    return planner_specialise(o->planner, s->rpw, s->threads, &specialiser, &o->plan, NULL, &o->report);
}

static json_t *outcome_json(const outcome *o, vpps_status status) {
    char text[256];
    json_t *kernel;
    if (status != VPPS_OK) {
        snprintf(text, sizeof text, "sm_%u", o->planner->machine.arch);
        kernel = json_pack("{ss ss}", "arch", text, "error", vpps_error_message());
    } else {
        const vpps_cubin_report *r = &o->report;
        vpps_kernel_describe(&o->plan, text, sizeof text);
        kernel = plan_json(o->planner, &o->plan);
        json_object_set_new(kernel, "description", json_string(text));
        json_object_set_new(kernel, "kernel_registers", json_integer(r->registers));
        json_object_set_new(kernel, "frame_bytes", json_integer(r->frame_bytes));
        json_object_set_new(kernel, "static_shared_bytes", json_integer(r->shared_bytes));
        json_object_set_new(kernel, "dynamic_shared_bytes", json_integer(vpps_kernel_shared_bytes(&o->plan)));
        json_object_set_new(kernel, "cubin_bytes", json_integer(r->cubin_bytes));
        json_object_set_new(kernel, "compile_seconds", report_number(r->seconds));
        json_object_set_new(kernel, "cached", json_boolean(r->cached));
    }
    json_object_set(kernel, "rejected", o->rejected);
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
    if (r->cached) {
        printf("%-11s from the cache\n\n", "compiled");
    } else {
        printf("%-11s in %.2f s\n\n", "compiled", r->seconds);
    }
}

static bool all_architectures(const settings *s) { return s->arch && strcmp(s->arch, "all") == 0; }

/* Makes the kernel for x->machine, and prints the outcome as text or adds it to `kernels`. A failure is an outcome only with --arch all,
 * where other machines follow; else its messages are printed. */
static vpps_status report_machine(planner *x, json_t *kernels) {
    outcome o = {.planner = x, .rejected = json_array()};
    const vpps_status status = specialise(&o);
    if (status == VPPS_OK || all_architectures(x->settings)) {
        if (kernels) {
            json_array_append_new(kernels, outcome_json(&o, status));
        } else {
            print_outcome(&o, status);
        }
    } else {
        size_t i;
        json_t *line;
        json_array_foreach(o.rejected, i, line) fprintf(stderr, "%s\n", json_string_value(line));
    }
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

static vpps_status report_machines(planner *x, json_t *kernels) {
    if (all_architectures(x->settings)) return report_all(x, kernels);
    VPPS_TRY(planner_find_machine(x->settings, &x->machine));
    return report_machine(x, kernels);
}

static vpps_status print_report(planner *x) {
    const settings *s = x->settings;
    json_t *kernels = s->json ? json_array() : NULL;
    const vpps_status status = report_machines(x, kernels);
    char message[VPPS_MESSAGE_BYTES];
    snprintf(message, sizeof message, "%s", vpps_error_message());
    vpps_status written = VPPS_OK;
    if (json_array_size(kernels))
        written = report_json_line(json_pack("{ss sO}", "model", s->network->name, "kernels", kernels), stdout);
    else
        written = flush_stdout();
    json_decref(kernels);
    if (status == VPPS_OK) return written;
    vpps_restore_message(message);
    return status;
}

/* ---------------------------------------------------------------- command */

int command_kernel(settings *s) {
    if (all_architectures(s) && !s->report) return report_usage("kernel", "--arch all is for --report");
    VPPS_CLOSED_BY(planner_close) planner x = {0};
    const vpps_status status = planner_open(&x, s);
    if (status != VPPS_OK) return exit_code(status);
    return exit_code(s->report ? print_report(&x) : print_source(&x));
}
