/* progress.c - draws the progress bar. */
#include "cli/output/progress.h"
#include "base/base.h"
#include "cli/common/number.h"
#include "cli/common/terminal.h"

#include <math.h>
#include <stdarg.h>

#define DRAW_EVERY_NS UINT64_C(100000000)
#define LINE_EVERY_NS UINT64_C(10000000000)

void progress_open(progress *p, bool quiet) { *p = (progress){.quiet = quiet, .terminal = terminal_is()}; }

void progress_begin(progress *p, const char *label, const char *unit, uint64_t done, uint64_t total) {
    progress_end(p);
    p->unit = unit;
    snprintf(p->label, sizeof p->label, "%s", label);
    p->total = total;
    p->first = done;
    p->begin_ns = p->shown_ns = vpps_now_ns();
}

/* Writes a duration as "1:02:03" or "2:03". */
static void clock_text(double seconds, char *text, size_t n) {
    const unsigned s = seconds > 359999 ? 359999 : (unsigned)seconds;
    if (s >= 3600)
        snprintf(text, n, "%u:%02u:%02u", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(text, n, "%u:%02u", s / 60, s % 60);
}

/* Draws a line of less than `room` columns: the label, a bar as wide as fits, and the texts in parts[]. The last texts
 * are dropped if there is no room. */
static void draw(progress *p, double part, const char *const *parts, size_t n, int room) {
    enum { LEAST = 8, MOST = 40 };
    static const char full[] = "########################################";
    static const char empty[] = "........................................";
    char tail[128] = "";
    const int fixed = (int)strlen(p->label) + (int)strlen(" [] ");
    for (size_t i = 0, len = 0; i < n; i++) {
        const size_t with = len + strlen(parts[i]) + (len ? 2 : 0);
        if (!*parts[i] || with >= sizeof tail || (len && fixed + LEAST + (int)with > room)) continue;
        snprintf(tail + len, sizeof tail - len, "%s%s", len ? "  " : "", parts[i]);
        len = with;
    }
    int width = room - fixed - (int)strlen(tail);
    if (width > MOST) width = MOST;
    terminal_clear_line();
    if (width < LEAST) { /* there is no room for a bar */
        fprintf(stderr, "%.*s", room, tail);
        return;
    }
    const int filled = (int)(part * width);
    fprintf(stderr, "%s [%.*s%.*s] %s", p->label, filled, full, width - filled, empty, tail);
}

void progress_update(progress *p, uint64_t done, double loss) {
    if (p->quiet) return;
    const uint64_t now = vpps_now_ns();
    if (now - p->shown_ns < (p->terminal ? DRAW_EVERY_NS : LINE_EVERY_NS)) return;
    p->shown_ns = now;

    const double rate = (double)(done - p->first) / ((double)(now - p->begin_ns) * 1e-9);
    const double part = p->total ? (double)done / (double)p->total : 1;
    char left[16], share[16], rate_text[48], left_text[32], loss_text[32] = "";
    clock_text(rate > 0 ? (double)(p->total - done) / rate : 0, left, sizeof left);
    if (!isnan(loss)) {
        char value[16];
        number_text(loss, 4, value, sizeof value);
        snprintf(loss_text, sizeof loss_text, "loss %s", value);
    }
    snprintf(share, sizeof share, "%3.0f%%", 100 * part);
    snprintf(rate_text, sizeof rate_text, "%.0f %s/s", rate, p->unit);
    snprintf(left_text, sizeof left_text, "%s left", left);
    if (!p->terminal) {
        const char *gap = *loss_text ? "  " : "";
        fprintf(stderr, "%s  %s  %s  %s%s%s\n", p->label, share, rate_text, left_text, gap, loss_text);
        return;
    }
    const char *const parts[] = {share, left_text, loss_text, rate_text}; /* most important first */
    draw(p, part, parts, VPPS_COUNT(parts), terminal_columns() - 1);
    fflush(stderr);
    p->drawn = true;
}

void progress_end(progress *p) {
    if (!p->drawn) return;
    terminal_clear_line();
    p->drawn = false;
}

void progress_line(progress *p, const char *format, ...) {
    if (p->quiet) return;
    progress_end(p);
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    fflush(stderr);
}
