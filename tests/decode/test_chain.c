/* test_chain.c - compares a sentence's likeliest tags, and each tag's probability, with those of all paths; and which tags schemes allow. */
#include "cli/session/chain.h"
#include "common/testing.h"

enum { CLASSES = 3, WORDS = 4, CASES = 50 };

typedef struct problem {
    tag_chain chain;
    float values[WORDS][CLASSES];
    const float *logits[WORDS];
} problem;

static float draw(uint64_t *random) { return 4 * vpps_random_unit(random) - 2; }

/* Draws a problem in which some tags may not follow each other; tag 0 always may. */
static void open(problem *p, uint64_t *random) {
    TEST_OK(chain_open(&p->chain, CLASSES));
    for (uint32_t i = 0; i < CLASSES * CLASSES + 2 * CLASSES; i++) p->chain.next[i] = draw(random);
    for (uint32_t i = 1; i < CLASSES; i++) {
        if (vpps_random_below(random, 3) == 0) p->chain.next[i * CLASSES + vpps_random_below(random, 3)] = -INFINITY;
        if (vpps_random_below(random, 3) == 0) p->chain.begin[i] = -INFINITY;
        if (vpps_random_below(random, 3) == 0) p->chain.end[i] = -INFINITY;
    }
    for (uint32_t k = 0; k < WORDS; k++) {
        for (uint32_t i = 0; i < CLASSES; i++) p->values[k][i] = draw(random);
        p->logits[k] = p->values[k];
    }
}

/* Returns path number `path` of n words, and its score. */
static double score(const problem *p, uint32_t n, uint32_t path, uint32_t tags[WORDS]) {
    double sum = 0;
    for (uint32_t k = 0; k < n; k++, path /= CLASSES) {
        tags[k] = path % CLASSES;
        sum += (double)(p->values[k][tags[k]] +
                        (k ? p->chain.next[tags[k] * CLASSES + tags[k - 1]] : p->chain.begin[tags[k]]));
    }
    return sum + (double)p->chain.end[tags[n - 1]];
}

TEST(the_best_of_all_paths_is_found) {
    uint64_t random = test_seed();
    for (uint32_t trial = 0; trial < CASES; trial++) {
        problem p;
        const uint32_t n = 1 + trial % WORDS;
        double best = -INFINITY, all = 0, of[WORDS][CLASSES] = {{0}};
        uint32_t tags[WORDS], n_paths = 1;
        int32_t found[WORDS];
        float log_p[WORDS * CLASSES];
        open(&p, &random);
        for (uint32_t k = 0; k < n; k++) n_paths *= CLASSES;
        for (uint32_t path = 0; path < n_paths; path++) {
            const double s = score(&p, n, path, tags);
            best = fmax(best, s);
            all += exp(s);
            for (uint32_t k = 0; k < n; k++) of[k][tags[k]] += exp(s);
        }
        TEST_OK(chain_decode(&p.chain, n, p.logits, found));
        uint32_t path = 0;
        for (uint32_t k = n; k-- > 0;) path = path * CLASSES + (uint32_t)found[k];
        ck_assert_double_eq_tol(score(&p, n, path, tags), best, 1e-5);
        TEST_OK(chain_marginals(&p.chain, n, p.logits, log_p));
        for (uint32_t k = 0; k < n; k++)
            for (uint32_t i = 0; i < CLASSES; i++)
                ck_assert_double_eq_tol(exp((double)log_p[k * CLASSES + i]), of[k][i] / all, 1e-5);
        chain_close(&p.chain);
    }
}

