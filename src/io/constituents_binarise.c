/* constituents_binarise.c - makes trees with any number of children binary, without recursion.
 *
 * Nodes come in post-order, so that a node's subtrees are complete when the node is reached; the roots of complete subtrees lie on a stack.
 * A node with one child, which it directly follows, gets no binary node: its label is joined to the child's. To stay in post-order, a
 * left-branching node is made as soon as its second child is complete; so a child's parent, and its number there, must be known. */
#include "constituents.h"
#include "treebank.h"

#include "base/base.h"

typedef struct binariser {
    const vpps_constituents *c;
    vpps_constituent_tree tree;
    vpps_branching branching;
    vpps_vocab *labels;
    vpps_treebank *tb;
    size_t first;     /* number of the binary tree's first node */
    uint32_t *parent; /* parent of each node; UINT32_MAX: the node is the root */
    uint32_t *place;  /* for each node: its number among its parent's children, from 0 */
    int32_t *stack;   /* roots of complete subtrees, as nodes of the binary tree */
    size_t depth;
    char *label; /* scratch memory for a label that joins several labels, as "S+VP" */
} binariser;

static vpps_status fail_memory(const binariser *b) {
    return vpps_fail(VPPS_MEMORY, "binarise: out of memory at a tree of %u nodes", b->tree.n_nodes);
}

static vpps_status find_parents(binariser *b) {
    const uint32_t n = b->tree.n_nodes;
    if (!VPPS_RESERVE(b->parent, n) || !VPPS_RESERVE(b->place, n) || !VPPS_RESERVE(b->stack, n)) return fail_memory(b);
    for (uint32_t i = n; i-- > 0;) {
        if (i == n - 1) b->parent[i] = UINT32_MAX;
        uint32_t child = i - 1;
        for (uint32_t k = b->tree.nodes[i].n_children; k-- > 0; child -= b->tree.nodes[child].n_nodes) {
            b->parent[child] = i;
            b->place[child] = k;
        }
    }
    return VPPS_OK;
}

/* Returns the topmost node of the chain of only children that ends with node i; i itself if i has siblings. */
static uint32_t chain_top(const binariser *b, uint32_t i) {
    while (i + 1 < b->tree.n_nodes && b->tree.nodes[i + 1].n_children == 1) i++;
    return i;
}

/* Sets *id to the label of the nodes top .. bottom, joined by '+' and followed by `mark` if it is not NULL. */
static vpps_status join_labels(binariser *b, uint32_t top, uint32_t bottom, const char *mark, int32_t *id) {
    size_t len = 0;
    for (uint32_t i = top + 1; i-- > bottom;) {
        const char *label = vpps_vocab_word(b->c->labels, b->tree.nodes[i].label);
        const size_t n = strlen(label);
        if (!VPPS_RESERVE(b->label, len + n + 2)) return fail_memory(b);
        if (i < top) b->label[len++] = '+';
        memcpy(b->label + len, label, n);
        len += n;
    }
    if (mark) b->label[len++] = *mark;
    uint32_t found;
    VPPS_TRY(vpps_vocab_add_unchecked(b->labels, b->label, len, &found));
    if (found > INT32_MAX) return fail_memory(b);
    *id = (int32_t)found;
    return VPPS_OK;
}

/* Replaces the two subtrees on top of the stack by one subtree, whose root is a new node. */
static vpps_status join_top(binariser *b, int32_t label) {
    const int32_t left = b->stack[b->depth - 2], right = b->stack[b->depth - 1];
    b->depth--;
    return vpps_treebank_add_node(b->tb, b->first, (vpps_tree_node){label, left, right, VPPS_NO_WORD},
                                  &b->stack[b->depth - 1]);
}

static vpps_status add_leaf(binariser *b, uint32_t i, int32_t label) {
    const char *word = vpps_vocab_word(b->c->vocab, b->tree.nodes[i].word);
    vpps_tree_node leaf = {label, -1, -1, VPPS_NO_WORD};
    VPPS_TRY(vpps_vocab_add_unchecked(b->tb->vocab, word, strlen(word), &leaf.word));
    return vpps_treebank_add_node(b->tb, b->first, leaf, &b->stack[b->depth++]);
}

/* Adds to the binary tree the nodes that can be added once node i has been read. Node i is the lowest one of a chain of nodes with one
 * child each; the binary tree has one node for the chain. */
static vpps_status add_node(binariser *b, uint32_t i) {
    const uint32_t n_children = b->tree.nodes[i].n_children, top = chain_top(b, i);
    int32_t label, marked = -1;
    if (n_children > 2 && b->branching == VPPS_RIGHT_BRANCHING) {
        VPPS_TRY(join_labels(b, i, i, "*", &marked));
        for (uint32_t k = 2; k < n_children; k++) VPPS_TRY(join_top(b, marked));
    }
    VPPS_TRY(join_labels(b, top, i, NULL, &label));
    VPPS_TRY(n_children == 0 ? add_leaf(b, i, label) : join_top(b, label));
    const uint32_t parent = b->parent[top];
    if (b->branching == VPPS_RIGHT_BRANCHING || parent == UINT32_MAX || b->place[top] == 0 ||
        b->place[top] + 1 == b->tree.nodes[parent].n_children)
        return VPPS_OK;
    VPPS_TRY(join_labels(b, parent, parent, "*", &marked));
    return join_top(b, marked);
}

static vpps_status binarise_tree(binariser *b, uint32_t line) {
    b->first = b->tb->n_nodes;
    b->depth = 0;
    VPPS_TRY(find_parents(b));
    for (uint32_t i = 0; i < b->tree.n_nodes; i++)
        if (b->tree.nodes[i].n_children != 1) VPPS_TRY(add_node(b, i));
    return vpps_treebank_add_tree(b->tb, b->first, line);
}

vpps_status vpps_constituents_binarise(const vpps_constituents *c, vpps_branching branching, vpps_vocab *labels,
                                       vpps_treebank *tb) {
    VPPS_NEED(c, labels, tb);
    binariser b = {.c = c, .branching = branching, .labels = labels, .tb = tb};
    const vpps_treebank_mark before = vpps_treebank_extent(tb);
    const uint32_t n_labels = vpps_vocab_size(labels);
    vpps_status status = VPPS_OK;
    for (uint32_t i = 0; i < c->n_trees && status == VPPS_OK; i++) {
        b.tree = vpps_constituents_tree(c, i);
        status = binarise_tree(&b, c->trees[i].line);
    }
    VPPS_FREE_ARRAYS(b.parent, b.place, b.stack, b.label);
    if (status != VPPS_OK) {
        vpps_treebank_restore(tb, before);
        vpps_vocab_truncate(labels, n_labels);
    }
    return status;
}
