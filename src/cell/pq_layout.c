/* pq_layout.c - Algorithm 2 of ED-Batch: build a PQ tree of the sets of operands; impose the known order of an operand on the others of its
 * batch, until nothing changes; find nodes of the same order, by union-find with transformations; traverse the tree. */
#include "cell/pq_layout.h"

#include "cell/pq_tree.h"

#define NONE UINT32_MAX

/* A PQ-tree node as a member of a union-find. Nodes of one class have one order of children, up to reversal (Q-node) or permutation. */
typedef struct ordered {
    uint32_t parent;
    bool flip; /* Q-node: whether its children's order is the reverse of that of `parent` */
    /* P-node: child i of `parent` corresponds to child permutation[i] of this node; NULL: to child i */
    uint32_t *permutation;
    uint32_t *chosen;  /* root of a class of P-nodes: the order chosen for the children; NULL: none yet */
    uint8_t direction; /* root of a class of Q-nodes: 0: no order chosen yet; 1: children in order; 2: reversed */
} ordered;

typedef struct planner {
    vpps_pq_tree tree;
    const vpps_layout_batch *batches;
    uint32_t n_batches;
    uint64_t *dropped;     /* for each batch (operations that run as one): bit o: operand o must be copied */
    uint32_t *member;      /* for each value: its index among the values of the operand that is looked at */
    uint64_t *below;       /* for each node of the PQ tree: which of the operand's values are in its subtree, as bits */
    uint64_t *below_2;     /* for each node of the PQ tree: the same for the second operand of a pair of operands */
    uint64_t *constraints; /* sets of values of an operand, as bits; the values of each set must be consecutive */
    uint32_t n_constraints;
    ordered *orders; /* for each PQ-tree node: its entry in the union-find */
    bool ok;         /* whether no allocation has failed so far */
} planner;

static const uint32_t *operand(const vpps_layout_batch *b, uint32_t o) { return b->operands + (size_t)o * b->width; }

/* Returns whether an operand has a value twice, so that no order of the values avoids a copy. */
static bool is_broadcast(const uint32_t *values, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < i; k++)
            if (values[i] == values[k]) return true;
    return false;
}

static bool can_lie_together(const vpps_layout_batch *b, uint32_t o) {
    return b->width > 1 && b->width <= VPPS_LAYOUT_WIDTH && o < 64 && !is_broadcast(operand(b, o), b->width);
}

static bool is_constrained(const planner *p, uint32_t batch, uint32_t o) {
    return can_lie_together(&p->batches[batch], o) && !(p->dropped[batch] >> o & 1);
}

/* Notes that operand o of a batch must be copied, and goes back to the PQ tree with the given root. */
static void drop(planner *p, uint32_t batch, uint32_t o, uint32_t root) {
    p->tree.root = root;
    p->dropped[batch] |= (uint64_t)1 << o;
}

/* Restricts the PQ tree to orders in which certain values of an operand, those in `members`, are consecutive. */
static vpps_pq_result impose(planner *p, const uint32_t *values, uint32_t width, uint64_t members) {
    uint32_t set[VPPS_LAYOUT_WIDTH], n = 0;
    for (uint32_t i = 0; i < width; i++)
        if (members >> i & 1) set[n++] = values[i];
    const vpps_pq_result r = vpps_pq_reduce(&p->tree, set, n);
    p->ok = p->ok && r != VPPS_PQ_MEMORY;
    return r;
}

static uint64_t all_members(uint32_t width) { return width == 64 ? UINT64_MAX : ((uint64_t)1 << width) - 1; }

/* Step 1: makes the values of each operand consecutive. If that is impossible, the operand is copied (the paper gives up the batch). */
static void impose_adjacency(planner *p) {
    for (uint32_t i = 0; i < p->n_batches; i++) {
        const vpps_layout_batch *b = &p->batches[i];
        for (uint32_t o = 0; o < b->n_operands && p->ok; o++) {
            const uint32_t before = p->tree.root;
            if (is_constrained(p, i, o) && impose(p, operand(b, o), b->width, all_members(b->width)) == VPPS_PQ_NONE)
                drop(p, i, o, before);
        }
    }
}

/* ---------------------------------------------------------------- an operand's subtree */

