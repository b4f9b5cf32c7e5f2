/* golden.h - a small network, its training examples, and the losses that PyTorch computes for them, as golden.py writes them. */
#pragma once

#include "base/arena.h"
#include "models.h"

/* As in golden.py: each step trains on the next GOLDEN_BATCH examples, and begins again after the last one. */
enum { GOLDEN_BATCH = 4, GOLDEN_BATCHES = 20 };

/* A parameter of a golden network. */
typedef struct golden_tensor {
    const char *name;
    double scale; /* value i of tensor t is scale * sin(0.37 i + 0.0011 i^2 + t) */
} golden_tensor;

/* A network that PyTorch trained twice; sgd and adam are the batches' losses. */
typedef struct golden {
    const char *name, *network;
    net_config config;
    uint32_t n_tensors;
    const golden_tensor *tensors;
    uint32_t n_examples;
    const net_example *examples;
    double sgd[GOLDEN_BATCHES], adam[GOLDEN_BATCHES];
} golden;

/* Reads golden number i of tests/golden/NAME.json into the arena. Fails the check unless golden.py wrote the file. */
golden golden_read(vpps_arena *a, const char *name, size_t i);
