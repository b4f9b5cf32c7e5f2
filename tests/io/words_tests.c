/* words_tests.c - vocabularies cut by frequency, maps between them, words as characters. */
#include "io_tests.h"

TEST_GROUP("words");

TEST(cut_and_map) {
    static const char text[] = "b a a\n<unk> c b a d\n";
    static const uint32_t wanted_counts[] = {2, 3, 1, 1, 1}; /* b a <unk> c d */
    static const uint32_t wanted_map[] = {1, 2, 0, 0, 0}, wanted_strict[] = {1, 2, 0, VPPS_NO_WORD, VPPS_NO_WORD};
    OWNED(vpps_sentences) *s = new_sentences();
    OWNED(vpps_vocab) *v, *all;
    FREED uint32_t *counts, *map, *strict;
    FREED char *words, *all_words;
    TEST_OK(vpps_sentences_read_lines_text(s, "t", text, sizeof text - 1, NULL));
    TEST_OK(vpps_sentences_counts(s, &counts));
    ck_assert_mem_eq(counts, wanted_counts, sizeof wanted_counts);
    TEST_OK(vpps_vocab_cut(&v, vpps_sentences_vocab(s), counts, 2));
    TEST_OK(vpps_vocab_to_text(v, &words));
    ck_assert_str_eq(words, "<unk>\nb\na");
    TEST_OK(vpps_vocab_map(vpps_sentences_vocab(s), v, 0, &map));
    ck_assert_mem_eq(map, wanted_map, sizeof wanted_map);
    TEST_OK(vpps_vocab_map(vpps_sentences_vocab(s), v, VPPS_NO_WORD, &strict));
    ck_assert_mem_eq(strict, wanted_strict, sizeof wanted_strict);
    TEST_OK(vpps_vocab_cut(&all, vpps_sentences_vocab(s), NULL, 2));
    TEST_OK(vpps_vocab_to_text(all, &all_words));
    ck_assert_str_eq(all_words, "<unk>\nb\na\nc\nd");
}

TEST(counts_of_trees) {
    static const char text[] = "(0 (1 a) (0 (0 b) (1 a)))\n(0 a)\n";
    FREED uint32_t *counts;
    OWNED(vpps_treebank) *tb = new_treebank();
    TEST_OK(vpps_treebank_read_text(tb, "t", text, sizeof text - 1));
    TEST_OK(vpps_treebank_counts(tb, &counts));
    ck_assert_uint_eq(counts[0], 3);
    ck_assert_uint_eq(counts[1], 1);
}

/* Writes a code point as UTF-8, even a surrogate. */
static uint32_t encode(uint32_t c, unsigned char *text) {
    if (c < 0x80) return text[0] = (unsigned char)c, 1;
    const uint32_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (uint32_t i = n - 1; i > 0; i--, c >>= 6) text[i] = (unsigned char)(0x80 | (c & 0x3f));
    text[0] = (unsigned char)((0xf00u >> n & 0xff) | c);
    return n;
}

TEST(every_code_point_is_a_character) {
    for (uint32_t c = 0; c < 0x110000 + 0x1000; c++) {
        unsigned char text[5];
        const uint32_t n = encode(c, text);
        text[n] = 'x';
        const bool valid = (c < 0xd800 || c > 0xdfff) && c < 0x110000;
        const uint32_t found = vpps_utf8_character((const char *)text, n + 1);
        if (found != (valid ? n : 1)) ck_abort_msg("U+%04X: %u bytes", c, found);
        for (uint32_t cut = 1; cut < n; cut++) { /* a character that is cut off is single bytes */
            if (vpps_utf8_character((const char *)text, cut) != 1) ck_abort_msg("U+%04X cut at %u", c, cut);
        }
    }
}

TEST(bad_bytes_are_characters) {
    /* clang-format off */
    static const char *const bad[] = {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf", "\xed\xa0\x80",
                                      "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "\xe4\xb8x", "\xf0\x9f\x98\xc0"};
    /* clang-format on */
    for (size_t i = 0; i < VPPS_COUNT(bad); i++) { ck_assert_uint_eq(vpps_utf8_character(bad[i], strlen(bad[i])), 1); }
}

TEST(words_as_characters) {
    static const char text[] = "na\xc3\xafve a \xe4\xb8\xad\xff\xe6\x96\x87 \xf0\x9f\x98\x80\xf0\x9f\n";
    static const struct {
        uint32_t n;
        const char *characters[6];
    } wanted[] = {{5, {"n", "a", "\xc3\xaf", "v", "e"}},
                  {1, {"a"}},
                  {3, {"\xe4\xb8\xad", "\xff", "\xe6\x96\x87"}},
                  {3, {"\xf0\x9f\x98\x80", "\xf0", "\x9f"}}};
    vpps_spellings *spellings;
    uint32_t n;
    OWNED(vpps_sentences) *s = new_sentences();
    TEST_OK(vpps_spellings_create(&spellings, vpps_sentences_vocab(s)));
    ck_assert_ptr_null(vpps_spellings_word(spellings, 0, &n));
    vpps_spellings_destroy(spellings);
    TEST_OK(vpps_sentences_read_lines_text(s, "t", text, sizeof text - 1, NULL));
    TEST_OK(vpps_spellings_create(&spellings, vpps_sentences_vocab(s)));
    for (uint32_t w = 0; w < VPPS_COUNT(wanted); w++) {
        const uint32_t *ids = vpps_spellings_word(spellings, w, &n);
        ck_assert_uint_eq(n, wanted[w].n);
        for (uint32_t i = 0; i < n; i++)
            ck_assert_str_eq(vpps_vocab_word(vpps_spellings_vocab(spellings), ids[i]), wanted[w].characters[i]);
    }
    ck_assert_ptr_null(vpps_spellings_word(spellings, VPPS_COUNT(wanted), &n));
    ck_assert_uint_eq(n, 0);
    ck_assert_uint_eq(vpps_vocab_size(vpps_spellings_vocab(spellings)), 11);
    vpps_spellings_destroy(spellings);
}
