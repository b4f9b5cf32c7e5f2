/* lattice_data.h - functions for all tasks on lattices: making lattices, and the ids of characters and of the words on arcs. */
#pragma once

#include "cli/input/task.h"

/* Builds split->lattices from split->sentences, whose words are characters, with the words of the corpus's lexicon. */
vpps_status lattice_build(const corpus *c, corpus_split *split);

/* Generates a split's n lattices, with translations if the task has pairs; the first call makes the corpus's lexicon. */
vpps_status lattice_generate(corpus *c, const settings *s, corpus_split *split, uint64_t seed, uint32_t n);

/* Makes the vocabularies of characters and words, by their frequency on the training split's arcs. */
vpps_status lattice_learn(corpus *c, const settings *s);
vpps_status lattice_map(const corpus *c, corpus_split *split);

/* Sets *x to example i of a split. Characters and words get the network's ids; tags keep those of the split. */
vpps_status lattice_example(corpus *c, const corpus_split *split, uint32_t i, net_example *x);
