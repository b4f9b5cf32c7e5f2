/* examples.c - the examples; see examples.h. */
#include "examples.h"

#include "base/base.h"

#define NO VPPS_NO_WORD
#define ARRAY(...) ((const uint32_t[]){__VA_ARGS__})
#define WORDS(...) .words = ARRAY(__VA_ARGS__), .n_words = sizeof ARRAY(__VA_ARGS__) / sizeof(uint32_t)

/* ---------------------------------------------------------------- trees
 *
 * Labels at all nodes, at some and at none but the leaves; a tree of one word; label 7 is not among the classes. */

enum { A = 0, B = 2, C = 3, D = 6, TREE_WORDS };

#define LEAF(label, word)                                                                                              \
    { label, -1, -1, word }
#define NODE(label, left, right)                                                                                       \
    { label, left, right, NO }
#define TREE(leaves, ...)                                                                                              \
    (&(const vpps_tree){(const vpps_tree_node[]){__VA_ARGS__},                                                         \
                        sizeof((const vpps_tree_node[]){__VA_ARGS__}) / sizeof(vpps_tree_node), leaves})

static const net_example trees[] = {
    /* (2 (1 (0 a) (3 b)) (1 (2 c) (0 (0 a) (1 d)))) */
    {.tree = TREE(5, LEAF(0, A), LEAF(3, B), NODE(1, 0, 1), LEAF(2, C), LEAF(0, A), LEAF(1, D), NODE(0, 4, 5),
                  NODE(1, 3, 6), NODE(2, 2, 7))},
    /* (3 b) */
    {.tree = TREE(1, LEAF(3, B))},
    /* (0 (-1 (-1 c) (2 (-1 d) (7 a))) (-1 b)) */
    {.tree = TREE(4, LEAF(-1, C), LEAF(-1, D), LEAF(7, A), NODE(2, 1, 2), NODE(-1, 0, 3), LEAF(-1, B), NODE(0, 4, 5))},
    /* (-1 (1 (1 d) (2 c)) (0 (2 (3 b) (-1 a)) (3 (2 c) (3 b)))) */
    {.tree = TREE(6, LEAF(1, D), LEAF(2, C), NODE(1, 0, 1), LEAF(3, B), LEAF(-1, A), NODE(2, 3, 4), LEAF(2, C),
                  LEAF(3, B), NODE(3, 6, 7), NODE(0, 5, 8), NODE(-1, 2, 9))},
    /* (2 (1 d) (0 a)) */
    {.tree = TREE(2, LEAF(1, D), LEAF(0, A), NODE(2, 0, 1))},
};

/* ---------------------------------------------------------------- tagged sentences
 *
 * Tags that are unknown, beyond the 4 classes, or not there at all; words spelled with one character and with more. Word
 * 5 is always spelled, word 4 in one place. */

#define SPELLED(...)                                                                                                   \
    { ARRAY(__VA_ARGS__), sizeof ARRAY(__VA_ARGS__) / sizeof(uint32_t) }
#define KNOWN                                                                                                          \
    { NULL, 0 }
#define SPELLINGS(...)                                                                                                 \
    .spellings = (const net_spelling[]) { __VA_ARGS__ }

static const net_example tagging[] = {
    {.sentence = {WORDS(0, 3, 8, 5, 4), .tags = ARRAY(0, 1, 2, 3, 0)},
     SPELLINGS(KNOWN, KNOWN, KNOWN, SPELLED(2, 0, 5), SPELLED(3))},
    {.sentence = {WORDS(8), .tags = ARRAY(2)}, SPELLINGS(KNOWN)},
    {.sentence = {WORDS(3, 5), .tags = ARRAY(NO, 1)}, SPELLINGS(KNOWN, SPELLED(5, 5))},
    {.sentence = {WORDS(4, 0, 3, 3), .tags = ARRAY(7, 3, 0, 1)}, SPELLINGS(KNOWN, KNOWN, KNOWN, KNOWN)},
    {.sentence = {WORDS(5), .tags = ARRAY(0)}, SPELLINGS(SPELLED(2))},
    {.sentence = {WORDS(0, 4)}, SPELLINGS(KNOWN, KNOWN)},
};

