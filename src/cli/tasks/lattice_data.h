/* lattice_data.h - common parts of the tasks on lattices: the ids of characters and of the words on arcs. */
#pragma once

#include "cli/task.h"

/* Makes split->lattices of split->sentences, whose words are characters, and the corpus' lexicon. */
vpps_status lattice_build(const corpus *c, corpus_split *split);

/* The vocabularies of characters and of words, by how often arcs of the training part have them. */
vpps_status lattice_learn(corpus *c, const settings *s);
vpps_status lattice_map(const corpus *c, corpus_split *split);

/* The lattice of an example; its tags are as they were read. */
vpps_status lattice_example(corpus *c, const corpus_split *split, uint32_t i, net_example *x);

/* Names the ids of lattices that were read as numbers: makes split->numbers. */
vpps_status lattice_number(corpus_split *split);

/* The names of the ids of characters, of words on arcs, or of tags. */
const vpps_vocab *lattice_names(const corpus *c, const corpus_split *split, int which);
