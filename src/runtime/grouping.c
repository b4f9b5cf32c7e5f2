/* grouping.c - see grouping.h. Batches differ, and other work disturbs some of them: trials take turns, and medians of the
 * time a node are compared. */
#include "runtime/grouping.h"
#include "base/base.h"

void vpps_grouping_open(vpps_grouping *p, uint32_t n_vps) {
    *p = (vpps_grouping){0};
    for (uint32_t groups = 1; groups <= n_vps; groups++) {
        if (n_vps % groups) continue;
        if (p->n == VPPS_MOST_GROUPINGS) p->n--; /* groups of one VP come last */
        p->trials[p->n++] = (vpps_trial){.groups = groups, .state = VPPS_TRIAL_WAITING};
    }
    p->done = p->n == 1;
    if (p->done) p->trials[0].state = VPPS_TRIAL_CURRENT;
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void choose(vpps_grouping *p) {
    uint32_t best = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        vpps_trial *t = &p->trials[i];
        t->state = t->batches ? VPPS_TRIAL_MEASURED : VPPS_TRIAL_WAITING;
        if (!t->batches) continue;
        qsort(p->ns[i], t->batches, sizeof p->ns[i][0], by_size);
        t->ns_per_node = p->ns[i][t->batches / 2];
        if (!p->trials[best].batches || t->ns_per_node < p->trials[best].ns_per_node) best = i;
    }
    p->trials[best].state = VPPS_TRIAL_CURRENT;
    p->asked = best;
    p->done = true;
}

uint32_t vpps_grouping_next(vpps_grouping *p) {
    if (!p->n) return 0;
    if (!p->done) p->asked = p->batches++ % p->n;
    return p->trials[p->asked].groups;
}

void vpps_grouping_note(vpps_grouping *p, uint32_t groups, uint64_t nodes, uint64_t device_ns) {
    if (!p->n || p->done) return;
    vpps_trial *t = &p->trials[p->asked];
    const bool first = p->batches <= p->n; /* cells are compiled, and memory is touched, the first time */
    if (!first && groups == t->groups && nodes && t->batches < VPPS_GROUPING_BATCHES) {
        p->ns[p->asked][t->batches++] = (double)device_ns / (double)nodes;
        t->state = VPPS_TRIAL_MEASURED;
    }
    if (p->batches == p->n * (VPPS_GROUPING_BATCHES + 1)) choose(p);
}
