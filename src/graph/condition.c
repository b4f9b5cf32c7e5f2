/* condition.c - control flow as data: cells with a condition; from these, loops and case distinctions, like while and case..of in ccv's NNC.
 *
 * At a vertex where the condition holds, an output is the value x that the cell computes, elsewhere a given value `otherwise`. Ordinary
 * operations choose between the two, so a device may run all vertices, and gradients follow the branch that was taken. A device may instead
 * test the condition first, skip the cell where it does not hold, and copy `otherwise`. */
#include "graph/graph.h"

static vpps_status need_recorder(vpps_graph *g, const char *what) {
    VPPS_TRY(vpps_graph_status(g));
    if (g->recording) return VPPS_OK;
    return vpps_fail(VPPS_STATE, "%s: no cell is being recorded; call vpps_cell_begin first", what);
}

/* Checks that x may be the condition of the cell being recorded, which decides at each vertex whether the cell computes
 * its outputs: x must be a scalar input (of a child or from the caller), and the cell must have no outputs yet. */
static vpps_status begin(vpps_graph *g, const char *what, vpps_node x) {
    VPPS_NEED(g);
    VPPS_TRY(need_recorder(g, what));
    const vpps_cell_data *c = g->recording;
    vpps_signature s;
    uint32_t axis;
    if (!vpps_node_signature(g, what, x, &s, &axis)) return vpps_graph_status(g);
    if (c->condition.there || c->n_scattered || c->n_pushed) {
        vpps_graph_fail(g, VPPS_STATE, "%s: cell %s has %s already; expected one condition, before all outputs", what,
                        c->name, c->condition.there ? "a condition" : "outputs");
    } else if (!(x & VPPS_CELL_INPUT) || axis || s.rows != 1 || s.cols != 1) {
        vpps_graph_fail(g, VPPS_SHAPE, "%s: a node of %u x %u in cell %s; expected a scalar that it gathers or pulls",
                        what, s.rows, s.cols, c->name);
    }
    return vpps_graph_status(g);
}

vpps_status vpps_condition(vpps_graph *g, vpps_node condition) {
    VPPS_TRY(begin(g, "condition", condition));
    g->recording->condition = (vpps_condition_data){.there = true, .input = condition & ~VPPS_CELL_INPUT};
    g->recording->condition_node = condition;
    return VPPS_OK;
}

vpps_status vpps_condition_is(vpps_graph *g, vpps_node which, uint32_t value) {
    VPPS_TRY(begin(g, "condition_is", which));
    if (value >= VPPS_MANY_ELEMS)
        return VPPS_GRAPH_STATUS(g, VPPS_ARGUMENT, "condition_is: %u in cell %s; expected less than 2^22", value,
                                 g->recording->name);
    const vpps_node off = vpps_abs(g, vpps_sub(g, which, vpps_constant(g, 1, 1, (float)value)));
    const vpps_node holds = vpps_sub(g, vpps_constant(g, 1, 1, 0.5f), off);
    VPPS_TRY(vpps_graph_status(g));
    g->recording->condition = (vpps_condition_data){true, true, which & ~VPPS_CELL_INPUT, (float)value};
    g->recording->condition_node = holds;
    return VPPS_OK;
}

vpps_node vpps_select(vpps_graph *g, vpps_node condition, vpps_node a, vpps_node b) {
    return vpps_add(g, vpps_when(g, a, condition), vpps_unless(g, b, condition));
}

vpps_status vpps_scatter_else(vpps_graph *g, vpps_node x, vpps_node otherwise) {
    VPPS_NEED(g);
    VPPS_TRY(need_recorder(g, "scatter_else"));
    vpps_cell_data *c = g->recording;
    const bool zeros = otherwise == VPPS_NO_NODE;
    vpps_signature s;
    uint32_t axis;
    if (!c->condition.there)
        return VPPS_GRAPH_STATUS(g, VPPS_STATE, "scatter_else: cell %s has no condition; call vpps_condition first",
                                 c->name);
    if (!zeros && !vpps_node_signature(g, "scatter_else", otherwise, &s, &axis)) return vpps_graph_status(g);
    if (!zeros && (!(otherwise & VPPS_CELL_INPUT) || axis))
        return VPPS_GRAPH_STATUS(
            g, VPPS_SHAPE, "scatter_else: in cell %s; expected a value that it gathers or pulls otherwise", c->name);
    const vpps_node y = zeros ? vpps_when(g, x, c->condition_node) : vpps_select(g, c->condition_node, x, otherwise);
    VPPS_TRY(vpps_graph_status(g));
    if (!VPPS_RESERVE(c->otherwise, c->n_scattered + 1u))
        return VPPS_GRAPH_STATUS(g, VPPS_MEMORY, "cell %s: out of memory", c->name);
    c->otherwise[c->n_scattered] = zeros ? VPPS_NO_NODE : otherwise & ~VPPS_CELL_INPUT;
    return vpps_add_scattered(g, y);
}