/* ---------------------------------------------------------------- labelled sentences
 *
 * Labels that are unknown, or beyond the 4 classes; a sentence of one word. The words that tell the label stand at either
 * end, or in the middle. */

static const net_example sentences[] = {
    {.sentence = {WORDS(0, 3, 8, 5, 4)}, .label = 0}, /* */
    {.sentence = {WORDS(4, 5, 8, 3, 0)}, .label = 1}, /* */
    {.sentence = {WORDS(8)}, .label = 2},             /* */
    {.sentence = {WORDS(0, 3, 2, 5, 4)}, .label = 3}, /* */
    {.sentence = {WORDS(3, 5)}, .label = NO},         /* */
    {.sentence = {WORDS(4, 0, 3, 3)}, .label = 7},    /* */
    {.sentence = {WORDS(5, 5)}, .label = 0},
};

/* ---------------------------------------------------------------- text
 *
 * What follows the same beginning is always the same; a sentence of one word says nothing. Word 3 is only said, word 6 is
 * only read. */

static const net_example text[] = {
    {.sentence = {WORDS(1, 4, 2, 5, 0)}},       /* */
    {.sentence = {WORDS(2, 0)}},                /* */
    {.sentence = {WORDS(4, 4, 4, 7, 1, 0)}},    /* */
    {.sentence = {WORDS(7)}},                   /* */
    {.sentence = {WORDS(6, 1, 4, 2, 7, 2, 0)}}, /* */
    {.sentence = {WORDS(0, 2, 3)}},             /* */
};

/* ---------------------------------------------------------------- lattices
 *
 * Without words; with several words into one node, from one node, over each other; of one character, and of none. */

#define CHARACTER(from, id)                                                                                            \
    { from, id, true }
#define WORD(from, id)                                                                                                 \
    { from, id, false }
#define LATTICE(some_tags, first, ...)                                                                                 \
    .lattice = &(const vpps_lattice) {                                                                                 \
        sizeof some_tags / sizeof(uint32_t), some_tags, first, (const vpps_lattice_arc[]) { __VA_ARGS__ }              \
    }

static const net_example lattices[] = {
    {LATTICE(ARRAY(2, 0, 1, 2, 0), ARRAY(0, 0, 1, 2, 3, 4), /* */
             CHARACTER(0, 1), CHARACTER(1, 4), CHARACTER(2, 4), CHARACTER(3, 0))},
    {LATTICE(ARRAY(NO, 1, 1, 0, 2), ARRAY(0, 0, 1, 3, 4, 8), /* */
             CHARACTER(0, 6), CHARACTER(1, 1), WORD(0, 0), CHARACTER(2, 0), CHARACTER(3, 4), WORD(2, 3), WORD(1, 4),
             WORD(0, 0))},
    {LATTICE(ARRAY(1, 0), ARRAY(0, 0, 1), CHARACTER(0, 4))},
    {LATTICE(ARRAY(0, NO, 7, 1), ARRAY(0, 0, 1, 2, 4), CHARACTER(0, 0), CHARACTER(1, 0), CHARACTER(2, 1), WORD(0, 3))},
    {LATTICE(ARRAY(0, 2, 0, 1), ARRAY(0, 0, 1, 3, 6), /* */
             CHARACTER(0, 2), CHARACTER(1, 6), WORD(0, 3), CHARACTER(2, 2), WORD(1, 4), WORD(0, 5))},
    {LATTICE(ARRAY(0), ARRAY(0, 0), {0, 0, false})}, /* the array's arc is not the lattice's */
};

/* ---------------------------------------------------------------- pairs
 *
 * Targets are between two words 0; one of them has nothing between. */

