/* zstd.h - the part of libzstd that the library needs to read Zstandard, from libzstd.so.1, which is opened at first
 * use. Without it, reading such a file fails with a message that says so. See zlib.h in this folder. */
#ifndef VPPS_STANDIN_ZSTD_H
#define VPPS_STANDIN_ZSTD_H

#include "standin.h"

typedef struct ZSTD_inBuffer_s {
    const void *src;
    size_t size, pos;
} ZSTD_inBuffer;

typedef struct ZSTD_outBuffer_s {
    void *dst;
    size_t size, pos;
} ZSTD_outBuffer;

#define ZSTD_STANDIN_MISSING ((size_t)-1) /* a result that ZSTD_isError recognises as an error */

#define ZSTD_STANDIN(result, name, parameters, arguments, missing)                                                     \
    STANDIN("libzstd.so.1", result, name, parameters, arguments, missing)

/* what ZSTD_createDStream returns without the library, so that decompression fails, with a message */
static char zstd_stream;
ZSTD_STANDIN(void *, ZSTD_createDStream, (void), (), &zstd_stream)
ZSTD_STANDIN(size_t, ZSTD_freeDStream, (void *stream), (stream), 0)
ZSTD_STANDIN(size_t, ZSTD_decompressStream, (void *stream, ZSTD_outBuffer *out, ZSTD_inBuffer *in), (stream, out, in),
             ZSTD_STANDIN_MISSING)
ZSTD_STANDIN(unsigned, ZSTD_isError, (size_t code), (code), code == ZSTD_STANDIN_MISSING)
ZSTD_STANDIN(const char *, ZSTD_getErrorName, (size_t code), (code), "libzstd.so.1 is missing")

#endif
