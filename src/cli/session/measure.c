/* measure.c - measures a network on a split (train, dev, test) of the data, with all processes of a run. */
#include "cli/session/measure.h"
#include "base/base.h"
#include "cli/session/team.h"

#include <math.h>

static vpps_status measure_split(session *x, corpus *c, corpus_split *split, const volatile int *stop, measures *m) {
    const task *kind = task_for(x->settings);
    if (kind->measure) return kind->measure(x, c, split, stop, m);
    accuracy a = {.classes = x->classes};
    VPPS_TRY(session_predict_all(x, c, split, stop, kind->count, &a));
    return measure_accuracy(x, a, 0, m);
}

/* Measures this process's examples of a split. The task's measure function adds up the counts of all processes. */
static vpps_status measure_own(session *x, corpus *c, corpus_split *split, const volatile int *stop, measures *m) {
    if (!x->team) return measure_split(x, c, split, stop, m);
    corpus_split own = *split;
    VPPS_FREED uint32_t *costs = NULL, *examples = vpps_scratch(((size_t)split->n_examples + 1) * sizeof *examples);
    if (!examples) return vpps_fail(VPPS_MEMORY, "no memory for the order of %u examples", split->n_examples);
    own.examples = examples;
    VPPS_TRY(team_costs(x->team, c, x->settings->network->kind, split, &costs));
    VPPS_TRY(team_deal(x->team, costs, split->examples, split->n_examples, examples, &own.n_examples));
    return measure_split(x, c, &own, stop, m);
}

void accuracy_count(accuracy *a, uint32_t label, uint32_t predicted) {
    a->n++;
    a->right += label == predicted;
    classes_count(a->classes, label, predicted);
}

vpps_status measure_accuracy(session *x, accuracy own, int i, measures *m) {
    uint64_t counts[] = {own.n, own.right};
    VPPS_TRY(session_add_up(x, VPPS_COUNT(counts), counts));
    m->counted[i] = counts[0];
    m->value[i] = counts[0] ? (double)counts[1] / (double)counts[0] : NAN;
    return VPPS_OK;
}

vpps_status measure_part(session *x, corpus *c, corpus_split *split, const volatile int *stop, measures *m) {
    x->nonfinite = false;
    *m = (measures){.examples = split->n_examples};
    VPPS_TRY(measure_own(x, c, split, stop, m));
    uint64_t unknown = stop && *stop, nonfinite = x->nonfinite;
    VPPS_TRY(session_add_up(x, 1, &unknown));
    VPPS_TRY(session_add_up(x, 1, &nonfinite));
    m->known = !unknown;
    m->nonfinite = nonfinite != 0;
    for (int i = 0; m->nonfinite && i < MAX_METRICS; i++) m->value[i] = NAN;
    return VPPS_OK;
}
