/* position_tests.c - where classifiers are, what their losses are, and which ids are read. */
#include "fixture.h"

/* ---------------------------------------------------------------- where classifiers stand */

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

/* ---------------------------------------------------------------- losses */

/* The loss is that of the logits and of the example's own label. */
TEST_EACH(the_loss_is_the_label_s, 0, case_count()) {
    AT_END(fixture_close) fixture f;
    fixture_open(&f, _i, NULL, 5, 4, 0);
    build(&f, NET_HEADS_LABELLED);
    OWNED(ref_model) *m = scattered_model(f.model);
    OWNED(ref_run) *r = run_forward(f.g, m, &(ref_mode){.training = false});
    uint32_t checked = 0;
    for (uint32_t i = 0; i < f.e->n; i++) {
        for (uint32_t k = 0; k < net_positions(f.net->kind, &f.e->x[i]); k++) {
            if (f.nll[i][k] == VPPS_NO_NODE) continue;
            const double *y = r->values + r->first[f.logits[i][k]], got = r->values[r->first[f.nll[i][k]]];
            double sum = 0;
            for (uint32_t j = 0; j < f.e->classes; j++) sum += exp(y[j]);
            const double want = log(sum) - y[example_label(f.net->kind, &f.e->x[i], k)];
            ck_assert_msg(fabs(got - want) < 1e-9, "%s, example %u, position %u: %g, not %g", f.name, i, k, got, want);
            checked++;
        }
    }
    ck_assert_uint_gt(checked, 3);
}

/* An example gives the same results alone and after other examples on the same graph. */
TEST_EACH(examples_are_apart, 0, case_count()) {
    AT_END(fixture_close) fixture f, alone;
    fixture_open(&f, _i, NULL, 5, 4, 0);
    fixture_open(&alone, _i, NULL, 5, 4, 0);
    OWNED(ref_model) *m = scattered_model(f.model);
    build(&f, NET_HEADS_ALL);
    OWNED(ref_run) *all = run_forward(f.g, m, &(ref_mode){.training = false});
    for (uint32_t i = f.e->n; i-- > 0;) {
        vpps_graph_clear(alone.g);
        add_example(&alone, i, &f.e->x[i], NET_HEADS_ALL);
        ref_run *r = run_forward(alone.g, m, &(ref_mode){.training = false});
        for (uint32_t k = 0; k < net_positions(f.net->kind, &f.e->x[i]); k++) {
            if (f.logits[i][k] == VPPS_NO_NODE) continue;
            const double off = difference(all, f.logits[i][k], r, alone.logits[i][k]);
            ck_assert_msg(off < 1e-12, "%s, example %u, position %u: off by %g", f.name, i, k, off);
        }
        ref_run_destroy(r);
    }
}

/* ---------------------------------------------------------------- ids */

/* Returns which ids a table of this size holds: sizes differ, but a language model's classes are its words. */
static const bool *ids_for(const fixture *f, const example_ids *ids, uint32_t count) {
    if (count == f->config.words) return ids->words;
    if (count == f->config.characters) return ids->characters;
    if (count == f->config.edge_types) return ids->edge_types;
    ck_assert_msg(count == f->config.classes, "%s: a table of %u", f->name, count);
    return ids->classes;
}

/* Checks that the loss depends on exactly those entries of a table that the examples name. */
static void check_table(const fixture *f, const ref_run *r, size_t first, const vpps_param_info *info,
                        const example_ids *ids) {
    const bool *expected = ids_for(f, ids, info->count);
    for (uint32_t id = 0; id < info->count; id++) {
        const bool used = r->used[first + (size_t)id * info->rows * info->cols];
        ck_assert_msg(used == expected[id], "%s: %s, row %u is %s", f->name, info->name, id,
                      used ? "used" : "not used");
    }
}

TEST_EACH(ids_are_used_as_given, 0, case_count()) {
    AT_END(fixture_close) fixture f;
    example_ids ids = {0};
    uint32_t tables = 0;
    fixture_open(&f, _i, NULL, 5, 4, 0);
    build(&f, NET_HEADS_ALL);
    vpps_node all[MOST_EXAMPLES * MOST_POSITIONS];
    uint32_t n = 0;
    for (uint32_t i = 0; i < f.e->n; i++) {
        example_read_ids(f.net->kind, &f.e->x[i], f.net->spells, &ids);
        for (uint32_t k = 0; k < net_positions(f.net->kind, &f.e->x[i]); k++)
            if (f.logits[i][k] != VPPS_NO_NODE) all[n++] = f.logits[i][k];
    }
    const vpps_node loss = vpps_sum_elements(f.g, vpps_sum(f.g, n, all));
    OWNED(ref_model) *m = scattered_model(f.model);
    OWNED(ref_run) *r = run_forward(f.g, m, &(ref_mode){.training = false});
    ref_backward(r, m, loss);
    for (vpps_param p = 0; p < m->n; p++) {
        vpps_param_info info = {.size = sizeof info};
        TEST_OK(vpps_param_describe(f.model, p, &info));
        if (info.kind != VPPS_LOOKUP) continue;
        check_table(&f, r, m->first[p], &info, &ids);
        tables++;
    }
    ck_assert_uint_gt(tables, 0);
}
