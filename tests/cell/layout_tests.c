/* layout_tests.c - PQ trees against all permutations, and layouts: figure 3 of ED-Batch, and random batches. */
#include "cell/pq_layout.h"
#include "cell/pq_tree.h"
#include "common/testing.h"

/* ---------------------------------------------------------------- PQ trees */

enum { MOST = 7 };

/* Where a node's leaves lie in an order: from *first on. False: they lie apart, or a Q-node's children in another order. */
static bool lies(const vpps_pq_tree *t, uint32_t node, const uint32_t *place, uint32_t *first) {
    const vpps_pq_node *x = &t->nodes[node];
    if (x->kind == VPPS_PQ_LEAF) return *first = place[x->leaf], true;
    uint32_t at[MOST], end = 0;
    *first = UINT32_MAX;
    for (uint32_t i = 0; i < x->n; i++) {
        const uint32_t child = vpps_pq_children(t, node)[i];
        if (!lies(t, child, place, &at[i])) return false;
        if (at[i] < *first) *first = at[i];
        if (at[i] + t->nodes[child].size > end) end = at[i] + t->nodes[child].size;
    }
    if (end - *first != x->size) return false;
    bool forth = true, back = true;
    for (uint32_t i = 1; i < x->n; i++) {
        forth = forth && at[i] > at[i - 1];
        back = back && at[i] < at[i - 1];
    }
    return x->kind == VPPS_PQ_P || forth || back;
}

static bool next_permutation(uint32_t *x, uint32_t n) {
    uint32_t i = n - 1, k = n - 1;
    while (i && x[i - 1] >= x[i]) i--;
    if (!i) return false;
    while (x[k] <= x[i - 1]) k--;
    const uint32_t y = x[k];
    x[k] = x[i - 1];
    x[i - 1] = y;
    for (k = n - 1; i < k; i++, k--) {
        const uint32_t z = x[i];
        x[i] = x[k];
        x[k] = z;
    }
    return true;
}

static bool consecutive(const uint32_t *place, uint32_t set) {
    uint64_t places = 0;
    for (uint32_t v = 0; v < MOST; v++)
        if (set >> v & 1) places |= (uint64_t)1 << place[v];
    places >>= __builtin_ctzll(places);
    return (places & (places + 1)) == 0;
}

/* The tree holds exactly the orders in which all sets are consecutive; how many they are. */
static uint32_t check_orders(const vpps_pq_tree *t, uint32_t n, const uint32_t *sets, uint32_t n_sets) {
    uint32_t place[MOST], first, orders = 0;
    for (uint32_t v = 0; v < n; v++) place[v] = v;
    do {
        bool good = true;
        for (uint32_t i = 0; i < n_sets; i++) good = good && consecutive(place, sets[i]);
        ck_assert_msg(lies(t, t->root, place, &first) == good, "%u elements, %u sets: an order is %s", n, n_sets,
                      good ? "missing" : "wrong");
        orders += good;
    } while (next_permutation(place, n));
    return orders;
}

static void check_form(const vpps_pq_tree *t, uint32_t node) {
    const vpps_pq_node *x = &t->nodes[node];
    if (x->kind == VPPS_PQ_P) ck_assert_uint_gt(x->n, 2);
    if (x->kind == VPPS_PQ_Q) ck_assert_uint_gt(x->n, 1);
    for (uint32_t i = 0; i < x->n; i++) check_form(t, vpps_pq_children(t, node)[i]);
}

TEST_GROUP("layout", .seconds = 60);

TEST(against_all_permutations) {
    uint64_t random = test_seed();
    uint32_t refused = 0;
    for (uint32_t i = 0; i < test_scaled(400); i++) {
        const uint32_t n = 1 + vpps_random_below(&random, MOST);
        uint32_t sets[10], n_sets = 0;
        vpps_pq_tree t;
        ck_assert(vpps_pq_open(&t, n));
        for (uint32_t k = 0; k < 10; k++) {
            uint32_t list[MOST], size = 0, set = 0;
            for (uint32_t v = 0; v < n; v++)
                if (vpps_random_below(&random, 5) < 2) list[size++] = v;
            for (uint32_t v = 0; v < size; v++) set |= 1u << list[v];
            if (!size) continue;
            const uint32_t before = check_orders(&t, n, sets, n_sets);
            const vpps_pq_result r = vpps_pq_reduce(&t, list, size);
            ck_assert_int_ne(r, VPPS_PQ_MEMORY);
            sets[n_sets] = set;
            if (r == VPPS_PQ_NONE) { /* and indeed there is no order; the tree is as it was */
                refused++;
                ck_assert_uint_eq(check_orders(&t, n, sets, n_sets), before);
                uint32_t place[MOST];
                for (uint32_t v = 0; v < n; v++) place[v] = v;
                do {
                    bool good = true;
                    for (uint32_t s = 0; s <= n_sets; s++) good = good && consecutive(place, sets[s]);
                    ck_assert(!good);
                } while (next_permutation(place, n));
                continue;
            }
            n_sets++;
            const uint32_t after = check_orders(&t, n, sets, n_sets);
            ck_assert_uint_gt(after, 0);
            ck_assert_int_eq(r == VPPS_PQ_SAME, after == before);
            check_form(&t, t.root);
        }
        vpps_pq_close(&t);
    }
    ck_assert_uint_gt(refused, 0);
}