/* n children of a PQ-tree node, from child number `first` on, whose leaves are exactly the values of an operand. */
typedef struct subtree {
    uint32_t node, first, n;
} subtree;

static uint64_t find_below(planner *p, uint32_t node, const uint32_t *values, uint32_t width, uint64_t *below) {
    const vpps_pq_node *x = &p->tree.nodes[node];
    uint64_t members = 0;
    if (x->kind == VPPS_PQ_LEAF && x->marked) members = (uint64_t)1 << p->member[x->leaf];
    for (uint32_t i = 0; i < x->n; i++)
        members |= find_below(p, vpps_pq_children(&p->tree, node)[i], values, width, below);
    return below[node] = members;
}

static subtree find_subtree(planner *p, const uint32_t *values, uint32_t width, uint64_t *below) {
    const vpps_pq_tree *t = &p->tree;
    for (uint32_t i = 0; i < width; i++) p->member[values[i]] = i;
    vpps_pq_mark(&p->tree, values, width);
    find_below(p, t->root, values, width, below);
    uint32_t node = t->root;
    for (bool deeper = true; deeper;) {
        deeper = false;
        for (uint32_t i = 0; i < t->nodes[node].n; i++) {
            const uint32_t child = vpps_pq_children(t, node)[i];
            if (t->nodes[child].marked != width) continue;
            node = child;
            deeper = true;
            break;
        }
    }
    subtree s = {.node = node};
    const vpps_pq_node *x = &t->nodes[node];
    while (s.first < x->n && !t->nodes[vpps_pq_children(t, node)[s.first]].marked) s.first++;
    while (s.first + s.n < x->n && t->nodes[vpps_pq_children(t, node)[s.first + s.n]].marked) s.n++;
    return s;
}

static subtree whole(const vpps_pq_tree *t, uint32_t node) { return (subtree){node, 0, t->nodes[node].n}; }

/* ---------------------------------------------------------------- step 2: broadcast */

static void add_constraint(planner *p, uint64_t members) {
    p->ok = p->ok && VPPS_RESERVE(p->constraints, p->n_constraints + 1u);
    if (p->ok) p->constraints[p->n_constraints++] = members;
}

/* Lists the sets of values that are consecutive in every order that a subtree allows; two adjacent children of a Q-node are such a set. */
static void list_constraints(planner *p, subtree s) {
    const uint32_t *children = vpps_pq_children(&p->tree, s.node) + s.first;
    uint64_t all = 0;
    for (uint32_t i = 0; i < s.n; i++) {
        all |= p->below[children[i]];
        if (i && p->tree.nodes[s.node].kind == VPPS_PQ_Q)
            add_constraint(p, p->below[children[i - 1]] | p->below[children[i]]);
    }
    if (s.n) add_constraint(p, all);
    for (uint32_t i = 0; i < s.n; i++) list_constraints(p, whole(&p->tree, children[i]));
}

/* Imposes the known order of each operand of a batch on the other operands of the batch; returns whether the tree changed. */
static bool broadcast(planner *p, uint32_t batch) {
    const vpps_layout_batch *b = &p->batches[batch];
    bool changed = false;
    p->n_constraints = 0;
    for (uint32_t o = 0; o < b->n_operands && p->ok; o++) {
        if (!is_constrained(p, batch, o)) continue;
        p->ok = VPPS_RESERVE(p->below, p->tree.n_nodes);
        if (p->ok) list_constraints(p, find_subtree(p, operand(b, o), b->width, p->below));
    }
    for (uint32_t o = 0; o < b->n_operands && p->ok; o++) {
        const uint32_t before = p->tree.root;
        for (uint32_t i = 0; i < p->n_constraints && is_constrained(p, batch, o); i++) {
            const vpps_pq_result r = impose(p, operand(b, o), b->width, p->constraints[i]);
            if (r == VPPS_PQ_NONE) drop(p, batch, o, before);
            changed |= r != VPPS_PQ_SAME;
        }
    }
    return changed;
}

static void broadcast_all(planner *p) {
    for (bool changed = true; changed && p->ok;) {
        changed = false;
        for (uint32_t i = 0; i < p->n_batches && p->ok; i++) changed |= broadcast(p, i);
    }
}

