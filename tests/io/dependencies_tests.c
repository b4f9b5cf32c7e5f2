/* dependencies_tests.c - the reader of dependency trees: what it accepts, and what it refuses with which words. */
#include "forms.h"

#define W(id, form, head, deprel) id "\t" form "\t_\t_\t_\t_\t" head "\t" deprel "\t_\t_\n"

static const vpps_dependencies whole = {0}, cut = {.cut_subtypes = true}, heads_only = {.heads_only = true},
                               labelled = {.label = "mood"}, one_root = {.heads_only = true, .label = "mood"};

/* ---------------------------------------------------------------- what is accepted */

static const struct good_case {
    const vpps_dependencies *how;
    const char *text, *shown;
} good_cases[] = {
    {NULL, "", ""},
    {&whole, "\n \t\n# nothing\n", ""},
    {&whole, W("1", "it", "2", "nsubj:pass") W("2", "was", "0", "root") "\n" W("1", "done", "0", "root"),
     "it<2 nsubj:pass was<0 root \ndone<0 root \n"},
    {&cut, W("1", "it", "2", "nsubj:pass") W("2", "was", "0", "root:") W("3", "x", "2", ":"),
     "it<2 nsubj was<0 root x<2 : \n"},
    /* multiword tokens and empty nodes, which may lack words, heads and relations; comments inside */
    {NULL,
     "# text = al mar\r\n" W("0.1", "_", "_", "_") W("1-2", "al", "_", "_")
         W("1", "a", "3", "case") "# c\n" W("2", "el", "3", "det") W("2.1", "", "", "") W("3", "mar", "0", "root"),
     "a<3 case el<3 det mar<0 root \n"},
    {NULL, W("1", "10 000", "2", "x") W("2", "#", "0", "y z") " \n", "10 000<2 x #<0 y z \n"},
    /* trees need not be projective, and a sentence may have several roots */
    {NULL, W("1", "a", "3", "x") W("2", "b", "4", "y") W("3", "c", "0", "r") W("4", "d", "0", "r"),
     "a<3 x b<4 y c<0 r d<0 r \n"},
    {&heads_only, "# mood = sad\n# mood =\n" W("1", "a", "0", "_"), "a<0  \n"},
    {&one_root, "# mood =\n" W("1", "a", "0", ""), "a<0  \n"},
    {&labelled,
     "# mood = very sad \n#mood2 = x\n# x mood = y\n" W("1", "a", "0", "_") "\n#mood=glad\n" W("1", "a", "2", "_")
         W("2", "b", "0", "_") "\n# text = mood\n" W("1", "b", "0", "root"),
     "a<0  very sad\na<2  b<0  glad\nb<0  \n"},
};

TEST_GROUP("dependencies");

TEST_EACH(good_text, 0, VPPS_COUNT(good_cases)) {
    form_takes(&(reading){DEPENDENCIES, good_cases[_i].how, good_cases[_i].text, 0, NULL, NULL}, good_cases[_i].shown);
}

TEST(trees_know_their_lines) {
    static const char text[] = "\n# c\n" W("1-2", "ab", "_", "_") W("1", "a", "0", "r") "#\n" W("2", "b", "1", "x");
    static const vpps_dependencies *const how[] = {&whole, &heads_only, &labelled};
    for (size_t i = 0; i < VPPS_COUNT(how); i++) {
        OWNED(vpps_sentences) *s = new_sentences();
        TEST_OK(vpps_sentences_read_dependencies_text(s, "t", text, sizeof text - 1, how[i]));
        ck_assert_uint_eq(vpps_sentences_line(s, 0), 4);
        ck_assert_uint_eq(vpps_sentences_word_line(s, 0, 0), 4);
        ck_assert_uint_eq(vpps_sentences_word_line(s, 0, 1), 6);
    }
}

/* ---------------------------------------------------------------- what is refused */

