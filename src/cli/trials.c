/* trials.c - see trials.h. */
#include "cli/trials.h"
#include "base/base.h"

enum { MAX_TRIALS = 64 };

static const char *const states[] = {
#define X(id, name) name,
    VPPS_TRIAL_STATE_TABLE(X)
#undef X
};

json_t *trials_json(vpps_handle *h) {
    vpps_trial trials[MAX_TRIALS];
    uint32_t n = MAX_TRIALS;
    bool done;
    if (vpps_handle_trials(h, trials, &n, &done) != VPPS_OK || n == 0) return json_null();
    json_t *list = json_array();
    for (uint32_t i = 0; i < n && i < MAX_TRIALS; i++) {
        const vpps_trial *t = &trials[i];
        json_t *ns = t->ns_per_node > 0 ? json_real(t->ns_per_node) : json_null();
        json_array_append_new(list, json_pack("{ss si si so si si so}", "state", states[t->state], "rpw", (int)t->rpw,
                                              "threads", (int)t->threads, "ns_per_node", ns, "batches", (int)t->batches,
                                              "registers", (int)t->registers, "load_seconds",
                                              report_number(t->load_seconds)));
        if (t->groups) json_object_set_new(json_array_get(list, i), "groups", json_integer(t->groups));
        if (t->policy) json_object_set_new(json_array_get(list, i), "policy", json_string(t->policy));
    }
    return json_pack("{sb so}", "done", (int)done, "trials", list);
}

/* A CPU's trials: what is fastest depends on the batch's size, so it is told rather than kept. */
static void print_cpu(const vpps_trial *trials, uint32_t n, FILE *file) {
    fprintf(file, "%-13s %12s %8s\n", "", "ns a node", "batches");
    for (uint32_t i = 0; i < n; i++) {
        const vpps_trial *t = &trials[i];
        char what[64], ns[32] = "-";
        if (t->policy) {
            snprintf(what, sizeof what, "policy %s", t->policy);
        } else {
            snprintf(what, sizeof what, "groups %u", t->groups);
        }
        if (t->ns_per_node > 0) snprintf(ns, sizeof ns, "%.1f", t->ns_per_node);
        fprintf(file, "%-13s %12s %8u%s\n", what, ns, t->batches, t->state == VPPS_TRIAL_CURRENT ? "  chosen" : "");
    }
    fputs("train with", file);
    for (uint32_t i = 0; i < n; i++) {
        if (trials[i].state != VPPS_TRIAL_CURRENT) continue;
        if (trials[i].policy) {
            fprintf(file, " --policy %s", trials[i].policy);
        } else {
            fprintf(file, " --groups %u", trials[i].groups);
        }
    }
    fputc('\n', file);
}

void trials_print(vpps_handle *h, FILE *file) {
    vpps_trial trials[MAX_TRIALS];
    uint32_t n = MAX_TRIALS, waiting = 0;
    bool done, remembered = false;
    if (vpps_handle_trials(h, trials, &n, &done) != VPPS_OK || !n) return;
    if (trials[0].groups || trials[0].policy) {
        print_cpu(trials, vpps_min_u32(n, MAX_TRIALS), file);
        return;
    }
    fprintf(file, "%4s %8s %12s %10s %8s\n", "rpw", "threads", "ns a node", "registers", "ready s");
    for (uint32_t i = 0; i < n && i < MAX_TRIALS; i++) {
        const vpps_trial *t = &trials[i];
        char ns[32] = "-";
        if (t->state == VPPS_TRIAL_WAITING) {
            waiting++;
            continue;
        }
        if (t->ns_per_node > 0) snprintf(ns, sizeof ns, "%.0f", t->ns_per_node);
        remembered |= t->state == VPPS_TRIAL_REMEMBERED;
        const bool chosen = t->state == VPPS_TRIAL_CURRENT || t->state == VPPS_TRIAL_REMEMBERED;
        const char *note = t->state == VPPS_TRIAL_REMEMBERED ? "chosen by an earlier run" : done ? "chosen" : "in use";
        fprintf(file, "%4u %8u %12s %10u %8.2f  %s\n", t->rpw, t->threads, ns, t->registers, t->load_seconds,
                chosen                            ? note
                : t->state == VPPS_TRIAL_REJECTED ? "rejected"
                                                  : "");
    }
    if (waiting && !remembered) fprintf(file, "%u other choices were not tried\n", waiting);
}
