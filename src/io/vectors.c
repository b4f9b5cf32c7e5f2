/* vectors.c - pretrained vectors: which form a file has, and the calls. */
#include "vectors.h"

#include "base/base.h"
#include "file.h"
#include "text.h"

/* So much of a file is looked at: its first line, and the first word behind it with some of its numbers. */
enum { LOOKED_AT = 1 << 16 };

uint32_t vpps_vectors_wanted(const vpps_vectors_target *t, const char *word, size_t len) {
    const uint32_t id = vpps_vocab_find(t->words, word, len);
    return id != VPPS_NO_WORD && !t->has[id] ? id : VPPS_NO_WORD;
}

/* ---------------------------------------------------------------- which form */

/* Is it what numbers are written with? */
static bool is_numeric(char c) { return (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '+' || c == 'e'; }

/* Behind the first line: are the bytes behind the first word text? Floats hardly look so, not even zeros. */
static bool is_text(const char *at, const char *end) {
    enum { BYTES = 12 };
    while (at < end && *at != ' ') at++;
    if (at == end) return true;
    uint32_t n = 0;
    for (at++; at < end && n < BYTES && *at != '\n'; at++, n++) {
        if (!is_numeric(*at) && *at != ' ' && *at != '\t' && *at != '\r') return false;
    }
    return true;
}

/* GloVe's form: a word and numbers, in the first line as in the others. */
static vpps_status look_at_glove(vpps_stream *s, const char *line, size_t len, vpps_vectors_info *info) {
    const char *end = line + len, *word, *at = line;
    size_t n;
    uint32_t numbers = 0;
    float value;
    bool good = vpps_text_next_word(&at, end, &word, &n);
    while (good && vpps_text_next_word(&at, end, &word, &n)) {
        good = vpps_vectors_number(word, word + n, &value) && numbers < VPPS_VECTORS_MOST;
        numbers++;
    }
    if (good && numbers > 0) {
        *info = (vpps_vectors_info){VPPS_VECTORS_GLOVE, 0, numbers};
        return VPPS_OK;
    }
    const vpps_text text = {vpps_stream_name(s), line, end, ""};
    char found[64];
    vpps_text_found(&text, line, found, sizeof found);
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
    const size_t mark = sizeof VPPS_BYTE_ORDER_MARK - 1;
    if (n >= mark && memcmp(bytes, VPPS_BYTE_ORDER_MARK, mark) == 0) bytes += mark, n -= mark;
    const char *lf = n ? memchr(bytes, '\n', n) : NULL;
    size_t len = lf ? (size_t)(lf - bytes) : n;
    if (len && bytes[len - 1] == '\r') len--;
    if (!vpps_vectors_header(bytes, len, info)) return look_at_glove(s, bytes, len, info);
    if (info->size < 1 || info->size > VPPS_VECTORS_MOST) {
        return vpps_fail(VPPS_FORMAT, "%s%s:1:1: expected vectors of 1 to %u elements, found %u",
                         VPPS_PATH_ARGS(vpps_stream_name(s)), VPPS_VECTORS_MOST, info->size);
    }
    if (lf && !is_text(lf + 1, bytes + n)) info->form = VPPS_VECTORS_WORD2VEC;
    return VPPS_OK;
}

/* ---------------------------------------------------------------- the calls */

vpps_status vpps_vectors_describe(const char *path, vpps_vectors_info *info) {
    VPPS_NEED(path);
    VPPS_NEED(info);
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
    if (info.size != t->size) {
        return vpps_fail(VPPS_ARGUMENT, "%s%s: expected vectors of %u elements, found some of %u",
                         VPPS_PATH_ARGS(vpps_stream_name(s)), t->size, info.size);
    }
    switch (info.form) {
    case VPPS_VECTORS_TEXT:
    case VPPS_VECTORS_GLOVE: return vpps_vectors_read_text(s, &info, t);
    case VPPS_VECTORS_WORD2VEC: return vpps_vectors_read_word2vec(s, &info, t);
    case VPPS_VECTORS_FASTTEXT: return vpps_vectors_read_fasttext(s, &info, t);
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
    VPPS_NEED(path);
    VPPS_NEED(words);
    VPPS_NEED(values);
    vpps_stream *s;
    VPPS_TRY(vpps_stream_open(&s, path));
    const vpps_status status = vpps_vectors_read_stream(s, words, size, values, found);
    vpps_stream_close(s);
    return status;
}
