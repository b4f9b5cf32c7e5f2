/* f1_tests.c - chunks: all transitions by hand, and conlleval's procedure. */
#include "io_tests.h"

DESTROYED_BY(vpps_f1, vpps_f1_destroy)

static const char *const tags[] = {"O", "B-X", "I-X", "B-Y", "I-Y", "E-X", "S-X", "E-Y", "S-Y"};
enum { N_TAGS = 9 };

static void check_counts(vpps_f1_counts found, uint64_t gold, uint64_t predicted, uint64_t correct) {
    ck_assert_uint_eq(found.gold, gold);
    ck_assert_uint_eq(found.predicted, predicted);
    ck_assert_uint_eq(found.correct, correct);
}

/* ---------------------------------------------------------------- by hand */

/* Writes the tag ids of words separated by spaces. */
static uint32_t parse(vpps_vocab *v, const char *text, uint32_t *ids) {
    uint32_t n = 0;
    for (size_t len; *text; text += len + (text[len] == ' ')) {
        len = strcspn(text, " ");
        TEST_OK(vpps_vocab_add(v, text, len, &ids[n++]));
    }
    return n;
}

/* Number of chunks in two tags: rows and columns O, B, I, E, S. Two tags of different types that are not O are always two. */
static const uint32_t chunks_of_two[5][5] = {
    {0, 1, 1, 1, 1}, {1, 2, 1, 1, 2}, {1, 2, 1, 1, 2}, {1, 2, 2, 2, 2}, {1, 2, 2, 2, 2}};

TEST_GROUP("f1", .seconds = 30);

TEST(every_transition) {
    static const char prefixes[] = "OBIESMLUW";
    static const int meaning[] = {0, 1, 2, 3, 4, 2, 3, 4, 4}; /* letters of the same meaning in the table above */
    for (int same = 0; same < 2; same++) {
        for (int a = 0; a < 9; a++) {
            for (int b = 0; b < 9; b++) {
                char text[16];
                uint32_t ids[2];
                OWNED(vpps_vocab) *v = vocab_of(0, NULL);
                OWNED(vpps_f1) *f;
                snprintf(text, sizeof text, "%c%s %c%s", prefixes[a], a ? "-X" : "", prefixes[b],
                         b ? same ? "-X" : "-Y" : "");
                ck_assert_uint_eq(parse(v, text, ids), 2);
                TEST_OK(vpps_f1_create(&f, v));
                TEST_OK(vpps_f1_add(f, 2, ids, ids));
                const uint32_t wanted = !same && a && b ? 2 : chunks_of_two[meaning[a]][meaning[b]];
                const vpps_f1_counts found = vpps_f1_all_counts(f);
                ck_assert_msg(found.gold == wanted, "%s: %u chunks, not %u", text, (unsigned)found.gold, wanted);
                check_counts(found, wanted, wanted, wanted);
            }
        }
    }
}