static const net_example pairs[] = {
    {.sentence = {WORDS(1, 3, 0, 6)}, .target = {WORDS(0, 2, 4, 1, 0)}},
    {.sentence = {WORDS(3)}, .target = {WORDS(0, 5, 0)}},
    {.sentence = {WORDS(6, 6, 1)}, .target = {WORDS(0, 0)}},
    {.sentence = {WORDS(0, 3)}, .target = {WORDS(0, 4, 4, 4, 2, 0)}},
    {.sentence = {WORDS(5, 1, 3, 0, 0)}, .target = {WORDS(0, 1, 0)}},
};

static const net_example lattice_pairs[] = {
    {LATTICE(ARRAY(0, 0, 0, 0, 0), ARRAY(0, 0, 1, 2, 3, 4), /* */
             CHARACTER(0, 1), CHARACTER(1, 4), CHARACTER(2, 4), CHARACTER(3, 0)),
     .target = {WORDS(0, 2, 4, 1, 0)}},
    {LATTICE(ARRAY(0, 0, 0, 0, 0), ARRAY(0, 0, 1, 3, 4, 8), /* */
             CHARACTER(0, 6), CHARACTER(1, 1), WORD(0, 0), CHARACTER(2, 0), CHARACTER(3, 4), WORD(2, 3), WORD(1, 4),
             WORD(0, 0)),
     .target = {WORDS(0, 4, 4, 4, 2, 0)}},
    {LATTICE(ARRAY(0, 0), ARRAY(0, 0, 1), CHARACTER(0, 4)), .target = {WORDS(0, 0)}},
    {LATTICE(ARRAY(0, 0, 0, 0), ARRAY(0, 0, 1, 3, 6), /* */
             CHARACTER(0, 2), CHARACTER(1, 6), WORD(0, 3), CHARACTER(2, 2), WORD(1, 4), WORD(0, 5)),
     .target = {WORDS(0, 7, 0)}},
    {LATTICE(ARRAY(0), ARRAY(0, 0), {0, 0, false}), .target = {WORDS(0, 3, 0)}},
};

/* ---------------------------------------------------------------- dependency trees
 *
 * Words before and after their heads, a tree that is not projective, a chain, several roots, a word with many dependents; labels at
 * all words, at some, at the root alone, and at none. */

#define HEADS(...) .heads = ARRAY(__VA_ARGS__)

static const net_example dependencies[] = {
    {.sentence = {WORDS(0, 3, 8, 5, 4), .tags = ARRAY(0, 1, 2, 3, 0), HEADS(2, 0, 2, 5, 3)}},
    {.sentence = {WORDS(8), .tags = ARRAY(2), HEADS(0)}},
    {.sentence = {WORDS(3, 5, 4), .tags = ARRAY(NO, 3, 7), HEADS(0, 0, 1)}},
    {.sentence = {WORDS(4, 0, 3, 8), .tags = ARRAY(1, 0, 0, 2), HEADS(3, 4, 0, 3)}},
    {.sentence = {WORDS(5, 5, 4, 0, 0, 6), .tags = ARRAY(NO, NO, 1, NO, NO, NO), HEADS(3, 3, 0, 3, 3, 3)}},
    {.sentence = {WORDS(0, 3, 4, 5), .tags = ARRAY(0, 2, 3, 1), HEADS(2, 3, 4, 0)}},
    {.sentence = {WORDS(0, 4), HEADS(2, 0)}},
};

/* ---------------------------------------------------------------- graphs
 *
 * A node without edges, one with an edge to itself, two edges between the same nodes, a circle, parts that no edge joins; labels at all
 * nodes, at some, at none, and unknown ones of graphs. */

#define EDGES(...)                                                                                                     \
    .edges = (const net_edge[]){__VA_ARGS__}, .n_edges = sizeof((const net_edge[]){__VA_ARGS__}) / sizeof(net_edge)
#define NUMBERS(...)                                                                                                   \
    .numbers = (const float[]) { __VA_ARGS__ }

