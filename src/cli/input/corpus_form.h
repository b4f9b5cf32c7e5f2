/* corpus_form.h - adds notes for the user about data that could be read but seem to have another format. */
#pragma once

#include "cli/input/corpus.h"

/* Adds a note if plain text looks like trees, word|TAG or columns. */
void corpus_note_text(corpus *c, const char *name, const char *text, size_t len);

/* Adds a note if labelled lines of a .tsv file have their text in quotation marks, as spreadsheets write it. Without a
 * first line of column names, the marks are read as part of the text. */
void corpus_note_quotes(corpus *c, const char *name, const char *text, size_t len);

/* Adds a note if the text of a language model contains END_WORD: on which lines, and how the word is read. */
void corpus_note_reserved(corpus *c, const char *name, const char *text, size_t len);

/* Adds notes about suspicious training data after reading: a single example, nearly as many classes as labels, a
 * column's heading as a label, a single word. */
void corpus_note_form(corpus *c, const settings *s);
