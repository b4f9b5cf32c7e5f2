/* measure.h - a part of the data measured by all processes of a run. */
#pragma once

#include "cli/classes.h"
#include "cli/session.h"
#include "cli/task.h"

/* Measures a part. Of several processes each takes some of its examples; all get the same values. Where a score was not finite,
 * in any process, the network has no class for that position: then every value that was measured is NaN, and m->nonfinite is
 * set. Ends early once *stop is not 0 (stop may be NULL): m is not known then. Fails with MEMORY, and as the engine does. */
vpps_status measure_part(session *x, corpus *c, corpus_split *split, const volatile int *stop, measures *m);

/* How many positions have a label, and how many are classified right. */
typedef struct accuracy {
    uint64_t n, right;
    class_counts *classes; /* each pair of label and class is counted there too; NULL: nowhere */
} accuracy;

void accuracy_count(accuracy *a, uint32_t label, uint32_t predicted);

/* m->value[i] and m->counted[i], of all processes. Fails as session_add_up does. */
vpps_status measure_accuracy(session *x, accuracy own, int i, measures *m);
