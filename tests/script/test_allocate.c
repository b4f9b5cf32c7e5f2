/* test_allocate.c - placing tensors by their lifetimes: never in each other's words, never far from the least possible size, and few tensors in as
 * few words as any placing takes. On networks: tests/cli/test_memory.sh. */
#include "common/testing.h"
#include "script/allocate.h"

enum { MOST = 300, FEW = 6 };

static uint32_t below(uint64_t *random, uint32_t n) { return vpps_random_below(random, n); }

static uint32_t draw(vpps_tensor_life *all, uint32_t n, uint32_t n_phases, uint64_t *random) {
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t first = below(random, n_phases), length = below(random, n_phases - first);
        all[i] = (vpps_tensor_life){.words = 16 * (1 + below(random, 20)),
                                    .first = first,
                                    .last = below(random, 10) ? first + length : UINT32_MAX};
    }
    return n;
}

static bool interfere(const vpps_tensor_life *a, const vpps_tensor_life *b) {
    return a->first <= b->last && b->first <= a->last;
}

static void check_placing(const vpps_tensor_life *all, uint32_t n, uint64_t words) {
    bool inside = true, aligned = true, apart = true;
    for (uint32_t i = 0; i < n; i++) {
        inside = inside && all[i].at + all[i].words <= words;
        aligned = aligned && all[i].at % 16 == 0;
        for (uint32_t k = 0; k < i; k++)
            apart = apart && (all[i].at + all[i].words <= all[k].at || all[k].at + all[k].words <= all[i].at ||
                              !interfere(&all[i], &all[k]));
    }
    ck_assert(inside && aligned && apart);
}

/* Counts, phase by phase, the most words that are live in one phase. */
static uint64_t live_words(const vpps_tensor_life *all, uint32_t n, uint32_t n_phases) {
    uint64_t most = 0;
    for (uint32_t p = 0; p < n_phases; p++) {
        uint64_t words = 0;
        for (uint32_t i = 0; i < n; i++)
            if (all[i].first <= p && p <= all[i].last) words += all[i].words;
        if (words > most) most = words;
    }
    return most;
}

/* Returns the fewest words of all placings: some order, in which each tensor lies as low as earlier ones allow, reaches them. */
static uint64_t fewest(vpps_tensor_life *all, uint32_t n, uint32_t done, uint64_t end, uint64_t best) {
    if (done == n || end >= best) return end < best ? end : best;
    for (uint32_t i = done; i < n; i++) {
        const vpps_tensor_life t = all[i];
        all[i] = all[done];
        all[done] = t;
        uint64_t at = 0;
        for (bool moved = true; moved;) {
            moved = false;
            for (uint32_t k = 0; k < done; k++) {
                if (!interfere(&all[k], &t) || at >= all[k].at + all[k].words || all[k].at >= at + t.words) continue;
                at = all[k].at + all[k].words;
                moved = true;
            }
        }
        all[done].at = at;
        best = fewest(all, n, done + 1, at + t.words > end ? at + t.words : end, best);
        all[done] = all[i];
        all[i] = t;
    }
    return best;
}

TEST_GROUP("tensors");

TEST(no_two_that_live_at_once_share_a_word) {
    uint64_t random = 11;
    for (uint32_t round = 0; round < 200; round++) {
        vpps_tensor_life all[MOST];
        const uint32_t n_phases = 1 + below(&random, 60), n = draw(all, below(&random, MOST), n_phases, &random);
        uint64_t words, live;
        ck_assert(vpps_allocate(all, n, &words, &live));
        check_placing(all, n, words);
        ck_assert_uint_eq(live, live_words(all, n, n_phases));
        ck_assert_uint_ge(words, live);
        ck_assert_msg(words <= 1.6 * (double)live, "%llu words of %llu", (unsigned long long)words,
                      (unsigned long long)live);
    }
}

TEST(few_take_as_little_as_can_be) {
    uint64_t random = 12;
    uint32_t more = 0, rounds = 1000;
    for (uint32_t round = 0; round < rounds; round++) {
        vpps_tensor_life all[FEW];
        const uint32_t n = draw(all, 1 + below(&random, FEW), 1 + below(&random, 8), &random);
        uint64_t words, live;
        ck_assert(vpps_allocate(all, n, &words, &live));
        check_placing(all, n, words);
        const uint64_t best = fewest(all, n, 0, 0, UINT64_MAX);
        ck_assert_uint_ge(words, best);
        ck_assert_uint_le(words, best + best / 3);
        more += words > best;
    }
    ck_assert_msg(more <= rounds / 50, "%u of %u are not placed as well as can be", more, rounds);
}
