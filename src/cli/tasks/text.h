/* text.h - measures language models by their perplexity. */
#pragma once

#include "cli/input/task.h"

/* Sets m->value[first] to the perplexity of a split, exp of the mean loss of its positions, and m->counted[first] to
 * their number; the next metric is the share of unknown words, predicted as <unk>. Stops early once *stop is not 0. */
vpps_status text_measure(session *x, corpus *c, const corpus_split *split, const volatile int *stop, int first,
                         measures *m);
#define TEXT_METRICS                                                                                                   \
    {"perplexity", "perplexity", false, true, "words"}, { "unknown", "unknown words", true, true, NULL }
