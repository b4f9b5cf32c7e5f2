/* tokenize.c - see tokenize.h. */
#include "cli/tokenize.h"
#include "base/base.h"
#include "io/text.h"

#include <ctype.h>

/* Marks beyond ASCII: quotes, dashes, the ellipsis, Spanish and CJK marks. */
static const char *const marks[] = {"\u2018", "\u2019", "\u201a", "\u201c", "\u201d", "\u201e", "\u2026",
                                    "\u2013", "\u2014", "\u00ab", "\u00bb", "\u00bf", "\u00a1", "\u3001",
                                    "\u3002", "\uff01", "\uff08", "\uff09", "\uff0c", "\uff1a", "\uff1b",
                                    "\uff1f", "\u300a", "\u300b", "\u300c", "\u300d", NULL};

/* How many bytes the mark at `text` has; 0: it begins otherwise. */
static size_t mark_length(const char *text) {
    if (isascii((unsigned char)*text)) return ispunct((unsigned char)*text) ? 1 : 0;
    for (const char *const *m = marks; *m; m++) {
        if (strncmp(text, *m, strlen(*m)) == 0) return strlen(*m);
    }
    return 0;
}

/* Does a letter or a digit begin at `text`? */
static bool is_letter(const char *text) { return *text && !vpps_is_space(*text) && !mark_length(text); }

/* Does the mark at `text` belong to the word around it? inside: a letter or digit is before it. */
static bool joins(const char *text, size_t n, bool inside) {
    const bool apostrophe = strncmp(text, "\u2019", n) == 0;
    if (inside) return (n == 1 || apostrophe) && is_letter(text + n);
    if (n != 1) return false;
    return isdigit((unsigned char)text[1]) ? strchr("$#@+-", *text) != NULL
                                           : strchr("#@", *text) && is_letter(text + 1);
}

char *tokenize_simple(const char *text) {
    char *words = malloc(3 * strlen(text) + 1), *to = words;
    bool inside = false; /* a word of letters has begun, and may go on */
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

static bool splits(const settings *s) { return s->tokenizer == TOKENIZER_SIMPLE; }

char *tokenize_field(const settings *s, const char *text) { return splits(s) ? tokenize_simple(text) : strdup(text); }

/* ---------------------------------------------------------------- lines */

char *tokenize_line(const settings *s, const char *line, size_t len, size_t *words_len) {
    char *text = malloc(len + 1);
    *words_len = len;
    if (text && len) memcpy(text, line, len);
    if (!text || memchr(text, '\0', len) || !splits(s)) return text;
    text[len] = '\0';
    char *words = tokenize_simple(text);
    free(text);
    if (words) *words_len = strlen(words);
    return words;
}

/* Where the sentence of a labelled line begins: after its first tab, or, without one, at its end. */
static size_t sentence_at(const char *line, size_t len) {
    const char *tab = len ? memchr(line, '\t', len) : NULL;
    return tab ? (size_t)(tab - line) + 1 : len;
}

char *tokenize_labelled(const settings *s, const char *line, size_t len, size_t *words_len) {
    const size_t label = sentence_at(line, len);
    char *words = tokenize_line(s, line + label, len - label, words_len), *text = NULL;
    if (words) text = malloc(label + *words_len + 1);
    if (text && label) memcpy(text, line, label);
    if (text && *words_len) memcpy(text + label, words, *words_len);
    *words_len += label;
    free(words);
    return text;
}

/* ---------------------------------------------------------------- files */

/* The lines of a text as `make` gives each of them. */
static vpps_status print_lines(const settings *s, const vpps_text *t,
                               char *(*make)(const settings *s, const char *line, size_t len, size_t *made_len),
                               FILE *to) {
    for (vpps_line line = {0}; vpps_text_next_line(t, &line); fputc('\n', to)) {
        size_t len = 0;
        char *made = make(s, line.begin, (size_t)(line.end - line.begin), &len);
        if (!made) return VPPS_MEMORY;
        fwrite(made, 1, len, to);
        free(made);
    }
    return VPPS_OK;
}

vpps_status tokenize_file(const settings *s, const char *name, bool labelled, char **text, size_t *len) {
    char *words = NULL;
    size_t words_len = 0;
    if (!splits(s)) return VPPS_OK;
    const vpps_text t = vpps_text_of(name, *text, *len, "");
    FILE *f = open_memstream(&words, &words_len);
    vpps_status status = f ? print_lines(s, &t, labelled ? tokenize_labelled : tokenize_line, f) : VPPS_MEMORY;
    if (f && fclose(f) != 0) status = VPPS_MEMORY;
    if (status != VPPS_OK) {
        free(words);
        return vpps_fail(VPPS_MEMORY, "no memory for words");
    }
    free(*text);
    *text = words;
    *len = words_len;
    return VPPS_OK;
}
