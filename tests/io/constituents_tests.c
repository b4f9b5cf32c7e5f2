/* constituents_tests.c - n-ary trees: reading them, and making them binary without loss. */
#include "forms.h"

static vpps_constituents *new_constituents(vpps_labels labels) {
    vpps_constituents *c;
    TEST_OK(vpps_constituents_create(&c, labels));
    return c;
}

static vpps_status read_string(vpps_constituents *c, const char *text) {
    return vpps_constituents_read_text(c, "t", text, strlen(text));
}

/* ---------------------------------------------------------------- trees as text */

/* Prints a binary tree with its labels; with `undone`, the n-ary tree from which it was made: a label A+B is two brackets, and a node whose label
 * ends in '*' is none. */
static void print_binary(const vpps_treebank *tb, const vpps_vocab *labels, vpps_tree tree, int32_t i, bool undone,
                         FILE *file) {
    const vpps_tree_node *node = &tree.nodes[i];
    const char *label = vpps_vocab_word(labels, (uint32_t)node->label);
    const bool hidden = undone && label[strlen(label) - 1] == '*' && node->left >= 0;
    uint32_t brackets = hidden ? 0 : 1;
    if (!hidden) fputc('(', file);
    for (const char *p = label; *p && !hidden; p++) {
        if (undone && *p == '+') {
            fputs(" (", file);
            brackets++;
        } else {
            fputc(*p, file);
        }
    }
    if (node->left < 0) fprintf(file, " %s", vpps_vocab_word(vpps_treebank_vocab(tb), node->word));
    for (int side = 0; side < 2 && node->left >= 0; side++) {
        if (!hidden || side) fputc(' ', file);
        print_binary(tb, labels, tree, side ? node->right : node->left, undone, file);
    }
    while (brackets-- > 0) fputc(')', file);
}

static char *binary_text(const vpps_treebank *tb, const vpps_vocab *labels, bool undone, size_t *n) {
    char *text;
    FILE *file = open_memstream(&text, n);
    for (uint32_t i = 0; i < vpps_treebank_size(tb); i++) {
        const vpps_tree tree = vpps_treebank_tree(tb, i);
        print_binary(tb, labels, tree, (int32_t)tree.n_nodes - 1, undone, file);
        fputc('\n', file);
    }
    ck_assert_int_eq(fclose(file), 0);
    return text;
}

/* ---------------------------------------------------------------- reading */

static const struct good_text {
    const char *text, *written; /* NULL: as read */
} good_texts[] = {
    {"", NULL},
    {"\n\r\n  \n", ""},
    {"(A a)", "(A a)\n"},
    {"(ROOT (S (NP (DT The) (NN dog)) (VP (VBZ barks)) (. .)))\n", NULL},
    {"( A  ( B b )(C c) ( D\xc2\xa0 d ) ) \r\n\n(-LRB- [)\r\n", "(A (B b) (C c) (D\xc2\xa0 d))\n(-LRB- [)\n"},
    {"(A (A (A (A a))) (A (A a)))\n", NULL},
    {"(\xff \x01)\n", NULL},
    {"(A\tB)\n(S (NP\t(PRP\tit)\v) (VP\t\f(VBZ is)))\n", "(A B)\n(S (NP (PRP it)) (VP (VBZ is)))\n"},
    {"( (S (A a) (B b)))\n((S a))\n(\n (A a))", "(ROOT (S (A a) (B b)))\n(ROOT (S a))\n(ROOT (A a))\n"},
    {"\n( (S \n    (NP-SBJ \n      (NP (NNP A) )\r\n\n\t(, ,) )\n    (. .) ))\n( (X x) )\n",
     "(ROOT (S (NP-SBJ (NP (NNP A)) (, ,)) (. .)))\n(ROOT (X x))\n"},
    {"(A\n a\n)\n(B\nb\n )", "(A a)\n(B b)\n"},
    {"(A (-NONE- *) (B-1 b))\n", NULL}, /* unless labels are cut */
};

TEST_GROUP("constituents", .seconds = 60);

