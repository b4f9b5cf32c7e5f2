/* plot.h - the learning curves as an SVG file. */
#pragma once

#include "cli/task.h"

typedef struct plot_point {
    float x, y; /* x in epochs. Text of nine digits brings them back to the bit */
} plot_point;

typedef struct plot_curve {
    plot_point *points;
    size_t n;
} plot_curve;

/* The curves of a run: the training loss of every batch; the task's first metrics on dev and test, those that are shares
 * in percent, or, where the first is none, that one alone. */
enum { PLOT_METRICS = 2, PLOT_CURVES = 2 * PLOT_METRICS };
typedef struct plot {
    char title[160];
    const task *task;
    plot_curve loss, measures[PLOT_CURVES]; /* dev's, then test's */
    /* A point of the loss is the mean of `per` batches, a power of two that grows with the run, so that a long run takes no more memory
     * than a short one; `pending` batches of the next point have been seen. */
    uint32_t per, pending;
    double pending_x, pending_y; /* sums */
} plot;

void plot_open(plot *p, const char *name, const char *data, const task *t);

/* Adds a point; points that are not finite are left out. Fails with MEMORY. */
vpps_status plot_loss(plot *p, double epoch, double loss);
vpps_status plot_measures(plot *p, int split, double epoch, const measures *m);

/* The curves as text, for a checkpoint, freed by the caller; and back, into a plot without points, to go on just as the
 * one that was written. Fail with MEMORY, FORMAT (`name` stands for the checkpoint). */
vpps_status plot_to_text(const plot *p, char **text);
vpps_status plot_from_text(plot *p, const char *name, const char *text);

/* Writes the picture, whole or not at all (io/output.h). Fails with IO, MEMORY. */
vpps_status plot_write(const plot *p, const char *path);

void plot_free(plot *p);
