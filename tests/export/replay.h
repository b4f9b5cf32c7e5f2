/* replay.h - writes a C program that calls the functions of an exported model as a graph's vertices do, and compares their results with the engine's
 * values. The program needs no more than the exported file does, so every compiler and processor can run it. */
#pragma once

#include "graph/graph.h"
#include "vpps_export.h"

/* How a graph is replayed. */
typedef struct replay {
    vpps_graph *g;
    vpps_handle *h;
    const char *folder,
        *name; /* NAME.c, NAME.h, NAME_calls.c and, with `beside`, NAME.bin are written there; NAME, in capitals, begins the functions' names */
    vpps_c_precision precision;
    bool beside;      /* whether the weights are in a separate file */
    bool chained;     /* vertices read the preceding functions' results; else the engine's values */
    double tolerance; /* of an element, relative to its vector's greatest element */
} replay;

/* Writes the files. `int NAME_replay(void)` returns how many vertices differ. Fails as vpps_export_c and vpps_forward do. */
vpps_status replay_write(const replay *r);