TEST_EACH(good_text, 0, VPPS_COUNT(good_texts)) {
    const struct good_text *g = &good_texts[_i];
    form_takes(&(reading){CONSTITUENTS, NULL, g->text, 0, NULL, NULL}, g->written ? g->written : g->text);
}

static const struct bad_text {
    const char *text, *message;
} bad_texts[] = {
    {"x", "t:1:1: expected '(', found 'x'"},
    {"(", "t:1:2: expected a label, found end of file"},
    {"(A ( (S a)))", "t:1:6: expected a label, found '('"},
    {"( ( (S a)))", "t:1:5: expected a label, found '('"},
    {"( )", "t:1:3: expected a label, found ')'"},
    {"(\n(A a)", "t:1:2: expected a label, found end of line"},
    {"( (A a)\n  (B b)\n\n( (C c) )\n", "t:2:8: expected '(' or ')', found end of line"},
    {"( (A a)\n  (B b)\n  \n\n", "t:2:8: expected '(' or ')', found end of line"},
    {"(A a)\n  (B b) x\n", "t:2:9: expected end of line after the tree, found 'x'"},
    {"(A (B b)\n c)", "t:2:2: expected '(' or ')', found 'c'"},
    {"(A\n(B b))", "t:1:3: expected a word or '(', found end of line"},
    {"()", "t:1:2: expected a label, found ')'"},
    {"(A", "t:1:3: expected a word or '(', found end of file"},
    {"(A)", "t:1:3: expected a word or '(', found ')'"},
    {"(A \r\n", "t:1:4: expected a word or '(', found end of line"},
    {"(A a", "t:1:5: expected ')' after the word, found end of file"},
    {"(A a b)", "t:1:6: expected ')' after the word, found 'b'"},
    {"(A a (B b))", "t:1:6: expected ')' after the word, found '('"},
    {"(A (B b) c)", "t:1:10: expected '(' or ')', found 'c'"},
    {"(A (B b)", "t:1:9: expected '(' or ')', found end of file"},
    {"(A (B b)\n(C c))", "t:1:9: expected '(' or ')', found end of line"},
    {"(A a))", "t:1:6: expected end of line after the tree, found ')'"},
    {"(A a) (B b)", "t:1:7: expected end of line after the tree, found '('"},
    {"(A a)\n\n(B b\rc)", "t:3:5: expected LF after CR, found CR alone"},
};

TEST_EACH(bad_text, 0, VPPS_COUNT(bad_texts)) {
    form_refuses(&(reading){CONSTITUENTS, NULL, bad_texts[_i].text, 0, NULL, "(X (Y x) (Z y))\n"},
                 bad_texts[_i].message);
}

static const vpps_labels cut = VPPS_LABELS_CUT;

TEST(labels_are_cut) {
    static const char text[] =
        "(S-TPC-1 (NP=2 (NN a)) (-LRB- [) (=X b) (A- c) (S|<VP-.> (NP-SBJ-TTL d) (very-good-1 e)))\n";
    form_takes(&(reading){CONSTITUENTS, &cut, text, 0, NULL, NULL},
               "(S (NP (NN a)) (-LRB- [) (=X b) (A- c) (S|<VP-.> (NP d) (very-good e)))\n");
}

/* Labels as written, whose function tags may be removed later; null elements are removed at once. */
TEST(labels_are_cut_later) {
    static const char text[] = "(S (NP-SBJ-1 (NN a)) (VP-X (NP (-NONE- *T*-1) (-NONE- none)) (VP b)))\n";
    OWNED(vpps_constituents) *c = new_constituents(VPPS_LABELS_WHOLE);
    size_t n;
    TEST_OK(read_string(c, "(S (NP-SBJ a) (NP-OBJ b))"));
    ck_assert(!vpps_constituents_look_penn(c)); /* no VP */
    TEST_OK(read_string(c, text));
    ck_assert(vpps_constituents_look_penn(c));
    ck_assert_uint_eq(vpps_vocab_size(vpps_constituents_labels(c)), 9);
    FREED char *written = constituents_text(c, &n);
    ck_assert_str_eq(written, "(S (NP-SBJ a) (NP-OBJ b))\n"
                              "(S (NP-SBJ-1 (NN a)) (VP-X (NP (-NONE- none)) (VP b)))\n");
    const vpps_vocab *labels = vpps_constituents_labels(c);
    const char *before = vpps_vocab_word(labels, 3); /* lives as long as the vocabulary */
    TEST_OK(vpps_constituents_cut(c));
    ck_assert_ptr_eq(vpps_constituents_labels(c), labels);
    ck_assert_str_eq(before, "NP-SBJ-1");
    ck_assert_uint_eq(vpps_vocab_size(vpps_constituents_labels(c)), 5);
    FREED char *cut_text = constituents_text(c, &n);
    ck_assert_str_eq(cut_text, "(S (NP a) (NP b))\n(S (NP (NN a)) (VP (NP (-NONE- none)) (VP b)))\n");
}

