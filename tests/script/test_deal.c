/* test_deal.c - how inputs are dealt to groups, with equal work, and less for a group with a deep input; and vertices to processors. */
#include "common/training.h"
#include "fixture.h"

enum { WORDS = 20, HIDDEN = 8, MOST_CHAINS = 20, TWIN = 100, MOST_TWINS = 8 };

/* Builds chains of so many words after the first, and as many again for each TWIN in a length; the loss is the sum over their ends. */
static vpps_node build(vpps_model *model, vpps_graph *g, const uint32_t *lengths, uint32_t n) {
    vpps_node ends[MOST_CHAINS];
    const vpps_param E = add_lookup(model, "E", WORDS, HIDDEN, 1), W = add_matrix(model, "W", HIDDEN, HIDDEN),
                     U = add_matrix(model, "U", HIDDEN, HIDDEN);
    for (uint32_t i = 0; i < n; i++) {
        vpps_node twins[MOST_TWINS];
        const uint32_t n_twins = lengths[i] / TWIN + 1;
        for (uint32_t t = 0; t < n_twins; t++) {
            vpps_node h = vpps_tanh(g, vpps_lookup(g, E, i));
            for (uint32_t k = 0; k < lengths[i] % TWIN; k++)
                h = vpps_tanh(g, vpps_affine2(g, VPPS_NO_PARAM, W, vpps_lookup(g, E, k % WORDS), U, h));
            twins[t] = h;
        }
        ends[i] = vpps_cross_entropy(g, n_twins > 1 ? vpps_sum(g, n_twins, twins) : twins[0], 0);
    }
    return vpps_sum(g, n, ends);
}

/* Returns the words of the chains that each of two groups has. */
static void deal(const uint32_t *lengths, uint32_t n, uint32_t level_flops, uint32_t *first, uint32_t *second) {
    uint32_t words[2] = {0}, most = 0;
    OWNED(vpps_model) *model = new_model(1);
    OWNED(vpps_graph) *g = new_graph(model);
    AT_END(job_close) job j;
    const vpps_node loss = build(model, g, lengths, n);
    TEST_OK(job_open(&j, g, loss, (way){.n_vps = 4, .groups = 2, .level_flops = level_flops}, 5));
    TEST_OK(verify_subject(&j.subject));
    const vpps_task_header *h = vpps_task_header_of(j.subject.script);
    uint32_t vertices[8] = {0};
    ck_assert_uint_le(j.batch->n_cells, VPPS_COUNT(vertices));
    for (uint32_t i = 0; i < h->n_blocks; i++) {
        const vpps_block *b = vpps_block_at(j.subject.script, i);
        vertices[b->cell] += b->n;
    }
    for (uint32_t c = 1; c < j.batch->n_cells; c++)
        if (vertices[c] > vertices[most]) most = c;
    for (uint32_t i = 0; i < h->n_blocks; i++) {
        const vpps_block *b = vpps_block_at(j.subject.script, i);
        if (b->cell == most) words[b->group] += b->n;
    }
    *first = words[0];
    *second = words[1];
}

TEST_GROUP("deal");

/* The words of each group; without flops of a level, groups have as much work, whatever their inputs' depths. */
TEST(groups_have_as_much_work) {
    static const struct {
        uint32_t lengths[13], n, level_flops, less, more;
    } cases[] = {{{4, 4, 4, 4, 4, 4, 24, 4, 4, 4, 4, 4, 4}, 13, 0, 40, 45}, /* in order: 15 each, then the long one */
                 {{4, 4, 4, 4, 4, 4, 24, 4, 4, 4, 4, 4, 4}, 13, 1000000, 25, 60},
                 {{4, 4, 4, 4, 4, 4, 4, 4}, 8, 1000000, 20, 20}};
    for (size_t i = 0; i < VPPS_COUNT(cases); i++) {
        uint32_t a, b;
        deal(cases[i].lengths, cases[i].n, cases[i].level_flops, &a, &b);
        ck_assert_uint_eq(vpps_min_u32(a, b), cases[i].less);
        ck_assert_uint_eq(vpps_max_u32(a, b), cases[i].more);
    }
}

TEST(of_equally_deep_inputs_the_costliest_is_dealt_first) {
    static const uint32_t lengths[] = {TWIN + 4, TWIN + 4, TWIN + 4, TWIN + 4, 7 * TWIN + 4};
    uint32_t a, b;
    deal(lengths, VPPS_COUNT(lengths), 1, &a, &b);
    ck_assert_uint_eq(a, b);
}

