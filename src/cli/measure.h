/* measure.h - a part of the data measured by all processes of a run. */
#ifndef VPPS_CLI_MEASURE_H
#define VPPS_CLI_MEASURE_H

#include "cli/session.h"
#include "cli/task.h"

/* Measures a part. Of several processes each takes some of its examples; all get the same values. Where a score was not finite,
 * in any process, the network has no class for that position: then every value that was measured is NaN, and m->nonfinite is
 * set. Ends early once *stop is not 0 (stop may be NULL): m is not known then. Fails with MEMORY, and as the engine does. */
vpps_status measure_part(session *x, corpus *c, corpus_split *split, const volatile int *stop, measures *m);

#endif