/* The rest has words; no label or word of what is left out remains. */
TEST(null_elements_are_left_out) {
    static const char text[] = "( (S (NP-SBJ-1 (-NONE- *)) (VP (VBD fell) (S (NP (-NONE- *-1) )\n"
                               " (VP (TO to) ))) (-NONE- 0) ))\n"
                               "( (X (-NONE- *) (Y (-NONE- 0))))\n"
                               "(-NONE- *)\n"
                               "(-NONE- (A a))\n"
                               "(NONE b)\n";
    OWNED(vpps_constituents) *c = new_constituents(VPPS_LABELS_CUT);
    size_t n;
    TEST_OK(read_string(c, text));
    FREED char *written = constituents_text(c, &n);
    ck_assert_str_eq(written, "(ROOT (S (VP (VBD fell) (S (VP (TO to))))))\n(-NONE- (A a))\n(NONE b)\n");
    ck_assert_uint_eq(vpps_constituents_size(c), 3);
    ck_assert_uint_eq(vpps_constituents_tree(c, 0).n_leaves, 2);
    ck_assert_ptr_null(vpps_constituents_tree(c, 3).nodes); /* out of range */
    ck_assert_uint_eq(vpps_vocab_size(vpps_constituents_vocab(c)), 4);
}

/* ---------------------------------------------------------------- binary trees */

static const struct binary_case {
    const char *text, *left, *right;
} binary_cases[] = {
    {"(A a)", "(A a)\n", "(A a)\n"},
    {"(R (S (N a)))", "(R+S+N a)\n", "(R+S+N a)\n"},
    {"(A (B b) (C c))", "(A (B b) (C c))\n", "(A (B b) (C c))\n"},
    {"(A (B b) (C c) (D d))", "(A (A* (B b) (C c)) (D d))\n", "(A (B b) (A* (C c) (D d)))\n"},
    {"(A (B b) (C c) (D d) (E e))", "(A (A* (A* (B b) (C c)) (D d)) (E e))\n",
     "(A (B b) (A* (C c) (A* (D d) (E e))))\n"},
    {"(R (S (N (D a) (J b) (N c)) (V (V d)) (. .)))", "(R+S (S* (N (N* (D a) (J b)) (N c)) (V+V d)) (. .))\n",
     "(R+S (N (D a) (N* (J b) (N c))) (S* (V+V d) (. .)))\n"},
    {"(A (B (C (D d) (E e) (F f))) (G g) (H (I i)))", "(A (A* (B+C (C* (D d) (E e)) (F f)) (G g)) (H+I i))\n",
     "(A (B+C (D d) (C* (E e) (F f))) (A* (G g) (H+I i)))\n"},
};

/* Checks for post-order: children before parents, the right child just before its parent. */
static void check_post_order(vpps_tree tree, uint32_t classes) {
    uint32_t leaves = 0;
    for (uint32_t i = 0; i < tree.n_nodes; i++) {
        const vpps_tree_node *node = &tree.nodes[i];
        if (node->label < 0 || node->label >= (int32_t)classes) ck_abort_msg("label %d", node->label);
        leaves += node->left < 0;
        if (node->left >= 0 && !(node->left < node->right && node->right == (int32_t)i - 1)) ck_abort_msg("node %u", i);
    }
    ck_assert_uint_eq(leaves, tree.n_leaves);
    ck_assert_uint_eq(tree.n_nodes, 2 * leaves - 1);
}

