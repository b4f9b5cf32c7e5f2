/* language_tests.c - generated sentences: equal for equal seeds, lengths, end words, characters, failures. */
#include "language_tests.h"

#include "common/testing.h"

#include <sys/resource.h>
#include <unistd.h>

/* Sentences as lines of word|TAG, or of words, freed by the caller. */
static char *show(const vpps_sentences *s) {
    char *text = NULL;
    size_t len;
    FILE *file = open_memstream(&text, &len);
    ck_assert(file != NULL);
    for (uint32_t i = 0; i < vpps_sentences_size(s); i++) {
        const vpps_sentence sentence = vpps_sentences_get(s, i);
        for (uint32_t k = 0; k < sentence.n_words; k++) {
            fprintf(file, "%s%s", k ? " " : "", word_at(s, i, k));
            if (sentence.tags) fprintf(file, "|%s", tag_at(s, i, k));
        }
        fputc('\n', file);
    }
    ck_assert_int_eq(fclose(file), 0);
    return text;
}

static void check_shown(const vpps_sentences *s, const char *wanted, bool equal) {
    FREED char *text = show(s);
    if (equal) ck_assert_str_eq(text, wanted);
    if (!equal) ck_assert_str_ne(text, wanted);
}

/* ---------------------------------------------------------------- what is drawn */

TEST_GROUP("language");

TEST(equal_sentences_for_equal_seeds) {
    static const char golden[] =
        "the|O man|O who|O felt|O that|O minson|B-PER often|O wept|O took|O some|O loud|O hen|O\n"
        "maslab|B-ORG built|O each|O old|O horse|O but|O the|O baker|O kept|O each|O book|O near|O moren|B-LOC\n";
    static const char golden_translation[] = "babu revu ladu ruvu minson mopu zitu husu vulu jedu velu femu\n"
                                             "maslab guhu detu mudu fopu negu babu magu guhu noju zufu moren dazu\n";
    corpus c = generate(32, false, 2), other = generate(33, false, 2), longer = generate(32, false, 50),
           again = generate(32, false, 50);
    check_shown(c.s, golden, true);
    check_shown(c.translation, golden_translation, true);
    check_shown(other.s, golden, false);
    char *text = show(longer.s), *translation = show(longer.translation);
    ck_assert(strncmp(text, golden, sizeof golden - 1) == 0); /* n does not change what comes first */
    check_shown(again.s, text, true);
    check_shown(again.translation, translation, true);
    free(text);
    free(translation);
    destroy(again);
    destroy(longer);
    destroy(other);
    destroy(c);
}

TEST(defaults_of_the_language) {
    corpus c = new_corpus(), wanted = new_corpus();
    TEST_OK(vpps_sentences_generate(c.s, NULL, NULL, NULL, 20));
    TEST_OK(vpps_sentences_generate(wanted.s, wanted.translation, NULL, &(vpps_language){.seed = 0}, 20));
    ck_assert_ptr_null(vpps_sentences_get(c.s, 0).tags);
    ck_assert_uint_eq(vpps_vocab_size(vpps_sentences_tag_vocab(c.s)), 0);
    char *text = show(wanted.s);
    check_shown(c.s, text, true);
    free(text);
    TEST_OK(vpps_sentences_generate(c.s, NULL, c.lexicon, NULL, 5)); /* appended */
    ck_assert_uint_eq(vpps_sentences_size(c.s), 25);
    destroy(wanted);
    destroy(c);
}

/* Lengths, letters, and how many words a reader of 1000 sentences hardly knows. */
TEST(lengths_and_rare_words) {
    const uint32_t n = 1000;
    corpus c = generate(1, false, n);
    const vpps_vocab *words = vpps_sentences_vocab(c.s);
    uint32_t *counts, shorts = 0, longs = 0;
    uint64_t letters = 0, rare = 0, total = vpps_sentences_total_words(c.s);
    ck_assert_uint_eq(vpps_sentences_size(c.s), n);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t n_words = vpps_sentences_get(c.s, i).n_words;
        ck_assert(n_words >= SHORTEST && n_words <= LONGEST);
        shorts += n_words <= 4;
        longs += n_words >= 15;
    }
    ck_assert_uint_ge(shorts, n / 20);
    ck_assert_uint_ge(longs, n / 40);
    TEST_OK(vpps_sentences_counts(c.s, &counts));
    for (uint32_t id = 0; id < vpps_vocab_size(words); id++) {
        letters += counts[id] * strlen(vpps_vocab_word(words, id));
        rare += counts[id] < 5 ? counts[id] : 0;
    }
    free(counts);
    ck_assert_uint_le(letters, 40 * n);
    ck_assert_uint_ge(rare, total / 20);
    ck_assert_uint_le(rare, total / 5);
    destroy(c);
}

