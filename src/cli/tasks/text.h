/* text.h - measures language models by their perplexity. */
#pragma once

#include "cli/input/task.h"

/* Sets m->value[first] to the perplexity of a split, exp of the mean loss of the predicted words, and m->counted[first] to the number of
 * these words. Sets the next metric to the share of unknown words, predicted as <unk>. Stops early once *stop is not 0. */
vpps_status text_measure(session *x, corpus *c, const corpus_split *split, const volatile int *stop, int first,
                         measures *m);
#define TEXT_METRICS                                                                                                   \
    {"perplexity", "perplexity", false, true, "words"}, { "unknown", "unknown words", true, true, NULL }
