/* zstd.h - stands for libzstd's header as zlib.h in this folder does for zlib's: what VPPS needs to read Zstandard, by libzstd.so.1. */
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

/* Without libzstd.so.1 ZSTD_createDStream returns the address of zstd_stream, so that ZSTD_decompressStream fails, with a message. */
static char zstd_stream;
ZSTD_STANDIN(void *, ZSTD_createDStream, (void), (), &zstd_stream)
ZSTD_STANDIN(size_t, ZSTD_freeDStream, (void *stream), (stream), 0)
ZSTD_STANDIN(size_t, ZSTD_decompressStream, (void *stream, ZSTD_outBuffer *out, ZSTD_inBuffer *in), (stream, out, in),
             ZSTD_STANDIN_MISSING)
ZSTD_STANDIN(unsigned, ZSTD_isError, (size_t code), (code), code == ZSTD_STANDIN_MISSING)
ZSTD_STANDIN(const char *, ZSTD_getErrorName, (size_t code), (code), "libzstd.so.1 is missing")

#endif
