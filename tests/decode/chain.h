/* chain.h - a network of pairs with known probabilities: Markov chains. A source's first word selects the chain that makes its translation, and
 * reaches the decoder as memory, in one array for all sources. There are no states. */
#pragma once

#include "parts.h"

enum { CHAIN_CLASSES = 4, CHAINS = 4 };
enum {
    CHAIN_TRAP,     /* the likeliest first word does not begin the likeliest sentence */
    CHAIN_LENGTHS,  /* a short sentence, and a longer one that is slightly less likely */
    CHAIN_EVEN,     /* all words are equally likely */
    CHAIN_INFINITE, /* its logits are not finite */
};

typedef struct chain_net {
    part_net base;
    vpps_param table;
    vpps_node memory[1];
    uint32_t n_decoded; /* steps added */
} chain_net;

extern const network chain, lattice_chain;
