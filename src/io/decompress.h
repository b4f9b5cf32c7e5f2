/* decompress.h - the forms of compressed data that are read, told by their first bytes. */
#pragma once

#include "vpps.h"

/* What a step takes from, and where it writes to; it moves both. */
typedef struct vpps_pieces {
    const unsigned char *in, *in_end;
    char *out, *out_end;
} vpps_pieces;

typedef struct vpps_codec {
    const char *name;
    /* Do data that begin with these bytes have the form? */
    bool (*begins)(const unsigned char *bytes, size_t n);
    /* NULL: out of memory. */
    void *(*open)(void);
    /* Decompresses some of what is in. *inside, which is kept from step to step: data must follow; else they may end
     * here. `name` is the file's, in messages. Fails with FORMAT, MEMORY. */
    vpps_status (*step)(void *state, const char *name, vpps_pieces *pieces, bool *inside);
    void (*close)(void *state);
} vpps_codec;

/* So many bytes tell the form. */
#define VPPS_CODEC_BYTES 10

/* The codec of data that begin with these bytes; NULL: they are not compressed. Fails with FORMAT for what is compressed
 * in a form that is not read. */
vpps_status vpps_codec_of(const char *name, const unsigned char *bytes, size_t n, const vpps_codec **codec);
