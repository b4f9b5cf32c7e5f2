/* tokenize.h - splits text into words. */
#pragma once

#include "cli/options/options.h"

/* The values of --tokenizer, in the order of the option's choices. */
enum { TOKENIZER_NONE, TOKENIZER_SIMPLE };

/* Returns the text with spaces between its words, which the caller frees; NULL: out of memory. A punctuation mark, or a
 * run of equal ones ("...", "--"), is a word. An ASCII mark between two letters or digits stays in their word (it's,
 * 3.14, e-mail, a@b.org), as does a '$', '#', '@', '+' or '-' before a digit or, for the first three, a letter. Letters
 * are those of ASCII and all UTF-8 characters beyond it, except quotes, dashes, ellipses and full-width marks. */
char *tokenize_simple(const char *text);

/* Returns a field's text, split into words with --tokenizer simple; the caller frees it. NULL: out of memory. */
char *tokenize_field(const settings *s, const char *text);

/* Returns a copy of a line of len bytes, which --tokenizer splits into words. If `labelled`, splits only the text after the line's first
 * tab, or nothing if there is no tab. The caller frees the copy. *words_len is the copy's length in bytes. A line that holds a NUL is
 * copied unchanged. NULL: out of memory. */
char *tokenize_line(const settings *s, bool labelled, const char *line, size_t len, size_t *words_len);

/* Splits a file's text into words, line by line as tokenize_line does. Frees *text, which must be allocated, and sets it
 * to the new text. Fails with MEMORY. */
vpps_status tokenize_file(const settings *s, const char *name, bool labelled, char **text, size_t *len);