static const net_example graphs[] = {
    {.sentence = {WORDS(0, 3, 8, 5), .tags = ARRAY(0, 1, 2, 3)},
     .label = 1,
     EDGES({0, 1, 0}, {1, 2, 2}, {2, 0, 1}, {3, 2, 2}),
     NUMBERS(0.5f, 1, -1, 0, 0, 0.25f, 2, -0.5f)},
    {.sentence = {WORDS(8), .tags = ARRAY(2)}, .label = 0, NUMBERS(1, 0.5f)},
    {.sentence = {WORDS(3, 5, 4), .tags = ARRAY(NO, 3, 7)},
     .label = NO,
     EDGES({1, 1, 0}, {0, 2, 3}, {0, 2, 0}),
     NUMBERS(0, 0.5f, 0.75f, -1, 1, 1)},
    {.sentence = {WORDS(4, 0, 3, 8, 5), .tags = ARRAY(1, NO, 0, 2, NO)},
     .label = 7,
     EDGES({4, 0, 1}, {0, 4, 1}, {2, 1, 3}),
     NUMBERS(1, 2, 0.5f, -0.25f, 0, 0, -1, 0.5f, 0.25f, 1)},
    {.sentence = {WORDS(5, 3), .tags = ARRAY(3, 1)}, .label = 2, EDGES({1, 0, 3}), NUMBERS(0, 1, 2, 0)},
    {.sentence = {WORDS(6, 4)}, .label = 3, EDGES({0, 1, 2}), NUMBERS(-0.5f, 0, 0, 1)},
};

/* ---------------------------------------------------------------- what they are made of */

/* Sizes of tables differ, so that using one for another is noticed. */
static const examples kinds[] = {
    [NET_TREES] = {NET_TREES, VPPS_COUNT(trees), trees, .words = TREE_WORDS + 1, .classes = 4},
    [NET_TAGGING] = {NET_TAGGING, VPPS_COUNT(tagging), tagging, .words = 9, .characters = 7, .classes = 4},
    [NET_SENTENCES] = {NET_SENTENCES, VPPS_COUNT(sentences), sentences, .words = 9, .classes = 4},
    [NET_TEXT] = {NET_TEXT, VPPS_COUNT(text), text, .words = 9, .classes = 9},
    [NET_LATTICES] = {NET_LATTICES, VPPS_COUNT(lattices), lattices, .words = 6, .characters = 7, .classes = 3},
    [NET_PAIRS] = {NET_PAIRS, VPPS_COUNT(pairs), pairs, .words = 7, .classes = 6},
    [NET_LATTICE_PAIRS] = {NET_LATTICE_PAIRS, VPPS_COUNT(lattice_pairs), lattice_pairs, .words = 6, .characters = 7,
                           .classes = 8},
    [NET_DEPENDENCIES] = {NET_DEPENDENCIES, VPPS_COUNT(dependencies), dependencies, .words = 9, .classes = 4},
    [NET_NODES] = {NET_NODES, VPPS_COUNT(graphs), graphs, .words = 9, .classes = 4, .edge_types = 5,
                   .numbers = MOST_NUMBERS},
    [NET_GRAPHS] = {NET_GRAPHS, VPPS_COUNT(graphs), graphs, .words = 9, .classes = 4, .edge_types = 5,
                    .numbers = MOST_NUMBERS},
};

const examples *examples_of(net_kind kind) { return &kinds[kind]; }

uint32_t example_label(net_kind kind, const net_example *x, uint32_t k) {
    switch (kind) {
    case NET_TREES: return (uint32_t)x->tree->nodes[k].label; /* -1 is VPPS_NO_WORD */
    case NET_TAGGING:
    case NET_DEPENDENCIES:
    case NET_NODES: return x->sentence.tags ? x->sentence.tags[k] : VPPS_NO_WORD;
    case NET_SENTENCES:
    case NET_GRAPHS: return x->label;
    case NET_TEXT: return x->sentence.words[k + 1];
    case NET_LATTICES: return x->lattice->tags[k + 1];
    case NET_PAIRS:
    case NET_LATTICE_PAIRS: return x->target.words[k + 1];
    }
    return VPPS_NO_WORD;
}
