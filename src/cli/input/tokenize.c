/* tokenize.c - splits text into words. */
#include "cli/input/tokenize.h"
#include "base/base.h"
#include "io/text.h"

static bool splits(const settings *s) { return s->tokenizer == TOKENIZER_SIMPLE; }

char *tokenize_field(const settings *s, const char *text) { return splits(s) ? tokenize_simple(text) : strdup(text); }

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

/* Returns the position at which the sentence of a labelled line begins: after the line's first tab, or, without a tab, at the line's end. */
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

/* Prints each line of a text, converted by `make`. */
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
