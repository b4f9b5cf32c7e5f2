/* deal.c - assigns each vertex to a wave (part of the batch), a group of threads or CTAs, and a slice of the wave. */
#include "script/deal.h"

typedef struct component {
    uint32_t number, depth, place;
    uint64_t cost, rank; /* cost: flops of its vertices; rank: equals cost if all components are equally deep, else 0 */
} component;

/* Orders connected components (sets of vertices joined by reads) for qsort, the deepest first: a wave (part of the batch) should have
 * components of similar depth, since it needs as many levels as its deepest has. If all are equally deep, the costliest comes first. */
static int deeper_first(const void *a, const void *b) {
    const component *x = a, *y = b;
    if (x->depth != y->depth) return x->depth < y->depth ? 1 : -1;
    if (x->rank != y->rank) return x->rank < y->rank ? 1 : -1;
    return x->number < y->number ? -1 : x->number > y->number;
}

/* Finds the depth and the cost of each connected component of the graph; the cost is the flops of its vertices. */
static void measure(const vpps_batching *b, const vpps_components *c, component *all) {
    const vpps_reading *r = b->needs->reading;
    for (uint32_t i = 0; i < c->n; i++) all[i].number = i;
    for (uint32_t v = 0; v < r->n_vertices; v++) {
        if (!b->needs->needed[v]) continue;
        component *x = &all[c->of[v]];
        x->depth = vpps_max_u32(x->depth, r->vertices[v].depth);
        const vpps_compiled_cell *cell = b->cells[r->vertices[v].type];
        x->cost += vpps_cost_of_item(cell, 0);
        for (uint32_t l = 0; l < cell->n_lists; l++) x->cost += vpps_cost_of_item(cell, l + 1) * r->lists[v].members[l];
    }
}

/* Assigns connected components to waves (parts of the batch that run in turn) of equal cost, and in each wave to the group
 * of threads or CTAs whose sum of costs, `load`, is least so far. `load`: n_groups zeros on entry. level_cost: cost of a
 * level (step of the wave); added to a group's load once for each level of its first component, which is its deepest. */
static void deal_components(component *all, uint32_t n, uint32_t n_waves, uint32_t n_groups, uint64_t level_cost,
                            uint64_t *load) {
    uint64_t total = 0, before = 0;
    bool alike = level_cost > 0;
    for (uint32_t i = 0; i < n; i++) total += all[i].cost, alike &= all[i].depth == all->depth;
    for (uint32_t i = 0; i < n; i++) all[i].rank = alike ? all[i].cost : 0;
    if (n_waves > 1 || level_cost) qsort(all, n, sizeof *all, deeper_first);
    uint32_t last = 0;
    for (uint32_t i = 0; i < n; i++) {
        component *x = &all[i];
        const uint32_t wave = vpps_min_u32((uint32_t)((before + x->cost / 2) * n_waves / (total + 1)), n_waves - 1);
        before += x->cost;
        if (wave != last) memset(load, 0, n_groups * sizeof *load);
        last = wave;
        uint32_t best = 0;
        for (uint32_t g = 1; g < n_groups; g++)
            if (load[g] < load[best]) best = g;
        if (!load[best]) load[best] = x->depth * level_cost;
        load[best] += x->cost;
        x->place = wave * n_groups + best;
    }
}

bool vpps_deal_components(const vpps_batching *b, vpps_arena *arena, uint32_t *n_waves, uint32_t *place) {
    const vpps_batch_needs *needs = b->needs;
    const uint32_t n_vertices = needs->reading->n_vertices;
    if (b->n_groups == 1 && *n_waves == 1) {
        memset(place, 0, n_vertices * sizeof *place);
        return true;
    }
    vpps_components c = b->components;
    if (!c.n && !vpps_find_components(needs, arena, &c)) return false;
    *n_waves = vpps_min_u32(*n_waves, c.n);
    component *all;
    uint32_t *places;
    uint64_t *load;
    if (!VPPS_TAKE_ZEROS(arena, all, c.n) || !VPPS_TAKE(arena, places, c.n) ||
        !VPPS_TAKE_ZEROS(arena, load, b->n_groups))
        return false;
    measure(b, &c, all);
    deal_components(all, c.n, *n_waves, b->n_groups, b->level_cost, load);
    for (uint32_t i = 0; i < c.n; i++) places[all[i].number] = all[i].place;
    for (uint32_t v = 0; v < n_vertices; v++) place[v] = needs->needed[v] ? places[c.of[v]] : 0;
    return true;
}

