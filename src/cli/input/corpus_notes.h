/* corpus_notes.h - notes for the user about oddities in data, with their places; an oddity is no failure. */
#pragma once

#include "cli/input/corpus.h"

/* Keeps a note, a line to be printed after all data are read; drops the note when out of memory. */
void corpus_note(corpus *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Adds a note if a file is not UTF-8: where its first such byte is, and how many lines have such bytes. */
void corpus_note_encoding(corpus *c, const char *name, const char *text, size_t len);

/* Adds a note if the text of a language model contains END_WORD: on which lines, and how the word is read. */
void corpus_note_reserved(corpus *c, const char *name, const char *text, size_t len);

/* Adds a note about labels of a split that the training split lacks: the place of the first such label, and their number. task.map must have mapped
 * the split's ids. */
void corpus_note_labels(corpus *c, int which);

/* Adds a note about a split's tags that fit no scheme of chunks (such as B-PER, I-PER), so that their words count as outside of all chunks. Does
 * nothing if the network's own tags are not tags of chunks. */
void corpus_note_tags(corpus *c, int which);
