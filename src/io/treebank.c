/* treebank.c - labelled binary trees in memory, and as text. */
#include "treebank.h"

#include "base/base.h"
#include "brackets.h"
#include "stream.h"

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
    if (tb->n_nodes - first >= INT32_MAX)
        return vpps_fail(VPPS_MEMORY, "treebank: a tree has more than %d nodes", INT32_MAX);
    if (VPPS_UNLIKELY(!VPPS_RESERVE(tb->nodes, tb->n_nodes + 1)))
        return vpps_fail(VPPS_MEMORY, "treebank: out of memory at %zu nodes", tb->n_nodes);
    *index = (int32_t)(tb->n_nodes - first);
    tb->nodes[tb->n_nodes++] = node;
    if (node.label >= 0 && (uint32_t)node.label >= tb->classes) tb->classes = (uint32_t)node.label + 1;
    return VPPS_OK;
}

vpps_status vpps_treebank_add_tree(vpps_treebank *tb, size_t first, uint32_t line) {
    if (tb->n_trees == UINT32_MAX || !VPPS_RESERVE(tb->trees, (size_t)tb->n_trees + 1))
        return vpps_fail(VPPS_MEMORY, "treebank: out of memory at %u trees", tb->n_trees);
    uint32_t n_nodes = (uint32_t)(tb->n_nodes - first);
    tb->trees[tb->n_trees++] = (struct vpps_tree_range){first, n_nodes, n_nodes / 2 + 1, line};
    return VPPS_OK;
}

/* ---------------------------------------------------------------- writing */

void vpps_tree_print_label(FILE *file, int32_t label, const vpps_vocab *names) {
    const char *name = names && label >= 0 ? vpps_vocab_word(names, (uint32_t)label) : NULL;
    if (name)
        fputs(name, file);
    else
        fprintf(file, "%d", label);
}

/* Nodes are stored children first, so a stack holds what remains to be printed: nodes, and (negative) closing brackets. The stack holds a
 * node and a bracket per level, and one more child. */
vpps_status vpps_tree_print(FILE *file, vpps_tree tree, const vpps_vocab *words, const int32_t *labels,
                            const vpps_vocab *names) {
    VPPS_FREED int64_t *stack = vpps_scratch((2 * (size_t)tree.n_nodes + 2) * sizeof *stack);
    if (!stack) return vpps_fail(VPPS_MEMORY, "no memory for printing a tree of %u nodes", tree.n_nodes);
    size_t n = 0;
    stack[n++] = tree.n_nodes - 1;
    for (bool first = true; n;) {
        const int64_t k = stack[--n];
        if (k < 0) {
            fputc(')', file);
            continue;
        }
        const vpps_tree_node *node = &tree.nodes[k];
        fputs(first ? "(" : " (", file);
        vpps_tree_print_label(file, labels ? labels[k] : node->label, names);
        first = false;
        if (node->left < 0) {
            fprintf(file, " %s)", vpps_vocab_word(words, node->word));
        } else {
            stack[n++] = -1;
            stack[n++] = node->right;
            stack[n++] = node->left;
        }
    }
    return VPPS_OK;
}

vpps_status vpps_treebank_write(const vpps_treebank *tb, uint32_t i, FILE *file) {
    VPPS_NEED(tb, file);
    if (i >= tb->n_trees)
        return vpps_fail(VPPS_ARGUMENT, "treebank: expected a tree below %u, found %u", tb->n_trees, i);
    VPPS_TRY(vpps_tree_print(file, vpps_treebank_tree(tb, i), tb->vocab, NULL, NULL));
    fputc('\n', file);
    return ferror(file) ? vpps_fail(VPPS_IO, "treebank: tree %u cannot be written", i) : VPPS_OK;
}

/* ---------------------------------------------------------------- reading
 *
 * Trees are read in one pass and without recursion: a line may nest arbitrarily deep, so the open brackets lie in an array and not on the
 * thread's stack. */

#define LABEL_MAX 999

typedef struct open_node {
    int32_t label;
    int32_t left; /* node of the left subtree; -1: the subtree is not complete */
} open_node;

typedef struct reader {
    vpps_treebank *tb;
    vpps_brackets text;
    open_node *stack;
} reader;