TEST(schemes_allow_what_they_say) {
    static const struct {
        const char *before, *now;
        bool iob1, iob2, iobes;
    } rows[] = {
        {"O", "O", true, true, true},           {"O", "I-PER", true, false, false},
        {"O", "B-PER", false, true, true},      {"O", "S-PER", true, true, true},
        {"O", "E-PER", true, false, false},     {"B-PER", "I-PER", true, true, true},
        {"B-PER", "I-LOC", true, false, false}, {"I-PER", "B-PER", true, true, false},
        {"I-PER", "B-LOC", false, true, false}, {"B-PER", "O", true, true, false},
        {"I-PER", "O", true, true, false},      {"E-PER", "O", true, true, true},
        {"S-PER", "I-PER", true, false, false}, {"I-PER", "E-PER", true, true, true},
        {"I-PER", "L-PER", true, true, true},   {"E-PER", "U-LOC", true, true, true},
        {"I-PER", "I-PER", true, true, true},   {"I-PER", "I-LOC", true, false, false},
    };
    for (size_t i = 0; i < VPPS_COUNT(rows); i++) {
        const bool got[] = {chain_allows(CHAIN_IOB1, rows[i].before, rows[i].now),
                            chain_allows(CHAIN_IOB2, rows[i].before, rows[i].now),
                            chain_allows(CHAIN_IOBES, rows[i].before, rows[i].now)};
        ck_assert_msg(got[0] == rows[i].iob1 && got[1] == rows[i].iob2 && got[2] == rows[i].iobes,
                      "%s, then %s: %d %d %d", rows[i].before, rows[i].now, got[0], got[1], got[2]);
        ck_assert(chain_allows(CHAIN_ANY, rows[i].before, rows[i].now));
    }
}

/* Scores that prefer tags which IOB2 forbids. */
TEST(a_scheme_forbids) {
    static const char *const names[] = {"O", "I-PER", "B-PER"};
    const float first[] = {0, 3, 2}, second[] = {0, 3, 2}, *const logits[] = {first, second};
    AT_END(chain_close) tag_chain chain;
    int32_t found[2];
    uint32_t id;
    OWNED(vpps_vocab) *tags = new_vocab();
    OWNED(vpps_vocab) *none = new_vocab();
    for (uint32_t i = 0; i < 3; i++) TEST_OK(vpps_vocab_add(tags, names[i], strlen(names[i]), &id));
    TEST_OK(vpps_vocab_add(none, "B-PER", 5, &id));
    TEST_OK(chain_open(&chain, 3));
    TEST_OK(chain_decode(&chain, 2, logits, found));
    ck_assert(found[0] == 1 && found[1] == 1);
    TEST_OK(chain_forbid(&chain, CHAIN_IOB2, tags));
    TEST_OK(chain_decode(&chain, 2, logits, found));
    ck_assert(found[0] == 2 && found[1] == 1);
    TEST_FAILS(chain_forbid(&chain, CHAIN_IOB2, none), VPPS_ARGUMENT, "--scheme");
}

TEST(tags_of_another_scheme_are_refused) {
    static const struct {
        chain_scheme scheme;
        const char *tags[6], *refused;
    } rows[] = {
        {CHAIN_IOB1, {"O", "I-A", "B-A"}, NULL},
        {CHAIN_IOB1, {"O", "I-A", "B-B"}, "B-B"},
        {CHAIN_IOB1, {"O", "I-A", "E-A"}, "E-A"},
        {CHAIN_IOB2, {"O", "I-A", "B-A", "B-B"}, NULL},
        {CHAIN_IOB2, {"O", "I-A", "I-B", "B-A"}, "I-B"},
        {CHAIN_IOB2, {"O", "B-A", "S-A"}, "S-A"},
        {CHAIN_IOBES, {"O", "B-A", "I-A", "E-A", "S-A"}, NULL},
        {CHAIN_IOBES, {"O", "B-A", "L-A", "U-B"}, NULL},
        {CHAIN_IOBES, {"O", "B-A", "I-A"}, "B-A"},
        {CHAIN_IOBES, {"O", "S-A", "I-A", "E-A"}, "I-A"},
        {CHAIN_ANY, {"I-A", "E-B"}, NULL},
    };
    for (size_t i = 0; i < VPPS_COUNT(rows); i++) {
        uint32_t id;
        OWNED(vpps_vocab) *tags = new_vocab();
        for (size_t k = 0; k < VPPS_COUNT(rows[i].tags) && rows[i].tags[k]; k++)
            TEST_OK(vpps_vocab_add(tags, rows[i].tags[k], strlen(rows[i].tags[k]), &id));
        if (rows[i].refused)
            TEST_FAILS(chain_check(rows[i].scheme, tags), VPPS_ARGUMENT, rows[i].refused);
        else
            TEST_OK(chain_check(rows[i].scheme, tags));
    }
}
