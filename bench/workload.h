/* workload.h - the training that bench_host and bench_gpu measure: the command's Tree-LSTM, on a file of trees or on
 * generated ListOps. */
#ifndef VPPS_BENCH_WORKLOAD_H
#define VPPS_BENCH_WORKLOAD_H

#include "cli/session/session.h"

typedef struct workload {
    settings s;
    corpus c;
    session x;
    uint32_t next; /* number of the next batch's first tree */
} workload;

/* Opens the network with embeddings and states of `size` elements; `trees` NULL: ListOps. Fails with a message, or ends
 * the process. Call workload_close also after a failure. */
vpps_status workload_open(workload *w, const char *trees, const char *size);
void workload_close(workload *w);

/* Clears the graph and adds the next n trees; *loss is their mean loss over every labelled node. */
vpps_status workload_batch(workload *w, uint32_t n, vpps_node *loss);

/* Sorts numbers in ascending order. */
void sort_doubles(double *x, size_t n);

#endif
