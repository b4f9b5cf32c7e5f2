/* sentences_tests.c - readers of sentences: what they accept, and what they refuse with which words. */
#include "forms.h"
#include "io/sequences.h"

#define NBSP "\xc2\xa0" /* U+00A0, part of a word */

/* ---------------------------------------------------------------- word|TAG and columns */

static const vpps_columns tabs = {.tabs = true}, comments = {.comments = true},
                          varying = {.word = 2, .tag = 1, .comments = true}, second = {.word = 2, .tag = 1},
                          tabs_3 = {.tabs = true, .word = 1, .tag = 3}, conllu = {.conllu = true},
                          lemma_xpos = {.conllu = true, .word_name = "lemma", .tag_name = "XPOS"},
                          form_deprel = {.conllu = true, .word = 2, .tag_name = "DEPREL"},
                          no_such = {.conllu = true, .tag_name = "POS"}, same = {.conllu = true, .tag_name = "FORM"};
#define U(id, form, lemma, upos, xpos) id "\t" form "\t" lemma "\t" upos "\t" xpos "\t_\t0\troot\t_\t_\n"
static const vpps_lines keep = {.keep_empty = true}, eos = {.end_word = "<eos>"},
                        keep_eos = {.end_word = "<eos>", .keep_empty = true};

static const struct good_case {
    int format;
    const void *options;
    const char *text, *shown;
} good_cases[] = {
    {TAGGED, NULL, "", ""},
    {TAGGED, NULL, "\n\r\n  \n", ""},
    {TAGGED, NULL, "a|X b|O\r\nc|O", "[a]X [b]O \n[c]O \n"},
    {TAGGED, NULL, "  a|X   b|O  \n\n", "[a]X [b]O \n"},
    {TAGGED, NULL, "||O a|b|I-X\n", "[|]O [a|b]I-X \n"},
    {TAGGED, NULL, "8" NBSP "1|O \xff|O\n", "[8" NBSP "1]O [\xff]O \n"},
    {TAGGED, NULL, "Peter|B-PER\truns|O\v.|O\fx|O\t\n \t\n", "[Peter]B-PER [runs]O [.]O [x]O \n"},
    {COLUMNS, NULL, "", ""},
    {COLUMNS, NULL, "\n\n \t\n\n", ""},
    {COLUMNS, NULL, "a X\nb\t O\r\n\r\n\n\nc O", "[a]X [b]O \n[c]O \n"},
    {COLUMNS, NULL, "a NN X \n  b VB  O\n", "[a]X [b]O \n"},
    {COLUMNS, NULL, "# X\n#a O\n", "[#]X [#a]O \n"},
    {COLUMNS, &comments, "# sent 1\na X\n#\n# sent 2\nb O\n\n#c\n", "[a]X [b]O \n"},
    {COLUMNS, &comments, "# of 4 words\na X\n# SYM\n\n#tag HT\n", "[a]X [#]SYM \n[#tag]HT \n"}, /* columns that fit */
    {COLUMNS, &comments, "#a X\n#b O\n\n#c O\n", "[#a]X [#b]O \n[#c]O \n"},
    {COLUMNS, &second, "1 a z\n2 b z\n", "[a]1 [b]2 \n"},
    {COLUMNS, &varying, "# x y\nX a\nO b\n\n# a b c d\nX c 1\n# d 1\n\nO e 1 2\n#end document\n",
     "[a]X [b]O \n[c]X [d]# \n[e]O \n"},
    {COLUMNS, &tabs, "a b\tX\n \tO\n\nc" NBSP "\tO\n", "[a b]X [ ]O \n[c" NBSP "]O \n"},
    {COLUMNS, &tabs, " a b \t X\n\t \t\n \nc\tO \n", "[a b]X \n[c]O \n"}, /* white space around columns, blank lines */
    {COLUMNS, NULL, "a\vX\nb \f O\n", "[a]X [b]O \n"},
    {COLUMNS, &tabs_3, "a\t\tX\t\nb\t1\tO\t\n", "[a]X [b]O \n"},
    {COLUMNS, NULL, "-DOCSTART- -X- O\n\na X\nb O\n-DOCSTART-\nc O\n", "[a]X [b]O \n[c]O \n"},
    {COLUMNS, &tabs, "-DOCSTART-\tO\n\na b\tX\n", "[a b]X \n"},
    {COLUMNS, &tabs, " \t-DOCSTART-\nb\tX\n -DOCSTART- X\nc\tX\n", "[ ]-DOCSTART- [b]X \n[c]X \n"},
    {COLUMNS, NULL, "a -DOCSTART-\n-DOCSTART O\n", "[a]-DOCSTART- [-DOCSTART]O \n"},
    {COLUMNS, &conllu, "", ""},
    {COLUMNS, &conllu,
     "# text = al mar\n" U("1-2", "al", "_", "_", "_") U("1", "a", "a", "ADP", "E") U("2", "el", "el", "DET", "RD")
         U("2.1", "va", "ir", "VERB", "V") U("3", "10 000", "x", "NUM", "N") "\n# c\r\n\n" U("0.1", "e", "e", "X", "X")
             U("1", "#", "#", "SYM", "S"),
     "[a]ADP [el]DET [10 000]NUM \n[#]SYM \n"},
    {COLUMNS, &conllu, "# text = a b\n1-2 ab _ _ _ _ _ _ _ _\n1  a a X X _ 0 root _ _\n2 b   b Y X _ 1 x _ _\n",
     "[a]X [b]Y \n"},
    {COLUMNS, &conllu, "#global.columns=FORM UPOS\n# c\na\tX\n#\tSYM\n", "[a]X [#]SYM \n"},
    {COLUMNS, &conllu, "# a\tb\tc\td\te\tf\tg\th\ti\tj\n" U("1", "a", "a", "X", "X"), "[a]X \n"},
    {COLUMNS, &lemma_xpos, U("1", "goes", "go", "VERB", "VBZ"), "[go]VBZ \n"},
    {COLUMNS, &form_deprel, U("1", "goes", "go", "VERB", "VBZ"), "[goes]root \n"},
    {COLUMNS, &conllu, "# global.columns = UPOS ID FORM\nX\t1\ta\nY\t2-3\tbc\nZ\t2\tb\n", "[a]X [b]Z \n"},
    {COLUMNS, &conllu, "# global.columns = FORM UPOS\n1-2\tX\n", "[1-2]X \n"},
    {LABELLED, NULL, "", ""},
    {LABELLED, NULL, "\n  \n4\ta b\r\nvery good \t c  a \n\xff\tx", "[a] [b] 4\n[c] [a] very good\n[x] \xff\n"},
    {LABELLED, NULL, "a\ta\n", "[a] a\n"},
    {LABELLED, NULL, "\v very good\f\ta\vb \f\n\t\n", "[a] [b] very good\n"},
    {LINES, NULL, "", ""},
    {LINES, NULL, " a b \n\n   \nc\r\n\r\nd", "[a] [b] \n[c] \n[d] \n"},
    {LINES, NULL, "a\tb" NBSP "c\v\xff|\f\n \t\n", "[a] [b" NBSP "c] [\xff|] \n"},
    {LINES, &keep, "\na\n  \n\nb", "\n[a] \n\n\n[b] \n"},
    {LINES, &keep, "\n", "\n"},
    {LINES, &eos, " a b \n\nc\n", "[a] [b] [<eos>] \n[c] [<eos>] \n"},
    {LINES, &keep_eos, "a\n\n", "[a] [<eos>] \n[<eos>] \n"},
    {LINES, &eos, "a <eos>\n<eos> b <eos> c\n<eos>\nd <eos> <eos> \n<eos>d\n",
     "[a] [<eos>] \n[<unk>] [b] [<unk>] [c] [<eos>] \n[<eos>] \n[d] [<unk>] [<eos>] \n[<eos>d] [<eos>] \n"},
    {LINES, NULL, "a <eos> b <eos>\n", "[a] [<eos>] [b] [<eos>] \n"},
};

