/* batching.c - chooses levels and groups of threads or CTAs (batching.h). The types of a batch's vertices form a graph, in which an edge means that
 * one type reads another. Its strongly connected components run one after the other. A component with a cycle is a recurrence, and its vertices run
 * level by level. A component without a cycle, such as a classifier or an embedding, runs once, over all its vertices. */
#include "script/batching.h"

#include "cell/flops.h"
#include "script/scopes.h"

typedef struct chooser {
    const vpps_batch_needs *needs;
    const vpps_target *target;
    vpps_arena *arena;
    vpps_batching *out;
    vpps_batched_type *types;
} chooser;

static void count_vertices(chooser *c) {
    const vpps_reading *r = c->needs->reading;
    for (uint32_t v = 0; v < r->n_vertices; v++) {
        if (!c->needs->needed[v]) continue;
        const uint32_t type = r->vertices[v].type;
        vpps_batched_type *t = &c->types[type];
        t->items[0]++;
        t->n_levels = vpps_max_u32(t->n_levels, c->out->levels[v] + 1);
        for (uint32_t l = 0; l < r->types[type].n_lists; l++) t->items[l + 1] += r->lists[v].members[l];
    }
}

/* Estimates the batch's flops, levels and matrix sizes. Backward is taken as twice forward's flops. */
static vpps_batch_extent extent_of(const chooser *c) {
    const vpps_reading *r = c->needs->reading;
    const vpps_model *model = r->g->model;
    vpps_batch_extent e = {.n_vps = c->target->n_vps, .streamed = c->target->streamed};
    double vertices = 0, levels = 1;
    for (uint32_t p = 0; p < model->n_params; p++) {
        if (model->params[p].kind != VPPS_MATRIX) continue;
        e.elems += (double)vpps_param_elems(&model->params[p]);
        if (model->params[p].rows > e.rows) e.rows = model->params[p].rows;
    }
    for (uint32_t i = 0; i < r->n_types; i++) {
        const vpps_batched_type *t = &c->types[i];
        vpps_cell_flops forward = {{0}, {0}};
        for (uint32_t v = 0; v < r->types[i].base->n_values; v++)
            vpps_add_value_flops(model, r->types[i].base, v, &forward);
        for (uint32_t d = 0; d < VPPS_AXES; d++)
            e.flops += (double)(t->items[d] * (forward.products[d] + forward.other[d] + !d)) * (r->training ? 3 : 1);
        if (t->n_levels < 2) continue; /* cells outside recurrences run once, not level by level */
        vertices += (double)t->items[0];
        if (t->n_levels > levels) levels = t->n_levels;
    }
    e.flops /= c->target->n_vps;
    e.vectors = vertices / levels + 1;
    e.levels = (r->training ? 2 : 1) * levels;
    return e;
}

static uint32_t best_groups(const chooser *c, uint32_t most) {
    if (most <= 1) return 1;
    const vpps_batch_extent e = extent_of(c);
    return c->target->choose_groups(&e, most);
}

/* Chooses the number of groups into which the threads or CTAs are divided. A requested number is used, except that a
 * batch of one connected component runs in one group unless keeps_groups is set. Otherwise the device's rule chooses a
 * number that leaves each group at least four components, so that loads are even. With fewer components a group,
 * Tree-LSTMs were no slower in half as many groups (predicted for a GPU, bench/results/predicted-sm_90). */
static bool choose_groups(const chooser *c, const vpps_batch_request *request) {
    enum { COMPONENTS_A_GROUP = 4 };
    vpps_batching *out = c->out;
    const vpps_target *m = c->target;
    const uint32_t asked = request->groups;
    vpps_usual_groups *usual = !asked && m->most_cells ? &out->usual : NULL;
    uint32_t groups = asked ? asked : best_groups(c, m->most_groups);
    if (groups == 1 && (!usual || usual->groups <= 1)) return true;
    if (!vpps_find_components(c->needs, c->arena, &out->components)) return false;
    const uint32_t n = out->components.n, most = n / COMPONENTS_A_GROUP;
    if (!asked && groups > most) groups = best_groups(c, most);
    if (usual) groups = (*usual = vpps_usual_after(*usual, groups)).groups;
    if (asked && n < 2 && !request->keeps_groups) groups = 1;
    out->n_groups = groups;
    out->group_size = m->n_vps / groups;
    out->level_cost = (uint64_t)m->level_flops * out->group_size;
    return true;
}

