/* test_networks.c - every network of the table, by its row: gradients, what it learns, where it classifies, how many
 * parameters it has, and that the devices agree.
 *
 * Gradients are checked on the double-precision reference against central differences, so what is checked is the network
 * as it was recorded; the engine's own gradients are checked through the losses of some steps.
 */
#include "common/reference.h"
#include "common/testing.h"
#include "models.h"
#include "runtime/simt_fiber.h"

#include <math.h>
#include <stdio.h>

enum { MOST_NODES = 64, MOST_TREES = 16, MOST_WORDS = 32 };

/* ---------------------------------------------------------------- a network on some trees */

typedef struct fixture {
    const network *net;
    net_config config;
    vpps_treebank *bank;
    vpps_model *model;
    vpps_graph *g;
    void *state;
    uint32_t words[MOST_WORDS];
    vpps_node logits[MOST_TREES][MOST_NODES], nll[MOST_TREES][MOST_NODES];
} fixture;

/* Labels at all nodes, at some and at none; a tree of one word; words at both sides; label 7 is not among the classes. */
static const char small_trees[] = "(2 (1 (0 a) (3 b)) (1 (2 c) (0 (3 a) (1 d))))\n"
                                  "(3 b)\n"
                                  "(0 (-1 (-1 c) (2 (-1 d) (7 a))) (-1 b))\n"
                                  "(-1 (1 (3 d) (1 c)) (0 (2 (1 b) (-1 a)) (3 (0 c) (2 b))))\n"
                                  "(1 (1 d) (0 a))\n";
enum { SMALL_CLASSES = 4 };

static bool has_option(const network *n, const char *name) {
    for (const option_row *o = n->options; o->name; o++) {
        if (strcmp(o->name, name) == 0) return true;
    }
    return false;
}

/* A network without the option has no choice: it represents whole sentences. */
static bool roots_only(const network *n) { return !has_option(n, "loss"); }

static void fixture_open(fixture *f, int row, uint32_t hidden, uint32_t embed, uint32_t classes, float dropout) {
    f->net = networks[row];
    f->config = f->net->defaults;
    f->config.words = vpps_vocab_size(vpps_treebank_vocab(f->bank));
    f->config.classes = classes;
    f->config.hidden = hidden;
    f->config.embed = embed;
    f->config.dropout = dropout;
    ck_assert_uint_le(f->config.words, MOST_WORDS);
    ck_assert_uint_le(vpps_treebank_size(f->bank), MOST_TREES);
    for (uint32_t w = 0; w < MOST_WORDS; w++) f->words[w] = f->config.words - 1 - w; /* not the treebank's numbers */
    TEST_OK(vpps_model_create(&f->model, test_seed()));
    TEST_OK(f->net->create(&f->state, f->model, &f->config));
    TEST_OK(vpps_graph_create(&f->g, f->model));
    TEST_OK(f->net->record(f->state, f->g));
}

static void open_small(fixture *f, int row, uint32_t hidden, uint32_t embed, float dropout) {
    TEST_OK(vpps_treebank_create(&f->bank));
    TEST_OK(vpps_treebank_read_text(f->bank, "small trees", small_trees, sizeof small_trees - 1));
    fixture_open(f, row, hidden, embed, SMALL_CLASSES, dropout);
}

static void open_listops(fixture *f, int row, uint32_t hidden, uint32_t n_trees) {
    const vpps_listops listops = {.seed = test_seed(), .min_leaves = 4, .max_leaves = 9};
    TEST_OK(vpps_treebank_create(&f->bank));
    TEST_OK(vpps_treebank_generate_listops(f->bank, &listops, n_trees));
    fixture_open(f, row, hidden, hidden, vpps_treebank_classes(f->bank), 0);
}

static void fixture_close(fixture *f) {
    f->net->destroy(f->state);
    vpps_graph_destroy(f->g);
    vpps_model_destroy(f->model);
    vpps_treebank_destroy(f->bank);
}