TEST_GROUP("sentences");

TEST_EACH(good_text, 0, VPPS_COUNT(good_cases)) {
    const struct good_case *c = &good_cases[_i];
    form_takes(&(reading){c->format, c->options, c->text, 0, NULL, NULL}, c->shown);
}

static const struct bad_case {
    int format;
    const void *options;
    const char *text;
    size_t len; /* 0: up to the NUL */
    const char *message;
} bad_cases[] = {
    {TAGGED, NULL, "a|O b\n", 0, "t:1:5: expected word|TAG, found 'b'"},
    {TAGGED, NULL, "a|O\n\nb|O  |X\n", 0, "t:3:6: expected a word before '|', found '|X'"},
    {TAGGED, NULL, "a|O b| c|O\n", 0, "t:1:7: expected a tag after '|', found a space"},
    {TAGGED, NULL, "a|O\r\nb|\r\n", 0, "t:2:3: expected a tag after '|', found end of line"},
    {TAGGED, NULL, "a|Z c|X\nd|V e", 0, "t:2:5: expected word|TAG, found 'e'"},
    {TAGGED, NULL, "a|O\nb|", 0, "t:2:3: expected a tag after '|', found end of file"},
    {TAGGED, NULL, "\xe4\xb8\xad|O x", 0, "t:1:7: expected word|TAG, found 'x'"},
    {TAGGED, NULL, "\xe4\xb8\xad", 0, "t:1:1: expected word|TAG, found byte 0xE4"},
    {TAGGED, NULL, "a|O\nb\0|O\n", 9, "t:2:2: expected text, found byte 0x00"},
    {TAGGED, NULL, "a|O\rb|O\n", 0, "t:1:4: expected LF after CR, found CR alone"},
    {TAGGED, NULL, "a|O\r", 0, "t:1:4: expected LF after CR, found CR alone"},
    {TAGGED, NULL, "a\r\r\nb\0", 6, "t:1:2: expected LF after CR, found CR alone"},
    {COLUMNS, NULL, "a\n", 0, "t:1:1: expected at least 2 columns, found 1"},
    {COLUMNS, NULL, "\na X\nb\n", 0, "t:3:1: expected 2 columns as in line 2, found 1"},
    {COLUMNS, NULL, "a X\n\nb Y O\n", 0, "t:3:1: expected 2 columns as in line 1, found 3"},
    {COLUMNS, &comments, "# a\na X\n #b\n", 0, "t:3:1: expected 2 columns as in line 1, found 1"},
    {COLUMNS, &varying, "X a 1\nO b\n", 0, "t:2:1: expected 3 columns as in line 1, found 2"},
    {COLUMNS, &second, "a\n", 0, "t:1:1: expected at least 2 columns, found 1"},
    {COLUMNS, &tabs, "a X\n", 0, "t:1:1: expected at least 2 columns, found 1"},
    {COLUMNS, &tabs, "a\tX\n\tO\n", 0, "t:2:1: expected a word, found a tab"},
    {COLUMNS, &tabs, "a\tX\nb\t \n", 0, "t:2:3: expected a tag, found a space"},
    {COLUMNS, &tabs, "a\tX\nb\t\n", 0, "t:2:3: expected a tag, found end of line"},
    {COLUMNS, &tabs, "a\tX\nb O\n", 0, "t:2:1: expected 2 columns as in line 1, found 1"},
    {COLUMNS, &tabs_3, "a\t0\n", 0, "t:1:1: expected at least 3 columns, found 2"},
    {COLUMNS, NULL, "a X\n\0", 5, "t:2:1: expected text, found byte 0x00"},
    {COLUMNS, NULL, "-DOCSTART- -X- O\n\na X\nb X O\n", 0, "t:4:1: expected 2 columns as in line 3, found 3"},
    {COLUMNS, &conllu, "1\ta\tX\n", 0, "t:1:1: expected the 10 columns of CoNLL-U, with tabs between, found 3"},
    {COLUMNS, &conllu, "1 a a X X _ 0 root _\n", 0, "t:1:1: expected the 10 columns of CoNLL-U, found 9"},
    {COLUMNS, &conllu, U("1", "a", "a", "X", "X") "\n" U("a", "a", "a", "X", "X"), 0,
     "t:3:1: expected a word's number, a range as 3-4, or an empty node as 5.1, found 'a'"},
    {COLUMNS, &conllu, U("1-", "a", "a", "X", "X"), 0,
     "t:1:1: expected a word's number, a range as 3-4, or an empty node as 5.1, found '1-'"},
    {COLUMNS, &conllu, U("1.2.3", "a", "a", "X", "X"), 0,
     "t:1:1: expected a word's number, a range as 3-4, or an empty node as 5.1, found '1.2.3'"},
    {COLUMNS, &conllu, U("", "a", "a", "X", "X"), 0,
     "t:1:1: expected a word's number, a range as 3-4, or an empty node as 5.1, found a tab"},
    {COLUMNS, &conllu, U("1", "", "a", "X", "X"), 0, "t:1:3: expected a word, found a tab"},
    {COLUMNS, &no_such, U("1", "a", "a", "X", "X"), 0,
     "t:1:1: expected a column POS, found ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC"},
    {COLUMNS, &conllu, "# global.columns = ID FORM XPOS\n", 0, "t:1:1: expected a column UPOS, found ID FORM XPOS"},
    {COLUMNS, &conllu, "# global.columns = ID FORM UPOS\n1\ta\n", 0, "t:2:1: expected 3 columns as in line 1, found 2"},
    {LABELLED, NULL, "4\ta\nx y\n", 0, "t:2:1: expected a label, a tab and a sentence, found no tab in the line"},
    {LABELLED, NULL, "4\ta\n  \tb\n", 0, "t:2:3: expected a label before the tab, found none"},
    {LABELLED, NULL, "4\ta\n4\t \n", 0, "t:2:4: expected a sentence after the tab, found end of line"},
    {LABELLED, NULL, "4\t", 0, "t:1:3: expected a sentence after the tab, found end of file"},
    {LABELLED, NULL, "4\ta b\tc\n", 0, "t:1:6: expected spaces between words, found a second tab"},
    {LINES, NULL, "a b\nc \0d\n", 9, "t:2:3: expected text, found byte 0x00"},
    {LINES, NULL, "a\n b\r c", 0, "t:2:3: expected LF after CR, found CR alone"},
};

