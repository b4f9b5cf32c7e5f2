/* plot.h - draws learning curves as an SVG file. */
#pragma once

#include "cli/input/task.h"

typedef struct plot_point {
    float x, y; /* time in epochs, and the value there. Both are exact when written with nine digits. */
} plot_point;

typedef struct plot_curve {
    plot_point *points;
    size_t n;
} plot_curve;

/* A run's curves: the training loss of every batch, and metrics on dev and test: several of the task's first metrics if they are percentages, else
 * only the first metric. */
enum { PLOT_METRICS = 2, PLOT_CURVES = 2 * PLOT_METRICS };
typedef struct plot {
    char title[160];
    const task *task;
    plot_curve loss, measures[PLOT_CURVES]; /* loss: training loss; measures: metrics of dev, then metrics of test */
    /* Each point of the loss curve is the mean of `per` batches. `per` is a power of two that grows with the run, so that a long run takes
     * no more memory than a short one. pending: number of batches added to the next point so far. */
    uint32_t per, pending;
    double pending_x, pending_y; /* sums of epochs (x) and losses (y) of the `pending` batches, for the next point */
} plot;

void plot_open(plot *p, const char *name, const char *data, const task *t);

/* plot_loss adds a point to the loss, plot_measures adds points to the metrics of dev or test. Both skip values that are not finite, and
 * fail with MEMORY. */
vpps_status plot_loss(plot *p, double epoch, double loss);
vpps_status plot_measures(plot *p, int split, double epoch, const measures *m);

/* plot_to_text writes the curves as text for a checkpoint, which the caller frees; plot_from_text reads them into a
 * plot without points. They fail with MEMORY, FORMAT (`name` stands for the checkpoint). */
vpps_status plot_to_text(const plot *p, char **text);
vpps_status plot_from_text(plot *p, const char *name, const char *text);

/* Writes the picture atomically (io/output.h). Fails with IO, MEMORY. */
vpps_status plot_write(const plot *p, const char *path);

void plot_free(plot *p);
