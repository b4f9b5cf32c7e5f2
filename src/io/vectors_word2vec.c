/* vectors_word2vec.c - reads vectors in word2vec's binary format: a line "words size", then for each word its bytes, a
 * space, its little-endian floats, and perhaps a line feed. */
#include "vectors.h"

#include "base/base.h"
#include "file.h"

#include <math.h>

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
        for (uint32_t i = 0; i < t->size; i++) {
            if (!isfinite(values[i])) return fail_word(s, number, "finite numbers", "others");
        }
        t->has[id] = true;
        t->found.found++;
    }
    vpps_stream_skip(s, end + 1 + bytes);
    return VPPS_OK;
}

vpps_status vpps_vectors_read_word2vec(vpps_stream *s, const vpps_vectors_info *info, vpps_vectors_target *t) {
    const char *bytes;
    size_t n;
    VPPS_TRY(vpps_stream_line(s, &bytes, &n));
    for (uint64_t i = 1; i <= info->words; i++) VPPS_TRY(read_word(s, i, t));
    VPPS_TRY(vpps_stream_peek(s, 2, &bytes, &n));
    if (n == 0 || (n == 1 && *bytes == '\n')) return VPPS_OK;
    return fail_word(s, info->words + 1, "no more words than the first line says", "more");
}
