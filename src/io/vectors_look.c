/* vectors_look.c - which form a file of vectors has. A header says how many numbers a word has; the lines, or the floats, that follow it
 * must confirm that. Without a header the lines must agree with each other. */
#include "vectors.h"

#include "base/base.h"
#include "file.h"
#include "text.h"

#include <math.h>

/* The bytes of a file that are looked at, which hold at least two of the longest vectors; and the lines or words of them. */
enum { LOOKED_AT = 1 << 22, MOST_SAMPLES = 64 };

/* The beginning of a file. */
typedef struct window {
    const char *begin, *end;
    bool whole; /* the file has no more */
} window;

/* ---------------------------------------------------------------- lines */

/* A line: its words, and how many numbers stand at its end, the first word not counted. */
typedef struct sample {
    uint32_t words, numbers;
} sample;

static sample look_at_line(const char *at, const char *end) {
    sample s = {0};
    const char *word;
    size_t len;
    float value;
    while (vpps_text_next_word(&at, end, &word, &len)) {
        s.numbers = s.words && vpps_text_number(word, word + len, &value) ? s.numbers + 1 : 0;
        s.words++;
    }
    return s;
}

/* The lines of the window that are not blank, as many as there is room for. */
static uint32_t take_samples(window w, sample samples[MOST_SAMPLES]) {
    uint32_t n = 0;
    while (n < MOST_SAMPLES && w.begin < w.end) {
        const char *lf = memchr(w.begin, '\n', (size_t)(w.end - w.begin)), *end = lf ? lf : w.end;
        if (!lf && !w.whole) break; /* part of a line */
        if (end > w.begin && end[-1] == '\r') end--;
        samples[n] = look_at_line(w.begin, end);
        n += samples[n].words > 0;
        w.begin = lf ? lf + 1 : w.end;
    }
    return n;
}

/* Do half of the lines have a word and so many numbers? Also where there are none. */
static bool are_lines(window w, uint32_t size) {
    sample samples[MOST_SAMPLES];
    uint32_t n = take_samples(w, samples), good = 0;
    for (uint32_t i = 0; i < n; i++) good += samples[i].numbers == size;
    while (n == 0 && w.begin < w.end && vpps_is_space(*w.begin)) w.begin++;
    return n == 0 ? w.whole && w.begin == w.end : 2 * good >= n;
}

/* How many numbers most of the lines have, of equals the first; 0: none has any. */
static uint32_t usual_size(window w) {
    sample samples[MOST_SAMPLES];
    const uint32_t n = take_samples(w, samples);
    uint32_t best = 0, most = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t alike = 0;
        for (uint32_t k = 0; k < n; k++) alike += samples[k].numbers == samples[i].numbers;
        if (samples[i].numbers > 0 && alike > most) best = samples[i].numbers, most = alike;
    }
    return best;
}

/* ---------------------------------------------------------------- floats */

/* Are there bytes that no text has? */
static bool holds_other_than_text(window w) {
    while (w.begin < w.end) {
        const unsigned char c = (unsigned char)*w.begin;
        const uint32_t n = c < 0x80 ? 1 : vpps_utf8_character(w.begin, (size_t)(w.end - w.begin));
        if ((n == 1 && c >= 0x80) || c == 0x7f || (c < 0x20 && !vpps_is_space(*w.begin))) return true;
        w.begin += n;
    }
    return false;
}

/* Does the window begin with words, each with a space and so many finite floats after it? */
static bool are_floats(window w, uint32_t size) {
    const size_t bytes = (size_t)size * sizeof(float);
    for (int n = 0; n < MOST_SAMPLES; n++) {
        if (w.begin < w.end && *w.begin == '\n') w.begin++;
        const size_t there = (size_t)(w.end - w.begin),
                     most = there < VPPS_VECTORS_LONGEST_WORD ? there : VPPS_VECTORS_LONGEST_WORD;
        const char *space = most ? memchr(w.begin, ' ', most) : NULL;
        if (n > 0 && (!space || (size_t)(w.end - space) <= bytes)) return true; /* the window ends */
        if (!space || space == w.begin || (size_t)(w.end - space) <= bytes) return false;
        if (memchr(w.begin, '\n', (size_t)(space - w.begin)) || memchr(w.begin, '\0', (size_t)(space - w.begin)))
            return false;
        for (uint32_t i = 0; i < size; i++) {
            float value;
            memcpy(&value, space + 1 + i * sizeof value, sizeof value);
            if (!isfinite(value)) return false;
        }
        w.begin = space + 1 + bytes;
    }
    return true;
}

/* ---------------------------------------------------------------- forms */

/* After a header, the form is the one that the following data confirm; else the one that the bytes suggest, whose reader reports the
 * fault. */
static vpps_status look_after_header(window rest, vpps_vectors_info *info) {
    if (are_lines(rest, info->size)) return VPPS_OK;
    const window few = {
        rest.begin,
        rest.end - rest.begin > VPPS_VECTORS_LONGEST_WORD ? rest.begin + VPPS_VECTORS_LONGEST_WORD : rest.end, false};
    const bool binary = holds_other_than_text(few);
    if (binary || (are_floats(rest, info->size) && usual_size(rest) == 0)) info->form = VPPS_VECTORS_WORD2VEC;
    return VPPS_OK;
}

static vpps_status fail_size(const vpps_stream *s, uint32_t size) {
    return vpps_fail(VPPS_FORMAT, "%s%s:1:1: expected vectors of 1 to %u elements, found %u",
                     VPPS_PATH_ARGS(vpps_stream_name(s)), VPPS_VECTORS_MOST, size);
}

/* GloVe's form: a word and numbers, in the first line as in the others. */
static vpps_status look_at_glove(const vpps_stream *s, window w, vpps_vectors_info *info) {
    const uint32_t size = usual_size(w);
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
    const bool whole = n < LOOKED_AT;
    if (vpps_fasttext_begins(bytes, n)) return vpps_fasttext_look(s, bytes, n, info);
    const char *end = bytes + n;
    bytes = vpps_skip_mark(bytes, end);
    n = (size_t)(end - bytes);
    const window all = {bytes, bytes + n, whole};
    const char *lf = n ? memchr(bytes, '\n', n) : NULL;
    size_t len = lf ? (size_t)(lf - bytes) : n;
    if (len && bytes[len - 1] == '\r') len--;
    if (!vpps_vectors_header(bytes, len, info)) return look_at_glove(s, all, info);
    const window rest = {lf ? lf + 1 : bytes + n, bytes + n, whole};
    if (usual_size(rest) == 1 && !are_lines(rest, info->size))
        return look_at_glove(s, all, info); /* words and numbers */
    if (info->size < 1 || info->size > VPPS_VECTORS_MOST) return fail_size(s, info->size);
    return look_after_header(rest, info);
}
