/* treebank_read.c - reads trees from brackets, in one pass and without recursion: a line may nest arbitrarily deep, so
 * the open brackets lie in an array and not on the thread's stack. */
#include "brackets.h"
#include "treebank.h"

#include "base/base.h"
#include "file.h"

#define LABEL_MAX 999

/* A node whose bracket is not closed yet. */
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
            if (VPPS_UNLIKELY(!VPPS_RESERVE(r->stack, depth + 1))) {
                return vpps_fail(VPPS_MEMORY, "%s%s:%u: out of memory at depth %zu", VPPS_PATH_ARGS(r->text.text.name),
                                 line, depth);
            }
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
