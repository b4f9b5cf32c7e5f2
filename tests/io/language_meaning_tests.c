/* language_meaning_tests.c - what there is to learn in generated sentences: kinds of names, and translations. */
#include "language_tests.h"

enum { N_KINDS = 3 };

/* ---------------------------------------------------------------- tags */

static int kind_of(const char *tag) {
    static const char *const kinds[] = {"PER", "LOC", "ORG"};
    for (int k = 0; k < N_KINDS; k++) {
        if (strcmp(tag + 2, kinds[k]) == 0) return k;
    }
    ck_abort_msg("no kind in '%s'", tag);
    return 0;
}

TEST_GROUP("language: meaning");

TEST_EACH(tags_are_well_formed, 0, 2) {
    const uint32_t n = 2000;
    corpus c = generate(3, _i == 1, n);
    uint32_t names[N_KINDS] = {0}, words_of_names = 0;
    for (uint32_t i = 0; i < n; i++) {
        const char *before = "O";
        for (uint32_t k = 0; k < vpps_sentences_get(c.s, i).n_words; k++) {
            const char *tag = tag_at(c.s, i, k);
            if (tag[0] == 'I') ck_assert(before[0] != 'O' && kind_of(before) == kind_of(tag));
            if (tag[0] == 'B') names[kind_of(tag)]++;
            if (strcmp(tag, "O") != 0) ck_assert(tag[1] == '-' && (tag[0] == 'B' || tag[0] == 'I'));
            words_of_names += tag[0] != 'O';
            before = tag;
        }
    }
    ck_assert_uint_eq(vpps_vocab_size(vpps_sentences_tag_vocab(c.s)), 1 + 2 * N_KINDS);
    for (int k = 0; k < N_KINDS; k++) ck_assert_uint_ge(names[k], n / 4);
    if (_i == 0) ck_assert_uint_le(words_of_names, vpps_sentences_total_words(c.s) / 4);
    destroy(c);
}

static bool ends_in(const char *word, const char *ending) {
    const size_t len = strlen(word), n = strlen(ending);
    return len > n && strcmp(word + len - n, ending) == 0;
}

/* Names with these endings tell their kind, whatever stands beside them. */
TEST(endings_tell_the_kind) {
    static const struct {
        const char *ending, *tag;
    } endings[] = {{"son", "B-PER"}, {"man", "B-PER"}, {"burg", "B-LOC"},
                   {"ham", "B-LOC"}, {"tex", "B-ORG"}, {"nix", "B-ORG"}};
    const uint32_t n = 2000;
    uint32_t found[VPPS_COUNT(endings)] = {0};
    corpus c = generate(4, false, n);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t n_words = vpps_sentences_get(c.s, i).n_words;
        for (uint32_t k = 0; k < n_words; k++) {
            const bool alone = k + 1 == n_words || tag_at(c.s, i, k + 1)[0] != 'I';
            for (size_t e = 0; e < VPPS_COUNT(endings); e++) {
                if (!alone || tag_at(c.s, i, k)[0] != 'B' || !ends_in(word_at(c.s, i, k), endings[e].ending)) {
                    continue;
                }
                ck_assert_str_eq(tag_at(c.s, i, k), endings[e].tag);
                found[e]++;
            }
        }
    }
    for (size_t e = 0; e < VPPS_COUNT(endings); e++) ck_assert_uint_ge(found[e], 20);
    destroy(c);
}

/* What stood beside a name, and how often a name of each kind was there. */
typedef struct contexts {
    vpps_vocab *words;
    uint32_t counts[1000][N_KINDS];
} contexts;

static uint32_t *counts_beside(contexts *c, const char *word) {
    uint32_t id;
    TEST_OK(vpps_vocab_add(c->words, word, strlen(word), &id));
    ck_assert_uint_lt(id, VPPS_COUNT(c->counts));
    return c->counts[id];
}

/* Does a neighbour with these counts say, nearly always rightly, that the name is of this kind? */
static bool decides(const uint32_t *counts, int kind) {
    const uint32_t sum = counts[0] + counts[1] + counts[2];
    return sum >= 5 && counts[kind] * 10 >= sum * 9;
}

