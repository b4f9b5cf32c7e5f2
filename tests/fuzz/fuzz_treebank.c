/* fuzz_treebank.c - reads any bytes as a treebank: what is read, written again, reads back the same; a refusal changes nothing. */
#include "fuzz.h"
#include "vpps_data.h"

static char *write_all(const vpps_treebank *tb, size_t *n) {
    char *text = NULL;
    FILE *file = open_memstream(&text, n);
    require(file != NULL);
    for (uint32_t i = 0; i < vpps_treebank_size(tb); i++) require(vpps_treebank_write(tb, i, file) == VPPS_OK);
    require(fclose(file) == 0);
    return text;
}

/* Checks the header's promises about a tree. */
static void check_tree(const vpps_treebank *tb, vpps_tree tree) {
    uint32_t leaves = 0, words = vpps_vocab_size(vpps_treebank_vocab(tb));
    for (uint32_t i = 0; i < tree.n_nodes; i++) {
        const vpps_tree_node *node = &tree.nodes[i];
        require(node->label >= -1 && node->label < (int32_t)vpps_treebank_classes(tb));
        if (node->left < 0) {
            require(node->right < 0 && node->word < words);
            leaves++;
        } else {
            require(node->left < node->right && node->right == (int32_t)i - 1 && node->word == VPPS_NO_WORD);
        }
    }
    require(leaves == tree.n_leaves && tree.n_nodes == 2 * leaves - 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    static const char first[] = "(1 (0 a) (0 b))\n";
    size_t n_text, n_again;
    vpps_treebank *tb, *again;
    require(vpps_treebank_create(&tb) == VPPS_OK && vpps_treebank_create(&again) == VPPS_OK);
    require(vpps_treebank_read_text(tb, "first", first, sizeof first - 1) == VPPS_OK);
    if (vpps_treebank_read_text(tb, "fuzz", (const char *)data, n) == VPPS_OK) {
        for (uint32_t i = 0; i < vpps_treebank_size(tb); i++) check_tree(tb, vpps_treebank_tree(tb, i));
        char *text = write_all(tb, &n_text);
        require(vpps_treebank_read_text(again, "again", text, n_text) == VPPS_OK);
        char *text_again = write_all(again, &n_again);
        require(n_text == n_again && memcmp(text, text_again, n_text) == 0);
        free(text);
        free(text_again);
    } else {
        require(vpps_treebank_size(tb) == 1 && vpps_treebank_classes(tb) == 2);
        require(vpps_vocab_size(vpps_treebank_vocab(tb)) == 2);
        require(strncmp(vpps_error_message(), "fuzz:", 5) == 0);
    }
    vpps_treebank_destroy(tb);
    vpps_treebank_destroy(again);
    return 0;
}
