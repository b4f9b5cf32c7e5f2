/* gpu_trees.h - a Tree-LSTM on generated ListOps trees, batch by batch. */
#ifndef VPPS_TESTS_GPU_TREES_H
#define VPPS_TESTS_GPU_TREES_H

#include "models.h"

typedef struct gpu_trees {
    vpps_model *model;
    vpps_graph *g;
    vpps_treebank *bank;
    void *net;
} gpu_trees;

/* Equal arguments, equal parameters and trees. */
void trees_open(gpu_trees *t, uint32_t hidden, uint32_t embed);
void trees_close(gpu_trees *t);

/* Adds a batch to the graph; the loss is the mean over labelled nodes. Build: of a graph that was cleared. */
vpps_node trees_add(gpu_trees *t, uint32_t batch);
vpps_node trees_build(gpu_trees *t, uint32_t batch);

#endif