/* Checks both binary forms of c: they are in post-order and, undone, give c's own text. */
static void check_binarised(const vpps_constituents *c, const char *const wanted[2]) {
    size_t n, n_undone, n_shown;
    FREED char *text = constituents_text(c, &n);
    for (int right = 0; right < 2; right++) {
        OWNED(vpps_treebank) *tb = new_treebank();
        OWNED(vpps_vocab) *labels = new_vocab();
        TEST_OK(vpps_constituents_binarise(c, right ? VPPS_RIGHT_BRANCHING : VPPS_LEFT_BRANCHING, labels, tb));
        ck_assert_uint_eq(vpps_treebank_classes(tb), vpps_vocab_size(labels));
        ck_assert_uint_eq(vpps_treebank_size(tb), vpps_constituents_size(c));
        for (uint32_t i = 0; i < vpps_treebank_size(tb); i++) {
            check_post_order(vpps_treebank_tree(tb, i), vpps_treebank_classes(tb));
            ck_assert_uint_eq(vpps_treebank_tree(tb, i).n_leaves, vpps_constituents_tree(c, i).n_leaves);
        }
        FREED char *undone = binary_text(tb, labels, true, &n_undone),
                   *shown = binary_text(tb, labels, false, &n_shown);
        ck_assert(n == n_undone && memcmp(undone, text, n) == 0);
        if (wanted) ck_assert_str_eq(shown, wanted[right]);
    }
}

TEST_EACH(binarised, 0, VPPS_COUNT(binary_cases)) {
    const struct binary_case *b = &binary_cases[_i];
    OWNED(vpps_constituents) *c = new_constituents(VPPS_LABELS_RAW);
    TEST_OK(read_string(c, b->text));
    check_binarised(c, (const char *const[2]){b->left, b->right});
}

/* Labels keep the ids that the vocabulary has already; the treebank keeps its trees. */
TEST(binarised_parts_share_labels) {
    OWNED(vpps_constituents) *train = new_constituents(VPPS_LABELS_RAW), *dev = new_constituents(VPPS_LABELS_RAW);
    OWNED(vpps_treebank) *tb = new_treebank();
    OWNED(vpps_vocab) *labels = new_vocab();
    TEST_OK(read_string(train, "(A (B b) (C c))\n(D b)"));
    TEST_OK(read_string(dev, "(C (A a) (B c))"));
    TEST_OK(vpps_constituents_binarise(train, VPPS_LEFT_BRANCHING, labels, tb));
    TEST_OK(vpps_constituents_binarise(dev, VPPS_LEFT_BRANCHING, labels, tb));
    size_t n;
    FREED char *text = treebank_text(tb, &n);
    ck_assert_str_eq(text, "(2 (0 b) (1 c))\n(3 b)\n(1 (2 a) (0 c))\n");
}

#define DEEP 100000

/* Deep trees need no recursion: a chain, and a comb to either side. */
TEST_EACH(depth_is_limited_by_memory_only, 0, 3) {
    size_t n;
    FREED char *text = NULL;
    FILE *file = open_memstream(&text, &n);
    for (int i = 0; i < DEEP; i++) fputs(_i == 2 ? "(A (B a) " : "(A ", file);
    fputs("(C c)", file);
    for (int i = 0; i < DEEP; i++) fputs(_i == 1 ? " (B b))" : ")", file);
    ck_assert_int_eq(fclose(file), 0);
    OWNED(vpps_constituents) *c = new_constituents(VPPS_LABELS_RAW);
    TEST_OK(vpps_constituents_read_text(c, "deep", text, n));
    OWNED(vpps_treebank) *tb = new_treebank();
    OWNED(vpps_vocab) *labels = new_vocab();
    TEST_OK(vpps_constituents_binarise(c, VPPS_RIGHT_BRANCHING, labels, tb));
    TEST_OK(vpps_constituents_binarise(c, VPPS_LEFT_BRANCHING, labels, tb));
    ck_assert_uint_eq(vpps_treebank_tree(tb, 1).n_leaves, _i == 0 ? 1 : DEEP + 1);
    check_post_order(vpps_treebank_tree(tb, 0), vpps_treebank_classes(tb));
    check_post_order(vpps_treebank_tree(tb, 1), vpps_treebank_classes(tb));
}