/* All trees, as a new graph. The loss is the mean over the trees of their nodes' sums. */
static vpps_node build(fixture *f, net_heads heads) {
    static vpps_node terms[MOST_TREES * MOST_NODES];
    uint32_t n_terms = 0;
    const uint32_t n_trees = vpps_treebank_size(f->bank);
    vpps_graph_clear(f->g);
    for (uint32_t i = 0; i < n_trees; i++) {
        const vpps_tree tree = vpps_treebank_tree(f->bank, i);
        ck_assert_uint_le(tree.n_nodes, MOST_NODES);
        for (uint32_t k = 0; k < MOST_NODES; k++) f->logits[i][k] = f->nll[i][k] = 12345; /* to be overwritten */
        const net_scores scores = {f->logits[i], f->nll[i]};
        TEST_OK(f->net->add_tree(f->state, f->g, &tree, f->words, heads, &scores));
        for (uint32_t k = 0; k < tree.n_nodes; k++) {
            if (f->nll[i][k] != VPPS_NO_NODE) terms[n_terms++] = f->nll[i][k];
        }
    }
    return vpps_scale(f->g, vpps_sum(f->g, n_terms, terms), 1.0f / (float)n_trees);
}

/* ---------------------------------------------------------------- how many parameters */

/* The head comments' formulas: V words, d = hidden, e = embed, C classes. */
static uint64_t documented(const char *name, uint64_t V, uint64_t d, uint64_t e, uint64_t C) {
    const uint64_t classifier = C * d + C, lstm_leaf = V * e + 3 * d * e, lstm_inner = 10 * d * d + 4 * d;
    const struct {
        const char *name;
        uint64_t count;
    } rows[] = {
        {"tree-lstm", lstm_leaf + lstm_inner + classifier},
        {"tree-lstm-2type", lstm_leaf + 3 * d + 2 * lstm_inner + classifier},
        {"tree-gru", V * e + 2 * d * e + 12 * d * d + 6 * d + classifier},
        {"rvnn", V * e + d * e + 2 * d * d + 2 * d + classifier},
        {"mv-rnn", V * (d + d * d) + 4 * d * d + classifier},
        {"td-rnn", V * d + 2 * d * d + d + d * (d + 1) + classifier},
        {"td-lstm", lstm_leaf + lstm_inner + d * (d + 1) + classifier},
        {"tree-fc", V * d + 2 * d * d + d + classifier},
    };
    for (size_t i = 0; i < VPPS_COUNT(rows); i++) {
        if (strcmp(rows[i].name, name) == 0) return rows[i].count;
    }
    ck_abort_msg("how many parameters has %s? Add the formula of its head comment here", name);
    return 0;
}

START_TEST(parameters_are_as_documented)
    {
        static const uint32_t sizes[][2] = {{5, 3}, {8, 8}, {7, 12}}; /* hidden, embed */
        for (size_t i = 0; i < VPPS_COUNT(sizes); i++) {
            fixture f;
            uint64_t count = 0;
            open_small(&f, _i, sizes[i][0], sizes[i][1], 0);
            for (vpps_param p = 0; p < vpps_param_count(f.model); p++) {
                vpps_param_info info;
                TEST_OK(vpps_param_describe(f.model, p, &info));
                count += (uint64_t)info.count * info.rows * info.cols;
            }
            ck_assert_msg(count == documented(f.net->name, f.config.words, sizes[i][0], sizes[i][1], SMALL_CLASSES),
                          "%s: %llu parameters at hidden %u, embed %u", f.net->name, (unsigned long long)count,
                          sizes[i][0], sizes[i][1]);
            fixture_close(&f);
        }
    }
END_TEST

/* ---------------------------------------------------------------- the row */

START_TEST(a_row_is_complete)
    {
        const network *n = networks[_i];
        ck_assert_ptr_eq(network_find(n->name), n); /* also: no two of one name */
        ck_assert(n->summary && *n->summary && n->source && *n->source);
        ck_assert(has_option(n, "hidden") && n->defaults.hidden > 0);
        ck_assert(!has_option(n, "embed") || n->defaults.embed > 0);
        ck_assert_uint_le(n->defaults.loss, NET_HEADS_ROOT);
        ck_assert(!roots_only(n) || n->defaults.loss == NET_HEADS_ROOT);
        ck_assert_ptr_null(network_find("no such network"));
    }
