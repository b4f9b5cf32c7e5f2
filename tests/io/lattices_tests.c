/* lattices_tests.c - lattices of ids as text, and lattices built from characters and a lexicon. */
#include "forms.h"

TEST_GROUP("lattices", .seconds = 60);

TEST(good_text) {
    static const struct {
        const char *text, *shown;
        uint32_t tags, characters, words;
    } good[] = {
        {"0", "", 0, 0, 0},
        {" 0 \n\n", "", 0, 0, 0},
        {"1 1 7 0", "7[ ] \n", 8, 0, 0},
        {"1\n3\n0 5 4\n0\n1 0 9\n2 1 8 0 77\n", "0[ ] 5[ 0:9c ] 4[ 1:8c 0:77w ] \n", 6, 10, 78},
        {"2\r\n1\r\n0\r\n0\r\n2\t0 1\t0 1 0 4294967294", "0[ ] \n0[ ] 1[ 0:4294967294c ] \n", 2, UINT32_MAX, 0},
    };
    for (size_t i = 0; i < VPPS_COUNT(good); i++) {
        OWNED(vpps_lattices) *l = new_lattices();
        TEST_OK(vpps_lattices_read_text(l, "t", good[i].text, strlen(good[i].text)));
        ck_assert_str_eq(lattices_shown(l), good[i].shown);
        ck_assert_uint_eq(vpps_lattices_tags(l), good[i].tags);
        ck_assert_uint_eq(vpps_lattices_characters(l), good[i].characters);
        ck_assert_uint_eq(vpps_lattices_words(l), good[i].words);
    }
}

static const struct bad_text {
    const char *text, *message;
} bad_texts[] = {
    {"", "t:1:1: expected the number of lattices, found end of file"},
    {"x", "t:1:1: expected the number of lattices, found 'x'"},
    {"-1", "t:1:1: expected the number of lattices, found '-1'"},
    {"1x", "t:1:1: expected the number of lattices, found '1x'"},
    {"4294967295", "t:1:1: expected the number of lattices, found '4294967295'"},
    {"99999999999999999999999", "t:1:1: expected the number of lattices, found '99999999999999999999999'"},
    {"4000000000", "t:1:11: expected the number of nodes, found end of file"},
    {"0 7", "t:1:3: expected the end after 0 lattices, found '7'"},
    {"1 1 0 0\n7", "t:2:1: expected the end after 1 lattice, found '7'"},
    {"1 0", "t:1:3: expected at least 1 node, found '0'"},
    {"1 4000000000 1", "t:1:15: expected the tag of a node, found end of file"},
    {"1\n2 0 a", "t:2:5: expected the tag of a node, found 'a'"},
    {"1\n2 0 1\n1 0 0", "t:3:1: expected 0 arcs into node 0, found '1'"},
    {"1\n2 0 1\n0\n0\n", "t:4:1: expected an arc into every node but node 0, found '0'"},
    {"1\n2 0 1\n0\n4000000000 0 1", "t:4:15: expected the node an arc is from, found end of file"},
    {"1\n2 0 1\n0\n1 1 1", "t:4:3: expected the character's arc, from node 0, found '1'"},
    {"1\n3 0 1 1\n0\n1 0 1\n1 0 1", "t:5:3: expected the character's arc, from node 1, found '0'"},
    {"1\n3 0 1 1\n0\n1 0 1\n2 1 1 1 5", "t:5:7: expected a word's arc, from a node below 1, found '1'"},
    {"1\n3 0 1 1\n0\n1 0 1\n2 1 1 2 5", "t:5:7: expected a word's arc, from a node below 1, found '2'"},
    {"2\n3 9 9 9\n0\n1 0 99\n2 1 98 0 97\nx", "t:6:1: expected the number of nodes, found 'x'"},
    {"1\n2 0 1\n0\n1 0\n", "t:5:1: expected the id of an arc, found end of file"},
    {"1\n2 0 1\n0\n1 0 4294967295", "t:4:5: expected the id of an arc, found '4294967295'"},
    {"1\n2 0 1\n0\n1 0 1.5", "t:4:5: expected the id of an arc, found '1.5'"},
};

