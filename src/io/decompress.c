/* decompress.c - decompresses gzip (RFC 1952) by zlib, Zstandard (RFC 8878) by libzstd. */
#include "decompress.h"

#include "base/base.h"
#include "descriptor.h"

#define ZLIB_CONST /* makes zlib's next_in const */
#include <zlib.h>
#include <zstd.h>

static bool begins_with(const unsigned char *bytes, size_t n, const char *magic, size_t magic_n) {
    return n >= magic_n && memcmp(bytes, magic, magic_n) == 0;
}

/* ---------------------------------------------------------------- gzip */

typedef struct gzip_state {
    z_stream z;
    bool inside; /* whether the latest bytes were within a gzip member */
    bool any;    /* whether a gzip member has been read; zeros that fill up a tape's or disk's last block may follow */
} gzip_state;

static bool gzip_begins(const unsigned char *bytes, size_t n) { return begins_with(bytes, n, "\x1f\x8b\x08", 3); }

static void *gzip_open(void) {
    enum { LARGEST_WINDOW = 15, GZIP = 16 };
    gzip_state *g = calloc(1, sizeof *g);
    if (g && inflateInit2(&g->z, LARGEST_WINDOW + GZIP) == Z_OK) return g;
    free(g);
    return NULL;
}

static vpps_status gzip_step(void *state, const char *name, vpps_pieces *p, bool *inside) {
    gzip_state *g = state;
    while (!g->inside && g->any && p->in < p->in_end && *p->in == 0) p->in++;
    *inside = g->inside;
    if (p->in == p->in_end) return VPPS_OK;
    const size_t in = (size_t)(p->in_end - p->in), out = (size_t)(p->out_end - p->out);
    g->z.next_in = p->in;
    g->z.avail_in = in < UINT32_MAX ? (uInt)in : UINT32_MAX;
    g->z.next_out = (Bytef *)p->out;
    g->z.avail_out = out < UINT32_MAX ? (uInt)out : UINT32_MAX;
    const int result = inflate(&g->z, Z_NO_FLUSH);
    p->in = g->z.next_in;
    p->out = (char *)g->z.next_out;
    *inside = g->inside = true;
    if (result == Z_STREAM_END) {
        *inside = g->inside = false;
        g->any = true;
        return inflateReset(&g->z) == Z_OK ? VPPS_OK : vpps_fail(VPPS_MEMORY, "%s: zlib fails", name);
    }
    if (result == Z_OK || result == Z_BUF_ERROR) return VPPS_OK;
    if (result == Z_MEM_ERROR) return vpps_fail(VPPS_MEMORY, "%s%s: out of memory", VPPS_PATH_ARGS(name));
    return vpps_fail(VPPS_FORMAT, "%s%s: expected whole gzip data, found damaged ones (%s)", VPPS_PATH_ARGS(name),
                     g->z.msg ? g->z.msg : zError(result));
}

static void gzip_close(void *state) {
    gzip_state *g = state;
    inflateEnd(&g->z);
    free(g);
}

/* ---------------------------------------------------------------- Zstandard */

/* Recognises a Zstandard frame, or a skippable frame, which parallel compressors put first. */
static bool zstd_begins(const unsigned char *bytes, size_t n) {
    if (begins_with(bytes, n, "\x28\xb5\x2f\xfd", 4)) return true;
    return n >= 4 && (bytes[0] & 0xf0) == 0x50 && begins_with(bytes + 1, n - 1, "\x2a\x4d\x18", 3);
}

static void *zstd_open(void) { return ZSTD_createDStream(); }

static vpps_status zstd_step(void *state, const char *name, vpps_pieces *p, bool *inside) {
    if (p->in == p->in_end && !*inside) return VPPS_OK; /* a call without input would begin a new frame */
    ZSTD_inBuffer in = {p->in, (size_t)(p->in_end - p->in), 0};
    ZSTD_outBuffer out = {p->out, (size_t)(p->out_end - p->out), 0};
    const size_t result = ZSTD_decompressStream(state, &out, &in);
    p->in += in.pos;
    p->out += out.pos;
    *inside = result != 0;
    if (!ZSTD_isError(result)) return VPPS_OK;
    return vpps_fail(VPPS_FORMAT, "%s%s: expected whole zstd data, found damaged ones (%s)", VPPS_PATH_ARGS(name),
                     ZSTD_getErrorName(result));
}

static void zstd_close(void *state) { ZSTD_freeDStream(state); }

/* ---------------------------------------------------------------- which one */

static const vpps_codec codecs[] = {
    {"gzip", gzip_begins, gzip_open, gzip_step, gzip_close},
    {"zstd", zstd_begins, zstd_open, zstd_step, zstd_close},
};

/* Common compression formats that are reported as not supported. */
static const struct {
    const char *name, *magic;
    size_t n;
} others[] = {
    {"an xz file",
     "\xfd"
     "7zXZ\0",
     6},
    {"a bzip2 file", "BZh91AY&SY", 10},
    {"a zip archive", "PK\3\4", 4},
    {"a 7z archive", "7z\xbc\xaf\x27\x1c", 6},
};

vpps_status vpps_codec_of(const char *name, const unsigned char *bytes, size_t n, const vpps_codec **codec) {
    *codec = NULL;
    for (size_t i = 0; i < VPPS_COUNT(codecs); i++)
        if (codecs[i].begins(bytes, n)) *codec = &codecs[i];
    for (size_t i = 0; i < VPPS_COUNT(others); i++) {
        if (!begins_with(bytes, n, others[i].magic, others[i].n)) continue;
        return vpps_fail(VPPS_FORMAT, "%s%s: expected data as they are, or compressed by gzip or zstd, found %s",
                         VPPS_PATH_ARGS(name), others[i].name);
    }
    return VPPS_OK;
}