/* ---------------------------------------------------------------- step 3: equal orders */

/* Returns the root of a node's class in the union-find, which decides the node's order, and how the node's children correspond to the
 * root's: *flip tells whether a Q-node's are reversed; map[i] is the P-node's child for child i of the root. */
static uint32_t find_decider(const planner *p, uint32_t node, bool *flip, uint32_t *map) {
    const uint32_t n = p->tree.nodes[node].n;
    *flip = false;
    for (uint32_t i = 0; i < n; i++) map[i] = i;
    while (p->orders[node].parent != node) {
        const ordered *o = &p->orders[node];
        *flip ^= o->flip;
        uint32_t composed[VPPS_LAYOUT_WIDTH];
        for (uint32_t i = 0; i < n && o->permutation; i++) composed[i] = map[o->permutation[i]];
        if (o->permutation) memcpy(map, composed, n * sizeof *map);
        node = o->parent;
    }
    return node;
}

/* Demands of P-nodes a and b that child i of a is placed like child f[i] of b. False: an earlier demand contradicts, or out of memory. */
static bool unite_p(planner *p, uint32_t a, uint32_t b, const uint32_t *f) {
    uint32_t map_a[VPPS_LAYOUT_WIDTH], map_b[VPPS_LAYOUT_WIDTH], inverse[VPPS_LAYOUT_WIDTH];
    const uint32_t n = p->tree.nodes[a].n;
    bool flip;
    const uint32_t x = find_decider(p, a, &flip, map_a), y = find_decider(p, b, &flip, map_b);
    for (uint32_t i = 0; i < n; i++) inverse[map_b[i]] = i;
    if (x == y) {
        for (uint32_t i = 0; i < n; i++)
            if (f[map_a[i]] != map_b[i]) return false;
        return true;
    }
    uint32_t *permutation = calloc(n + (size_t)1, sizeof *permutation); /* maps child i of x to a child of y */
    p->ok = p->ok && permutation;
    if (!permutation) return false;
    for (uint32_t i = 0; i < n; i++) permutation[i] = inverse[f[map_a[i]]];
    p->orders[y].parent = x;
    p->orders[y].permutation = permutation;
    return true;
}

static bool unite_q(planner *p, uint32_t a, uint32_t b, bool flip) {
    uint32_t map[VPPS_LAYOUT_WIDTH];
    bool flip_a, flip_b;
    if (p->tree.nodes[a].n > VPPS_LAYOUT_WIDTH || p->tree.nodes[b].n > VPPS_LAYOUT_WIDTH) return false;
    const uint32_t x = find_decider(p, a, &flip_a, map), y = find_decider(p, b, &flip_b, map);
    if (x == y) return (flip_a ^ flip_b) == flip;
    p->orders[y].parent = x;
    p->orders[y].flip = flip_a ^ flip_b ^ flip;
    return true;
}

/* Demands that the subtrees of two operands have one order, node by node. False: their forms differ, or demands contradict. */
static bool relate(planner *p, subtree a, subtree b) {
    const vpps_pq_tree *t = &p->tree;
    const uint8_t kind = t->nodes[a.node].kind;
    if (a.n != b.n || kind != t->nodes[b.node].kind || a.n > VPPS_LAYOUT_WIDTH) return false;
    if (kind == VPPS_PQ_LEAF) return true;
    const uint32_t *of_a = vpps_pq_children(t, a.node) + a.first, *of_b = vpps_pq_children(t, b.node) + b.first;
    uint32_t f[VPPS_LAYOUT_WIDTH] = {0};
    for (uint32_t i = 0; i < a.n; i++) {
        for (f[i] = 0; f[i] < b.n && p->below[of_a[i]] != p->below_2[of_b[f[i]]];) f[i]++;
        if (f[i] == b.n) return false;
    }
    const bool flip = f[0] != 0;
    bool good = kind == VPPS_PQ_P ? unite_p(p, a.node, b.node, f) : unite_q(p, a.node, b.node, flip);
    for (uint32_t i = 0; i < a.n && kind == VPPS_PQ_Q; i++) good = good && f[i] == (flip ? a.n - 1 - i : i);
    for (uint32_t i = 0; i < a.n && p->ok; i++) good = relate(p, whole(t, of_a[i]), whole(t, of_b[f[i]])) && good;
    return good;
}

