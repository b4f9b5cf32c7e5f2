/* complete_trees.c - complete binary trees for Tree-FC (Looks et al. 2017; Xu et al. 2018, "Cavs"): every tree has the same shape, the
 * leaves are symbols, and the root's label is the symbol that occurs most often.
 *
 * Each tree has a favourite symbol and a strength p < 1/2, both drawn uniformly. A leaf is the favourite with probability p, else any of
 * the symbols: the commonest symbol is obvious in some trees, and hardly ahead in others. Over 100,000 trees with the default options, a
 * constant guess of the label is right for at most 20.2 % of the trees (tests/io checks 17 to 23 % over 5,000). */
#include "treebank.h"

#include "base/base.h"

/* Limit that keeps the node indices of a tree far less than 2^31, and the recursion at 20 levels. */
#define LEAVES_LIMIT 1000000u

static const char symbols[] = {'a', 'b', 'c', 'd', 'e'};
enum { N_SYMBOLS = VPPS_COUNT(symbols), STRENGTH_UNIT = 256 };

typedef struct generator {
    vpps_treebank *tb;
    size_t first; /* number of the tree's first node */
    uint64_t random;
    uint32_t n_leaves, words[N_SYMBOLS];
    /* favourite: the tree's favourite symbol; strength: probability with which a leaf is this symbol, in units of 1 / STRENGTH_UNIT */
    uint32_t favourite, strength;
    uint32_t counts[N_SYMBOLS]; /* occurrences of each symbol in the tree so far */
} generator;

static uint32_t draw_symbol(generator *g) {
    if (vpps_random_below(&g->random, STRENGTH_UNIT) < g->strength) return g->favourite;
    return vpps_random_below(&g->random, N_SYMBOLS);
}

static int32_t most_frequent(const uint32_t counts[N_SYMBOLS]) {
    int32_t best = 0;
    for (int32_t i = 1; i < N_SYMBOLS; i++)
        if (counts[i] > counts[best]) best = i;
    return best;
}

/* Adds the subtree of vertex k. Vertices are numbered as in a heap: the root is 1, the children of k are 2k and 2k + 1; of n leaves, the
 * vertices from n on are leaves. Any number of leaves makes a tree whose leaves lie on at most two levels. */
static vpps_status add_subtree(generator *g, uint32_t k, int32_t *index) {
    vpps_tree_node node = {-1, -1, -1, VPPS_NO_WORD};
    if (k >= g->n_leaves) {
        const uint32_t symbol = draw_symbol(g);
        g->counts[symbol]++;
        node.word = g->words[symbol];
    } else {
        VPPS_TRY(add_subtree(g, 2 * k, &node.left));
        VPPS_TRY(add_subtree(g, 2 * k + 1, &node.right));
    }
    if (k == 1) node.label = most_frequent(g->counts);
    return vpps_treebank_add_node(g->tb, g->first, node, index);
}

static vpps_status generate_tree(generator *g) {
    int32_t root;
    g->first = g->tb->n_nodes;
    g->favourite = vpps_random_below(&g->random, N_SYMBOLS);
    g->strength = vpps_random_below(&g->random, STRENGTH_UNIT / 2);
    memset(g->counts, 0, sizeof g->counts);
    VPPS_TRY(add_subtree(g, 1, &root));
    return vpps_treebank_add_tree(g->tb, g->first, 0);
}

vpps_status vpps_treebank_generate_complete(vpps_treebank *tb, const vpps_complete_trees *options, uint32_t n) {
    VPPS_NEED(tb);
    static const vpps_complete_trees defaults = {0};
    if (!options) options = &defaults;
    generator g = {.tb = tb, .random = vpps_mix64(options->seed), .n_leaves = options->leaves ? options->leaves : 256};
    if (g.n_leaves > LEAVES_LIMIT)
        return vpps_fail(VPPS_ARGUMENT, "complete trees: expected up to %u leaves, found %u", LEAVES_LIMIT, g.n_leaves);
    const vpps_treebank_mark before = vpps_treebank_extent(tb);
    vpps_status status = VPPS_OK;
    for (uint32_t i = 0; i < N_SYMBOLS && status == VPPS_OK; i++)
        status = vpps_vocab_add(tb->vocab, &symbols[i], 1, &g.words[i]);
    for (uint32_t i = 0; i < n && status == VPPS_OK; i++) status = generate_tree(&g);
    if (status != VPPS_OK) {
        vpps_treebank_restore(tb, before);
        return status;
    }
    /* classes are all symbols, even if no tree has one as label */
    if (n > 0) tb->classes = vpps_max_u32(tb->classes, N_SYMBOLS);
    return VPPS_OK;
}
