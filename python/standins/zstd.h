/* zstd.h - the part of libzstd that the library needs to read Zstandard, from libzstd.so.1, which is opened at first
 * use. Without it, reading such a file fails with a message that says so. See zlib.h in this folder. */
#ifndef VPPS_STANDIN_ZSTD_H
#define VPPS_STANDIN_ZSTD_H

#include <dlfcn.h>
#include <stddef.h>

typedef struct ZSTD_inBuffer_s {
    const void *src;
    size_t size, pos;
} ZSTD_inBuffer;

typedef struct ZSTD_outBuffer_s {
    void *dst;
    size_t size, pos;
} ZSTD_outBuffer;

#define ZSTD_STANDIN_MISSING ((size_t)-1) /* a result that ZSTD_isError recognises as an error */

static inline void *zstd_find(const char *name) {
    static void *library;
    if (!library) library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
    return library ? dlsym(library, name) : NULL;
}

/* If libzstd is missing, returns a pointer that is not NULL; decompression then fails with ZSTD_STANDIN_MISSING. */
static inline void *ZSTD_createDStream(void) {
    static char none;
    void *(*call)(void);
    *(void **)&call = zstd_find("ZSTD_createDStream");
    return call ? call() : &none;
}
static inline size_t ZSTD_freeDStream(void *stream) {
    size_t (*call)(void *);
    *(void **)&call = zstd_find("ZSTD_freeDStream");
    return call ? call(stream) : 0;
}
static inline size_t ZSTD_decompressStream(void *stream, ZSTD_outBuffer *out, ZSTD_inBuffer *in) {
    static size_t (*call)(void *, ZSTD_outBuffer *, ZSTD_inBuffer *);
    if (!call) *(void **)&call = zstd_find("ZSTD_decompressStream");
    return call ? call(stream, out, in) : ZSTD_STANDIN_MISSING;
}
static inline unsigned ZSTD_isError(size_t code) {
    unsigned (*call)(size_t);
    *(void **)&call = zstd_find("ZSTD_isError");
    return call ? call(code) : code == ZSTD_STANDIN_MISSING;
}
static inline const char *ZSTD_getErrorName(size_t code) {
    const char *(*call)(size_t);
    *(void **)&call = zstd_find("ZSTD_getErrorName");
    return call ? call(code) : "libzstd.so.1 is missing";
}

#endif