static bool is_head(const vpps_batching *b, uint32_t vertex) {
    return b->needs->needed[vertex] && b->heads[b->needs->reading->vertices[vertex].type];
}

/* Returns the number of words that a vertex keeps for backward; at least one. */
static uint64_t words_of(const vpps_batching *b, uint32_t vertex) {
    const vpps_reading *r = b->needs->reading;
    const vpps_compiled_cell *c = b->cells[r->vertices[vertex].type];
    uint64_t words = 1;
    for (uint32_t i = 0; i < VPPS_RECORDS; i++) {
        const uint32_t d = vpps_axis_of(i);
        words += (uint64_t)c->kept_words[i] * (d && c->kept_words[i] ? r->lists[vertex].members[d - 1] : 1);
    }
    return words;
}

/* Classifiers (vertices that only the loss reads) of one wave (part of the batch) in one group of threads or CTAs. */
typedef struct share {
    /* words: memory, in words, that the classifiers keep for backward. before: part of it whose classifiers are already
     * assigned to a slice (a set of classifiers; sets run in turn and use the same memory) */
    uint64_t words, before;
    uint32_t n; /* number of sets of vertices that read each other, which must stay together */
} share;

/* Classifier heads are vertices that only the loss or other heads read. Sets first[v] of head v to the first head connected to it. */
static void join(const vpps_batching *b, uint32_t *first) {
    const vpps_reading *r = b->needs->reading;
    for (uint32_t v = 0; v < r->n_vertices; v++) first[v] = v;
    for (uint32_t v = 0; v < r->n_vertices; v++) {
        if (!is_head(b, v)) continue;
        for (vpps_reader x = vpps_reads_of(r, v, true); vpps_next_input(&x);)
            for (size_t s = x.at; s < x.end; s++) {
                if (!is_head(b, r->sources[s].vertex)) continue;
                const uint32_t i = vpps_find_root(first, v), j = vpps_find_root(first, r->sources[s].vertex);
                if (i != j) first[i > j ? i : j] = i > j ? j : i;
            }
    }
    for (uint32_t v = 0; v < r->n_vertices; v++) first[v] = vpps_find_root(first, v);
}

/* Assigns classifiers (vertices that only the loss reads) to slices of their wave (part of the batch), which run in turn, in the
 * batch's order; assigns all other vertices to their wave's last slice. `words`, `shares`: zeros on entry. */
static void deal_heads(const vpps_batching *b, const uint32_t *first, uint64_t *words, share *shares,
                       uint32_t *n_slices, uint32_t *place) {
    const uint32_t n_vertices = b->needs->reading->n_vertices;
    uint32_t most = 1;
    for (uint32_t v = 0; v < n_vertices; v++)
        if (is_head(b, v)) words[first[v]] += words_of(b, v);
    for (uint32_t v = 0; v < n_vertices; v++) {
        if (!words[v]) continue;
        share *s = &shares[place[v]];
        s->words += words[v];
        most = vpps_max_u32(most, ++s->n);
    }
    *n_slices = vpps_min_u32(*n_slices, most);
    for (uint32_t v = 0; v < n_vertices; v++) {
        const uint32_t wave = place[v] / b->n_groups, group = place[v] % b->n_groups;
        uint32_t slice = *n_slices - 1;
        if (words[v]) {
            share *s = &shares[place[v]];
            slice = (uint32_t)((s->before + words[v] / 2) * *n_slices / (s->words + 1));
            s->before += words[v];
        }
        if (is_head(b, v) && first[v] != v) {
            /* connected classifier vertices (only the loss reads their results) share a slice (part of the batch) */
            place[v] = place[first[v]];
        } else {
            place[v] = (wave * *n_slices + slice) * b->n_groups + group;
        }
    }
}

bool vpps_deal_heads(const vpps_batching *b, vpps_arena *arena, uint32_t n_waves, uint32_t *n_slices, uint32_t *place) {
    const uint32_t n_vertices = b->needs->reading->n_vertices;
    uint32_t *first;
    uint64_t *words;
    share *shares;
    if (*n_slices == 1) return true;
    if (!VPPS_TAKE(arena, first, n_vertices) || !VPPS_TAKE_ZEROS(arena, words, n_vertices) ||
        !VPPS_TAKE_ZEROS(arena, shares, (size_t)n_waves * b->n_groups))
        return false;
    join(b, first);
    deal_heads(b, first, words, shares, n_slices, place);
    return true;
}