/* Parses a label, -1 .. 999, written as printf's %d would, so that reading and writing preserve the text. */
static bool parse_label(const char *at, size_t len, int32_t *label) {
    const bool negative = len > 0 && *at == '-';
    const char *end = at + len, *digits = at + negative;
    int32_t value = 0;
    for (at = digits; at < end && *at >= '0' && *at <= '9' && at - digits < 4; at++) value = value * 10 + (*at - '0');
    *label = negative ? -value : value;
    const bool number = at == end && at > digits && (*digits != '0' || at - digits == 1);
    return number && value <= LABEL_MAX && (!negative || value == 1);
}

static vpps_status read_label(reader *r, int32_t *label) {
    const char *token = r->text.at;
    VPPS_TRY(vpps_brackets_take(&r->text, '(', "'('"));
    vpps_brackets before = r->text;
    const size_t len = vpps_brackets_token(&r->text, &token);
    return parse_label(token, len, label) ? VPPS_OK : vpps_brackets_fail(&before, "a label from -1 to 999");
}

/* Reads the rest of a leaf: its word and ')'. */
static vpps_status read_leaf(reader *r, size_t first, int32_t label, int32_t *index) {
    const char *word;
    vpps_tree_node node = {label, -1, -1, VPPS_NO_WORD};
    const size_t len = vpps_brackets_token(&r->text, &word);
    if (len == 0) return vpps_brackets_fail(&r->text, "a word or '('");
    VPPS_TRY(vpps_vocab_add_unchecked(r->tb->vocab, word, len, &node.word));
    VPPS_TRY(vpps_brackets_take(&r->text, ')', "')' after the word"));
    return vpps_treebank_add_node(r->tb, first, node, index);
}

/* Goes up from a complete subtree: closes every bracket that it completes. *depth 0: the tree is complete; else the
 * right subtree of the innermost open bracket follows. */
static vpps_status close_brackets(reader *r, size_t first, int32_t done, size_t *depth) {
    while (*depth > 0) {
        open_node *top = &r->stack[*depth - 1];
        vpps_brackets_skip(&r->text);
        if (top->left < 0) {
            top->left = done;
            return vpps_brackets_peek(&r->text) == '(' ? VPPS_OK : vpps_brackets_fail(&r->text, "a second subtree");
        }
        VPPS_TRY(vpps_brackets_take(&r->text, ')', "')' after the second subtree"));
        vpps_tree_node node = {top->label, top->left, done, VPPS_NO_WORD};
        VPPS_TRY(vpps_treebank_add_node(r->tb, first, node, &done));
        (*depth)--;
    }
    return VPPS_OK;
}

static vpps_status read_tree(reader *r) {
    const uint32_t line = r->text.line.number;
    size_t first = r->tb->n_nodes, depth = 0;
    do {
        int32_t label = -1, leaf = -1;
        VPPS_TRY(read_label(r, &label));
        if (vpps_brackets_peek(&r->text) == '(') {
            if (VPPS_UNLIKELY(!VPPS_RESERVE(r->stack, depth + 1)))
                return vpps_fail(VPPS_MEMORY, "%s%s:%u: out of memory at depth %zu", VPPS_PATH_ARGS(r->text.text.name),
                                 line, depth);
            r->stack[depth++] = (open_node){label, -1};
            continue;
        }
        VPPS_TRY(read_leaf(r, first, label, &leaf));
        VPPS_TRY(close_brackets(r, first, leaf, &depth));
    } while (depth > 0);
    VPPS_TRY(vpps_brackets_end_tree(&r->text));
    return vpps_treebank_add_tree(r->tb, first, line);
}

vpps_status vpps_treebank_read_text(vpps_treebank *tb, const char *name, const char *text, size_t len) {
    VPPS_NEED(tb, name);
    if (len) VPPS_NEED(text);
    reader r = {.tb = tb};
    const vpps_treebank_mark before = vpps_treebank_extent(tb);
    vpps_status status = vpps_brackets_open(&r.text, name, text, len);
    while (status == VPPS_OK && vpps_brackets_next_tree(&r.text)) status = read_tree(&r);
    VPPS_FREE_ARRAYS(r.stack);
    if (status != VPPS_OK) vpps_treebank_restore(tb, before);
    return status;
}

vpps_status vpps_treebank_read_file(vpps_treebank *tb, const char *path) {
    VPPS_NEED(tb, path);
    VPPS_TEXT_OF_FILE(path, text, len);
    return vpps_treebank_read_text(tb, path, text, len);
}
