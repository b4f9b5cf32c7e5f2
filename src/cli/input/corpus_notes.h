/* corpus_notes.h - notes for the user about oddities in data, with their places; an oddity is no failure. */
#pragma once

#include "cli/input/corpus.h"

/* Keeps a note, a line to be printed after all data are read; drops the note when out of memory. */
void corpus_note(corpus *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Adds a note if a file is not UTF-8: where its first such byte is, and how many lines have such bytes. */
void corpus_note_encoding(corpus *c, const char *name, const char *text, size_t len);

/* Sets *label to label k of example i, an id in the split's own vocabulary (VPPS_NO_WORD: unlabelled). Returns false
 * when the example has no label k. */
bool corpus_label(const corpus_split *split, uint32_t i, uint32_t k, uint32_t *label);

/* corpus_label_place writes "FILE:LINE" of label k of example i; corpus_label_name writes a label's name or number. */
void corpus_label_place(const corpus_split *split, uint32_t i, uint32_t k, char *text, size_t n);
void corpus_label_name(const corpus *c, const corpus_split *split, uint32_t label, char *name, size_t n);

/* Adds a note about labels of a split that the training split lacks: the place of the first such label, and their number. task.map must have mapped
 * the split's ids. */
void corpus_note_labels(corpus *c, int which);

/* Adds a note about a split's tags that fit no scheme of chunks (such as B-PER, I-PER), so that their words count as outside of all chunks. Does
 * nothing if the network's own tags are not tags of chunks. */
void corpus_note_tags(corpus *c, int which);

/* Writes "FILE:LINE:COLUMN: " of a word's first occurrence in the training files, "" if none. Reads the files again. */
void corpus_find_word(const corpus *c, const char *word, char *place, size_t n);
