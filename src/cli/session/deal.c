/* deal.c - distributes a batch's examples over the processes by the predicted cost of their graphs (team.h). */
#include "base/base.h"
#include "cli/input/corpus_read.h"
#include "cli/session/team.h"
#include "runtime/comm/comm.h"

static uint32_t cost_of(const net_example *x, net_kind kind) {
    uint32_t cost = 1 + x->sentence.n_words + x->target.n_words + x->n_edges;
    if (x->tree) cost += x->tree->n_nodes;
    if (x->lattice) cost += x->lattice->n_nodes + x->lattice->first_arc[x->lattice->n_nodes];
    for (uint32_t k = 0; kind == NET_TAGGING && x->spellings && k < x->sentence.n_words; k++) cost += x->spellings[k].n;
    return cost;
}

vpps_status team_costs(const team *t, corpus *c, net_kind kind, const corpus_split *split, uint32_t **out) {
    *out = NULL;
    if (!t->c) return VPPS_OK;
    uint32_t *costs = calloc((size_t)split->n_all + 1, sizeof *costs);
    if (!costs) return vpps_fail(VPPS_MEMORY, "no memory for the costs of %u examples", split->n_all);
    *out = costs;
    for (uint32_t i = 0; i < split->n_examples; i++) {
        net_example x;
        memset(&x, 0, sizeof x);
        VPPS_TRY(corpus_example(c, kind, split, split->examples[i], &x));
        costs[split->examples[i]] = cost_of(&x, kind);
    }
    return VPPS_OK;
}

typedef struct dealt {
    uint32_t cost, at;
} dealt;

static int dearest_first(const void *a, const void *b) {
    const dealt *x = a, *y = b;
    if (x->cost != y->cost) return x->cost > y->cost ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* Distributes by Graham's list scheduling, longest first (1969): no process gets more than 4/3 of the optimum. */
vpps_status team_deal(const team *t, const uint32_t *costs, const uint32_t *examples, uint32_t n, uint32_t *own,
                      uint32_t *n_own) {
    *n_own = t->c ? 0 : n;
    if (!t->c) return memcpy(own, examples, n * sizeof *own), VPPS_OK;
    VPPS_FREED dealt *order = vpps_scratch(((size_t)n + 1) * sizeof *order);
    VPPS_FREED uint64_t *loads = vpps_scratch(t->size * sizeof *loads);
    VPPS_FREED bool *mine = vpps_scratch(((size_t)n + 1) * sizeof *mine);
    if (!order || !loads || !mine) return vpps_fail(VPPS_MEMORY, "no memory to deal %u examples", n);
    for (uint32_t i = 0; i < n; i++) order[i] = (dealt){costs[examples[i]], i};
    qsort(order, n, sizeof *order, dearest_first);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t least = 0;
        for (uint32_t p = 1; p < t->size; p++)
            if (loads[p] < loads[least]) least = p;
        loads[least] += order[i].cost;
        mine[order[i].at] = least == t->rank;
    }
    for (uint32_t i = 0; i < n; i++)
        if (mine[i]) own[(*n_own)++] = examples[i];
    return VPPS_OK;
}
