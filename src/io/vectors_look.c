/* vectors_look.c - finds the form of a file of word vectors. Its first bytes tell a model of fastText. A first line of two whole numbers
 * is a header, "words size". Text follows it where the next line has size + 1 words, of which the second begins as a number, or where all
 * bytes are those of text; else it is word2vec's binary form. Any other first line is GloVe's: all lines have as many numbers as stand at
 * its end. */
#include "vectors.h"

#include "base/base.h"
#include "file.h"
#include "text.h"

/* Number of a file's first bytes that are looked at; they hold at least two of the longest vectors. */
enum { LOOKED_AT = 1 << 22 };

/* The first bytes of a file, or that part of them that is still to be looked at. */
typedef struct window {
    const char *begin, *end;
} window;

/* ---------------------------------------------------------------- lines */

/* The look of a file's first line: number of words; number of words at its end that are numbers, the line's first word excluded; and
 * whether the second word begins as a number. */
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

/* ---------------------------------------------------------------- forms */

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
    if (vpps_fasttext_begins(bytes, n)) return vpps_fasttext_look(s, bytes, n, info);
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
