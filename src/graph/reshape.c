/* reshape.c - moves elements of values to other places: another shape, values side by side, selected rows. */
#include "graph/graph.h"

#include <inttypes.h>

vpps_node vpps_reshape(vpps_graph *g, vpps_node x, uint32_t rows, uint32_t cols) {
    VPPS_NEED_OR(VPPS_NO_NODE, g);
    vpps_signature s;
    if (g->status != VPPS_OK || !vpps_node_signature(g, "reshape", x, &s, NULL)) return VPPS_NO_NODE;
    if ((uint64_t)rows * cols != vpps_words(&s))
        return vpps_graph_fail(g, VPPS_SHAPE,
                               "reshape: argument 0 is %u x %u; expected as many elements as %u x %u has", s.rows,
                               s.cols, rows, cols);
    if (s.rows == rows) return x;
    vpps_signature of = {.op = VPPS_OP_RESHAPE, .rows = rows, .cols = cols, .param = VPPS_NO_PARAM};
    return vpps_make_node(g, &of, NULL, 1, &x, 0, false);
}

/* Checks that nodes have equally many rows; sets *rows to this number and *cols to the sum of their columns. */
static bool check_rows(vpps_graph *g, uint32_t n, const vpps_node *xs, uint32_t *rows, uint64_t *cols) {
    *cols = 0;
    if (!n || n >= VPPS_MANY || !xs)
        return VPPS_GRAPH_REFUSE(g, VPPS_ARGUMENT, "hstack: %u nodes%s; expected 1 to 2^20 - 1", n,
                                 xs ? "" : ", xs is NULL");
    for (uint32_t i = 0; i < n; i++) {
        vpps_signature s;
        if (!vpps_node_signature(g, "hstack", xs[i], &s, NULL)) return false;
        if (!i) *rows = s.rows;
        *cols += s.cols;
        if (s.rows != *rows)
            return VPPS_GRAPH_REFUSE(g, VPPS_SHAPE,
                                     "hstack: argument %u is %u x %u; expected %u rows, as argument 0 has", i, s.rows,
                                     s.cols, *rows);
    }
    if (*cols * *rows < VPPS_MANY_ELEMS) return true;
    return VPPS_GRAPH_REFUSE(
        g, VPPS_SHAPE, "hstack: the result would be %u x %" PRIu64 "; expected fewer than 2^22 elements", *rows, *cols);
}

/* Puts values side by side: since matrices are stored by columns, stacks them as vectors and reshapes the result. */
vpps_node vpps_hstack(vpps_graph *g, uint32_t n, const vpps_node *xs) {
    VPPS_NEED_OR(VPPS_NO_NODE, g);
    uint32_t rows;
    uint64_t cols;
    if (g->status != VPPS_OK || !check_rows(g, n, xs, &rows, &cols)) return VPPS_NO_NODE;
    vpps_node *vectors = malloc(n * sizeof *vectors);
    if (!vectors) return vpps_graph_fail(g, VPPS_MEMORY, "hstack: out of memory");
    for (uint32_t i = 0; i < n; i++) {
        uint32_t r, c;
        vpps_node_shape(g, xs[i], &r, &c);
        vectors[i] = vpps_reshape(g, xs[i], r * c, 1);
    }
    const vpps_node all = n == 1 ? vectors[0] : vpps_concat(g, n, vectors);
    free(vectors);
    return vpps_reshape(g, all, rows, (uint32_t)cols);
}

vpps_node vpps_select_rows_at(vpps_graph *g, vpps_node x, vpps_node numbers) {
    VPPS_NEED_OR(VPPS_NO_NODE, g);
    vpps_signature a, b, s = {.op = VPPS_OP_SELECT_ROWS, .param = VPPS_NO_PARAM};
    if (g->status != VPPS_OK || !vpps_node_signature(g, "select_rows", x, &a, NULL) ||
        !vpps_node_signature(g, "select_rows", numbers, &b, NULL))
        return VPPS_NO_NODE;
    s.rows = b.rows;
    s.cols = a.cols;
    if (b.cols != 1 || (uint64_t)s.rows * s.cols >= VPPS_MANY_ELEMS)
        return vpps_graph_fail(
            g, VPPS_SHAPE,
            "select_rows: numbers of %u x %u, for rows of a node that is %u x %u; expected a vector, and "
            "fewer than 2^22 elements in all",
            b.rows, b.cols, a.rows, a.cols);
    return vpps_make_node(g, &s, NULL, 2, (vpps_node[]){x, numbers}, 0, false);
}

/* Returns row numbers as a vector: a vpps_input or, while a cell is recorded (which allows none), constants. */
static vpps_node fixed_numbers(vpps_graph *g, uint32_t n, const uint32_t *rows) {
    float *data = malloc(n * sizeof *data);
    vpps_node *nodes = malloc(n * sizeof *nodes), x = VPPS_NO_NODE;
    for (uint32_t i = 0; i < n && data && nodes; i++) {
        data[i] = (float)rows[i] + 0.5f; /* this sum is exact, since row numbers are less than 2^22 */
        if (g->recording) nodes[i] = vpps_constant(g, 1, 1, data[i]);
    }
    if (!data || !nodes) {
        vpps_graph_fail(g, VPPS_MEMORY, "select_rows: out of memory");
    } else {
        x = g->recording ? vpps_concat(g, n, nodes) : vpps_input(g, n, 1, data);
    }
    VPPS_FREE(data, nodes);
    return x;
}

vpps_node vpps_select_rows(vpps_graph *g, vpps_node x, uint32_t n, const uint32_t *rows) {
    VPPS_NEED_OR(VPPS_NO_NODE, g);
    vpps_signature s;
    if (g->status == VPPS_OK && !rows) return vpps_graph_fail(g, VPPS_ARGUMENT, "select_rows: rows is NULL");
    if (g->status != VPPS_OK || !vpps_node_signature(g, "select_rows", x, &s, NULL)) return VPPS_NO_NODE;
    if (!n || (uint64_t)n * s.cols >= VPPS_MANY_ELEMS)
        return vpps_graph_fail(g, VPPS_ARGUMENT,
                               "select_rows: %u rows of %u columns; expected at least 1, and fewer than 2^22 elements",
                               n, s.cols);
    for (uint32_t i = 0; i < n; i++) {
        if (rows[i] >= s.rows)
            return vpps_graph_fail(g, VPPS_SHAPE, "select_rows: row %u is number %u of a node that is %u x %u", i,
                                   rows[i], s.rows, s.cols);
    }
    return vpps_select_rows_at(g, x, fixed_numbers(g, n, rows));
}
