/* scopes.c - makes the graphs that batching policies see, and chooses levels (vertices that run together) by a policy. */
#include "script/scopes.h"

/* ---------------------------------------------------------------- making a scope */

typedef struct maker {
    const vpps_reading *r;
    vpps_scope *out;
    uint32_t *numbers; /* for each vertex of the batch: its number in out->graph; VPPS_NONE: it is not in that graph */
    uint32_t *of_type; /* for each type (cell) of the batch: its number in out->graph; VPPS_NONE: not in that graph */
} maker;

static void add_type(maker *m, uint32_t type) {
    vpps_scope *s = m->out;
    uint32_t *number = &m->of_type[type];
    if (*number != VPPS_NONE) return;
    *number = s->graph.n_types++;
    s->types[*number] = type;
}

static const char *type_name(const vpps_reading *r, uint32_t type) { return r->types[type].base->name; }

/* Returns whether type a precedes type b in the order by name; types of one name (an op with several shapes) are ordered by index. */
static bool comes_before(const vpps_reading *r, uint32_t a, uint32_t b) {
    const int order = strcmp(type_name(r, a), type_name(r, b));
    return order ? order < 0 : r->types[a].index < r->types[b].index;
}

/* Sorts the cells and ops by name, so that they have the same order in every batch. */
static void sort_types(maker *m) {
    vpps_scope *s = m->out;
    for (uint32_t t = 1; t < s->graph.n_types; t++) {
        const uint32_t type = s->types[t];
        uint32_t at = t;
        for (; at && comes_before(m->r, type, s->types[at - 1]); at--) s->types[at] = s->types[at - 1];
        s->types[at] = type;
    }
    for (uint32_t t = 0; t < s->graph.n_types; t++) m->of_type[s->types[t]] = t;
}

/* Adds a vertex, and what it reads, to the graph from which a batching policy finds the order of vertices. */
static void add_vertex(maker *m, uint32_t vertex) {
    vpps_typed_graph *g = &m->out->graph;
    const uint32_t v = m->numbers[vertex] = g->n++;
    g->types[v] = m->r->vertices[vertex].type; /* its number in the batch; close_maker replaces it by that in graph g */
    add_type(m, g->types[v]);
    m->out->vertices[v] = vertex;
    g->first[g->n] = g->first[v];
    for (vpps_reader x = vpps_reads_of(m->r, vertex, true); vpps_next_input(&x);)
        for (size_t s = x.at; s < x.end; s++) {
            const uint32_t source = m->numbers[m->r->sources[s].vertex];
            if (source != VPPS_NONE) g->sources[g->first[g->n]++] = source;
        }
}

static bool open_maker(maker *m, const vpps_reading *r, vpps_arena *arena, vpps_scope *out) {
    const size_t n = (size_t)r->n_vertices + 1, n_types = r->n_types;
    *out = (vpps_scope){0};
    *m = (maker){.r = r, .out = out};
    if (!VPPS_TAKE(arena, out->vertices, n) || !VPPS_TAKE(arena, out->types, n_types) ||
        !VPPS_TAKE(arena, out->graph.types, n) || !VPPS_TAKE(arena, out->graph.first, n) ||
        !VPPS_TAKE(arena, out->graph.sources, r->n_reads) || !VPPS_TAKE(arena, m->numbers, n) ||
        !VPPS_TAKE(arena, m->of_type, n_types))
        return false;
    memset(m->numbers, 0xff, n * sizeof *m->numbers);
    memset(m->of_type, 0xff, n_types * sizeof *m->of_type);
    out->graph.first[0] = 0;
    return true;
}

/* Makes out->kind, by which the policy (which type runs next) learned for such graphs is found: the names of the vertex types (cells), and
 * a key that also tells which type's vertices read which type's. Graphs are alike if their keys are equal. */
static bool describe(maker *m, vpps_arena *arena) {
    vpps_scope *s = m->out;
    const vpps_typed_graph *g = &s->graph;
    size_t length = 0;
    for (uint32_t t = 0; t < g->n_types; t++) length += strlen(type_name(m->r, s->types[t])) + 3;
    const size_t edges = (size_t)g->n_types * g->n_types;
    if (!VPPS_TAKE_ZEROS(arena, s->names, length + 1) || !VPPS_TAKE_ZEROS(arena, s->key, length + edges)) return false;
    size_t at = 0;
    for (uint32_t t = 0; t < g->n_types; t++)
        at += (size_t)snprintf(s->names + at, length + 1 - at, "%s%s", t ? " | " : "", type_name(m->r, s->types[t]));
    memcpy(s->key, s->names, length);
    for (uint32_t v = 0; v < g->n; v++)
        for (uint32_t i = g->first[v]; i < g->first[v + 1]; i++)
            s->key[length + (size_t)g->types[v] * g->n_types + g->types[g->sources[i]]] = 1;
    s->kind = (vpps_graph_kind){s->names, s->key, length + edges};
    return true;
}