TEST_EACH(bad_text, 0, VPPS_COUNT(bad_cases)) {
    static const char *const before[] = {
        [TAGGED] = "a|X b|Y\n", [COLUMNS] = "a X\n", [LINES] = "a\n", [LABELLED] = "x\ta\n"};
    const struct bad_case *c = &bad_cases[_i];
    form_refuses(&(reading){c->format, c->options, c->text, c->len, NULL, c->options ? NULL : before[c->format]},
                 c->message);
}

TEST(bad_options) {
    static const char *const end_words[] = {"", "a b", "a\n", "\r", "a\tb"};
    static const vpps_columns equal[] = {{.tag = 1}, {.word = 3, .tag = 3}};
    OWNED(vpps_sentences) *s = new_sentences();
    for (size_t i = 0; i < VPPS_COUNT(end_words); i++) {
        const vpps_lines lines = {.end_word = end_words[i]};
        TEST_FAILS(vpps_sentences_read_lines_text(s, "t", "a", 1, &lines), VPPS_ARGUMENT,
                   "expected an end word without spaces and line ends");
    }
    for (size_t i = 0; i < VPPS_COUNT(equal); i++)
        TEST_FAILS(vpps_sentences_read_columns_text(s, "t", "a b c", 5, &equal[i]), VPPS_ARGUMENT,
                   "expected word and tag in different columns");
    TEST_FAILS(vpps_sentences_read_columns_text(s, "t", "", 0, &same), VPPS_ARGUMENT,
               "expected word and tag in different columns, found 2 for both");
    const vpps_columns named = {.tag_name = "NER"};
    TEST_FAILS(vpps_sentences_read_columns_text(s, "t", "a b\n", 4, &named), VPPS_ARGUMENT,
               "expected a column's number, found 'NER': CoNLL-U's have names");
    ck_assert_uint_eq(vpps_sentences_size(s), 0);
}