static vpps_vertex fail(vpps_graph *g, vpps_status status, const char *message) {
    return vpps_graph_fail(g, status, "%s", message);
}

static const vpps_cell_data *conditional(vpps_graph *g, const char *what, const vpps_application *a) {
    if (g->status != VPPS_OK) return NULL;
    if (a->cell < g->model->n_cells && vpps_cell_of(g, a->cell)->condition.there) return vpps_cell_of(g, a->cell);
    vpps_graph_fail(g, VPPS_ARGUMENT, "%s: cell %u; expected a cell of the model with a condition", what, a->cell);
    return NULL;
}

vpps_vertex vpps_while(vpps_graph *g, const vpps_application *a, uint32_t limit, vpps_vertex *turns) {
    VPPS_NEED_OR(VPPS_NO_VERTEX, g);
    vpps_application turn;
    if (!vpps_take_application(g, "while", a, &turn)) return VPPS_NO_VERTEX;
    a = &turn;
    const vpps_cell_data *c = conditional(g, "while", a);
    if (!c) return VPPS_NO_VERTEX;
    const vpps_cell_input *condition = &c->inputs[c->condition.input];
    if (condition->pulled || condition->child)
        return vpps_graph_fail(g, VPPS_ARGUMENT, "while: the condition of cell %s is not gathered from child 0",
                               c->name);
    if (!limit || !a->n_children) return fail(g, VPPS_ARGUMENT, "while: expected a limit of 1 or more, and a child");
    if (!a->children) return fail(g, VPPS_ARGUMENT, "while: children is NULL");
    vpps_vertex *children = malloc(a->n_children * sizeof *children);
    if (!children) return fail(g, VPPS_MEMORY, "graph: out of memory");
    memcpy(children, a->children, a->n_children * sizeof *children);
    turn.children = children;
    for (uint32_t i = 0; i < limit && children[0] != VPPS_NO_VERTEX; i++) {
        children[0] = vpps_apply(g, &turn);
        if (turns) turns[i] = children[0];
    }
    const vpps_vertex last = children[0];
    free(children);
    return last;
}

vpps_vertex vpps_case(vpps_graph *g, uint32_t n, const vpps_application *branches) {
    VPPS_NEED_OR(VPPS_NO_VERTEX, g);
    if (!n) return fail(g, VPPS_ARGUMENT, "case: no branches; expected 1 or more");
    if (!branches) return fail(g, VPPS_ARGUMENT, "case: branches is NULL");
    uint32_t n_values = 0;
    vpps_vertex *vertices = malloc(n * sizeof *vertices);
    vpps_node *parts = malloc(n * sizeof *parts), *sums = NULL;
    vpps_vertex result = VPPS_NO_VERTEX;
    bool ok = vertices && parts;
    if (!ok) fail(g, VPPS_MEMORY, "graph: out of memory");
    /* size of vpps_application in the version that the caller was compiled with */
    const size_t size = branches->size;
    for (uint32_t i = 0; ok && i < n; i++) {
        vpps_application branch;
        ok = vpps_take_application(g, "case", (const void *)((const char *)branches + i * size), &branch);
        const vpps_cell_data *c = ok ? conditional(g, "case", &branch) : NULL;
        ok = c != NULL;
        if (ok && i && c->n_scattered != n_values) {
            vpps_graph_fail(g, VPPS_ARGUMENT, "case: cell %s scatters %u values; expected %u, as branch 0 does",
                            c->name, c->n_scattered, n_values);
            ok = false;
        }
        for (uint32_t k = 0; ok && k < c->n_scattered; k++) {
            if (c->otherwise[k] == VPPS_NO_NODE) continue;
            vpps_graph_fail(g, VPPS_ARGUMENT, "case: cell %s scatters an input otherwise; expected zeros", c->name);
            ok = false;
        }
        if (ok) n_values = c->n_scattered;
        if (ok) vertices[i] = vpps_apply(g, &branch);
        ok = ok && vertices[i] != VPPS_NO_VERTEX;
    }
    if (ok) sums = malloc((n_values + 1u) * sizeof *sums);
    if (ok && !sums) fail(g, VPPS_MEMORY, "graph: out of memory");
    for (uint32_t k = 0; sums && k < n_values; k++) {
        for (uint32_t i = 0; i < n; i++) parts[i] = vpps_scattered(g, vertices[i], k);
        sums[k] = vpps_sum(g, n, parts);
    }
    if (sums) result = vpps_source(g, n_values, sums);
    VPPS_FREE(vertices, parts, sums);
    return result;
}