END_TEST

/* ---------------------------------------------------------------- where classifiers stand */

START_TEST(classifiers_stand_where_they_are_asked_for)
    {
        static const net_heads all_heads[] = {NET_HEADS_LABELLED, NET_HEADS_ROOT, NET_HEADS_ALL};
        fixture f;
        open_small(&f, _i, 5, 4, 0);
        for (size_t a = 0; a < VPPS_COUNT(all_heads); a++) {
            build(&f, all_heads[a]);
            TEST_OK(vpps_graph_status(f.g));
            for (uint32_t i = 0; i < vpps_treebank_size(f.bank); i++) {
                const vpps_tree tree = vpps_treebank_tree(f.bank, i);
                for (uint32_t k = 0; k < tree.n_nodes; k++) {
                    const int32_t label = tree.nodes[k].label;
                    const bool labelled = label >= 0 && label < SMALL_CLASSES, root = k + 1 == tree.n_nodes;
                    const bool asked =
                        all_heads[a] == NET_HEADS_ALL || (labelled && (root || all_heads[a] == NET_HEADS_LABELLED));
                    const bool expected = asked && (root || !roots_only(f.net));
                    const vpps_node logits = f.logits[i][k], nll = f.nll[i][k];
                    uint32_t rows, cols;
                    ck_assert_msg((logits != VPPS_NO_NODE) == expected, "%s, tree %u, node %u: logits", f.net->name, i,
                                  k);
                    ck_assert_msg((nll != VPPS_NO_NODE) == (expected && labelled), "%s, tree %u, node %u: nll",
                                  f.net->name, i, k);
                    if (!expected) continue;
                    TEST_OK(vpps_node_shape(f.g, logits, &rows, &cols));
                    ck_assert(rows == SMALL_CLASSES && cols == 1);
                    if (!labelled) continue;
                    TEST_OK(vpps_node_shape(f.g, nll, &rows, &cols));
                    ck_assert(rows == 1 && cols == 1);
                }
            }
        }
        fixture_close(&f);
    }
END_TEST

/* The nll is that of the logits and of the tree's own label. */
START_TEST(the_loss_is_the_label_s)
    {
        fixture f;
        open_small(&f, _i, 5, 4, 0);
        build(&f, NET_HEADS_LABELLED);
        ref_model *m = ref_model_create(f.model);
        const ref_mode mode = {.training = false};
        ref_run *r = ref_forward(f.g, m, &mode);
        ck_assert_ptr_nonnull(r);
        for (uint32_t i = 0; i < vpps_treebank_size(f.bank); i++) {
            const vpps_tree tree = vpps_treebank_tree(f.bank, i);
            for (uint32_t k = 0; k < tree.n_nodes; k++) {
                if (f.nll[i][k] == VPPS_NO_NODE) continue;
                const double *y = r->values + r->first[f.logits[i][k]], got = r->values[r->first[f.nll[i][k]]];
                double sum = 0;
                for (uint32_t j = 0; j < SMALL_CLASSES; j++) sum += exp(y[j]);
                const double want = log(sum) - y[tree.nodes[k].label];
                ck_assert_msg(fabs(got - want) < 1e-9, "%s, tree %u, node %u: %g, not %g", f.net->name, i, k, got,
                              want);
            }
        }
        ref_run_destroy(r);
        ref_model_destroy(m);
        fixture_close(&f);
    }
END_TEST

