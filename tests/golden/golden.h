/* golden.h - the form of the headers that golden.py writes: a small network, what it is trained on, and its losses. */
#pragma once

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

/* ---- members of goldens and of their examples */

/* clang-format off */
#define ARRAY(type, ...) (const type[]){__VA_ARGS__}
#define COUNT(type, ...) (sizeof(ARRAY(type, __VA_ARGS__)) / sizeof(type))
#define BOTH(type, ...) ARRAY(type, __VA_ARGS__), COUNT(type, __VA_ARGS__)

#define TENSORS(...) .n_tensors = COUNT(golden_tensor, __VA_ARGS__), .tensors = ARRAY(golden_tensor, __VA_ARGS__)

/* Those of golden.py's lstm_tensors. */
#define LSTM(name) LSTM_GATE(name, "i"), LSTM_GATE(name, "f"), LSTM_GATE(name, "o"), LSTM_GATE(name, "u")
#define LSTM_GATE(name, gate) {name ".W_" gate, 0.3}, {name ".U_" gate, 0.3}, {name ".b_" gate, 0.1}

#define NO_WORD VPPS_NO_WORD
#define WORDS(...) .words = ARRAY(uint32_t, __VA_ARGS__), .n_words = COUNT(uint32_t, __VA_ARGS__)
#define TAGS(...) .tags = ARRAY(uint32_t, __VA_ARGS__)
#define HEADS(...) .heads = ARRAY(uint32_t, __VA_ARGS__)

#define SPELLINGS(...) .spellings = ARRAY(net_spelling, __VA_ARGS__)
#define SPELLING(...) {BOTH(uint32_t, __VA_ARGS__)}
#define NO_SPELLING {NULL, 0}

/* In post-order. */
#define TREE(...) .tree = &(const vpps_tree){BOTH(vpps_tree_node, __VA_ARGS__), (COUNT(vpps_tree_node, __VA_ARGS__) + 1) / 2}
#define LEAF(label, word) {label, -1, -1, word}
#define INNER(label, left, right) {label, left, right, NO_WORD}

/* Nodes' tags, the numbers of their first arcs, and arcs: from a node, a character or a word. */
#define LATTICE(tags, first, ...) .lattice = &(const vpps_lattice){ \
    COUNT(uint32_t, tags), ARRAY(uint32_t, tags), ARRAY(uint32_t, first), ARRAY(vpps_lattice_arc, __VA_ARGS__)}
#define LIST(...) __VA_ARGS__
#define CHARACTER(from, id) {from, id, true}
#define WORD(from, id) {from, id, false}

#define EDGES(...) .edges = ARRAY(net_edge, __VA_ARGS__), .n_edges = COUNT(net_edge, __VA_ARGS__)
#define NUMBERS(...) .numbers = ARRAY(float, __VA_ARGS__)
/* clang-format on */
