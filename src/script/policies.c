/* policies.c - the batching policies and their table. */
#include "script/policies.h"

static void find_depths(const vpps_typed_graph *g, uint32_t *depths) {
    for (uint32_t v = 0; v < g->n; v++) {
        depths[v] = 0;
        for (uint32_t i = g->first[v]; i < g->first[v + 1]; i++)
            depths[v] = vpps_max_u32(depths[v], depths[g->sources[i]] + 1);
    }
}

/* Runs all vertices of one type and one depth (longest chain of vertices below) together (Looks et al. 2017, "TensorFlow Fold"). */
static bool choose_depth(const vpps_typed_graph *g, uint32_t *steps, uint32_t *n) {
    uint32_t most = 0;
    if ((uint64_t)g->n * g->n_types > UINT32_MAX) return false;
    find_depths(g, steps);
    for (uint32_t v = 0; v < g->n; v++) most = vpps_max_u32(most, steps[v] = steps[v] * g->n_types + g->types[v]);
    uint32_t *first =
        /* for each depth and type: number of earlier pairs (depth, type) that have vertices */
        calloc(most + (size_t)2, sizeof *first);
    if (!first) return false;
    for (uint32_t v = 0; v < g->n; v++) first[steps[v] + 1] = 1;
    for (uint32_t i = 1; i < most + 2; i++) first[i] += first[i - 1];
    for (uint32_t v = 0; v < g->n; v++) steps[v] = first[steps[v]];
    *n = first[most + 1];
    free(first);
    return true;
}

bool vpps_policy_choose(const vpps_policy *p, const vpps_typed_graph *g, const vpps_automaton *a, uint32_t *steps,
                        uint32_t *n) {
    vpps_walk w;
    if (!p->next) return choose_depth(g, steps, n);
    const bool ok = vpps_walk_open(&w, g);
    while (ok && w.n_left) vpps_walk_run(&w, p->next(p->learned ? a : NULL, &w), steps);
    *n = w.n_batches;
    vpps_walk_close(&w);
    return ok;
}

/* Returns the type with the largest fraction of ready vertices among its vertices that have not run; at a tie, the first such type. While
 * the other types wait, more of their vertices become ready. */
static uint32_t largest_share(const vpps_automaton *a, vpps_walk *w) {
    (void)a;
    uint32_t best = 0;
    for (uint32_t t = 1; t < w->graph->n_types; t++)
        if (!w->left[best] || (uint64_t)w->ready[t] * w->left[best] > (uint64_t)w->ready[best] * w->left[t]) best = t;
    return best;
}

const vpps_policy vpps_policies[] = {
    {"depth", false, NULL},                /* vertices of one type and depth */
    {"share", false, largest_share},       /* the type of whose remaining vertices the largest share is ready */
    {"ratio", false, vpps_automaton_next}, /* the type of whose own graph's frontier the largest part is ready */
    {"fsm", true, vpps_automaton_next},    /* as was learned of which types are ready */
    {NULL, false, NULL},
};

const vpps_policy *vpps_policy_find(const char *name) {
    const vpps_policy *p = vpps_policies;
    while (p->name && strcmp(p->name, name) != 0) p++;
    return p->name ? p : NULL;
}