/* The line in which each sentence begins; a generated one has none. */
TEST(sentences_know_their_lines) {
    static const struct {
        int format;
        const void *options;
        const char *text;
        uint32_t lines[4];
    } texts[] = {{TAGGED, NULL, "\na|X\r\n\n b|O c|O\n", {2, 4}},
                 {COLUMNS, NULL, "\n-DOCSTART- O\n\na X\nb O\n\n\nc O\n", {4, 8}},
                 {COLUMNS,
                  &conllu,
                  "# 1\n" U("1-2", "a", "_", "_", "_") U("1", "a", "a", "X", "X") "\n#\n" U("1", "a", "a", "X", "X"),
                  {3, 6}},
                 {LINES, &keep, "a\n\nb", {1, 2, 3}},
                 {LABELLED, NULL, "\nx\ta\n \ny\tb\n", {2, 4}}};
    for (size_t i = 0; i < VPPS_COUNT(texts); i++) {
        OWNED(vpps_sentences) *s = new_sentences();
        const reading r = {texts[i].format, texts[i].options, texts[i].text, strlen(texts[i].text), NULL, NULL};
        TEST_OK(form_read_sentences(&r, s));
        for (uint32_t k = 0; k < 4; k++) ck_assert_uint_eq(vpps_sentences_line(s, k), texts[i].lines[k]);
    }
    OWNED(vpps_sentences) *s = new_sentences();
    TEST_OK(vpps_sentences_generate(s, NULL, NULL, NULL, 1));
    ck_assert_uint_eq(vpps_sentences_line(s, 0), 0);
    ck_assert_uint_eq(vpps_sentences_label(s, 0), VPPS_NO_WORD);
    ck_assert_ptr_null(vpps_sentences_get(s, 1).words); /* out of range */
}

