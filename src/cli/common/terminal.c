/* terminal.c - prints control characters visibly, as ^X, so that text cannot send commands to the terminal. */
#include "cli/common/terminal.h"
#include "base/base.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* A stream's descriptor, and the latest byte written to it. */
typedef struct guarded {
    int fd;
    unsigned char before;
} guarded;

enum { MOST_VISIBLE = 3, HIGH = 0xc2 };

/* Writes a byte as cat -v does. A control character of ISO 8859-1 is two bytes in UTF-8, HIGH and another byte, and is written as ^X, too.
 * A byte HIGH is held back until the next byte is known. */
static size_t put_visible(unsigned char c, unsigned char before, char *to) {
    size_t n = 0;
    const bool high = before == HIGH && c >= 0x80 && c < 0xa0;
    if (before == HIGH && !high) to[n++] = (char)before;
    if (c == HIGH) return n;
    const bool control = high || (c < ' ' && c != '\n' && c != '\t') || c == 0x7f;
    if (control) to[n++] = '^';
    to[n++] = (char)(!control ? c : c == 0x7f ? '?' : (c & 0x1f) | 0x40);
    return n;
}

static bool write_all(int fd, const char *bytes, size_t n) {
    while (n) {
        const ssize_t written = write(fd, bytes, n);
        if (written < 0 && errno != EINTR) return false;
        if (written < 0) continue;
        bytes += written;
        n -= (size_t)written;
    }
    return true;
}

static ssize_t write_guarded(void *cookie, const char *bytes, size_t n) {
    guarded *g = cookie;
    char room[8192];
    size_t len = 0;
    for (size_t i = 0; i < n; i++) {
        len += put_visible((unsigned char)bytes[i], g->before, room + len);
        g->before = (unsigned char)bytes[i];
        if (len + MOST_VISIBLE <= sizeof room && i + 1 < n) continue;
        if (!write_all(g->fd, room, len)) return 0;
        len = 0;
    }
    return (ssize_t)n;
}

/* Returns a stream that makes control characters visible; `stream` itself when out of memory. */
static FILE *guard_stream(guarded *g, FILE *stream) {
    FILE *f = fopencookie(g, "w", (cookie_io_functions_t){.write = write_guarded});
    if (!f) return stream;
    setvbuf(f, NULL, _IOLBF, 0); /* writes whole lines, so that a killed process leaves no half line */
    return f;
}

void terminal_guard(void) {
    static guarded err = {.fd = STDERR_FILENO}, out = {.fd = STDOUT_FILENO};
    stderr = guard_stream(&err, stderr);
    if (isatty(STDOUT_FILENO) == 1) stdout = guard_stream(&out, stdout);
}

bool terminal_is(void) { return isatty(STDERR_FILENO) == 1; }

int terminal_columns(void) {
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

void terminal_clear_line(void) {
    static const char clear[] = "\r\033[K";
    fflush(stderr);
    write_all(STDERR_FILENO, clear, sizeof clear - 1);
}
