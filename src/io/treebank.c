/* treebank.c - labelled binary trees in memory, and as text. */
#include "treebank.h"

#include "base/base.h"

vpps_status vpps_treebank_create(vpps_treebank **out) {
    VPPS_NEED(out);
    vpps_treebank *tb = calloc(1, sizeof *tb);
    *out = NULL;
    if (!tb) return vpps_fail(VPPS_MEMORY, "treebank: out of memory");
    vpps_status status = vpps_vocab_create(&tb->vocab);
    if (status != VPPS_OK) {
        free(tb);
        return status;
    }
    *out = tb;
    return VPPS_OK;
}

void vpps_treebank_destroy(vpps_treebank *tb) {
    if (!tb) return;
    vpps_vocab_destroy(tb->vocab);
    VPPS_FREE_ARRAYS(tb->nodes, tb->trees);
    free(tb);
}

uint32_t vpps_treebank_size(const vpps_treebank *tb) { return tb ? tb->n_trees : 0; }

vpps_tree vpps_treebank_tree(const vpps_treebank *tb, uint32_t i) {
    if (i >= vpps_treebank_size(tb)) return (vpps_tree){0};
    const struct vpps_tree_range *t = &tb->trees[i];
    return (vpps_tree){tb->nodes + t->first_node, t->n_nodes, t->n_leaves};
}

uint32_t vpps_treebank_line(const vpps_treebank *tb, uint32_t i) {
    return i < vpps_treebank_size(tb) ? tb->trees[i].line : 0;
}

void vpps_treebank_set_line(vpps_treebank *tb, uint32_t first, uint32_t line) {
    for (uint32_t i = first; i < tb->n_trees; i++) tb->trees[i].line = line;
}

const vpps_vocab *vpps_treebank_vocab(const vpps_treebank *tb) { return tb ? tb->vocab : NULL; }

uint32_t vpps_treebank_classes(const vpps_treebank *tb) { return tb ? tb->classes : 0; }

vpps_treebank_mark vpps_treebank_extent(const vpps_treebank *tb) {
    return (vpps_treebank_mark){tb->n_nodes, tb->n_trees, vpps_vocab_size(tb->vocab), tb->classes};
}

void vpps_treebank_restore(vpps_treebank *tb, vpps_treebank_mark mark) {
    tb->n_nodes = mark.n_nodes;
    tb->n_trees = mark.n_trees;
    tb->classes = mark.classes;
    vpps_vocab_truncate(tb->vocab, mark.n_words);
}

vpps_status vpps_treebank_add_node(vpps_treebank *tb, size_t first, vpps_tree_node node, int32_t *index) {
    if (tb->n_nodes - first >= INT32_MAX) {
        return vpps_fail(VPPS_MEMORY, "treebank: a tree has more than %d nodes", INT32_MAX);
    }
    if (VPPS_UNLIKELY(!VPPS_RESERVE(tb->nodes, tb->n_nodes + 1))) {
        return vpps_fail(VPPS_MEMORY, "treebank: out of memory at %zu nodes", tb->n_nodes);
    }
    *index = (int32_t)(tb->n_nodes - first);
    tb->nodes[tb->n_nodes++] = node;
    if (node.label >= 0 && (uint32_t)node.label >= tb->classes) tb->classes = (uint32_t)node.label + 1;
    return VPPS_OK;
}

vpps_status vpps_treebank_add_tree(vpps_treebank *tb, size_t first, uint32_t line) {
    if (tb->n_trees == UINT32_MAX || !VPPS_RESERVE(tb->trees, (size_t)tb->n_trees + 1)) {
        return vpps_fail(VPPS_MEMORY, "treebank: out of memory at %u trees", tb->n_trees);
    }
    uint32_t n_nodes = (uint32_t)(tb->n_nodes - first);
    tb->trees[tb->n_trees++] = (struct vpps_tree_range){first, n_nodes, n_nodes / 2 + 1, line};
    return VPPS_OK;
}

/* vpps_treebank_write goes down from the root with a stack of what remains to be written: nodes, closing brackets. */
#define CLOSE (-1)

static vpps_status write_nodes(const vpps_treebank *tb, vpps_tree tree, FILE *file, int32_t **stack) {
    size_t depth = 1;
    bool first = true;
    if (!VPPS_RESERVE(*stack, 1)) return vpps_fail(VPPS_MEMORY, "treebank: out of memory");
    (*stack)[0] = (int32_t)tree.n_nodes - 1;
    while (depth > 0) {
        int32_t at = (*stack)[--depth];
        if (at == CLOSE) {
            fputc(')', file);
            continue;
        }
        const vpps_tree_node *node = &tree.nodes[at];
        fprintf(file, first ? "(%d" : " (%d", node->label);
        first = false;
        if (node->left < 0) {
            fprintf(file, " %s)", vpps_vocab_word(tb->vocab, node->word));
            continue;
        }
        if (!VPPS_RESERVE(*stack, depth + 3)) {
            return vpps_fail(VPPS_MEMORY, "treebank: out of memory at depth %zu", depth);
        }
        (*stack)[depth++] = CLOSE;
        (*stack)[depth++] = node->right;
        (*stack)[depth++] = node->left;
    }
    fputc('\n', file);
    return VPPS_OK;
}

vpps_status vpps_treebank_write(const vpps_treebank *tb, uint32_t i, FILE *file) {
    VPPS_NEED(tb, file);
    int32_t *stack = NULL;
    if (i >= tb->n_trees) {
        return vpps_fail(VPPS_ARGUMENT, "treebank: expected a tree below %u, found %u", tb->n_trees, i);
    }
    vpps_status status = write_nodes(tb, vpps_treebank_tree(tb, i), file, &stack);
    VPPS_FREE_ARRAYS(stack);
    if (status == VPPS_OK && ferror(file)) status = vpps_fail(VPPS_IO, "treebank: tree %u cannot be written", i);
    return status;
}