static const struct hand_case {
    const char *gold, *predicted;
    uint64_t n_gold, n_predicted, n_correct;
} hand_cases[] = {
    {"", "", 0, 0, 0},
    {"O O", "O O", 0, 0, 0},
    {"I-X I-X O I-Y", "I-X I-X O I-Y", 2, 2, 2},         /* IOB1 */
    {"I-X B-X I-X", "I-X I-X I-X", 2, 1, 0},             /* IOB1: B only between equal neighbours */
    {"B-X I-X O B-Y", "I-X I-X O I-Y", 2, 2, 2},         /* the same chunks in IOB2 and IOB1 */
    {"B-X I-X E-X O S-Y", "B-X I-X I-X O B-Y", 2, 2, 2}, /* BIOES and IOB2 */
    {"B-X I-X O", "B-X I-X I-X", 1, 1, 0},               /* one end is too far right */
    {"B-X I-X O", "B-X O O", 1, 1, 0},
    {"O B-X I-X", "B-X I-X I-X", 1, 1, 0},
    {"B-X I-X", "B-Y I-Y", 1, 1, 0}, /* the other type */
    {"B-X I-Y", "B-X I-X", 2, 1, 0}, /* an I of another type begins a chunk */
    {"O I-X O", "O B-X O", 1, 1, 1}, /* an I after O begins one, too */
    {"B-X I-X B-X I-X", "B-X I-X I-X I-X", 2, 1, 0},
    {"B-X B-X B-X", "B-X O B-X", 3, 2, 2},
    {"B I I O S", "B I E O B", 2, 2, 2}, /* no types */
    {"B-A-B I-A-B", "B-A I-A", 1, 1, 0}, /* a type ends with the tag, not at the next '-' */
    {"B- O", "B O", 1, 1, 1},
    {"B-X L-X U-Y O W-Y", "B-X E-X S-Y O U-Y", 3, 3, 3}, /* the same chunks in BILOU and IOBES */
    {"B-X M-X M-X E-X M-X", "B-X I-X I-X E-X I-X", 2, 2, 2},
    {"B M E S B E", "B M E B E S", 3, 3, 1}, /* words of characters */
    /* drawn sentences, as seqeval 1.2.2 counts them in strict mode: IOB1, IOB2, IOBES, BILOU and BMES, two of each */
    {"O O O I-X I-Y I-Y B-Y I-Y I-Y O O", "O O O O I-Y I-Y B-Y I-Y I-Y O O", 3, 2, 2},
    {"O O O O I-Y I-Y I-Y B-Y I-Y", "O O O O I-X I-X I-X I-Y I-Y", 2, 2, 1},
    {"O O O B-X B-Y I-Y B-Y I-Y I-Y O O", "O O O O B-Y I-Y B-Y I-Y I-Y O O", 3, 2, 2},
    {"O O O O B-Y I-Y I-Y B-Y I-Y", "O O O O B-X I-X I-X B-Y I-Y", 2, 2, 1},
    {"O O S-Y B-X I-X E-X B-X I-X E-X O O", "O O O B-X I-X E-X B-X I-X E-X O O", 3, 2, 2},
    {"O O O O B-X I-X E-X B-Y I-Y E-Y S-X S-Y", "O O O O O O O B-X I-X E-X S-Y S-X", 4, 3, 0},
    {"B-Y I-Y L-Y B-Y I-Y L-Y B-X L-X B-X I-X L-X", "O O O B-Y I-Y L-Y U-X O B-X L-X O", 4, 3, 1},
    {"B-Y I-Y L-Y B-X L-X B-Y I-Y L-Y B-Y L-Y", "B-Y I-Y L-Y B-X L-X B-X I-X L-X U-Y O", 4, 4, 2},
    {"B-Y E-Y S-X B-Y E-Y O O O B-X E-X", "B-Y E-Y O S-Y O O O O S-X O", 4, 3, 1},
    {"B-X M-X E-X B-Y E-Y B-Y M-Y E-Y B-Y M-Y E-Y", "B-X E-X O B-Y E-Y B-Y M-Y E-Y O O O", 4, 3, 2},
};

TEST_EACH(by_hand, 0, VPPS_COUNT(hand_cases)) {
    const struct hand_case *c = &hand_cases[_i];
    uint32_t gold[16], predicted[16];
    uint64_t right;
    OWNED(vpps_vocab) *v = vocab_of(0, NULL);
    OWNED(vpps_f1) *f;
    const uint32_t n = parse(v, c->gold, gold);
    ck_assert_uint_eq(parse(v, c->predicted, predicted), n);
    TEST_OK(vpps_f1_create(&f, v));
    TEST_OK(vpps_f1_add(f, n, gold, predicted));
    check_counts(vpps_f1_all_counts(f), c->n_gold, c->n_predicted, c->n_correct);
    ck_assert_uint_eq(vpps_f1_tokens(f, &right), n);
    ck_assert_uint_le(right, n);
}

