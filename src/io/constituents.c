/* constituents.c - constituent trees with any number of children, in memory, and read from brackets. */
#include "constituents.h"

#include "base/base.h"
#include "brackets.h"
#include "stream.h"

vpps_status vpps_constituents_create(vpps_constituents **out, vpps_labels form) {
    VPPS_NEED(out);
    *out = NULL;
    vpps_constituents *c = calloc(1, sizeof *c);
    if (!c) return vpps_fail(VPPS_MEMORY, "constituents: out of memory");
    c->form = form;
    vpps_status status = vpps_vocab_create(&c->vocab);
    if (status == VPPS_OK) status = vpps_vocab_create(&c->labels);
    if (status == VPPS_OK)
        *out = c;
    else
        vpps_constituents_destroy(c);
    return status;
}

void vpps_constituents_destroy(vpps_constituents *c) {
    if (!c) return;
    vpps_vocab_destroy(c->vocab);
    vpps_vocab_destroy(c->labels);
    VPPS_FREE_ARRAYS(c->nodes, c->trees);
    free(c);
}

uint32_t vpps_constituents_size(const vpps_constituents *c) { return c ? c->n_trees : 0; }

vpps_constituent_tree vpps_constituents_tree(const vpps_constituents *c, uint32_t i) {
    if (i >= vpps_constituents_size(c)) return (vpps_constituent_tree){0};
    const struct vpps_constituent_range *t = &c->trees[i];
    return (vpps_constituent_tree){c->nodes + t->first_node, t->n_nodes, t->n_leaves};
}

uint32_t vpps_constituents_line(const vpps_constituents *c, uint32_t i) {
    return i < vpps_constituents_size(c) ? c->trees[i].line : 0;
}

void vpps_constituents_set_line(vpps_constituents *c, uint32_t first, uint32_t line) {
    for (uint32_t i = first; i < c->n_trees; i++) c->trees[i].line = line;
}

const vpps_vocab *vpps_constituents_vocab(const vpps_constituents *c) { return c ? c->vocab : NULL; }

const vpps_vocab *vpps_constituents_labels(const vpps_constituents *c) { return c ? c->labels : NULL; }

/* ---------------------------------------------------------------- function tags after labels, as in NP-SBJ-1 (Bies et al. 1995, section 2) */

/* Returns whether a text is a function tag (a capital letter, then capital letters and digits) or an index (digits). */
static bool is_tag(const char *text, size_t len) {
    bool letters = false, good = len > 0;
    for (size_t i = 0; i < len && good; i++) {
        const bool letter = text[i] >= 'A' && text[i] <= 'Z';
        if (i == 0) letters = letter;
        good = (letter && letters) || (text[i] >= '0' && text[i] <= '9');
    }
    return good;
}

/* Returns a label's length without the function tags and indices at its end: 2 for NP-SBJ-1. */
static size_t label_without_tags(const char *label, size_t len) {
    for (size_t i = len; i-- > 1;) {
        if (label[i] != '-' && label[i] != '=') continue;
        if (!is_tag(label + i + 1, len - i - 1)) break;
        len = i;
    }
    return len;
}

bool vpps_constituents_look_penn(const vpps_constituents *c) {
    VPPS_NEED_OR(false, c);
    bool np = false, vp = false;
    for (uint32_t i = 0; i < vpps_vocab_size(c->labels); i++) {
        const char *label = vpps_vocab_word(c->labels, i);
        if (label_without_tags(label, strlen(label)) != 2) continue;
        np |= memcmp(label, "NP", 2) == 0;
        vp |= memcmp(label, "VP", 2) == 0;
    }
    return np && vp;
}

static vpps_status cut_all(const vpps_vocab *from, vpps_vocab *to, uint32_t *ids) {
    for (uint32_t i = 0; i < vpps_vocab_size(from); i++) {
        const char *label = vpps_vocab_word(from, i);
        VPPS_TRY(vpps_vocab_add_unchecked(to, label, label_without_tags(label, strlen(label)), &ids[i]));
    }
    return VPPS_OK;
}

