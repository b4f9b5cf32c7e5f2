/* test_golden.c - the losses of small networks against those of independent implementations: tree_lstm.py and
 * tree_gru.py, which wrote the headers. The Tree-LSTM is recorded here, the Tree-GRU is that of models/. */
#include "common/testing.h"
#include "golden/tree_lstm_golden.h"
/* whose trees and sizes also are the other's */
#include "golden/tree_gru_golden.h"
#include "models.h"

#include <math.h>
#include <stdio.h>

enum { H = GOLDEN_HIDDEN, D = GOLDEN_EMBED, N_TENSORS = 20 };

/* In tree_lstm.py's order. */
enum {
    E,
    W_I,
    W_O,
    W_U,
    U_I_L,
    U_I_R,
    U_O_L,
    U_O_R,
    U_U_L,
    U_U_R,
    U_F_LL,
    U_F_LR,
    U_F_RL,
    U_F_RR,
    B_I,
    B_O,
    B_U,
    B_F,
    V,
    B_S
};

static const struct {
    const char *name;
    vpps_param_kind kind;
    uint32_t count, rows, cols;
    double scale;
} tensors[N_TENSORS] = {
    {"E", VPPS_LOOKUP, GOLDEN_WORDS, D, 1, 0.5},
    {"W_i", VPPS_MATRIX, 1, H, D, 0.3},
    {"W_o", VPPS_MATRIX, 1, H, D, 0.3},
    {"W_u", VPPS_MATRIX, 1, H, D, 0.3},
    {"U_i_l", VPPS_MATRIX, 1, H, H, 0.3},
    {"U_i_r", VPPS_MATRIX, 1, H, H, 0.3},
    {"U_o_l", VPPS_MATRIX, 1, H, H, 0.3},
    {"U_o_r", VPPS_MATRIX, 1, H, H, 0.3},
    {"U_u_l", VPPS_MATRIX, 1, H, H, 0.3},
    {"U_u_r", VPPS_MATRIX, 1, H, H, 0.3},
    {"U_f_ll", VPPS_MATRIX, 1, H, H, 0.3},
    {"U_f_lr", VPPS_MATRIX, 1, H, H, 0.3},
    {"U_f_rl", VPPS_MATRIX, 1, H, H, 0.3},
    {"U_f_rr", VPPS_MATRIX, 1, H, H, 0.3},
    {"b_i", VPPS_VECTOR, 1, H, 1, 0.1},
    {"b_o", VPPS_VECTOR, 1, H, 1, 0.1},
    {"b_u", VPPS_VECTOR, 1, H, 1, 0.1},
    {"b_f", VPPS_VECTOR, 1, H, 1, 0.1},
    {"V", VPPS_MATRIX, 1, GOLDEN_CLASSES, H, 0.3},
    {"b_s", VPPS_VECTOR, 1, GOLDEN_CLASSES, 1, 0.1},
};

typedef struct recorded {
    vpps_model *model;
    vpps_graph *g;
    vpps_param p[N_TENSORS];
    vpps_cell leaf, inner, head;
    vpps_node terms[GOLDEN_BATCH * 64];
    uint32_t n_terms;
} recorded;

static void declare(recorded *n) {
    TEST_OK(vpps_model_create(&n->model, 1));
    for (uint32_t t = 0; t < N_TENSORS; t++) {
        static float values[GOLDEN_WORDS * D + H * H];
        const uint32_t elems = tensors[t].count * tensors[t].rows * tensors[t].cols;
        for (uint32_t i = 0; i < elems; i++) {
            values[i] = (float)(tensors[t].scale * sin(0.37 * i + 0.0011 * i * i + t));
        }
        const vpps_init init = {.kind = VPPS_INIT_VALUES, .values = values};
        const uint32_t rows = tensors[t].rows, cols = tensors[t].cols;
        if (tensors[t].kind == VPPS_MATRIX) {
            TEST_OK(vpps_add_matrix(n->model, &n->p[t], tensors[t].name, rows, cols, &init));
        } else if (tensors[t].kind == VPPS_VECTOR) {
            TEST_OK(vpps_add_vector(n->model, &n->p[t], tensors[t].name, rows, &init));
        } else {
            TEST_OK(vpps_add_lookup(n->model, &n->p[t], tensors[t].name, tensors[t].count, rows, cols, &init));
        }
    }
}

