/* workload.h - what the benchmarks of the host and of a GPU train: the command's Tree-LSTM, on a file of trees or on generated ListOps. */
#ifndef VPPS_BENCH_WORKLOAD_H
#define VPPS_BENCH_WORKLOAD_H

#include "cli/session.h"

typedef struct workload {
    settings s;
    corpus c;
    session x;
    uint32_t next; /* tree */
} workload;

/* Embedding and hidden are `size` wide; `trees` NULL: ListOps. Close in any case. Fails with a message, or ends the process. */
vpps_status workload_open(workload *w, const char *trees, const char *size);
void workload_close(workload *w);

/* Clears the graph and adds the next n trees to it; *loss is their mean loss over every labelled node. */
vpps_status workload_batch(workload *w, uint32_t n, vpps_node *loss);

/* Sorts, for medians. */
void sort_doubles(double *x, size_t n);

#endif
