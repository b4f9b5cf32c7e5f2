/* sequences_columns.c - tagged sentences from the columns of the CoNLL shared tasks, and from CoNLL-U
 * (https://universaldependencies.org/format.html), whose columns have names. */
#include "sequences.h"

#include "base/base.h"
#include "file.h"

#include <strings.h>

/* ---------------------------------------------------------------- columns of a line */

typedef struct column_reader {
    vpps_sentences *s;
    const vpps_text *t;
    vpps_columns wanted; /* columns from 1; tag 0 until the first line is read */
    uint32_t id;         /* CoNLL-U: the column of the ID, from 1; 0: there is none */
    uint32_t n_columns;  /* of every line; 0: not known before the first */
    uint32_t first_line; /* that says so; 0: CoNLL-U does */
    uint32_t open;       /* the line of the sentence that is not complete yet; 0: there is none */
} column_reader;

typedef struct column {
    const char *text;
    size_t len;
} column;

static bool is_blank(char c) { return c == ' ' || c == '\t'; }

/* The next column in *at .. end; *at goes behind it and its tab, or is NULL when it was the last. */
static bool next_column(bool tabs, const char **at, const char *end, column *c) {
    const char *p = *at;
    if (!p) return false;
    while (!tabs && p < end && is_blank(*p)) p++;
    c->text = p;
    while (p < end && *p != '\t' && (tabs || *p != ' ')) p++;
    c->len = (size_t)(p - c->text);
    *at = p < end ? p + 1 : NULL;
    return tabs || c->len > 0;
}

static uint32_t count_columns(bool tabs, const char *line, const char *end) {
    column c;
    uint32_t n = 0;
    while (next_column(tabs, &line, end, &c)) n++;
    return n;
}

static bool column_is(column c, const char *text) { return c.len == strlen(text) && memcmp(c.text, text, c.len) == 0; }

/* ---------------------------------------------------------------- names of columns */

static const char conllu_names[] = "ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC";

/* Which of the names, parted by spaces, it is, from 1, in capital letters or small ones; 0: none. */
static uint32_t find_name(const char *names, const char *end, const char *name) {
    const char *word;
    size_t len;
    for (uint32_t i = 1; vpps_text_next_word(&names, end, &word, &len); i++) {
        if (len == strlen(name) && strncasecmp(word, name, len) == 0) return i;
    }
    return 0;
}

/* The column of a name into *number; without a name, of `standard` when *number is 0. */
static vpps_status resolve(const column_reader *r, const char *names, const char *end, const char *name,
                           const char *standard, uint32_t *number) {
    if (!name && *number) return VPPS_OK;
    const char *wanted = name ? name : standard;
    *number = find_name(names, end, wanted);
    if (*number) return VPPS_OK;
    char expected[64], found[128];
    const int shown = end - names < 100 ? (int)(end - names) : 100;
    snprintf(expected, sizeof expected, "a column %.40s", wanted);
    snprintf(found, sizeof found, "%.*s", shown, names);
    return vpps_text_fail(r->t, r->t->begin, expected, found);
}

/* CoNLL-U's columns, or those that the text's first line names (CoNLL-U Plus). */
static vpps_status take_names(column_reader *r) {
    static const char given[] = "# global.columns =";
    const char *names = conllu_names, *end = conllu_names + sizeof conllu_names - 1;
    vpps_line line = {0};
    if (vpps_text_next_line(r->t, &line) && (size_t)(line.end - line.begin) >= sizeof given - 1 &&
        memcmp(line.begin, given, sizeof given - 1) == 0) {
        names = line.begin + sizeof given - 1;
        while (names < line.end && *names == ' ') names++;
        end = line.end;
        r->first_line = 1;
    }
    VPPS_TRY(resolve(r, names, end, r->wanted.word_name, "FORM", &r->wanted.word));
    VPPS_TRY(resolve(r, names, end, r->wanted.tag_name, "UPOS", &r->wanted.tag));
    r->id = find_name(names, end, "ID");
    const char *word;
    size_t len;
    while (vpps_text_next_word(&names, end, &word, &len)) r->n_columns++;
    r->wanted.tabs = r->wanted.comments = true;
    return VPPS_OK;
}

/* ---------------------------------------------------------------- lines */

static vpps_status check_columns(const column_reader *r) {
    if (r->wanted.word != r->wanted.tag && r->wanted.word != UINT32_MAX) return VPPS_OK;
    return vpps_fail(VPPS_ARGUMENT, "sentences: expected word and tag in different columns, found %u for both",
                     r->wanted.word);
}

static vpps_status fail_columns(const column_reader *r, const vpps_line *line, const char *expected, uint32_t n) {
    char found[24];
    snprintf(found, sizeof found, "%u", n);
    return vpps_text_fail(r->t, line->begin, expected, found);
}

/* The first line says how many columns there are, and thereby which is the last. */
static vpps_status take_first_line(column_reader *r, const vpps_line *line, uint32_t n) {
    const uint32_t needed = r->wanted.tag ? vpps_max_u32(r->wanted.word, r->wanted.tag) : r->wanted.word + 1;
    if (n < needed) {
        char expected[40];
        snprintf(expected, sizeof expected, "at least %u columns", needed);
        return fail_columns(r, line, expected, n);
    }
    r->n_columns = n;
    r->first_line = line->number;
    if (!r->wanted.tag) r->wanted.tag = n;
    return VPPS_OK;
}