static void record(recorded *n) {
    vpps_graph *g = n->g;
    const vpps_param *p = n->p;
    TEST_OK(vpps_cell_begin(g, "leaf"));
    const vpps_node x = vpps_lookup(g, p[E], vpps_pull_index(g));
    vpps_node i = vpps_sigmoid(g, vpps_affine1(g, p[B_I], p[W_I], x));
    vpps_node o = vpps_sigmoid(g, vpps_affine1(g, p[B_O], p[W_O], x));
    vpps_node u = vpps_tanh(g, vpps_affine1(g, p[B_U], p[W_U], x));
    vpps_node c = vpps_mul(g, i, u);
    vpps_scatter(g, vpps_mul(g, o, vpps_tanh(g, c)));
    vpps_scatter(g, c);
    TEST_OK(vpps_cell_end(g, &n->leaf));

    TEST_OK(vpps_cell_begin(g, "inner"));
    const vpps_node h_l = vpps_gather(g, 0, 0, H, 1), c_l = vpps_gather(g, 0, 1, H, 1);
    const vpps_node h_r = vpps_gather(g, 1, 0, H, 1), c_r = vpps_gather(g, 1, 1, H, 1);
    i = vpps_sigmoid(g, vpps_affine2(g, p[B_I], p[U_I_L], h_l, p[U_I_R], h_r));
    o = vpps_sigmoid(g, vpps_affine2(g, p[B_O], p[U_O_L], h_l, p[U_O_R], h_r));
    u = vpps_tanh(g, vpps_affine2(g, p[B_U], p[U_U_L], h_l, p[U_U_R], h_r));
    const vpps_node f_l = vpps_sigmoid(g, vpps_affine2(g, p[B_F], p[U_F_LL], h_l, p[U_F_LR], h_r));
    const vpps_node f_r = vpps_sigmoid(g, vpps_affine2(g, p[B_F], p[U_F_RL], h_l, p[U_F_RR], h_r));
    c = vpps_sum(g, 3, (vpps_node[]){vpps_mul(g, i, u), vpps_mul(g, f_l, c_l), vpps_mul(g, f_r, c_r)});
    vpps_scatter(g, vpps_mul(g, o, vpps_tanh(g, c)));
    vpps_scatter(g, c);
    TEST_OK(vpps_cell_end(g, &n->inner));

    TEST_OK(vpps_cell_begin(g, "head"));
    const vpps_node h = vpps_pull(g, H, 1);
    vpps_push(g, vpps_pick_nll(g, vpps_affine1(g, p[B_S], p[V], h), vpps_pull_index(g)));
    TEST_OK(vpps_cell_end(g, &n->head));
}

/* Reads one vertex: (label word) or (label left right). */
static vpps_vertex add_vertex(recorded *n, const char **text) {
    int used = 0;
    uint32_t label, word;
    ck_assert_msg(sscanf(*text, " (%u%n", &label, &used) == 1, "not a tree: %s", *text);
    *text += used;
    vpps_vertex v;
    if (sscanf(*text, " %u%n", &word, &used) == 1) {
        *text += used;
        v = vpps_apply(n->g, n->leaf, 0, NULL, 0, NULL, 1, &word);
    } else {
        const vpps_vertex left = add_vertex(n, text), children[] = {left, add_vertex(n, text)};
        v = vpps_apply(n->g, n->inner, 2, children, 0, NULL, 0, NULL);
    }
    ck_assert_int_eq(**text, ')');
    ++*text;
    const vpps_node h = vpps_scattered(n->g, v, 0);
    n->terms[n->n_terms++] = vpps_pushed(n->g, vpps_apply(n->g, n->head, 0, NULL, 1, &h, 1, &label), 0);
    return v;
}

