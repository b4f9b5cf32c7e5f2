/* workload.h - what the benchmarks train: the Tree-LSTM of models/ on a file of trees, or on generated ListOps; the tagger
 * on a file of tagged sentences, or on generated ones. */
#ifndef VPPS_BENCH_WORKLOAD_H
#define VPPS_BENCH_WORKLOAD_H

#include "models.h"

typedef struct workload {
    const network *net;
    void *instance;
    vpps_model *model;
    vpps_graph *g;
    vpps_treebank *trees;      /* of the Tree-LSTM */
    vpps_sentences *sentences; /* of the tagger; else NULL */
    vpps_node *logits, *nll, *losses;
    vpps_node *scores; /* of the batch's labelled nodes or words */
    uint32_t n_scores;
    uint32_t next;       /* tree, or sentence */
    double flops_a_tree; /* of training: products only, forward and twice that backward; 0: the tagger */
} workload;

/* `path` NULL: ListOps. Fails with a message. */
vpps_status workload_create(workload *w, const char *path, uint32_t embed, uint32_t hidden);
void workload_destroy(workload *w);

/* The same with the bilstm-tagger and a file of word|TAG lines. `path` NULL: the small language that is generated. */
vpps_status workload_create_tagger(workload *w, const char *path, uint32_t embed, uint32_t hidden);

/* Clears the graph and adds the next trees or sentences to it; *loss is their mean loss over every labelled node or word. */
vpps_status workload_batch(workload *w, uint32_t n, vpps_node *loss);

/* Sorts, for medians. */
void sort_doubles(double *x, size_t n);

#endif