static const struct bad_case {
    const vpps_dependencies *how;
    const char *text, *message;
} bad_cases[] = {
    {NULL, "1\ta\t0\n", "t:1:1: expected the 10 columns of CoNLL-U, with tabs between, found 3"},
    {NULL, "1 a _ _ _ _ 0 root _ _\n", "t:1:1: expected the 10 columns of CoNLL-U, with tabs between, found 1"},
    {NULL, W("1", "a", "0", "r") "1\ta\t_\t_\t_\t_\t0\tr\t_\t_\t_\n",
     "t:2:1: expected the 10 columns of CoNLL-U, with tabs between, found 11"},
    {NULL, W("2", "a", "0", "r"),
     "t:1:1: expected the word's number 1, a range as 3-4, or an empty node as 5.1, found '2'"},
    {NULL, W("1", "a", "0", "r") W("3", "a", "1", "x"),
     "t:2:1: expected the word's number 2, a range as 3-4, or an empty node as 5.1, found '3'"},
    {NULL, W("a", "a", "0", "r"),
     "t:1:1: expected the word's number 1, a range as 3-4, or an empty node as 5.1, found 'a'"},
    {NULL, W("1-", "a", "0", "r"),
     "t:1:1: expected the word's number 1, a range as 3-4, or an empty node as 5.1, found '1-'"},
    {NULL, W("1", "", "0", "r"), "t:1:3: expected a word, found a tab"},
    {NULL, W("1", "a", "_", "r"), "t:1:13: expected a head: the number of another word, or 0, found '_'"},
    {NULL, W("1", "a", "1", "r"), "t:1:13: expected a head: the number of another word, or 0, found '1'"},
    {NULL, W("1", "a", "-1", "r"), "t:1:13: expected a head: the number of another word, or 0, found '-1'"},
    {NULL, W("1", "a", "4294967295", "r"),
     "t:1:13: expected a head: the number of another word, or 0, found '4294967295'"},
    {NULL, W("1", "a", "18446744073709551616", "r"),
     "t:1:13: expected a head: the number of another word, or 0, found '18446744073709551616'"},
    {NULL, W("1", "a", "2", "r") W("2", "b", "3", "x") "\n" W("1", "c", "0", "r"),
     "t:2:13: expected a head: 0 to 2, the number of the last word, found '3'"},
    {NULL, W("1", "a", "0", "_"), "t:1:15: expected a relation, found '_'"},
    {NULL, W("1", "a", "0", ""), "t:1:15: expected a relation, found a tab"},
    {NULL, W("1", "a", "2", "x") W("2", "b", "1", "x"), "t:2:13: expected a head that leads to a root, found a circle"},
    {&heads_only, W("1", "a", "0", "r") W("2", "b", "3", "x") W("3", "c", "4", "x") W("4", "c", "3", "x"),
     "t:3:13: expected a head that leads to a root, found a circle"},
    {&labelled, W("1", "a", "0", "r") W("2", "b", "0", "r"), "t:2:13: expected one root, which is word 1, found '0'"},
    {&one_root, W("1", "a", "0", "r") W("2", "b", "0", "r"), "t:2:13: expected one root, which is word 1, found '0'"},
    {&labelled, "# mood = \n" W("1", "a", "0", "r"), "t:1:10: expected a label, found end of line"},
    {&labelled, "# mood = a\n# mood = a\n" W("1", "a", "0", "r"),
     "t:2:3: expected one label for the sentence, found a second one"},
    {&labelled, "# mood = a\n\n" W("1", "a", "0", "r"), "t:1:10: expected a sentence below its label, found none"},
    {&labelled, "# mood = a", "t:1:10: expected a sentence below its label, found none"},
    {NULL, "\r", "t:1:1: expected LF after CR, found CR alone"},
};

TEST_EACH(bad_text, 0, VPPS_COUNT(bad_cases)) {
    const struct bad_case *c = &bad_cases[_i];
    form_refuses(&(reading){DEPENDENCIES, c->how, c->text, 0, NULL, W("1", "a", "0", "r")}, c->message);
}

TEST(trees_and_other_sentences_do_not_mix) {
    static const char text[] = W("1", "a", "0", "r");
    OWNED(vpps_sentences) *trees = new_sentences(), *lines = new_sentences();
    TEST_OK(vpps_sentences_read_dependencies_text(trees, "t", text, sizeof text - 1, &heads_only));
    TEST_FAILS(vpps_sentences_read_lines_text(trees, "t", "a", 1, NULL), VPPS_STATE,
               "expected text without tags and heads, as the 1 sentences before, found text without tags");
    CHECK_STATUS(vpps_sentences_read_dependencies_text(trees, "t", "", 0, NULL), VPPS_STATE);
    TEST_OK(vpps_sentences_read_lines_text(lines, "t", "a", 1, NULL));
    ck_assert_ptr_null(vpps_sentences_get(lines, 0).heads);
    CHECK_STATUS(vpps_sentences_read_dependencies_text(lines, "t", "", 0, &heads_only), VPPS_STATE);
}

/* A chain as long as memory allows, with a circle at its end. */
TEST_EACH(depth_is_limited_by_memory_only, 0, 2) {
    enum { WORDS = 200000 };
    const int n = (int)test_scaled(WORDS);
    FREED char *text = NULL;
    size_t len;
    FILE *file = open_memstream(&text, &len);
    for (int k = 1; k < n; k++) fprintf(file, "%d\ta\t\t\t\t\t%d\tx\t\t\n", k, k + 1);
    fprintf(file, "%d\ta\t\t\t\t\t%d\tx\t\t\n", n, _i ? 1 : 0);
    ck_assert_int_eq(fclose(file), 0);
    OWNED(vpps_sentences) *s = new_sentences();
    const vpps_status status = vpps_sentences_read_dependencies_text(s, "t", text, len, NULL);
    ck_assert_str_eq(vpps_status_name(status), vpps_status_name(_i ? VPPS_FORMAT : VPPS_OK));
    if (!_i) ck_assert_uint_eq(vpps_sentences_get(s, 0).heads[n - 2], (uint32_t)n);
}
