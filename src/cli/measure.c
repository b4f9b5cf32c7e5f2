/* measure.c - see measure.h. */
#include "cli/measure.h"
#include "base/base.h"
#include "cli/team.h"

#include <math.h>

/* This process's examples of the part. What they count is added up by the measures themselves. */
static vpps_status measure_own(session *x, corpus *c, corpus_split *split, const volatile int *stop, measures *m) {
    const task *kind = task_for(x->settings);
    if (!x->team) return kind->measure(x, c, split, stop, m);
    corpus_split own = *split;
    uint32_t *costs = NULL;
    own.examples = malloc(((size_t)split->n_examples + 1) * sizeof *own.examples);
    vpps_status status =
        own.examples ? VPPS_OK : vpps_fail(VPPS_MEMORY, "no memory for the order of %u examples", split->n_examples);
    if (status == VPPS_OK) status = team_costs(x->team, c, x->settings->network->kind, split, &costs);
    if (status == VPPS_OK)
        status = team_deal(x->team, costs, split->examples, split->n_examples, own.examples, &own.n_examples);
    if (status == VPPS_OK) status = kind->measure(x, c, &own, stop, m);
    free(costs);
    free(own.examples);
    return status;
}

vpps_status measure_part(session *x, corpus *c, corpus_split *split, const volatile int *stop, measures *m) {
    x->nonfinite = false;
    VPPS_TRY(measure_own(x, c, split, stop, m));
    uint64_t unknown = !m->known, nonfinite = x->nonfinite;
    VPPS_TRY(session_add_up(x, 1, &unknown));
    VPPS_TRY(session_add_up(x, 1, &nonfinite));
    m->known = !unknown;
    m->nonfinite = nonfinite != 0;
    m->examples = split->n_examples;
    for (int i = 0; m->nonfinite && i < MAX_METRICS; i++) m->value[i] = NAN;
    return VPPS_OK;
}
