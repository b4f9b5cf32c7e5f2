/* init_rows.h - finds out which rows of a network's parameters belong to words, characters or classes. */
#pragma once

#include "cli/session/session_state.h"

typedef struct init_rows {
    int vocab; /* the vocabulary whose size shapes the parameter (VOCAB_WORDS, ...); N_VOCABS: none */
    /* true: the parameter has one row per word, in order; false: another of its dimensions grows with the vocabulary */
    bool by_row;
} init_rows;

/* Fills one entry for each parameter of x's network, in the model's order; the caller frees *out also after a failure.
 * Does not rely on names: records the network again with one more word, one more character and one more class, and sees
 * which parameters grow. Fails with MEMORY, and as recording the network does. */
vpps_status init_find_rows(const session *x, init_rows **out);
