/* sequences_read.c - reads sentences from lines: word|TAG tokens, a label and a sentence, or plain text. */
#include "sequences.h"

#include "base/base.h"
#include "file.h"
#include "text.h"

/* ---------------------------------------------------------------- word|TAG */

/* Finds column `wanted`, from 1, of a token of bars + 1 columns. Columns are counted from the end, so surplus '|'
 * belong to the first one. Returns NULL when there are fewer columns. */
static const char *find_column(const char *token, size_t len, uint32_t bars, uint32_t wanted, size_t *column_len) {
    const char *end = token + len;
    for (uint32_t column = bars + 1; column > 1; column--) {
        const char *bar = memrchr(token, '|', (size_t)(end - token));
        if (!bar) return NULL;
        *column_len = (size_t)(end - bar - 1);
        if (column == wanted) return bar + 1;
        end = bar;
    }
    *column_len = (size_t)(end - token);
    return token;
}

static vpps_status fail_bars(const vpps_text *t, const char *token, uint32_t bars) {
    char expected[64];
    snprintf(expected, sizeof expected, bars == 1 ? "word|TAG" : "%u columns with '|' between", bars + 1);
    return vpps_text_fail(t, token, expected, NULL);
}

static vpps_status read_barred_line(vpps_sentences *s, const vpps_text *t, const vpps_line *line, const vpps_bars *b) {
    const char *at = line->begin, *token;
    size_t len, before = s->n_words, word_len = 0, tag_len = 0;
    s->line = line->number;
    while (vpps_text_next_word(&at, line->end, &token, &len)) {
        if (!find_column(token, len, b->n, 1, &word_len)) return fail_bars(t, token, b->n);
        const char *word = find_column(token, len, b->n, b->word, &word_len);
        const char *tag = find_column(token, len, b->n, b->tag, &tag_len);
        if (word_len == 0) return vpps_text_fail(t, word, "a word before '|'", NULL);
        if (tag_len == 0) return vpps_text_fail(t, tag, "a tag after '|'", NULL);
        VPPS_TRY(vpps_sentences_add_word(s, word, word_len, tag, tag_len));
    }
    return s->n_words > before ? vpps_sentences_end(s, line->number, VPPS_NO_WORD) : VPPS_OK;
}

static vpps_status read_barred(vpps_sentences *s, const vpps_text *t, const vpps_bars *b) {
    vpps_line line = {0};
    if (b->word > b->n + 1 || b->tag > b->n + 1 || b->word == b->tag) {
        return vpps_fail(VPPS_ARGUMENT, "%s%s: expected two of its %u columns, found %u for words and %u for tags",
                         VPPS_PATH_ARGS(t->name), b->n + 1, b->word, b->tag);
    }
    VPPS_TRY(vpps_sentences_begin(s, VPPS_TAGGED));
    while (vpps_text_next_line(t, &line)) VPPS_TRY(read_barred_line(s, t, &line, b));
    return VPPS_OK;
}

/* ---------------------------------------------------------------- a label and a sentence */

static vpps_status read_labelled_line(vpps_sentences *s, const vpps_text *t, const vpps_line *line) {
    const char *tab = memchr(line->begin, '\t', (size_t)(line->end - line->begin));
    if (!tab) return vpps_text_fail(t, line->begin, "a label, a tab and a sentence", "no tab in the line");
    const char *label = vpps_skip_blanks(line->begin, tab), *end = vpps_trim_blanks(label, tab);
    if (label == end) return vpps_text_fail(t, tab, "a label before the tab", "none");
    const char *second = memchr(tab + 1, '\t', (size_t)(line->end - tab - 1));
    if (second) return vpps_text_fail(t, second, "spaces between words", "a second tab");
    const char *at = tab + 1, *word;
    if (vpps_skip_blanks(at, line->end) == line->end)
        return vpps_text_fail(t, line->end, "a sentence after the tab", NULL);
    size_t len;
    uint32_t id;
    VPPS_TRY(vpps_vocab_add_unchecked(s->tag_vocab, label, (size_t)(end - label), &id));
    while (vpps_text_next_word(&at, line->end, &word, &len)) VPPS_TRY(vpps_sentences_add_word(s, word, len, NULL, 0));
    return vpps_sentences_end(s, line->number, id);
}

static vpps_status read_labelled(vpps_sentences *s, const vpps_text *t) {
    vpps_line line = {0};
    VPPS_TRY(vpps_sentences_begin(s, VPPS_LABELLED));
    while (vpps_text_next_line(t, &line)) {
        if (!vpps_line_is_blank(&line)) VPPS_TRY(read_labelled_line(s, t, &line));
    }
    return VPPS_OK;
}

/* ---------------------------------------------------------------- plain lines */