/* Whatever the treebank calls them, words are looked up as the map says. */
START_TEST(words_are_mapped)
    {
        enum { TO = 2 };
        fixture f;
        open_small(&f, _i, 5, 4, 0);
        for (uint32_t w = 0; w < MOST_WORDS; w++) f.words[w] = TO;
        const vpps_node loss = build(&f, NET_HEADS_LABELLED);
        ref_model *m = ref_model_create(f.model);
        const ref_mode mode = {.training = true};
        ref_run *r = ref_forward(f.g, m, &mode);
        ck_assert_ptr_nonnull(r);
        ref_backward(r, m, loss);
        for (vpps_param p = 0; p < m->n; p++) {
            vpps_param_info info;
            TEST_OK(vpps_param_describe(f.model, p, &info));
            for (uint32_t row = 0; row < info.count && info.kind == VPPS_LOOKUP; row++) {
                const bool used = r->used[m->first[p] + (size_t)row * info.rows * info.cols];
                ck_assert_msg(used == (row == TO), "%s: %s, row %u", f.net->name, info.name, row);
            }
        }
        ref_run_destroy(r);
        ref_model_destroy(m);
        fixture_close(&f);
    }
END_TEST

/* ---------------------------------------------------------------- gradients */

/* Values away from the symmetries that networks begin with: zero biases, equal forget gates. */
static void scatter_values(ref_model *m) {
    uint64_t random = test_seed() + 17;
    for (size_t i = 0; i < m->first[m->n]; i++) m->values[i] += 0.8 * (double)vpps_random_unit(&random) - 0.4;
}

static double loss_value(vpps_graph *g, const ref_model *m, const ref_mode *mode, vpps_node loss) {
    ref_run *r = ref_forward(g, m, mode);
    ck_assert_ptr_nonnull(r);
    const double value = r->values[r->first[loss]];
    ref_run_destroy(r);
    return value;
}

#define SLOPE_ERROR 1e-6 /* h^2 of the third derivative, rounding of the loss over h */

/* How far a gradient is from the slope of the loss in its element: the central difference over a shorter and shorter
 * way, because a relu's kink may be near. */
static double slope_error(const fixture *f, vpps_node loss, const ref_mode *mode, ref_model *m, size_t element,
                          double got) {
    const double old = m->values[element];
    double error = 0;
    for (double h = 1e-5; h > 1e-9; h /= 10) {
        m->values[element] = old + h;
        const double above = loss_value(f->g, m, mode, loss);
        m->values[element] = old - h;
        const double below = loss_value(f->g, m, mode, loss);
        m->values[element] = old;
        const double slope = (above - below) / (2 * h);
        error = fabs(got - slope) / (1 + fabs(slope));
        if (error < SLOPE_ERROR) break;
    }
    return error;
}

/* With and without dropout; every element of every parameter. */
START_TEST(gradients_are_slopes)
    {
        for (int drop = 0; drop < 2; drop++) {
            fixture f;
            open_small(&f, _i, 4, 3, drop ? 0.3f : 0);
            const vpps_node loss = build(&f, NET_HEADS_LABELLED);
            ref_model *m = ref_model_create(f.model);
            scatter_values(m);
            const ref_mode mode = {.training = true, .dropout_key = 99};
            ref_run *r = ref_forward(f.g, m, &mode);
            ck_assert_ptr_nonnull(r);
            ref_backward(r, m, loss);
            for (uint32_t p = 0; p < m->n; p++) {
                const char *name = f.model->params[p].name;
                double largest = 0;
                for (size_t i = m->first[p]; i < m->first[p + 1]; i++) {
                    const double got = r->param_grads[i], error = slope_error(&f, loss, &mode, m, i, got);
                    ck_assert_msg(error < SLOPE_ERROR,
                                  "%s: gradient of %s[%zu] is %.9g, which is not the slope: off by %.3g", f.net->name,
                                  name, i - m->first[p], got, error);
                    largest = fmax(largest, fabs(got));
                }
                ck_assert_msg(largest > 1e-6, "%s: the loss does not depend on %s", f.net->name, name);
            }
            ref_run_destroy(r);
            ref_model_destroy(m);
            fixture_close(&f);
        }
    }
END_TEST

