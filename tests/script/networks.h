/* networks.h - a batch of examples for one of the networks of models/. */
#pragma once

#include "common/testing.h"
#include "models.h"

typedef struct networks_batch {
    const network *net;
    void *data;
    vpps_model *model;
    vpps_graph *g;
    vpps_node *logits, *losses; /* at positions with a known label */
    size_t n;
} networks_batch;

/* size: that of embeddings and hidden vectors. */
void networks_open(networks_batch *b, const char *name, uint32_t words, uint32_t characters, uint32_t classes,
                   uint32_t size);
void networks_add(networks_batch *b, const net_example *x);
void networks_close(networks_batch *b);
