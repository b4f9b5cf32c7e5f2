/* layout_tests.c - the search for orders of values that need few copies: figure 3 of ED-Batch, random batches, and the cells of networks. */
#include "cell/arrange.h"
#include "cells.h"

TEST_GROUP("layout", .seconds = 60);

/* The figure numbers values from 1; here they begin at 0. */
TEST(as_in_figure_3) {
    static const uint32_t one[] = {4 - 1, 5 - 1, 1 - 1, 3 - 1, 2 - 1, 1 - 1};
    static const uint32_t two[] = {8 - 1, 6 - 1, 7 - 1, 3 - 1, 4 - 1, 5 - 1};
    const vpps_layout_batch batches[] = {{3, 2, one}, {2, 3, two}};
    static const uint32_t words[] = {1, 1, 1, 1, 1, 1, 1, 1};
    uint32_t order[8], labels[8], place[8];
    vpps_layout_copies copies;
    ck_assert(vpps_plan_layout(8, batches, 2, 2, words, order));
    vpps_count_copies(8, order, batches, 2, words, place, &copies);
    ck_assert_uint_eq(copies.gathers + copies.scatters + copies.broadcasts, 0);
    ck_assert_uint_eq(copies.gathered + copies.scattered + copies.broadcast, 0);
    for (uint32_t p = 0; p < 8; p++) labels[p] = p;
    vpps_count_copies(8, labels, batches, 2, words, place, &copies);
    ck_assert_uint_eq(copies.gathers, 2);
    ck_assert_uint_eq(copies.gathered, 4);
    ck_assert_uint_eq(copies.scatters, 1);
    ck_assert_uint_eq(copies.scattered, 3);
}

/* If some order needs no copy, the search mostly finds one. */
TEST(orders_that_exist_are_found) {
    uint64_t random = test_seed() + 1;
    enum { VALUES = 24, BATCHES = 5 };
    uint32_t found = 0, n_cases = test_scaled(300);
    for (uint32_t i = 0; i < n_cases; i++) {
        uint32_t hidden[VALUES] = {0}, operands[BATCHES][3 * 4], order[VALUES], words[VALUES], place[VALUES],
                 n_batches = 0;
        vpps_layout_batch batches[BATCHES];
        for (uint32_t v = 0; v < VALUES; v++) {
            const uint32_t k = vpps_random_below(&random, v + 1);
            hidden[v] = hidden[k];
            hidden[k] = v;
            words[v] = 1 + v;
        }
        for (; n_batches < BATCHES; n_batches++) { /* runs of the hidden order */
            const uint32_t width = 2 + vpps_random_below(&random, 3), n = 2 + vpps_random_below(&random, 2);
            for (uint32_t o = 0; o < n; o++) {
                const uint32_t first = vpps_random_below(&random, VALUES - width);
                for (uint32_t k = 0; k < width; k++) operands[n_batches][o * width + k] = hidden[first + k];
            }
            batches[n_batches] = (vpps_layout_batch){n, width, operands[n_batches]};
        }
        vpps_layout_copies copies;
        ck_assert(vpps_plan_layout(VALUES, batches, n_batches, 0, words, order));
        uint32_t seen[VALUES] = {0};
        for (uint32_t p = 0; p < VALUES; p++) seen[order[p]]++;
        for (uint32_t v = 0; v < VALUES; v++) ck_assert_uint_eq(seen[v], 1);
        vpps_count_copies(VALUES, order, batches, n_batches, words, place, &copies);
        found += copies.gathers + copies.scatters == 0;
    }
    ck_assert_uint_ge(10 * found, 7 * n_cases);
}

/* Conflicts need copies: a should be next to b, b next to c, and c next to a. */
TEST(conflicts_are_counted) {
    static const uint32_t sets[3][4] = {{0, 1, 3, 4}, {1, 2, 5, 6}, {2, 0, 7, 8}},
                          words[9] = {2, 2, 2, 2, 2, 2, 2, 2, 2};
    const vpps_layout_batch batches[] = {{2, 2, sets[0]}, {2, 2, sets[1]}, {2, 2, sets[2]}};
    uint32_t order[9], place[9];
    vpps_layout_copies copies;
    ck_assert(vpps_plan_layout(9, batches, 3, 3, words, order));
    vpps_count_copies(9, order, batches, 3, words, place, &copies);
    ck_assert_uint_eq(copies.scatters + copies.gathers >= 1, 1);
    ck_assert_uint_le(copies.scatters + copies.gathers, 2);
    static const uint32_t same[] = {0, 1, 2, 2}; /* operand 1 has one value twice */
    const vpps_layout_batch twice = {2, 2, same};
    ck_assert(vpps_plan_layout(9, &twice, 1, 1, words, order));
    vpps_count_copies(9, order, &twice, 1, words, place, &copies);
    ck_assert_uint_eq(copies.broadcasts, 1);
    ck_assert_uint_eq(copies.broadcast, 4);
    ck_assert_uint_eq(copies.gathers + copies.scatters, 0);
}

/* The order that the search finds needs at most as many copies as the order of creation, for some cells fewer. */
TEST(an_order_of_values_copies_no_more) {
    AT_END(cells_close) cells x = cells_open();
    uint32_t better = 0;
    for (uint32_t id = 0; id < N_CELLS; id++) {
        const vpps_cell_needs needs = cells_recurrent(x.g, x.cell[id], 1);
        OWNED(vpps_compiled_cell) *c = cells_compile(x.g, x.cell[id], &needs);
        vpps_cell_layout l;
        TEST_OK(vpps_arrange_cell(c, &l));
        ck_assert(vpps_copied_words(&l.arranged) <= vpps_copied_words(&l.as_made));
        better += vpps_copied_words(&l.arranged) < vpps_copied_words(&l.as_made);
    }
    ck_assert_uint_gt(better, 2);
}
