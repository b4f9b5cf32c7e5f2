/* pq_tree.c - Booth and Lueker's templates for PQ trees, by recursion from the root, in time linear in the tree's size. */
#include "cell/pq_tree.h"

#define NONE UINT32_MAX

static const vpps_pq_node *at(const vpps_pq_tree *t, uint32_t node) { return &t->nodes[node]; }
static bool is_full(const vpps_pq_tree *t, uint32_t node) { return at(t, node)->marked == at(t, node)->size; }
static bool is_empty(const vpps_pq_tree *t, uint32_t node) { return at(t, node)->marked == 0; }
static bool is_partial(const vpps_pq_tree *t, uint32_t node) { return !is_full(t, node) && !is_empty(t, node); }

/* ---------------------------------------------------------------- nodes */

/* Makes a node with n children; if n is 1, returns the child. NONE: out of memory. `children` may lie in t->scratch. */
static uint32_t make(vpps_pq_tree *t, vpps_pq_kind kind, const uint32_t *children, uint32_t n) {
    if (n == 1) return children[0];
    if (!VPPS_RESERVE(t->nodes, t->n_nodes + 1u) || !VPPS_RESERVE(t->links, t->n_links + (size_t)n)) { return NONE; }
    vpps_pq_node node = {.kind = (uint8_t)(n == 2 ? VPPS_PQ_Q : kind), .first = t->n_links, .n = n};
    for (uint32_t i = 0; i < n; i++) {
        node.size += at(t, children[i])->size;
        node.marked += at(t, children[i])->marked;
        t->links[t->n_links++] = children[i];
    }
    t->nodes[t->n_nodes] = node;
    return t->n_nodes++;
}

bool vpps_pq_open(vpps_pq_tree *t, uint32_t n) {
    *t = (vpps_pq_tree){.n_elements = n, .in_set = calloc(n + (size_t)1, 1)};
    uint32_t *leaves = malloc((n + (size_t)1) * sizeof *leaves);
    bool ok = t->in_set && leaves && VPPS_RESERVE(t->nodes, n + (size_t)1);
    for (uint32_t i = 0; i < n && ok; i++) {
        t->nodes[t->n_nodes++] = (vpps_pq_node){.kind = VPPS_PQ_LEAF, .leaf = i, .size = 1};
        leaves[i] = i;
    }
    if (ok && n) {
        t->root = make(t, VPPS_PQ_P, leaves, n);
        ok = t->root != NONE;
    }
    free(leaves);
    return ok;
}

void vpps_pq_close(vpps_pq_tree *t) {
    VPPS_FREE_ARRAYS(t->nodes, t->links, t->scratch);
    free(t->in_set);
}

static uint32_t mark(vpps_pq_tree *t, uint32_t node) {
    uint32_t marked = at(t, node)->kind == VPPS_PQ_LEAF && t->in_set[at(t, node)->leaf];
    for (uint32_t i = 0; i < at(t, node)->n; i++) marked += mark(t, vpps_pq_children(t, node)[i]);
    return t->nodes[node].marked = marked;
}

void vpps_pq_mark(vpps_pq_tree *t, const uint32_t *set, uint32_t n) {
    memset(t->in_set, 0, t->n_elements);
    for (uint32_t i = 0; i < n; i++) t->in_set[set[i]] = 1;
    mark(t, t->root);
}

/* ---------------------------------------------------------------- templates
 *
 * Children of a new node are collected on the scratch stack; the function that pushed them takes them off again. */

static bool push(vpps_pq_tree *t, uint32_t node) {
    if (node == NONE || !VPPS_RESERVE(t->scratch, t->n_scratch + 1u)) return false;
    t->scratch[t->n_scratch++] = node;
    return true;
}

