/* tokenize_simple.c - separates words and punctuation marks by spaces. Exported programs have this file, too. */
#include "base/base.h"
#include "cli/input/tokenize.h"
#include "io/text.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>

/* Punctuation marks beyond ASCII: quotes, dashes, the ellipsis, Spanish and CJK marks. */
static const char *const marks[] = {"\u2018", "\u2019", "\u201a", "\u201c", "\u201d", "\u201e", "\u2026",
                                    "\u2013", "\u2014", "\u00ab", "\u00bb", "\u00bf", "\u00a1", "\u3001",
                                    "\u3002", "\uff01", "\uff08", "\uff09", "\uff0c", "\uff1a", "\uff1b",
                                    "\uff1f", "\u300a", "\u300b", "\u300c", "\u300d", NULL};

/* Returns how many bytes the punctuation mark at `text` has; 0: there is none. */
static size_t mark_length(const char *text) {
    if ((unsigned char)*text < 0x80) return ispunct((unsigned char)*text) ? 1 : 0;
    for (const char *const *m = marks; *m; m++)
        if (strncmp(text, *m, strlen(*m)) == 0) return strlen(*m);
    return 0;
}

/* Returns whether a letter or a digit begins at `text`. */
static bool is_letter(const char *text) { return *text && !vpps_is_space(*text) && !mark_length(text); }

/* Returns whether the punctuation mark at `text` is part of a word, as in "don't" or "$5". `inside`: a letter or digit precedes it. */
static bool joins(const char *text, size_t n, bool inside) {
    const bool apostrophe = strncmp(text, "\u2019", n) == 0;
    if (inside) return (n == 1 || apostrophe) && is_letter(text + n);
    if (n != 1) return false;
    return isdigit((unsigned char)text[1]) ? strchr("$#@+-", *text) != NULL
                                           : strchr("#@", *text) && is_letter(text + 1);
}

char *tokenize_simple(const char *text) {
    char *words = malloc(3 * strlen(text) + 1), *to = words;
    bool inside = false; /* whether a word of letters has begun that may go on */
    while (words && *text) {
        size_t n = mark_length(text);
        if (vpps_is_space(*text)) {
            inside = false;
            *to++ = *text++;
        } else if (n == 0 || joins(text, n, inside)) {
            if (!inside && to > words && !vpps_is_space(to[-1])) *to++ = ' ';
            inside = true;
            *to++ = *text++;
            for (; n > 1; n--) *to++ = *text++;
        } else {
            if (to > words && !vpps_is_space(to[-1])) *to++ = ' ';
            const char *mark = text;
            do {
                memcpy(to, mark, n);
                to += n;
                text += n;
            } while (strncmp(text, mark, n) == 0);
            inside = false;
        }
    }
    if (words) *to = '\0';
    return words;
}
