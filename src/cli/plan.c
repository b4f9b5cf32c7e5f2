/* plan.c - `vpps plan`: which rows of which matrix would lie in which registers. */
#include "cli/plan.h"
#include "base/base.h"
#include "cli/checkpoint.h"
#include "cli/commands.h"
#include "cli/corpus_read.h"
#include "cli/failure.h"
#include "cli/json.h"
#include "cli/output_files.h"
#include "io/output.h"
#include "runtime/gpu/driver.h"

#include <errno.h>

/* ---------------------------------------------------------------- network and machine */

/* Words, characters and classes: what a network's shape takes from data. */
static vpps_status find_shape(planner *x) {
    enum { WORDS = 1000, CLASSES = 5 };
    settings *s = x->settings;
    if (s->model) {
        VPPS_TRY(checkpoint_describe(s->model, s, &x->corpus, NULL));
    } else if (options_name_files(s) || options_given(s, "generate") || options_given(s, "examples")) {
        VPPS_TRY(corpus_open(&x->corpus, s));
    } else {
        s->net.words = s->net.characters = WORDS;
        const net_kind kind = s->network->kind;
        const bool says_words = kind == NET_TEXT || kind == NET_PAIRS || kind == NET_LATTICE_PAIRS;
        s->net.classes = says_words ? WORDS : CLASSES;
    }
    return VPPS_OK;
}

vpps_status planner_open(planner *x, settings *s) {
    x->settings = s;
    VPPS_TRY(find_shape(x));
    options_complete(s);
    VPPS_TRY(vpps_model_create(&x->model, s->seed));
    return s->network->create(&x->net, x->model, &s->net);
}

void planner_close(planner *x) {
    if (x->settings) x->settings->network->destroy(x->net);
    vpps_model_destroy(x->model);
    corpus_close(&x->corpus);
    *x = (planner){0};
}

vpps_status planner_find_machine(const settings *s, vpps_machine *out) {
    vpps_driver *driver;
    if (s->arch) return vpps_machine_named(out, s->arch, s->sms);
    if (vpps_driver_cuda.open(&driver, out) != VPPS_OK) return vpps_machine_named(out, "sm_90", s->sms);
    vpps_driver_cuda.close(driver);
    if (s->sms) out->sms = s->sms;
    return VPPS_OK;
}

static vpps_partition_choice fixed_choice(const settings *s) {
#define X(id, name, transposed, deferred) {transposed, deferred},
    static const bool strategies[][2] = {{false, false}, VPPS_STRATEGY_TABLE(X)}; /* the first is AUTO */
#undef X
    return (vpps_partition_choice){.rpw = options_rpw(s),
                                   .threads = options_threads(s),
                                   .ctas_per_sm = s->ctas,
                                   .transposed = strategies[s->strategy][0],
                                   .deferred = strategies[s->strategy][1]};
}

vpps_status planner_choose(planner *x) {
    const vpps_partition_choice fixed = fixed_choice(x->settings);
    x->n_choices =
        vpps_partition_choices(x->model, &x->machine, &fixed, x->settings->strategy != 0, x->choices, VPPS_MAX_CHOICES);
    if (x->n_choices) return VPPS_OK;
    return vpps_fail(VPPS_POOL, "%s on %s: no plan with these options fits", x->settings->network->name,
                     x->machine.name);
}

/* ---------------------------------------------------------------- as JSON */

static const char *const level_names[] = {"registers", "shared", "stream"};

static json_t *choice_json(const vpps_partition_choice *c) {
    return json_pack("{sI sI sI sI sb sb}", "rpw", (json_int_t)c->rpw, "threads", (json_int_t)c->threads, "ctas_per_sm",
                     (json_int_t)c->ctas_per_sm, "vectors", (json_int_t)c->vectors, "transposed", c->transposed,
                     "deferred", c->deferred);
}

static json_t *slots_json(const vpps_placing *placing) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < placing->n_slots; i++) {
        const vpps_slot *slot = &placing->slots[i];
        json_array_append_new(list, json_pack("{sI ss sI}", "steps", (json_int_t)slot->steps, "level",
                                              level_names[slot->level], "at", (json_int_t)slot->at));
    }
    return list;
}

static json_t *matrices_json(const vpps_partition *p, const vpps_model *model) {
    json_t *list = json_array();
    for (uint32_t m = 0; m < p->n_matrices; m++) {
        const vpps_matrix *matrix = &p->matrices[m];
        json_array_append_new(list, json_pack("{ss sI sI}", "name", model->params[matrix->param].name, "rows",
                                              (json_int_t)matrix->rows, "cols", (json_int_t)matrix->cols));
    }
    return list;
}

