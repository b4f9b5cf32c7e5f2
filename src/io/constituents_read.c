/* constituents_read.c - n-ary trees from brackets, in one pass and without recursion, as treebank_read.c does. */
#include "constituents.h"

#include "base/base.h"
#include "file.h"
#include "text.h"

/* A bracket whose children are still being read. */
typedef struct open_node {
    uint32_t label, n_children;
    size_t first; /* node where its subtree begins */
} open_node;

typedef struct bracket_reader {
    vpps_constituents *c;
    vpps_text text;
    const char *at, *line_end;
    open_node *stack;
    size_t stack_capacity;
} bracket_reader;

static vpps_status fail_expected(const bracket_reader *r, const char *expected) {
    return vpps_text_fail(&r->text, r->at, expected, NULL);
}

static void skip_spaces(bracket_reader *r) {
    while (r->at < r->line_end && *r->at == ' ') r->at++;
}

/* A label or a word, with the spaces behind it. */
static size_t take_token(bracket_reader *r, const char **token) {
    const char *p = r->at;
    while (p < r->line_end && *p != ' ' && *p != '(' && *p != ')') p++;
    *token = r->at;
    const size_t len = (size_t)(p - r->at);
    r->at = p;
    skip_spaces(r);
    return len;
}

static size_t label_length(const bracket_reader *r, const char *label, size_t len) {
    if (!r->c->cut_labels) return len;
    for (size_t i = 1; i < len; i++) {
        if (label[i] == '-' || label[i] == '=') return i;
    }
    return len;
}

/* '(' label, with the spaces between and behind. */
static vpps_status read_label(bracket_reader *r, uint32_t *label) {
    const char *token;
    if (r->at == r->line_end || *r->at != '(') return fail_expected(r, "'('");
    r->at++;
    skip_spaces(r);
    const size_t len = take_token(r, &token);
    if (len == 0) return fail_expected(r, "a label");
    return vpps_vocab_add_unchecked(r->c->labels, token, label_length(r, token, len), label);
}

/* Appends a node whose subtree begins at node `first`. A tree's nodes are counted in 32 bits. */
static vpps_status add_node(vpps_constituents *c, vpps_constituent node, size_t first, size_t tree_first) {
    if (c->n_nodes - tree_first >= UINT32_MAX || !VPPS_RESERVE(c->nodes, c->nodes_capacity, c->n_nodes + 1)) {
        return vpps_fail(VPPS_MEMORY, "constituents: out of memory at %zu nodes", c->n_nodes);
    }
    node.n_nodes = (uint32_t)(c->n_nodes - first + 1);
    c->nodes[c->n_nodes++] = node;
    return VPPS_OK;
}

static vpps_status read_leaf(bracket_reader *r, uint32_t label, size_t tree_first) {
    const char *token;
    vpps_constituent leaf = {.label = label};
    const size_t len = take_token(r, &token);
    if (len == 0) return fail_expected(r, "a word or '('");
    VPPS_TRY(vpps_vocab_add_unchecked(r->c->vocab, token, len, &leaf.word));
    if (r->at == r->line_end || *r->at != ')') return fail_expected(r, "')' after the word");
    r->at++;
    return add_node(r->c, leaf, r->c->n_nodes, tree_first);
}

static vpps_status open_bracket(bracket_reader *r, uint32_t label, size_t *depth) {
    if (!VPPS_RESERVE(r->stack, r->stack_capacity, *depth + 1)) {
        return vpps_fail(VPPS_MEMORY, "constituents: out of memory at depth %zu", *depth);
    }
    r->stack[(*depth)++] = (open_node){label, 0, r->c->n_nodes};
    return VPPS_OK;
}

/* A child is complete: closes every bracket that ends here. *depth 0: the tree is complete; else a child follows. */
static vpps_status close_brackets(bracket_reader *r, size_t tree_first, size_t *depth) {
    while (*depth > 0) {
        open_node *top = &r->stack[*depth - 1];
        top->n_children++;
        skip_spaces(r);
        if (r->at < r->line_end && *r->at == '(') return VPPS_OK;
        if (r->at == r->line_end || *r->at != ')') return fail_expected(r, "'(' or ')'");
        r->at++;
        const vpps_constituent node = {.label = top->label, .n_children = top->n_children, .word = VPPS_NO_WORD};
        VPPS_TRY(add_node(r->c, node, top->first, tree_first));
        (*depth)--;
    }
    return VPPS_OK;
}

static vpps_status read_tree(bracket_reader *r, uint32_t *n_leaves) {
    const size_t first = r->c->n_nodes;
    size_t depth = 0;
    do {
        uint32_t label;
        VPPS_TRY(read_label(r, &label));
        if (r->at < r->line_end && *r->at == '(') {
            VPPS_TRY(open_bracket(r, label, &depth));
            continue;
        }
        VPPS_TRY(read_leaf(r, label, first));
        (*n_leaves)++;
        VPPS_TRY(close_brackets(r, first, &depth));
    } while (depth > 0);
    skip_spaces(r);
    return r->at == r->line_end ? VPPS_OK : fail_expected(r, "end of line after the tree");
}

static vpps_status add_tree(vpps_constituents *c, size_t first, uint32_t n_leaves) {
    if (c->n_trees == UINT32_MAX || !VPPS_RESERVE(c->trees, c->trees_capacity, (size_t)c->n_trees + 1)) {
        return vpps_fail(VPPS_MEMORY, "constituents: out of memory at %u trees", c->n_trees);
    }
    c->trees[c->n_trees++] = (struct vpps_constituent_range){first, (uint32_t)(c->n_nodes - first), n_leaves};
    return VPPS_OK;
}

static vpps_status read_lines(bracket_reader *r) {
    const char *next = r->text.begin;
    VPPS_TRY(vpps_text_check(&r->text));
    while (vpps_text_next_line(&r->text, &next, &r->at, &r->line_end)) {
        uint32_t n_leaves = 0;
        const size_t first = r->c->n_nodes;
        skip_spaces(r);
        if (r->at == r->line_end) continue;
        VPPS_TRY(read_tree(r, &n_leaves));
        VPPS_TRY(add_tree(r->c, first, n_leaves));
    }
    return VPPS_OK;
}

vpps_status vpps_constituents_read_text(vpps_constituents *c, const char *name, const char *text, size_t len) {
    bracket_reader r = {.c = c, .text = vpps_text_of(name, text, len, "()")};
    const size_t n_nodes = c->n_nodes;
    const uint32_t n_trees = c->n_trees, n_words = vpps_vocab_size(c->vocab), n_labels = vpps_vocab_size(c->labels);
    vpps_status status = read_lines(&r);
    free(r.stack);
    if (status != VPPS_OK) {
        c->n_nodes = n_nodes;
        c->n_trees = n_trees;
        vpps_vocab_truncate(c->vocab, n_words);
        vpps_vocab_truncate(c->labels, n_labels);
    }
    return status;
}

vpps_status vpps_constituents_read_file(vpps_constituents *c, const char *path) {
    char *text;
    size_t len;
    VPPS_TRY(vpps_file_read_all(path, &text, &len));
    vpps_status status = vpps_constituents_read_text(c, path, text, len);
    free(text);
    return status;
}
