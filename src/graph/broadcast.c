/* broadcast.c - repeats a scalar, row or column to fill a matrix (broadcast), and sums over rows and columns, its gradients. */
#include "graph/graph.h"

vpps_node vpps_broadcast(vpps_graph *g, vpps_node x, uint32_t rows, uint32_t cols) {
    VPPS_NEED_OR(VPPS_NO_NODE, g);
    vpps_signature s;
    if (g->status != VPPS_OK || !vpps_node_signature(g, "broadcast", x, &s, NULL)) return VPPS_NO_NODE;
    const uint64_t elems = (uint64_t)rows * cols;
    if (!elems || elems >= VPPS_MANY_ELEMS || (s.rows != 1 && s.rows != rows) || (s.cols != 1 && s.cols != cols))
        return vpps_graph_fail(g, VPPS_SHAPE,
                               "broadcast: argument 0 is %u x %u; expected 1 or %u rows, and 1 or %u columns%s", s.rows,
                               s.cols, rows, cols, elems ? ", of 1 to 2^22 - 1 elements" : "");
    if (s.rows == rows && s.cols == cols) return x;
    if (s.rows == 1 && s.cols == 1) return vpps_scale_by(g, vpps_ones(g, rows, cols), x);
    return s.cols == 1 ? vpps_matmul(g, x, vpps_ones(g, 1, cols)) : vpps_matmul(g, vpps_ones(g, rows, 1), x);
}

/* Returns the sum of x's rows (ones times x) or, unless of_rows, of its columns (x times ones). */
static vpps_node sum(vpps_graph *g, const char *call, vpps_node x, bool of_rows) {
    vpps_signature s;
    if (g->status != VPPS_OK || !vpps_node_signature(g, call, x, &s, NULL)) return VPPS_NO_NODE;
    return of_rows ? vpps_matmul(g, vpps_ones(g, 1, s.rows), x) : vpps_matmul(g, x, vpps_ones(g, s.cols, 1));
}

vpps_node vpps_sum_rows(vpps_graph *g, vpps_node x) {
    VPPS_NEED_OR(VPPS_NO_NODE, g);
    return sum(g, "sum_rows", x, true);
}

vpps_node vpps_sum_columns(vpps_graph *g, vpps_node x) {
    VPPS_NEED_OR(VPPS_NO_NODE, g);
    return sum(g, "sum_columns", x, false);
}