TEST_EACH(bad_text, 0, VPPS_COUNT(bad_texts)) {
    form_refuses(&(reading){LATTICES, NULL, bad_texts[_i].text, 0, NULL, "1 2 0 1 0 1 0 3"}, bad_texts[_i].message);
}

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

static const struct lattice_file {
    const char *name;
    uint32_t lattices, nodes, shortest, longest;
    double arcs_per_node, words_per_node;
    uint32_t characters, words, tags;
} lattice_files[] = {{"lattice_ids/train.txt", 1147, 50618, 3, 211, 1.506, 0.529, 2211, 10129, 17},
                     {"lattice_ids/dev.txt", 113, 5600, 12, 151, 1.565, 0.586, 2255, 10965, 16},
                     {"lattice_ids/test.txt", 316, 14721, 5, 195, 1.413, 0.435, 2576, 13651, 15}};

TEST_EACH(lattices_of_ids, 0, VPPS_COUNT(lattice_files)) {
    static const uint32_t train_spans[] = {0, 0, 23045, 3011, 558, 122, 30, 5, 6};
    const struct lattice_file *f = &lattice_files[_i];
    const char *path = data_file("lattices_of_ids", f->name);
    if (!path) return;
    uint32_t nodes = 0, arcs = 0, words = 0, shortest = UINT32_MAX, longest = 0, spans[16] = {0};
    OWNED(vpps_lattices) *l = new_lattices();
    TEST_OK(vpps_lattices_read_file(l, path));
    ck_assert_uint_eq(vpps_lattices_size(l), f->lattices);
    for (uint32_t i = 0; i < f->lattices; i++) {
        const vpps_lattice lattice = vpps_lattices_get(l, i);
        nodes += lattice.n_nodes;
        arcs += lattice.first_arc[lattice.n_nodes];
        shortest = vpps_min_u32(shortest, lattice.n_nodes);
        longest = vpps_max_u32(longest, lattice.n_nodes);
        for (uint32_t n = 0; n < lattice.n_nodes; n++) {
            for (uint32_t a = lattice.first_arc[n]; a < lattice.first_arc[n + 1]; a++) {
                words += !lattice.arcs[a].is_character;
                spans[vpps_min_u32(n - lattice.arcs[a].from, 15)]++;
            }
        }
    }
    ck_assert_uint_eq(nodes, f->nodes);
    ck_assert_uint_eq(shortest, f->shortest);
    ck_assert_uint_eq(longest, f->longest);
    ck_assert_uint_eq(spans[1], arcs - words);
    ck_assert_double_eq_tol((double)arcs / nodes, f->arcs_per_node, 0.0005);
    ck_assert_double_eq_tol((double)words / nodes, f->words_per_node, 0.0005);
    ck_assert_uint_eq(vpps_lattices_characters(l), f->characters + 1);
    ck_assert_uint_eq(vpps_lattices_words(l), f->words + 1);
    ck_assert_uint_eq(vpps_lattices_tags(l), f->tags + 1);
    for (uint32_t span = 2; _i == 0 && span < 16; span++)
        ck_assert_uint_eq(spans[span], span < VPPS_COUNT(train_spans) ? train_spans[span] : 0);
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

/* The line in which each lattice begins; a built one has its sentence's line. */
TEST(lattices_know_their_lines) {
    static const char text[] = "3\n2 0 1\n0\n1 0 5\n\n1 0 0 1\n1\n0", sentences[] = "\na X\n\nb X";
    static const uint32_t lines[] = {2, 6, 6, 2, 4, 0};
    OWNED(vpps_lattices) *l = new_lattices();
    OWNED(vpps_sentences) *s = new_sentences();
    OWNED(vpps_vocab) *words = new_vocab();
    TEST_OK(vpps_lattices_read_text(l, "t", text, sizeof text - 1));
    TEST_OK(vpps_sentences_read_columns_text(s, "t", sentences, sizeof sentences - 1, NULL));
    TEST_OK(vpps_lattices_build(l, s, words));
    for (uint32_t i = 0; i < VPPS_COUNT(lines); i++) ck_assert_uint_eq(vpps_lattices_line(l, i), lines[i]);
}
