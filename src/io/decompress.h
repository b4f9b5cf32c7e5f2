/* decompress.h - the supported compression formats (codecs), recognised by a file's first bytes. */
#pragma once

#include "vpps.h"

/* The input buffer `in` and the output buffer `out` of a decompression step, which advances both. */
typedef struct vpps_pieces {
    const unsigned char *in, *in_end;
    char *out, *out_end;
} vpps_pieces;

typedef struct vpps_codec {
    const char *name;
    /* Returns whether data that begin with these bytes have the codec's format. */
    bool (*begins)(const unsigned char *bytes, size_t n);
    /* Returns a new decompression state, NULL when out of memory. */
    void *(*open)(void);
    /* Decompresses from `in` to `out` until one buffer is used up. Sets *inside to whether the data so far are incomplete, so that more must
     * follow; the caller passes *inside to the next step unchanged. `name` is the file's name for messages. Fails with FORMAT, MEMORY. */
    vpps_status (*step)(void *state, const char *name, vpps_pieces *pieces, bool *inside);
    void (*close)(void *state);
} vpps_codec;

/* The number of first bytes from which vpps_codec_of recognises every format. */
#define VPPS_CODEC_BYTES 10

/* Finds the codec for data that begin with these bytes; *codec is NULL for uncompressed data. Fails with FORMAT for a
 * compression format that is not supported. */
vpps_status vpps_codec_of(const char *name, const unsigned char *bytes, size_t n, const vpps_codec **codec);
