/* bleu_tests.c - BLEU compared with results by hand, identities, and sacreBLEU's numbers (bleu_golden.py). */
#include "io_tests.h"

/* Adds a pair of sentences whose words are single characters; '?' is VPPS_NO_WORD. */
static void add_text(vpps_bleu *b, const char *hypothesis, const char *reference) {
    const char *const text[2] = {hypothesis, reference};
    uint32_t ids[2][64], n[2] = {0, 0};
    for (int side = 0; side < 2; side++)
        for (const char *p = text[side]; *p; p++) ids[side][n[side]++] = *p == '?' ? VPPS_NO_WORD : (uint32_t)*p;
    TEST_OK(vpps_bleu_add(b, n[0], ids[0], n[1], ids[1]));
}

static const struct hand_case {
    const char *hypothesis, *reference;
    uint64_t matches[4], possible[4];
    double none, exp; /* to 10 digits of a percent */
} hand_cases[] = {
    {"", "", {0}, {0}, 0, 0},
    {"", "abcd", {0}, {0}, 0, 0},
    {"abcd", "", {0}, {4, 3, 2, 1}, 0, 0},
    {"abcdef", "ghijkl", {0}, {6, 5, 4, 3}, 0, 0},
    {"abc", "abc", {3, 2, 1, 0}, {3, 2, 1, 0}, 0, 0}, /* there is no 4-gram */
    {"abcd", "abcd", {4, 3, 2, 1}, {4, 3, 2, 1}, 100, 100},
    {"ttttttt", "tcomta", {2, 0, 0, 0}, {7, 6, 5, 4}, 0, 7.8098498423}, /* the paper's example: clipped to 2 of 7 */
    {"abxde", "abcde", {4, 2, 0, 0}, {5, 4, 3, 2}, 0, 30.2137539736},   /* 100 (4/5 2/4 1/6 1/8)^(1/4) */
    {"abcdefgh", "abcdefghij", {8, 7, 6, 5}, {8, 7, 6, 5}, 77.8800783071, 77.8800783071}, /* 100 e^(1 - 10/8) */
    {"abcdefghij", "abcdefgh", {8, 7, 6, 5}, {10, 9, 8, 7}, 75.9835685652, 75.9835685652},
    {"ababab", "abab", {4, 3, 2, 1}, {6, 5, 4, 3}, 50.8132748155, 50.8132748155}, /* (4/6 3/5 2/4 1/3)^(1/4) */
    {"ab?de", "ab?de", {4, 2, 0, 0}, {5, 4, 3, 2}, 0, 30.2137539736},             /* an unknown word does not match */
    {"dcba", "abcd", {4, 0, 0, 0}, {4, 3, 2, 1}, 0, 22.5900500902},               /* 100 (1 1/6 1/8 1/8)^(1/4) */
};

TEST_GROUP("bleu");

TEST_EACH(by_hand, 0, VPPS_COUNT(hand_cases)) {
    const struct hand_case *c = &hand_cases[_i];
    vpps_bleu b = {0};
    add_text(&b, c->hypothesis, c->reference);
    ck_assert_mem_eq(b.matches, c->matches, sizeof b.matches);
    ck_assert_mem_eq(b.possible, c->possible, sizeof b.possible);
    ck_assert_uint_eq(b.hypothesis_words, strlen(c->hypothesis));
    ck_assert_uint_eq(b.reference_words, strlen(c->reference));
    ck_assert_double_eq_tol(vpps_bleu_score(&b, VPPS_BLEU_NONE), c->none, 1e-9);
    ck_assert_double_eq_tol(vpps_bleu_score(&b, VPPS_BLEU_EXP), c->exp, 1e-9);
}

TEST(signatures) {
    ck_assert_str_eq(vpps_bleu_signature(VPPS_BLEU_NONE), "BLEU|tok:none|case:as-is|refs:1|smooth:none");
    ck_assert_str_eq(vpps_bleu_signature(VPPS_BLEU_EXP), "BLEU|tok:none|case:as-is|refs:1|smooth:exp");
}

/* Of a corpus counts are added; the score is no mean of scores. sacreBLEU 2.6.0, BLEU(tokenize="none", smooth_method="none" and "exp", force=True).corpus_score. */
static const struct golden {
    uint64_t seed;
    uint32_t pairs, words, noise;
    uint64_t matches[4], hypothesis_words, reference_words;
    double none, exp;
} goldens[] = {
    {1, 100, 1000, 10, {1005, 731, 543, 397}, 1195, 1191, 60.2453921972, 60.2453921972},
    {2, 100, 50, 30, {802, 269, 87, 34}, 1307, 1303, 13.7684830089, 13.7684830089},
    {3, 20, 5, 40, {208, 108, 42, 15}, 270, 292, 23.5502820677, 23.5502820677},
    {4, 3, 100, 60, {9, 0, 0, 0}, 36, 34, 0.0000000000, 1.9551958600},
    {5, 1, 8, 50, {7, 2, 1, 0}, 13, 10, 0.0000000000, 14.2116724432},
    {6, 200, 30000, 5, {2445, 2044, 1696, 1400}, 2632, 2632, 79.5950543572, 79.5950543572},
    {7, 40, 3, 64, {434, 303, 167, 58}, 561, 554, 37.8165459264, 37.8165459264},
};

/* Adds a random reference, and a hypothesis with words replaced, left out and inserted. */
static void add_drawn_pair(vpps_bleu *b, uint64_t *random, uint32_t words, uint32_t noise) {
    uint32_t hypothesis[50], reference[25], n_hypothesis = 0;
    const uint32_t n = 1 + vpps_random_below(random, 25);
    for (uint32_t i = 0; i < n; i++) reference[i] = vpps_random_below(random, words);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t what = vpps_random_below(random, 100);
        if (what < noise) {
            hypothesis[n_hypothesis++] = vpps_random_below(random, words);
        } else if (what >= noise + noise / 2) {
            hypothesis[n_hypothesis++] = reference[i];
        }
        if (what >= 100 - noise / 2) hypothesis[n_hypothesis++] = vpps_random_below(random, words);
    }
    TEST_OK(vpps_bleu_add(b, n_hypothesis, hypothesis, n, reference));
}

TEST_EACH(as_sacrebleu, 0, VPPS_COUNT(goldens)) {
    const struct golden *g = &goldens[_i];
    uint64_t random = g->seed;
    vpps_bleu b = {0};
    for (uint32_t i = 0; i < g->pairs; i++) add_drawn_pair(&b, &random, g->words, g->noise);
    ck_assert_mem_eq(b.matches, g->matches, sizeof b.matches);
    ck_assert_uint_eq(b.hypothesis_words, g->hypothesis_words);
    ck_assert_uint_eq(b.reference_words, g->reference_words);
    ck_assert_double_eq_tol(vpps_bleu_score(&b, VPPS_BLEU_NONE), g->none, 1e-9);
    ck_assert_double_eq_tol(vpps_bleu_score(&b, VPPS_BLEU_EXP), g->exp, 1e-9);
}
