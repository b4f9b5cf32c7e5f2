/* workload.h - what the benchmarks of the host and of a GPU train: the Tree-LSTM of models/ on a file of trees, or on generated ListOps. */
#ifndef VPPS_BENCH_WORKLOAD_H
#define VPPS_BENCH_WORKLOAD_H

#include "models.h"

typedef struct workload {
    const network *net;
    void *instance;
    vpps_model *model;
    vpps_graph *g;
    vpps_treebank *trees;
    vpps_node *logits, *nll, *losses;
    vpps_node *scores; /* of the batch's labelled nodes */
    uint32_t n_scores;
    uint32_t next; /* tree */
} workload;

/* `path` NULL: ListOps. Fails with a message. */
vpps_status workload_create(workload *w, const char *path, uint32_t embed, uint32_t hidden);
void workload_destroy(workload *w);

/* Clears the graph and adds the next trees to it; *loss is their mean loss over every labelled node. */
vpps_status workload_batch(workload *w, uint32_t n, vpps_node *loss);

/* Sorts, for medians. */
void sort_doubles(double *x, size_t n);

#endif
