/* trials.c - reports the speeds that the engine measured to choose between variants of its work. */
#include "cli/output/report.h"
#include "runtime/device.h"

static const char *const states[] = {
#define X(id, name) name,
    VPPS_TRIAL_STATE_TABLE(X)
#undef X
};

/* Returns the measurements of all variants that tuning has tried, which the caller frees; NULL: there are none, or out of memory. */
static vpps_trial *all_trials(vpps_handle *h, uint32_t *n, bool *done) {
    *n = 0;
    if (vpps_handle_trials(h, NULL, n, done) != VPPS_OK || !*n) return NULL;
    vpps_trial *trials = calloc(*n, sizeof *trials);
    if (trials) trials->size = sizeof *trials;
    if (trials && vpps_handle_trials(h, trials, n, done) == VPPS_OK) return trials;
    free(trials);
    return NULL;
}

static json_t *number_or_null(double x) { return x > 0 ? json_real(x) : json_null(); }

static json_t *trial_json(const vpps_trial *t) {
    json_t *row = json_pack("{ss si si so si si so}", "state", states[t->state], "rpw", (int)t->rpw, "threads",
                            (int)t->threads, "ns_per_node", number_or_null(t->ns_per_node), "batches", (int)t->batches,
                            "registers", (int)t->registers, "load_seconds", report_number(t->load_seconds));
    if (t->threads) json_object_set_new(row, "gradients", json_string(vpps_gradient_makers[t->gradients]));
    if (t->groups) json_object_set_new(row, "groups", json_integer(t->groups));
    if (t->policy) json_object_set_new(row, "policy", json_string(t->policy));
    return row;
}

json_t *trials_json(vpps_handle *h, bool with_products) {
    uint32_t n;
    bool done;
    VPPS_FREED vpps_trial *trials = all_trials(h, &n, &done);
    if (!trials) return json_null();
    json_t *list = json_array();
    json_auto_t *splits = json_array(), *products = json_array();
    for (uint32_t i = 0; i < n; i++) {
        const vpps_trial *t = &trials[i];
        if (t->product)
            json_array_append_new(products,
                                  json_pack("{ss ss ss ss si sb so}", "state", states[t->state], "product", t->product,
                                            "unit", t->unit, "precision", t->precision, "vectors", (int)t->vectors,
                                            "far", t->far, "ns_per_vector", number_or_null(t->ns_per_vector)));
        else if (t->split)
            json_array_append_new(splits,
                                  json_pack("{ss ss so si}", "state", states[t->state], "split", t->split,
                                            "ns_per_node", number_or_null(t->ns_per_node), "batches", (int)t->batches));
        else
            json_array_append_new(list, trial_json(t));
    }
    json_t *all = json_pack("{sb so}", "done", (int)done, "trials", list);
    if (json_array_size(splits)) json_object_set(all, "splits", splits);
    if (with_products && json_array_size(products)) json_object_set(all, "products", products);
    return all;
}

static const char *note_of(const vpps_trial *t, bool done) {
    return t->state == VPPS_TRIAL_REMEMBERED ? "chosen by an earlier run"
           : t->state == VPPS_TRIAL_REJECTED ? "rejected"
           : t->state != VPPS_TRIAL_CURRENT  ? ""
           : done                            ? "chosen"
                                             : "in use";
}

/* Prints the variants that were timed on batches in turn: how threads share a stage (part of a cell's program), which
 * is stored on disk; the number of groups of CTAs or threads, and the rule for which vertices run together (policy),
 * which depend on the batch size. */
static void print_turns(const vpps_trial *trials, uint32_t n, bool done, FILE *file) {
    if (!n) return;
    fprintf(file, "%-24s %12s %8s\n", "", "ns a node", "batches");
    for (uint32_t i = 0; i < n; i++) {
        const vpps_trial *t = &trials[i];
        char what[64], ns[32] = "-";
        if (t->policy)
            snprintf(what, sizeof what, "policy %s", t->policy);
        else if (t->split)
            snprintf(what, sizeof what, "stages shared by %s", t->split);
        else
            snprintf(what, sizeof what, "groups %u", t->groups);
        if (t->ns_per_node > 0) snprintf(ns, sizeof ns, "%.1f", t->ns_per_node);
        fprintf(file, "%-24s %12s %8u  %s\n", what, ns, t->batches, note_of(t, done));
    }
    uint32_t told = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (trials[i].state != VPPS_TRIAL_CURRENT || trials[i].split) continue;
        if (!told++) fputs("train with", file);
        if (trials[i].policy)
            fprintf(file, " --policy %s", trials[i].policy);
        else
            fprintf(file, " --groups %u", trials[i].groups);
    }
    if (told) fputc('\n', file);
}

static void print_kernels(const vpps_trial *trials, uint32_t n, bool done, bool more, FILE *file) {
    uint32_t waiting = 0;
    bool remembered = false;
    if (!n) return;
    fprintf(file, "%4s %8s %9s %12s %10s %8s\n", "rpw", "threads", "gradients", "ns a node", "registers", "ready s");
    for (uint32_t i = 0; i < n; i++) {
        const vpps_trial *t = &trials[i];
        char ns[32] = "-";
        if (t->state == VPPS_TRIAL_WAITING) {
            waiting++;
            continue;
        }
        if (t->ns_per_node > 0) snprintf(ns, sizeof ns, "%.0f", t->ns_per_node);
        remembered |= t->state == VPPS_TRIAL_REMEMBERED;
        fprintf(file, "%4u %8u %9s %12s %10u %8.2f  %s\n", t->rpw, t->threads, vpps_gradient_makers[t->gradients], ns,
                t->registers, t->load_seconds, note_of(t, done));
    }
    if (waiting && !remembered) fprintf(file, "%u other choices were not tried\n", waiting);
    if (more) fputc('\n', file);
}

void trials_print(vpps_handle *h, FILE *file) {
    uint32_t n;
    bool done;
    VPPS_FREED vpps_trial *trials = all_trials(h, &n, &done);
    if (!trials) return;
    /* a GPU times kernels first; a CPU ways to multiply matrices, which `vpps doctor` prints */
    uint32_t n_kernels = 0, first = 0;
    while (n_kernels < n && trials[n_kernels].threads) n_kernels++;
    while (first < n && (trials[first].threads || trials[first].product)) first++;
    print_kernels(trials, n_kernels, done, first < n, file);
    print_turns(trials + first, n - first, done, file);
}
