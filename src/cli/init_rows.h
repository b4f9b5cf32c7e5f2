/* init_rows.h - finds the word, character or class that each row of a network's parameters belongs to. */
#pragma once

#include "cli/session_state.h"

typedef struct init_rows {
    int vocab;   /* whose words shape the parameter: VOCAB_WORDS and so on; N_VOCABS: no word does */
    bool by_row; /* there is a row for each of them, in their order; else it is shaped in another way */
} init_rows;

/* Of each parameter of x's network, in the model's order; freed by the caller in any case. Names are not relied upon: the network is made
 * again with one more word, one more character and one more class, and the parameters that are then larger are the ones. Fails with MEMORY,
 * and as the network does. */
vpps_status init_find_rows(const session *x, init_rows **out);
