/* sentences_data_tests.c - real data compared with the tables in the data sets' descriptions. */
#include "io_tests.h"

typedef struct totals {
    uint32_t sentences, shortest, longest, types;
    uint64_t words;
} totals;

static totals count(const vpps_sentences *s) {
    totals t = {vpps_sentences_size(s), UINT32_MAX, 0, vpps_vocab_size(vpps_sentences_vocab(s)), 0};
    for (uint32_t i = 0; i < t.sentences; i++) {
        const uint32_t n = vpps_sentences_get(s, i).n_words;
        t.words += n;
        t.shortest = vpps_min_u32(t.shortest, n);
        t.longest = vpps_max_u32(t.longest, n);
    }
    ck_assert_uint_eq(t.words, vpps_sentences_total_words(s));
    return t;
}

/* Checks totals; where the table has no number, `wanted` has 0. */
static void check_totals(const vpps_sentences *s, totals wanted) {
    const totals found = count(s);
    ck_assert_uint_eq(found.sentences, wanted.sentences);
    ck_assert_uint_eq(found.words, wanted.words);
    ck_assert_uint_eq(found.longest, wanted.longest);
    if (wanted.shortest) ck_assert_uint_eq(found.shortest, wanted.shortest);
    if (wanted.types) ck_assert_uint_eq(found.types, wanted.types);
}

static uint32_t tag_count(const vpps_sentences *s, const char *tag) {
    const uint32_t id = vpps_vocab_find(vpps_sentences_tag_vocab(s), tag, strlen(tag));
    uint32_t n = 0;
    for (uint32_t i = 0; i < vpps_sentences_size(s); i++) {
        const vpps_sentence sentence = vpps_sentences_get(s, i);
        for (uint32_t k = 0; k < sentence.n_words; k++) n += sentence.tags[k] == id;
    }
    return n;
}

static const struct wikiner_file {
    const char *name;
    totals totals;
    uint32_t frequent, characters, n_tags, outside, person;
} wikiner_files[] = {{"wikiner/train.txt", {10000, 2, 135, 25719, 248038}, 5515, 261, 9, 213949, 11318},
                     {"wikiner/dev.txt", {1696, 1, 144, 8504, 39007}, 1078, 155, 5, 32576, 1634}};

TEST_GROUP("sentences_data", .seconds = 60);

TEST_EACH(wikiner, 0, VPPS_COUNT(wikiner_files)) {
    const struct wikiner_file *f = &wikiner_files[_i];
    const char *path = data_file("wikiner", f->name);
    if (!path) return;
    OWNED(vpps_sentences) *s = new_sentences();
    vpps_spellings *spellings;
    vpps_vocab *frequent;
    FREED uint32_t *counts;
    TEST_OK(vpps_sentences_read_tagged_file(s, path));
    check_totals(s, f->totals);
    ck_assert_uint_eq(vpps_vocab_size(vpps_sentences_tag_vocab(s)), f->n_tags);
    ck_assert_uint_eq(tag_count(s, "O"), f->outside);
    ck_assert_uint_eq(tag_count(s, "I-PER"), f->person);
    TEST_OK(vpps_sentences_counts(s, &counts));
    TEST_OK(vpps_vocab_cut(&frequent, vpps_sentences_vocab(s), counts, 5));
    ck_assert_uint_eq(vpps_vocab_size(frequent), f->frequent + 1);
    TEST_OK(vpps_spellings_create(&spellings, vpps_sentences_vocab(s)));
    ck_assert_uint_eq(vpps_vocab_size(vpps_spellings_vocab(spellings)), f->characters);
    vpps_spellings_destroy(spellings);
    vpps_vocab_destroy(frequent);
}

static const struct weibo_file {
    const char *name;
    totals totals;
} weibo_files[] = {{"weibo_ner/weiboNER.conll.train", {1350, 10, 175, 3127, 73780}},
                   {"weibo_ner/weiboNER.conll.dev", {270, 10, 145, 1862, 14509}},
                   {"weibo_ner/weiboNER.conll.test", {270, 10, 146, 1836, 14844}},
                   {"weibo_ner/weiboNER_2nd_conll.train", {1350, 10, 175, 3127, 73778}},
                   {"weibo_ner/weiboNER_2nd_conll.dev", {270, 10, 145, 1862, 14509}},
                   {"weibo_ner/weiboNER_2nd_conll.test", {270, 10, 146, 1836, 14842}}};

