/* workload.h - the training that bench_host and bench_gpu measure: one of the command's networks, on a file of its data
 * or on generated data. */
#ifndef VPPS_BENCH_WORKLOAD_H
#define VPPS_BENCH_WORKLOAD_H

#include "cli/session/session.h"

typedef struct workload {
    settings s;
    corpus c;
    session x;
    uint32_t next; /* number of the next batch's first example */
} workload;

/* Opens a network with embeddings and states of `size` elements; `data` NULL: generated. Fails with a message, or ends
 * the process. Call workload_close also after a failure. */
vpps_status workload_open(workload *w, const char *name, const char *data, const char *size);
void workload_close(workload *w);

/* Clears the graph and adds the next n examples; *loss is their mean loss. */
vpps_status workload_batch(workload *w, uint32_t n, vpps_node *loss);

/* Sorts numbers in ascending order. */
void sort_doubles(double *x, size_t n);

#endif