vpps_status vpps_sentences_check_end_word(const char *end_word) {
    if (!end_word || (*end_word && !strpbrk(end_word, " \t\v\f\r\n"))) return VPPS_OK;
    return vpps_fail(VPPS_ARGUMENT, "sentences: expected an end word without spaces and line ends, found '%.80s'",
                     end_word);
}

vpps_status vpps_sentences_add_line(vpps_sentences *s, const vpps_line *line, const char *end_word) {
    static const char unknown[] = "<unk>";
    const size_t end_len = end_word ? strlen(end_word) : 0;
    const char *at = line->begin, *word;
    size_t len;
    while (vpps_text_next_word(&at, line->end, &word, &len)) {
        if (end_word && len == end_len && memcmp(word, end_word, len) == 0) {
            /* Leaves out an end word that the text itself has at the end of the line, since an end word is added after the loop. */
            if (vpps_skip_blanks(at, line->end) == line->end) break;
            word = unknown;
            len = sizeof unknown - 1;
        }
        VPPS_TRY(vpps_sentences_add_word(s, word, len, NULL, 0));
    }
    if (end_word) VPPS_TRY(vpps_sentences_add_word(s, end_word, end_len, NULL, 0));
    return vpps_sentences_end(s, line->number, VPPS_NO_WORD);
}

static vpps_status read_lines(vpps_sentences *s, const vpps_text *t, const vpps_lines *lines) {
    vpps_line line = {0};
    VPPS_TRY(vpps_sentences_check_end_word(lines->end_word));
    VPPS_TRY(vpps_sentences_begin(s, VPPS_PLAIN));
    while (vpps_text_next_line(t, &line)) {
        if (!lines->keep_empty && vpps_line_is_blank(&line)) continue;
        VPPS_TRY(vpps_sentences_add_line(s, &line, lines->end_word));
    }
    return VPPS_OK;
}

/* ---------------------------------------------------------------- the public calls */

vpps_status vpps_sentences_read_barred_text(vpps_sentences *s, const char *name, const char *text, size_t len,
                                            const vpps_bars *bars) {
    const vpps_text t = vpps_text_of(name, text, len, "");
    const vpps_sentences_mark before = vpps_sentences_extent(s);
    vpps_status status = vpps_text_check(&t);
    if (status == VPPS_OK) status = read_barred(s, &t, bars);
    if (status != VPPS_OK) vpps_sentences_restore(s, before);
    return status;
}

vpps_status vpps_sentences_read_tagged_text(vpps_sentences *s, const char *name, const char *text, size_t len) {
    VPPS_NEED(s, name);
    if (len) VPPS_NEED(text);
    return vpps_sentences_read_barred_text(s, name, text, len, &(vpps_bars){1, 1, 2});
}

vpps_status vpps_sentences_read_labelled_text(vpps_sentences *s, const char *name, const char *text, size_t len) {
    VPPS_NEED(s, name);
    if (len) VPPS_NEED(text);
    const vpps_text t = vpps_text_of(name, text, len, "");
    const vpps_sentences_mark before = vpps_sentences_extent(s);
    vpps_status status = vpps_text_check(&t);
    if (status == VPPS_OK) status = read_labelled(s, &t);
    if (status != VPPS_OK) vpps_sentences_restore(s, before);
    return status;
}

vpps_status vpps_sentences_read_lines_text(vpps_sentences *s, const char *name, const char *text, size_t len,
                                           const vpps_lines *lines) {
    VPPS_NEED(s, name);
    if (len) VPPS_NEED(text);
    static const vpps_lines defaults = {0};
    const vpps_text t = vpps_text_of(name, text, len, "");
    const vpps_sentences_mark before = vpps_sentences_extent(s);
    vpps_status status = vpps_text_check(&t);
    if (status == VPPS_OK) status = read_lines(s, &t, lines ? lines : &defaults);
    if (status != VPPS_OK) vpps_sentences_restore(s, before);
    return status;
}

vpps_status vpps_sentences_read_tagged_file(vpps_sentences *s, const char *path) {
    VPPS_NEED(s, path);
    VPPS_TEXT_OF_FILE(path, text, len);
    return vpps_sentences_read_tagged_text(s, path, text, len);
}

vpps_status vpps_sentences_read_labelled_file(vpps_sentences *s, const char *path) {
    VPPS_NEED(s, path);
    VPPS_TEXT_OF_FILE(path, text, len);
    return vpps_sentences_read_labelled_text(s, path, text, len);
}

vpps_status vpps_sentences_read_lines_file(vpps_sentences *s, const char *path, const vpps_lines *lines) {
    VPPS_NEED(s, path);
    VPPS_TEXT_OF_FILE(path, text, len);
    return vpps_sentences_read_lines_text(s, path, text, len, lines);
}
