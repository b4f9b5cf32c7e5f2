/* predict.c - `vpps predict`: trees from stdin, labelled by a checkpoint's network. */
#include "base/base.h"
#include "checkpoint.h"
#include "evaluate.h"
#include "report.h"
#include "train.h"

#include <errno.h>

enum { OUTPUT_TREE, OUTPUT_LABEL };

static vpps_status read_all(FILE *file, char **text, size_t *len) {
    size_t capacity = 0, got;
    *text = NULL;
    *len = 0;
    do {
        if (!VPPS_RESERVE(*text, capacity, *len + 65536)) {
            return vpps_fail(VPPS_MEMORY, "no memory for %zu bytes of trees", *len);
        }
        got = fread(*text + *len, 1, capacity - *len, file);
        *len += got;
    } while (got);
    return ferror(file) ? vpps_fail(VPPS_IO, "stdin: %s", strerror(errno)) : VPPS_OK;
}

/* A tree in brackets with other labels. Nodes lie children first, so the text is made with a stack of what is still to
 * come: a node, or (negative) a closing bracket. It holds a node and a bracket a level, and one more child. */
static vpps_status print_tree(vpps_tree tree, const vpps_vocab *words, const int32_t *labels) {
    int64_t *stack = malloc((2 * (size_t)tree.n_nodes + 2) * sizeof *stack);
    if (!stack) return vpps_fail(VPPS_MEMORY, "no memory for printing a tree of %u nodes", tree.n_nodes);
    size_t n = 0;
    stack[n++] = tree.n_nodes - 1;
    bool first = true;
    while (n) {
        const int64_t k = stack[--n];
        if (k < 0) {
            putchar(')');
            continue;
        }
        const vpps_tree_node *node = &tree.nodes[k];
        printf("%s(%d", first ? "" : " ", labels[k]);
        first = false;
        if (node->left < 0) {
            printf(" %s)", vpps_vocab_word(words, node->word));
        } else {
            stack[n++] = -1;
            stack[n++] = node->right;
            stack[n++] = node->left;
        }
    }
    putchar('\n');
    free(stack);
    return VPPS_OK;
}

static vpps_status predict_batch(session *x, const corpus_split *split, uint32_t first, uint32_t n, int32_t **predicted,
                                 size_t *capacity) {
    const bool tree_output = x->settings->output == OUTPUT_TREE;
    VPPS_TRY(evaluate_predict(x, split, split->trees + first, n, NET_HEADS_ALL, predicted, capacity));
    size_t at = 0;
    for (uint32_t i = first; i < first + n; i++) {
        const vpps_tree tree = vpps_treebank_tree(split->bank, i);
        if (tree_output) {
            VPPS_TRY(print_tree(tree, vpps_treebank_vocab(split->bank), *predicted + at));
        } else {
            printf("%d\n", (*predicted)[at + tree.n_nodes - 1]);
        }
        at += tree.n_nodes;
    }
    if (fflush(stdout) != 0) return vpps_fail(VPPS_IO, "stdout: %s", strerror(errno));
    return VPPS_OK;
}

static vpps_status open_stdin(corpus_split *split, const vpps_vocab *vocab) {
    char *text;
    size_t len;
    vpps_status status = read_all(stdin, &text, &len);
    if (status == VPPS_OK) status = vpps_treebank_create(&split->bank);
    if (status == VPPS_OK) status = vpps_treebank_read_text(split->bank, "stdin", text, len);
    free(text);
    VPPS_TRY(status);
    VPPS_TRY(corpus_map_words(split->bank, vocab, &split->words));
    split->n_trees = vpps_treebank_size(split->bank);
    split->trees = malloc((split->n_trees + 1) * sizeof *split->trees);
    if (!split->trees) return vpps_fail(VPPS_MEMORY, "no memory for %u trees", split->n_trees);
    for (uint32_t i = 0; i < split->n_trees; i++) split->trees[i] = i;
    return VPPS_OK;
}

static vpps_status predict(settings *s, session *x, corpus *c) {
    position p = {0};
    VPPS_TRY(checkpoint_describe(s->model, s, c, &p));
    options_complete(s);
    s->net.classes = c->classes;
    s->net.words = vpps_vocab_size(c->vocab);
    VPPS_TRY(session_open(x, s));
    VPPS_TRY(vpps_load(x->handle, s->model));
    corpus_split *split = &c->split[SPLIT_TEST];
    VPPS_TRY(open_stdin(split, c->vocab));

    int32_t *predicted = NULL;
    size_t capacity = 0;
    vpps_status status = VPPS_OK;
    for (uint32_t i = 0; i < split->n_trees && status == VPPS_OK; i += s->batch) {
        status = predict_batch(x, split, i, vpps_min_u32(s->batch, split->n_trees - i), &predicted, &capacity);
    }
    free(predicted);
    return status;
}

int command_predict(settings *s) {
    if (!s->model) return report_usage("predict", "--model FILE is missing");
    session x = {0};
    corpus c = {0};
    const vpps_status status = predict(s, &x, &c);
    if (status != VPPS_OK) report_failure(status);
    session_close(&x);
    corpus_close(&c);
    return status == VPPS_OK ? 0 : EXIT_RUNTIME;
}
