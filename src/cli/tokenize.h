/* tokenize.h - text into words. */
#pragma once

#include "cli/options.h"

/* --tokenizer, in the order of its words. */
enum { TOKENIZER_NONE, TOKENIZER_SIMPLE };

/* Text with spaces between its words; to be freed, NULL without memory. Punctuation is words of its own: each mark, or a run of
 * equal ones ("...", "--"). A mark of ASCII between two letters or digits stays in their word (it's, 3.14, e-mail, a@b.org), as does
 * a '$', '#', '@', '+' or '-' before a digit or, for the first three, a letter. Letters are those of ASCII and all of UTF-8
 * beyond it, except quotes, dashes, ellipses and full-width marks. */
char *tokenize_simple(const char *text);

/* The text of a field, with --tokenizer simple as words; to be freed, NULL without memory. */
char *tokenize_field(const settings *s, const char *text);

/* The same of a line of len bytes; it may hold NUL, and then stays as it is. *words_len: what the result has, without a NUL at its end. */
char *tokenize_line(const settings *s, const char *line, size_t len, size_t *words_len);

/* The same of a label, a tab and a sentence, whose label stays as it is. */
char *tokenize_labelled(const settings *s, const char *line, size_t len, size_t *words_len);

/* Replaces a file's text by the words of --tokenizer, a line for each line; `labelled`: only what follows a line's first tab. *text was
 * allocated, and is to be freed. Fails with MEMORY. */
vpps_status tokenize_file(const settings *s, const char *name, bool labelled, char **text, size_t *len);
