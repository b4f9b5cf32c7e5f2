/* listops.c - ListOps (Nangia and Bowman 2018, "ListOps: A Diagnostic Dataset for Latent Tree Learning"): trees whose
 * labels can be learned only by composing along the tree.
 *
 * As in the authors' make_data.py (github.com/nyu-mll/spinn, python/spinn/data/listops): the root is a list; a list has
 * an operator, uniform of the four, and 2 .. max_arguments arguments, their number uniform; an argument is a list with
 * probability 1/4 as long as the nesting allows one more, else a digit, uniform. MED is their int(np.median(...)): with
 * an even number of arguments the mean of the middle two, rounded down.
 *
 * How easy is it to guess? Measured over the roots of 1,000,000 trees with the default options and seed 1, in percent:
 *     label  0     1     2     3     4     5     6     7     8     9
 *     share  10.81 9.80  9.81  9.98  10.24 10.11 9.70  9.43  9.55  10.57
 * so a constant guess is right in 10.8 % of the cases. (tests/io checks 10 to 17 % over 20,000 trees.)
 */
#include "treebank.h"

#include "base/base.h"

/* most levels of a tree, each a recursive call: some 200 KiB of stack at this limit */
#define DEPTH_LIMIT 1000u
#define LEAVES_LIMIT 1000000u  /* limit that keeps the node indices of a tree far less than 2^31 */
#define DRAWS_LIMIT 100000u    /* most draws for one tree: ends the search when hardly any tree fits the options */
#define WORK_LIMIT 100000000u  /* most leaves drawn for one tree: some seconds of work */
#define SMALLEST_LIST_LEAVES 4 /* leaves of the smallest list: an operator, two digits, a bracket */

static const char *const operator_tokens[] = {"[MAX", "[MIN", "[MED", "[SM"};
enum { OP_MAX, OP_MIN, OP_MED, OP_SM };

typedef struct generator {
    vpps_treebank *tb;
    size_t first; /* number of the tree's first node */
    uint64_t random;
    uint32_t max_depth, max_arguments, min_leaves, max_leaves;
    uint32_t n_leaves;
    bool too_large;
    uint32_t operator_words[VPPS_COUNT(operator_tokens)], digit_words[10], end_word;
} generator;

/* Computes the value of a list from the number of times that each digit occurs among its n arguments. */
static uint32_t evaluate(uint32_t op, const uint32_t counts[10], uint32_t n) {
    uint32_t low = 0, high, sum = 0, seen = 0;
    if (op == OP_SM) {
        for (uint32_t digit = 0; digit < 10; digit++) sum += digit * counts[digit];
        return sum % 10;
    }
    /* The result is the argument of rank `wanted` in ascending order, from 0; the median also needs the argument of rank n / 2. */
    uint32_t wanted = op == OP_MAX ? n - 1 : op == OP_MIN ? 0 : (n - 1) / 2;
    while (seen + counts[low] <= wanted) seen += counts[low++];
    if (op != OP_MED) return low;
    for (high = low; seen + counts[high] <= n / 2; high++) seen += counts[high];
    return (low + high) / 2;
}

static vpps_status add_leaf(generator *g, int32_t label, uint32_t word, int32_t *index) {
    g->n_leaves++;
    return vpps_treebank_add_node(g->tb, g->first, (vpps_tree_node){label, -1, -1, word}, index);
}

static vpps_status add_inner(generator *g, int32_t label, int32_t left, int32_t right, int32_t *index) {
    return vpps_treebank_add_node(g->tb, g->first, (vpps_tree_node){label, left, right, VPPS_NO_WORD}, index);
}

/* Appends a list of at most `depth` levels, itself included; recursion ends at depth 1, and max_depth is at most
 * DEPTH_LIMIT. Gives up, with too_large set, as soon as the tree has more than max_leaves leaves. */
static vpps_status draw_list(generator *g, uint32_t depth, uint32_t *value, int32_t *index) {
    uint32_t op = vpps_random_below(&g->random, VPPS_COUNT(operator_tokens));
    uint32_t n = 2 + vpps_random_below(&g->random, g->max_arguments - 1);
    uint32_t counts[10] = {0};
    int32_t list, argument, end;
    VPPS_TRY(add_leaf(g, -1, g->operator_words[op], &list));
    for (uint32_t i = 0; i < n; i++) {
        uint32_t digit;
        if (depth > 1 && vpps_random_below(&g->random, 4) == 0) {
            VPPS_TRY(draw_list(g, depth - 1, &digit, &argument));
        } else {
            digit = vpps_random_below(&g->random, 10);
            VPPS_TRY(add_leaf(g, (int32_t)digit, g->digit_words[digit], &argument));
        }
        g->too_large = g->too_large || g->n_leaves >= g->max_leaves; /* the list's closing bracket counts as a leaf */
        if (g->too_large) return VPPS_OK;
        counts[digit]++;
        VPPS_TRY(add_inner(g, -1, list, argument, &list));
    }
    *value = evaluate(op, counts, n);
    VPPS_TRY(add_leaf(g, -1, g->end_word, &end));
    return add_inner(g, (int32_t)*value, list, end, index);
}

