/* many.c - calls that make many vertices (uses of a cell) or nodes (results of operations) at once, from arrays. */
#include "graph/graph.h"

uint32_t vpps_graph_vertices(const vpps_graph *g) { return g ? (uint32_t)g->n_vertices : 0; }

/* Puts "vertex i of n" in front of the graph's error message, since many vertices are made by one call. */
static vpps_vertex name_vertex(vpps_graph *g, uint32_t i, uint32_t n) {
    char message[VPPS_MESSAGE_BYTES];
    snprintf(message, sizeof message, "%s", g->message);
    snprintf(g->message, sizeof g->message, "vertex %u of %u: %.*s", i, n, (int)sizeof message - 64, message);
    vpps_restore_message(g->message);
    return VPPS_NO_VERTEX;
}

/* The arguments of the current vertex, collected from several of the caller's arrays. */
typedef struct row {
    uint32_t members[VPPS_CELL_LISTS];
    /* the vertex's children: first those that the cell reads by number (vpps_gather), then those that its lists read */
    vpps_vertex *children;
    const vpps_node **pull_lists;
} row;

static bool check_lists(vpps_graph *g, const vpps_applications *a, const vpps_cell_data *c) {
    for (uint32_t d = 0; d < a->n_lists; d++) {
        const vpps_members_of *l = &a->lists[d];
        const bool gathered = d < c->n_lists && c->gathered[d + 1];
        if (!l->first || l->first[0] || (gathered && l->first[a->n] && !l->children))
            return VPPS_GRAPH_REFUSE(g, VPPS_ARGUMENT, "apply_many %s: list %u: %s", c->name, d,
                                     !l->first     ? "first is NULL"
                                     : l->first[0] ? "first does not begin with 0"
                                                   : "children is NULL");
        for (uint32_t i = 0; i < a->n; i++) {
            if (l->first[i] <= l->first[i + 1]) continue;
            return VPPS_GRAPH_REFUSE(g, VPPS_ARGUMENT,
                                     "apply_many %s: list %u: first decreases from %u to %u at vertex %u", c->name, d,
                                     l->first[i], l->first[i + 1], i);
        }
    }
    return true;
}

static bool check_arrays(vpps_graph *g, const vpps_applications *a, const vpps_cell_data *c) {
    const struct {
        uint32_t n;
        const void *array;
        const char *name;
    } all[] = {{a->n_children, a->children, "children"},
               {a->n_pulls, a->pulls, "pulls"},
               {a->n_indices, a->indices, "indices"},
               {a->n_lists, a->lists, "lists"},
               {a->n_pull_lists, a->pull_lists, "pull_lists"}};
    for (size_t i = 0; i < VPPS_COUNT(all); i++) {
        if (!all[i].n || all[i].array) continue;
        return VPPS_GRAPH_REFUSE(g, VPPS_ARGUMENT, "apply_many %s: %s is NULL", c->name, all[i].name);
    }
    if (a->n_lists != c->n_lists || a->n_pull_lists != c->n_pull_lists)
        return VPPS_GRAPH_REFUSE(g, VPPS_ARGUMENT,
                                 "apply_many %s: members of %u lists, %u pulled lists; expected %u and %u", c->name,
                                 a->n_lists, a->n_pull_lists, c->n_lists, c->n_pull_lists);
    return true;
}

static const vpps_vertex *take_children(const vpps_applications *a, const vpps_cell_data *c, uint32_t i, row *r,
                                        uint32_t *n) {
    const vpps_vertex *numbered = a->n_children ? a->children + (size_t)i * a->n_children : NULL;
    uint64_t all = a->n_children;
    for (uint32_t d = 0; d < a->n_lists; d++) all += c->gathered[d + 1] ? r->members[d] : 0;
    if (all >= UINT32_MAX || !VPPS_RESERVE(r->children, all + 1)) return NULL;
    if (a->n_children) memcpy(r->children, numbered, a->n_children * sizeof *numbered);
    *n = a->n_children;
    for (uint32_t d = 0; d < a->n_lists; d++) {
        if (!c->gathered[d + 1] || !r->members[d]) continue;
        memcpy(r->children + *n, a->lists[d].children + a->lists[d].first[i], r->members[d] * sizeof *numbered);
        *n += r->members[d];
    }
    return r->children;
}

