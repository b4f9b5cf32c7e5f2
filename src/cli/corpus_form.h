/* corpus_form.h - notes about data that were read without a failure, but seem to be of another form. */
#pragma once

#include "cli/corpus.h"

/* Notes plain text that looks like trees, word|TAG or columns. */
void corpus_note_text(corpus *c, const char *name, const char *text, size_t len);

/* Notes labelled lines of a file in .tsv whose text is in quotes, as a spreadsheet writes it: without names of fields they are words. */
void corpus_note_quotes(corpus *c, const char *name, const char *text, size_t len);

/* Notes where plain text that is to be said holds END_WORD, and what becomes of it. */
void corpus_note_reserved(corpus *c, const char *name, const char *text, size_t len);

/* Notes what is improbable of the training part, once it is read and the classes are known: a single example, nearly as many
 * classes as labels, the heading of a column as a label, one word only. */
void corpus_note_form(corpus *c, const settings *s);