static vpps_status close_maker(maker *m, vpps_arena *arena) {
    vpps_typed_graph *g = &m->out->graph;
    sort_types(m);
    for (uint32_t v = 0; v < g->n; v++) g->types[v] = m->of_type[g->types[v]];
    return describe(m, arena) ? VPPS_OK : vpps_no_memory();
}

vpps_status vpps_scope_of_scc(const vpps_batch_needs *n, uint32_t scc, vpps_arena *arena, vpps_scope *out) {
    const vpps_reading *r = n->reading;
    maker m;
    if (!open_maker(&m, r, arena, out)) return vpps_no_memory();
    for (uint32_t v = 0; v < r->n_vertices; v++)
        if (n->needed[v] && n->types[r->vertices[v].type].scc == scc) add_vertex(&m, v);
    return close_maker(&m, arena);
}

/* ---------------------------------------------------------------- levels */

/* Gives each step of a policy (vertices that run together) a level above the levels of all steps that it reads; steps may share a level. */
static bool level_steps(const vpps_scope *s, const uint32_t *steps, uint32_t n_steps, vpps_arena *arena,
                        uint32_t *levels) {
    const vpps_typed_graph *g = &s->graph;
    uint32_t *of_step, *starts, *order;
    if (!VPPS_TAKE_ZEROS(arena, of_step, n_steps) || !VPPS_TAKE_ZEROS(arena, starts, n_steps + (size_t)2) ||
        !VPPS_TAKE(arena, order, g->n))
        return false;
    for (uint32_t v = 0; v < g->n; v++) starts[steps[v] + 2]++;
    for (uint32_t i = 2; i < n_steps + 2; i++) starts[i] += starts[i - 1];
    for (uint32_t v = 0; v < g->n; v++) order[starts[steps[v] + 1]++] = v;
    for (uint32_t k = 0, i = 0; k < n_steps; k++) {
        const uint32_t first = i;
        for (; i < g->n && steps[order[i]] == k; i++) {
            const uint32_t v = order[i];
            for (uint32_t e = g->first[v]; e < g->first[v + 1]; e++)
                of_step[k] = vpps_max_u32(of_step[k], of_step[steps[g->sources[e]]] + 1);
        }
        for (uint32_t p = first; p < i; p++) levels[s->vertices[order[p]]] = of_step[k];
    }
    return true;
}

static vpps_status level_scc(const vpps_batch_needs *needs, const vpps_batch_request *request, uint32_t scc,
                             vpps_arena *arena, uint32_t *levels) {
    const vpps_policy *policy = request->policy;
    vpps_scope s;
    VPPS_TRY(vpps_scope_of_scc(needs, scc, arena, &s));
    const vpps_automaton *a = NULL;
    if (policy->learned && request->learned) a = vpps_learned_for(request->learned, &s.graph, &s.kind);
    uint32_t n, *steps;
    const bool ok = VPPS_TAKE(arena, steps, s.graph.n) && (a || !policy->learned) &&
                    vpps_policy_choose(policy, &s.graph, a, steps, &n) && level_steps(&s, steps, n, arena, levels);
    return ok ? VPPS_OK : vpps_no_memory();
}

vpps_status vpps_choose_levels(const vpps_batch_needs *n, const vpps_batch_request *request, vpps_arena *arena,
                               const uint32_t **out) {
    const size_t n_vertices = n->reading->n_vertices;
    uint32_t *levels;
    *out = n->levels;
    /* the default batching policy needs no work: a vertex's level is its depth */
    if (!request->policy || request->policy == vpps_policies) return VPPS_OK;
    if (!VPPS_TAKE(arena, levels, n_vertices)) return vpps_no_memory();
    memcpy(levels, n->levels, n_vertices * sizeof *levels);
    for (uint32_t scc = 0; scc < n->n_sccs; scc++) {
        const vpps_arena_mark mark = vpps_arena_here(arena);
        if (vpps_types_of_scc(n, scc) > 1) VPPS_TRY(level_scc(n, request, scc, arena, levels));
        vpps_arena_back_to(arena, mark);
    }
    *out = levels;
    return VPPS_OK;
}
