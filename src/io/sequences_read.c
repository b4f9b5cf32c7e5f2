/* sequences_read.c - sentences from text: word|TAG lines, CoNLL columns, plain lines. */
#include "sequences.h"

#include "base/base.h"
#include "file.h"
#include "text.h"

/* ---------------------------------------------------------------- word|TAG */

static vpps_status read_tagged_line(vpps_sentences *s, const vpps_text *t, const char *line, const char *end) {
    const char *token;
    size_t len, before = s->n_words;
    while (vpps_text_next_word(&line, end, &token, &len)) {
        const char *bar = memrchr(token, '|', len);
        if (!bar) return vpps_text_fail(t, token, "word|TAG", NULL);
        if (bar == token) return vpps_text_fail(t, token, "a word before '|'", NULL);
        const size_t word_len = (size_t)(bar - token), tag_len = len - word_len - 1;
        if (tag_len == 0) return vpps_text_fail(t, bar + 1, "a tag behind '|'", NULL);
        VPPS_TRY(vpps_sentences_add_word(s, token, word_len, bar + 1, tag_len));
    }
    return s->n_words > before ? vpps_sentences_end(s) : VPPS_OK;
}

static vpps_status read_tagged(vpps_sentences *s, const vpps_text *t) {
    const char *at = t->begin, *line, *end;
    VPPS_TRY(vpps_sentences_begin(s, true));
    while (vpps_text_next_line(t, &at, &line, &end)) VPPS_TRY(read_tagged_line(s, t, line, end));
    return VPPS_OK;
}

/* ---------------------------------------------------------------- columns */

typedef struct column_reader {
    vpps_sentences *s;
    const vpps_text *t;
    vpps_columns wanted; /* columns from 1; tag 0 until the first line is read */
    uint32_t n_columns;  /* of the first line; 0 before it */
    size_t first_line;   /* its number */
    size_t open;         /* words of the sentence that is not complete yet */
} column_reader;

static bool is_blank(char c) { return c == ' ' || c == '\t'; }

/* The next column in *at .. end; *at goes behind it and its tab, or is NULL when it was the last. */
static bool next_column(bool tabs, const char **at, const char *end, const char **column, size_t *len) {
    const char *p = *at;
    if (!p) return false;
    while (!tabs && p < end && is_blank(*p)) p++;
    *column = p;
    while (p < end && *p != '\t' && (tabs || *p != ' ')) p++;
    *len = (size_t)(p - *column);
    *at = p < end ? p + 1 : NULL;
    return tabs || *len > 0;
}

static uint32_t count_columns(bool tabs, const char *line, const char *end) {
    const char *column;
    size_t len;
    uint32_t n = 0;
    while (next_column(tabs, &line, end, &column, &len)) n++;
    return n;
}

/* The first line says how many columns there are, and thereby which is the last. */
static vpps_status take_first_line(column_reader *r, const char *line, uint32_t n) {
    const uint32_t needed = r->wanted.tag ? vpps_max_u32(r->wanted.word, r->wanted.tag) : r->wanted.word + 1;
    if (n < needed) {
        char expected[40], found[24];
        snprintf(expected, sizeof expected, "at least %u columns", needed);
        snprintf(found, sizeof found, "%u", n);
        return vpps_text_fail(r->t, line, expected, found);
    }
    r->n_columns = n;
    r->first_line = vpps_text_line(r->t, line);
    if (!r->wanted.tag) r->wanted.tag = n;
    return VPPS_OK;
}

static vpps_status read_token_line(column_reader *r, const char *line, const char *end) {
    const uint32_t n = count_columns(r->wanted.tabs, line, end);
    if (!r->n_columns) VPPS_TRY(take_first_line(r, line, n));
    if (n != r->n_columns) {
        char expected[64], found[24];
        snprintf(expected, sizeof expected, "%u columns as in line %zu", r->n_columns, r->first_line);
        snprintf(found, sizeof found, "%u", n);
        return vpps_text_fail(r->t, line, expected, found);
    }
    const char *column, *word = line, *tag = line;
    size_t len, word_len = 0, tag_len = 0;
    for (uint32_t i = 1; next_column(r->wanted.tabs, &line, end, &column, &len); i++) {
        if (i == r->wanted.word) word = column, word_len = len;
        if (i == r->wanted.tag) tag = column, tag_len = len;
    }
    if (!word_len) return vpps_text_fail(r->t, word, "a word", NULL);
    if (!tag_len) return vpps_text_fail(r->t, tag, "a tag", NULL);
    r->open++;
    return vpps_sentences_add_word(r->s, word, word_len, tag, tag_len);
}

static vpps_status end_open_sentence(column_reader *r) {
    if (!r->open) return VPPS_OK;
    r->open = 0;
    return vpps_sentences_end(r->s);
}

