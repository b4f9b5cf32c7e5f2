/* lists.h - parses lists that a table's cell holds as text, such as "['a', 'b']". */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Parses a list of strings or numbers in the notation of JSON, Python's repr, NumPy or pandas ("['Ada', 'lived']", "(1,
 * 2)", "['Ada' 'lived']"). Writes the *n strings to `items` one after the other, each ended by a NUL; `items` has as
 * much room as `text`. Returns false where the text is no such list. *cut: NumPy has left items out ("..."). */
bool list_of_text(const char *text, char *items, size_t *n, bool *cut);
