/* norms.c - normalisation (layer norm, RMS norm) of a vector or of each column, with a gain and a bias. */
#include "graph/graph.h"

#include <math.h>

/* Checks that v is VPPS_NO_NODE, or a gain or bias: a vector with x's number of rows. */
static bool check_vector(vpps_graph *g, const char *call, const char *what, vpps_node v, const vpps_signature *x) {
    vpps_signature s;
    if (v == VPPS_NO_NODE) return true;
    if (!vpps_node_signature(g, call, v, &s, NULL)) return false;
    if (s.rows == x->rows && s.cols == 1) return true;
    return VPPS_GRAPH_REFUSE(g, VPPS_SHAPE, "%s: the %s is %u x %u; expected %u x 1, as x is", call, what, s.rows,
                             s.cols, x->rows);
}

/* Checks the arguments of a normalisation before any node is made, so that a failing call makes none. */
static bool check(vpps_graph *g, const char *call, vpps_node x, vpps_node gain, vpps_node bias, float epsilon) {
    vpps_signature s;
    if (g->status != VPPS_OK || !vpps_node_signature(g, call, x, &s, NULL)) return false;
    if (!(epsilon > 0 && epsilon < INFINITY))
        return VPPS_GRAPH_REFUSE(g, VPPS_ARGUMENT, "%s: epsilon is %g; expected above 0", call, (double)epsilon);
    return check_vector(g, call, "gain", gain, &s) && check_vector(g, call, "bias", bias, &s);
}

static vpps_node normalised(vpps_graph *g, vpps_node x, float epsilon) {
    return vpps_make_op(g, VPPS_OP_RMS_NORM, 1, &x, vpps_float_bits(epsilon), 0);
}

static vpps_node scaled(vpps_graph *g, vpps_node y, vpps_node gain, vpps_node bias) {
    vpps_signature s;
    if (!vpps_node_signature(g, "norm", y, &s, NULL)) return VPPS_NO_NODE;
    if (gain != VPPS_NO_NODE) y = vpps_mul(g, y, vpps_broadcast(g, gain, s.rows, s.cols));
    return bias == VPPS_NO_NODE ? y : vpps_add(g, y, vpps_broadcast(g, bias, s.rows, s.cols));
}

vpps_node vpps_rms_norm(vpps_graph *g, vpps_node x, vpps_node gain, float epsilon) {
    VPPS_NEED_OR(VPPS_NO_NODE, g);
    if (!check(g, "rms_norm", x, gain, VPPS_NO_NODE, epsilon)) return VPPS_NO_NODE;
    return scaled(g, normalised(g, x, epsilon), gain, VPPS_NO_NODE);
}

/* Computes layer norm: the variance of x is the mean square of centre(x). */
vpps_node vpps_layer_norm(vpps_graph *g, vpps_node x, vpps_node gain, vpps_node bias, float epsilon) {
    VPPS_NEED_OR(VPPS_NO_NODE, g);
    if (!check(g, "layer_norm", x, gain, bias, epsilon)) return VPPS_NO_NODE;
    return scaled(g, normalised(g, vpps_centre(g, x), epsilon), gain, bias);
}