/* ---------------------------------------------------------------- real data */

static const struct treebank_file {
    const char *name;
    uint32_t trees, leaves, nodes, shortest, longest, depth, arity, labels, words;
    double binary, unary; /* percent of the inner nodes, to more digits than the description has; 0: unknown */
} treebank_files[] = {{"treebank/wsj_sample.txt", 3914, 94084, 171459, 1, 249, 30, 32, 682, 11968, 51.45, 23.53},
                      {"treebank/gum.train.txt", 10224, 177410, 334569, 1, 110, 34, 39, 108, 17954, 46.75, 30.63},
                      {"treebank/gum.dev.txt", 1575, 28119, 53459, 1, 90, 32, 19, 102, 5127, 0, 0},
                      {"treebank/gum.test.txt", 1464, 28397, 53231, 1, 134, 33, 19, 103, 5630, 0, 0}};

/* Returns the number of nodes on the longest path down from the root, from the depths of subtrees. */
static uint32_t tree_depth(vpps_constituent_tree tree) {
    FREED uint32_t *depth = calloc(tree.n_nodes, sizeof *depth);
    for (uint32_t i = 0; i < tree.n_nodes; i++) {
        uint32_t child = i - 1;
        for (uint32_t k = 0; k < tree.nodes[i].n_children; k++, child -= tree.nodes[child].n_nodes)
            depth[i] = vpps_max_u32(depth[i], depth[child]);
        depth[i]++;
    }
    const uint32_t deepest = depth[tree.n_nodes - 1];
    return deepest;
}

TEST_EACH(treebanks, 0, VPPS_COUNT(treebank_files)) {
    const struct treebank_file *f = &treebank_files[_i];
    const char *path = data_file("treebanks", f->name);
    if (!path) return;
    OWNED(vpps_constituents) *c = new_constituents(VPPS_LABELS_RAW);
    TEST_OK(vpps_constituents_read_file(c, path));
    uint32_t leaves = 0, nodes = 0, shortest = UINT32_MAX, longest = 0, depth = 0, arity = 0, binary = 0, unary = 0;
    for (uint32_t i = 0; i < vpps_constituents_size(c); i++) {
        const vpps_constituent_tree tree = vpps_constituents_tree(c, i);
        leaves += tree.n_leaves;
        nodes += tree.n_nodes;
        shortest = vpps_min_u32(shortest, tree.n_leaves);
        longest = vpps_max_u32(longest, tree.n_leaves);
        depth = vpps_max_u32(depth, tree_depth(tree));
        for (uint32_t k = 0; k < tree.n_nodes; k++) {
            arity = vpps_max_u32(arity, tree.nodes[k].n_children);
            binary += tree.nodes[k].n_children == 2;
            unary += tree.nodes[k].n_children == 1;
        }
    }
    ck_assert_uint_eq(vpps_constituents_size(c), f->trees);
    ck_assert_uint_eq(leaves, f->leaves);
    ck_assert_uint_eq(nodes, f->nodes);
    ck_assert_uint_eq(shortest, f->shortest);
    ck_assert_uint_eq(longest, f->longest);
    ck_assert_uint_eq(depth, f->depth);
    ck_assert_uint_eq(arity, f->arity);
    ck_assert_uint_eq(vpps_vocab_size(vpps_constituents_labels(c)), f->labels);
    ck_assert_uint_eq(vpps_vocab_size(vpps_constituents_vocab(c)), f->words);
    if (f->binary > 0) {
        ck_assert_double_eq_tol(100.0 * binary / (nodes - leaves), f->binary, 0.005);
        ck_assert_double_eq_tol(100.0 * unary / (nodes - leaves), f->unary, 0.005);
    }
    check_binarised(c, NULL);
}
