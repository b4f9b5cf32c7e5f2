/* text.h - how a language model is measured. */
#ifndef VPPS_CLI_TASKS_TEXT_H
#define VPPS_CLI_TASKS_TEXT_H

#include "cli/task.h"

/* exp of the mean loss of a split's positions, as far as *stop lets it; and how many there are. */
vpps_status text_measure(session *x, corpus *c, const corpus_split *split, const volatile int *stop, double *perplexity,
                         uint64_t *words);

#endif