TEST(types_and_ratios) {
    uint32_t gold[8], predicted[8];
    uint64_t right;
    OWNED(vpps_vocab) *v = vocab_of(0, NULL);
    OWNED(vpps_f1) *f;
    const uint32_t n = parse(v, "O B-LOC I-LOC B-PER B-PER O B-LOC O", gold);
    parse(v, "O B-LOC I-LOC B-PER O O B-PER B-ORG", predicted);
    TEST_OK(vpps_f1_create(&f, v));
    check_counts(vpps_f1_all_counts(f), 0, 0, 0);
    ck_assert_double_eq(vpps_f1_score(vpps_f1_all_counts(f)), 0);
    TEST_OK(vpps_f1_add(f, n, gold, predicted));
    ck_assert_uint_eq(vpps_f1_types(f), 3);
    ck_assert_str_eq(vpps_f1_type(f, 0), "LOC");
    ck_assert_str_eq(vpps_f1_type(f, 1), "PER");
    ck_assert_str_eq(vpps_f1_type(f, 2), "ORG");
    ck_assert_ptr_null(vpps_f1_type(f, 3));
    check_counts(vpps_f1_type_counts(f, 0), 2, 1, 1);
    check_counts(vpps_f1_type_counts(f, 1), 2, 2, 1);
    check_counts(vpps_f1_type_counts(f, 2), 0, 1, 0);
    check_counts(vpps_f1_type_counts(f, 3), 0, 0, 0);
    const vpps_f1_counts all = vpps_f1_all_counts(f);
    check_counts(all, 4, 4, 2);
    ck_assert_double_eq(vpps_f1_precision(vpps_f1_type_counts(f, 0)), 1);
    ck_assert_double_eq(vpps_f1_recall(vpps_f1_type_counts(f, 0)), 0.5);
    ck_assert_double_eq_tol(vpps_f1_score(vpps_f1_type_counts(f, 0)), 2.0 / 3, 1e-15);
    ck_assert_double_eq(vpps_f1_score(all), 0.5);
    ck_assert_double_eq(vpps_f1_recall(vpps_f1_type_counts(f, 2)), 0);
    ck_assert_uint_eq(vpps_f1_tokens(f, &right), 8);
    ck_assert_uint_eq(right, 5);
    static const uint32_t out_of_range[] = {0, 99};
    CHECK_STATUS(vpps_f1_add(f, 2, gold, out_of_range), VPPS_ARGUMENT);
    CHECK_STATUS(vpps_f1_add(f, 2, out_of_range, gold), VPPS_ARGUMENT);
    ck_assert_uint_eq(vpps_f1_tokens(f, NULL), 8);
}

/* A tag of no scheme is outside of chunks, as O is, and the others count on. */
TEST(tags_that_are_none) {
    static const char *const bad[] = {"NNP", "BX", "b-X", "o", "OO", "O-X", "-X", "N-X", "Bx-X", "0", "B_X", ""};
    for (size_t i = 0; i < VPPS_COUNT(bad); i++) {
        OWNED(vpps_vocab) *v = vocab_of(0, NULL);
        OWNED(vpps_f1) *f;
        uint32_t ids[4], odd = 0;
        parse(v, "B-X I-X O S-Y", ids);
        if (*bad[i]) TEST_OK(vpps_vocab_add(v, bad[i], strlen(bad[i]), &odd));
        TEST_OK(vpps_f1_create(&f, v));
        const uint32_t gold[] = {ids[0], *bad[i] ? odd : ids[2], ids[1], ids[3]},
                       said[] = {ids[0], ids[2], ids[1], gold[1]};
        TEST_OK(vpps_f1_add(f, 4, gold, said)); /* X, none, X, Y compared with X, O, X, none */
        check_counts(vpps_f1_all_counts(f), 3, 2, 2);
        ck_assert_uint_eq(vpps_f1_types(f), 2);
    }
}

static const struct {
    const char *tags;
    bool applies;
} tag_sets[] = {{"O B-X I-X", true},
                {"I-X O", true},
                {"B M E S", true},
                {"O B-X 0", true}, /* one tag is mistyped */
                {"O B-X b-X BX 0", true},
                {"O B-X b-X BX 0 1", false},
                {"B M E S 0", true},
                {"B M E S 0 b", false},
                {"", false},
                {"O", false},
                {"O 0", false},
                {"0 1", false},
                {"NN VB DT", false},
                {"NN VB I O S", false}, /* parts of speech of one letter, some of which are a scheme's letters */
                {"N O S Z V L A R D P T X Y U E G M B", false},
                {"B-LOC.NAM I-LOC.NAM O B-PER", true},
                {"L-X U-X O", true}};