static void check_losses(const vpps_options *o, const double *golden, const char *name) {
    recorded n = {0};
    vpps_handle *h;
    declare(&n);
    TEST_OK(vpps_graph_create(&n.g, n.model));
    record(&n);
    TEST_OK(vpps_handle_create(&h, n.model, o));
    for (uint32_t batch = 0; batch < GOLDEN_BATCHES; batch++) {
        vpps_graph_clear(n.g);
        n.n_terms = 0;
        for (uint32_t k = 0; k < GOLDEN_BATCH; k++) {
            const char *text = golden_trees[(batch * GOLDEN_BATCH + k) % GOLDEN_TREES];
            add_vertex(&n, &text);
        }
        const vpps_node loss = vpps_scale(n.g, vpps_sum(n.g, n.n_terms, n.terms), 1.0f / GOLDEN_BATCH);
        float stale, latest;
        TEST_OK(vpps_fb(h, n.g, loss, &stale));
        if (batch) { /* the stale loss is that of the batch before */
            const double before = golden[batch - 1];
            ck_assert_msg(fabs((double)stale - before) <= 1e-4 * before,
                          "%s, %u VPs, batch %u: stale loss %.8g, not %.8g", name, o->vps, batch, (double)stale,
                          before);
        }
        if (batch % 3 != 0 && batch + 1 < GOLDEN_BATCHES) continue;
        TEST_OK(vpps_sync_latest_loss(h, &latest));
        ck_assert_msg(fabs((double)latest - golden[batch]) <= 1e-4 * golden[batch],
                      "%s, %u VPs, batch %u: loss %.8g, not %.8g", name, o->vps, batch, (double)latest, golden[batch]);
    }
    vpps_handle_destroy(h);
    vpps_graph_destroy(n.g);
    vpps_model_destroy(n.model);
}

/* ---------------------------------------------------------------- the Tree-GRU of models/ */

enum { N_GRU_TENSORS = sizeof golden_gru_tensors / sizeof *golden_gru_tensors, MOST_NODES = 64 };

/* The trees, and for each word of the treebank the number that stands for it in the golden trees. */
static vpps_treebank *read_trees(uint32_t words[GOLDEN_WORDS]) {
    vpps_treebank *bank;
    TEST_OK(vpps_treebank_create(&bank));
    for (uint32_t i = 0; i < GOLDEN_TREES; i++) {
        TEST_OK(vpps_treebank_read_text(bank, "golden", golden_trees[i], strlen(golden_trees[i])));
    }
    const vpps_vocab *vocab = vpps_treebank_vocab(bank);
    ck_assert_uint_le(vpps_vocab_size(vocab), GOLDEN_WORDS);
    for (uint32_t w = 0; w < vpps_vocab_size(vocab); w++) words[w] = (uint32_t)atoi(vpps_vocab_word(vocab, w));
    return bank;
}

static void set_parameters(vpps_model *model) {
    ck_assert_uint_eq(vpps_param_count(model), N_GRU_TENSORS);
    for (uint32_t t = 0; t < N_GRU_TENSORS; t++) {
        vpps_param p;
        vpps_param_info info;
        TEST_OK(vpps_param_find(model, golden_gru_tensors[t].name, &p));
        TEST_OK(vpps_param_describe(model, p, &info));
        float *values = vpps_param_values(model, p);
        for (uint32_t i = 0; i < info.count * info.rows * info.cols; i++) {
            values[i] = (float)(golden_gru_tensors[t].scale * sin(0.37 * i + 0.0011 * i * i + t));
        }
    }
}

