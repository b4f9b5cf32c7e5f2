/* measure.h - measures a network's loss and scores on a split of the data, with all processes of a run. */
#pragma once

#include "cli/input/task.h"
#include "cli/session/classes.h"
#include "cli/session/session.h"

/* Measures loss and scores of the network on a split of the data. Each of several processes takes some examples; all get
 * the same values. If a score is not finite in any process, m->nonfinite is set and every value is NaN. Ends early once
 * *stop is not 0 (stop may be NULL), with m->known false. Fails with MEMORY, and as the engine does. */
vpps_status measure_part(session *x, corpus *c, corpus_split *split, const volatile int *stop, measures *m);

/* n: number of labelled positions (words, nodes or whole examples); right: number of positions that the network classified right */
typedef struct accuracy {
    uint64_t n, right;
    class_counts *classes; /* confusion matrix, to which accuracy_count adds every counted position; NULL: none */
} accuracy;

void accuracy_count(accuracy *a, uint32_t label, uint32_t predicted);

/* Sets m->value[i] to the fraction of positions (words, nodes or whole examples) of all processes that were classified right, and
 * m->counted[i] to the number of positions. `own`: this process's counts. Fails as session_add_up does. */
vpps_status measure_accuracy(session *x, accuracy own, int i, measures *m);
