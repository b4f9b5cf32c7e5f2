/* lines.c - see lines.h. */
#include "cli/lines.h"
#include "base/base.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#define READ_BYTES 65536u

void lines_open(line_reader *r, int fd, size_t limit) { *r = (line_reader){.fd = fd, .limit = limit}; }

void lines_close(line_reader *r) {
    free(r->buffer);
    *r = (line_reader){.fd = -1};
}

/* What is here of the line that is skipped goes. Has it ended? */
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
    if (stop - r->begin > r->limit + 1) { /* with its CR */
        r->skipping = true;
        return lines_next(r, line, len);
    }
    if (!lf && !r->ended) return LINE_NONE;
    if (!lf && r->begin == r->end) return LINE_END;
    *line = r->buffer + r->begin;
    *len = stop - r->begin;
    r->begin = r->searched = lf ? stop + 1 : stop;
    r->number++;
    if (lf && *len && (*line)[*len - 1] == '\r') --*len;
    return *len <= r->limit ? LINE_WHOLE : LINE_TOO_LONG;
}

vpps_status lines_fill(line_reader *r) {
    const size_t there = r->end - r->begin;
    if (there && r->begin) memmove(r->buffer, r->buffer + r->begin, there);
    r->searched -= r->begin;
    r->begin = 0;
    r->end = there;
    if (!VPPS_RESERVE(r->buffer, r->capacity, there + READ_BYTES)) {
        return vpps_fail(VPPS_MEMORY, "no memory for %zu bytes of input", there);
    }
    for (;;) {
        const ssize_t n = read(r->fd, r->buffer + r->end, r->capacity - r->end);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return vpps_fail(VPPS_IO, "stdin: %s", strerror(errno));
        r->end += (size_t)n;
        r->ended = n == 0;
        return VPPS_OK;
    }
}

bool lines_ready(const line_reader *r) {
    struct pollfd p = {.fd = r->fd, .events = POLLIN};
    return r->ended || poll(&p, 1, 0) != 0; /* also an end, or an error, which reading then tells */
}