/* Returns whether vertices of type t may be classifier heads, which only the loss and other heads read, and which run
 * part after part (slices) to save memory. Vertices of a recurrence run level by level and may not. Nor may vertices
 * that read nothing (inputs): heads that read each other share a slice, and all classifiers may read one input. */
static bool may_be_head(const vpps_batch_needs *n, uint32_t t) {
    bool reads = false;
    for (uint32_t u = 0; u < n->reading->n_types; u++) reads |= vpps_reads(n, t, u);
    return reads && n->types[t].needed && !vpps_reads(n, t, t) && vpps_types_of_scc(n, n->types[t].scc) == 1;
}

/* Sets heads[t], false on entry, to true for each type t that is a head: a type, such as a classifier, that only the loss and other heads
 * read. With many classes, heads keep more words for backward than all other vertices. Heads hardly read each other, so parts (slices) of
 * them can run one after the other in the same memory. */
static void find_heads(const vpps_batch_needs *n, bool *heads) {
    const uint32_t n_types = n->reading->n_types;
    /* visits readers first: a component of cells or ops has a higher number than the components that it reads */
    for (uint32_t scc = n->n_sccs; scc-- > 0;) {
        for (uint32_t t = 0; t < n_types; t++) {
            if (n->types[t].scc != scc) continue;
            bool head = may_be_head(n, t);
            for (uint32_t u = 0; u < n_types && head; u++) head = heads[u] || !vpps_reads(n, u, t);
            heads[t] = head;
        }
    }
}

vpps_status vpps_choose_batching(const vpps_batch_needs *n, const vpps_history *history, const vpps_target *target,
                                 const vpps_batch_request *request, vpps_arena *arena, vpps_batching *out) {
    *out = (vpps_batching){.needs = n,
                           .n_groups = 1,
                           .group_size = target->n_vps,
                           .n_vps = target->n_vps,
                           .usual = history->usual[n->reading->training]};
    chooser c = {.needs = n, .target = target, .arena = arena, .out = out};
    bool *heads;
    if (!VPPS_TAKE_ZEROS(arena, c.types, n->reading->n_types) || !VPPS_TAKE_ZEROS(arena, heads, n->reading->n_types))
        return vpps_no_memory();
    out->types = c.types;
    VPPS_TRY(vpps_choose_levels(n, request, arena, &out->levels));
    count_vertices(&c);
    find_heads(n, heads);
    out->heads = heads;
    return target->n_vps == 1 || choose_groups(&c, request) ? VPPS_OK : vpps_no_memory();
}

uint64_t vpps_kept_words(const vpps_batching *b, bool heads) {
    uint64_t words = 0;
    for (uint32_t i = 0; i < b->needs->reading->n_types; i++)
        for (uint32_t r = 0; r < VPPS_RECORDS && b->cells[i] && b->heads[i] == heads; r++)
            words += b->types[i].items[vpps_axis_of(r)] * b->cells[i]->kept_words[r];
    return words;
}

uint64_t vpps_passed_words(const vpps_batching *b) {
    uint64_t words = vpps_kept_words(b, false) + vpps_kept_words(b, true);
    for (uint32_t i = 0; i < b->needs->reading->n_types; i++) {
        const vpps_compiled_cell *c = b->cells[i];
        for (uint32_t j = 0; c && j < c->n_contributions; j++) {
            const vpps_cell_value *x = &c->values[c->contributions[j].value];
            if (!c->contributions[j].scaled) words += b->types[i].items[x->axis] * x->rows * x->cols;
        }
    }
    return words;
}
