/* walk.c - walks through a graph whose vertices have types: each step runs all ready vertices of one type (walk.h). */
#include "script/walk.h"

bool vpps_batches_bound(const vpps_typed_graph *g, uint32_t *bound) {
    /* for each vertex: the most vertices of the current type on a path that ends at the vertex */
    uint32_t *chain = malloc((g->n + 1u) * sizeof *chain);
    if (!chain) return false;
    *bound = 0;
    for (uint32_t type = 0; type < g->n_types; type++) {
        uint32_t longest = 0;
        for (uint32_t v = 0; v < g->n; v++) {
            chain[v] = 0;
            for (uint32_t i = g->first[v]; i < g->first[v + 1]; i++)
                chain[v] = vpps_max_u32(chain[v], chain[g->sources[i]]);
            chain[v] += g->types[v] == type;
            longest = vpps_max_u32(longest, chain[v]);
        }
        *bound += longest;
    }
    free(chain);
    return true;
}

static void list_readers(vpps_walk *w) {
    const vpps_typed_graph *g = w->graph;
    for (uint32_t i = 0; i < g->first[g->n]; i++) w->first_reader[g->sources[i] + 2]++;
    for (uint32_t v = 2; v < g->n + 2; v++) w->first_reader[v] += w->first_reader[v - 1];
    for (uint32_t v = 0; v < g->n; v++) /* moves first_reader[v + 1] from the start to the end of vertex v's readers */
        for (uint32_t i = g->first[v]; i < g->first[v + 1]; i++) w->readers[w->first_reader[g->sources[i] + 1]++] = v;
}

bool vpps_walk_open(vpps_walk *w, const vpps_typed_graph *g) {
    const size_t n = g->n, t = g->n_types;
    *w = (vpps_walk){.graph = g,
                     .first_reader = calloc(n + 2, sizeof *w->first_reader),
                     .readers = malloc((g->first[n] + 1u) * sizeof *w->readers),
                     .waiting = malloc((n + 1) * sizeof *w->waiting),
                     .next = malloc((n + 1) * sizeof *w->next),
                     .heads = malloc((t + 1) * sizeof *w->heads),
                     .ready = malloc((t + 1) * sizeof *w->ready),
                     .left = malloc((t + 1) * sizeof *w->left),
                     .blockers = malloc((n * t + 1) * sizeof *w->blockers),
                     .unblocked = malloc((t + 1) * sizeof *w->unblocked),
                     .stack = malloc((n + 1) * sizeof *w->stack),
                     .words = malloc((2 * t + 1) * sizeof *w->words)};
    if (!w->first_reader || !w->readers || !w->waiting || !w->next || !w->heads || !w->ready || !w->left ||
        !w->blockers || !w->unblocked || !w->stack || !w->words)
        return false;
    list_readers(w);
    vpps_walk_restart(w);
    return true;
}

void vpps_walk_close(vpps_walk *w) {
    VPPS_FREE(w->first_reader, w->readers, w->waiting, w->next, w->heads, w->ready, w->left, w->blockers, w->unblocked,
              w->stack, w->words);
}

static void make_ready(vpps_walk *w, uint32_t v) {
    const uint32_t type = w->graph->types[v];
    w->next[v] = w->heads[type];
    w->heads[type] = v;
    w->ready[type]++;
}

void vpps_walk_restart(vpps_walk *w) {
    const vpps_typed_graph *g = w->graph;
    for (uint32_t t = 0; t < g->n_types; t++) {
        w->heads[t] = UINT32_MAX;
        w->ready[t] = w->left[t] = 0;
    }
    for (uint32_t v = 0; v < g->n; v++) {
        w->waiting[v] = g->first[v + 1] - g->first[v];
        w->left[g->types[v]]++;
        if (!w->waiting[v]) make_ready(w, v);
    }
    w->counted = false;
    w->n_left = g->n;
    w->n_batches = 0;
}

static uint32_t *blockers_of(const vpps_walk *w, uint32_t v) { return w->blockers + (size_t)v * w->graph->n_types; }

static bool has_run(const vpps_walk *w, uint32_t v) { return w->waiting[v] == UINT32_MAX; }

static void count_blockers(vpps_walk *w) {
    const vpps_typed_graph *g = w->graph;
    memset(w->unblocked, 0, g->n_types * sizeof *w->unblocked);
    for (uint32_t v = 0; v < g->n; v++) {
        if (has_run(w, v)) continue;
        uint32_t *of = blockers_of(w, v);
        memset(of, 0, g->n_types * sizeof *of);
        for (uint32_t i = g->first[v]; i < g->first[v + 1]; i++) {
            const uint32_t s = g->sources[i];
            if (has_run(w, s)) continue;
            const uint32_t *before = blockers_of(w, s);
            for (uint32_t t = 0; t < g->n_types; t++) of[t] += before[t] > 0 || g->types[s] == t;
        }
        w->unblocked[g->types[v]] += of[g->types[v]] == 0;
    }
    w->counted = true;
}

/* Updates `blockers` and `unblocked` after vertex `run`, of type `type`, has run. Vertices that depend on vertex `run` may become unblocked. */
static void unblock(vpps_walk *w, uint32_t type, uint32_t run) {
    const vpps_typed_graph *g = w->graph;
    uint32_t n = 0;
    w->unblocked[type]--;
    w->stack[n++] = run;
    while (n) {
        const uint32_t v = w->stack[--n];
        for (uint32_t i = w->first_reader[v]; i < w->first_reader[v + 1]; i++) {
            const uint32_t reader = w->readers[i];
            if (--blockers_of(w, reader)[type]) continue;
            if (g->types[reader] == type) {
                /* `reader` no longer depends on a vertex of its type; its own readers still depend on `reader` */
                w->unblocked[type]++;
            } else {
                w->stack[n++] = reader;
            }
        }
    }
}

double vpps_walk_ratio(vpps_walk *w, uint32_t type) {
    if (!w->counted) count_blockers(w);
    return (double)w->ready[type] / w->unblocked[type];
}

uint32_t vpps_walk_run(vpps_walk *w, uint32_t type, uint32_t *steps) {
    const uint32_t n = w->ready[type];
    uint32_t v = w->heads[type];
    w->heads[type] = UINT32_MAX;
    w->ready[type] = 0;
    w->left[type] -= n;
    w->n_left -= n;
    while (v != UINT32_MAX) {
        const uint32_t next = w->next[v];
        w->waiting[v] = UINT32_MAX;
        if (steps) steps[v] = w->n_batches;
        for (uint32_t i = w->first_reader[v]; i < w->first_reader[v + 1]; i++)
            if (!--w->waiting[w->readers[i]]) make_ready(w, w->readers[i]);
        if (w->counted) unblock(w, type, v);
        v = next;
    }
    w->n_batches++;
    return n;
}
