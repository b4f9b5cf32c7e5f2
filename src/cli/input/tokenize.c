/* tokenize.c - splits text into words. */
#include "cli/input/tokenize.h"
#include "base/base.h"
#include "io/text.h"

static bool splits(const settings *s) { return s->tokenizer == TOKENIZER_SIMPLE; }

char *tokenize_field(const settings *s, const char *text) { return splits(s) ? tokenize_simple(text) : strdup(text); }

char *tokenize_line(const settings *s, bool labelled, const char *line, size_t len, size_t *words_len) {
    const char *tab = labelled && len ? memchr(line, '\t', len) : NULL;
    const size_t label = tab ? (size_t)(tab - line) + 1 : labelled ? len : 0;
    char *text = malloc(len + 1), *both;
    *words_len = len;
    if (text && len) memcpy(text, line, len);
    if (!text || memchr(text, '\0', len) || !splits(s)) return text;
    text[len] = '\0';
    char *words = tokenize_simple(text + label);
    const int n = words ? asprintf(&both, "%.*s%s", (int)label, text, words) : -1;
    VPPS_FREE(words, text);
    if (n >= 0) *words_len = (size_t)n;
    return n >= 0 ? both : NULL;
}

/* Prints each line of a text, converted by tokenize_line. */
static vpps_status print_lines(const settings *s, const vpps_text *t, bool labelled, FILE *to) {
    for (vpps_line line = {0}; vpps_text_next_line(t, &line); fputc('\n', to)) {
        size_t len = 0;
        char *made = tokenize_line(s, labelled, line.begin, (size_t)(line.end - line.begin), &len);
        if (!made) return vpps_fail(VPPS_MEMORY, "no memory for words");
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
    VPPS_TRY(vpps_text_end(f, f ? print_lines(s, &t, labelled, f) : VPPS_OK, &words));
    free(*text);
    *text = words;
    *len = words_len;
    return VPPS_OK;
}
