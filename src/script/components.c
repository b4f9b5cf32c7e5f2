/* components.c - which vertices run in which wave, and in which group of VPs. Components, the inputs' graphs, need nothing
 * of each other: groups share them out, and waves take them in turn, so that what one wave keeps lies where the wave
 * before kept its own. */
#include "script/work.h"

/* Finds the batch's components, unless they are found already. Reads are joined from the last one on: then most vertices that are read
 * have no parent yet, and paths stay short. */
static bool find_components(const vpps_batch_work *w, vpps_components *c) {
    if (c->n) return true;
    if (!VPPS_RESERVE(c->of, c->of_capacity, w->n_vertices + 1u)) return false;
    uint32_t *parent = malloc((w->n_vertices + 1u) * sizeof *parent), *number = c->of;
    if (!parent) return false;
    for (uint32_t r = 0; r < w->n_vertices; r++) parent[r] = r;
    for (size_t s = w->n_sources; s-- > 0;) {
        const vpps_read *x = &w->sources[s];
        const uint32_t a = parent[x->reader], b = parent[x->vertex];
        if (a != b && w->needed[x->reader]) parent[vpps_find_root(parent, b)] = vpps_find_root(parent, a);
    }
    memset(number, 0xff, w->n_vertices * sizeof *number);
    for (uint32_t r = 0; r < w->n_vertices; r++) {
        if (!w->needed[r]) continue;
        const uint32_t root = vpps_find_root(parent, parent[r]); /* it is needed: all that a needed vertex reads is */
        if (number[root] == VPPS_NONE) number[root] = c->n++;
        number[r] = number[root];
    }
    free(parent);
    return true;
}

/* ---------------------------------------------------------------- groups */

/* How many vertices and members of lists there are of each type, and in how many levels. */
void vpps_count_vertices(vpps_batch_work *w) {
    for (uint32_t t = 0; t < w->n_used; t++) {
        memset(w->used[t].items, 0, sizeof w->used[t].items);
        w->used[t].n_levels = 0;
    }
    for (uint32_t r = 0; r < w->n_vertices; r++) {
        const vpps_vertex_work *v = &w->vertices[r];
        if (!w->needed[r]) continue;
        vpps_used_type *u = &w->used[v->type];
        u->items[0]++;
        u->n_levels = vpps_max_u32(u->n_levels, v->level + 1);
        for (uint32_t l = 0; l < u->n_lists; l++) u->items[l + 1] += w->rests[r].members[l];
    }
}

/* What a vertex of a type costs, or a member of a list: a vertex at least something. */
static uint64_t cost_of_item(const vpps_used_type *u, uint32_t domain) { return u->cell->flops[domain] + !domain; }

static uint64_t matrix_elems(const vpps_batch_work *w) {
    uint64_t n = 0;
    for (uint32_t p = 0; p < w->g->model->n_params; p++)
        if (w->g->model->params[p].kind == VPPS_MATRIX) n += vpps_param_elems(&w->g->model->params[p]);
    return n;
}

/* A batch, as far as its grouping is concerned. */
typedef struct extent {
    double flops;   /* of a VP */
    double vectors; /* of a level of the recurrences */
    double levels;  /* that all VPs of a group go through together, forward and backward */
    double elems;   /* of all matrices */
} extent;

static extent extent_of(const vpps_batch_work *w) {
    extent e = {.elems = (double)matrix_elems(w)};
    double vertices = 0, levels = 1;
    for (uint32_t t = 0; t < w->n_used; t++) {
        const vpps_used_type *u = &w->used[t];
        for (uint32_t d = 0; d < VPPS_DOMAINS && u->needed; d++)
            e.flops += (double)u->items[d] * (double)cost_of_item(u, d);
        if (u->n_levels < 2) continue; /* no recurrence */
        vertices += (double)u->items[0];
        if (u->n_levels > levels) levels = u->n_levels;
    }
    e.flops /= w->machine->n_vps;
    e.vectors = vertices / levels + 1;
    e.levels = (w->training ? 2 : 1) * levels;
    return e;
}

/* What a batch costs in groups of so many VPs: products, which are the slower the fewer vectors a matrix is fetched for, from
 * farther away where it does not stay close; and barriers. Measured on two cores: products of 1.3 vectors, where matrices
 * lie in L2, and of 5.6 beyond it, reach half the rate of many; a barrier takes as long as 1.5 million operations. */
static double cost_of_batch(const vpps_batch_work *w, const extent *e, uint32_t group_size) {
    const double close = 1.3, far = 5.6, barrier = 1.5e6;
    const double groups = (double)w->machine->n_vps / group_size,
                 excess = e->elems / group_size / (double)w->machine->close_elems - 1;
    const double half = close + (far - close) * (excess < 0 ? 0 : excess > 1 ? 1 : excess);
    return e->flops * (1 + half * groups / e->vectors) + (group_size > 1 ? e->levels * barrier : 0);
}

/* How many groups cost least. */
static uint32_t cheapest_groups(const vpps_batch_work *w) {
    const uint32_t n_vps = w->machine->n_vps;
    const extent e = extent_of(w);
    uint32_t best = 1;
    for (uint32_t groups = 2; groups <= n_vps; groups++)
        if (n_vps % groups == 0 && cost_of_batch(w, &e, n_vps / groups) < cost_of_batch(w, &e, n_vps / best))
            best = groups;
    return best;
}

