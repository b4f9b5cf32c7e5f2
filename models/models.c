/* models.c - the table of networks. */
#include "models.h"

#include <string.h>

extern const network tree_lstm, tree_lstm_2type, tree_gru, rvnn, mv_rnn, td_rnn, td_lstm, tree_fc;

const network *const networks[] = {&tree_lstm, &tree_lstm_2type, &tree_gru, &rvnn, &mv_rnn,
                                   &td_rnn,    &td_lstm,         &tree_fc,  NULL};

const network *network_find(const char *name) {
    for (const network *const *n = networks; *n; n++) {
        if (strcmp((*n)->name, name) == 0) return *n;
    }
    return NULL;
}
