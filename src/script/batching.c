/* batching.c - chooses levels, compiled cells and groups (batching.h). The types of a batch's vertices and their reads form a graph, whose
 * strongly connected components run one after the other. A component without a cycle is one step, whatever the levels of its vertices:
 * classifiers, embeddings and everything else that is no recurrence run once, over all vertices. Inside a recurrence vertices run level by
 * level. */
#include "script/batching.h"

#include "script/heads.h"
#include "script/scopes.h"

/* The state while levels, compiled cells and groups of a batch are chosen. */
typedef struct chooser {
    const vpps_batch_needs *needs;
    vpps_types *all_types;
    const vpps_task_plan *machine;
    vpps_arena *arena;
    vpps_batching *out;
    vpps_batched_type *types;
} chooser;

/* For each type, counts the needed vertices, the members of their lists, and the levels. */
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

/* ---------------------------------------------------------------- groups */

static uint64_t matrix_elems(const vpps_model *model) {
    uint64_t n = 0;
    for (uint32_t p = 0; p < model->n_params; p++)
        if (model->params[p].kind == VPPS_MATRIX) n += vpps_param_elems(&model->params[p]);
    return n;
}

static uint32_t most_rows(const vpps_model *model) {
    uint32_t rows = 0;
    for (uint32_t p = 0; p < model->n_params; p++)
        if (model->params[p].kind == VPPS_MATRIX) rows = vpps_max_u32(rows, model->params[p].rows);
    return rows;
}

static vpps_batch_extent extent_of(const chooser *c) {
    const vpps_reading *r = c->needs->reading;
    vpps_batch_extent e = {
        .n_vps = c->machine->n_vps, .elems = (double)matrix_elems(r->g->model), .rows = most_rows(r->g->model)};
    double vertices = 0, levels = 1;
    for (uint32_t i = 0; i < r->n_types; i++) {
        const vpps_batched_type *t = &c->types[i];
        for (uint32_t d = 0; d < VPPS_AXES && t->cell; d++)
            e.flops += (double)t->items[d] * (double)vpps_cost_of_item(t, d);
        if (t->n_levels < 2) continue; /* the type is not in a recurrence */
        vertices += (double)t->items[0];
        if (t->n_levels > levels) levels = t->n_levels;
    }
    e.flops /= c->machine->n_vps;
    e.vectors = vertices / levels + 1;
    e.levels = (r->training ? 2 : 1) * levels;
    return e;
}

/* Returns the number of groups to use if a batch wants `groups`. Another number of groups needs other compiled cells. If a new compiled
 * cell needs a new kernel, a batch that wants fewer groups than recent batches takes their number, so that nothing is compiled for a data
 * set's last, smaller batch alone. After VPPS_FEW_BATCHES such batches in a row, the number falls to the most groups that one of them
 * wanted. */
static uint32_t usual_groups(vpps_usual_groups *usual, uint32_t groups) {
    if (groups >= usual->groups) {
        *usual = (vpps_usual_groups){.groups = groups};
    } else {
        usual->wanted = vpps_max_u32(usual->wanted, groups);
        if (++usual->fewer > VPPS_FEW_BATCHES) *usual = (vpps_usual_groups){.groups = usual->wanted};
    }
    return usual->groups;
}

/* Returns the number of groups that the device's rule chooses, at most `most`. */
static uint32_t best_groups(const chooser *c, uint32_t most) {
    if (most <= 1) return 1;
    const vpps_batch_extent e = extent_of(c);
    return c->machine->choose_groups(&e, most);
}

/* Chooses the number of groups: the requested number, if there are at least two components or the request insists on it. Else the device's
 * rule chooses among numbers that leave each group at least four components, for even loads: with fewer, Tree-LSTMs took as long in half as
 * many groups (predicted for a GPU, bench/results/predicted-sm_90). */
