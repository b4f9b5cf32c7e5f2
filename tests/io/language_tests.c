/* language_tests.c - generated sentences: the same in every release, defaults, failures. */
#include "forms.h"

#include <inttypes.h>
#include <sys/resource.h>
#include <unistd.h>

/* Everything that one call fills. */
typedef struct corpus {
    vpps_sentences *s, *translation;
    vpps_vocab *lexicon;
} corpus;

static corpus new_corpus(void) {
    corpus c;
    TEST_OK(vpps_sentences_create(&c.s));
    TEST_OK(vpps_sentences_create(&c.translation));
    TEST_OK(vpps_vocab_create(&c.lexicon));
    return c;
}

static corpus generate(uint64_t seed, bool characters, uint32_t n) {
    corpus c = new_corpus();
    const vpps_language options = {.seed = seed, .characters = characters, .tags = true};
    TEST_OK(vpps_sentences_generate(c.s, c.translation, c.lexicon, &options, n));
    return c;
}

static void destroy(const corpus *c) {
    vpps_sentences_destroy(c->s);
    vpps_sentences_destroy(c->translation);
    vpps_vocab_destroy(c->lexicon);
}

static void check_shown(const vpps_sentences *s, const char *wanted, bool equal) {
    size_t n;
    FREED char *text = sentences_text(s, &n);
    if (equal) ck_assert_str_eq(text, wanted);
    if (!equal) ck_assert_str_ne(text, wanted);
}

/* ---------------------------------------------------------------- what is drawn */

TEST_GROUP("language");

TEST(more_sentences_begin_alike) {
    AT_END(destroy) corpus c = generate(32, false, 2), other = generate(33, false, 2), longer = generate(32, false, 50);
    size_t n;
    FREED char *first = sentences_text(c.s, &n), *text = sentences_text(longer.s, &n);
    ck_assert(strncmp(text, first, strlen(first)) == 0);
    check_shown(other.s, first, false);
}

TEST(defaults_of_the_language) {
    AT_END(destroy) corpus c = new_corpus(), wanted = new_corpus();
    TEST_OK(vpps_sentences_generate(c.s, NULL, NULL, NULL, 20));
    TEST_OK(vpps_sentences_generate(wanted.s, wanted.translation, NULL, &(vpps_language){.seed = 0}, 20));
    ck_assert_ptr_null(vpps_sentences_get(c.s, 0).tags);
    ck_assert_uint_eq(vpps_vocab_size(vpps_sentences_tag_vocab(c.s)), 0);
    size_t n;
    FREED char *text = sentences_text(wanted.s, &n);
    check_shown(c.s, text, true);
    TEST_OK(vpps_sentences_generate(c.s, NULL, c.lexicon, NULL, 5)); /* appended */
    ck_assert_uint_eq(vpps_sentences_size(c.s), 25);
}

/* Returns all that a call makes, in bytes. The accuracies in doc/accuracy.md are for exactly these sentences: their lengths, which word tells what a
 * name is, the order of a translation. */
TEST(sentences_of_every_release_are_the_same) {
    static const struct {
        vpps_language options;
        bool translation;
        uint64_t digest;
    } rows[] = {{{.seed = 1}, true, 0xc108b4966b810fbd},
                {{.seed = 2, .tags = true}, true, 0xe290141f0eb2398a},
                {{.seed = 3, .tags = true, .characters = true}, true, 0xdb52d4bed1dbf32f},
                {{.seed = 4, .labels = true}, false, 0x7e37a884398b485f},
                {{.seed = 5, .labels = true, .characters = true}, false, 0x100852e8e21a5e46},
                {{.seed = 6, .end_word = "<eos>"}, false, 0x85ee60209a92539d},
                {{.seed = 7, .tags = true, .end_word = "</s>"}, true, 0xdcaf76868b40b546}};
    for (size_t i = 0; i < VPPS_COUNT(rows); i++) {
        AT_END(destroy) corpus c = new_corpus();
        uint64_t digest = 0;
        TEST_OK(vpps_sentences_generate(c.s, rows[i].translation ? c.translation : NULL, c.lexicon, &rows[i].options,
                                        20000));
        size_t n;
        char *texts[] = {sentences_text(c.s, &n), sentences_text(c.translation, &n), NULL};
        TEST_OK(vpps_vocab_to_text(c.lexicon, &texts[2]));
        for (size_t k = 0; k < VPPS_COUNT(texts); k++) {
            for (const char *at = texts[k]; *at; at++) digest = vpps_mix64(digest ^ (unsigned char)*at);
            free(texts[k]);
        }
        if (digest != rows[i].digest) printf("row %zu: 0x%016" PRIx64 "\n", i, digest);
        ck_assert_uint_eq(digest, rows[i].digest);
    }
}