/* Names of one word that any kind of thing has: their neighbours decide, often only one of the two does. */
TEST(neighbours_decide_shared_names) {
    const uint32_t n = 20000;
    uint32_t total = 0, of_kind[N_KINDS] = {0}, by_left = 0, by_right = 0, by_any = 0;
    static contexts left, right;
    TEST_OK(vpps_vocab_create(&left.words));
    TEST_OK(vpps_vocab_create(&right.words));
    corpus c = generate(5, false, n);
    for (int pass = 0; pass < 2; pass++) { /* first to learn, then to decide */
        for (uint32_t i = 0; i < n; i++) {
            const uint32_t n_words = vpps_sentences_get(c.s, i).n_words;
            for (uint32_t k = 0; k < n_words; k++) {
                const char *word = word_at(c.s, i, k), *tag = tag_at(c.s, i, k);
                const char *before = k ? word_at(c.s, i, k - 1) : "<", *after = ">";
                if (k + 1 < n_words) after = word_at(c.s, i, k + 1);
                if (tag[0] != 'B' || !(ends_in(word, "en") || ends_in(word, "is"))) continue;
                if (k + 1 < n_words && tag_at(c.s, i, k + 1)[0] == 'I') continue;
                const int kind = kind_of(tag);
                uint32_t *l = counts_beside(&left, before), *r = counts_beside(&right, after);
                if (pass == 0) {
                    l[kind]++;
                    r[kind]++;
                    continue;
                }
                total++;
                of_kind[kind]++;
                by_left += decides(l, kind);
                by_right += decides(r, kind);
                by_any += decides(l, kind) || decides(r, kind);
            }
        }
    }
    ck_assert_uint_ge(total, n / 20);
    for (int k = 0; k < N_KINDS; k++) { /* guessing is wrong more often than not */
        ck_assert_uint_ge(of_kind[k], total / 4);
        ck_assert_uint_le(of_kind[k], total / 2);
    }
    ck_assert_uint_ge(by_any, total * 88 / 100); /* for the others an adverb stands before the verb that decides */
    ck_assert_uint_le(by_left, total * 6 / 10);
    ck_assert_uint_le(by_right, total * 6 / 10);
    destroy(c);
    vpps_vocab_destroy(left.words);
    vpps_vocab_destroy(right.words);
}

/* ---------------------------------------------------------------- translations */

enum { MAX_VOCAB = 2048, BITS = MAX_VOCAB / 64 };

/* For each word, the words that all translations of its sentences have: a bit each. */
static uint64_t candidates[MAX_VOCAB][BITS];

static void narrow_candidates(corpus c, uint32_t i) {
    const vpps_sentence s = vpps_sentences_get(c.s, i), t = vpps_sentences_get(c.translation, i);
    uint64_t present[BITS] = {0};
    for (uint32_t k = 0; k < t.n_words; k++) present[t.words[k] / 64] |= 1ull << t.words[k] % 64;
    for (uint32_t k = 0; k < s.n_words; k++) {
        for (uint32_t b = 0; b < BITS; b++) candidates[s.words[k]][b] &= present[b];
    }
}

/* The candidate for a word when there is one only, else VPPS_NO_WORD. */
static uint32_t only_candidate(uint32_t word) {
    uint32_t found = VPPS_NO_WORD;
    for (uint32_t b = 0; b < BITS; b++) {
        const uint64_t bits = candidates[word][b];
        if (!bits) continue;
        if (found != VPPS_NO_WORD || bits & (bits - 1)) return VPPS_NO_WORD;
        found = b * 64 + (uint32_t)__builtin_ctzll(bits);
    }
    ck_assert_msg(found != VPPS_NO_WORD, "word %u has no translation", word);
    return found;
}

/* Notes a translation, which is then no other word's. */
static void settle(uint32_t *dictionary, uint32_t n_words, uint32_t word, uint32_t translation) {
    ck_assert(candidates[word][translation / 64] >> translation % 64 & 1);
    for (uint32_t w = 0; w < n_words; w++) candidates[w][translation / 64] &= ~(1ull << translation % 64);
    dictionary[word] = translation;
}

