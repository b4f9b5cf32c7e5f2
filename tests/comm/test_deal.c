/* test_deal.c - a batch's examples are dealt to processes by predicted cost: each to exactly one, in order, equally in all processes, and as evenly
 * as Graham's bound says. */
#include "cli/input/corpus_read.h"
#include "cli/session/team.h"
#include "common/testing.h"
#include "runtime/comm/comm.h"

enum { EXAMPLES = 60 };

/* Stands for the corpus: example i is a tree of so many nodes over a sentence half as long, or a node with so many edges. */
static uint32_t sizes[EXAMPLES];

vpps_status corpus_example(corpus *c, net_kind kind, const corpus_split *split, uint32_t i, net_example *x) {
    static vpps_tree tree;
    (void)c;
    (void)split;
    if (kind == NET_NODES) {
        *x = (net_example){.sentence.n_words = 1, .n_edges = sizes[i]};
        return VPPS_OK;
    }
    tree = (vpps_tree){.n_nodes = sizes[i]};
    x->tree = &tree;
    x->sentence.n_words = sizes[i] / 2;
    return VPPS_OK;
}

static team team_of(vpps_communicator *c, uint32_t rank, uint32_t size) {
    *c = (vpps_communicator){.rank = rank, .size = size};
    return (team){.c = c, .rank = rank, .size = size};
}

/* Deals n of the examples to `size` processes: checks the shares, and gives the largest load, and the least and the mean possible. */
static void deal_to(uint32_t size, const uint32_t *examples, uint32_t n, uint64_t *most, double *mean) {
    uint32_t taken[EXAMPLES] = {0}, numbers[EXAMPLES], *costs;
    for (uint32_t i = 0; i < EXAMPLES; i++) numbers[i] = i;
    const corpus_split split = {.n_examples = EXAMPLES, .n_all = EXAMPLES, .examples = numbers};
    uint64_t sum = 0;
    *most = 0;
    for (uint32_t rank = 0; rank < size; rank++) {
        vpps_communicator c;
        const team t = team_of(&c, rank, size);
        uint32_t own[EXAMPLES], n_own;
        uint64_t load = 0;
        TEST_OK(team_costs(&t, NULL, NET_TREES, &split, &costs));
        TEST_OK(team_deal(&t, costs, examples, n, own, &n_own));
        for (uint32_t k = 0, at = 0; k < n_own; k++, at++) {
            while (at < n && examples[at] != own[k]) at++; /* in the batch's order */
            ck_assert_uint_lt(at, n);
            taken[own[k]]++;
            load += costs[own[k]];
        }
        sum += load;
        if (load > *most) *most = load;
        free(costs);
    }
    for (uint32_t i = 0; i < n; i++) ck_assert_uint_eq(taken[examples[i]], 1);
    *mean = (double)sum / size;
}

TEST(every_example_goes_to_one_process) {
    uint64_t random = 5, most;
    double mean;
    for (int round = 0; round < 50; round++) {
        uint32_t examples[EXAMPLES], n = vpps_random_below(&random, EXAMPLES);
        uint32_t largest = 0;
        for (uint32_t i = 0; i < EXAMPLES; i++) sizes[i] = 1 + vpps_random_below(&random, 100);
        for (uint32_t i = 0; i < n; i++) examples[i] = (i * 7 + (uint32_t)round) % EXAMPLES;
        for (uint32_t i = 0; i < n; i++) largest = vpps_max_u32(largest, 1 + sizes[examples[i]] * 3 / 2);
        for (uint32_t size = 2; size <= 8; size++) {
            deal_to(size, examples, n, &most, &mean);
            const double best = mean > largest ? mean : largest; /* none is better */
            ck_assert(n == 0 || (double)most <= mean + largest);
            ck_assert(n < 4 * size || (double)most <= 4.0 / 3 * best + 1);
        }
    }
}

/* If only numbers counted, the process with the large ones would have three times the others' work. */
TEST(what_is_large_counts_as_such) {
    uint32_t examples[16];
    uint64_t most;
    double mean;
    for (uint32_t i = 0; i < 16; i++) {
        examples[i] = i;
        sizes[i] = i % 4 == 0 ? 100 : 10;
    }
    deal_to(4, examples, 16, &most, &mean);
    ck_assert(most == (uint64_t)mean);
    sizes[0] = 1000; /* its process gets nothing else */
    deal_to(4, examples, 16, &most, &mean);
    ck_assert_uint_eq(most, 1 + 1500);
}

TEST(edges_cost) {
    uint32_t numbers[] = {0, 1}, *costs;
    vpps_communicator c;
    const team t = team_of(&c, 0, 2);
    const corpus_split split = {.n_examples = 2, .n_all = 2, .examples = numbers};
    sizes[0] = 3;
    sizes[1] = 40;
    TEST_OK(team_costs(&t, NULL, NET_NODES, &split, &costs));
    ck_assert_uint_eq(costs[1] - costs[0], 37);
    free(costs);
}