static void relate_all(planner *p) {
    p->orders = calloc(p->tree.n_nodes + (size_t)1, sizeof *p->orders);
    p->ok = p->ok && p->orders && VPPS_RESERVE(p->below, p->tree.n_nodes) && VPPS_RESERVE(p->below_2, p->tree.n_nodes);
    for (uint32_t i = 0; i < p->tree.n_nodes && p->ok; i++) p->orders[i].parent = i;
    for (uint32_t i = 0; i < p->n_batches && p->ok; i++) {
        const vpps_layout_batch *b = &p->batches[i];
        uint32_t first = 0;
        while (first < b->n_operands && !is_constrained(p, i, first)) first++;
        for (uint32_t o = first + 1; o < b->n_operands && p->ok; o++) {
            if (!is_constrained(p, i, o)) continue;
            const subtree y = find_subtree(p, operand(b, o), b->width, p->below_2);
            const subtree x = find_subtree(p, operand(b, first), b->width, p->below);
            relate(p, x, y); /* fails if the orders contradict each other: operand o is copied */
        }
    }
}

/* ---------------------------------------------------------------- step 4: traversal */

static uint32_t least_leaf(const vpps_pq_tree *t, uint32_t node) {
    uint32_t least = t->nodes[node].kind == VPPS_PQ_LEAF ? t->nodes[node].leaf : NONE;
    for (uint32_t i = 0; i < t->nodes[node].n; i++)
        least = vpps_min_u32(least, least_leaf(t, vpps_pq_children(t, node)[i]));
    return least;
}

/* Returns the order of a P-node's children. If its class has none yet, chooses the order in which the cell makes the values. */
static const uint32_t *choose_p(planner *p, uint32_t node, const uint32_t *map, uint32_t decider) {
    const vpps_pq_tree *t = &p->tree;
    const uint32_t n = t->nodes[node].n;
    ordered *o = &p->orders[decider];
    if (o->chosen) return o->chosen;
    o->chosen = malloc(n * sizeof *o->chosen);
    p->ok = p->ok && o->chosen;
    for (uint32_t i = 0; i < n && p->ok; i++) {
        uint32_t k = i;
        const uint32_t least = least_leaf(t, vpps_pq_children(t, node)[map[i]]);
        for (; k && least_leaf(t, vpps_pq_children(t, node)[map[o->chosen[k - 1]]]) > least; k--)
            o->chosen[k] = o->chosen[k - 1];
        o->chosen[k] = i;
    }
    return o->chosen;
}

static void traverse(planner *p, uint32_t node, uint32_t *order, uint32_t *n_order) {
    const vpps_pq_tree *t = &p->tree;
    const vpps_pq_node *x = &t->nodes[node];
    const uint32_t *children = vpps_pq_children(t, node);
    if (x->kind == VPPS_PQ_LEAF) {
        order[(*n_order)++] = x->leaf;
        return;
    }
    uint32_t map[VPPS_LAYOUT_WIDTH];
    bool flip = false;
    const bool small = x->n <= VPPS_LAYOUT_WIDTH; /* only nodes with few children share an order */
    const uint32_t decider = small ? find_decider(p, node, &flip, map) : node;
    if (x->kind == VPPS_PQ_P) {
        const uint32_t *chosen = small ? choose_p(p, node, map, decider) : NULL;
        for (uint32_t i = 0; i < x->n && p->ok; i++) traverse(p, children[small ? map[chosen[i]] : i], order, n_order);
        return;
    }
    ordered *o = &p->orders[decider];
    if (!o->direction) {
        const bool back = least_leaf(t, children[x->n - 1]) < least_leaf(t, children[0]);
        o->direction = (uint8_t)(1 + (back ^ flip));
    }
    const bool back = (o->direction == 2) ^ flip;
    for (uint32_t i = 0; i < x->n && p->ok; i++) traverse(p, children[back ? x->n - 1 - i : i], order, n_order);
}

