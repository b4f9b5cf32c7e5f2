/* progress.h - a bar on a terminal, plain lines elsewhere. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct progress {
    bool quiet, terminal;
    bool drawn; /* a bar is on the screen */
    char label[32];
    const char *unit;
    uint64_t total, first; /* units of the whole, and done when the clock started */
    uint64_t begin_ns, shown_ns;
} progress;

/* Writes to standard error; quiet writes nothing. */
void progress_open(progress *p, bool quiet);

/* A new stretch of `total` units (what they are, in the plural), `done` of them done before. */
void progress_begin(progress *p, const char *label, const char *unit, uint64_t done, uint64_t total);

/* `done` units are done; loss may be NaN. Cheap: draws at most ten times a second, and elsewhere than on a terminal
 * prints a line every ten seconds. */
void progress_update(progress *p, uint64_t done, double loss);

/* A whole line in place of the bar. */
void progress_line(progress *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Takes the bar away. */
void progress_end(progress *p);