/* Words of tagged sentences have lines, too. */
TEST(words_know_their_lines) {
    OWNED(vpps_sentences) *s = new_sentences(), *plain = new_sentences();
    static const char text[] = "# c c\n\na X\n#\nb O\n\nc O\n";
    TEST_OK(vpps_sentences_read_columns_text(s, "t", text, sizeof text - 1, &comments));
    TEST_OK(vpps_sentences_read_tagged_text(s, "t", "\na|X b|O\n", 9));
    static const uint32_t lines[3][3] = {{3, 5, 3}, {7, 7, 7}, {2, 2, 2}};
    for (uint32_t i = 0; i < 3; i++)
        for (uint32_t k = 0; k < 3; k++) ck_assert_uint_eq(vpps_sentences_word_line(s, i, k), lines[i][k]);
    ck_assert_uint_eq(vpps_sentences_word_line(s, 3, 0), 0);
    TEST_OK(vpps_sentences_read_lines_text(plain, "t", "\na b\n", 5, NULL));
    ck_assert_uint_eq(vpps_sentences_word_line(plain, 0, 1), 2);
}

/* Columns with '|' between them, as many as given, counted from the token's end. */
TEST(barred_text) {
    static const struct {
        vpps_bars bars;
        const char *text, *shown, *message;
    } cases[] = {{{1, 1, 2}, "a|X b|O\n", "[a]X [b]O \n", NULL},
                 {{2, 1, 3}, "a|NN|X\t|||SYM|O\n", "[a]X [||]O \n", NULL},
                 {{2, 1, 2}, "a|NN|X\n\nb|VB|O", "[a]NN \n[b]VB \n", NULL},
                 {{2, 2, 1}, "a|NN|X", "[NN]a \n", NULL},
                 {{2, 1, 3}, "a|NN|X b|O\n", NULL, "t:1:8: expected 3 columns with '|' between, found 'b|O'"},
                 {{2, 1, 3}, "a|NN|X |NN|O\n", NULL, "t:1:8: expected a word before '|', found '|NN|O'"},
                 {{2, 1, 2}, "a||X\n", NULL, "t:1:3: expected a tag after '|', found '|X'"},
                 {{2, 1, 1}, "a|b|X", NULL, "t: expected two of its 3 columns, found 1 for words and 1 for tags"},
                 {{1, 1, 3}, "a|X", NULL, "t: expected two of its 2 columns, found 1 for words and 3 for tags"}};
    for (size_t i = 0; i < VPPS_COUNT(cases); i++) {
        OWNED(vpps_sentences) *s = new_sentences();
        const vpps_status status =
            vpps_sentences_read_barred_text(s, "t", cases[i].text, strlen(cases[i].text), &cases[i].bars);
        ck_assert_int_eq(status == VPPS_OK, cases[i].message == NULL);
        ck_assert_str_eq(cases[i].message ? vpps_error_message() : sentences_shown(s),
                         cases[i].message ? cases[i].message : cases[i].shown);
    }
}

TEST(tags_for_all_or_none) {
    OWNED(vpps_sentences) *s = new_sentences(), *tagged = new_sentences();
    CHECK_STATUS(vpps_sentences_read_tagged_text(s, "t", "a", 1), VPPS_FORMAT);
    TEST_OK(vpps_sentences_read_lines_text(s, "t", "a\n", 2, NULL)); /* nothing was decided before */
    TEST_FAILS(vpps_sentences_read_tagged_text(s, "t", "a|X", 3), VPPS_STATE,
               "expected text without tags, as the 1 sentences before, found text with");
    ck_assert_ptr_null(vpps_sentences_get(s, 0).tags);
    TEST_OK(vpps_sentences_read_tagged_text(tagged, "t", "a|X", 3));
    CHECK_STATUS(vpps_sentences_read_lines_text(tagged, "t", "a\n", 2, NULL), VPPS_STATE);
    TEST_FAILS(vpps_sentences_read_labelled_text(tagged, "t", "x\ta\n", 4), VPPS_STATE,
               "expected text with tags, as the 1 sentences before, found text with labels");
    ck_assert_str_eq(sentences_shown(tagged), "[a]X \n");
}

/* ---------------------------------------------------------------- parallel text */

