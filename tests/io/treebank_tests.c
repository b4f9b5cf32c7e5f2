/* treebank_tests.c - bracketed trees and vocabularies: what readers accept, and what they refuse with which words. */
#include "forms.h"

#define NBSP "\xc2\xa0" /* U+00A0, part of a word: three leaves of the Stanford Sentiment Treebank have it */

static vpps_status read_string(vpps_treebank *tb, const char *text) {
    return vpps_treebank_read_text(tb, "t", text, strlen(text));
}

TEST_GROUP("vocab");

TEST(vocab_gives_dense_ids) {
    OWNED(vpps_vocab) *v = new_vocab();
    ck_assert_uint_eq(vpps_vocab_find(v, "w0", 2), VPPS_NO_WORD);
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < 20000; i++) {
            char word[32];
            uint32_t id;
            int len = snprintf(word, sizeof word, "%.*sw%u", (int)(i % 12), "aaaaaaaaaaaa", i);
            TEST_OK(vpps_vocab_add(v, word, (size_t)len, &id));
            ck_assert_uint_eq(id, i);
            ck_assert_uint_eq(vpps_vocab_find(v, word, (size_t)len), i);
            ck_assert_str_eq(vpps_vocab_word(v, i), word);
        }
    }
    ck_assert_uint_eq(vpps_vocab_size(v), 20000);
    ck_assert_uint_eq(vpps_vocab_find(v, "w", 1), VPPS_NO_WORD);
    ck_assert_ptr_null(vpps_vocab_word(v, 20000));
}

TEST(vocab_refuses_words_that_text_cannot_hold) {
    uint32_t id;
    OWNED(vpps_vocab) *v = new_vocab();
    CHECK_STATUS(vpps_vocab_add(v, "", 0, &id), VPPS_ARGUMENT);
    CHECK_STATUS(vpps_vocab_add(v, "a\nb", 3, &id), VPPS_ARGUMENT);
    CHECK_STATUS(vpps_vocab_add(v, "a\0b", 3, &id), VPPS_ARGUMENT);
    ck_assert_uint_eq(vpps_vocab_size(v), 0);
}

TEST(vocab_text_round_trip) {
    static const char *const good[] = {"", "a", "a\nb", "the\n" NBSP "\n[MAX\n]\nlonger than eight bytes"};
    static const struct {
        const char *text, *message;
    } bad[] = {{"\n", "vocabulary:1:1: expected a word, found an empty line"},
               {"a\n", "vocabulary:2:1: expected a word, found an empty line"},
               {"a\n\nb", "vocabulary:2:1: expected a word, found an empty line"},
               {"a\nb\na", "vocabulary:3:1: expected a new word, found 'a' of line 1"}};
    for (size_t i = 0; i < VPPS_COUNT(good); i++) {
        OWNED(vpps_vocab) *v;
        FREED char *text;
        TEST_OK(vpps_vocab_from_text(&v, good[i]));
        TEST_OK(vpps_vocab_to_text(v, &text));
        ck_assert_str_eq(text, good[i]);
    }
    for (size_t i = 0; i < VPPS_COUNT(bad); i++) {
        vpps_vocab *v;
        CHECK_STATUS(vpps_vocab_from_text(&v, bad[i].text), VPPS_FORMAT);
        ck_assert_str_eq(vpps_error_message(), bad[i].message);
        ck_assert_ptr_null(v);
    }
}

TEST_GROUP("treebank", .seconds = 60);

TEST(nodes_are_in_post_order) {
    OWNED(vpps_treebank) *tb = new_treebank();
    TEST_OK(read_string(tb, "(3 (2 It) (4 (-1 's) (12 It)))\n"));
    ck_assert_uint_eq(vpps_treebank_size(tb), 1);
    ck_assert_uint_eq(vpps_treebank_classes(tb), 13);
    static const vpps_tree_node wanted[] = {
        {2, -1, -1, 0}, {-1, -1, -1, 1}, {12, -1, -1, 0}, {4, 1, 2, VPPS_NO_WORD}, {3, 0, 3, VPPS_NO_WORD}};
    vpps_tree tree = vpps_treebank_tree(tb, 0);
    ck_assert_uint_eq(tree.n_nodes, 5);
    ck_assert_uint_eq(tree.n_leaves, 3);
    ck_assert_mem_eq(tree.nodes, wanted, sizeof wanted);
    ck_assert_ptr_null(vpps_treebank_tree(tb, 1).nodes);
    CHECK_STATUS(vpps_treebank_write(tb, 1, stderr), VPPS_ARGUMENT);
    FILE *full = fopen("/dev/full", "w"); /* a full disk */
    if (!full) return;
    setvbuf(full, NULL, _IONBF, 0);
    CHECK_STATUS(vpps_treebank_write(tb, 0, full), VPPS_IO);
    fclose(full);
}

