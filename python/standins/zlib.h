/* zlib.h - stands for zlib's header, which pip does not install, when the Python package is built: what VPPS needs to read gzip. The
 * functions are in libz.so.1, which every manylinux system has. Declarations follow zlib's manual; they are the same since 1.2.0. */
#ifndef VPPS_STANDIN_ZLIB_H
#define VPPS_STANDIN_ZLIB_H

#include "standin.h"

typedef unsigned int uInt;
typedef unsigned char Bytef;

typedef struct z_stream_s {
    const Bytef *next_in;
    uInt avail_in;
    unsigned long total_in;
    Bytef *next_out;
    uInt avail_out;
    unsigned long total_out;
    const char *msg;
    void *state;
    void *(*zalloc)(void *opaque, uInt items, uInt size);
    void (*zfree)(void *opaque, void *address);
    void *opaque;
    int data_type;
    unsigned long adler, reserved;
} z_stream;

enum { Z_NO_FLUSH = 0, Z_OK = 0, Z_STREAM_END = 1, Z_MEM_ERROR = -4, Z_BUF_ERROR = -5, Z_VERSION_ERROR = -6 };

#define Z_STANDIN(name, parameters, arguments, missing) STANDIN("libz.so.1", int, name, parameters, arguments, missing)
/* Without libz.so.1 inflateInit2 succeeds, so that inflate fails, with zError's message. */
Z_STANDIN(inflateInit2_, (z_stream * z, int bits, const char *version, int size), (z, bits, version, size), Z_OK)
#define inflateInit2(z, bits) inflateInit2_((z), (bits), "1", (int)sizeof(z_stream))
Z_STANDIN(inflate, (z_stream * z, int flush), (z, flush), Z_VERSION_ERROR)
Z_STANDIN(inflateReset, (z_stream * z), (z), Z_VERSION_ERROR)
Z_STANDIN(inflateEnd, (z_stream * z), (z), Z_VERSION_ERROR)
static inline const char *zError(int code) { return code == Z_VERSION_ERROR ? "libz.so.1 is missing" : "damaged"; }

#endif