TEST_EACH(sets_of_tags, 0, VPPS_COUNT(tag_sets)) {
    OWNED(vpps_vocab) *v = vocab_of(0, NULL);
    uint32_t ids[32];
    parse(v, tag_sets[_i].tags, ids);
    ck_assert_msg(vpps_f1_applies(v) == tag_sets[_i].applies, "%s", tag_sets[_i].tags);
}

/* ---------------------------------------------------------------- conlleval's procedure
 *
 * It walks over the words once, asks at each whether a chunk has ended before it and whether one starts, in the gold
 * tags and in the predicted ones, and remembers whether both are inside an equal chunk. */

static bool listed(const char *transitions, char before, char now) {
    for (; *transitions; transitions += 3)
        if (transitions[0] == before && transitions[1] == now) return true;
    return false;
}

static char type_of(const char *tag) { return tag[0] == 'O' ? '\0' : tag[2]; }

static bool chunk_ends(const char *before, const char *now) {
    return listed("BB BS BO IB IS IO EB EI EO EE ES SB SI SO SE SS ", before[0], now[0]) ||
           (before[0] != 'O' && type_of(before) != type_of(now));
}

static bool chunk_starts(const char *before, const char *now) {
    return listed("BB BS IB IS OB OI OE OS EB EI EE ES SB SI SE SS ", before[0], now[0]) ||
           (now[0] != 'O' && type_of(before) != type_of(now));
}

static void reference_counts(uint32_t n, const uint32_t *gold, const uint32_t *predicted, vpps_f1_counts *by_type) {
    const char *last_g = "O", *last_p = "O";
    bool inside = false;
    for (uint32_t i = 0; i <= n; i++) { /* a sentence ends like an O */
        const char *g = i < n ? tags[gold[i]] : "O", *p = i < n ? tags[predicted[i]] : "O";
        const bool end_g = chunk_ends(last_g, g), end_p = chunk_ends(last_p, p);
        if (inside && end_g && end_p) by_type[type_of(last_g) - 'X'].correct++;
        if (end_g || end_p) inside = false;
        const bool start_g = chunk_starts(last_g, g), start_p = chunk_starts(last_p, p);
        if (start_g) by_type[type_of(g) - 'X'].gold++;
        if (start_p) by_type[type_of(p) - 'X'].predicted++;
        if (start_g && start_p && type_of(g) == type_of(p)) inside = true;
        last_g = g;
        last_p = p;
    }
}

/* Adds a sentence to both, and compares the sums. */
static void compare_with_reference(vpps_f1 *f, vpps_f1_counts wanted[2], uint32_t n, const uint32_t *gold,
                                   const uint32_t *predicted) {
    TEST_OK(vpps_f1_add(f, n, gold, predicted));
    reference_counts(n, gold, predicted, wanted);
    for (uint32_t t = 0; t < 2; t++) {
        const vpps_f1_counts found = vpps_f1_type_counts(f, t);
        if (memcmp(&found, &wanted[t], sizeof found) != 0)
            check_counts(found, wanted[t].gold, wanted[t].predicted, wanted[t].correct);
    }
}

TEST(as_conlleval) {
    OWNED(vpps_vocab) *v = vocab_of(N_TAGS, tags);
    OWNED(vpps_f1) *f;
    vpps_f1_counts wanted[2] = {{0}, {0}};
    uint32_t gold[30], predicted[30];
    TEST_OK(vpps_f1_create(&f, v));
    for (uint32_t code = 0; code < N_TAGS * N_TAGS * N_TAGS * N_TAGS; code++) { /* all pairs of two words */
        uint32_t rest = code;
        for (uint32_t i = 0; i < 4; i++, rest /= N_TAGS) (i < 2 ? gold : predicted)[i % 2] = rest % N_TAGS;
        compare_with_reference(f, wanted, 2, gold, predicted);
    }
    uint64_t random = 17;
    for (int round = 0; round < (int)test_scaled(20000); round++) {
        const uint32_t n = vpps_random_below(&random, 31), wrong = vpps_random_below(&random, 100);
        for (uint32_t i = 0; i < n; i++) {
            gold[i] = vpps_random_below(&random, N_TAGS);
            predicted[i] = vpps_random_below(&random, 100) < wrong ? vpps_random_below(&random, N_TAGS) : gold[i];
        }
        compare_with_reference(f, wanted, n, gold, predicted);
    }
}
