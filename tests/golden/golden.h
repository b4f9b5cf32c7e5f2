/* golden.h - the form of the headers that golden.py writes: a small network, what it is trained on, and its losses. */
#ifndef VPPS_TESTS_GOLDEN_H
#define VPPS_TESTS_GOLDEN_H

#include "models.h"

/* As in golden.py: each step is trained on so many examples, from the first on, again and again. */
enum { GOLDEN_BATCH = 4, GOLDEN_BATCHES = 20 };

/* A parameter of a golden network. */
typedef struct golden_tensor {
    const char *name;
    double scale; /* value i of tensor t is scale * sin(0.37 i + 0.0011 i^2 + t) */
} golden_tensor;

/* A network that PyTorch trained twice; sgd and adam are the losses of its batches. */
typedef struct golden {
    const char *name, *network;
    net_config config;
    uint32_t n_tensors;
    const golden_tensor *tensors;
    uint32_t n_examples;
    const net_example *examples;
    double sgd[GOLDEN_BATCHES], adam[GOLDEN_BATCHES];
} golden;

#endif
