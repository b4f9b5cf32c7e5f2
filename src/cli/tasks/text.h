/* text.h - how a language model is measured. */
#pragma once

#include "cli/task.h"

/* exp of the mean loss of a split's positions, as far as *stop lets it, into value[first], and how many there are into
 * counted[first]; after it the share of them that are unknown words, said as <unk>. */
vpps_status text_measure(session *x, corpus *c, const corpus_split *split, const volatile int *stop, int first,
                         measures *m);
#define TEXT_METRICS                                                                                                   \
    {"perplexity", "perplexity", false, true, "words"}, { "unknown", "unknown words", true, true, NULL }
