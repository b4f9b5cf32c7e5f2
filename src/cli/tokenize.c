/* tokenize.c - see tokenize.h. */
#include "cli/tokenize.h"
#include "base/base.h"
#include "cli/filter.h"
#include "io/descriptor.h"
#include "io/text.h"

#include <ctype.h>
#include <errno.h>
#include <unistd.h>

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

static bool splits(const settings *s) { return s->tokenizer && strcmp(s->tokenizer, "simple") == 0; }

const char *tokenizer_command(const settings *s) {
    return splits(s) || (s->tokenizer && strcmp(s->tokenizer, "none") == 0) ? NULL : s->tokenizer;
}

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

/* All that a command prints, and how many lines that is. */
static vpps_status read_printed(int fd, FILE *to, uint64_t *lines) {
    char room[65536], last = '\n';
    for (;;) {
        const ssize_t n = read(fd, room, sizeof room);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return vpps_fail(VPPS_IO, "the command of --tokenizer: %s", strerror(errno));
        if (n == 0) break;
        for (ssize_t i = 0; i < n; i++) *lines += room[i] == '\n';
        last = room[n - 1];
        fwrite(room, 1, (size_t)n, to);
    }
    *lines += last != '\n';
    return VPPS_OK;
}

/* The thread's message, with the file whose lines the command was given. */
static vpps_status name_file(vpps_status status, const char *name) {
    char why[VPPS_MESSAGE_BYTES];
    snprintf(why, sizeof why, "%s", vpps_error_message());
    return vpps_fail(status, "%s%s: %.400s", VPPS_PATH_ARGS(name), why);
}

static vpps_status run_command(const char *command, const char *name, const char *text, size_t len, FILE *to) {
    vpps_stream *stream;
    filter *f = NULL;
    int fd = -1;
    uint64_t lines = 0;
    VPPS_TRY(vpps_stream_of(&stream, name, text, len));
    vpps_status status = filter_open(&f, command, stream, &fd);
    if (status == VPPS_OK) status = read_printed(fd, to, &lines);
    if (status == VPPS_OK) status = filter_end(f, lines);
    if (status != VPPS_OK) status = name_file(status, name);
    filter_close(f);
    vpps_stream_close(stream);
    return status;
}

/* The lines of a text as `make` gives each of them. */
static vpps_status print_lines(const settings *s, const vpps_text *t,
                               char *(*make)(const settings *s, const char *line, size_t len, size_t *made_len),
                               FILE *to) {
    for (vpps_line line = {0}; vpps_text_next_line(t, &line); fputc('\n', to)) {
        size_t len = 0;
        char *made = make(s, line.begin, (size_t)(line.end - line.begin), &len);
        if (!made) return vpps_fail(VPPS_MEMORY, "no memory for words");
        fwrite(made, 1, len, to);
        free(made);
    }
    return VPPS_OK;
}

static char *copy_sentence(const settings *s, const char *line, size_t len, size_t *made_len) {
    const size_t at = sentence_at(line, len);
    (void)s;
    *made_len = len - at;
    char *copy = malloc(*made_len + 1);
    if (copy && *made_len) memcpy(copy, line + at, *made_len);
    return copy;
}

/* The labels of a text's lines before the lines of another one, which has as many. */
static void join_labels(const vpps_text *t, const vpps_text *words, FILE *to) {
    vpps_line line = {0}, sentence = {0};
    while (vpps_text_next_line(t, &line) && vpps_text_next_line(words, &sentence)) {
        fwrite(line.begin, 1, sentence_at(line.begin, (size_t)(line.end - line.begin)), to);
        fwrite(sentence.begin, 1, (size_t)(sentence.end - sentence.begin), to);
        fputc('\n', to);
    }
}

/* Text that a function prints. */
typedef struct printed {
    char *text;
    size_t len;
    FILE *file;
} printed;

static vpps_status print_begin(printed *p) {
    p->file = open_memstream(&p->text, &p->len);
    return p->file ? VPPS_OK : vpps_fail(VPPS_MEMORY, "no memory for words");
}

static vpps_status print_end(printed *p, vpps_status status) {
    const bool good = p->file && fclose(p->file) == 0;
    p->file = NULL;
    return status == VPPS_OK && !good ? vpps_fail(VPPS_MEMORY, "no memory for words") : status;
}

/* Sentences alone go through the command. */
static vpps_status run_on_sentences(const char *command, const vpps_text *t, FILE *to) {
    printed sentences = {0}, words = {0};
    vpps_status status = print_begin(&sentences);
    if (status == VPPS_OK) status = print_end(&sentences, print_lines(NULL, t, copy_sentence, sentences.file));
    if (status == VPPS_OK) status = print_begin(&words);
    if (status == VPPS_OK)
        status = print_end(&words, run_command(command, t->name, sentences.text, sentences.len, words.file));
    if (status == VPPS_OK) {
        const vpps_text w = vpps_text_of(t->name, words.text, words.len, "");
        join_labels(t, &w, to);
    }
    VPPS_FREE(sentences.text, words.text);
    return status;
}

vpps_status tokenize_file(const settings *s, const char *name, bool labelled, char **text, size_t *len) {
    const char *command = tokenizer_command(s);
    const vpps_text t = vpps_text_of(name, *text, *len, "");
    printed words = {0};
    if (!command && !splits(s)) return VPPS_OK;
    VPPS_TRY(print_begin(&words));
    vpps_status status = !command   ? print_lines(s, &t, labelled ? tokenize_labelled : tokenize_line, words.file)
                         : labelled ? run_on_sentences(command, &t, words.file)
                                    : run_command(command, name, t.begin, (size_t)(t.end - t.begin), words.file);
    status = print_end(&words, status);
    if (status != VPPS_OK) {
        free(words.text);
        return status;
    }
    free(*text);
    *text = words.text;
    *len = words.len;
    return VPPS_OK;
}