TEST(weibo) {
    static const vpps_columns columns = {.tabs = true};
    for (size_t release = 0; release < 2; release++) {
        OWNED(vpps_sentences) *all = new_sentences();
        for (size_t f = 3 * release; f < 3 * release + 3; f++) {
            const char *path = data_file("weibo", weibo_files[f].name);
            if (!path) return;
            OWNED(vpps_sentences) *s = new_sentences();
            TEST_OK(vpps_sentences_read_columns_file(s, path, &columns));
            check_totals(s, weibo_files[f].totals);
            if (f == 3) {
                ck_assert_uint_eq(tag_count(s, "B-PER.NOM"), 766);
                ck_assert_uint_eq(tag_count(s, "B-LOC.NAM"), 56);
            }
            TEST_OK(vpps_sentences_read_columns_file(all, path, NULL));
        }
        ck_assert_uint_eq(vpps_vocab_size(vpps_sentences_tag_vocab(all)), release == 0 ? 15 : 17);
        vpps_spellings *spellings;
        TEST_OK(vpps_spellings_create(&spellings, vpps_sentences_vocab(all)));
        ck_assert_uint_eq(vpps_vocab_size(vpps_spellings_vocab(spellings)),
                          vpps_vocab_size(vpps_sentences_vocab(all))); /* each word is one code point */
        vpps_spellings_destroy(spellings);
    }
}

static const struct ptb_file {
    const char *name;
    totals totals;
    uint64_t words_with_end;
} ptb_files[] = {{"ptb_lm/ptb.train.txt", {42068, 1, 82, 9999, 887521}, 929589},
                 {"ptb_lm/ptb.valid.txt", {3370, 1, 74, 6021, 70390}, 73760},
                 {"ptb_lm/ptb.test.txt", {3761, 1, 77, 6048, 78669}, 82430}};

TEST_EACH(penn_treebank_text, 0, VPPS_COUNT(ptb_files)) {
    static const vpps_lines end = {.end_word = "<eos>"};
    const struct ptb_file *f = &ptb_files[_i];
    const char *path = data_file("penn_treebank_text", f->name);
    if (!path) return;
    OWNED(vpps_sentences) *s = new_sentences(), *with_end = new_sentences();
    TEST_OK(vpps_sentences_read_lines_file(s, path, NULL));
    check_totals(s, f->totals);
    TEST_OK(vpps_sentences_read_lines_file(with_end, path, &end));
    ck_assert_uint_eq(vpps_sentences_total_words(with_end), f->words_with_end);
    ck_assert_uint_eq(vpps_vocab_size(vpps_sentences_vocab(with_end)), f->totals.types + 1);
}

static const struct parallel_file {
    const char *source, *target;
    totals source_totals, target_totals;
} parallel_files[] = {
    {"multi30k/train.en", "multi30k/train.de", {29000, 4, 40, 10210, 377534}, {29000, 2, 44, 18722, 360706}},
    {"multi30k/val.en", "multi30k/val.de", {1014, 4, 30, 1964, 13308}, {1014, 3, 33, 2303, 12828}},
    {"multi30k/test2016.en", "multi30k/test2016.de", {1000, 5, 33, 1898, 12968}, {1000, 5, 31, 2125, 12103}},
    {"iwslt15_envi/tst2012.en", "iwslt15_envi/tst2012.vi", {1553, 0, 93, 0, 27983}, {1553, 0, 122, 0, 34297}},
    {"iwslt15_envi/tst2013.en", "iwslt15_envi/tst2013.vi", {1268, 0, 102, 0, 26728}, {1268, 0, 123, 0, 33682}},
};

TEST_EACH(translations, 0, VPPS_COUNT(parallel_files)) {
    const struct parallel_file *f = &parallel_files[_i];
    char source_path[1024];
    OWNED(vpps_sentences) *source = new_sentences(), *target = new_sentences();
    const char *path = data_file("translations", f->source);
    if (!path) return;
    snprintf(source_path, sizeof source_path, "%s", path);
    if (!(path = data_file("translations", f->target))) return;
    TEST_OK(vpps_sentences_read_parallel_files(source, target, source_path, path, NULL));
    check_totals(source, f->source_totals);
    check_totals(target, f->target_totals);
}
