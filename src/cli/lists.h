/* lists.h - parses lists that tables hold as text. */
#pragma once

#include "cli/json.h"

/* Parses a list of strings or numbers in the notation of JSON, Python's repr, NumPy or pandas ("['Ada', 'lived']", "(1,
 * 2)", "['Ada' 'lived']"). Returns an array of strings, which the caller frees; NULL: the text is no such list, or out
 * of memory. *cut: NumPy has left items out ("..."). */
json_t *list_of_text(const char *text, bool *cut);
