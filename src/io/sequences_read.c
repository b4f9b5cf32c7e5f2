/* sequences_read.c - reads sentences from lines: word|TAG tokens, a label and a sentence, plain text, or the lines of two files that are
 * translations of each other. */
#include "sequences.h"

#include "base/base.h"
#include "stream.h"
#include "text.h"

/* Reads one line of a text; `how`: the options of the text's format. */
typedef vpps_status line_reader(vpps_sentences *s, const vpps_text *t, const vpps_line *line, const void *how);

/* Reads a text line by line. Adds nothing on failure. */
static vpps_status read_lines(vpps_sentences *s, const char *name, const char *text, size_t len,
                              vpps_sentences_kind kind, line_reader *read, const void *how) {
    const vpps_text t = vpps_text_of(name, text, len, "");
    const vpps_sentences_mark before = vpps_sentences_extent(s);
    vpps_line line = {0};
    vpps_status status = vpps_text_check(&t);
    if (status == VPPS_OK) status = vpps_sentences_begin(s, kind);
    while (status == VPPS_OK && vpps_text_next_line(&t, &line)) status = read(s, &t, &line, how);
    if (status != VPPS_OK) vpps_sentences_restore(s, before);
    return status;
}

/* ---------------------------------------------------------------- word|TAG */

/* Finds column `wanted`, from 1, of a token of bars + 1 columns. Columns are counted from the token's end, so the first one may contain
 * further '|'. The result's `at` is NULL if the token has fewer columns. */
static vpps_word find_column(vpps_word token, uint32_t bars, uint32_t wanted) {
    const char *end = token.at + token.len;
    for (uint32_t column = bars + 1; column > 1; column--) {
        const char *bar = memrchr(token.at, '|', (size_t)(end - token.at));
        if (!bar) return (vpps_word){0};
        if (column == wanted) return (vpps_word){bar + 1, (size_t)(end - bar - 1)};
        end = bar;
    }
    return (vpps_word){token.at, (size_t)(end - token.at)};
}

static vpps_status fail_bars(const vpps_text *t, const char *token, uint32_t bars) {
    char expected[64];
    snprintf(expected, sizeof expected, bars == 1 ? "word|TAG" : "%u columns with '|' between", bars + 1);
    return vpps_text_fail(t, token, expected, NULL);
}

static vpps_status read_barred(vpps_sentences *s, const vpps_text *t, const vpps_line *line, const void *how) {
    const vpps_bars *b = how;
    const char *at = line->begin;
    const size_t before = s->n_words;
    vpps_word token;
    s->line = line->number;
    while (vpps_text_next_word(&at, line->end, &token)) {
        if (!find_column(token, b->n, 1).at) return fail_bars(t, token.at, b->n);
        const vpps_word word = find_column(token, b->n, b->word), tag = find_column(token, b->n, b->tag);
        if (word.len == 0) return vpps_text_fail(t, word.at, "a word before '|'", NULL);
        if (tag.len == 0) return vpps_text_fail(t, tag.at, "a tag after '|'", NULL);
        VPPS_TRY(vpps_sentences_add_word(s, word.at, word.len, tag.at, tag.len));
    }
    return s->n_words > before ? vpps_sentences_end(s, line->number, VPPS_NO_WORD) : VPPS_OK;
}

/* ---------------------------------------------------------------- a label and a sentence */

static vpps_status read_labelled(vpps_sentences *s, const vpps_text *t, const vpps_line *line, const void *how) {
    (void)how;
    if (vpps_line_is_blank(line)) return VPPS_OK;
    const char *tab = memchr(line->begin, '\t', (size_t)(line->end - line->begin));
    if (!tab) return vpps_text_fail(t, line->begin, "a label, a tab and a sentence", "no tab in the line");
    const vpps_word label = vpps_word_trimmed(line->begin, tab);
    if (!label.len) return vpps_text_fail(t, tab, "a label before the tab", "none");
    const char *second = memchr(tab + 1, '\t', (size_t)(line->end - tab - 1));
    if (second) return vpps_text_fail(t, second, "spaces between words", "a second tab");
    const char *at = tab + 1;
    if (vpps_skip_blanks(at, line->end) == line->end)
        return vpps_text_fail(t, line->end, "a sentence after the tab", NULL);
    vpps_word word;
    uint32_t id;
    VPPS_TRY(vpps_vocab_add_unchecked(s->tag_vocab, label.at, label.len, &id));
    while (vpps_text_next_word(&at, line->end, &word)) VPPS_TRY(vpps_sentences_add_word(s, word.at, word.len, NULL, 0));
    return vpps_sentences_end(s, line->number, id);
}