static vpps_status read_pair(vpps_sentences *a, vpps_sentences *b, const char *x, const char *y,
                             const vpps_parallel *options) {
    return vpps_sentences_read_parallel_texts(a, b, "x", x, strlen(x), "y", y, strlen(y), options);
}

TEST(parallel_text) {
    static const vpps_parallel skip = {.skip_empty = true}, end = {.end_word = "</s>"};
    static const struct {
        const char *x, *y;
        const vpps_parallel *options;
        const char *message;
    } bad[] = {
        {"a\nb\n", "c\n", NULL, "expected as many lines in both files, found 2 in x and 1 in y"},
        {"a", "c\nd", &skip, "expected as many lines in both files, found 1 in x and 2 in y"},
        {"a\n\n", "c\n\n\nd", &skip, "expected as many lines in both files, found 2 in x and 4 in y"},
        {"a\n \nb\n", "c\nd\ne\n", NULL,
         "x:2:1: expected a sentence (its line in the other file), found a line without words"},
        {"a\nb\n", "c\n\r\n", NULL,
         "y:2:1: expected a sentence (its line in the other file), found a line without words"},
        {"\n", "\n", NULL, "x:1:1: expected a sentence (its line in the other file), found a line without words"},
        {"a\rb", "c", NULL, "x:1:2: expected LF after CR, found CR alone"},
        {"a", "c\r", NULL, "y:1:2: expected LF after CR, found CR alone"},
    };
    OWNED(vpps_sentences) *a = new_sentences(), *b = new_sentences();
    TEST_OK(read_pair(a, b, "", "", NULL));
    TEST_OK(read_pair(a, b, "", "\n \t\n", NULL)); /* blank lines at the end of one file */
    TEST_OK(read_pair(a, b, "a b\nc", "d\r\ne f\r\n", &end));
    ck_assert_str_eq(sentences_shown(a), "[a] [b] \n[c] \n");
    ck_assert_str_eq(sentences_shown(b), "[d] [</s>] \n[e] [f] [</s>] \n");
    for (size_t i = 0; i < VPPS_COUNT(bad); i++) {
        CHECK_STATUS(read_pair(a, b, bad[i].x, bad[i].y, bad[i].options), VPPS_FORMAT);
        ck_assert_str_eq(vpps_error_message(), bad[i].message);
    }
    TEST_OK(read_pair(a, b, "g\n\nh\ni\n\n", "j\nk\n \nl\n", &skip));
    ck_assert_str_eq(sentences_shown(a), "[a] [b] \n[c] \n[g] \n[i] \n");
    ck_assert_str_eq(sentences_shown(b), "[d] [</s>] \n[e] [f] [</s>] \n[j] \n[l] \n");
    ck_assert_uint_eq(vpps_vocab_find(vpps_sentences_vocab(a), "h", 1), VPPS_NO_WORD);
    CHECK_STATUS(read_pair(a, a, "a", "b", NULL), VPPS_ARGUMENT);
    CHECK_STATUS(read_pair(a, b, "a", "b", &(vpps_parallel){.end_word = ""}), VPPS_ARGUMENT);
    TEST_OK(vpps_sentences_read_lines_text(a, "t", "m\n", 2, NULL));
    TEST_FAILS(read_pair(a, b, "a", "b", NULL), VPPS_STATE,
               "expected as many sentences before on both sides, found 5 and 4");
}

TEST(parallel_files) {
    OWNED(vpps_sentences) *a = new_sentences(), *b = new_sentences();
    folder_make();
    const char *one = folder_path("one.txt"), *two = folder_path("two.txt"), *absent = folder_path("absent");
    folder_store(one, "a b", 3);
    folder_store(two, "", 0);
    TEST_FAILS(vpps_sentences_read_parallel_files(a, b, absent, two, NULL), VPPS_IO, "absent: cannot be opened");
    TEST_FAILS(vpps_sentences_read_parallel_files(a, b, two, absent, NULL), VPPS_IO, "absent: cannot be opened");
    TEST_FAILS(vpps_sentences_read_parallel_files(a, b, one, two, NULL), VPPS_FORMAT, "one.txt and 0 in ");
    CHECK_MESSAGE("two.txt");
    folder_store(two, "c", 1);
    TEST_OK(vpps_sentences_read_parallel_files(a, b, one, two, NULL));
    ck_assert_str_eq(sentences_shown(a), "[a] [b] \n");
    ck_assert_str_eq(sentences_shown(b), "[c] \n");
}
