/* components.c - which vertices run in which wave, and in which group of VPs. Components, the inputs' graphs, need nothing
 * of each other: groups share them out, and waves take them in turn, so that what one wave keeps lies where the wave
 * before kept its own. */
#include "cell/print.h"
#include "script/work.h"

static uint32_t find_root(uint32_t *parent, uint32_t v) {
    while (parent[v] != v) v = parent[v] = parent[parent[v]];
    return v;
}

/* w->place becomes each vertex's parent: a component's root is its first vertex. */
static void join(vpps_batch_work *w) {
    uint32_t *parent = w->place;
    for (uint32_t r = 0; r < w->n_vertices; r++) parent[r] = r;
    for (size_t s = 0; s < w->n_sources; s++) {
        const vpps_read *x = &w->sources[s];
        if (!w->vertices[x->reader].needed) continue;
        const uint32_t a = find_root(parent, x->reader), b = find_root(parent, x->vertex);
        if (a != b) parent[a > b ? a : b] = a > b ? b : a;
    }
    w->n_components = 0;
    for (uint32_t r = 0; r < w->n_vertices; r++) w->n_components += w->vertices[r].needed && parent[r] == r;
}

/* ---------------------------------------------------------------- groups */

static uint64_t matrix_elems(const vpps_batch_work *w) {
    uint64_t n = 0;
    for (uint32_t p = 0; p < w->g->model->n_params; p++)
        if (w->g->model->params[p].kind == VPPS_MATRIX) n += vpps_param_elems(&w->g->model->params[p]);
    return n;
}

/* Groups of one VP where the matrices stay close to each VP anyhow and there are components enough to deal; else one group of
 * all. */
bool vpps_choose_groups(vpps_batch_work *w) {
    enum { COMPONENTS_A_VP = 4 };
    const uint32_t n_vps = w->machine->n_vps, asked = w->request->groups;
    w->n_groups = 1;
    w->n_components = 0; /* not counted yet */
    if (!VPPS_RESERVE(w->place, w->place_capacity, w->n_vertices + 1u)) return false;
    if (n_vps > 1 && (asked ? asked > 1 : matrix_elems(w) <= w->machine->close_elems)) {
        join(w);
        if (w->n_components >= (asked ? 2 : COMPONENTS_A_VP * n_vps)) w->n_groups = asked ? asked : n_vps;
    }
    w->group_size = n_vps / w->n_groups;
    return true;
}

/* ---------------------------------------------------------------- dealing */

typedef struct component {
    uint32_t root, depth;
    uint64_t cost;
} component;

/* Deep ones first: a wave goes through the levels of its deepest. */
static int deeper_first(const void *a, const void *b) {
    const component *x = a, *y = b;
    if (x->depth != y->depth) return x->depth < y->depth ? 1 : -1;
    return x->root < y->root ? -1 : x->root > y->root;
}

static uint64_t flops(const vpps_cell_cost *c, uint32_t domain) {
    return c->forward.products[domain] + c->forward.other[domain] + c->backward.products[domain] +
           c->backward.other[domain] + c->parameters.products[domain] + c->parameters.other[domain];
}

/* What the vertices of each type cost: at least something. */
static void set_costs(vpps_batch_work *w) {
    for (uint32_t t = 0; t < w->n_used; t++) {
        vpps_used_type *u = &w->used[t];
        if (!u->needed) continue;
        const vpps_cell_cost cost = vpps_cost_of_cell(w->g->model, u->cell);
        for (uint32_t d = 0; d < VPPS_DOMAINS; d++) u->cost[d] = flops(&cost, d);
        u->cost[0]++;
    }
}

/* The components by their roots, in the batch's order; sizes by the flops of their vertices' cells. */
static void measure(const vpps_batch_work *w, component *all, uint32_t *index) {
    uint32_t n = 0;
    for (uint32_t r = 0; r < w->n_vertices; r++) {
        const vpps_vertex_work *v = &w->vertices[r];
        if (!v->needed) continue;
        const uint32_t root = find_root(w->place, r); /* it is needed: all that a needed vertex reads is */
        if (root == r) {
            index[r] = n;
            all[n++] = (component){.root = r};
        }
        component *x = &all[index[root]];
        x->depth = vpps_max_u32(x->depth, v->depth);
        const vpps_used_type *u = &w->used[v->type];
        x->cost += u->cost[0];
        for (uint32_t l = 0; l < u->cell->n_lists; l++) x->cost += u->cost[l + 1] * w->rests[r].members[l];
    }
}

/* Components go to waves of equal cost, and in each to the group with the least so far. */
static void deal(const vpps_batch_work *w, component *all, uint64_t *load) {
    uint64_t total = 0, before = 0;
    for (uint32_t i = 0; i < w->n_components; i++) total += all[i].cost;
    if (w->n_waves > 1) qsort(all, w->n_components, sizeof *all, deeper_first);
    uint32_t last = 0;
    for (uint32_t i = 0; i < w->n_components; i++) {
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
        x->depth = wave * w->n_groups + best;
    }
}

bool vpps_deal_components(vpps_batch_work *w) {
    if (w->n_groups == 1 && w->n_waves == 1) {
        memset(w->place, 0, w->n_vertices * sizeof *w->place);
        w->n_components = 0;
        return true;
    }
    join(w);
    w->n_waves = vpps_min_u32(w->n_waves, w->n_components);
    component *all = calloc(w->n_components + 1u, sizeof *all);
    uint32_t *index = calloc(w->n_vertices + 1u, sizeof *index);
    uint64_t *load = calloc(w->n_groups, sizeof *load);
    const bool ok = all && index && load;
    if (ok) {
        set_costs(w);
        measure(w, all, index);
        deal(w, all, load);
        for (uint32_t i = 0; i < w->n_components; i++) index[all[i].root] = all[i].depth;
        for (uint32_t r = w->n_vertices; r-- > 0;) /* roots come first, so they are overwritten last */
            w->place[r] = w->vertices[r].needed ? index[find_root(w->place, r)] : 0;
    }
    free(all);
    free(index);
    free(load);
    return ok;
}
