/* zlib.h - the part of zlib that the library needs to read gzip, from libz.so.1, which every manylinux system has and
 * which is opened at first use. The Python package is built with this file, so that it needs no header that pip does
 * not install. Declarations follow zlib's manual; they are the same since 1.2.0. */
#ifndef VPPS_STANDIN_ZLIB_H
#define VPPS_STANDIN_ZLIB_H

#include <dlfcn.h>

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

static inline void *z_find(const char *name) {
    static void *library;
    if (!library) library = dlopen("libz.so.1", RTLD_NOW | RTLD_LOCAL);
    return library ? dlsym(library, name) : NULL;
}

/* Calls the function `name` of zlib with a stream. */
static inline int z_call(const char *name, z_stream *z) {
    int (*call)(z_stream *);
    *(void **)&call = z_find(name);
    return call ? call(z) : Z_VERSION_ERROR;
}

static inline int inflateInit2(z_stream *z, int bits) {
    int (*call)(z_stream *, int, const char *, int);
    *(void **)&call = z_find("inflateInit2_");
    /* without the function (no library), the later inflate reports the failure */
    return call ? call(z, bits, "1", (int)sizeof *z) : Z_OK;
}
static inline int inflate(z_stream *z, int flush) {
    static int (*call)(z_stream *, int);
    if (!call) *(void **)&call = z_find("inflate");
    return call ? call(z, flush) : Z_VERSION_ERROR;
}
static inline int inflateReset(z_stream *z) { return z_call("inflateReset", z); }
static inline int inflateEnd(z_stream *z) { return z_call("inflateEnd", z); }
static inline const char *zError(int code) { return code == Z_VERSION_ERROR ? "libz.so.1 is missing" : "damaged"; }

#endif
