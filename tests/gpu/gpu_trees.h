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

/* Sizes and options that tests share, and kernels with them; options of a GPU, with nothing to choose. */
enum { TREES_HIDDEN = 16, TREES_EMBED = 24 };
vpps_options trees_options(void);

/* Makes a network and trees: equal arguments give equal ones. trees_with also makes a handle. */
gpu_trees trees_with(uint32_t hidden, uint32_t embed, const vpps_options *options);
gpu_trees trees_of(uint32_t hidden, uint32_t embed);
/* Also makes a handle on software SIMT whose driver has other functions (gpu_drive_by). */
gpu_trees trees_driven_by(const struct vpps_driver_table *driver, uint32_t hidden, uint32_t embed,
                          const vpps_options *options);
void trees_close(gpu_trees *t);

/* trees_add adds a batch to the graph; the loss is the mean over labelled nodes. trees_build clears the graph before. */
vpps_node trees_add(gpu_trees *t, uint32_t batch);
vpps_node trees_build(gpu_trees *t, uint32_t batch);

/* trees_fb begins to train on a batch; trees_step trains on it and returns its loss. */
void trees_fb(gpu_trees *t, uint32_t batch);
float trees_step(gpu_trees *t, uint32_t batch);
