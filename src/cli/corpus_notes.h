/* corpus_notes.h - notes about oddities of data that were read, with their places, which are no failures. */
#pragma once

#include "cli/corpus.h"

/* Keeps a line to be told when all data are read. Without memory it is not kept. */
void corpus_note(corpus *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Notes the first byte of a file's text that is not UTF-8, and how many lines have one. */
void corpus_note_encoding(corpus *c, const char *name, const char *text, size_t len);

/* Label k of number i of what was read, in the part's own ids (VPPS_NO_WORD: none); false: there are fewer. */
bool corpus_label(const corpus_split *split, uint32_t i, uint32_t k, uint32_t *label);

/* Where it stands, "FILE:LINE", and a label's name, or number. */
void corpus_label_place(const corpus_split *split, uint32_t i, uint32_t k, char *text, size_t n);
void corpus_label_name(const corpus *c, const corpus_split *split, uint32_t label, char *name, size_t n);

/* Notes the labels of a part, read and mapped, that the training part does not have, and where the first one is. */
void corpus_note_labels(corpus *c, int which);

/* Notes the tags of a part that are of no scheme of chunks, where the network's tags are: they are outside of all. */
void corpus_note_tags(corpus *c, int which);

/* Where the bytes of a word of the training part stand first: "FILE:LINE:COLUMN: "; empty: they are not found. Reads the
 * files again. */
void corpus_find_word(const corpus *c, const char *word, char *place, size_t n);
