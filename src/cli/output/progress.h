/* progress.h - shows progress: a line that is written over on a terminal, further lines elsewhere. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct progress {
    bool quiet, terminal;
    bool drawn; /* whether the line of progress is on the screen */
    char label[32];
    const char *unit;
    uint64_t total, first; /* total: number of units of work; first: units done when the clock started */
    uint64_t begin_ns, shown_ns;
} progress;

/* Prepares progress on standard error; `quiet` shows nothing. */
void progress_open(progress *p, bool quiet);

/* Begins a phase of `total` units of work, of which `done` are done already. `unit` is their name in the plural. */
void progress_begin(progress *p, const char *label, const char *unit, uint64_t done, uint64_t total);

/* Shows that `done` units are done; loss may be NaN. Cheap: draws at most ten times a second; without a terminal prints a line every ten seconds. */
void progress_update(progress *p, uint64_t done, double loss);

/* Prints a whole line in place of the line of progress. */
void progress_line(progress *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Removes the line of progress. */
void progress_end(progress *p);