static const struct good_text {
    const char *text, *written; /* NULL: as read */
} good_texts[] = {
    {"", NULL},
    {"\n\r\n\n", ""},
    {"(0 a)", "(0 a)\n"},
    {"(0 a)\n", NULL},
    {"(0 a)\n\xef\xbb\xbf(1 b)\n", "(0 a)\n(1 b)\n"}, /* joined files */
    {"(0 a)\r\n\r\n(-1 b)\r\n", "(0 a)\n(-1 b)\n"},
    {"(999 (0 -LRB-) (10 -RRB-))\n", NULL},
    {"(2 8" NBSP "1\\/2)\n", NULL},
    {"(2 \xff\x01)\n", NULL},
    {"(3\ta)\n", "(3 a)\n"}, /* white space of any kind, and none beside brackets */
    {" ( 3 \v (2\fa\t)(4  b ) ) \n", "(3 (2 a) (4 b))\n"},
    {"(3\n  (2 a)\r\n\n\t(4\n b)\n )\n(1 c)\n", "(3 (2 a) (4 b))\n(1 c)\n"}, /* over several lines */
    {"(7 (-1 (-1 (-1 [MAX) (3 3)) (7 7)) (-1 ]))\n", NULL},
    {"(1 (1 1) (-1 -1))\n\n\n(2 2)", "(1 (1 1) (-1 -1))\n(2 2)\n"},
};

TEST_EACH(good_text, 0, VPPS_COUNT(good_texts)) {
    const struct good_text *c = &good_texts[_i];
    form_takes(&(reading){TREES, NULL, c->text, 0, NULL, NULL}, c->written ? c->written : c->text);
}

static const struct bad_text {
    const char *text, *message;
} bad_texts[] = {
    {"(7 (6 c) (0 a))\n(8 (1 d) (2 e) ", "t:2:16: expected ')' after the second subtree, found end of file"},
    {"x", "t:1:1: expected '(', found 'x'"},
    {"(0 a)\n \xef\xbb\xbf(0 a)", "t:2:2: expected '(', found byte 0xEF"}, /* the mark may only begin a line */
    {"(", "t:1:2: expected a label from -1 to 999, found end of file"},
    {"()", "t:1:2: expected a label from -1 to 999, found ')'"},
    {"(x a)", "t:1:2: expected a label from -1 to 999, found 'x'"},
    {"(-2 a)", "t:1:2: expected a label from -1 to 999, found '-2'"},
    {"(-10 a)", "t:1:2: expected a label from -1 to 999, found '-10'"},
    {"(- a)", "t:1:2: expected a label from -1 to 999, found '-'"},
    {"(1000 a)", "t:1:2: expected a label from -1 to 999, found '1000'"},
    {"(99999999999999999999 a)", "t:1:2: expected a label from -1 to 999, found '99999999999999999999'"},
    {"(007 a)", "t:1:2: expected a label from -1 to 999, found '007'"},
    {"(3", "t:1:3: expected a word or '(', found end of file"},
    {"(3a b)", "t:1:2: expected a label from -1 to 999, found '3a'"},
    {"(3 ", "t:1:4: expected a word or '(', found end of file"},
    {"(3 )", "t:1:4: expected a word or '(', found ')'"},
    {"(3 \r\n", "t:1:4: expected a word or '(', found end of line"},
    {"(3 a", "t:1:5: expected ')' after the word, found end of file"},
    {"(3 a b)", "t:1:6: expected ')' after the word, found 'b'"},
    {"(3 a\n(1 b)", "t:1:5: expected ')' after the word, found end of line"},
    {"(3 a(2 b))", "t:1:5: expected ')' after the word, found '('"},
    {"(3 a\r)", "t:1:5: expected LF after CR, found CR alone"},
    {"(3 (2 a))", "t:1:9: expected a second subtree, found ')'"},
    {"(3 (2 a) b)", "t:1:10: expected a second subtree, found 'b'"},
    {"(3 (2 a)\n(2 b))", "t:1:9: expected a second subtree, found end of line"},
    {"(3 (2 a) (2 b)", "t:1:15: expected ')' after the second subtree, found end of file"},
    {"(3 (2 a) (2 b) (2 c))", "t:1:16: expected ')' after the second subtree, found '('"},
    {"(0 a))", "t:1:6: expected end of line after the tree, found ')'"},
    {"(0 a)\r", "t:1:6: expected LF after CR, found CR alone"},
    {"(0 a) (0 b)", "t:1:7: expected end of line after the tree, found '('"},
    {"(0 a)\n\n(1 b)\r\n(2 c\n", "t:4:5: expected ')' after the word, found end of line"},
    {"(0 8" NBSP "1)\n(1 caf\xc3\xa9 x)", "t:2:10: expected ')' after the word, found 'x'"},
};

TEST_EACH(bad_text, 0, VPPS_COUNT(bad_texts)) {
    const struct bad_text *c = &bad_texts[_i];
    form_refuses(&(reading){TREES, NULL, c->text, 0, NULL, "(1 (0 a) (2 b))\n"}, c->message);
}

