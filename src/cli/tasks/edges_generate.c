/* edges_generate.c - generates graphs whose labels depend on typed neighbours two steps away.
 *
 * Each node has a colour, an edge "owner" to another node, and an edge "next" to another node; further edges "near" carry no information. A
 * node's label is the colour of its owner's next node; if that node is white, the label is missing. The first node is white, and the
 * graph's label is the colour of its owner's next node. Features of nodes, if any, carry no information. */
#include "base/base.h"
#include "cli/tasks/edges.h"

enum { FEWEST = 3, MOST = 14 };

static const char *const colours[] = {"white", "red", "green", "blue", "black"};

/* Draws another node than `node`. */
static uint32_t other(uint64_t *random, uint32_t node, uint32_t n) {
    return (node + 1 + vpps_random_below(random, n - 1)) % n;
}

/* Draws a node other than `node` and other than node 0, the only node without a colour. At least one node must remain. */
static uint32_t other_coloured(uint64_t *random, uint32_t node, uint32_t n) {
    const uint32_t to = 1 + vpps_random_below(random, n - 1);
    return to != node ? to : node + 1 < n ? node + 1 : node - 1;
}

static void print_graph(FILE *f, uint64_t *random, uint32_t numbers) {
    uint32_t colour[MOST] = {0}, owner[MOST] = {0}, next[MOST] = {0};
    const uint32_t n = FEWEST + vpps_random_below(random, MOST - FEWEST + 1);
    for (uint32_t i = 0; i < n; i++) {
        colour[i] = i ? 1 + vpps_random_below(random, VPPS_COUNT(colours) - 1) : 0;
        owner[i] = other(random, i, n);
        next[i] = other(random, i, n);
    }
    next[owner[0]] = other_coloured(random, owner[0], n);
    fprintf(f, "graph %s\n", colours[colour[next[owner[0]]]]);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t label = colour[next[owner[i]]];
        fprintf(f, "node %s %s", colours[colour[i]], label ? colours[label] : "-");
        for (uint32_t k = 0; k < numbers; k++) fprintf(f, " %.3g", (double)vpps_random_unit(random) - 0.5);
        fputc('\n', f);
    }
    for (uint32_t i = 0; i < n; i++)
        fprintf(f, "edge %u %u owner\nedge %u %u next\n", i + 1, owner[i] + 1, i + 1, next[i] + 1);
    for (uint32_t i = 0; i < n / 2; i++) {
        const uint32_t from = vpps_random_below(random, n);
        fprintf(f, "edge %u %u near\n", from + 1, other(random, from, n) + 1);
    }
}

char *edges_generate(uint64_t seed, uint32_t n, uint32_t numbers, size_t *bytes) {
    char *text = NULL;
    FILE *f = open_memstream(&text, bytes);
    for (uint32_t i = 0; f && i < n; i++) print_graph(f, &seed, numbers);
    vpps_text_end(f, VPPS_OK, &text);
    return text;
}
