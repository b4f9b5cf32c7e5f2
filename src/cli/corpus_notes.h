/* corpus_notes.h - what is odd about data that were read, with its place: no failure, but to be told. */
#ifndef VPPS_CLI_CORPUS_NOTES_H
#define VPPS_CLI_CORPUS_NOTES_H

#include "cli/corpus.h"

/* Notes the first byte of a file's text that is not UTF-8, and how many lines have one. */
void corpus_note_encoding(corpus *c, const char *name, const char *text, size_t len);

/* Notes the labels of a part, read and mapped, that the training part does not have, and where the first one is. */
void corpus_note_labels(corpus *c, int which);

/* Where the bytes of a word of the training part stand first: "FILE:LINE:COLUMN: "; empty: they are not found. Reads the
 * files again. */
void corpus_find_word(const corpus *c, const char *word, char *place, size_t n);

#endif
