/* position_tests.c - where classifiers stand. */
#include "fixture.h"

static void check_shape(const fixture *f, vpps_node x, uint32_t want) {
    uint32_t rows, cols;
    TEST_OK(vpps_node_shape(f->g, x, &rows, &cols));
    ck_assert_msg(rows == want && cols == 1, "%s: %u x %u", f->name, rows, cols);
}

static void check_heads(const fixture *f, net_heads heads) {
    const bool trees = f->net->kind == NET_TREES;
    for (uint32_t i = 0; i < f->e->n; i++) {
        const uint32_t n = net_positions(f->net->kind, &f->e->x[i]);
        for (uint32_t k = 0; k < n; k++) {
            const bool labelled = example_label(f->net->kind, &f->e->x[i], k) < f->e->classes, root = k + 1 == n;
            const bool asked = heads == NET_HEADS_ALL || (labelled && (heads == NET_HEADS_LABELLED || root || !trees));
            const bool expected = asked && (root || !roots_only(f->net));
            const vpps_node logits = f->logits[i][k], nll = f->nll[i][k];
            ck_assert_msg((logits != VPPS_NO_NODE) == expected, "%s, example %u, position %u: logits", f->name, i, k);
            ck_assert_msg((nll != VPPS_NO_NODE) == (expected && labelled), "%s, example %u, position %u: nll", f->name,
                          i, k);
            if (logits != VPPS_NO_NODE) check_shape(f, logits, f->e->classes);
            if (nll != VPPS_NO_NODE) check_shape(f, nll, 1);
        }
    }
}

TEST_GROUP("positions");

TEST_EACH(classifiers_stand_where_they_are_asked_for, 0, case_count()) {
    static const net_heads heads[] = {NET_HEADS_LABELLED, NET_HEADS_ROOT, NET_HEADS_ALL};
    AT_END(fixture_close) fixture f;
    fixture_open(&f, _i, NULL, 5, 4, 0);
    for (size_t a = 0; a < VPPS_COUNT(heads); a++) {
        build(&f, heads[a]);
        TEST_OK(vpps_graph_status(f.g));
        check_heads(&f, heads[a]);
    }
}
