/* constituents_read.c - n-ary trees from brackets, in one pass and without recursion, as treebank_read.c does.
 *
 * A tree may go on in the lines that follow, as those of the Penn Treebank do, but not in one that has a bracket at its
 * margin: that begins the next tree, so a bracket that is missing is found where it should be.
 */
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
    vpps_line line;
    const char *at; /* in the line */
    bool in_tree;
    open_node *stack;
    size_t stack_capacity;
} bracket_reader;

static vpps_status fail_expected(const bracket_reader *r, const char *expected) {
    return vpps_text_fail(&r->text, r->at, expected, NULL);
}

static bool is_blank(char c) { return c == ' ' || c == '\t'; }

/* Goes to the next line that is not blank, if the tree may go on there; else nothing happens. */
static void go_on_in_next_line(bracket_reader *r) {
    vpps_line line = r->line;
    while (vpps_text_next_line(&r->text, &line)) {
        const char *at = line.begin;
        while (at < line.end && is_blank(*at)) at++;
        if (at == line.end) continue;
        if (at == line.begin && *at == '(') return;
        r->at = at;
        r->line = line;
        return;
    }
}

static void skip_spaces(bracket_reader *r) {
    while (r->at < r->line.end && is_blank(*r->at)) r->at++;
    if (r->at == r->line.end && r->in_tree) go_on_in_next_line(r);
}

/* A label or a word, with the spaces behind it. */
static size_t take_token(bracket_reader *r, const char **token) {
    const char *p = r->at;
    while (p < r->line.end && *p != ' ' && *p != '(' && *p != ')') p++;
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

/* What a node is, before it is known whether it is a leaf. */
typedef struct new_node {
    uint32_t label;
    bool is_null; /* a null element, to be left out */
} new_node;

/* A trace, or a word that is not said (Bies et al. 1995, section 4). */
static bool is_null_element(const bracket_reader *r, const char *label, size_t len) {
    static const char none[] = "-NONE-";
    return r->c->cut_labels && len == sizeof none - 1 && memcmp(label, none, len) == 0;
}

/* '(' label, with the spaces between and behind. The outermost bracket of a Penn tree has no label. */
static vpps_status read_label(bracket_reader *r, bool outermost, new_node *node) {
    static const char root[] = "ROOT";
    const char *token;
    if (r->at == r->line.end || *r->at != '(') return fail_expected(r, "'('");
    r->at++;
    skip_spaces(r);
    size_t len = take_token(r, &token);
    if (len == 0 && outermost && r->at < r->line.end && *r->at == '(') token = root, len = sizeof root - 1;
    if (len == 0) return fail_expected(r, "a label");
    node->is_null = is_null_element(r, token, len);
    if (node->is_null && !(r->at < r->line.end && *r->at == '(')) return VPPS_OK;
    node->is_null = false;
    return vpps_vocab_add_unchecked(r->c->labels, token, label_length(r, token, len), &node->label);
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

static vpps_status read_leaf(bracket_reader *r, const new_node *node, size_t tree_first) {
    const char *token;
    vpps_constituent leaf = {.label = node->label};
    const size_t len = take_token(r, &token);
    if (len == 0) return fail_expected(r, "a word or '('");
    if (!node->is_null) VPPS_TRY(vpps_vocab_add_unchecked(r->c->vocab, token, len, &leaf.word));
    if (r->at == r->line.end || *r->at != ')') return fail_expected(r, "')' after the word");
    r->at++;
    return node->is_null ? VPPS_OK : add_node(r->c, leaf, r->c->n_nodes, tree_first);
}

static vpps_status open_bracket(bracket_reader *r, uint32_t label, size_t *depth) {
    if (!VPPS_RESERVE(r->stack, r->stack_capacity, *depth + 1)) {
        return vpps_fail(VPPS_MEMORY, "constituents: out of memory at depth %zu", *depth);
    }
    r->stack[(*depth)++] = (open_node){label, 0, r->c->n_nodes};
    return VPPS_OK;
}

/* A child is complete (or nothing, when it was left out): closes every bracket that ends here. *depth 0: the tree is
 * complete; else a child follows. What has no children is left out. */
static vpps_status close_brackets(bracket_reader *r, size_t tree_first, bool child, size_t *depth) {
    while (*depth > 0) {
        open_node *top = &r->stack[*depth - 1];
        top->n_children += child;
        skip_spaces(r);
        if (r->at < r->line.end && *r->at == '(') return VPPS_OK;
        if (r->at == r->line.end || *r->at != ')') return fail_expected(r, "'(' or ')'");
        r->at++;
        const vpps_constituent node = {.label = top->label, .n_children = top->n_children, .word = VPPS_NO_WORD};
        child = node.n_children > 0;
        if (child) VPPS_TRY(add_node(r->c, node, top->first, tree_first));
        (*depth)--;
    }
    return VPPS_OK;
}

static vpps_status read_tree(bracket_reader *r, uint32_t *n_leaves) {
    const size_t first = r->c->n_nodes;
    size_t depth = 0;
    r->in_tree = true;
    do {
        new_node node = {0};
        VPPS_TRY(read_label(r, depth == 0, &node));
        if (r->at < r->line.end && *r->at == '(') {
            VPPS_TRY(open_bracket(r, node.label, &depth));
            continue;
        }
        VPPS_TRY(read_leaf(r, &node, first));
        *n_leaves += !node.is_null;
        VPPS_TRY(close_brackets(r, first, !node.is_null, &depth));
    } while (depth > 0);
    r->in_tree = false;
    skip_spaces(r);
    return r->at == r->line.end ? VPPS_OK : fail_expected(r, "end of line after the tree");
}

static vpps_status add_tree(vpps_constituents *c, size_t first, uint32_t n_leaves, uint32_t line) {
    if (c->n_trees == UINT32_MAX || !VPPS_RESERVE(c->trees, c->trees_capacity, (size_t)c->n_trees + 1)) {
        return vpps_fail(VPPS_MEMORY, "constituents: out of memory at %u trees", c->n_trees);
    }
    c->trees[c->n_trees++] = (struct vpps_constituent_range){first, (uint32_t)(c->n_nodes - first), n_leaves, line};
    return VPPS_OK;
}

static vpps_status read_lines(bracket_reader *r) {
    VPPS_TRY(vpps_text_check(&r->text));
    while (vpps_text_next_line(&r->text, &r->line)) {
        uint32_t n_leaves = 0;
        const size_t first = r->c->n_nodes;
        const uint32_t number = r->line.number;
        r->at = r->line.begin;
        skip_spaces(r);
        if (r->at == r->line.end) continue;
        VPPS_TRY(read_tree(r, &n_leaves));
        if (n_leaves) VPPS_TRY(add_tree(r->c, first, n_leaves, number));
    }
    return VPPS_OK;
}

vpps_status vpps_constituents_read_text(vpps_constituents *c, const char *name, const char *text, size_t len) {
    VPPS_NEED(c);
    VPPS_NEED(name);
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
    VPPS_NEED(c);
    VPPS_NEED(path);
    char *text;
    size_t len;
    VPPS_TRY(vpps_file_read_all(path, &text, &len));
    vpps_status status = vpps_constituents_read_text(c, path, text, len);
    free(text);
    return status;
}
