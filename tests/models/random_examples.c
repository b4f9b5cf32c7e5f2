/* random_examples.c - draws examples; see examples.h. */
#include "examples.h"

#include "base/base.h"

enum { MOST_LEAVES = 8, MOST_WORDS = 7, MOST_CHARACTERS = 4, MOST_NODES = 7, MOST_ARCS = 3 };

/* The sizes below which ids are drawn, and the random state. */
typedef struct draw {
    const examples *sizes;
    uint64_t random;
} draw;

static uint32_t below(draw *d, uint32_t n) { return vpps_random_below(&d->random, n); }

/* Draws one of the classes, or sometimes an unknown label or one beyond the classes. */
static uint32_t draw_label(draw *d) {
    const uint32_t classes = d->sizes->classes, label = below(d, classes + 2);
    return label > classes ? VPPS_NO_WORD : label;
}

static void draw_ids(draw *d, uint32_t *ids, uint32_t n, uint32_t size) {
    for (uint32_t k = 0; k < n; k++) ids[k] = below(d, size);
}

/* ---------------------------------------------------------------- trees */

/* Draws a tree of so many leaves after the *n existing nodes; returns its root's number. */
static int32_t draw_nodes(draw *d, vpps_tree_node *nodes, uint32_t *n, uint32_t leaves) {
    vpps_tree_node node = {(int32_t)draw_label(d), -1, -1, VPPS_NO_WORD};
    if (leaves == 1) {
        node.word = below(d, d->sizes->words);
    } else {
        const uint32_t left = 1 + below(d, leaves - 1);
        node.left = draw_nodes(d, nodes, n, left);
        node.right = draw_nodes(d, nodes, n, leaves - left);
    }
    nodes[*n] = node;
    return (int32_t)(*n)++;
}

/* ---------------------------------------------------------------- lattices */

/* Draws arcs: into each node a character, then often words, each from an earlier node. */
static uint32_t draw_arcs(draw *d, uint32_t n_nodes, uint32_t *first_arc, vpps_lattice_arc *arcs) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_nodes; i++) {
        const uint32_t words = i < 2 ? 0 : below(d, MOST_ARCS);
        first_arc[i] = n;
        if (i > 0) arcs[n++] = (vpps_lattice_arc){i - 1, below(d, d->sizes->characters), true};
        for (uint32_t k = 0; k < words; k++)
            arcs[n++] = (vpps_lattice_arc){below(d, i - 1), below(d, d->sizes->words), false};
    }
    first_arc[n_nodes] = n;
    return n;
}

/* ---------------------------------------------------------------- dependency trees */

/* Draws an order of the words; each word depends on an earlier one in it, or on none. */
static void draw_heads(draw *d, uint32_t *heads, uint32_t n) {
    uint32_t order[MOST_WORDS];
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t at = below(d, k + 1);
        order[k] = order[at];
        order[at] = k;
    }
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t before = below(d, k + 1);
        heads[order[k]] = before == k ? 0 : order[before] + 1;
    }
}

/* ---------------------------------------------------------------- any kind */

static uint32_t draw_edges(draw *d, net_edge *edges, uint32_t n_nodes, uint32_t types) {
    const uint32_t n = below(d, MOST_EDGES + 1);
    for (uint32_t e = 0; e < n; e++) edges[e] = (net_edge){below(d, n_nodes), below(d, n_nodes), below(d, types)};
    return n;
}

static void draw_spellings(draw *d, net_spelling *spellings, uint32_t n, uint32_t *characters) {
    for (uint32_t k = 0; k < n; k++, characters += MOST_CHARACTERS) {
        spellings[k] = (net_spelling){characters, below(d, 2) ? 0 : 1 + below(d, MOST_CHARACTERS)};
        draw_ids(d, characters, spellings[k].n, d->sizes->characters);
    }
}

static void draw_example(draw *d, net_kind kind, drawn_examples *to, uint32_t i) {
    const examples *sizes = d->sizes;
    const uint32_t leaves = 1 + below(d, MOST_LEAVES), words = 1 + below(d, MOST_WORDS),
                   nodes = 1 + below(d, MOST_NODES), targets = 2 + below(d, MOST_WORDS);
    uint32_t n = 0;
    draw_nodes(d, to->of[i].nodes, &n, leaves);
    to->of[i].tree = (vpps_tree){to->of[i].nodes, n, leaves};
    draw_ids(d, to->of[i].words, words, sizes->words);
    for (uint32_t k = 0; k < MOST_POSITIONS; k++) to->of[i].tags[k] = draw_label(d);
    draw_spellings(d, to->of[i].spellings, words, to->of[i].characters);
    draw_arcs(d, nodes, to->of[i].first_arc, to->of[i].arcs);
    to->of[i].lattice = (vpps_lattice){nodes, to->of[i].tags, to->of[i].first_arc, to->of[i].arcs};
    draw_ids(d, to->of[i].targets, targets, sizes->classes);
    draw_heads(d, to->of[i].heads, words);

    const bool linked = sizes->edge_types > 0;
    const uint32_t n_edges = linked ? draw_edges(d, to->of[i].edges, words, sizes->edge_types) : 0;
    for (uint32_t k = 0; linked && k < sizes->numbers * words; k++) to->of[i].numbers[k] = (float)below(d, 9) / 4 - 1;
    const net_example graph = {.sentence = {to->of[i].words, to->of[i].tags, words, NULL},
                               .label = to->of[i].tags[0],
                               .edges = to->of[i].edges,
                               .n_edges = n_edges,
                               .numbers = to->of[i].numbers};
    const vpps_sentence sentence = {
        .words = to->of[i].words, .tags = kind == NET_TAGGING ? to->of[i].tags : NULL, .n_words = words};
    const vpps_sentence target = {.words = to->of[i].targets, .n_words = targets};
    const net_example all[] = {
        [NET_TREES] = {.tree = &to->of[i].tree},
        [NET_TAGGING] = {.sentence = sentence, .spellings = to->of[i].spellings},
        [NET_SENTENCES] = {.sentence = sentence, .label = draw_label(d)},
        [NET_TEXT] = {.sentence = sentence},
        [NET_LATTICES] = {.lattice = &to->of[i].lattice},
        [NET_PAIRS] = {.sentence = sentence, .target = target},
        [NET_LATTICE_PAIRS] = {.lattice = &to->of[i].lattice, .target = target},
        [NET_NODES] = graph,
        [NET_GRAPHS] = graph,
        [NET_DEPENDENCIES] = {.sentence = {to->of[i].words, to->of[i].tags, words, to->of[i].heads}},
    };
    to->x[i] = all[kind];
}

void draw_examples(drawn_examples *d, net_kind kind, uint64_t seed) {
    draw how = {examples_of(kind), seed};
    d->e = *how.sizes;
    d->e.n = DRAWN_EXAMPLES;
    d->e.x = d->x;
    for (uint32_t i = 0; i < DRAWN_EXAMPLES; i++) draw_example(&how, kind, d, i);
}
