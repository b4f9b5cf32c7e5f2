/* examples.h - some small examples of every kind. */
#pragma once

#include "models.h"

enum { MOST_EXAMPLES = 16, MOST_LAYERS = 3, MOST_POSITIONS = 24 };

/* Examples of one kind, and the sizes of tables that their ids fit. Not every id below a size occurs. */
typedef struct examples {
    net_kind kind;
    uint32_t n;
    const net_example *x;
    uint32_t words, characters, classes, edge_types, numbers; /* numbers: how many each node has */
} examples;

/* Returns examples that include the shortest ones, and labels that are unknown or out of range. Equal inputs have equal labels. */
const examples *examples_of(net_kind kind);

/* Returns examples of random shape, size, ids and labels: equal seeds give equal examples. They point into *d. */
enum { DRAWN_EXAMPLES = 8, MOST_EDGES = 24, MOST_NUMBERS = 2 };
typedef struct drawn_examples {
    examples e;
    net_example x[DRAWN_EXAMPLES];
    struct {
        vpps_tree tree;
        vpps_tree_node nodes[MOST_POSITIONS];
        vpps_lattice lattice;
        vpps_lattice_arc arcs[MOST_POSITIONS];
        net_spelling spellings[MOST_POSITIONS];
        uint32_t words[MOST_POSITIONS], tags[MOST_POSITIONS], targets[MOST_POSITIONS], first_arc[MOST_POSITIONS],
            heads[MOST_POSITIONS], characters[4 * MOST_POSITIONS];
        net_edge edges[MOST_EDGES];
        float numbers[MOST_NUMBERS * MOST_POSITIONS];
    } of[DRAWN_EXAMPLES];
} drawn_examples;
void draw_examples(drawn_examples *d, net_kind kind, uint64_t seed);

/* Returns the label at position k, which may be beyond the classes; VPPS_NO_WORD: it is unknown. */
uint32_t example_label(net_kind kind, const net_example *x, uint32_t k);
