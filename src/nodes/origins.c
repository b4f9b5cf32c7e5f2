/* origins.c - elementwise nodes that do the same to results of different ops are kept apart: the sigmoids of an input gate
 * from those of a forget gate. What a group of nodes reads then lies side by side, as what made it did, and so does what
 * it makes; without this scripts of trees are three times as long. The scheduler works on a view of the graph whose
 * signatures are split so. */
#include "nodes/work.h"

/* What made argument k of a node, for telling alike nodes apart; what comes into a cell may come from anywhere. */
static uint32_t maker(const vpps_graph *g, uint32_t node, uint32_t argument) {
    const uint32_t record = g->node_record[node];
    if (g->records[record].cell != VPPS_NODE_RECORD && g->node_record[argument] != record) return VPPS_OP_GATHERED;
    const vpps_signature *s = &g->signatures[g->flat.nodes[argument].signature];
    return s->op == VPPS_OP_AFFINE ? VPPS_OP_GATHERED + 1 + s->first_matrix : s->op;
}

/* Two generations are enough, and keep signatures few: makers of the first two arguments, and of theirs. */
static uint32_t origin_of(vpps_schedule_work *w, const vpps_graph *g, uint32_t node) {
    const vpps_flat_node *n = &g->flat.nodes[node];
    uint32_t near = 0, far = 0;
    for (uint32_t k = 0; k < n->n_args && k < 2; k++) {
        const uint32_t argument = g->flat.args[n->args + k], made = maker(g, node, argument);
        near = near * 8191 + made + 1;
        far = (far * 8191 + made + 1) * 131071 + (made == VPPS_OP_GATHERED ? 0 : w->near_origin[argument]);
    }
    w->near_origin[node] = near;
    return far;
}

/* The signature split off for this origin, found or made. UINT32_MAX: out of memory. */
static uint32_t split(vpps_schedule_work *w, const vpps_graph *g, uint32_t signature, uint32_t origin) {
    uint32_t last = UINT32_MAX;
    for (uint32_t i = w->first_split[signature]; i != UINT32_MAX; last = i, i = w->splits[i].next)
        if (w->splits[i].makers == origin) return i;
    if (!VPPS_RESERVE(w->splits, w->splits_capacity, w->n_splits + 1u) ||
        !VPPS_RESERVE(w->split_signatures, w->split_signatures_capacity, w->n_splits + 1u)) {
        return UINT32_MAX;
    }
    w->splits[w->n_splits] = (vpps_origin){origin, UINT32_MAX};
    w->split_signatures[w->n_splits] = g->signatures[signature];
    if (last == UINT32_MAX) {
        w->first_split[signature] = w->n_splits;
    } else {
        w->splits[last].next = w->n_splits;
    }
    return w->n_splits++;
}

vpps_status vpps_split_by_origin(vpps_scheduler *s, const vpps_graph *g) {
    vpps_schedule_work *w = s->work;
    const uint32_t n = g->flat.n_nodes;
    if (!VPPS_RESERVE(w->near_origin, w->near_origin_capacity, n) ||
        !VPPS_RESERVE(w->split_nodes, w->split_nodes_capacity, n) ||
        !VPPS_RESERVE(w->first_split, w->first_split_capacity, g->n_signatures)) {
        return vpps_fail(VPPS_MEMORY, "schedule: out of memory for %u nodes", n);
    }
    for (uint32_t i = 0; i < g->n_signatures; i++) w->first_split[i] = UINT32_MAX;
    w->n_splits = 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t signature = g->flat.nodes[i].signature;
        const bool elementwise = vpps_ops[g->signatures[signature].op].op_class == VPPS_CLASS_EW;
        w->near_origin[i] = 0;
        const uint32_t to = split(w, g, signature, elementwise ? origin_of(w, g, i) : 0);
        if (to == UINT32_MAX) return vpps_fail(VPPS_MEMORY, "schedule: out of memory for %u nodes", n);
        w->split_nodes[i] = g->flat.nodes[i];
        w->split_nodes[i].signature = to;
    }
    w->view = *g;
    w->view.signatures = w->split_signatures;
    w->view.n_signatures = w->n_splits;
    w->view.flat.nodes = w->split_nodes;
    w->g = &w->view;
    w->flat = &w->view.flat;
    return VPPS_OK;
}
