/* init_rows.h - whose the rows of a network's parameters are. */
#ifndef VPPS_CLI_INIT_ROWS_H
#define VPPS_CLI_INIT_ROWS_H

#include "cli/session_state.h"

typedef struct init_rows {
    int vocab;   /* whose words shape the parameter: VOCAB_WORDS and so on; N_VOCABS: no word does */
    bool by_row; /* there is a row for each of them, in their order; else it is shaped in another way */
} init_rows;

/* Of each parameter of x's network, in the model's order; freed by the caller in any case. What a name says does not count:
 * the network is made again with one word more, one character, one class, and what is larger then tells. Fails with MEMORY, and as
 * the network does. */
vpps_status init_find_rows(const session *x, init_rows **out);

#endif
