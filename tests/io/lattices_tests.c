/* lattices_tests.c - lattices built from characters and a lexicon. */
#include "forms.h"

TEST_GROUP("lattices", .seconds = 60);

TEST(lexicon) {
    static const struct {
        const char *text, *message;
    } bad[] = {{"a 1 n\n b 2 v\n", "t:2:1: expected a word, found a space"},
               {"a 1 n\n\t2 v\n", "t:2:1: expected a word, found a tab"},
               {"a\rb\n", "t:1:2: expected LF after CR, found CR alone"}};
    form_takes(
        &(reading){LEXICON, NULL, "ab 7 n\r\nc\n\na b \t 1 x\n\r\ncd\t12\nab 9\tv\nef\v3\n \t\n\n", 0, NULL, NULL},
        "ab\nc\na b\ncd\nab 9\nef");
    for (size_t i = 0; i < VPPS_COUNT(bad); i++)
        form_refuses(&(reading){LEXICON, NULL, bad[i].text, 0, NULL, NULL}, bad[i].message);
}

/* Ids of characters: a 0, b 1, c 2; of the lexicon's words: in the order below. */
TEST(built_from_characters) {
    static const char words[] = "a\nab\nabc\nbc\nca\naaaaaaaa\naaaaaaaaa\n";
    OWNED(vpps_sentences) *s = new_sentences(), *untagged = new_sentences();
    OWNED(vpps_vocab) *v = new_vocab();
    TEST_OK(vpps_lexicon_read_text(v, "t", words, sizeof words - 1));
    TEST_OK(vpps_sentences_read_tagged_text(s, "t", "a|O b|X c|Y a|O\nb|Y", 19));
    OWNED(vpps_lattices) *l = new_lattices(), *long_ones = new_lattices();
    TEST_OK(vpps_lattices_build(l, s, v));
    ck_assert_str_eq(lattices_shown(l), "0[ ] 0[ 0:0c ] 1[ 1:1c 0:1w ] 2[ 2:2c 1:3w 0:2w ] 0[ 3:0c 2:4w ] \n"
                                        "0[ ] 2[ 0:1c ] \n");
    ck_assert_ptr_null(vpps_lattices_get(l, 2).tags); /* out of range */
    ck_assert_uint_eq(vpps_lattices_tags(l), 3);
    ck_assert_uint_eq(vpps_lattices_characters(l), 3);
    ck_assert_uint_eq(vpps_lattices_words(l), 5);
    static const vpps_lines keep = {.keep_empty = true};
    TEST_OK(vpps_sentences_read_lines_text(untagged, "t", "\na a a a a a a a a\n", 19, &keep));
    TEST_OK(vpps_lattices_build(long_ones, untagged, v));
    ck_assert_str_eq(lattices_shown(long_ones),
                     "0[ ] \n0[ ] 0[ 0:0c ] 0[ 1:0c ] 0[ 2:0c ] 0[ 3:0c ] 0[ 4:0c ] 0[ 5:0c ] 0[ 6:0c ] "
                     "0[ 7:0c 0:5w ] 0[ 8:0c 1:5w ] \n");
}

/* Numbers of words of 2 to 8 characters. A dictionary of strings outside this project also counted them; they round to the description's 0.267, 0.267
 * and 0.276 words per character. */
static const struct weibo_file {
    const char *name;
    uint32_t characters, words;
    double words_per_character;
} weibo_files[] = {{"weibo_ner/weiboNER.conll.train", 73780, 19730, 0.267},
                   {"weibo_ner/weiboNER.conll.dev", 14509, 3867, 0.267},
                   {"weibo_ner/weiboNER.conll.test", 14844, 4104, 0.276},
                   {"weibo_ner/weiboNER_2nd_conll.train", 73778, 19729, 0.267},
                   {"weibo_ner/weiboNER_2nd_conll.dev", 14509, 3867, 0.267},
                   {"weibo_ner/weiboNER_2nd_conll.test", 14842, 4100, 0.276}};

TEST(lattices_of_weibo) {
    const char *path = data_file("lattices_of_weibo", "weibo_ner/lexicon.txt");
    if (!path) return;
    OWNED(vpps_vocab) *v = new_vocab();
    TEST_OK(vpps_lexicon_read_file(v, path));
    ck_assert_uint_eq(vpps_vocab_size(v), 109750);
    for (size_t f = 0; f < VPPS_COUNT(weibo_files); f++) {
        path = data_file("lattices_of_weibo", weibo_files[f].name);
        if (!path) break;
        OWNED(vpps_lattices) *l = new_lattices();
        OWNED(vpps_sentences) *s = new_sentences();
        TEST_OK(vpps_sentences_read_columns_file(s, path, NULL));
        TEST_OK(vpps_lattices_build(l, s, v));
        uint32_t words = 0, nodes = 0;
        for (uint32_t i = 0; i < vpps_lattices_size(l); i++) {
            const vpps_lattice lattice = vpps_lattices_get(l, i);
            nodes += lattice.n_nodes;
            for (uint32_t a = 0; a < lattice.first_arc[lattice.n_nodes]; a++) words += !lattice.arcs[a].is_character;
        }
        ck_assert_uint_eq(nodes, weibo_files[f].characters + vpps_sentences_size(s));
        ck_assert_uint_eq(words, weibo_files[f].words);
        ck_assert_double_eq_tol((double)words / weibo_files[f].characters, weibo_files[f].words_per_character, 0.0005);
    }
}

TEST(lattices_have_the_lines_of_sentences) {
    static const char sentences[] = "\na X\n\nb X";
    static const uint32_t lines[] = {2, 4, 0};
    OWNED(vpps_lattices) *l = new_lattices();
    OWNED(vpps_sentences) *s = new_sentences();
    OWNED(vpps_vocab) *words = new_vocab();
    TEST_OK(vpps_sentences_read_columns_text(s, "t", sentences, sizeof sentences - 1, NULL));
    TEST_OK(vpps_lattices_build(l, s, words));
    for (uint32_t i = 0; i < VPPS_COUNT(lines); i++) ck_assert_uint_eq(vpps_lattices_line(l, i), lines[i]);
}
