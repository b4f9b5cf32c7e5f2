/* two_type_tests.c - what only tree-lstm-2type has: two kinds of inner cells. */
#include "fixture.h"

/* Counts the vertices that use the forget gate with this bias; each has two such gates. */
static uint32_t count_vertices(fixture *f, const char *bias) {
    vpps_param p;
    uint32_t n = 0;
    TEST_OK(vpps_param_find(f->model, bias, &p));
    flat_graph *flat = flatten(f->g);
    for (uint32_t x = 0; x < flat->n_nodes; x++)
        n += flat->nodes[x].s.op == VPPS_OP_AFFINE && flat->nodes[x].s.param == p;
    flat_graph_free(flat);
    return n / 2;
}

static int case_of(const char *name) {
    for (int i = 0; i < case_count(); i++)
        if (strcmp(case_at(i).net->name, name) == 0) return i;
    ck_abort_msg("no network %s", name);
    return 0;
}

/* Opens ListOps trees, since the small examples have too few inner vertices to count. */
static examples open_listops(vpps_treebank **bank, vpps_tree trees[MOST_EXAMPLES], net_example x[MOST_EXAMPLES]) {
    const vpps_listops listops = {.seed = test_seed(), .min_leaves = 4, .max_leaves = 9};
    TEST_OK(vpps_treebank_create(bank));
    TEST_OK(vpps_treebank_generate_listops(*bank, &listops, MOST_EXAMPLES));
    for (uint32_t i = 0; i < MOST_EXAMPLES; i++) {
        trees[i] = vpps_treebank_tree(*bank, i);
        x[i] = (net_example){.tree = &trees[i]};
    }
    return (examples){NET_TREES, MOST_EXAMPLES, x, .words = vpps_vocab_size(vpps_treebank_vocab(*bank)),
                      .classes = vpps_treebank_classes(*bank)};
}

TEST_GROUP("tree-lstm-2type");

TEST(each_kind_has_half_of_the_vertices) {
    uint32_t kind[2] = {0, 0}, inner = 0;
    vpps_tree trees[MOST_EXAMPLES];
    net_example x[MOST_EXAMPLES];
    OWNED(vpps_treebank) *bank;
    const examples e = open_listops(&bank, trees, x);
    AT_END(fixture_close) fixture f;
    fixture_open(&f, case_of("tree-lstm-2type"), &e, 4, 4, 0);
    for (int again = 0; again < 2; again++) {
        build(&f, NET_HEADS_ROOT);
        const uint32_t first = count_vertices(&f, "b_f_1"), second = count_vertices(&f, "b_f_2");
        if (again) ck_assert(first == kind[0] && second == kind[1]); /* the same in every epoch */
        kind[0] = first;
        kind[1] = second;
    }
    const uint32_t all = kind[0] + kind[1];
    for (uint32_t i = 0; i < e.n; i++) inner += trees[i].n_leaves - 1;
    ck_assert_uint_eq(all, inner);
    ck_assert_msg(kind[0] > all / 3 && kind[1] > all / 3, "%u and %u", kind[0], kind[1]);
}
