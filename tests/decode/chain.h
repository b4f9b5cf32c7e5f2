/* chain.h - a network of pairs whose probabilities are written down: Markov chains. A source's first word says which chain makes its
 * translation; it reaches the decoder as memory, in one array for all sources, and there are no states. */
#pragma once

#include "models.h"

enum { CHAIN_CLASSES = 4, CHAINS = 4 };
enum {
    CHAIN_TRAP,     /* the likeliest first word is not that of the likeliest sentence */
    CHAIN_LENGTHS,  /* a short sentence, and a longer one that is a little less likely */
    CHAIN_EVEN,     /* all words are equally likely */
    CHAIN_INFINITE, /* logits are not finite */
};

typedef struct chain_net {
    vpps_param table;
    vpps_node memory[1];
    uint32_t n_decoded; /* steps added */
} chain_net;

extern const network chain, lattice_chain;
