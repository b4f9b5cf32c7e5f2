/* words.h - reads words and lattices, maps their words to ids and measures how well they are predicted, for several tasks. */
#pragma once

#include "cli/input/task.h"
#include "io/text.h"

/* Reads lines of text as sentences whose words are single characters; spaces are skipped. */
vpps_status task_read_characters(vpps_sentences *out, const task_text *text);

/* Creates an empty collection of sentences in *s if *s is NULL. */
vpps_status task_need_sentences(vpps_sentences **s);

/* Generates n random sentences of an artificial language for a split, with translations if the network translates. */
vpps_status task_generate_sentences(corpus *c, const settings *s, corpus_split *split, uint64_t seed, uint32_t n);

/* task_add_words adds the words of `from`, in their order, to `to`; task_copy_vocab makes a copy of `from`. */
vpps_status task_add_words(vpps_vocab *to, const vpps_vocab *from);
vpps_status task_copy_vocab(vpps_vocab **out, const vpps_vocab *from);

/* Makes a vocabulary of <unk> and the words that occur at least min_count times. Adds a note if a fifth of the text or more becomes <unk>. */
vpps_status task_cut(corpus *c, vpps_vocab **out, const vpps_vocab *words, const uint32_t *counts, uint32_t min_count);
/* Makes the vocabulary of <unk> and the words that occur at least min_count times in sentences. `ends`: sentences end
 * in END_WORD, which is kept however rare it is. */
vpps_status task_cut_words(corpus *c, vpps_vocab **out, const vpps_sentences *sentences, uint32_t min_count, bool ends);

/* Copies n ids, translated by `map` unless NULL, to *out, which is grown as needed. Fails with MEMORY. */
vpps_status task_copy_ids(uint32_t **out, const uint32_t *ids, uint32_t n, const uint32_t *map);

/* task_keep_text keeps the text of a split's latest example, to be repeated in the example's answer; may fail with MEMORY. task_text_of
 * returns the text of example i. */
vpps_status task_keep_text(corpus_split *split, const task_text *text);
vpps_text task_text_of(const corpus_split *split, uint32_t i);

/* Builds split->lattices from split->sentences, whose words are characters, with the words of the corpus's lexicon. */
vpps_status lattice_build(const corpus *c, corpus_split *split);

/* Generates a split's n lattices, with translations if the task has pairs; the first call makes the corpus's lexicon. */
vpps_status lattice_generate(corpus *c, const settings *s, corpus_split *split, uint64_t seed, uint32_t n);

/* Makes the vocabularies of characters and words, by their frequency on the training split's arcs. */
vpps_status lattice_learn(corpus *c, const settings *s);
vpps_status lattice_map(const corpus *c, corpus_split *split);

/* Sets *x to example i of a split. Characters and words get the network's ids; tags keep those of the split. */
vpps_status lattice_example(corpus *c, const corpus_split *split, uint32_t i, net_example *x);

/* Sets m->value[first] to the perplexity of a split, exp of the mean loss of the predicted words, and m->counted[first] to the number of
 * these words. Sets the next metric to the share of unknown words, predicted as <unk>. Stops early once *stop is not 0. */
vpps_status text_measure(session *x, corpus *c, const corpus_split *split, const volatile int *stop, int first,
                         measures *m);
#define TEXT_METRICS                                                                                                   \
    {"perplexity", "perplexity", false, true, "words"}, { "unknown", "unknown words", true, true, NULL }