static bool choose_groups(const chooser *c, const vpps_batch_request *request) {
    enum { COMPONENTS_A_GROUP = 4 };
    vpps_batching *out = c->out;
    const vpps_task_plan *m = c->machine;
    const uint32_t asked = request->groups;
    vpps_usual_groups *usual = !asked && m->recompiles ? &out->usual : NULL;
    uint32_t groups = asked ? asked : best_groups(c, m->most_groups);
    if (groups == 1 && (!usual || usual->groups <= 1)) return true;
    if (!vpps_find_components(c->needs, c->arena, &out->components)) return false;
    const uint32_t n = out->components.n, most = n / COMPONENTS_A_GROUP;
    if (!asked && groups > most) groups = best_groups(c, most);
    if (usual) groups = usual_groups(usual, groups);
    if (asked && n < 2 && !request->keeps_groups) groups = 1;
    out->n_groups = groups;
    out->group_size = m->n_vps / groups;
    out->level_cost = (uint64_t)m->level_flops * out->group_size;
    return true;
}

/* ---------------------------------------------------------------- cells */

/* Returns whether scaled contributions would keep the values of a head's type in memory after its slice, because a vertex outside the
 * heads sums up its gradient only after all slices. The memory of all slices would then add up. */
static bool outlive_slices(const chooser *c, uint32_t t) {
    const vpps_batch_needs *n = c->needs;
    if (!c->out->heads[t]) return false;
    for (uint32_t u = 0; u < n->reading->n_types; u++)
        if (vpps_reads(n, t, u) && !c->out->heads[u] && n->types[u].cell.gradient_out) return true;
    return false;
}

static vpps_status compile(const chooser *c) {
    const vpps_reading *r = c->needs->reading;
    uint32_t n_cells = 0;
    for (uint32_t t = 0; t < r->n_types; t++) {
        if (!c->needs->types[t].needed) continue;
        vpps_type *type = r->types[t].type;
        vpps_cell_needs needs = c->needs->types[t].cell;
        needs.group = c->out->group_size;
        needs.rows = c->machine->rows;
        needs.scales = c->machine->scales && !outlive_slices(c, t);
        needs.in_place = c->machine->in_place;
        if (c->machine->recompiles) vpps_widen_needs(type, &needs);
        VPPS_TRY(vpps_compiled_for(c->all_types, r->g->model, type, &needs, &c->types[t].cell));
        c->types[t].cell_number = n_cells++;
    }
    return VPPS_OK;
}

vpps_status vpps_choose_batching(const vpps_batch_needs *n, vpps_types *types, const vpps_task_plan *machine,
                                 const vpps_batch_request *request, vpps_arena *arena, vpps_batching *out) {
    *out = (vpps_batching){.needs = n,
                           .n_groups = 1,
                           .group_size = machine->n_vps,
                           .n_vps = machine->n_vps,
                           .usual = types->usual[n->reading->training]};
    chooser c = {.needs = n, .all_types = types, .machine = machine, .arena = arena, .out = out};
    bool *heads;
    if (!VPPS_TAKE_ZEROS(arena, c.types, n->reading->n_types) || !VPPS_TAKE_ZEROS(arena, heads, n->reading->n_types))
        return vpps_no_memory();
    out->types = c.types;
    VPPS_TRY(vpps_choose_levels(n, request, arena, &out->levels));
    count_vertices(&c);
    vpps_find_heads(n, heads);
    out->heads = heads;
    VPPS_TRY(compile(&c));
    if (machine->n_vps > 1 && !choose_groups(&c, request)) return vpps_no_memory();
    return out->n_groups > 1 ? compile(&c) : VPPS_OK;
}

uint64_t vpps_kept_words(const vpps_batching *b, bool heads) {
    uint64_t words = 0;
    for (uint32_t i = 0; i < b->needs->reading->n_types; i++) {
        const vpps_batched_type *t = &b->types[i];
        for (uint32_t r = 0; r < VPPS_RECORDS && t->cell && b->heads[i] == heads; r++)
            words += t->items[vpps_axis_of(r)] * t->cell->kept_words[r];
    }
    return words;
}

uint64_t vpps_passed_words(const vpps_batching *b) {
    uint64_t words = vpps_kept_words(b, false) + vpps_kept_words(b, true);
    for (uint32_t i = 0; i < b->needs->reading->n_types; i++) {
        const vpps_batched_type *t = &b->types[i];
        for (uint32_t j = 0; t->cell && j < t->cell->n_contributions; j++) {
            const vpps_cell_value *x = &t->cell->values[t->cell->contributions[j].value];
            if (!t->cell->contributions[j].scaled) words += t->items[x->axis] * x->rows * x->cols;
        }
    }
    return words;
}
