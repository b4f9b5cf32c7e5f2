/* plan.c - `vpps plan`: prints which rows of which matrix lie in which registers. */
#include "cli/commands/plan.h"
#include "cli/commands/commands.h"
#include "cli/commands/open_network.h"
#include "cli/common/failure.h"
#include "cli/common/json.h"
#include "cli/output/output_files.h"
#include "io/output.h"
#include "runtime/handle.h"

vpps_status planner_open(planner *x, settings *s) {
    const uint32_t groups = s->groups;
    x->settings = s;
    s->groups = 0; /* --groups is for the GPU, not for this session, which has no device */
    const vpps_status status = open_first_batch(&x->session, s, &x->corpus, true, &x->loss);
    s->groups = groups;
    return status;
}

void planner_close(planner *x) {
    vpps_gpu_layout_free(&x->layout);
    if (x->settings) session_close(&x->session);
    corpus_close(&x->corpus);
    *x = (planner){0};
}

vpps_status planner_find_machine(const settings *s, vpps_machine *out) {
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

vpps_status planner_specialise(planner *x, uint32_t rpw, uint32_t threads, vpps_specialiser *s, vpps_kernel_plan *plan,
                               char **source, vpps_cubin_report *report) {
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
        json_t *matrix = json_pack("{ss sI sI sb ss sI}", "name", data->name, "rows", (json_int_t)data->rows, "cols",
                                   (json_int_t)data->cols, "transposed", (int)m->transposed, "level",
                                   vpps_resident_levels[m->level], "rows_of_vp", (json_int_t)m->rows);
        if (!p->parts)
            json_object_set_new(matrix, "words_of_thread", json_integer((json_int_t)vpps_words_of_thread(m)));
        json_array_append_new(list, matrix);
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

json_t *plan_json(const planner *x, const vpps_kernel_plan *p) {
    char arch[16];
    snprintf(arch, sizeof arch, "sm_%u", x->machine.arch);
    json_t *fragments = p->parts ? fragments_json(x, p) : NULL; /* in fp32, the JSON object has no "fragments" */
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

/* Shows one plan: as tables, or as an element of the JSON list. */
static vpps_status show_plan(planner *x, const vpps_trial *choice, json_t *plans) {
    const settings *s = x->settings;
    vpps_specialiser nothing = {0};
    vpps_kernel_plan p = {0};
    vpps_cubin_report report;
    vpps_status status =
        planner_specialise(x, choice->rpw ? choice->rpw : 1, choice->threads, &nothing, &p, NULL, &report);
    if (status == VPPS_OK && s->json) {
        json_array_append_new(plans, plan_json(x, &p));
    } else if (status == VPPS_OK && s->all) {
        print_choice(x, &p);
    } else if (status == VPPS_OK) {
        status = vpps_kernel_plan_print(&p, x->session.model, &x->machine, s->vps_shown, stdout);
    }
    vpps_kernel_plan_free(&p);
    return status;
}

static vpps_status show_plans(planner *x, json_t *plans) {
    const settings *s = x->settings;
    const vpps_options o = session_options(x->settings);
    vpps_trial choices[VPPS_MOST_TRIALS];
    const uint32_t n = vpps_gpu_choices(&o, choices);
    if (s->all && !s->json)
        printf("%4s %8s %6s %10s %7s %10s %8s %8s\n", "rpw", "threads", "VPs", "registers", "share", "matrices",
               "shared", "stream");
    for (uint32_t i = 0; i < (s->all ? n : 1); i++) VPPS_TRY(show_plan(x, &choices[i], plans));
    return VPPS_OK;
}

static vpps_status plan(planner *x, settings *s) {
    VPPS_TRY(planner_find_machine(s, &x->machine));
    VPPS_TRY(output_files_check(s));
    VPPS_TRY(planner_open(x, s));
    json_t *plans = s->json ? json_array() : NULL;
    const vpps_status status = show_plans(x, plans);
    if (status == VPPS_OK && s->json) {
        return report_json_line(json_pack("{ss so}", "model", s->network->name, "plans", plans), stdout);
    }
    json_decref(plans);
    VPPS_TRY(status);
    return flush_stdout();
}

int command_plan(settings *s) {
    VPPS_CLOSED_BY(planner_close) planner x = {0};
    return exit_code(plan(&x, s));
}
