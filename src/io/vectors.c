/* vectors.c - finds the form of a file of word vectors, and reads it: text, lines of a word and its numbers, for which word2vec (Mikolov
 * et al. 2013) and fastText (Bojanowski et al. 2017) write a first line with the counts, and GloVe (Pennington et al. 2014) does not; or
 * word2vec's binary form. */
#include "base/base.h"
#include "descriptor.h"
#include "stream.h"
#include "text.h"
#include "vpps_data.h"

#include <math.h>

/* The most bytes that a word may have in word2vec's binary form. */
#define LONGEST_WORD (1 << 16)

/* The most elements of a vector; no network has vectors of such a size. */
#define MOST_ELEMENTS 65536u

/* A vocabulary whose words get vectors: word `id` gets `size` floats at values + id * size. */
typedef struct vectors_target {
    const vpps_vocab *words;
    uint32_t size;
    float *values;
    bool *has; /* has[id]: whether word `id` has got its vector */
    vpps_vectors_found found;
} vectors_target;

/* Returns the values for the word's vector; NULL: the word is not in the vocabulary, or has got its vector. */
static float *take_wanted(vectors_target *t, const char *word, size_t len) {
    const uint32_t id = vpps_vocab_find(t->words, word, len);
    if (id == VPPS_NO_WORD || t->has[id]) return NULL;
    t->has[id] = true;
    t->found.found++;
    return t->values + (size_t)id * t->size;
}

/* ---------------------------------------------------------------- the form
 *
 * A first line of two whole numbers is a header, "words size". Text follows it where the next line has size + 1 words, of
 * which the second begins as a number, or where all bytes are those of text; else it is word2vec's binary form. Any other
 * first line is GloVe's: all lines have as many numbers as stand at its end. */

/* Number of a file's first bytes that are looked at; they hold at least two of the longest vectors. */
enum { LOOKED_AT = 1 << 22 };

/* The first bytes of a binary model of fastText: an int32, 793712314. */
static const char fasttext_magic[] = {(char)0xba, 0x16, 0x4f, 0x2f};

/* Of a line: `words` is its number of words; `numbers`, how many words at its end are numbers, the first word not counted; `second`, whether
 * its second word begins as a number. */
typedef struct sample {
    uint32_t words, numbers;
    bool second;
} sample;

static sample look_at_line(const vpps_line *line) {
    sample s = {0};
    const char *at = line->begin;
    vpps_word word;
    float value;
    while (vpps_text_next_word(&at, line->end, &word)) {
        if (s.words == 1) s.second = *word.at && strchr("+-.0123456789", *word.at);
        s.numbers = s.words && vpps_text_number(word.at, word.at + word.len, &value) ? s.numbers + 1 : 0;
        s.words++;
    }
    return s;
}

/* Returns whether at .. end has bytes that do not occur in UTF-8 text. */
static bool holds_other_than_text(const char *at, const char *end) {
    while (at < end) {
        const unsigned char c = (unsigned char)*at;
        const uint32_t n = c < 0x80 ? 1 : vpps_utf8_character(at, (size_t)(end - at));
        if ((n == 1 && c >= 0x80) || c == 0x7f || (c < 0x20 && !vpps_is_space(*at))) return true;
        at += n;
    }
    return false;
}

static bool next_whole_number(const char **at, const char *end, uint64_t limit, uint64_t *value) {
    vpps_word word;
    return vpps_text_next_word(at, end, &word) && vpps_text_whole_number(word.at, word.at + word.len, limit, value);
}

/* Parses word2vec's first line, "words size". Returns false if the line is no such line. */
static bool parse_header(const vpps_line *line, vpps_vectors_info *info) {
    const char *at = line->begin;
    vpps_word rest;
    uint64_t words, size;
    if (!next_whole_number(&at, line->end, UINT64_MAX / 32, &words)) return false;
    if (!next_whole_number(&at, line->end, UINT32_MAX, &size)) return false;
    if (vpps_text_next_word(&at, line->end, &rest)) return false;
    *info = (vpps_vectors_info){VPPS_VECTORS_TEXT, words, (uint32_t)size};
    return true;
}

/* Recognises the format at the beginning of a stream and describes it, without taking bytes. */
static vpps_status look(vpps_stream *s, vpps_vectors_info *info) {
    const char *bytes;
    size_t n;
    char found[16];
    VPPS_TRY(vpps_stream_peek(s, LOOKED_AT, &bytes, &n));
    if (n >= sizeof fasttext_magic && memcmp(bytes, fasttext_magic, sizeof fasttext_magic) == 0)
        return vpps_fail(VPPS_FORMAT, "%s%s: fastText's binary models are not read; use the .vec file",
                         VPPS_PATH_ARGS(vpps_stream_name(s)));
    const vpps_text t = vpps_text_of(vpps_stream_name(s), bytes, n, "");
    vpps_line line = {.begin = t.begin, .end = t.begin, .next = t.begin};
    vpps_text_next_line(&t, &line);
    const bool header = parse_header(&line, info);
    if (!header) *info = (vpps_vectors_info){VPPS_VECTORS_GLOVE, 0, look_at_line(&line).numbers};
    if (!header && !info->size)
        return vpps_text_fail(&t, t.begin, "vectors: how many there are and their size, or a word and its numbers",
                              NULL);
    snprintf(found, sizeof found, "%u", info->size);
    if (info->size < 1 || info->size > MOST_ELEMENTS)
        return vpps_text_fail(&t, t.begin, "vectors of 1 to 65536 elements", found);
    if (!header) return VPPS_OK;
    const char *rest = line.next, *few = t.end - rest > LONGEST_WORD ? rest + LONGEST_WORD : t.end;
    const sample next = vpps_text_next_line(&t, &line) ? look_at_line(&line) : (sample){0};
    const bool text = next.second && next.words == info->size + 1;
    if (!text && holds_other_than_text(rest, few)) info->form = VPPS_VECTORS_WORD2VEC;
    return VPPS_OK;
}

