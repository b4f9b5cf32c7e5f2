/* complete_trees_tests.c - generated complete trees: their shape, their labels, the limits. */
#include "forms.h"

enum { N_SYMBOLS = 5 };

static vpps_treebank *generate(uint64_t seed, uint32_t leaves, uint32_t n) {
    vpps_treebank *tb = new_treebank();
    TEST_OK(vpps_treebank_generate_complete(tb, &(vpps_complete_trees){.seed = seed, .leaves = leaves}, n));
    return tb;
}

/* Counts which symbol occurs most often among the leaves. */
static int32_t majority(const vpps_treebank *tb, vpps_tree tree) {
    uint32_t counts[N_SYMBOLS] = {0};
    for (uint32_t i = 0; i < tree.n_nodes; i++) {
        if (tree.nodes[i].left >= 0) continue;
        const char *word = vpps_vocab_word(vpps_treebank_vocab(tb), tree.nodes[i].word);
        ck_assert(word[0] >= 'a' && word[0] < 'a' + N_SYMBOLS && word[1] == '\0');
        counts[word[0] - 'a']++;
    }
    int32_t best = N_SYMBOLS - 1;
    for (int32_t i = best - 1; i >= 0; i--)
        if (counts[i] >= counts[best]) best = i;
    return best;
}

static const uint32_t sizes[] = {1, 2, 3, 5, 8, 13, 100, 256};

TEST_GROUP("complete trees");

TEST_EACH(trees_are_complete_and_labels_are_majorities, 0, VPPS_COUNT(sizes)) {
    enum { N_TREES = 50 };
    const uint32_t leaves = sizes[_i];
    uint32_t levels = 0; /* levels of the deepest leaf */
    while (1u << levels < leaves) levels++;
    OWNED(vpps_treebank) *tb = generate(7, leaves, N_TREES);
    ck_assert_uint_eq(vpps_treebank_size(tb), N_TREES);
    ck_assert_uint_eq(vpps_treebank_classes(tb), N_SYMBOLS);
    for (uint32_t t = 0; t < N_TREES; t++) {
        const vpps_tree tree = vpps_treebank_tree(tb, t);
        ck_assert_uint_eq(tree.n_leaves, leaves);
        ck_assert_uint_eq(tree.n_nodes, 2 * leaves - 1);
        uint32_t depth[2 * 256] = {0}, last_depth = levels;
        for (uint32_t i = tree.n_nodes; i-- > 0;) { /* the root first */
            const vpps_tree_node *node = &tree.nodes[i];
            if (i + 1 < tree.n_nodes) ck_assert_int_eq(node->label, -1);
            if (node->left < 0) continue;
            depth[node->left] = depth[node->right] = depth[i] + 1;
        }
        for (uint32_t i = 0; i < tree.n_nodes; i++) { /* leaves from the left: the last level, then the one above */
            if (tree.nodes[i].left >= 0) continue;
            ck_assert(depth[i] == last_depth || depth[i] + 1 == levels);
            last_depth = depth[i];
        }
        ck_assert_int_eq(tree.nodes[tree.n_nodes - 1].label, majority(tb, tree));
    }
}

TEST(symbols_are_balanced) {
    const uint32_t n = 5000;
    uint32_t counts[N_SYMBOLS] = {0};
    OWNED(vpps_treebank) *tb = new_treebank();
    TEST_OK(vpps_treebank_generate_complete(tb, NULL, n));
    ck_assert_uint_eq(vpps_treebank_tree(tb, 0).n_leaves, 256); /* the default */
    for (uint32_t t = 0; t < n; t++) {
        const vpps_tree tree = vpps_treebank_tree(tb, t);
        counts[tree.nodes[tree.n_nodes - 1].label]++;
    }
    for (int i = 0; i < N_SYMBOLS; i++) {
        ck_assert_uint_ge(counts[i], n * 17 / 100);
        ck_assert_uint_le(counts[i], n * 23 / 100);
    }
}

TEST(equal_complete_trees_for_equal_seeds) {
    static const char golden[] = "(2 (-1 (-1 (-1 e) (-1 c)) (-1 a)) (-1 (-1 e) (-1 c)))\n"
                                 "(2 (-1 (-1 (-1 c) (-1 e)) (-1 c)) (-1 (-1 a) (-1 e)))\n";
    size_t n, n_other;
    OWNED(vpps_treebank) *tb = generate(1, 5, 2), *other = generate(2, 5, 2);
    FREED char *text = treebank_text(tb, &n), *other_text = treebank_text(other, &n_other);
    ck_assert_str_eq(text, golden);
    ck_assert_str_ne(other_text, golden);
}

TEST(too_many_leaves_are_refused) {
    OWNED(vpps_treebank) *tb = generate(1, 4, 1), *none = new_treebank();
    const vpps_complete_trees options = {.leaves = 1000001};
    CHECK_STATUS(vpps_treebank_generate_complete(tb, &options, 1), VPPS_ARGUMENT);
    ck_assert_str_eq(vpps_error_message(), "complete trees: expected up to 1000000 leaves, found 1000001");
    ck_assert_uint_eq(vpps_treebank_size(tb), 1);
    TEST_OK(vpps_treebank_generate_complete(none, NULL, 0)); /* no trees: only the words */
    ck_assert_uint_eq(vpps_treebank_size(none), 0);
    ck_assert_uint_eq(vpps_treebank_classes(none), 0);
}