/* ---------------------------------------------------------------- plain lines */

vpps_status vpps_sentences_check_end_word(const char *end_word) {
    if (!end_word || (*end_word && !strpbrk(end_word, " \t\v\f\r\n"))) return VPPS_OK;
    return vpps_fail(VPPS_ARGUMENT, "sentences: expected an end word without spaces and line ends, found '%.80s'",
                     end_word);
}

vpps_status vpps_sentences_add_line(vpps_sentences *s, const vpps_line *line, const char *end_word) {
    const vpps_word end = {end_word, end_word ? strlen(end_word) : 0};
    const char *at = line->begin;
    vpps_word word;
    while (vpps_text_next_word(&at, line->end, &word)) {
        if (end_word && word.len == end.len && memcmp(word.at, end_word, end.len) == 0) {
            /* Leaves out an end word that the text itself has at the end of the line, since an end word is added after the loop. */
            if (vpps_skip_blanks(at, line->end) == line->end) break;
            word = (vpps_word){"<unk>", 5};
        }
        VPPS_TRY(vpps_sentences_add_word(s, word.at, word.len, NULL, 0));
    }
    if (end_word) VPPS_TRY(vpps_sentences_add_word(s, end.at, end.len, NULL, 0));
    return vpps_sentences_end(s, line->number, VPPS_NO_WORD);
}

static vpps_status read_plain(vpps_sentences *s, const vpps_text *t, const vpps_line *line, const void *how) {
    const vpps_lines *lines = how;
    (void)t;
    return !lines->keep_empty && vpps_line_is_blank(line) ? VPPS_OK : vpps_sentences_add_line(s, line, lines->end_word);
}

/* ---------------------------------------------------------------- the public calls */

vpps_status vpps_sentences_read_barred_text(vpps_sentences *s, const char *name, const char *text, size_t len,
                                            const vpps_bars *b) {
    if (b->word > b->n + 1 || b->tag > b->n + 1 || b->word == b->tag)
        return vpps_fail(VPPS_ARGUMENT, "%s%s: expected two of its %u columns, found %u for words and %u for tags",
                         VPPS_PATH_ARGS(name), b->n + 1, b->word, b->tag);
    return read_lines(s, name, text, len, VPPS_TAGGED, read_barred, b);
}

vpps_status vpps_sentences_read_tagged_text(vpps_sentences *s, const char *name, const char *text, size_t len) {
    VPPS_NEED(s, name);
    if (len) VPPS_NEED(text);
    return vpps_sentences_read_barred_text(s, name, text, len, &(vpps_bars){1, 1, 2});
}

vpps_status vpps_sentences_read_labelled_text(vpps_sentences *s, const char *name, const char *text, size_t len) {
    VPPS_NEED(s, name);
    if (len) VPPS_NEED(text);
    return read_lines(s, name, text, len, VPPS_LABELLED, read_labelled, NULL);
}