bool vpps_plan_layout(uint32_t n, const vpps_layout_batch *batches, uint32_t n_batches, uint32_t *order) {
    planner p = {.batches = batches, .n_batches = n_batches};
    p.dropped = calloc(n_batches + (size_t)1, sizeof *p.dropped);
    p.member = calloc(n + (size_t)1, sizeof *p.member);
    p.ok = vpps_pq_open(&p.tree, n) && p.dropped && p.member;
    if (p.ok) impose_adjacency(&p);
    if (p.ok) broadcast_all(&p);
    if (p.ok) relate_all(&p);
    uint32_t n_order = 0;
    if (p.ok && n) traverse(&p, p.tree.root, order, &n_order);
    for (uint32_t i = 0; i < p.tree.n_nodes && p.orders; i++) VPPS_FREE(p.orders[i].permutation, p.orders[i].chosen);
    VPPS_FREE_ARRAYS(p.below, p.below_2, p.constraints);
    VPPS_FREE(p.dropped, p.member, p.orders);
    vpps_pq_close(&p.tree);
    return p.ok;
}

/* ---------------------------------------------------------------- copies */

/* Returns whether an operand's values are adjacent, and in the same order as the values in `first`. */
static bool lies_as(const uint32_t *place, const uint32_t *values, const uint32_t *first, uint32_t width) {
    uint32_t least = NONE, least_of_first = NONE;
    for (uint32_t i = 0; i < width; i++) {
        least = vpps_min_u32(least, place[values[i]]);
        least_of_first = vpps_min_u32(least_of_first, place[first[i]]);
    }
    for (uint32_t i = 0; i < width; i++)
        if (place[values[i]] - least != place[first[i]] - least_of_first) return false;
    return true;
}

static bool lies_together(const uint32_t *place, const uint32_t *values, uint32_t width) {
    uint32_t least = NONE, most = 0;
    for (uint32_t i = 0; i < width; i++) {
        least = vpps_min_u32(least, place[values[i]]);
        most = vpps_max_u32(most, place[values[i]]);
    }
    return most - least == width - 1;
}

static bool lies_in_order(const uint32_t *place, const uint32_t *values, uint32_t width) {
    for (uint32_t i = 1; i < width; i++)
        if (place[values[i]] < place[values[i - 1]]) return false;
    return true;
}

/* Returns the operand in whose order the batch runs. Most operands have this order; at a tie it is the batch's own. NONE: no operand's
 * values are adjacent. */
static uint32_t leader(const uint32_t *place, const vpps_layout_batch *b) {
    uint32_t best = NONE, most = 0;
    for (uint32_t o = 0; o < b->n_operands; o++) {
        uint32_t n = 0;
        if (is_broadcast(operand(b, o), b->width) || !lies_together(place, operand(b, o), b->width)) continue;
        for (uint32_t k = 0; k < b->n_operands; k++)
            n += 2 * (!is_broadcast(operand(b, k), b->width) && lies_as(place, operand(b, k), operand(b, o), b->width));
        n += lies_in_order(place, operand(b, o), b->width);
        if (n > most) {
            most = n;
            best = o;
        }
    }
    return best;
}

bool vpps_count_copies(uint32_t n, const uint32_t *order, const vpps_layout_batch *batches, uint32_t n_batches,
                       const uint32_t *words, vpps_layout_copies *out) {
    uint32_t *place = malloc((n + (size_t)1) * sizeof *place);
    *out = (vpps_layout_copies){0};
    if (!place) return false;
    for (uint32_t p = 0; p < n; p++) place[order[p]] = p;
    for (uint32_t i = 0; i < n_batches; i++) {
        const vpps_layout_batch *b = &batches[i];
        if (b->width < 2) continue;
        const uint32_t first = leader(place, b);
        for (uint32_t o = 0; o < b->n_operands; o++) {
            const uint32_t *values = operand(b, o);
            uint64_t moved = 0;
            for (uint32_t k = 0; k < b->width; k++) moved += words[values[k]];
            if (is_broadcast(values, b->width)) {
                out->broadcasts++;
                out->broadcast += moved;
            } else if (first == NONE || !lies_as(place, values, operand(b, first), b->width)) {
                out->gathers += o > 0;
                out->scatters += o == 0;
                out->gathered += o > 0 ? moved : 0;
                out->scattered += o == 0 ? moved : 0;
            }
        }
    }
    free(place);
    return true;
}