/* ---------------------------------------------------------------- text
 *
 * Some of GloVe's words contain spaces, so numbers are counted from the end of the line. */

typedef struct line_reader {
    const char *name;
    vectors_target *t;
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
    float *values = take_wanted(r->t, word.at, word.len);
    return values ? read_numbers(r, numbers, values) : VPPS_OK;
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

static vpps_status read_text(vpps_stream *s, const vpps_vectors_info *info, vectors_target *t) {
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

/* ---------------------------------------------------------------- word2vec's binary form: a line "words size", then for each word its bytes, a
 * space, its little-endian floats, and perhaps a line feed */

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "floats in files have the low byte first");

static vpps_status fail_word(const vpps_stream *s, uint64_t number, const char *expected, const char *found) {
    return vpps_fail(VPPS_FORMAT, "%s%s: word %llu: expected %s, found %s", VPPS_PATH_ARGS(vpps_stream_name(s)),
                     (unsigned long long)number, expected, found);
}

/* Reads word `number`, from 1, and stores its vector if the target wants it. */
static vpps_status read_word(vpps_stream *s, uint64_t number, vectors_target *t) {
    const size_t bytes = (size_t)t->size * sizeof(float);
    const char *at, *space;
    size_t n;
    VPPS_TRY(vpps_stream_find(s, ' ', LONGEST_WORD, &at, &n, &space));
    const size_t before = n && *at == '\n' ? 1 : 0;
    if (n == before) return fail_word(s, number, "a word and its vector", "end of file");
    if (!space) return fail_word(s, number, "a space after the word", "none");
    const size_t end = (size_t)(space - at);
    if (end == before) return fail_word(s, number, "a word", "a space");
    VPPS_TRY(vpps_stream_peek(s, end + 1 + bytes, &at, &n));
    if (n < end + 1 + bytes) return fail_word(s, number, "all of its vector", "end of file");
    float *values = take_wanted(t, at + before, end - before);
    if (values) memcpy(values, at + end + 1, bytes);
    for (uint32_t i = 0; values && i < t->size; i++)
        if (!isfinite(values[i])) return fail_word(s, number, "finite numbers", "others");
    vpps_stream_skip(s, end + 1 + bytes);
    return VPPS_OK;
}

static vpps_status read_word2vec(vpps_stream *s, const vpps_vectors_info *info, vectors_target *t) {
    const char *bytes;
    size_t n;
    VPPS_TRY(vpps_stream_line(s, &bytes, &n));
    for (uint64_t i = 1; i <= info->words; i++) VPPS_TRY(read_word(s, i, t));
    VPPS_TRY(vpps_stream_peek(s, 2, &bytes, &n));
    if (n == 0 || (n == 1 && *bytes == '\n')) return VPPS_OK;
    return fail_word(s, info->words + 1, "no more words than the first line says", "more");
}

/* ---------------------------------------------------------------- the calls */

vpps_status vpps_vectors_describe(const char *path, vpps_vectors_info *info) {
    VPPS_NEED(path, info);
    vpps_stream *s;
    *info = (vpps_vectors_info){0};
    VPPS_TRY(vpps_stream_open(&s, path));
    const vpps_status status = look(s, info);
    vpps_stream_close(s);
    return status;
}

static vpps_status read_form(vpps_stream *s, vectors_target *t) {
    vpps_vectors_info info = {0};
    VPPS_TRY(look(s, &info));
    if (info.size != t->size)
        return vpps_fail(VPPS_ARGUMENT, "%s%s: expected vectors of %u elements, found some of %u",
                         VPPS_PATH_ARGS(vpps_stream_name(s)), t->size, info.size);
    return info.form == VPPS_VECTORS_WORD2VEC ? read_word2vec(s, &info, t) : read_text(s, &info, t);
}

vpps_status vpps_vectors_read(const char *path, const vpps_vocab *words, uint32_t size, float *values,
                              vpps_vectors_found *found) {
    VPPS_NEED(path, words, values);
    const uint32_t n = vpps_vocab_size(words);
    vectors_target t = {.words = words, .size = size, .values = values, .found = {.words = n}};
    vpps_stream *s;
    VPPS_TRY(vpps_stream_open(&s, path));
    t.has = calloc((size_t)n + 1, sizeof *t.has);
    const vpps_status status =
        t.has ? read_form(s, &t) : vpps_fail(VPPS_MEMORY, "vectors: out of memory for %u words", n);
    free(t.has);
    vpps_stream_close(s);
    if (status == VPPS_OK && found) *found = t.found;
    return status;
}
