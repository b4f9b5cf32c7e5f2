/* vectors.h - common functions of the readers of pretrained word vectors (text, word2vec's binary form). */
#pragma once

#include "stream.h"
#include "vpps_data.h"

/* A vocabulary whose words get vectors: word `id` gets `size` floats at values + id * size. */
typedef struct vpps_vectors_target {
    const vpps_vocab *words;
    uint32_t size;
    float *values;
    bool *has; /* has[id]: whether word `id` has got its vector */
    vpps_vectors_found found;
} vpps_vectors_target;

/* Returns the word's id if the word is in the vocabulary and has no vector yet, else VPPS_NO_WORD. */
uint32_t vpps_vectors_wanted(const vpps_vectors_target *t, const char *word, size_t len);

/* Recognises the format at the beginning of a stream and describes it, without taking bytes. Fails as vpps_vectors_describe does. */
vpps_status vpps_vectors_look(vpps_stream *s, vpps_vectors_info *info);

/* Reads a stream of text from its beginning; `info` describes the stream. */
vpps_status vpps_vectors_read_text(vpps_stream *s, const vpps_vectors_info *info, vpps_vectors_target *t);

/* Reads vectors from a stream as vpps_vectors_read does from a file. */
vpps_status vpps_vectors_read_stream(vpps_stream *s, const vpps_vocab *words, uint32_t size, float *values,
                                     vpps_vectors_found *found);

/* Parses word2vec's first line, "words size", perhaps after a byte order mark. Returns false if the line is no such line. */
bool vpps_vectors_header(const char *line, size_t len, vpps_vectors_info *info);

/* The most bytes that a word may have in word2vec's binary form. */
#define VPPS_VECTORS_LONGEST_WORD (1 << 16)

/* The most elements of a vector; no network has vectors of such a size. */
#define VPPS_VECTORS_MOST 65536u
