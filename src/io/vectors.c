/* vectors.c - finds the form of a file of word vectors, and reads it; vectors in word2vec's binary form are read here. */
#include "vectors.h"

#include "base/base.h"
#include "file.h"
#include "text.h"

#include <math.h>

uint32_t vpps_vectors_wanted(const vpps_vectors_target *t, const char *word, size_t len) {
    const uint32_t id = vpps_vocab_find(t->words, word, len);
    return id != VPPS_NO_WORD && !t->has[id] ? id : VPPS_NO_WORD;
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

/* The first bytes of a file, or that part of them that is still to be looked at. */
typedef struct window {
    const char *begin, *end;
} window;

/* Of a file's first line: `words` is its number of words; `numbers`, how many words at its end are numbers, the first word not counted;
 * `second`, whether its second word begins as a number. */
typedef struct sample {
    uint32_t words, numbers;
    bool second;
} sample;

static sample look_at_first_line(window w) {
    sample s = {0};
    const char *at = w.begin, *lf = at < w.end ? memchr(at, '\n', (size_t)(w.end - at)) : NULL;
    const char *end = lf ? lf : w.end;
    vpps_word word;
    float value;
    if (end > at && end[-1] == '\r') end--;
    while (vpps_text_next_word(&at, end, &word)) {
        if (s.words == 1) s.second = *word.at && strchr("+-.0123456789", *word.at);
        s.numbers = s.words && vpps_text_number(word.at, word.at + word.len, &value) ? s.numbers + 1 : 0;
        s.words++;
    }
    return s;
}

/* Returns whether the window has bytes that do not occur in UTF-8 text. */
static bool holds_other_than_text(window w) {
    while (w.begin < w.end) {
        const unsigned char c = (unsigned char)*w.begin;
        const uint32_t n = c < 0x80 ? 1 : vpps_utf8_character(w.begin, (size_t)(w.end - w.begin));
        if ((n == 1 && c >= 0x80) || c == 0x7f || (c < 0x20 && !vpps_is_space(*w.begin))) return true;
        w.begin += n;
    }
    return false;
}

static vpps_status fail_size(const vpps_stream *s, uint32_t size) {
    return vpps_fail(VPPS_FORMAT, "%s%s:1:1: expected vectors of 1 to %u elements, found %u",
                     VPPS_PATH_ARGS(vpps_stream_name(s)), VPPS_VECTORS_MOST, size);
}

/* Recognises GloVe's format: every line, even the first, has a word and the numbers of its vector. */
static vpps_status look_at_glove(const vpps_stream *s, window w, vpps_vectors_info *info) {
    const uint32_t size = look_at_first_line(w).numbers;
    if (size > VPPS_VECTORS_MOST) return fail_size(s, size);
    if (size > 0) {
        *info = (vpps_vectors_info){VPPS_VECTORS_GLOVE, 0, size};
        return VPPS_OK;
    }
    const vpps_text text = {vpps_stream_name(s), w.begin, w.end, ""};
    char found[64];
    vpps_text_found(&text, w.begin, found, sizeof found);
    return vpps_fail(
        VPPS_FORMAT,
        "%s%s:1:1: expected vectors: how many there are and their size, or a word and its numbers, found %s",
        VPPS_PATH_ARGS(text.name), found);
}

vpps_status vpps_vectors_look(vpps_stream *s, vpps_vectors_info *info) {
    const char *bytes;
    size_t n;
    VPPS_TRY(vpps_stream_peek(s, LOOKED_AT, &bytes, &n));
    if (n >= sizeof fasttext_magic && memcmp(bytes, fasttext_magic, sizeof fasttext_magic) == 0)
        return vpps_fail(VPPS_FORMAT, "%s%s: fastText's binary models are not read; use the .vec file",
                         VPPS_PATH_ARGS(vpps_stream_name(s)));
    const char *end = bytes + n;
    bytes = vpps_skip_mark(bytes, end);
    n = (size_t)(end - bytes);
    const window all = {bytes, bytes + n};
    const char *lf = n ? memchr(bytes, '\n', n) : NULL;
    size_t len = lf ? (size_t)(lf - bytes) : n;
    if (len && bytes[len - 1] == '\r') len--;
    if (!vpps_vectors_header(bytes, len, info)) return look_at_glove(s, all, info);
    if (info->size < 1 || info->size > VPPS_VECTORS_MOST) return fail_size(s, info->size);
    const window rest = {lf ? lf + 1 : bytes + n, bytes + n},
                 few = {rest.begin, rest.end - rest.begin > VPPS_VECTORS_LONGEST_WORD
                                        ? rest.begin + VPPS_VECTORS_LONGEST_WORD
                                        : rest.end};
    const sample next = look_at_first_line(rest);
    const bool text = next.second && next.words == info->size + 1;
    if (!text && holds_other_than_text(few)) info->form = VPPS_VECTORS_WORD2VEC;
    return VPPS_OK;
}

/* ---------------------------------------------------------------- word2vec's binary form: a line "words size", then for each word its bytes, a
 * space, its little-endian floats, and perhaps a line feed */

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "floats in files have the low byte first");