vpps_status vpps_constituents_cut(vpps_constituents *c) {
    VPPS_NEED(c);
    vpps_vocab *labels;
    VPPS_TRY(vpps_vocab_create(&labels));
    VPPS_FREED uint32_t *ids = vpps_scratch(((size_t)vpps_vocab_size(c->labels) + 1) * sizeof *ids);
    const vpps_status status =
        ids ? cut_all(c->labels, labels, ids)
            : vpps_fail(VPPS_MEMORY, "constituents: out of memory for %u labels", vpps_vocab_size(c->labels));
    if (status == VPPS_OK) {
        for (size_t i = 0; i < c->n_nodes; i++) c->nodes[i].label = ids[c->nodes[i].label];
        vpps_vocab_replace(c->labels, labels);
    } else {
        vpps_vocab_destroy(labels);
    }
    return status;
}

/* ---------------------------------------------------------------- reading, in one pass without recursion */

typedef struct open_node {
    uint32_t label, n_children;
    size_t first; /* number of the first node in this node's subtree */
} open_node;

typedef struct bracket_reader {
    vpps_constituents *c;
    vpps_brackets text;
    open_node *stack;
} bracket_reader;

/* A node whose '(' and label have been read. Whether it is a leaf is not known yet. */
typedef struct new_node {
    uint32_t label;
    bool is_null; /* whether the node is a null element, which is left out */
} new_node;

/* Returns whether a leaf is a null element, such as a trace (Bies et al. 1995, section 4): *T*-1, *, 0. */
static bool is_null_element(const bracket_reader *r, const char *label, size_t len) {
    static const char none[] = "-NONE-";
    if (r->c->form == VPPS_LABELS_RAW || len != sizeof none - 1 || memcmp(label, none, len) != 0) return false;
    const char *word = r->text.at, *end = r->text.line.end;
    if (word == end || *word == '*') return word < end;
    return *word == '0' && (word + 1 == end || vpps_is_blank(word[1]) || word[1] == ')');
}

/* Reads '(' and a label, with white space. The outermost bracket of a Penn tree has no label. */
static vpps_status read_label(bracket_reader *r, bool outermost, new_node *node) {
    static const char root[] = "ROOT";
    const char *token;
    VPPS_TRY(vpps_brackets_take(&r->text, '(', "'('"));
    size_t len = vpps_brackets_token(&r->text, &token);
    if (len == 0 && outermost && vpps_brackets_peek(&r->text) == '(') token = root, len = sizeof root - 1;
    if (len == 0) return vpps_brackets_fail(&r->text, "a label");
    node->is_null = is_null_element(r, token, len);
    if (node->is_null) return VPPS_OK;
    if (r->c->form == VPPS_LABELS_CUT) len = label_without_tags(token, len);
    return vpps_vocab_add_unchecked(r->c->labels, token, len, &node->label);
}

/* Appends a node whose subtree begins at node `first`. A tree has fewer than 2^32 nodes. */
static vpps_status add_node(vpps_constituents *c, vpps_constituent node, size_t first, size_t tree_first) {
    if (c->n_nodes - tree_first >= UINT32_MAX || !VPPS_RESERVE(c->nodes, c->n_nodes + 1))
        return vpps_fail(VPPS_MEMORY, "constituents: out of memory at %zu nodes", c->n_nodes);
    node.n_nodes = (uint32_t)(c->n_nodes - first + 1);
    c->nodes[c->n_nodes++] = node;
    return VPPS_OK;
}

static vpps_status read_leaf(bracket_reader *r, const new_node *node, size_t tree_first) {
    const char *token;
    vpps_constituent leaf = {.label = node->label};
    const size_t len = vpps_brackets_token(&r->text, &token);
    if (len == 0) return vpps_brackets_fail(&r->text, "a word or '('");
    if (!node->is_null) VPPS_TRY(vpps_vocab_add_unchecked(r->c->vocab, token, len, &leaf.word));
    VPPS_TRY(vpps_brackets_take(&r->text, ')', "')' after the word"));
    return node->is_null ? VPPS_OK : add_node(r->c, leaf, r->c->n_nodes, tree_first);
}