/* ---------------------------------------------------------------- failures */

/* Calls that fail on sentences (1 pair, with tags in the source) change nothing. */
TEST(failures_change_nothing) {
    static const char *const end_words[] = {"", "a b", "a\n", "\r"};
    AT_END(destroy) corpus c = generate(13, false, 1), other = generate(13, false, 2);
    uint32_t id;
    TEST_OK(vpps_vocab_add(other.lexicon, "zebra", 5, &id));
    size_t n;
    FREED char *text = sentences_text(c.s, &n), *translation = sentences_text(c.translation, &n);
    const uint32_t n_words = vpps_vocab_size(vpps_sentences_vocab(c.s)), n_lexicon = vpps_vocab_size(other.lexicon);
    vpps_language o = {.seed = 14, .tags = true};
    for (size_t i = 0; i < VPPS_COUNT(end_words); i++) {
        o.end_word = end_words[i];
        TEST_FAILS(vpps_sentences_generate(c.s, c.translation, other.lexicon, &o, 3), VPPS_ARGUMENT,
                   "expected an end word without spaces and line ends");
    }
    o.end_word = "<eos>";
    CHECK_STATUS(vpps_sentences_generate(c.s, NULL, other.lexicon, &o, 3), VPPS_ARGUMENT);
    ck_assert_str_eq(vpps_error_message(), "language: expected no end word in tagged sentences, found '<eos>'");
    o.end_word = NULL;
    TEST_FAILS(vpps_sentences_generate(c.s, NULL, other.lexicon, &(vpps_language){.tags = true, .labels = true}, 1),
               VPPS_ARGUMENT, "expected sentences with tags or with labels, found both");
    CHECK_STATUS(vpps_sentences_generate(c.s, c.s, other.lexicon, &o, 3), VPPS_ARGUMENT);
    ck_assert_str_eq(vpps_error_message(), "language: expected two different vpps_sentences");
    CHECK_STATUS(vpps_sentences_generate(c.s, other.translation, other.lexicon, &o, 3), VPPS_STATE);
    ck_assert_str_eq(vpps_error_message(), "language: expected as many sentences before on both sides, found 1 and 2");
    TEST_FAILS(vpps_sentences_generate(other.s, other.translation, other.lexicon, &(vpps_language){0}, 3), VPPS_STATE,
               "expected text with tags, as the 2 sentences before, found text without");
    o.tags = false;
    TEST_FAILS(vpps_sentences_generate(c.translation, c.s, other.lexicon, &o, 3), VPPS_STATE,
               "expected text with tags, as the 1 sentences before, found text without");
    check_shown(c.s, text, true);
    check_shown(c.translation, translation, true);
    ck_assert_uint_eq(vpps_vocab_size(vpps_sentences_vocab(c.s)), n_words);
    ck_assert_uint_eq(vpps_vocab_size(other.lexicon), n_lexicon);
}

/* With more sentences than fit into memory, those added before the failure are removed. */
TEST(out_of_memory_changes_nothing) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    TEST_SKIP("out_of_memory_changes_nothing: a sanitizer cannot work within a limit of memory");
#endif
    AT_END(destroy) corpus c = generate(15, false, 2);
    struct rlimit before, limit;
    unsigned long pages = 0;
    size_t n;
    FREED char *text = sentences_text(c.s, &n), *translation = sentences_text(c.translation, &n);
    const uint32_t n_words = vpps_vocab_size(vpps_sentences_vocab(c.s));
    OWNED(vpps_vocab) *lexicon = new_vocab();
    FILE *memory = fopen("/proc/self/statm", "r");
    ck_assert(memory != NULL && fscanf(memory, "%lu", &pages) == 1);
    fclose(memory);
    ck_assert_int_eq(getrlimit(RLIMIT_AS, &before), 0);
    limit = (struct rlimit){(rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + (16u << 20), before.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &limit), 0);
    const vpps_language o = {.seed = 16, .tags = true};
    const vpps_status status = vpps_sentences_generate(c.s, c.translation, lexicon, &o, UINT32_MAX - 2);
    setrlimit(RLIMIT_AS, &before);
    CHECK_STATUS(status, VPPS_MEMORY);
    check_shown(c.s, text, true);
    check_shown(c.translation, translation, true);
    ck_assert_uint_eq(vpps_vocab_size(vpps_sentences_vocab(c.s)), n_words);
    ck_assert_uint_eq(vpps_vocab_size(lexicon), 0);
}
