/* chain.h - a network of pairs with known probabilities: Markov chains. A source's first word selects the chain that makes its translation, and
 * reaches the decoder as memory, in one array for all sources. There are no states. */
#pragma once

#include "parts.h"

#include <math.h>

#define E 1e-9 /* so that no word is impossible */

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

/* Probabilities by chain, preceding word and word; sentences begin and end with word 0. */
static const double probabilities[][CHAIN_CLASSES][CHAIN_CLASSES] = {
    [CHAIN_TRAP] = {{E, 0.55, 0.45, E}, {0.4, 0.3, 0.2, 0.1}, {0.9, 0.05, 0.05, E}, {0.7, 0.1, 0.1, 0.1}},
    [CHAIN_LENGTHS] = {{E, 0.5, 0.5, E}, {0.5, 0.2, 0.2, 0.1}, {0.1, 0.1, 0.1, 0.7}, {0.7, 0.1, 0.1, 0.1}},
};

/* Returns a logit; those of even words are so large that their exp overflows. */
static float chain_logit(int which, int before, int word) {
    if (which == CHAIN_INFINITE) return 3e38f;
    if (which == CHAIN_EVEN) return 1000;
    return (float)log(probabilities[which][before][word]);
}

/* Builds the network. A table's entry is a matrix: for a preceding word, a column of logits for each chain. Logits are the entry times the chain's
 * unit vector; for the infinite chain, times 10. */
static vpps_status chain_build(void *net, vpps_model *model) {
    chain_net *c = net;
    PART_TRY(vpps_add_lookup(model, &c->table, "chains", CHAIN_CLASSES, CHAIN_CLASSES, CHAINS, NULL));
    float *to = vpps_param_values(model, c->table);
    for (int before = 0; before < CHAIN_CLASSES; before++)
        for (int k = 0; k < CHAINS; k++)
            for (int word = 0; word < CHAIN_CLASSES; word++) *to++ = chain_logit(k, before, word);
    return VPPS_OK;
}

static vpps_status chain_encode(void *net, vpps_graph *g, const net_example *x, net_decoding *d) {
    chain_net *c = net;
    const uint32_t which = x->lattice ? x->lattice->tags[0] : x->sentence.words[0];
    float unit[CHAINS] = {0};
    unit[which] = which == CHAIN_INFINITE ? 10 : 1;
    c->memory[0] = vpps_input(g, CHAINS, 1, unit);
    *d = (net_decoding){.memory = c->memory, .n_memory = 1};
    return vpps_graph_status(g);
}

static vpps_status chain_step(void *net, vpps_graph *g, uint32_t word, net_decoding *d) {
    chain_net *c = net;
    c->n_decoded++;
    d->logits = vpps_matmul(g, vpps_lookup(g, c->table, word), d->memory[0]);
    return vpps_graph_status(g);
}

#define CHAIN_ROWS .bytes = sizeof(chain_net), .build = chain_build, .encode = chain_encode, .decode = chain_step
static const network chain = {.name = "chain", .kind = NET_PAIRS, CHAIN_ROWS},
                     lattice_chain = {.name = "lattice-chain", .kind = NET_LATTICE_PAIRS, CHAIN_ROWS};
