/* models.c - the table of all networks (models.h). */
#include "models.h"

#include <string.h>

/* clang-format off */
#define NETWORKS(X)                                                                                                    \
    X(tree_lstm) X(tree_lstm_2type) X(tree_gru) X(rvnn) X(mv_rnn) X(td_rnn) X(td_lstm) X(tree_fc)                      \
    X(bilstm_tagger) X(bilstm_char_tagger) X(bilstm_classifier) X(lstm_lm) X(lstm_lm_fixed) X(lstm_nmt)                 \
    X(lattice_lstm) X(lattice_gru) X(act) X(child_sum_tree_lstm) X(transformer_tagger) X(gat) X(gat_classifier)
/* clang-format on */

#define X(name) extern const network name;
NETWORKS(X)
#undef X

#define X(name) &name,
const network *const networks[] = {NETWORKS(X) NULL};
#undef X

const network *network_find(const char *name) {
    for (const network *const *n = networks; *n; n++) {
        if (strcmp((*n)->name, name) == 0) return *n;
    }
    return NULL;
}

uint32_t net_positions(net_kind kind, const net_example *x) {
    switch (kind) {
    case NET_TREES: return x->tree->n_nodes;
    case NET_TAGGING:
    case NET_DEPENDENCIES:
    case NET_NODES: return x->sentence.n_words;
    case NET_SENTENCES:
    case NET_GRAPHS: return 1;
    case NET_TEXT: return x->sentence.n_words - 1;
    case NET_LATTICES: return x->lattice->n_nodes - 1;
    case NET_PAIRS:
    case NET_LATTICE_PAIRS: return x->target.n_words - 1;
    }
    return 0;
}