/* Finds the dictionary from the pairs alone: a word that is in the translation's vocabulary stays as it is, any other
 * has the only candidate that is left. Returns how many words stay. */
static uint32_t find_dictionary(corpus c, uint32_t *dictionary) {
    const vpps_vocab *words = vpps_sentences_vocab(c.s), *translated = vpps_sentences_vocab(c.translation);
    const uint32_t n_words = vpps_vocab_size(words);
    uint32_t kept = 0, settled;
    memset(candidates, 0xff, sizeof candidates);
    for (uint32_t i = 0; i < vpps_sentences_size(c.s); i++) narrow_candidates(c, i);
    for (uint32_t w = 0; w < n_words; w++) {
        const char *word = vpps_vocab_word(words, w);
        const uint32_t same = vpps_vocab_find(translated, word, strlen(word));
        dictionary[w] = VPPS_NO_WORD;
        if (same == VPPS_NO_WORD) continue;
        settle(dictionary, n_words, w, same);
        kept++;
    }
    do {
        settled = 0;
        for (uint32_t w = 0; w < n_words; w++) {
            const uint32_t translation = dictionary[w] == VPPS_NO_WORD ? only_candidate(w) : VPPS_NO_WORD;
            if (translation == VPPS_NO_WORD) continue;
            settle(dictionary, n_words, w, translation);
            settled++;
        }
    } while (settled);
    return kept;
}

static int compare_ids(const void *a, const void *b) {
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Every word has one translation, all different; and the translations are the sentences' words, translated, in another
 * order. */
TEST(translations_are_words_in_another_order) {
    const uint32_t n = 20000;
    uint32_t dictionary[MAX_VOCAB], moved = 0;
    corpus c = generate(6, false, n);
    const uint32_t n_words = vpps_vocab_size(vpps_sentences_vocab(c.s));
    ck_assert_uint_le(n_words, MAX_VOCAB);
    ck_assert_uint_eq(vpps_vocab_size(vpps_sentences_vocab(c.translation)), n_words);
    const uint32_t kept = find_dictionary(c, dictionary);
    ck_assert_uint_ge(n_words - kept, 200); /* common words; the others are names */
    ck_assert_uint_le(n_words - kept, 250);
    for (uint32_t i = 0; i < n; i++) {
        const vpps_sentence s = vpps_sentences_get(c.s, i), t = vpps_sentences_get(c.translation, i);
        uint32_t wanted[LONGEST], found[LONGEST];
        ck_assert(s.n_words >= SHORTEST && s.n_words <= LONGEST && t.n_words == s.n_words);
        ck_assert_ptr_null(t.tags);
        for (uint32_t k = 0; k < s.n_words; k++) {
            wanted[k] = dictionary[s.words[k]];
            ck_assert_msg(wanted[k] != VPPS_NO_WORD, "'%s': more than one translation", word_at(c.s, i, k));
        }
        moved += memcmp(wanted, t.words, s.n_words * sizeof *wanted) != 0;
        memcpy(found, t.words, s.n_words * sizeof *found);
        qsort(wanted, s.n_words, sizeof *wanted, compare_ids);
        qsort(found, s.n_words, sizeof *found, compare_ids);
        ck_assert_mem_eq(found, wanted, s.n_words * sizeof *found);
    }
    ck_assert_uint_ge(moved, n * 8 / 10);
    destroy(c);
}

/* Names: the words that a translation keeps are those with tags, but for common words inside names. */
TEST(names_are_kept) {
    const uint32_t n = 2000;
    corpus c = generate(9, false, n);
    uint32_t outside = 0;
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < vpps_sentences_get(c.s, i).n_words; k++) {
            const char *word = word_at(c.s, i, k);
            const bool in_translation =
                vpps_vocab_find(vpps_sentences_vocab(c.translation), word, strlen(word)) != VPPS_NO_WORD;
            const bool named = tag_at(c.s, i, k)[0] != 'O';
            if (!named) ck_assert(!in_translation);
            outside += named && !in_translation;
        }
    }
    ck_assert_uint_ge(outside, 100); /* "lake", "bank", "of": words that do not always belong to names */
    destroy(c);
}