static vpps_status read_columns(column_reader *r) {
    const char *at = r->t->begin, *line, *end;
    VPPS_TRY(vpps_sentences_begin(r->s, true));
    while (vpps_text_next_line(r->t, &at, &line, &end)) {
        const char *p = line;
        while (!r->wanted.tabs && p < end && is_blank(*p)) p++;
        if (p == end) {
            VPPS_TRY(end_open_sentence(r));
        } else if (!r->wanted.comments || *line != '#') {
            VPPS_TRY(read_token_line(r, line, end));
        }
    }
    return end_open_sentence(r);
}

/* ---------------------------------------------------------------- plain lines */

vpps_status vpps_sentences_check_end_word(const char *end_word) {
    if (!end_word || (*end_word && !strpbrk(end_word, " \r\n"))) return VPPS_OK;
    return vpps_fail(VPPS_ARGUMENT, "sentences: expected an end word without spaces and line ends, found '%.80s'",
                     end_word);
}

vpps_status vpps_sentences_add_line(vpps_sentences *s, const char *line, const char *end, const char *end_word) {
    const char *word;
    size_t len;
    while (vpps_text_next_word(&line, end, &word, &len)) VPPS_TRY(vpps_sentences_add_word(s, word, len, NULL, 0));
    if (end_word) VPPS_TRY(vpps_sentences_add_word(s, end_word, strlen(end_word), NULL, 0));
    return vpps_sentences_end(s);
}

bool vpps_line_has_word(const char *line, const char *end) {
    while (line < end && *line == ' ') line++;
    return line < end;
}

static vpps_status read_lines(vpps_sentences *s, const vpps_text *t, const vpps_lines *lines) {
    const char *at = t->begin, *line, *end;
    VPPS_TRY(vpps_sentences_check_end_word(lines->end_word));
    VPPS_TRY(vpps_sentences_begin(s, false));
    while (vpps_text_next_line(t, &at, &line, &end)) {
        if (!lines->keep_empty && !vpps_line_has_word(line, end)) continue;
        VPPS_TRY(vpps_sentences_add_line(s, line, end, lines->end_word));
    }
    return VPPS_OK;
}

/* ---------------------------------------------------------------- the public calls */

vpps_status vpps_sentences_read_tagged_text(vpps_sentences *s, const char *name, const char *text, size_t len) {
    const vpps_text t = vpps_text_of(name, text, len, "");
    const vpps_sentences_mark before = vpps_sentences_extent(s);
    vpps_status status = vpps_text_check(&t);
    if (status == VPPS_OK) status = read_tagged(s, &t);
    if (status != VPPS_OK) vpps_sentences_restore(s, before);
    return status;
}

vpps_status vpps_sentences_read_columns_text(vpps_sentences *s, const char *name, const char *text, size_t len,
                                             const vpps_columns *columns) {
    const vpps_text t = vpps_text_of(name, text, len, "");
    const vpps_sentences_mark before = vpps_sentences_extent(s);
    column_reader r = {.s = s, .t = &t};
    if (columns) r.wanted = *columns;
    if (!r.wanted.word) r.wanted.word = 1;
    if (r.wanted.word == r.wanted.tag || r.wanted.word == UINT32_MAX) {
        return vpps_fail(VPPS_ARGUMENT, "sentences: expected word and tag in different columns, found %u for both",
                         r.wanted.word);
    }
    vpps_status status = vpps_text_check(&t);
    if (status == VPPS_OK) status = read_columns(&r);
    if (status != VPPS_OK) vpps_sentences_restore(s, before);
    return status;
}

vpps_status vpps_sentences_read_lines_text(vpps_sentences *s, const char *name, const char *text, size_t len,
                                           const vpps_lines *lines) {
    static const vpps_lines defaults = {0};
    const vpps_text t = vpps_text_of(name, text, len, "");
    const vpps_sentences_mark before = vpps_sentences_extent(s);
    vpps_status status = vpps_text_check(&t);
    if (status == VPPS_OK) status = read_lines(s, &t, lines ? lines : &defaults);
    if (status != VPPS_OK) vpps_sentences_restore(s, before);
    return status;
}

vpps_status vpps_sentences_read_tagged_file(vpps_sentences *s, const char *path) {
    char *text;
    size_t len;
    VPPS_TRY(vpps_file_read_all(path, &text, &len));
    vpps_status status = vpps_sentences_read_tagged_text(s, path, text, len);
    free(text);
    return status;
}

vpps_status vpps_sentences_read_columns_file(vpps_sentences *s, const char *path, const vpps_columns *columns) {
    char *text;
    size_t len;
    VPPS_TRY(vpps_file_read_all(path, &text, &len));
    vpps_status status = vpps_sentences_read_columns_text(s, path, text, len, columns);
    free(text);
    return status;
}

vpps_status vpps_sentences_read_lines_file(vpps_sentences *s, const char *path, const vpps_lines *lines) {
    char *text;
    size_t len;
    VPPS_TRY(vpps_file_read_all(path, &text, &len));
    vpps_status status = vpps_sentences_read_lines_text(s, path, text, len, lines);
    free(text);
    return status;
}