TEST(end_words_are_appended) {
    corpus with = new_corpus(), without = new_corpus(), alone = new_corpus();
    const vpps_language end = {.seed = 2, .end_word = "<eos>"}, none = {.seed = 2},
                        tagged = {.seed = 2, .tags = true, .end_word = "</s>"};
    TEST_OK(vpps_sentences_generate(with.s, with.translation, NULL, &end, 30));
    TEST_OK(vpps_sentences_generate(without.s, without.translation, NULL, &none, 30));
    TEST_OK(vpps_sentences_generate(alone.s, NULL, NULL, &end, 30));
    char *text = show(without.s);
    check_shown(with.s, text, true);
    free(text);
    const vpps_sentences *ended[] = {with.translation, alone.s}, *plain[] = {without.translation, without.s};
    for (int side = 0; side < 2; side++) {
        for (uint32_t i = 0; i < 30; i++) {
            const uint32_t n = vpps_sentences_get(plain[side], i).n_words;
            ck_assert_uint_eq(vpps_sentences_get(ended[side], i).n_words, n + 1);
            for (uint32_t k = 0; k < n; k++) ck_assert_str_eq(word_at(ended[side], i, k), word_at(plain[side], i, k));
            ck_assert_str_eq(word_at(ended[side], i, n), "<eos>");
        }
    }
    destroy(with);
    with = new_corpus();
    TEST_OK(vpps_sentences_generate(with.s, with.translation, NULL, &tagged, 1)); /* the translation has no tags */
    ck_assert_uint_eq(vpps_vocab_find(vpps_sentences_vocab(with.s), "</s>", 4), VPPS_NO_WORD);
    ck_assert_uint_ne(vpps_vocab_find(vpps_sentences_vocab(with.translation), "</s>", 4), VPPS_NO_WORD);
    destroy(with);
    destroy(without);
    destroy(alone);
}

/* ---------------------------------------------------------------- characters */

/* A label says what the first name is; the words are those of tagged sentences. */
TEST(labels_name_the_first_name) {
    enum { SENTENCES = 500 };
    const vpps_language options = {.seed = 21, .labels = true};
    corpus tagged = generate(21, false, SENTENCES), labelled = new_corpus();
    const vpps_vocab *labels = vpps_sentences_tag_vocab(labelled.s);
    uint32_t counts[4] = {0};
    TEST_OK(vpps_sentences_generate(labelled.s, NULL, NULL, &options, SENTENCES));
    for (uint32_t i = 0; i < SENTENCES; i++) {
        const vpps_sentence s = vpps_sentences_get(labelled.s, i);
        uint32_t k = 0;
        while (k < s.n_words && strcmp(tag_at(tagged.s, i, k), "O") == 0) k++;
        const uint32_t label = vpps_sentences_label(labelled.s, i);
        ck_assert_str_eq(vpps_vocab_word(labels, label), k < s.n_words ? tag_at(tagged.s, i, k) + 2 : "NONE");
        ck_assert_ptr_null(s.tags);
        ck_assert_uint_eq(s.n_words, vpps_sentences_get(tagged.s, i).n_words);
        for (k = 0; k < s.n_words; k++) ck_assert_str_eq(word_at(labelled.s, i, k), word_at(tagged.s, i, k));
        ck_assert_uint_lt(label, VPPS_COUNT(counts));
        counts[label]++;
    }
    for (size_t k = 0; k < VPPS_COUNT(counts); k++) ck_assert_uint_gt(counts[k], SENTENCES / 20);
    const vpps_language both = {.tags = true, .labels = true};
    TEST_FAILS(vpps_sentences_generate(labelled.s, NULL, NULL, &both, 1), VPPS_ARGUMENT,
               "expected sentences with tags or with labels, found both");
    destroy(tagged);
    destroy(labelled);
}