/* As many groups as were asked for, if there are components to deal; else as many as cost least, if there are enough of them.
 * On a machine that tells how many groups keep the model close, more groups cost less: each VP reads fewer vectors, and waits for
 * fewer VPs, as long as the components are many enough to be dealt evenly. Four are: predicted for a GPU, Tree-LSTMs with fewer
 * inputs each took as long in half as many groups (bench/results/predicted-sm_90). Cells are those of one group. */
static bool choose_groups(vpps_batch_work *w) {
    enum { COMPONENTS_A_GROUP = 4 };
    const uint32_t n_vps = w->machine->n_vps, most = w->machine->most_groups, always = w->machine->groups,
                   asked = always ? always : w->request->groups;
    uint32_t groups = asked ? asked : most ? most : cheapest_groups(w);
    if (groups == 1) return true;
    if (!find_components(w, &w->components)) return false;
    while (!asked && most && groups > 1 && (n_vps % groups || w->components.n < COMPONENTS_A_GROUP * groups)) groups--;
    if (!always && w->components.n < (asked ? 2 : COMPONENTS_A_GROUP * groups)) return true;
    w->n_groups = groups;
    w->group_size = n_vps / groups;
    return true;
}

static vpps_status compile(vpps_batch_work *w) {
    for (uint32_t t = 0; t < w->n_used; t++) {
        vpps_used_type *u = &w->used[t];
        if (!u->needed) continue;
        u->needs.group = w->group_size;
        u->needs.row_unit = w->machine->row_unit;
        u->needs.least_rows = w->machine->least_rows;
        u->needs.columns = w->machine->columns;
        u->needs.split_elems = w->machine->split_elems;
        VPPS_TRY(vpps_compiled_for(w->types, w->g->model, u->type, &u->needs, &u->cell));
    }
    return VPPS_OK;
}

vpps_status vpps_choose_groups(vpps_batch_work *w) {
    w->n_groups = 1;
    w->group_size = w->machine->n_vps;
    w->components.n = 0;
    if (!VPPS_RESERVE(w->place, w->place_capacity, w->n_vertices + 1u)) return vpps_no_memory();
    VPPS_TRY(compile(w));
    if (w->machine->n_vps > 1 && !choose_groups(w)) return vpps_no_memory();
    return w->n_groups > 1 ? compile(w) : VPPS_OK;
}

/* ---------------------------------------------------------------- dealing */

typedef struct component {
    uint32_t number, depth, place;
    uint64_t cost;
} component;

/* Deep ones first: a wave goes through the levels of its deepest. */
static int deeper_first(const void *a, const void *b) {
    const component *x = a, *y = b;
    if (x->depth != y->depth) return x->depth < y->depth ? 1 : -1;
    return x->number < y->number ? -1 : x->number > y->number;
}

/* The components in the batch's order; sizes by the flops of their vertices' cells. */
static void measure(const vpps_batch_work *w, component *all) {
    for (uint32_t i = 0; i < w->components.n; i++) all[i].number = i;
    for (uint32_t r = 0; r < w->n_vertices; r++) {
        const vpps_vertex_work *v = &w->vertices[r];
        if (!w->needed[r]) continue;
        component *x = &all[w->components.of[r]];
        x->depth = vpps_max_u32(x->depth, v->depth);
        const vpps_used_type *u = &w->used[v->type];
        x->cost += cost_of_item(u, 0);
        for (uint32_t l = 0; l < u->cell->n_lists; l++) x->cost += cost_of_item(u, l + 1) * w->rests[r].members[l];
    }
}

/* Components go to waves of equal cost, and in each to the group with the least so far. */
static void deal(const vpps_batch_work *w, component *all, uint64_t *load) {
    uint64_t total = 0, before = 0;
    for (uint32_t i = 0; i < w->components.n; i++) total += all[i].cost;
    if (w->n_waves > 1) qsort(all, w->components.n, sizeof *all, deeper_first);
    uint32_t last = 0;
    for (uint32_t i = 0; i < w->components.n; i++) {
        component *x = &all[i];
        const uint32_t wave =
            vpps_min_u32((uint32_t)((before + x->cost / 2) * w->n_waves / (total + 1)), w->n_waves - 1);
        before += x->cost;
        if (wave != last) memset(load, 0, w->n_groups * sizeof *load);
        last = wave;
        uint32_t best = 0;
        for (uint32_t g = 1; g < w->n_groups; g++)
            if (load[g] < load[best]) best = g;
        load[best] += x->cost;
        x->place = wave * w->n_groups + best;
    }
}

bool vpps_deal_components(vpps_batch_work *w) {
    if (w->n_groups == 1 && w->n_waves == 1) {
        memset(w->place, 0, w->n_vertices * sizeof *w->place);
        return true;
    }
    if (!find_components(w, &w->components)) return false;
    w->n_waves = vpps_min_u32(w->n_waves, w->components.n);
    component *all = calloc(w->components.n + 1u, sizeof *all);
    uint32_t *places = calloc(w->components.n + 1u, sizeof *places);
    uint64_t *load = calloc(w->n_groups, sizeof *load);
    const bool ok = all && places && load;
    if (ok) {
        measure(w, all);
        deal(w, all, load);
        for (uint32_t i = 0; i < w->components.n; i++) places[all[i].number] = all[i].place;
        for (uint32_t r = 0; r < w->n_vertices; r++) w->place[r] = w->needed[r] ? places[w->components.of[r]] : 0;
    }
    free(all);
    free(places);
    free(load);
    return ok;
}
