/* treebank_read.c - trees from bracketed text, in one pass and without recursion: a line may nest as deep as it is
 * long, so the open brackets lie in an array of their own and not on the thread's stack. */
#include "treebank.h"

#include "base/base.h"
#include "file.h"
#include "text.h"

#define LABEL_MAX 999

/* A bracket whose subtrees are still being read. */
typedef struct open_node {
    int32_t label;
    int32_t left; /* -1: the left subtree is not complete yet */
} open_node;

typedef struct reader {
    vpps_treebank *tb;
    const char *name;
    const char *at, *end, *line_start;
    size_t line;
    open_node *stack;
    size_t stack_capacity;
} reader;

/* What a word cannot hold. */
static bool ends_word(unsigned char c) {
    return c == ' ' || c == '(' || c == ')' || c == '\r' || c == '\n' || c == '\0';
}

static vpps_status fail_expected(const reader *r, const char *expected) {
    const vpps_text text = {r->name, NULL, r->end, "()"};
    char found[64];
    vpps_text_found(&text, r->at, found, sizeof found);
    return vpps_fail(VPPS_FORMAT, "%s%s:%zu:%zu: expected %s, found %s", VPPS_PATH_ARGS(r->name), r->line,
                     (size_t)(r->at - r->line_start) + 1, expected, found);
}

static inline bool take(reader *r, char c) {
    if (r->at == r->end || *r->at != c) return false;
    r->at++;
    return true;
}

/* label := -1 .. 999, written as printf's %d would, so that text is unchanged by reading and writing; then a space. */
static vpps_status read_label(reader *r, int32_t *label) {
    const char *p = r->at;
    if (VPPS_LIKELY(r->end - p > 1 && p[1] == ' ' && *p >= '0' && *p <= '9')) {
        *label = *p - '0';
        r->at = p + 2;
        return VPPS_OK;
    }
    bool negative = p < r->end && *p == '-';
    const char *digits = p += negative;
    int32_t value = 0;
    while (p < r->end && *p >= '0' && *p <= '9' && p - digits < 4) value = value * 10 + (*p++ - '0');
    bool valid = p > digits && value <= LABEL_MAX && !(p - digits > 1 && *digits == '0');
    if (negative && !(p - digits == 1 && value == 1)) valid = false;
    if (!valid) return fail_expected(r, "a label from -1 to 999");
    *label = negative ? -1 : value;
    r->at = p;
    return take(r, ' ') ? VPPS_OK : fail_expected(r, "a space after the label");
}

/* The rest of a leaf: word ')'. */
static vpps_status read_leaf(reader *r, size_t first, int32_t label, int32_t *index) {
    const char *word = r->at;
    while (r->at < r->end && !ends_word((unsigned char)*r->at)) r->at++;
    if (r->at == word) return fail_expected(r, "a word or '('");
    vpps_tree_node node = {label, -1, -1, VPPS_NO_WORD};
    VPPS_TRY(vpps_vocab_add_unchecked(r->tb->vocab, word, (size_t)(r->at - word), &node.word));
    if (!take(r, ')')) return fail_expected(r, "')' after the word");
    return vpps_treebank_add_node(r->tb, first, node, index);
}

/* Goes up from a complete subtree: closes every bracket that it completes. *depth 0: the tree is complete. Else the
 * right subtree of the innermost open bracket comes next. */
static vpps_status close_brackets(reader *r, size_t first, int32_t done, size_t *depth) {
    while (*depth > 0) {
        open_node *top = &r->stack[*depth - 1];
        if (top->left < 0) {
            top->left = done;
            return take(r, ' ') ? VPPS_OK : fail_expected(r, "a space and a second subtree");
        }
        if (!take(r, ')')) return fail_expected(r, "')' after the second subtree");
        vpps_tree_node node = {top->label, top->left, done, VPPS_NO_WORD};
        VPPS_TRY(vpps_treebank_add_node(r->tb, first, node, &done));
        (*depth)--;
    }
    return VPPS_OK;
}

static vpps_status read_tree(reader *r) {
    size_t first = r->tb->n_nodes, depth = 0;
    do {
        int32_t label = -1, leaf = -1;
        if (!take(r, '(')) return fail_expected(r, "'('");
        VPPS_TRY(read_label(r, &label));
        if (r->at < r->end && *r->at == '(') {
            if (VPPS_UNLIKELY(!VPPS_RESERVE(r->stack, r->stack_capacity, depth + 1))) {
                return vpps_fail(VPPS_MEMORY, "%s%s:%zu: out of memory at depth %zu", VPPS_PATH_ARGS(r->name), r->line,
                                 depth);
            }
            r->stack[depth++] = (open_node){label, -1};
            continue;
        }
        VPPS_TRY(read_leaf(r, first, label, &leaf));
        VPPS_TRY(close_brackets(r, first, leaf, &depth));
    } while (depth > 0);
    return vpps_treebank_add_tree(r->tb, first, r->line < UINT32_MAX ? (uint32_t)r->line : UINT32_MAX);
}

/* LF, CR LF, or the end of the file. */
static bool take_line_end(reader *r) {
    if (r->at == r->end) return true;
    const char *p = r->at;
    if (*p == '\r' && p + 1 < r->end && p[1] == '\n') p++;
    if (*p != '\n') return false;
    r->at = r->line_start = p + 1;
    r->line++;
    return true;
}

static vpps_status read_lines(reader *r) {
    while (r->at < r->end) {
        if (take_line_end(r)) continue;
        VPPS_TRY(read_tree(r));
        if (!take_line_end(r)) return fail_expected(r, "end of line after the tree");
    }
    return VPPS_OK;
}

vpps_status vpps_treebank_read_text(vpps_treebank *tb, const char *name, const char *text, size_t len) {
    VPPS_NEED(tb);
    VPPS_NEED(name);
    const vpps_text t = vpps_text_of(name, text, len, "()");
    reader r = {.tb = tb, .name = name, .at = t.begin, .end = t.end, .line_start = t.begin, .line = 1};
    vpps_treebank_mark before = vpps_treebank_extent(tb);
    VPPS_TRY(vpps_text_check_encoding(&t));
    vpps_status status = read_lines(&r);
    free(r.stack);
    if (status != VPPS_OK) vpps_treebank_restore(tb, before);
    return status;
}

vpps_status vpps_treebank_read_file(vpps_treebank *tb, const char *path) {
    VPPS_NEED(tb);
    VPPS_NEED(path);
    char *text;
    size_t len;
    VPPS_TRY(vpps_file_read_all(path, &text, &len));
    vpps_status status = vpps_treebank_read_text(tb, path, text, len);
    free(text);
    return status;
}
