/* corpus_form.h - notes for the user about data that could be read but seem to have another format. */
#pragma once

#include "cli/input/corpus.h"

/* Notes plain text that looks like trees, word|TAG or columns. */
void corpus_note_text(corpus *c, const char *name, const char *text, size_t len);

/* Notes labelled lines of a .tsv file whose text is in quotation marks, as spreadsheets write it: without a line of
 * names, the marks are read as part of the text. */
void corpus_note_quotes(corpus *c, const char *name, const char *text, size_t len);

/* Notes where plain text to be generated contains END_WORD, and what becomes of it. */
void corpus_note_reserved(corpus *c, const char *name, const char *text, size_t len);

/* Notes what is suspicious in the training part, after reading: a single example, nearly as many classes as labels, a
 * column's heading as a label, a single word. */
void corpus_note_form(corpus *c, const settings *s);
