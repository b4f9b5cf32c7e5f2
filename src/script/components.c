/* components.c - finds the connected components of a batch's vertices by union-find. */
#include "script/components.h"

/* Joins the components of a reader and of the vertex that it reads. Reads are visited from last to first, so that paths to roots stay short. */
static void join(uint32_t *parent, uint32_t reader, uint32_t vertex) {
    const uint32_t a = parent[reader], b = parent[vertex];
    uint32_t root = vpps_find_root(parent, a);
    if (b == vertex) {
        parent[b] = root;
    } else { /* the vertex is already in the component of another reader: unites both readers' components */
        const uint32_t others = vpps_find_root(parent, b);
        parent[root] = others;
        root = others;
    }
    parent[reader] = parent[vertex] = root;
}

bool vpps_find_components(const vpps_batch_needs *needs, vpps_arena *arena, vpps_components *out) {
    const vpps_reading *r = needs->reading;
    uint32_t *parent, *number;
    if (!VPPS_TAKE(arena, parent, r->n_vertices) || !VPPS_TAKE(arena, number, r->n_vertices)) return false;
    for (uint32_t v = 0; v < r->n_vertices; v++) parent[v] = v;
    for (size_t s = r->n_sources; s-- > 0;) {
        const vpps_read *x = &r->sources[s];
        if (parent[x->reader] != parent[x->vertex] && needs->needed[x->reader]) join(parent, x->reader, x->vertex);
    }
    for (uint32_t v = 0; v < r->n_vertices && r->shares; v++) {
        if (!r->lists[v].shared || !needs->needed[v]) continue;
        /* if vertex v - 1 reads the same list (repeats) and is needed, it has been joined with the list's nodes: joining v with v - 1 is enough */
        const bool joined = r->lists[v].repeats && needs->needed[v - 1];
        if (joined) join(parent, v, v - 1);
        for (vpps_reader x = vpps_reads_of(r, v, !joined); vpps_next_input(&x);)
            for (size_t s = x.at; s < x.end; s++) join(parent, v, r->sources[s].vertex);
    }
    *out = (vpps_components){.of = number};
    memset(number, 0xff, r->n_vertices * sizeof *number);
    for (uint32_t v = 0; v < r->n_vertices; v++) {
        if (!needs->needed[v]) continue;
        const uint32_t root = vpps_find_root(parent, parent[v]);
        if (number[root] == VPPS_NONE) number[root] = out->n++;
        number[v] = number[root];
    }
    return true;
}
