/* stream.c - reads a file, decompressed if necessary, into the caller's buffer, or into `shown` if the caller only looks ahead
 * (vpps_stream_peek); and whole files. */
#include "stream.h"

#include "base/base.h"
#include "decompress.h"

#include <errno.h>
#include <sys/stat.h>

#define PIECE_BYTES 65536u

struct vpps_stream {
    const char *name;
    int fd;
    size_t size;                      /* the file's size in bytes where it is known without reading, else 0 */
    const unsigned char *in, *in_end; /* bytes of the file that were read but not yet taken */
    bool in_ended;                    /* whether the file has no bytes after in_end */
    const vpps_codec *codec;          /* decoder of the data; NULL: the data are not compressed */
    void *state;
    bool inside; /* whether the position is within compressed data, whose end is still to come */
    char *shown; /* bytes shown by vpps_stream_peek, from shown_at on */
    size_t shown_at, shown_end;
    unsigned char piece[PIECE_BYTES]; /* buffer for the part of the file that was read last */
};

/* ---------------------------------------------------------------- the file */

/* Reads the next piece if all bytes are taken and the file has more. */
static vpps_status fill_in(vpps_stream *s) {
    size_t got;
    if (s->in < s->in_end || s->in_ended) return VPPS_OK;
    VPPS_TRY(vpps_file_read(s->fd, s->name, s->piece, PIECE_BYTES, &got));
    s->in = s->piece;
    s->in_end = s->piece + got;
    s->in_ended = got < PIECE_BYTES;
    return VPPS_OK;
}

/* Copies bytes of an uncompressed file; large reads go directly to `bytes`. */
static vpps_status copy(vpps_stream *s, char *bytes, size_t n, size_t *got) {
    const size_t there = (size_t)(s->in_end - s->in);
    *got = n < there ? n : there;
    if (*got) memcpy(bytes, s->in, *got);
    s->in += *got;
    if (*got == n || s->in_ended) return VPPS_OK;
    size_t more;
    VPPS_TRY(vpps_file_read(s->fd, s->name, bytes + *got, n - *got, &more));
    s->in_ended = more < n - *got;
    *got += more;
    return VPPS_OK;
}

static vpps_status decompress(vpps_stream *s, char *bytes, size_t n, size_t *got) {
    vpps_pieces p = {.out = bytes, .out_end = bytes + n};
    while (p.out < p.out_end) {
        VPPS_TRY(fill_in(s));
        const bool last = s->in == s->in_end;
        const char *before = p.out;
        p.in = s->in;
        p.in_end = s->in_end;
        VPPS_TRY(s->codec->step(s->state, s->name, &p, &s->inside));
        s->in = p.in;
        if (!last || p.out > before) continue;
        if (!s->inside) break;
        return vpps_fail(VPPS_FORMAT, "%s%s: expected the rest of its %s data, found end of file",
                         VPPS_PATH_ARGS(s->name), s->codec->name);
    }
    *got = (size_t)(p.out - bytes);
    return VPPS_OK;
}

static vpps_status take(vpps_stream *s, char *bytes, size_t n, size_t *got) {
    *got = 0;
    if (n == 0) return VPPS_OK;
    return s->codec ? decompress(s, bytes, n, got) : copy(s, bytes, n, got);
}

/* ---------------------------------------------------------------- opening */

static vpps_status find_codec(vpps_stream *s) {
    VPPS_TRY(fill_in(s));
    VPPS_TRY(vpps_codec_of(s->name, s->in, (size_t)(s->in_end - s->in), &s->codec));
    if (!s->codec) return VPPS_OK;
    s->size = 0;
    s->state = s->codec->open();
    return s->state ? VPPS_OK : vpps_fail(VPPS_MEMORY, "%s%s: out of memory", VPPS_PATH_ARGS(s->name));
}

vpps_status vpps_stream_open(vpps_stream **out, const char *path) {
    struct stat info;
    int fd;
    *out = NULL;
    VPPS_TRY(vpps_file_open(&fd, path));
    vpps_stream *s = calloc(1, sizeof *s);
    if (!s) {
        close(fd);
        return vpps_fail(VPPS_MEMORY, "%s%s: out of memory", VPPS_PATH_ARGS(path));
    }
    *s = (vpps_stream){.name = path, .fd = fd, .in = s->piece, .in_end = s->piece};
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0) s->size = (size_t)info.st_size;
    const vpps_status status =
        fcntl(fd, F_SETFL, 0) == 0 /* makes reads from a pipe wait for its writer */
            ? find_codec(s)
            : vpps_fail(VPPS_IO, "%s%s: cannot be read: %s", VPPS_PATH_ARGS(path), strerror(errno));
    if (status == VPPS_OK)
        *out = s;
    else
        vpps_stream_close(s);
    return status;
}

