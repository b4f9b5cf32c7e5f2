/* corpus.h - the trees a command works on, their words mapped to the network's vocabulary. */
#ifndef VPPS_CLI_CORPUS_H
#define VPPS_CLI_CORPUS_H

#include "options.h"

/* One part of the data; bank is NULL when there is none. */
typedef struct corpus_split {
    vpps_treebank *bank;
    uint32_t *words; /* the treebank's word id -> the vocabulary's */
    uint32_t *trees; /* the trees to use, n_trees indices into bank: those with a label where one is needed */
    uint32_t n_trees;
} corpus_split;

typedef struct corpus {
    corpus_split split[N_SPLITS];
    vpps_vocab *vocab; /* id 0 is <unk> */
    uint32_t classes;
    char *data; /* --data as a checkpoint has it, or NULL */
} corpus;

extern const char *const split_names[N_SPLITS];

/* What s trains on or measures, for people: --data or the generator. */
const char *corpus_name(const settings *s);

/* Reads or generates what s asks for: for training all parts there are, for the other commands one part (train for
 * script). Generated dev and test trees that occur in training are left out. The vocabulary and classes come from the
 * training part, unless c->vocab and c->classes are set already (from a checkpoint). Fails with IO, FORMAT, MEMORY;
 * free with corpus_close in any case. */
vpps_status corpus_open(corpus *c, const settings *s);
void corpus_close(corpus *c);

/* The order of an epoch, into order[0 .. n_trees): it follows from seed and epoch alone, so that a resumed epoch has
 * the same one. */
void corpus_shuffle(const corpus_split *split, uint64_t seed, uint32_t epoch, uint32_t *order);

/* Maps the words of a treebank to v: what v does not know is 0. The caller frees *words. */
vpps_status corpus_map_words(const vpps_treebank *bank, const vpps_vocab *v, uint32_t **words);

#endif