/* A word's ID is a number, that of several words as they are written together a range, that of a word which is not
 * written has a fraction: only the first one is a word. */
static vpps_status read_id(const column_reader *r, column id, bool *is_word) {
    const char *p = id.text, *end = id.text + id.len;
    while (p < end && *p >= '0' && *p <= '9') p++;
    *is_word = p == end && id.len > 0;
    if (*is_word) return VPPS_OK;
    const char *second = end;
    if (p > id.text && p < end && (*p == '-' || *p == '.')) {
        for (second = ++p; p < end && *p >= '0' && *p <= '9';) p++;
    }
    if (p == end && p > second) return VPPS_OK;
    return vpps_text_fail(r->t, id.text, "a word's number, a range as 3-4, or an empty node as 5.1", NULL);
}

static vpps_status read_token_line(column_reader *r, const vpps_line *line) {
    const uint32_t n = count_columns(r->wanted.tabs, line->begin, line->end);
    if (!r->n_columns) VPPS_TRY(take_first_line(r, line, n));
    if (n != r->n_columns) {
        char expected[64];
        if (r->first_line) {
            snprintf(expected, sizeof expected, "%u columns as in line %u", r->n_columns, r->first_line);
        } else {
            snprintf(expected, sizeof expected, "the %u columns of CoNLL-U, with tabs between", r->n_columns);
        }
        return fail_columns(r, line, expected, n);
    }
    const char *at = line->begin;
    column c, word = {at, 0}, tag = {at, 0};
    bool is_word = true;
    for (uint32_t i = 1; next_column(r->wanted.tabs, &at, line->end, &c); i++) {
        if (i == r->wanted.word) word = c;
        if (i == r->wanted.tag) tag = c;
        if (i == r->id) VPPS_TRY(read_id(r, c, &is_word));
    }
    if (!is_word) return VPPS_OK;
    if (!word.len) return vpps_text_fail(r->t, word.text, "a word", NULL);
    if (!tag.len) return vpps_text_fail(r->t, tag.text, "a tag", NULL);
    if (!r->open) r->open = line->number;
    return vpps_sentences_add_word(r->s, word.text, word.len, tag.text, tag.len);
}

static vpps_status end_open_sentence(column_reader *r) {
    const uint32_t line = r->open;
    r->open = 0;
    return line ? vpps_sentences_end(r->s, line, VPPS_NO_WORD) : VPPS_OK;
}

/* The line between two documents of the CoNLL-2003 shared task, which may have other columns than words. */
static bool is_document_start(const column_reader *r, const vpps_line *line) {
    const char *at = line->begin;
    column first;
    return next_column(r->wanted.tabs, &at, line->end, &first) && column_is(first, "-DOCSTART-");
}

static vpps_status read_columns(column_reader *r) {
    vpps_line line = {0};
    VPPS_TRY(vpps_sentences_begin(r->s, VPPS_TAGGED));
    while (vpps_text_next_line(r->t, &line)) {
        const char *p = line.begin;
        while (!r->wanted.tabs && p < line.end && is_blank(*p)) p++;
        if (p == line.end || is_document_start(r, &line)) {
            VPPS_TRY(end_open_sentence(r));
        } else if (!r->wanted.comments || *line.begin != '#') {
            VPPS_TRY(read_token_line(r, &line));
        }
    }
    return end_open_sentence(r);
}

/* ---------------------------------------------------------------- the public calls */

static vpps_status read_text(column_reader *r) {
    if ((r->wanted.word_name || r->wanted.tag_name) && !r->wanted.conllu) {
        return vpps_fail(VPPS_ARGUMENT, "sentences: expected a column's number, found '%.40s': CoNLL-U's have names",
                         r->wanted.word_name ? r->wanted.word_name : r->wanted.tag_name);
    }
    VPPS_TRY(vpps_text_check(r->t));
    if (r->wanted.conllu) VPPS_TRY(take_names(r));
    if (!r->wanted.word) r->wanted.word = 1;
    VPPS_TRY(check_columns(r));
    return read_columns(r);
}

vpps_status vpps_sentences_read_columns_text(vpps_sentences *s, const char *name, const char *text, size_t len,
                                             const vpps_columns *columns) {
    VPPS_NEED(s);
    VPPS_NEED(name);
    const vpps_text t = vpps_text_of(name, text, len, "");
    const vpps_sentences_mark before = vpps_sentences_extent(s);
    column_reader r = {.s = s, .t = &t};
    if (columns) r.wanted = *columns;
    const vpps_status status = read_text(&r);
    if (status != VPPS_OK) vpps_sentences_restore(s, before);
    return status;
}

vpps_status vpps_sentences_read_columns_file(vpps_sentences *s, const char *path, const vpps_columns *columns) {
    VPPS_NEED(s);
    VPPS_NEED(path);
    char *text;
    size_t len;
    VPPS_TRY(vpps_file_read_all(path, &text, &len));
    const vpps_status status = vpps_sentences_read_columns_text(s, path, text, len, columns);
    free(text);
    return status;
}
