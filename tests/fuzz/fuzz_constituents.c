/* fuzz_constituents.c - reads any bytes as n-ary trees: what is read keeps the header's promises, and so do both binary forms of it; a refusal leaves
 * the constituents as they were. */
#include "fuzz.h"
#include "vpps_data.h"

static void check_tree(const vpps_constituents *c, vpps_constituent_tree tree) {
    uint32_t leaves = 0;
    for (uint32_t i = 0; i < tree.n_nodes; i++) {
        const vpps_constituent *node = &tree.nodes[i];
        uint32_t size = 1;
        for (uint32_t k = 0; k < node->n_children; k++) {
            require(size <= i);
            size += tree.nodes[i - size].n_nodes;
        }
        require(size == node->n_nodes && node->label < vpps_vocab_size(vpps_constituents_labels(c)));
        require(node->n_children ? node->word == VPPS_NO_WORD
                                 : node->word < vpps_vocab_size(vpps_constituents_vocab(c)));
        leaves += node->n_children == 0;
    }
    require(leaves == tree.n_leaves && tree.nodes[tree.n_nodes - 1].n_nodes == tree.n_nodes);
}

/* Checks that a binary tree is in post-order, and has the same words in the same order. */
static void check_binary(const vpps_constituents *c, vpps_constituent_tree from, const vpps_treebank *tb,
                         vpps_tree tree) {
    uint32_t leaf = 0;
    for (uint32_t i = 0; i < tree.n_nodes; i++) {
        const vpps_tree_node *node = &tree.nodes[i];
        require(node->label >= 0 && node->label < (int32_t)vpps_treebank_classes(tb));
        if (node->left >= 0) {
            require(node->left < node->right && node->right == (int32_t)i - 1);
            continue;
        }
        while (from.nodes[leaf].n_children) leaf++;
        const char *word = vpps_vocab_word(vpps_constituents_vocab(c), from.nodes[leaf++].word);
        require(strcmp(word, vpps_vocab_word(vpps_treebank_vocab(tb), node->word)) == 0);
    }
    require(tree.n_leaves == from.n_leaves && tree.n_nodes == 2 * tree.n_leaves - 1);
}

static void check_binarised(const vpps_constituents *c, vpps_branching branching) {
    vpps_treebank *tb;
    vpps_vocab *labels;
    require(vpps_treebank_create(&tb) == VPPS_OK);
    require(vpps_vocab_create(&labels) == VPPS_OK);
    require(vpps_constituents_binarise(c, branching, labels, tb) == VPPS_OK);
    require(vpps_treebank_size(tb) == vpps_constituents_size(c));
    require(vpps_vocab_size(labels) == vpps_treebank_classes(tb));
    for (uint32_t i = 0; i < vpps_treebank_size(tb); i++)
        check_binary(c, vpps_constituents_tree(c, i), tb, vpps_treebank_tree(tb, i));
    vpps_vocab_destroy(labels);
    vpps_treebank_destroy(tb);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    static const char first[] = "(A (B b) (C c))";
    vpps_constituents *c;
    require(vpps_constituents_create(&c, (vpps_labels)(n % 3)) == VPPS_OK);
    require(vpps_constituents_read_text(c, "first", first, sizeof first - 1) == VPPS_OK);
    if (vpps_constituents_read_text(c, "fuzz", (const char *)data, n) == VPPS_OK) {
        for (uint32_t i = 0; i < vpps_constituents_size(c); i++) check_tree(c, vpps_constituents_tree(c, i));
        check_binarised(c, VPPS_LEFT_BRANCHING);
        check_binarised(c, VPPS_RIGHT_BRANCHING);
    } else {
        require(vpps_constituents_size(c) == 1 && vpps_vocab_size(vpps_constituents_vocab(c)) == 2);
        require(vpps_vocab_size(vpps_constituents_labels(c)) == 3);
        require(strncmp(vpps_error_message(), "fuzz:", 5) == 0);
    }
    vpps_constituents_destroy(c);
    return 0;
}