static vpps_status open_bracket(bracket_reader *r, uint32_t label, size_t *depth) {
    if (!VPPS_RESERVE(r->stack, *depth + 1))
        return vpps_fail(VPPS_MEMORY, "constituents: out of memory at depth %zu", *depth);
    r->stack[(*depth)++] = (open_node){label, 0, r->c->n_nodes};
    return VPPS_OK;
}

/* Closes each bracket that ends at the reader's position, and leaves out those without children. `child`: true if the element just read is
 * a child of the innermost bracket, false if it was left out. *depth: number of open brackets; 0: the tree is complete. */
static vpps_status close_brackets(bracket_reader *r, size_t tree_first, bool child, size_t *depth) {
    while (*depth > 0) {
        open_node *top = &r->stack[*depth - 1];
        top->n_children += child;
        vpps_brackets_skip(&r->text);
        if (vpps_brackets_peek(&r->text) == '(') return VPPS_OK;
        VPPS_TRY(vpps_brackets_take(&r->text, ')', "'(' or ')'"));
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
    do {
        new_node node = {0};
        VPPS_TRY(read_label(r, depth == 0, &node));
        if (vpps_brackets_peek(&r->text) == '(') {
            VPPS_TRY(open_bracket(r, node.label, &depth));
            continue;
        }
        VPPS_TRY(read_leaf(r, &node, first));
        *n_leaves += !node.is_null;
        VPPS_TRY(close_brackets(r, first, !node.is_null, &depth));
    } while (depth > 0);
    return vpps_brackets_end_tree(&r->text);
}

static vpps_status add_tree(vpps_constituents *c, size_t first, uint32_t n_leaves, uint32_t line) {
    if (c->n_trees == UINT32_MAX || !VPPS_RESERVE(c->trees, (size_t)c->n_trees + 1))
        return vpps_fail(VPPS_MEMORY, "constituents: out of memory at %u trees", c->n_trees);
    c->trees[c->n_trees++] = (struct vpps_constituent_range){first, (uint32_t)(c->n_nodes - first), n_leaves, line};
    return VPPS_OK;
}

static vpps_status read_lines(bracket_reader *r) {
    while (vpps_brackets_next_tree(&r->text)) {
        uint32_t n_leaves = 0;
        const size_t first = r->c->n_nodes;
        const uint32_t number = r->text.line.number;
        VPPS_TRY(read_tree(r, &n_leaves));
        if (n_leaves) VPPS_TRY(add_tree(r->c, first, n_leaves, number));
    }
    return VPPS_OK;
}

vpps_status vpps_constituents_read_text(vpps_constituents *c, const char *name, const char *text, size_t len) {
    VPPS_NEED(c, name);
    if (len) VPPS_NEED(text);
    bracket_reader r = {.c = c};
    const size_t n_nodes = c->n_nodes;
    const uint32_t n_trees = c->n_trees, n_words = vpps_vocab_size(c->vocab), n_labels = vpps_vocab_size(c->labels);
    vpps_status status = vpps_brackets_open(&r.text, name, text, len);
    if (status == VPPS_OK) status = read_lines(&r);
    VPPS_FREE_ARRAYS(r.stack);
    if (status != VPPS_OK) {
        c->n_nodes = n_nodes;
        c->n_trees = n_trees;
        vpps_vocab_truncate(c->vocab, n_words);
        vpps_vocab_truncate(c->labels, n_labels);
    }
    return status;
}

vpps_status vpps_constituents_read_file(vpps_constituents *c, const char *path) {
    VPPS_NEED(c, path);
    VPPS_TEXT_OF_FILE(path, text, len);
    return vpps_constituents_read_text(c, path, text, len);
}