/* Makes one node of all children of `node` for which `is` holds, and pushes it onto t->scratch. Pushes nothing if there are none. */
static bool push_group(vpps_pq_tree *t, uint32_t node, bool (*is)(const vpps_pq_tree *, uint32_t)) {
    const uint32_t base = t->n_scratch;
    for (uint32_t i = 0; i < at(t, node)->n; i++) {
        const uint32_t child = vpps_pq_children(t, node)[i];
        if (is(t, child) && !push(t, child)) return false;
    }
    const uint32_t n = t->n_scratch - base;
    if (!n) return true;
    const uint32_t group = make(t, VPPS_PQ_P, t->scratch + base, n);
    t->n_scratch = base;
    return push(t, group);
}

static uint32_t count_partial(const vpps_pq_tree *t, uint32_t node) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < at(t, node)->n; i++) n += is_partial(t, vpps_pq_children(t, node)[i]);
    return n;
}

static void reverse(uint32_t *words, uint32_t n) {
    for (uint32_t i = 0; i < n / 2; i++) {
        const uint32_t x = words[i];
        words[i] = words[n - 1 - i];
        words[n - 1 - i] = x;
    }
}

typedef enum outcome { FITS, FAILS, NO_MEMORY } outcome;

static outcome push_linear(vpps_pq_tree *t, uint32_t node);

static outcome linear_p(vpps_pq_tree *t, uint32_t node) {
    if (count_partial(t, node) > 1) return FAILS;
    if (!push_group(t, node, is_empty)) return NO_MEMORY;
    for (uint32_t i = 0; i < at(t, node)->n; i++) {
        const uint32_t child = vpps_pq_children(t, node)[i];
        const outcome o = is_partial(t, child) ? push_linear(t, child) : FITS;
        if (o != FITS) return o;
    }
    return push_group(t, node, is_full) ? FITS : NO_MEMORY;
}

/* Returns how many of the leaves below a node are in the set that the tree is reduced by: 0: none; 1: some; 2: all. */
static uint32_t fullness(const vpps_pq_tree *t, uint32_t node) {
    return is_full(t, node) ? 2 : is_empty(t, node) ? 0 : 1;
}

static outcome linear_q(vpps_pq_tree *t, uint32_t node) {
    const uint32_t n = at(t, node)->n;
    const uint32_t *children = vpps_pq_children(t, node);
    const bool back = fullness(t, children[0]) > fullness(t, children[n - 1]);
    uint32_t last = 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t child = vpps_pq_children(t, node)[back ? n - 1 - i : i], f = fullness(t, child);
        if (f < last || (f == 1 && last == 1)) return FAILS;
        last = f;
        const outcome o = push_linear(t, child);
        if (o != FITS) return o;
    }
    return FITS;
}

/* Pushes nodes that replace a subtree onto the stack: first those with leaves outside the set, then those with leaves in the set. */
static outcome push_linear(vpps_pq_tree *t, uint32_t node) {
    if (!is_partial(t, node)) return push(t, node) ? FITS : NO_MEMORY;
    return at(t, node)->kind == VPPS_PQ_P ? linear_p(t, node) : linear_q(t, node);
}

/* Pushes nodes that replace a subtree onto the stack: first those with leaves in the set, then those with leaves outside the set. */
static outcome push_linear_back(vpps_pq_tree *t, uint32_t node) {
    const uint32_t base = t->n_scratch;
    const outcome o = push_linear(t, node);
    reverse(t->scratch + base, t->n_scratch - base);
    return o;
}

