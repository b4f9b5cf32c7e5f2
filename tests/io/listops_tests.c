/* listops_tests.c - compares generated trees with an evaluator that sees only the sequence of tokens. */
#include "forms.h"

#define NESTING 64

/* Checks without cost if the condition holds; the framework writes to a file each time. */
#define REQUIRE(condition)                                                                                             \
    do {                                                                                                               \
        if (!(condition)) ck_abort_msg("%s", #condition);                                                              \
    } while (0)

static vpps_treebank *generate(const vpps_listops *options, uint32_t n) {
    vpps_treebank *tb = new_treebank();
    TEST_OK(vpps_treebank_generate_listops(tb, options, n));
    return tb;
}

static int compare_ints(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

/* Applies the operation by definition, by sorting: MED is the integer part of the mean of the middle two if n is even. */
static int apply(const char *op, int *values, int n) {
    int sum = 0;
    for (int i = 0; i < n; i++) sum += values[i];
    qsort(values, (size_t)n, sizeof *values, compare_ints);
    if (strcmp(op, "[MAX") == 0) return values[n - 1];
    if (strcmp(op, "[MIN") == 0) return values[0];
    if (strcmp(op, "[SM") == 0) return sum % 10;
    REQUIRE(strcmp(op, "[MED") == 0);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* Returns the value of a token sequence, which must be one complete list or one digit. *depth: its deepest nesting. */
static int evaluate_tokens(const char *const *tokens, uint32_t n, int *depth, int *arguments) {
    static int values[NESTING][1024];
    int n_values[NESTING] = {0};
    const char *ops[NESTING];
    int open = 0;
    for (uint32_t i = 0; i < n; i++) {
        int value;
        if (tokens[i][0] == '[') {
            REQUIRE(open + 1 < NESTING);
            ops[++open] = tokens[i];
            n_values[open] = 0;
            if (open > *depth) *depth = open;
            continue;
        }
        if (tokens[i][0] == ']') {
            REQUIRE(open > 0);
            REQUIRE(n_values[open] >= 2);
            if (n_values[open] > *arguments) *arguments = n_values[open];
            value = apply(ops[open], values[open], n_values[open]);
            open--;
        } else {
            REQUIRE(tokens[i][0] >= '0' && tokens[i][0] <= '9' && tokens[i][1] == '\0');
            value = tokens[i][0] - '0';
        }
        REQUIRE(n_values[open] < 1024);
        values[open][n_values[open]++] = value;
    }
    REQUIRE(open == 0);
    REQUIRE(n_values[0] == 1);
    return values[0][0];
}

/* Checks every label of a tree: a node's leaves are a run of the tree's tokens, since nodes are in post-order. */
static void check_tree(const vpps_treebank *tb, uint32_t t, int *depth, int *arguments) {
    static const char *tokens[1 << 14];
    static uint32_t first_token[1 << 15];
    vpps_tree tree = vpps_treebank_tree(tb, t);
    uint32_t n_tokens = 0;
    REQUIRE(tree.n_leaves < VPPS_COUNT(tokens));
    for (uint32_t i = 0; i < tree.n_nodes; i++) {
        const vpps_tree_node *node = &tree.nodes[i];
        if (node->left < 0) {
            const char *word = vpps_vocab_word(vpps_treebank_vocab(tb), node->word);
            bool digit = word[0] >= '0' && word[0] <= '9';
            REQUIRE(node->label == (digit ? word[0] - '0' : -1));
            first_token[i] = n_tokens;
            tokens[n_tokens++] = word;
            continue;
        }
        first_token[i] = first_token[node->left];
        const vpps_tree_node *right = &tree.nodes[node->right];
        if (right->left < 0 && strcmp(tokens[n_tokens - 1], "]") == 0) {
            int value = evaluate_tokens(tokens + first_token[i], n_tokens - first_token[i], depth, arguments);
            REQUIRE(node->label == value);
        } else {
            REQUIRE(node->label == -1);
        }
    }
    REQUIRE(n_tokens == tree.n_leaves);
    REQUIRE(tree.nodes[tree.n_nodes - 1].label >= 0);
}

static const vpps_listops good_options[] = {
    {.seed = 1},
    {.seed = 2, .max_depth = 1},
    {.seed = 3, .max_arguments = 2},
    {.seed = 4, .max_leaves = 4},
    {.seed = 5, .min_leaves = 64, .max_leaves = 64},
    {.seed = 6, .max_depth = 10, .max_arguments = 10, .min_leaves = 500, .max_leaves = 2000},
    {.seed = 7, .max_depth = 50, .max_arguments = 900, .max_leaves = 1000},
};

TEST_GROUP("listops", .seconds = 60);

TEST_EACH(labels_are_values, 0, VPPS_COUNT(good_options)) {
    vpps_listops o = good_options[_i];
    uint32_t n = test_scaled(2000);
    if (o.max_leaves >= 1000) n /= 20;
    OWNED(vpps_treebank) *tb = generate(&o, n);
    int depth = 0, arguments = 0;
    ck_assert_uint_eq(vpps_treebank_size(tb), n);
    for (uint32_t t = 0; t < n; t++) {
        uint32_t leaves = vpps_treebank_tree(tb, t).n_leaves;
        ck_assert_uint_ge(leaves, o.min_leaves ? o.min_leaves : 2);
        ck_assert_uint_le(leaves, o.max_leaves ? o.max_leaves : 64);
        check_tree(tb, t, &depth, &arguments);
    }
    ck_assert_int_le(depth, o.max_depth ? (int)o.max_depth : 4);
    ck_assert_int_le(arguments, o.max_arguments ? (int)o.max_arguments : 5);
    if (_i == 0) ck_assert(depth == 4 && arguments == 5); /* the limits are reached */
}

static const struct bad_options {
    vpps_listops options;
    const char *message;
} bad_options[] = {
    {{.max_depth = 1001}, "listops: expected max_depth up to 1000, found 1001"},
    {{.max_arguments = 1}, "listops: expected max_arguments of at least 2, found 1"},
    {{.max_leaves = 3}, "listops: expected max_leaves from 4 to 1000000, found 3"},
    {{.max_leaves = 1000001}, "listops: expected max_leaves from 4 to 1000000, found 1000001"},
    {{.min_leaves = 65}, "listops: expected min_leaves up to max_leaves, found 65 and 64"},
    {{.min_leaves = 20, .max_depth = 1}, "listops: expected min_leaves up to 7 (the largest tree), found 20"},
    {{.min_leaves = 5, .max_leaves = 6, .max_arguments = 2}, /* with two arguments 4, 7, 10, ... */
     "listops: no tree with 5 to 6 leaves in 100000 draws (max_depth 4, max_arguments 2)"},
};

TEST_EACH(impossible_options_are_refused, 0, VPPS_COUNT(bad_options)) {
    OWNED(vpps_treebank) *tb = new_treebank();
    CHECK_STATUS(vpps_treebank_generate_listops(tb, &bad_options[_i].options, 3), VPPS_ARGUMENT);
    ck_assert_str_eq(vpps_error_message(), bad_options[_i].message);
    ck_assert_uint_eq(vpps_treebank_size(tb), 0);
    ck_assert_uint_eq(vpps_vocab_size(vpps_treebank_vocab(tb)), 0);
    ck_assert_uint_eq(vpps_treebank_classes(tb), 0);
}

/* FNV-1a, 64 bits. */
static uint64_t checksum(const char *text, size_t n) {
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)text[i]) * 0x100000001b3u;
    return h;
}

TEST(equal_options_give_equal_trees) {
    static const uint64_t golden = 0xf4edb6a3a881ce35; /* hash of the text of 1,000 trees with seed 1 */
    size_t n, n_other;
    OWNED(vpps_treebank) *tb = generate(&(vpps_listops){.seed = 1}, 1000), *again = new_treebank(),
                         *other = generate(&(vpps_listops){.seed = 2}, 1000);
    FREED char *text = treebank_text(tb, &n), *other_text = treebank_text(other, &n_other);
    ck_assert_msg(checksum(text, n) == golden, "found 0x%016llx", (unsigned long long)checksum(text, n));
    ck_assert(n != n_other || memcmp(text, other_text, n) != 0);
    TEST_OK(vpps_treebank_read_text(again, "listops", text, n)); /* the text reads back as the same trees */
    for (uint32_t t = 0; t < 1000; t++) {
        vpps_tree a = vpps_treebank_tree(tb, t), b = vpps_treebank_tree(again, t);
        ck_assert_uint_eq(a.n_nodes, b.n_nodes);
        for (uint32_t i = 0; i < a.n_nodes; i++) REQUIRE(a.nodes[i].label == b.nodes[i].label);
    }
}

TEST(classes_are_balanced) {
    const uint32_t n = 20000;
    uint32_t counts[10] = {0}, most = 0;
    OWNED(vpps_treebank) *tb = generate(NULL, n);
    ck_assert_uint_eq(vpps_treebank_classes(tb), 10);
    for (uint32_t t = 0; t < n; t++) {
        vpps_tree tree = vpps_treebank_tree(tb, t);
        uint32_t count = ++counts[tree.nodes[tree.n_nodes - 1].label];
        if (count > most) most = count;
    }
    ck_assert_uint_le(most, n * 17 / 100);
    for (int label = 0; label < 10; label++) ck_assert_uint_ge(counts[label], n * 5 / 100);
}