TEST(vertices_are_shared_out_by_the_members_of_their_lists) {
    static const uint32_t starts[] = {0,  9,  9,  10, 11,
                                      12, 13, 14, 15}; /* one vertex with nine members, one with none */
    const uint32_t *lists[VPPS_AXES] = {NULL, starts};
    const struct {
        vpps_cell_stage stage;
        uint32_t ends[4];
    } cases[] = {{{.work = {1, 1}}, {1, 2, 5, 8}}, {{.work = {5, 1}}, {1, 3, 6, 8}}, {{.work = {0}}, {2, 4, 6, 8}}};
    for (uint32_t i = 0; i < VPPS_COUNT(cases); i++) {
        for (uint32_t m = 0, before = 0; m < 4; before = cases[i].ends[m++]) {
            const vpps_rows share = vpps_share_of_stage(&cases[i].stage, lists, 0, 8, 4, m);
            ck_assert_uint_eq(share.first, before);
            ck_assert_uint_eq(share.end, cases[i].ends[m]);
        }
    }
}

/* Forward and backward of a cell whose loss is pushed have no barrier in between if virtual processors run the same vertices in both. */
TEST(stages_that_share_out_vertices_differently_wait) {
    enum { LISTS = 6 };
    vpps_node x[4], losses[LISTS];
    OWNED(vpps_model) *model = new_model(1);
    const vpps_param E = add_lookup(model, "E", WORDS, HIDDEN, 1);
    vpps_graph *r = begin_cell(model, "pool");
    const vpps_node list = vpps_pull_list(r, HIDDEN, 1), of = vpps_pull(r, HIDDEN, 1);
    const vpps_node weights = vpps_softmax_list(r, vpps_dot(r, list, of));
    TEST_OK(vpps_push(r, vpps_cross_entropy(r, vpps_weighted_sum_list(r, weights, list), vpps_pull_index(r))));
    const vpps_cell cell = end_cell(r);
    OWNED(vpps_graph) *g = new_graph(model);
    AT_END(job_close) job j;
    for (uint32_t i = 0; i < LISTS; i++) {
        const uint32_t n = i == 3 ? 4 : 1;
        const vpps_node *const lists[] = {x}, own = vpps_lookup(g, E, i);
        for (uint32_t k = 0; k < n; k++) x[k] = vpps_tanh(g, vpps_lookup(g, E, k % WORDS));
        losses[i] = vpps_pushed(
            g, APPLY(g, cell, PULLS(1, &own), INDICES(1, &i), .n_pull_lists = 1, .n_members = n, .pull_lists = lists),
            0);
    }
    TEST_OK(job_open(&j, g, vpps_sum(g, LISTS, losses), (way){.n_vps = 3, .groups = 1}, 5));
    TEST_OK(verify_subject(&j.subject));
}

/* Two recurrences over the same words, from both ends, have a processor each, without barriers between levels. Sums of their states wait. */
TEST(twins_have_a_vp_each) {
    enum { LENGTH = 7, ROWS = 32 };
    uint32_t barriers[2];
    for (uint32_t wide = 0; wide < 2; wide++) {
        vpps_node states[2][LENGTH], losses[LENGTH];
        OWNED(vpps_model) *model = new_model(1);
        OWNED(vpps_graph) *g = new_graph(model);
        AT_END(job_close) job j;
        const vpps_param E = add_lookup(model, "E", WORDS, ROWS, 1), V = add_matrix(model, "V", ROWS, ROWS);
        for (uint32_t k = 0; k < 2; k++) {
            const vpps_param W = add_matrix(model, k ? "W1" : "W0", ROWS, ROWS),
                             U = add_matrix(model, k ? "U1" : "U0", ROWS, ROWS);
            vpps_graph *r = begin_cell(model, k ? "right" : "left");
            const vpps_node x = vpps_pull(r, ROWS, 1), h = vpps_gather(r, 0, 0, ROWS, 1);
            TEST_OK(vpps_scatter(r, vpps_tanh(r, vpps_affine2(r, VPPS_NO_PARAM, W, x, U, h))));
            const vpps_cell cell = end_cell(r);
            const vpps_node start = vpps_tanh(g, vpps_affine1(g, VPPS_NO_PARAM, V, vpps_lookup(g, E, 0)));
            vpps_vertex v = vpps_source(g, 1, &start);
            for (uint32_t t = 0; t < LENGTH; t++) {
                const uint32_t at = k ? LENGTH - 1 - t : t;
                const vpps_node word = vpps_lookup(g, E, at);
                v = APPLY(g, cell, CHILDREN(1, &v), PULLS(1, &word));
                states[k][at] = vpps_scattered(g, v, 0);
            }
        }
        for (uint32_t t = 0; t < LENGTH; t++)
            losses[t] = vpps_cross_entropy(g, vpps_add(g, states[0][t], states[1][t]), t);
        TEST_OK(job_open(&j, g, vpps_sum(g, LENGTH, losses), (way){.n_vps = 2, .groups = 1, .wide = 1000 * wide}, 5));
        TEST_OK(verify_subject(&j.subject));
        barriers[wide] = vpps_task_header_of(j.subject.script)->n_barriers;
    }
    ck_assert_uint_lt(barriers[1], barriers[0] - 4 * (LENGTH - 1) + 1);
}
