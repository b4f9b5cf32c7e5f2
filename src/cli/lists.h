/* lists.h - lists that tables hold as text. */
#pragma once

#include "cli/json.h"

/* The items of a list of strings or of numbers as text, as json and repr, NumPy and pandas write them ("['Ada', 'lived']", "(1, 2)",
 * "['Ada' 'lived']"), as an array of strings, which is freed by the caller; NULL: the text is no such list, or memory lacks. *cut: it
 * is one of which NumPy has left items out. */
json_t *list_of_text(const char *text, bool *cut);