/* Reduces a P-node above the whole set: the full children (all leaves in the set) and at most two partial ones become one child. */
static outcome root_p(vpps_pq_tree *t, uint32_t node, uint32_t *out) {
    const uint32_t base = t->n_scratch, n_partial = count_partial(t, node);
    if (n_partial > 2) return FAILS;
    bool first = true;
    for (uint32_t i = 0; i < at(t, node)->n; i++) {
        const uint32_t child = vpps_pq_children(t, node)[i];
        if (!is_partial(t, child) || !first) continue;
        const outcome o = push_linear(t, child);
        if (o != FITS) return o;
        first = false;
    }
    if (!push_group(t, node, is_full)) return NO_MEMORY;
    uint32_t seen = 0;
    for (uint32_t i = 0; i < at(t, node)->n; i++) {
        const uint32_t child = vpps_pq_children(t, node)[i];
        if (!is_partial(t, child) || ++seen < 2) continue;
        const outcome o = push_linear_back(t, child);
        if (o != FITS) return o;
    }
    const uint32_t middle = make(t, VPPS_PQ_Q, t->scratch + base, t->n_scratch - base);
    t->n_scratch = base;
    for (uint32_t i = 0; i < at(t, node)->n; i++) {
        const uint32_t child = vpps_pq_children(t, node)[i];
        if (is_empty(t, child) && !push(t, child)) return NO_MEMORY;
    }
    if (!push(t, middle)) return NO_MEMORY;
    *out = make(t, VPPS_PQ_P, t->scratch + base, t->n_scratch - base);
    t->n_scratch = base;
    return *out == NONE ? NO_MEMORY : FITS;
}

/* Reduces a Q-node above the whole set. Its children must be empty, at most one partial, full, at most one partial, then empty again. */
static outcome root_q(vpps_pq_tree *t, uint32_t node, uint32_t *out) {
    const uint32_t base = t->n_scratch, n = at(t, node)->n;
    enum { BEFORE, INSIDE, AFTER } place = BEFORE;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t child = vpps_pq_children(t, node)[i];
        const bool partial = is_partial(t, child);
        if (place == AFTER && !is_empty(t, child)) return FAILS;
        const outcome o = partial && place == INSIDE ? push_linear_back(t, child) : push_linear(t, child);
        if (o != FITS) return o;
        if (place == INSIDE && (partial || is_empty(t, child))) place = AFTER;
        if (place == BEFORE && !is_empty(t, child)) place = INSIDE;
    }
    *out = make(t, VPPS_PQ_Q, t->scratch + base, t->n_scratch - base);
    t->n_scratch = base;
    return *out == NONE ? NO_MEMORY : FITS;
}

/* Reduces the subtree of `node` to orders in which the set is consecutive; *out is the new node, or `node` if nothing changes. */
static outcome reduce(vpps_pq_tree *t, uint32_t node, uint32_t n_set, uint32_t *out) {
    *out = node;
    if (is_full(t, node)) return FITS;
    const uint32_t n = at(t, node)->n;
    for (uint32_t i = 0; i < n; i++) { /* finds a child whose subtree contains the whole set */
        const uint32_t child = vpps_pq_children(t, node)[i];
        if (at(t, child)->marked != n_set) continue;
        uint32_t other;
        const outcome o = reduce(t, child, n_set, &other);
        if (o != FITS || other == child) return o;
        const uint32_t base = t->n_scratch;
        for (uint32_t k = 0; k < n; k++)
            if (!push(t, k == i ? other : vpps_pq_children(t, node)[k])) return NO_MEMORY;
        *out = make(t, (vpps_pq_kind)at(t, node)->kind, t->scratch + base, n);
        t->n_scratch = base;
        return *out == NONE ? NO_MEMORY : FITS;
    }
    if (at(t, node)->kind == VPPS_PQ_P) return root_p(t, node, out);
    const uint32_t before = t->n_nodes;
    const bool same = count_partial(t, node) == 0;
    const outcome o = root_q(t, node, out);
    if (o != FITS || !same) return o;
    t->n_nodes = before; /* the set is consecutive already, so the new nodes are dropped */
    *out = node;
    return FITS;
}

vpps_pq_result vpps_pq_reduce(vpps_pq_tree *t, const uint32_t *set, uint32_t n) {
    if (n < 2) return VPPS_PQ_SAME;
    vpps_pq_mark(t, set, n);
    t->n_scratch = 0;
    uint32_t root;
    const outcome o = reduce(t, t->root, n, &root);
    if (o != FITS) return o == FAILS ? VPPS_PQ_NONE : VPPS_PQ_MEMORY;
    const bool same = root == t->root;
    t->root = root;
    return same ? VPPS_PQ_SAME : VPPS_PQ_REDUCED;
}