START_TEST(dropout_drops)
    {
        if (!has_option(networks[_i], "dropout")) return;
        double losses[2][2];
        for (int drop = 0; drop < 2; drop++) {
            fixture f;
            open_small(&f, _i, 8, 8, drop ? 0.5f : 0);
            const vpps_node loss = build(&f, NET_HEADS_LABELLED);
            ref_model *m = ref_model_create(f.model);
            scatter_values(m);
            for (int k = 0; k < 2; k++) {
                const ref_mode mode = {.training = true, .dropout_key = 5 + (uint64_t)k};
                losses[drop][k] = loss_value(f.g, m, &mode, loss);
            }
            ref_model_destroy(m);
            fixture_close(&f);
        }
        ck_assert_msg(losses[0][0] == losses[0][1], "%s: another mask without dropout", networks[_i]->name);
        ck_assert_msg(fabs(losses[1][0] - losses[1][1]) > 1e-6, "%s: masks do not matter", networks[_i]->name);
    }
END_TEST

/* ---------------------------------------------------------------- learning */

static vpps_options options_for(const char *device) {
    vpps_options o;
    vpps_options_default(&o);
    o.device = device;
    o.vps = 2;
    o.pool_bytes = 64u << 20;
    o.verify = true;
    o.no_tuning = true;
    return o;
}

START_TEST(one_batch_is_learnt_by_heart)
    {
        enum { MOST_STEPS = 400 };
        fixture f;
        vpps_handle *h;
        vpps_options o = options_for("cpu");
        o.vps = 1;
        o.verify = false;
        o.optimizer = (vpps_optimizer){
            .kind = VPPS_ADAM, .lr = 0.01f, .beta1 = 0.9f, .beta2 = 0.999f, .epsilon = 1e-8f, .clip = 5};
        open_listops(&f, _i, 16, 6);
        TEST_OK(vpps_handle_create(&h, f.model, &o));
        float first = 0, loss = 0;
        uint32_t step = 0;
        for (; step < MOST_STEPS && !(step && loss < 0.01f); step++) {
            TEST_OK(vpps_fb(h, f.g, build(&f, (net_heads)f.config.loss), NULL));
            TEST_OK(vpps_sync_latest_loss(h, &loss));
            if (!step) first = loss;
        }
        ck_assert_msg(loss < 0.01f && first > 1, "%s: the loss of a tree goes from %g to %g in %u steps", f.net->name,
                      (double)first, (double)loss, step);
        vpps_handle_destroy(h);
        fixture_close(&f);
    }
END_TEST

/* ---------------------------------------------------------------- devices */

enum { BATCHES = 4 };

/* The losses in double precision. */
static void train_reference(int row, const vpps_optimizer *optimizer, double losses[BATCHES]) {
    fixture f;
    open_listops(&f, row, 12, 5);
    ref_model *m = ref_model_create(f.model);
    for (uint32_t k = 0; k < BATCHES; k++) {
        const vpps_node loss = build(&f, (net_heads)f.config.loss);
        const ref_mode mode = {.training = true};
        ref_run *r = ref_forward(f.g, m, &mode);
        ck_assert_ptr_nonnull(r);
        ref_backward(r, m, loss);
        losses[k] = r->values[r->first[loss]];
        ref_step(m, r, optimizer, k + 1);
        ref_run_destroy(r);
    }
    ref_model_destroy(m);
    fixture_close(&f);
}

/* Software SIMT has stacks of its own, which ThreadSanitizer cannot follow: then it says so. */
static bool is_refused(const char *device, vpps_status status) {
    if (!VPPS_SIMT_TSAN || strcmp(device, "simt") != 0) return false;
    ck_assert_msg(status == VPPS_DEVICE && strstr(vpps_error_message(), "ThreadSanitizer"), "%s: %s",
                  vpps_status_name(status), vpps_error_message());
    return true;
}

