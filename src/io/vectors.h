/* vectors.h - the internals of reading pretrained vectors, for the readers of their forms. */
#pragma once

#include "stream.h"
#include "vpps_data.h"

/* A vocabulary that gets vectors: the word `id` those at values + id * size. */
typedef struct vpps_vectors_target {
    const vpps_vocab *words;
    uint32_t size;
    float *values;
    bool *has; /* which words have one already */
    vpps_vectors_found found;
} vpps_vectors_target;

/* The word's id in the target, when it waits for a vector; else VPPS_NO_WORD. */
uint32_t vpps_vectors_wanted(const vpps_vectors_target *t, const char *word, size_t len);

/* What a stream that begins with vectors holds; what was looked at is not taken. Fails as vpps_vectors_describe. */
vpps_status vpps_vectors_look(vpps_stream *s, vpps_vectors_info *info);

/* The readers take a stream from its beginning, with what vpps_vectors_look said of it. */
vpps_status vpps_vectors_read_text(vpps_stream *s, const vpps_vectors_info *info, vpps_vectors_target *t);
vpps_status vpps_vectors_read_word2vec(vpps_stream *s, const vpps_vectors_info *info, vpps_vectors_target *t);
vpps_status vpps_vectors_read_fasttext(vpps_stream *s, const vpps_vectors_info *info, vpps_vectors_target *t);

/* vpps_vectors_read for a stream. */
vpps_status vpps_vectors_read_stream(vpps_stream *s, const vpps_vocab *words, uint32_t size, float *values,
                                     vpps_vectors_found *found);

/* The first line of word2vec's forms, "words size"; false: it is none. The mark of UTF-8 may stand before it. */
bool vpps_vectors_header(const char *line, size_t len, vpps_vectors_info *info);

/* fastText's model: is it one, and what its beginning says. */
#define VPPS_FASTTEXT_BYTES 64
bool vpps_fasttext_begins(const char *bytes, size_t n);
vpps_status vpps_fasttext_look(vpps_stream *s, const char *bytes, size_t n, vpps_vectors_info *info);

/* So many bytes a word has at most in the binary forms. */
#define VPPS_VECTORS_LONGEST_WORD (1 << 16)

/* Vectors of more elements are not read: no network has such a size. */
#define VPPS_VECTORS_MOST 65536u
