/* lines.c - reads the lines of a file, or of standard input as they arrive. */
#include "cli/input/lines.h"
#include "base/base.h"

#include <errno.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_BYTES 65536u

vpps_status lines_open(line_reader *r, const char *path, size_t limit) {
    struct stat info;
    *r = (line_reader){.name = "stdin", .limit = limit};
    if (!path || strcmp(path, "-") == 0) return VPPS_OK;
    r->name = path;
    r->is_regular = stat(path, &info) == 0 && S_ISREG(info.st_mode);
    return vpps_stream_open(&r->stream, path);
}

void lines_of(line_reader *r, const char *name, const char *text, size_t len) {
    *r = (line_reader){.name = name, .limit = SIZE_MAX / 4, .ended = true, .lent = true};
    r->buffer = (char *)(uintptr_t)text;
    r->end = len;
}

void lines_close(line_reader *r) {
    if (r->stream) vpps_stream_close(r->stream);
    if (!r->lent) VPPS_FREE_ARRAYS(r->buffer);
    *r = (line_reader){0};
}

/* Drops the bytes read of a line that is too long. Returns whether the whole line has been dropped. */
static bool skip_rest(line_reader *r) {
    const char *lf = r->end > r->begin ? memchr(r->buffer + r->begin, '\n', r->end - r->begin) : NULL;
    r->begin = r->searched = lf ? (size_t)(lf - r->buffer) + 1 : r->end;
    r->skipping = !lf && !r->ended;
    return !r->skipping;
}

line_kind lines_next(line_reader *r, const char **line, size_t *len) {
    if (r->skipping) {
        if (!skip_rest(r)) return LINE_NONE;
        r->number++;
        return LINE_TOO_LONG;
    }
    const char *lf = r->end > r->searched ? memchr(r->buffer + r->searched, '\n', r->end - r->searched) : NULL;
    const size_t stop = lf ? (size_t)(lf - r->buffer) : r->end;
    r->searched = stop;
    if (stop - r->begin > r->limit + 1) { /* + 1: a CR at the line's end does not count */
        r->skipping = true;
        return lines_next(r, line, len);
    }
    if (!lf && !r->ended) return LINE_NONE;
    if (!lf && r->begin == r->end) return LINE_END;
    *line = r->buffer + r->begin;
    *len = stop - r->begin;
    r->begin = r->searched = lf ? stop + 1 : stop;
    r->number++;
    r->crlf = lf && *len && (*line)[*len - 1] == '\r';
    *len -= r->crlf;
    return *len <= r->limit ? LINE_WHOLE : LINE_TOO_LONG;
}

void lines_back(line_reader *r, const char *line) {
    r->begin = r->searched = (size_t)(line - r->buffer);
    r->number--;
}

/* Reads up to `room` bytes; *n is 0 at the end. */
static vpps_status read_some(line_reader *r, char *to, size_t room, size_t *n) {
    if (r->stream) {
        const char *bytes;
        VPPS_TRY(vpps_stream_peek(r->stream, 1, &bytes, n));
        *n = *n < room ? *n : room;
        if (*n) memcpy(to, bytes, *n);
        vpps_stream_skip(r->stream, *n);
        return VPPS_OK;
    }
    for (;;) {
        const ssize_t got = read(STDIN_FILENO, to, room);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return vpps_fail(VPPS_IO, "%s: %s", r->name, strerror(errno));
        *n = (size_t)got;
        return VPPS_OK;
    }
}

vpps_status lines_fill(line_reader *r) {
    const size_t there = r->end - r->begin;
    if (there && r->begin) memmove(r->buffer, r->buffer + r->begin, there);
    r->searched -= r->begin;
    r->begin = 0;
    r->end = there;
    if (!VPPS_RESERVE(r->buffer, there + READ_BYTES))
        return vpps_fail(VPPS_MEMORY, "no memory for %zu bytes of input", there);
    size_t n;
    VPPS_TRY(read_some(r, r->buffer + r->end, vpps_capacity(r->buffer) - r->end, &n));
    r->end += n;
    r->ended = n == 0;
    return VPPS_OK;
}

bool lines_ready(const line_reader *r) {
    struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
    if (r->stream) return r->ended || r->is_regular;
    /* poll returns non-zero also at the end of the input and on errors; lines_fill reports both */
    return r->ended || poll(&p, 1, 0) != 0;
}
