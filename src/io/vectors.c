/* vectors.c - the public functions that read pretrained word vectors. */
#include "vectors.h"

#include "base/base.h"
#include "file.h"

uint32_t vpps_vectors_wanted(const vpps_vectors_target *t, const char *word, size_t len) {
    const uint32_t id = vpps_vocab_find(t->words, word, len);
    return id != VPPS_NO_WORD && !t->has[id] ? id : VPPS_NO_WORD;
}

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
    VPPS_NEED(path, words, values);
    vpps_stream *s;
    VPPS_TRY(vpps_stream_open(&s, path));
    const vpps_status status = vpps_vectors_read_stream(s, words, size, values, found);
    vpps_stream_close(s);
    return status;
}
