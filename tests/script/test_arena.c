/* test_arena.c - memory taken in pieces: separate, aligned, kept while the arena grows, and freed as a whole. */
#include "base/arena.h"
#include "common/testing.h"

enum { MOST = 400 };

typedef struct piece {
    unsigned char *at;
    size_t n;
} piece;

/* Takes pieces of many sizes, and fills each with its number. */
static void take_pieces(vpps_arena *a, piece *pieces, uint32_t n, uint64_t *random) {
    for (uint32_t i = 0; i < n; i++) {
        pieces[i].n = vpps_random_below(random, i % 7 ? 300 : 30000);
        ck_assert(VPPS_TAKE(a, pieces[i].at, pieces[i].n));
        memset(pieces[i].at, (int)(i & 255), pieces[i].n);
    }
}

static void check_pieces(const piece *pieces, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        ck_assert_uint_eq((uintptr_t)pieces[i].at % 64, 0);
        for (size_t k = 0; k < pieces[i].n; k++) ck_assert_uint_eq(pieces[i].at[k], i & 255);
    }
}

TEST_GROUP("pieces");

TEST(what_came_before_a_mark_stays) {
    AT_END(vpps_arena_free) vpps_arena a = {0};
    piece before[MOST], after[MOST];
    uint64_t random = 2;
    take_pieces(&a, before, MOST, &random);
    const vpps_arena_mark mark = vpps_arena_here(&a);
    for (uint32_t round = 0; round < 3; round++) {
        take_pieces(&a, after, MOST, &random);
        check_pieces(before, MOST);
        check_pieces(after, MOST);
        vpps_arena_back_to(&a, mark);
    }
    vpps_arena_back_to(&a, (vpps_arena_mark){0});
    ck_assert_ptr_null(a.last);
}

TEST(arrays_grow_with_their_content) {
    AT_END(vpps_arena_free) vpps_arena a = {0};
    uint32_t *numbers = NULL;
    size_t capacity = 0;
    for (uint32_t i = 0; i < 5000; i++) {
        ck_assert(VPPS_TAKE_MORE(&a, numbers, capacity, i + 1u));
        numbers[i] = i;
    }
    for (uint32_t i = 0; i < 5000; i++) ck_assert_uint_eq(numbers[i], i);
    uint32_t *zeros;
    vpps_arena_clear(&a);
    ck_assert(VPPS_TAKE_ZEROS(&a, zeros, 5000));
    for (uint32_t i = 0; i < 5000; i++) ck_assert_uint_eq(zeros[i], 0);
}

TEST(sizes_that_no_memory_has_are_refused) {
    AT_END(vpps_arena_free) vpps_arena a = {0};
    ck_assert_ptr_null(vpps_arena_take(&a, SIZE_MAX / 4, 8));
    ck_assert_ptr_null(vpps_arena_take(&a, SIZE_MAX, 1));
    uint64_t *numbers = NULL;
    size_t capacity = 0;
    ck_assert(!vpps_arena_grow(&a, &numbers, &capacity, SIZE_MAX / 2 + 2, sizeof *numbers));
    ck_assert_ptr_null(numbers);
    ck_assert_uint_eq(capacity, 0);
    ck_assert(VPPS_TAKE(&a, numbers, 0)); /* taking no elements is no failure */
}