#define DEEP 100000

/* A tree of DEEP levels, with the deep side on the left (0) or right (1); its text comes back unchanged. */
TEST_EACH(depth_is_limited_by_memory_only, 0, 2) {
    size_t n;
    FREED char *text = NULL;
    FILE *file = open_memstream(&text, &n);
    for (int i = 0; i < DEEP; i++) fputs(_i == 0 ? "(1 " : "(1 (0 a) ", file);
    fputs("(2 b)", file);
    for (int i = 0; i < DEEP; i++) fputs(_i == 0 ? " (0 a))" : ")", file);
    fputc('\n', file);
    ck_assert_int_eq(fclose(file), 0);
    OWNED(vpps_treebank) *tb = new_treebank();
    TEST_OK(vpps_treebank_read_text(tb, "deep", text, n));
    ck_assert_uint_eq(vpps_treebank_tree(tb, 0).n_leaves, DEEP + 1);
    size_t written_bytes;
    FREED char *written = treebank_text(tb, &written_bytes);
    ck_assert_uint_eq(written_bytes, n);
    ck_assert(memcmp(written, text, n) == 0);
    CHECK_STATUS(vpps_treebank_read_text(tb, "deep", text, n - 2), VPPS_FORMAT);
    ck_assert_uint_eq(vpps_treebank_size(tb), 1);
}

/* The table in the data set's description: trees, leaves, nodes and word types of each file. */
static const struct sst_file {
    const char *name;
    uint32_t trees, leaves, nodes, types;
} sst_files[] = {{"sst/train.txt", 8544, 163563, 318582, 18280},
                 {"sst/dev.txt", 1101, 21274, 41447, 5374},
                 {"sst/test.txt", 2210, 42405, 82600, 8547}};

TEST(stanford_sentiment_treebank) {
    uint32_t trees = 0;
    OWNED(vpps_treebank) *all = new_treebank();
    for (size_t f = 0; f < VPPS_COUNT(sst_files); f++) {
        const struct sst_file *wanted = &sst_files[f];
        const char *path = data_file("stanford_sentiment_treebank", wanted->name);
        if (!path) return;
        OWNED(vpps_treebank) *tb = new_treebank();
        TEST_OK(vpps_treebank_read_file(tb, path));
        TEST_OK(vpps_treebank_read_file(all, path));
        uint32_t leaves = 0, nodes = 0;
        for (uint32_t i = 0; i < vpps_treebank_size(tb); i++) {
            leaves += vpps_treebank_tree(tb, i).n_leaves;
            nodes += vpps_treebank_tree(tb, i).n_nodes;
        }
        ck_assert_uint_eq(vpps_treebank_size(tb), wanted->trees);
        ck_assert_uint_eq(leaves, wanted->leaves);
        ck_assert_uint_eq(nodes, wanted->nodes);
        ck_assert_uint_eq(vpps_vocab_size(vpps_treebank_vocab(tb)), wanted->types);
        ck_assert_uint_eq(vpps_treebank_classes(tb), 5);
        size_t n, n_file;
        FREED char *text = treebank_text(tb, &n), *file = folder_load(path, &n_file);
        ck_assert(n == n_file && memcmp(text, file, n) == 0); /* the file is in canonical form */
        trees += wanted->trees;
    }
    ck_assert_uint_eq(vpps_treebank_size(all), trees);
    ck_assert_uint_eq(vpps_vocab_size(vpps_treebank_vocab(all)), 21701);
}

/* The line in which each tree begins, with numbers as labels, with names, and made binary; a generated one has none. */
TEST(trees_know_their_lines) {
    static const char text[] = "(0 a)\r\n\n(0 b)", names[] = "\n( (S\n (A a)\n (B b) (C c)))\n\n(A a)";
    OWNED(vpps_treebank) *tb = new_treebank(), *binary = new_treebank();
    OWNED(vpps_constituents) *c;
    OWNED(vpps_vocab) *labels = new_vocab();
    TEST_OK(vpps_constituents_create(&c, VPPS_LABELS_CUT));
    TEST_OK(read_string(tb, text));
    TEST_OK(vpps_treebank_generate_listops(tb, NULL, 1));
    TEST_OK(vpps_constituents_read_text(c, "t", names, sizeof names - 1));
    TEST_OK(vpps_constituents_binarise(c, VPPS_LEFT_BRANCHING, labels, binary));
    static const uint32_t lines[] = {1, 3, 0, 0}, lines_of_names[] = {2, 6, 0};
    for (uint32_t i = 0; i < 4; i++) ck_assert_uint_eq(vpps_treebank_line(tb, i), lines[i]);
    for (uint32_t i = 0; i < 3; i++) {
        ck_assert_uint_eq(vpps_constituents_line(c, i), lines_of_names[i]);
        ck_assert_uint_eq(vpps_treebank_line(binary, i), lines_of_names[i]);
    }
}
