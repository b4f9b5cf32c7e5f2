/* vectors_text.c - reads vectors as text, lines of a word and its numbers: word2vec (Mikolov et al. 2013) and
 * fastText (Bojanowski et al. 2017) write a first line with the counts, GloVe (Pennington et al. 2014) does not.
 *
 * Some of GloVe's words contain spaces, so numbers are counted from the end of the line. */
#include "vectors.h"

#include "base/base.h"
#include "file.h"
#include "text.h"

static bool next_whole_number(const char **at, const char *end, uint64_t limit, uint64_t *value) {
    vpps_word word;
    return vpps_text_next_word(at, end, &word) && vpps_text_whole_number(word.at, word.at + word.len, limit, value);
}

bool vpps_vectors_header(const char *line, size_t len, vpps_vectors_info *info) {
    const char *end = line + len;
    vpps_word rest;
    uint64_t words, size;
    if (!next_whole_number(&line, end, UINT64_MAX / 32, &words)) return false;
    if (!next_whole_number(&line, end, UINT32_MAX, &size)) return false;
    if (vpps_text_next_word(&line, end, &rest)) return false;
    *info = (vpps_vectors_info){VPPS_VECTORS_TEXT, words, (uint32_t)size};
    return true;
}

/* ---------------------------------------------------------------- lines */

typedef struct line_reader {
    const char *name;
    vpps_vectors_target *t;
    const char *line, *end;
    uint64_t number; /* number of the current line, from 1 */
} line_reader;

static vpps_status fail_at(const line_reader *r, const char *at, const char *expected, const char *found) {
    return vpps_fail(VPPS_FORMAT, "%s%s:%llu:%zu: expected %s, found %s", VPPS_PATH_ARGS(r->name),
                     (unsigned long long)r->number, (size_t)(at - r->line) + 1, expected, found);
}

static vpps_status fail_count(const line_reader *r, uint32_t n) {
    char expected[64], found[32];
    snprintf(expected, sizeof expected, "a word and %u numbers", r->t->size);
    snprintf(found, sizeof found, "%u number%s", n, n == 1 ? "" : "s");
    return fail_at(r, r->line, expected, found);
}

static vpps_status fail_number(const line_reader *r, const char *at) {
    const vpps_text text = {r->name, r->line, r->end, ""};
    char found[64];
    vpps_text_found(&text, at, found, sizeof found);
    return fail_at(r, at, "a number", found);
}

/* Returns whether a byte can be part of a number. */
static bool is_numeric(char c) {
    return (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '+' || c == 'e' || c == 'E';
}

/* Moves *at back over the word that ends there; sets *odd if the word has bytes that no number has. */
static void skip_word_back(const char *begin, const char **at, bool *odd) {
    for (; *at > begin && !vpps_is_blank((*at)[-1]); --*at) *odd |= !is_numeric((*at)[-1]);
}

/* Finds the vector's numbers: the last `size` words of the line. The text before them is the word, which in GloVe may
 * contain spaces. Fails if a number stands before them. */
static vpps_status find_numbers(const line_reader *r, const char **numbers) {
    const char *at = r->end, *bad = NULL;
    bool odd = false;
    for (uint32_t n = 0; n < r->t->size; n++, odd = false) {
        at = vpps_trim_blanks(r->line, at);
        if (at == r->line) return fail_count(r, n);
        skip_word_back(r->line, &at, &odd);
        if (odd) bad = at;
    }
    const char *end = vpps_trim_blanks(r->line, at), *last = end;
    if (end == r->line) return fail_count(r, r->t->size - (bad != NULL));
    if (bad) return fail_number(r, bad);
    *numbers = at;
    float value;
    skip_word_back(r->line, &last, &odd);
    /* `last`: the token before the vector's numbers, which ends the vector's word. If the word has other tokens before
     * `last`, `last` must be no number: it would be one number too many. */
    const bool more = vpps_trim_blanks(r->line, last) > r->line && !odd;
    return more && vpps_text_number(last, end, &value) ? fail_count(r, r->t->size + 1) : VPPS_OK;
}

static vpps_status read_numbers(const line_reader *r, const char *at, float *values) {
    vpps_word word;
    for (uint32_t i = 0; vpps_text_next_word(&at, r->end, &word); i++)
        if (!vpps_text_number(word.at, word.at + word.len, &values[i])) return fail_number(r, word.at);
    return VPPS_OK;
}

static vpps_status read_line(line_reader *r) {
    const char *numbers = r->line;
    VPPS_TRY(find_numbers(r, &numbers));
    const vpps_word word = vpps_word_trimmed(r->line, numbers);
    const uint32_t id = vpps_vectors_wanted(r->t, word.at, word.len);
    if (id == VPPS_NO_WORD) return VPPS_OK;
    r->t->has[id] = true;
    r->t->found.found++;
    return read_numbers(r, numbers, r->t->values + (size_t)id * r->t->size);
}

/* Reads the next line into r; r->line is NULL at the end. */
static vpps_status next_line(vpps_stream *s, line_reader *r) {
    size_t len;
    VPPS_TRY(vpps_stream_line(s, &r->line, &len));
    if (!r->line) return VPPS_OK;
    r->number++;
    const char *end = r->line + len;
    r->line = vpps_skip_mark(r->line, end);
    r->end = vpps_trim_blanks(r->line, end);
    return VPPS_OK;
}

/* Skips blank lines, which are allowed only at the end. */
static vpps_status skip_blank_lines(vpps_stream *s, line_reader *r) {
    const uint64_t first = r->number;
    if (!r->line || r->line < r->end) return VPPS_OK;
    while (r->line && r->line == r->end) VPPS_TRY(next_line(s, r));
    if (!r->line) return VPPS_OK;
    return vpps_fail(VPPS_FORMAT, "%s%s:%llu:1: expected a word and its numbers, found an empty line",
                     VPPS_PATH_ARGS(r->name), (unsigned long long)first);
}

vpps_status vpps_vectors_read_text(vpps_stream *s, const vpps_vectors_info *info, vpps_vectors_target *t) {
    line_reader r = {.name = vpps_stream_name(s), .t = t};
    uint64_t n = 0;
    const bool counted = info->form == VPPS_VECTORS_TEXT;
    if (counted) VPPS_TRY(next_line(s, &r));
    for (;; n++) {
        VPPS_TRY(next_line(s, &r));
        VPPS_TRY(skip_blank_lines(s, &r));
        if (!r.line) break;
        if (counted && n == info->words) return fail_at(&r, r.line, "as many words as line 1 says", "more");
        VPPS_TRY(read_line(&r));
    }
    if (!counted || n == info->words) return VPPS_OK;
    return vpps_fail(VPPS_FORMAT, "%s%s:1:1: expected as many words as follow, %llu, found %llu",
                     VPPS_PATH_ARGS(r.name), (unsigned long long)n, (unsigned long long)info->words);
}
