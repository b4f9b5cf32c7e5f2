/* sequences_read.c - sentences from text, one a line: word|TAG, a label and a sentence, plain lines. */
#include "sequences.h"

#include "base/base.h"
#include "file.h"
#include "text.h"

/* ---------------------------------------------------------------- word|TAG */

static vpps_status read_tagged_line(vpps_sentences *s, const vpps_text *t, const vpps_line *line) {
    const char *at = line->begin, *token;
    size_t len, before = s->n_words;
    while (vpps_text_next_word(&at, line->end, &token, &len)) {
        const char *bar = memrchr(token, '|', len);
        if (!bar) return vpps_text_fail(t, token, "word|TAG", NULL);
        if (bar == token) return vpps_text_fail(t, token, "a word before '|'", NULL);
        const size_t word_len = (size_t)(bar - token), tag_len = len - word_len - 1;
        if (tag_len == 0) return vpps_text_fail(t, bar + 1, "a tag behind '|'", NULL);
        VPPS_TRY(vpps_sentences_add_word(s, token, word_len, bar + 1, tag_len));
    }
    return s->n_words > before ? vpps_sentences_end(s, line->number, VPPS_NO_WORD) : VPPS_OK;
}

static vpps_status read_tagged(vpps_sentences *s, const vpps_text *t) {
    vpps_line line = {0};
    VPPS_TRY(vpps_sentences_begin(s, VPPS_TAGGED));
    while (vpps_text_next_line(t, &line)) VPPS_TRY(read_tagged_line(s, t, &line));
    return VPPS_OK;
}

/* ---------------------------------------------------------------- a label and a sentence */

static vpps_status read_labelled_line(vpps_sentences *s, const vpps_text *t, const vpps_line *line) {
    const char *tab = memchr(line->begin, '\t', (size_t)(line->end - line->begin));
    if (!tab) return vpps_text_fail(t, line->begin, "a label, a tab and a sentence", "no tab in the line");
    const char *label = line->begin, *end = tab;
    while (label < end && *label == ' ') label++;
    while (end > label && end[-1] == ' ') end--;
    if (label == end) return vpps_text_fail(t, tab, "a label before the tab", "none");
    const char *second = memchr(tab + 1, '\t', (size_t)(line->end - tab - 1));
    if (second) return vpps_text_fail(t, second, "spaces between words", "a second tab");
    const vpps_line sentence = {tab + 1, line->end, line->next, line->number};
    if (!vpps_line_has_word(&sentence)) return vpps_text_fail(t, line->end, "a sentence behind the tab", NULL);
    const char *at = sentence.begin, *word;
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
        if (vpps_line_has_word(&line)) VPPS_TRY(read_labelled_line(s, t, &line));
    }
    return VPPS_OK;
}

/* ---------------------------------------------------------------- plain lines */

vpps_status vpps_sentences_check_end_word(const char *end_word) {
    if (!end_word || (*end_word && !strpbrk(end_word, " \r\n"))) return VPPS_OK;
    return vpps_fail(VPPS_ARGUMENT, "sentences: expected an end word without spaces and line ends, found '%.80s'",
                     end_word);
}

vpps_status vpps_sentences_add_line(vpps_sentences *s, const vpps_line *line, const char *end_word) {
    const char *at = line->begin, *word;
    size_t len;
    while (vpps_text_next_word(&at, line->end, &word, &len)) VPPS_TRY(vpps_sentences_add_word(s, word, len, NULL, 0));
    if (end_word) VPPS_TRY(vpps_sentences_add_word(s, end_word, strlen(end_word), NULL, 0));
    return vpps_sentences_end(s, line->number, VPPS_NO_WORD);
}

bool vpps_line_has_word(const vpps_line *line) {
    const char *at = line->begin;
    while (at < line->end && *at == ' ') at++;
    return at < line->end;
}

static vpps_status read_lines(vpps_sentences *s, const vpps_text *t, const vpps_lines *lines) {
    vpps_line line = {0};
    VPPS_TRY(vpps_sentences_check_end_word(lines->end_word));
    VPPS_TRY(vpps_sentences_begin(s, VPPS_PLAIN));
    while (vpps_text_next_line(t, &line)) {
        if (!lines->keep_empty && !vpps_line_has_word(&line)) continue;
        VPPS_TRY(vpps_sentences_add_line(s, &line, lines->end_word));
    }
    return VPPS_OK;
}

/* ---------------------------------------------------------------- the public calls */

vpps_status vpps_sentences_read_tagged_text(vpps_sentences *s, const char *name, const char *text, size_t len) {
    VPPS_NEED(s);
    VPPS_NEED(name);
    const vpps_text t = vpps_text_of(name, text, len, "");
    const vpps_sentences_mark before = vpps_sentences_extent(s);
    vpps_status status = vpps_text_check(&t);
    if (status == VPPS_OK) status = read_tagged(s, &t);
    if (status != VPPS_OK) vpps_sentences_restore(s, before);
    return status;
}

vpps_status vpps_sentences_read_labelled_text(vpps_sentences *s, const char *name, const char *text, size_t len) {
    VPPS_NEED(s);
    VPPS_NEED(name);
    const vpps_text t = vpps_text_of(name, text, len, "");
    const vpps_sentences_mark before = vpps_sentences_extent(s);
    vpps_status status = vpps_text_check(&t);
    if (status == VPPS_OK) status = read_labelled(s, &t);
    if (status != VPPS_OK) vpps_sentences_restore(s, before);
    return status;
}

vpps_status vpps_sentences_read_lines_text(vpps_sentences *s, const char *name, const char *text, size_t len,
                                           const vpps_lines *lines) {
    VPPS_NEED(s);
    VPPS_NEED(name);
    static const vpps_lines defaults = {0};
    const vpps_text t = vpps_text_of(name, text, len, "");
    const vpps_sentences_mark before = vpps_sentences_extent(s);
    vpps_status status = vpps_text_check(&t);
    if (status == VPPS_OK) status = read_lines(s, &t, lines ? lines : &defaults);
    if (status != VPPS_OK) vpps_sentences_restore(s, before);
    return status;
}

vpps_status vpps_sentences_read_tagged_file(vpps_sentences *s, const char *path) {
    VPPS_NEED(s);
    VPPS_NEED(path);
    char *text;
    size_t len;
    VPPS_TRY(vpps_file_read_all(path, &text, &len));
    vpps_status status = vpps_sentences_read_tagged_text(s, path, text, len);
    free(text);
    return status;
}

vpps_status vpps_sentences_read_labelled_file(vpps_sentences *s, const char *path) {
    VPPS_NEED(s);
    VPPS_NEED(path);
    char *text;
    size_t len;
    VPPS_TRY(vpps_file_read_all(path, &text, &len));
    vpps_status status = vpps_sentences_read_labelled_text(s, path, text, len);
    free(text);
    return status;
}

vpps_status vpps_sentences_read_lines_file(vpps_sentences *s, const char *path, const vpps_lines *lines) {
    VPPS_NEED(s);
    VPPS_NEED(path);
    char *text;
    size_t len;
    VPPS_TRY(vpps_file_read_all(path, &text, &len));
    vpps_status status = vpps_sentences_read_lines_text(s, path, text, len, lines);
    free(text);
    return status;
}
