/* progress.c - shows how far training has come. */
#include "cli/output/progress.h"
#include "base/base.h"
#include "cli/common/number.h"
#include "cli/common/terminal.h"

#include <limits.h>
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

void progress_update(progress *p, uint64_t done, double loss) {
    if (p->quiet) return;
    const uint64_t now = vpps_now_ns();
    if (now - p->shown_ns < (p->terminal ? DRAW_EVERY_NS : LINE_EVERY_NS)) return;
    p->shown_ns = now;

    const double rate = (double)(done - p->first) / ((double)(now - p->begin_ns) * 1e-9);
    char left[32], value[16], line[192];
    number_time(rate > 0 ? (double)(p->total - done) / rate : 0, left, sizeof left);
    number_text(loss, 4, value, sizeof value);
    snprintf(line, sizeof line, "%s  %3.0f%%  %.0f %s/s  %s left%s%s", p->label,
             p->total ? 100 * (double)done / (double)p->total : 100, rate, p->unit, left, isnan(loss) ? "" : "  loss ",
             isnan(loss) ? "" : value);
    p->drawn = p->terminal;
    if (p->terminal) terminal_clear_line();
    fprintf(stderr, p->terminal ? "%.*s" : "%.*s\n", p->terminal ? terminal_columns() - 1 : INT_MAX, line);
    fflush(stderr);
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