static vpps_status fail_word(const vpps_stream *s, uint64_t number, const char *expected, const char *found) {
    return vpps_fail(VPPS_FORMAT, "%s%s: word %llu: expected %s, found %s", VPPS_PATH_ARGS(vpps_stream_name(s)),
                     (unsigned long long)number, expected, found);
}

/* Reads word `number`, from 1, and stores its vector if the target wants it. */
static vpps_status read_word(vpps_stream *s, uint64_t number, vpps_vectors_target *t) {
    const size_t bytes = (size_t)t->size * sizeof(float);
    const char *at, *space;
    size_t n;
    VPPS_TRY(vpps_stream_find(s, ' ', VPPS_VECTORS_LONGEST_WORD, &at, &n, &space));
    const size_t before = n && *at == '\n' ? 1 : 0;
    if (n == before) return fail_word(s, number, "a word and its vector", "end of file");
    if (!space) return fail_word(s, number, "a space after the word", "none");
    const size_t end = (size_t)(space - at);
    if (end == before) return fail_word(s, number, "a word", "a space");
    VPPS_TRY(vpps_stream_peek(s, end + 1 + bytes, &at, &n));
    if (n < end + 1 + bytes) return fail_word(s, number, "all of its vector", "end of file");
    const uint32_t id = vpps_vectors_wanted(t, at + before, end - before);
    if (id != VPPS_NO_WORD) {
        float *values = t->values + (size_t)id * t->size;
        memcpy(values, at + end + 1, bytes);
        for (uint32_t i = 0; i < t->size; i++)
            if (!isfinite(values[i])) return fail_word(s, number, "finite numbers", "others");
        t->has[id] = true;
        t->found.found++;
    }
    vpps_stream_skip(s, end + 1 + bytes);
    return VPPS_OK;
}

static vpps_status read_word2vec(vpps_stream *s, const vpps_vectors_info *info, vpps_vectors_target *t) {
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
    const vpps_status status = vpps_vectors_look(s, info);
    vpps_stream_close(s);
    return status;
}

static vpps_status read_form(vpps_stream *s, vpps_vectors_target *t) {
    vpps_vectors_info info = {0};
    VPPS_TRY(vpps_vectors_look(s, &info));
    if (info.size != t->size)
        return vpps_fail(VPPS_ARGUMENT, "%s%s: expected vectors of %u elements, found some of %u",
                         VPPS_PATH_ARGS(vpps_stream_name(s)), t->size, info.size);
    switch (info.form) {
    case VPPS_VECTORS_TEXT:
    case VPPS_VECTORS_GLOVE: return vpps_vectors_read_text(s, &info, t);
    case VPPS_VECTORS_WORD2VEC: return read_word2vec(s, &info, t);
    }
    return VPPS_OK;
}

vpps_status vpps_vectors_read_stream(vpps_stream *s, const vpps_vocab *words, uint32_t size, float *values,
                                     vpps_vectors_found *found) {
    const uint32_t n = vpps_vocab_size(words);
    vpps_vectors_target t = {.words = words, .size = size, .values = values, .found = {.words = n}};
    t.has = calloc((size_t)n + 1, sizeof *t.has);
    if (!t.has) return vpps_fail(VPPS_MEMORY, "vectors: out of memory for %u words", n);
    const vpps_status status = read_form(s, &t);
    free(t.has);
    if (status == VPPS_OK && found) *found = t.found;
    return status;
}

vpps_status vpps_vectors_read(const char *path, const vpps_vocab *words, uint32_t size, float *values,
                              vpps_vectors_found *found) {
    VPPS_NEED(path, words, values);
    vpps_stream *s;
    VPPS_TRY(vpps_stream_open(&s, path));
    const vpps_status status = vpps_vectors_read_stream(s, words, size, values, found);
    vpps_stream_close(s);
    return status;
}
