/* plot.h - the learning curves as an SVG file. */
#ifndef VPPS_CLI_PLOT_H
#define VPPS_CLI_PLOT_H

#include "evaluate.h"

typedef struct plot_point {
    double x, y; /* x in epochs */
} plot_point;

typedef struct plot_curve {
    plot_point *points;
    size_t n, capacity;
} plot_curve;

/* The curves of a run: the training loss of every batch; accuracy in percent of root and nodes on dev and test. */
enum { PLOT_DEV_ROOT, PLOT_DEV_NODES, PLOT_TEST_ROOT, PLOT_TEST_NODES, N_PLOT_ACCURACIES };
typedef struct plot {
    char title[160];
    plot_curve loss, accuracy[N_PLOT_ACCURACIES];
} plot;

/* Adds a point; points that are not finite are left out. Fails with MEMORY. */
vpps_status plot_loss(plot *p, double epoch, double loss);
vpps_status plot_accuracy(plot *p, int split, double epoch, const accuracy *a);

/* Writes the picture, whole or not at all (a temporary file, renamed). Fails with IO. */
vpps_status plot_write(const plot *p, const char *path);

void plot_free(plot *p);

#endif