vpps_status vpps_sentences_read_lines_text(vpps_sentences *s, const char *name, const char *text, size_t len,
                                           const vpps_lines *lines) {
    static const vpps_lines defaults = {0};
    VPPS_NEED(s, name);
    if (len) VPPS_NEED(text);
    if (!lines) lines = &defaults;
    VPPS_TRY(vpps_sentences_check_end_word(lines->end_word));
    return read_lines(s, name, text, len, VPPS_PLAIN, read_plain, lines);
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

/* ---------------------------------------------------------------- parallel text */

/* Counts a text's lines, and the lines up to the last one that is not blank. */
static size_t count_lines(const vpps_text *t, size_t *to_last) {
    vpps_line line = {0};
    size_t n = 0;
    *to_last = 0;
    while (vpps_text_next_line(t, &line)) {
        n++;
        if (!vpps_line_is_blank(&line)) *to_last = n;
    }
    return n;
}

/* Shortens a path, since two paths must fit into one message. */
static const char *short_name(const char *name) {
    const size_t len = strlen(name);
    return len > 160 ? name + len - 160 : name;
}

static vpps_status check_line_counts(const vpps_text *source, const vpps_text *target) {
    /* numbers of lines up to the last one that is not blank; blank lines at a text's end need no counterpart */
    size_t last_source, last_target;
    const size_t n_source = count_lines(source, &last_source), n_target = count_lines(target, &last_target);
    if (n_source == n_target || last_source == last_target) return VPPS_OK;
    return vpps_fail(VPPS_FORMAT, "expected as many lines in both files, found %zu in %s and %zu in %s", n_source,
                     short_name(source->name), n_target, short_name(target->name));
}

static vpps_status read_pairs(vpps_sentences *s, vpps_sentences *t, const vpps_text *source, const vpps_text *target,
                              const vpps_parallel *options) {
    vpps_line line[2] = {0};
    VPPS_TRY(check_line_counts(source, target));
    while (vpps_text_next_line(source, &line[0]) && vpps_text_next_line(target, &line[1])) {
        const bool in_source = !vpps_line_is_blank(&line[0]);
        const bool in_target = !vpps_line_is_blank(&line[1]);
        if (in_source && in_target) {
            VPPS_TRY(vpps_sentences_add_line(s, &line[0], NULL));
            VPPS_TRY(vpps_sentences_add_line(t, &line[1], options->end_word));
        } else if (!options->skip_empty) {
            const int empty = in_source ? 1 : 0;
            return vpps_text_fail(empty ? target : source, line[empty].begin, "a sentence (its line in the other file)",
                                  "a line without words");
        }
    }
    return VPPS_OK;
}

static vpps_status check_call(vpps_sentences *source, vpps_sentences *target, const vpps_parallel *options) {
    if (source == target) return vpps_fail(VPPS_ARGUMENT, "parallel text: expected two different vpps_sentences");
    if (source->n_sentences != target->n_sentences)
        return vpps_fail(VPPS_STATE, "parallel text: expected as many sentences before on both sides, found %u and %u",
                         source->n_sentences, target->n_sentences);
    VPPS_TRY(vpps_sentences_check_end_word(options->end_word));
    VPPS_TRY(vpps_sentences_begin(source, VPPS_PLAIN));
    return vpps_sentences_begin(target, VPPS_PLAIN);
}

vpps_status vpps_sentences_read_parallel_texts(vpps_sentences *source, vpps_sentences *target, const char *source_name,
                                               const char *source_text, size_t source_len, const char *target_name,
                                               const char *target_text, size_t target_len,
                                               const vpps_parallel *parallel) {
    VPPS_NEED(source, target, source_name, target_name);
    if (source_len) VPPS_NEED(source_text);
    if (target_len) VPPS_NEED(target_text);
    static const vpps_parallel defaults = {0};
    const vpps_parallel *options = parallel ? parallel : &defaults;
    const vpps_text s = vpps_text_of(source_name, source_text, source_len, "");
    const vpps_text t = vpps_text_of(target_name, target_text, target_len, "");
    const vpps_sentences_mark before = vpps_sentences_extent(source), target_before = vpps_sentences_extent(target);
    vpps_status status = check_call(source, target, options);
    if (status == VPPS_OK) status = vpps_text_check(&s);
    if (status == VPPS_OK) status = vpps_text_check(&t);
    if (status == VPPS_OK) status = read_pairs(source, target, &s, &t, options);
    if (status != VPPS_OK) {
        vpps_sentences_restore(source, before);
        vpps_sentences_restore(target, target_before);
    }
    return status;
}

vpps_status vpps_sentences_read_parallel_files(vpps_sentences *source, vpps_sentences *target, const char *source_path,
                                               const char *target_path, const vpps_parallel *parallel) {
    VPPS_NEED(source, target, source_path, target_path);
    VPPS_FREED char *source_text = NULL, *target_text = NULL;
    size_t source_len, target_len;
    VPPS_TRY(vpps_file_read_all(source_path, &source_text, &source_len));
    VPPS_TRY(vpps_file_read_all(target_path, &target_text, &target_len));
    return vpps_sentences_read_parallel_texts(source, target, source_path, source_text, source_len, target_path,
                                              target_text, target_len, parallel);
}