START_TEST(devices_agree)
    {
        static const char *const devices[] = {"cpu", "simt"};
        double want[BATCHES];
        const vpps_optimizer sgd = {.kind = VPPS_SGD, .lr = 0.1f};
        train_reference(_i, &sgd, want);
        setenv("VPPS_SIMT_SMS", "2", 1);
        for (size_t d = 0; d < VPPS_COUNT(devices); d++) {
            fixture f;
            vpps_handle *h;
            vpps_options o = options_for(devices[d]);
            o.optimizer = sgd;
            open_listops(&f, _i, 12, 5);
            const vpps_status status = vpps_handle_create(&h, f.model, &o);
            const bool refused = is_refused(devices[d], status);
            if (!refused) ck_assert_msg(status == VPPS_OK, "%s: %s", devices[d], vpps_error_message());
            for (uint32_t k = 0; !refused && k < BATCHES; k++) {
                float got;
                TEST_OK(vpps_fb(h, f.g, build(&f, (net_heads)f.config.loss), NULL));
                TEST_OK(vpps_sync_latest_loss(h, &got));
                ck_assert_msg(fabs((double)got - want[k]) <= 1e-5 * want[k], "%s on %s, batch %u: loss %.8g, not %.8g",
                              f.net->name, devices[d], k, (double)got, want[k]);
            }
            if (!refused) vpps_handle_destroy(h);
            fixture_close(&f);
        }
    }
END_TEST

/* ---------------------------------------------------------------- tree-lstm-2type */

/* Vertices with the forget gate that has this bias: each has two. */
static uint32_t count_vertices(fixture *f, const char *bias) {
    vpps_param p;
    uint32_t n = 0;
    TEST_OK(vpps_param_find(f->model, bias, &p));
    for (uint32_t x = 0; x < f->g->flat.n_nodes; x++) {
        const vpps_signature *s = &f->g->signatures[f->g->flat.nodes[x].signature];
        n += s->op == VPPS_OP_AFFINE && s->param == p;
    }
    return n / 2;
}

START_TEST(each_kind_has_half_of_the_vertices)
    {
        uint32_t kind[2] = {0, 0};
        int row = 0;
        while (strcmp(networks[row]->name, "tree-lstm-2type") != 0) ck_assert_ptr_nonnull(networks[++row]);
        fixture f;
        open_listops(&f, row, 4, MOST_TREES);
        for (int again = 0; again < 2; again++) {
            build(&f, NET_HEADS_ROOT);
            TEST_OK(vpps_graph_flatten(f.g));
            const uint32_t first = count_vertices(&f, "b_f_1"), second = count_vertices(&f, "b_f_2");
            if (again) ck_assert(first == kind[0] && second == kind[1]); /* the same in every epoch */
            kind[0] = first;
            kind[1] = second;
        }
        const uint32_t all = kind[0] + kind[1];
        uint32_t inner = 0;
        for (uint32_t i = 0; i < MOST_TREES; i++) inner += vpps_treebank_tree(f.bank, i).n_leaves - 1;
        ck_assert_uint_eq(all, inner);
        ck_assert_msg(kind[0] > all / 3 && kind[1] > all / 3, "%u and %u", kind[0], kind[1]);
        fixture_close(&f);
    }
END_TEST

int main(void) {
    int n = 0;
    while (networks[n]) n++;
    Suite *s = suite_create("networks");
    TCase *t = tcase_create("networks");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, a_row_is_complete, 0, n);
    tcase_add_loop_test(t, parameters_are_as_documented, 0, n);
    tcase_add_loop_test(t, classifiers_stand_where_they_are_asked_for, 0, n);
    tcase_add_loop_test(t, the_loss_is_the_label_s, 0, n);
    tcase_add_loop_test(t, words_are_mapped, 0, n);
    tcase_add_loop_test(t, gradients_are_slopes, 0, n);
    tcase_add_loop_test(t, dropout_drops, 0, n);
    tcase_add_loop_test(t, one_batch_is_learnt_by_heart, 0, n);
    tcase_add_loop_test(t, devices_agree, 0, n);
    tcase_add_test(t, each_kind_has_half_of_the_vertices);
    suite_add_tcase(s, t);
    return test_main(s);
}