/* ---------------------------------------------------------------- layouts */

/* Values from 1 in the figure, from 0 here. */
TEST(as_in_figure_3) {
    static const uint32_t one[] = {4 - 1, 5 - 1, 1 - 1, 3 - 1, 2 - 1, 1 - 1};
    static const uint32_t two[] = {8 - 1, 6 - 1, 7 - 1, 3 - 1, 4 - 1, 5 - 1};
    const vpps_layout_batch batches[] = {{3, 2, one}, {2, 3, two}};
    static const uint32_t expected[] = {2, 1, 3, 4, 5, 8, 6, 7}, words[] = {1, 1, 1, 1, 1, 1, 1, 1};
    uint32_t order[8], labels[8];
    vpps_layout_copies copies;
    ck_assert(vpps_plan_layout(8, batches, 2, order));
    for (uint32_t p = 0; p < 8; p++) ck_assert_uint_eq(order[p] + 1, expected[p]);
    ck_assert(vpps_count_copies(8, order, batches, 2, words, &copies));
    ck_assert_uint_eq(copies.gathers + copies.scatters + copies.broadcasts, 0);
    ck_assert_uint_eq(copies.gathered + copies.scattered + copies.broadcast, 0);
    for (uint32_t p = 0; p < 8; p++) labels[p] = p;
    ck_assert(vpps_count_copies(8, labels, batches, 2, words, &copies));
    ck_assert_uint_eq(copies.gathers, 2);
    ck_assert_uint_eq(copies.gathered, 4);
    ck_assert_uint_eq(copies.scatters, 1);
    ck_assert_uint_eq(copies.scattered, 3);
}

/* An order that some permutation was the reason for can be found again: nothing is copied. */
TEST(orders_that_exist_are_found) {
    uint64_t random = test_seed() + 1;
    enum { VALUES = 24, BATCHES = 5 };
    uint32_t found = 0, n_cases = test_scaled(300);
    for (uint32_t i = 0; i < n_cases; i++) {
        uint32_t hidden[VALUES] = {0}, operands[BATCHES][3 * 4], order[VALUES], words[VALUES], n_batches = 0;
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
        ck_assert(vpps_plan_layout(VALUES, batches, n_batches, order));
        uint32_t seen[VALUES] = {0};
        for (uint32_t p = 0; p < VALUES; p++) seen[order[p]]++;
        for (uint32_t v = 0; v < VALUES; v++) ck_assert_uint_eq(seen[v], 1);
        ck_assert(vpps_count_copies(VALUES, order, batches, n_batches, words, &copies));
        found += copies.gathers + copies.scatters == 0;
    }
    ck_assert_uint_eq(found, n_cases);
}

/* What cannot be is copied: a and b next to each other, b and c, c and a. */
TEST(conflicts_are_counted) {
    static const uint32_t sets[3][4] = {{0, 1, 3, 4}, {1, 2, 5, 6}, {2, 0, 7, 8}},
                          words[9] = {2, 2, 2, 2, 2, 2, 2, 2, 2};
    const vpps_layout_batch batches[] = {{2, 2, sets[0]}, {2, 2, sets[1]}, {2, 2, sets[2]}};
    uint32_t order[9];
    vpps_layout_copies copies;
    ck_assert(vpps_plan_layout(9, batches, 3, order));
    ck_assert(vpps_count_copies(9, order, batches, 3, words, &copies));
    ck_assert_uint_eq(copies.scatters + copies.gathers >= 1, 1);
    ck_assert_uint_le(copies.scatters + copies.gathers, 2);
    static const uint32_t same[] = {0, 1, 2, 2}; /* operand 1 is one value twice */
    const vpps_layout_batch twice = {2, 2, same};
    ck_assert(vpps_plan_layout(9, &twice, 1, order));
    ck_assert(vpps_count_copies(9, order, &twice, 1, words, &copies));
    ck_assert_uint_eq(copies.broadcasts, 1);
    ck_assert_uint_eq(copies.broadcast, 4);
    ck_assert_uint_eq(copies.gathers + copies.scatters, 0);
}