/* Of all SMs' registers, those that hold weights, gradients or the copy. */
static double share_of(const vpps_partition *p) {
    return (double)p->cached * p->choice.threads * p->n_vps / ((double)p->machine.sm_registers * p->machine.sms);
}

json_t *plan_json(const vpps_partition *p, const vpps_model *model) {
    char arch[16];
    snprintf(arch, sizeof arch, "sm_%u", p->machine.arch);
    json_t *o = json_pack("{ss ss sI so}", "machine", p->machine.name, "arch", arch, "sms", (json_int_t)p->machine.sms,
                          "choice", choice_json(&p->choice));
    json_object_set_new(o, "vps", json_integer(p->n_vps));
    json_object_set_new(o, "registers", json_integer(p->cached));
    json_object_set_new(o, "budget", json_integer(p->budget));
    json_object_set_new(o, "register_share", report_number(share_of(p)));
    json_object_set_new(o, "shared_bytes", json_integer(4 * (json_int_t)p->rows.shared_words));
    json_object_set_new(o, "master_bytes", json_integer(4 * (json_int_t)p->master_words));
    json_object_set_new(o, "gradient_bytes", json_integer(4 * (json_int_t)p->gradient_words));
    json_object_set_new(o, "matrices", matrices_json(p, model));
    json_object_set_new(o, "slots", slots_json(&p->rows));
    json_object_set_new(o, "copy_slots", slots_json(&p->columns));
    return o;
}

/* ---------------------------------------------------------------- output */

typedef struct picture {
    const vpps_partition *partition;
    const vpps_model *model;
} picture;

static vpps_status print_svg(const void *context, FILE *f) {
    const picture *x = context;
    return vpps_partition_svg(x->partition, x->model, f);
}

static void print_choice_heading(void) {
    printf("%4s %8s %8s %8s %6s  %-10s %-16s %10s %7s\n", "rpw", "threads", "CTAs/SM", "vectors", "VPs", "gradients",
           "backward", "registers", "share");
}

static void print_choice(const vpps_partition *p) {
    const vpps_partition_choice *c = &p->choice;
    printf("%4u %8u %8u %8u %6u  %-10s %-16s %4u / %3u %5.1f %%\n", c->rpw, c->threads, c->ctas_per_sm, c->vectors,
           p->n_vps, c->deferred ? "deferred" : "registers", c->transposed ? "transposed copy" : "partial sums",
           p->cached, p->budget, 100 * share_of(p));
}

/* One plan: its tables, or as a member of the JSON object's list. */
static vpps_status show_plan(const planner *x, const vpps_partition *p, json_t *plans) {
    const settings *s = x->settings;
    if (s->json) {
        json_array_append_new(plans, plan_json(p, x->model));
    } else if (s->all) {
        print_choice(p);
    } else {
        VPPS_TRY(vpps_partition_print(p, x->model, s->vps_shown, stdout));
    }
    return VPPS_OK;
}

static vpps_status show_plans(const planner *x, json_t *plans) {
    const settings *s = x->settings;
    const uint32_t n = s->all ? x->n_choices : 1;
    if (s->all && !s->json) print_choice_heading();
    for (uint32_t i = 0; i < n; i++) {
        vpps_partition p;
        vpps_status status = vpps_partition_create(&p, x->model, &x->machine, &x->choices[i]);
        if (status == VPPS_OK && i == 0 && s->svg)
            status = vpps_output_print(s->svg, print_svg, &(picture){&p, x->model});
        if (status == VPPS_OK) status = show_plan(x, &p, plans);
        vpps_partition_destroy(&p);
        VPPS_TRY(status);
    }
    return VPPS_OK;
}

static vpps_status plan(planner *x, settings *s) {
    VPPS_TRY(planner_find_machine(s, &x->machine));
    VPPS_TRY(planner_open(x, s));
    VPPS_TRY(output_files_check(s));
    VPPS_TRY(output_file_check(s->svg));
    VPPS_TRY(planner_choose(x));
    json_t *plans = s->json ? json_array() : NULL;
    const vpps_status status = show_plans(x, plans);
    if (status == VPPS_OK && s->json) {
        return report_json_line(json_pack("{ss so}", "model", s->network->name, "plans", plans), stdout);
    }
    json_decref(plans);
    VPPS_TRY(status);
    return fflush(stdout) == 0 ? VPPS_OK : vpps_fail(VPPS_IO, "stdout cannot be written: %s", strerror(errno));
}

int command_plan(settings *s) {
    planner x = {0};
    const vpps_status status = plan(&x, s);
    if (status != VPPS_OK) report_failure(status);
    planner_close(&x);
    return status == VPPS_OK ? 0 : EXIT_RUNTIME;
}