TEST(characters_are_those_of_the_words) {
    const uint32_t n = 500;
    corpus words = generate(10, false, n), letters = generate(10, true, n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = 0;
        for (uint32_t k = 0; k < vpps_sentences_get(words.s, i).n_words; k++) {
            const char *tag = tag_at(words.s, i, k);
            for (const char *c = word_at(words.s, i, k); *c; c++, at++) {
                ck_assert_uint_lt(at, vpps_sentences_get(letters.s, i).n_words);
                ck_assert(word_at(letters.s, i, at)[0] == *c && word_at(letters.s, i, at)[1] == '\0');
                const char *found = tag_at(letters.s, i, at);
                const bool begins = tag[0] == 'B' && c == word_at(words.s, i, k);
                if (tag[0] == 'O') ck_assert_str_eq(found, "O");
                if (tag[0] != 'O') ck_assert(found[0] == (begins ? 'B' : 'I') && strcmp(found + 1, tag + 1) == 0);
            }
        }
        ck_assert_uint_eq(vpps_sentences_get(letters.s, i).n_words, at);
    }
    ck_assert_uint_le(vpps_vocab_size(vpps_sentences_vocab(letters.s)), 26);
    char *text = show(words.translation); /* which is one of words all the same */
    check_shown(letters.translation, text, true);
    free(text);
    destroy(words);
    destroy(letters);
}

/* Does an arc for `word` go from node begin to node end? */
static bool has_arc(vpps_lattice l, uint32_t begin, uint32_t end, uint32_t word) {
    for (uint32_t a = l.first_arc[end]; a < l.first_arc[end + 1]; a++) {
        if (!l.arcs[a].is_character && l.arcs[a].from == begin && l.arcs[a].id == word) return true;
    }
    return false;
}

TEST(the_lexicon_has_all_words) {
    const uint32_t n = 500;
    corpus words = generate(11, false, n), letters = generate(11, true, n), empty = generate(12, true, 0);
    vpps_lattices *lattices;
    TEST_OK(vpps_lattices_create(&lattices));
    TEST_OK(vpps_lattices_build(lattices, letters.s, letters.lexicon));
    uint64_t wanted = 0, found = 0;
    for (uint32_t i = 0; i < n; i++) {
        const vpps_lattice l = vpps_lattices_get(lattices, i);
        uint32_t at = 0;
        for (uint32_t k = 0; k < vpps_sentences_get(words.s, i).n_words; k++) {
            const char *word = word_at(words.s, i, k);
            const uint32_t len = (uint32_t)strlen(word), id = vpps_vocab_find(letters.lexicon, word, len);
            ck_assert_msg(id != VPPS_NO_WORD, "'%s' is not in the lexicon", word);
            ck_assert(len >= VPPS_LATTICE_WORD_MIN && len <= VPPS_LATTICE_WORD_MAX);
            ck_assert(has_arc(l, at, at + len, id));
            at += len;
            wanted++;
        }
        ck_assert_uint_eq(l.n_nodes, at + 1);
        found += l.first_arc[l.n_nodes] - at; /* all but the characters */
    }
    ck_assert_uint_ge(found, wanted + wanted / 20); /* some words are there by accident, */
    ck_assert_uint_le(found, 2 * wanted);           /* not too many */
    vpps_lattices_destroy(lattices);
    char *text, *other; /* the lexicon is that of the language, not of these sentences */
    TEST_OK(vpps_vocab_to_text(letters.lexicon, &text));
    TEST_OK(vpps_vocab_to_text(empty.lexicon, &other));
    ck_assert_str_eq(text, other);
    free(text);
    free(other);
    TEST_OK(vpps_sentences_generate(empty.s, NULL, empty.lexicon, &(vpps_language){.tags = true}, 1));
    ck_assert_uint_eq(vpps_vocab_size(empty.lexicon), vpps_vocab_size(letters.lexicon));
    destroy(empty);
    destroy(letters);
    destroy(words);
}

/* ---------------------------------------------------------------- failures */

/* Calls that fail on sentences (1 pair, with tags in the source) change nothing. */
TEST(failures_change_nothing) {
    static const char *const end_words[] = {"", "a b", "a\n", "\r"};
    corpus c = generate(13, false, 1), other = generate(13, false, 2);
    uint32_t id;
    TEST_OK(vpps_vocab_add(other.lexicon, "zebra", 5, &id));
    char *text = show(c.s), *translation = show(c.translation);
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
    free(text);
    free(translation);
    destroy(other);
    destroy(c);
}

/* More sentences than fit into memory: what was added before the end of it is gone. */
TEST(out_of_memory_changes_nothing) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    TEST_SKIP("out_of_memory_changes_nothing: a sanitizer cannot work within a limit of memory");
#endif
    corpus c = generate(15, false, 2);
    vpps_vocab *lexicon;
    struct rlimit before, limit;
    unsigned long pages = 0;
    char *text = show(c.s), *translation = show(c.translation);
    const uint32_t n_words = vpps_vocab_size(vpps_sentences_vocab(c.s));
    TEST_OK(vpps_vocab_create(&lexicon));
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
    vpps_vocab_destroy(lexicon);
    free(text);
    free(translation);
    destroy(c);
}
