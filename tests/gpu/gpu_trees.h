/* gpu_trees.h - a Tree-LSTM on generated ListOps trees, batch by batch. */
#pragma once

#include "common/gpu_tests.h"
#include "common/training.h"
#include "models.h"

typedef struct gpu_trees {
    vpps_model *model;
    vpps_graph *g;
    vpps_handle *h; /* NULL: none yet */
    vpps_treebank *bank;
    void *net;
    vpps_node last; /* the loss of the labelled node that was added last */
} gpu_trees;

/* Equal arguments, equal parameters and trees; with a handle, and without. */
gpu_trees trees_with(uint32_t hidden, uint32_t embed, const vpps_options *options);
gpu_trees trees_of(uint32_t hidden, uint32_t embed);
/* With a handle on software SIMT whose driver has other functions (gpu_drive_by). */
gpu_trees trees_driven_by(const struct vpps_driver_table *driver, uint32_t hidden, uint32_t embed,
                          const vpps_options *options);
void trees_close(gpu_trees *t);

/* Adds a batch to the graph; the loss is the mean over labelled nodes. Build: of a graph that was cleared. */
vpps_node trees_add(gpu_trees *t, uint32_t batch);
vpps_node trees_build(gpu_trees *t, uint32_t batch);

/* Begins to train on that batch; trains on it, and gives its loss. */
void trees_fb(gpu_trees *t, uint32_t batch);
float trees_step(gpu_trees *t, uint32_t batch);