void vpps_stream_close(vpps_stream *s) {
    if (!s) return;
    if (s->state) s->codec->close(s->state);
    close(s->fd); /* the file was only read: the result of close does not matter */
    VPPS_FREE_ARRAYS(s->shown);
    free(s);
}

const char *vpps_stream_name(const vpps_stream *s) { return s->name; }

/* ---------------------------------------------------------------- reading */

vpps_status vpps_stream_read(vpps_stream *s, void *bytes, size_t n, size_t *got) {
    const size_t there = s->shown_end - s->shown_at, first = n < there ? n : there;
    if (first) memcpy(bytes, s->shown + s->shown_at, first);
    s->shown_at += first;
    const vpps_status status = take(s, (char *)bytes + first, n - first, got);
    *got += first;
    return status;
}

vpps_status vpps_stream_peek(vpps_stream *s, size_t n, const char **bytes, size_t *got) {
    const size_t there = s->shown_end - s->shown_at;
    if (there < n) {
        if (there) memmove(s->shown, s->shown + s->shown_at, there);
        s->shown_at = 0;
        s->shown_end = there;
        size_t more = n - there;
        if (more < PIECE_BYTES) more = PIECE_BYTES;
        if (!VPPS_RESERVE(s->shown, there + more))
            return vpps_fail(VPPS_MEMORY, "%s%s: out of memory at %zu bytes", VPPS_PATH_ARGS(s->name), n);
        VPPS_TRY(take(s, s->shown + there, more, &more));
        s->shown_end += more;
    }
    *bytes = s->shown + s->shown_at;
    *got = s->shown_end - s->shown_at;
    return VPPS_OK;
}

void vpps_stream_skip(vpps_stream *s, size_t n) { s->shown_at += n; }

vpps_status vpps_stream_find(vpps_stream *s, char stop, size_t most, const char **bytes, size_t *got,
                             const char **found) {
    size_t searched = 0, wanted = 1;
    *found = NULL;
    while (!*found && searched < most) {
        VPPS_TRY(vpps_stream_peek(s, wanted, bytes, got));
        if (*got > searched) *found = memchr(*bytes + searched, stop, *got - searched);
        if (*got < wanted) break;
        searched = *got;
        wanted = *got + 1;
    }
    if (*found && (size_t)(*found - *bytes) >= most) *found = NULL;
    return VPPS_OK;
}

vpps_status vpps_stream_line(vpps_stream *s, const char **line, size_t *len) {
    const char *bytes = NULL, *lf;
    size_t got = 0;
    VPPS_TRY(vpps_stream_find(s, '\n', SIZE_MAX, &bytes, &got, &lf));
    *line = got ? bytes : NULL;
    *len = lf ? (size_t)(lf - bytes) : got;
    vpps_stream_skip(s, lf ? *len + 1 : got);
    if (lf && *len && bytes[*len - 1] == '\r') (*len)--;
    return VPPS_OK;
}

/* ---------------------------------------------------------------- whole files */

/* Reads to the end. A regular file, whose size is known, takes two reads; otherwise the buffer grows until the end. */
static vpps_status read_to_end(vpps_stream *stream, const char *path, char **bytes, size_t *n_bytes) {
    const size_t size = stream->size;
    size_t wanted = size ? size + 1 : 65536, got = 0;
    bool ended;
    do {
        char *grown = realloc(*bytes, *n_bytes + wanted);
        if (!grown) return vpps_fail(VPPS_MEMORY, "%s%s: out of memory at %zu bytes", VPPS_PATH_ARGS(path), *n_bytes);
        *bytes = grown;
        VPPS_TRY(vpps_stream_read(stream, grown + *n_bytes, wanted, &got));
        *n_bytes += got;
        ended = got < wanted;
        wanted = *n_bytes;
    } while (!ended);
    return VPPS_OK;
}

vpps_status vpps_file_read_all(const char *path, char **bytes, size_t *n_bytes) {
    vpps_stream *stream;
    *bytes = NULL;
    *n_bytes = 0;
    VPPS_TRY(vpps_stream_open(&stream, path));
    const vpps_status status = read_to_end(stream, path, bytes, n_bytes);
    vpps_stream_close(stream);
    if (status == VPPS_OK) return VPPS_OK;
    free(*bytes);
    *bytes = NULL;
    return status;
}