static vpps_vertex apply_row(vpps_graph *g, const vpps_applications *a, const vpps_cell_data *c, uint32_t i, row *r,
                             vpps_application *one) {
    if (a->n_indices) one->indices = a->indices + (size_t)i * a->n_indices;
    if (a->n_pulls) one->pulls = a->pulls + (size_t)i * a->n_pulls;
    if (!c->n_lists) {
        if (a->n_children) one->children = a->children + (size_t)i * a->n_children;
        return vpps_apply(g, one);
    }
    for (uint32_t d = 0; d < a->n_lists; d++) r->members[d] = a->lists[d].first[i + 1] - a->lists[d].first[i];
    one->children = take_children(a, c, i, r, &one->n_children);
    if (!one->children) return vpps_graph_fail(g, VPPS_MEMORY, "graph: out of memory");
    for (uint32_t k = 0; k < c->n_inputs; k++) {
        const vpps_cell_input *in = &c->inputs[k];
        if (in->pulled && in->axis)
            r->pull_lists[in->child] = a->pull_lists[in->child] + a->lists[in->axis - 1].first[i];
    }
    return vpps_apply(g, one);
}

static vpps_vertex apply_rows(vpps_graph *g, const vpps_applications *a, const vpps_cell_data *c, row *r) {
    const vpps_vertex first = (vpps_vertex)g->n_vertices;
    vpps_application one = {.size = sizeof one,
                            .cell = a->cell,
                            .n_children = a->n_children,
                            .n_pulls = a->n_pulls,
                            .n_indices = a->n_indices,
                            .n_pull_lists = a->n_pull_lists,
                            .pull_lists = r->pull_lists,
                            .n_lists = a->n_lists,
                            .list_members = r->members};
    for (uint32_t i = 0; i < a->n; i++)
        if (apply_row(g, a, c, i, r, &one) == VPPS_NO_VERTEX) return name_vertex(g, i, a->n);
    return first;
}

vpps_vertex vpps_apply_many(vpps_graph *g, const vpps_applications *a) {
    VPPS_NEED_OR(VPPS_NO_VERTEX, g);
    if (g->status != VPPS_OK) return VPPS_NO_VERTEX;
    vpps_applications own = {0};
    const vpps_status status = a ? vpps_take_struct(&own, sizeof own, sizeof own, a, "vpps_applications")
                                 : vpps_fail(VPPS_ARGUMENT, "a is NULL");
    if (status != VPPS_OK) return vpps_graph_fail(g, status, "apply_many: %s", vpps_error_message());
    a = &own;
    if (g->recording || a->cell >= g->model->n_cells)
        return vpps_graph_fail(g, g->recording ? VPPS_STATE : VPPS_ARGUMENT, "apply_many: %s",
                               g->recording ? "a cell is being recorded" : "the model has no such cell");
    const vpps_cell_data *c = vpps_cell_of(g, a->cell);
    if (!a->n) return (vpps_vertex)g->n_vertices;
    if (!check_arrays(g, a, c) || !check_lists(g, a, c)) return VPPS_NO_VERTEX;
    row r = {.pull_lists = malloc((a->n_pull_lists + 1u) * sizeof *r.pull_lists)};
    vpps_vertex first = VPPS_NO_VERTEX;
    if (r.pull_lists) {
        first = apply_rows(g, a, c, &r);
    } else {
        vpps_graph_fail(g, VPPS_MEMORY, "graph: out of memory");
    }
    VPPS_FREE_ARRAYS(r.children);
    free(r.pull_lists);
    return first;
}

vpps_node vpps_input_many(vpps_graph *g, uint32_t n, uint32_t rows, uint32_t cols, const float *data) {
    VPPS_NEED_OR(VPPS_NO_NODE, g);
    if (g->status != VPPS_OK) return VPPS_NO_NODE;
    const vpps_node first = g->n_nodes;
    if (n && !data) return vpps_graph_fail(g, VPPS_ARGUMENT, "input_many: data is NULL");
    for (uint32_t i = 0; i < n; i++)
        if (vpps_input(g, rows, cols, data + (size_t)i * rows * cols) == VPPS_NO_NODE) return VPPS_NO_NODE;
    return first;
}

static vpps_status outputs(vpps_graph *g, uint32_t n, const vpps_vertex *vertices, uint32_t k, vpps_node *out,
                           vpps_node (*of)(vpps_graph *, vpps_vertex, uint32_t)) {
    VPPS_NEED(g);
    VPPS_TRY(vpps_graph_status(g));
    if (!n) return VPPS_OK;
    VPPS_NEED(vertices, out);
    for (uint32_t i = 0; i < n; i++) {
        out[i] = of(g, vertices[i], k);
        if (out[i] == VPPS_NO_NODE) return vpps_graph_status(g);
    }
    return VPPS_OK;
}

vpps_status vpps_pushed_many(vpps_graph *g, uint32_t n, const vpps_vertex *vertices, uint32_t k, vpps_node *out) {
    return outputs(g, n, vertices, k, out, vpps_pushed);
}

vpps_status vpps_scattered_many(vpps_graph *g, uint32_t n, const vpps_vertex *vertices, uint32_t k, vpps_node *out) {
    return outputs(g, n, vertices, k, out, vpps_scattered);
}