static void check_gru(const vpps_options *o, const double *golden, const char *name) {
    const network *gru = network_find("tree-gru");
    const net_config config = {
        .words = GOLDEN_WORDS, .classes = GOLDEN_CLASSES, .embed = GOLDEN_EMBED, .hidden = GOLDEN_HIDDEN};
    uint32_t words[GOLDEN_WORDS] = {0};
    vpps_treebank *bank = read_trees(words);
    vpps_model *model;
    vpps_graph *g;
    vpps_handle *h;
    void *net;
    TEST_OK(vpps_model_create(&model, 1));
    TEST_OK(gru->create(&net, model, &config));
    set_parameters(model);
    TEST_OK(vpps_graph_create(&g, model));
    TEST_OK(gru->record(net, g));
    TEST_OK(vpps_handle_create(&h, model, o));
    for (uint32_t batch = 0; batch < GOLDEN_BATCHES; batch++) {
        vpps_node logits[MOST_NODES], nll[MOST_NODES], terms[GOLDEN_BATCH * MOST_NODES];
        uint32_t n_terms = 0;
        float loss;
        vpps_graph_clear(g);
        for (uint32_t k = 0; k < GOLDEN_BATCH; k++) {
            const vpps_tree tree = vpps_treebank_tree(bank, (batch * GOLDEN_BATCH + k) % GOLDEN_TREES);
            ck_assert_uint_le(tree.n_nodes, MOST_NODES);
            TEST_OK(gru->add_tree(net, g, &tree, words, NET_HEADS_LABELLED, &(net_scores){logits, nll}));
            for (uint32_t i = 0; i < tree.n_nodes; i++) terms[n_terms++] = nll[i]; /* all have labels */
        }
        TEST_OK(vpps_fb(h, g, vpps_scale(g, vpps_sum(g, n_terms, terms), 1.0f / GOLDEN_BATCH), NULL));
        TEST_OK(vpps_sync_latest_loss(h, &loss));
        ck_assert_msg(fabs((double)loss - golden[batch]) <= 1e-5 * golden[batch],
                      "%s, %u VPs, batch %u: loss %.8g, not %.8g", name, o->vps, batch, (double)loss, golden[batch]);
    }
    gru->destroy(net);
    vpps_handle_destroy(h);
    vpps_graph_destroy(g);
    vpps_model_destroy(model);
    vpps_treebank_destroy(bank);
}

/* ---------------------------------------------------------------- the suite */

static const vpps_optimizer sgd = {.kind = VPPS_SGD, .lr = 0.2f};
static const vpps_optimizer adam = {.kind = VPPS_ADAM, .lr = 0.03f, .beta1 = 0.9f, .beta2 = 0.999f, .epsilon = 1e-8f};

static vpps_options options_of(int i) {
    static const uint32_t vps[] = {1, 2, 3, 8};
    vpps_options o;
    vpps_options_default(&o);
    o.vps = vps[i % 4];
    o.gradients = i & 4 ? VPPS_GRADIENTS_ACCUMULATE : VPPS_GRADIENTS_DEFERRED;
    o.portable = i & 1;
    o.pool_bytes = 64u << 20;
    return o;
}

START_TEST(tree_lstm_losses)
    {
        vpps_options o = options_of(_i);
        o.optimizer = sgd;
        check_losses(&o, golden_sgd, "sgd");
        o.optimizer = adam;
        check_losses(&o, golden_adam, "adam");
    }
END_TEST

START_TEST(tree_gru_losses)
    {
        vpps_options o =
            options_of(5 * _i); /* the first test is about the engine's options, this one about equations */
        o.optimizer = sgd;
        check_gru(&o, golden_gru_sgd, "sgd");
        o.optimizer = adam;
        check_gru(&o, golden_gru_adam, "adam");
    }
END_TEST

int main(void) {
    Suite *s = suite_create("golden losses");
    TCase *t = tcase_create("golden losses");
    tcase_add_loop_test(t, tree_lstm_losses, 0, 8);
    tcase_add_loop_test(t, tree_gru_losses, 0, 2);
    suite_add_tcase(s, t);
    return test_main(s);
}