/* Appends one tree, drawing trees until one has a size that the options allow. */
static vpps_status generate_tree(generator *g) {
    vpps_treebank_mark before = vpps_treebank_extent(g->tb);
    g->first = g->tb->n_nodes;
    uint64_t work = 0;
    uint32_t draw = 0;
    for (; draw < DRAWS_LIMIT && work < WORK_LIMIT; draw++) {
        uint32_t value;
        int32_t root;
        g->n_leaves = 0;
        g->too_large = false;
        VPPS_TRY(draw_list(g, g->max_depth, &value, &root));
        if (!g->too_large && g->n_leaves >= g->min_leaves) return vpps_treebank_add_tree(g->tb, g->first, 0);
        work += g->n_leaves;
        g->tb->n_nodes = before.n_nodes;
        g->tb->classes = before.classes;
    }
    return vpps_fail(VPPS_ARGUMENT,
                     "listops: no tree with %u to %u leaves in %u draws (max_depth %u, max_arguments %u)",
                     g->min_leaves, g->max_leaves, draw, g->max_depth, g->max_arguments);
}

/* Fills in default options, and refuses options that no tree can satisfy. */
static vpps_status check_options(generator *g, const vpps_listops *o) {
    g->random = vpps_mix64(o->seed);
    g->max_depth = o->max_depth ? o->max_depth : 4;
    g->max_arguments = o->max_arguments ? o->max_arguments : 5;
    g->min_leaves = o->min_leaves ? o->min_leaves : 2;
    g->max_leaves = o->max_leaves ? o->max_leaves : 64;
    if (g->max_depth > DEPTH_LIMIT)
        return vpps_fail(VPPS_ARGUMENT, "listops: expected max_depth up to %u, found %u", DEPTH_LIMIT, g->max_depth);
    if (g->max_arguments < 2)
        return vpps_fail(VPPS_ARGUMENT, "listops: expected max_arguments of at least 2, found %u", g->max_arguments);
    if (g->max_leaves < SMALLEST_LIST_LEAVES || g->max_leaves > LEAVES_LIMIT)
        return vpps_fail(VPPS_ARGUMENT, "listops: expected max_leaves from %u to %u, found %u", SMALLEST_LIST_LEAVES,
                         LEAVES_LIMIT, g->max_leaves);
    if (g->min_leaves > g->max_leaves)
        return vpps_fail(VPPS_ARGUMENT, "listops: expected min_leaves up to max_leaves, found %u and %u", g->min_leaves,
                         g->max_leaves);
    uint64_t largest = 1; /* leaves of the largest tree: lists of max_arguments lists, max_depth deep */
    for (uint32_t level = 0; level < g->max_depth && largest < g->min_leaves; level++)
        largest = 2 + g->max_arguments * largest;
    if (largest < g->min_leaves)
        return vpps_fail(VPPS_ARGUMENT, "listops: expected min_leaves up to %u (the largest tree), found %u",
                         (uint32_t)largest, g->min_leaves);
    return VPPS_OK;
}

/* Adds all words in a fixed order before anything is drawn, so that ids do not depend on the draws. */
static vpps_status add_words(generator *g) {
    for (uint32_t i = 0; i < VPPS_COUNT(operator_tokens); i++)
        VPPS_TRY(vpps_vocab_add(g->tb->vocab, operator_tokens[i], strlen(operator_tokens[i]), &g->operator_words[i]));
    for (uint32_t digit = 0; digit < 10; digit++) {
        char text = (char)('0' + digit);
        VPPS_TRY(vpps_vocab_add(g->tb->vocab, &text, 1, &g->digit_words[digit]));
    }
    return vpps_vocab_add(g->tb->vocab, "]", 1, &g->end_word);
}

vpps_status vpps_treebank_generate_listops(vpps_treebank *tb, const vpps_listops *options, uint32_t n) {
    VPPS_NEED(tb);
    static const vpps_listops defaults = {0};
    generator g = {.tb = tb};
    VPPS_TRY(check_options(&g, options ? options : &defaults));
    vpps_treebank_mark before = vpps_treebank_extent(tb);
    vpps_status status = add_words(&g);
    for (uint32_t i = 0; i < n && status == VPPS_OK; i++) status = generate_tree(&g);
    if (status != VPPS_OK) vpps_treebank_restore(tb, before);
    return status;
}
