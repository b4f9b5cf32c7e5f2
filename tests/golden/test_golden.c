/* test_golden.c - compares the losses of small networks of models/ with those of independent implementations in PyTorch, which the scripts in this
 * folder wrote to the data files. */
#include "common/training.h"
#include "golden/golden.h"

/* The files, and the number of each golden in its file. */
static const struct {
    const char *file;
    size_t i;
} goldens[] = {
    {"tree_lstm", 0},
    {"lstm_lm", 0},
    {"lstm_lm", 1},
    {"bilstm_tagger", 0},
    {"bilstm_tagger", 1},
    {"bilstm_tagger", 2},
    {"lstm_nmt", 0},
    {"lstm_nmt", 1},
    {"lstm_nmt", 2},
    {"lstm_nmt", 3},
    {"lattice_lstm", 0},
    {"act", 0},
    {"transformer_tagger", 0},
    {"transformer_tagger", 1},
    {"crf", 0},
};
enum { N_GOLDENS = sizeof goldens / sizeof *goldens, MOST_POSITIONS = 64 };

static void set_parameters(const golden *from, vpps_model *model) {
    ck_assert_uint_eq(vpps_param_count(model), from->n_tensors);
    for (uint32_t t = 0; t < from->n_tensors; t++) {
        vpps_param p;
        vpps_param_info info = {.size = sizeof info};
        TEST_OK(vpps_param_find(model, from->tensors[t].name, &p));
        TEST_OK(vpps_param_describe(model, p, &info));
        float *values = vpps_param_values(model, p);
        for (uint32_t i = 0; i < info.count * info.rows * info.cols; i++)
            values[i] = (float)(from->tensors[t].scale * sin(0.37 * i + 0.0011 * i * i + t));
    }
}

/* Returns the mean over the batch's examples of the sum of their losses at known labels, plus the examples' other costs. */
static vpps_node add_batch(const golden *from, const network *type, void *net, vpps_graph *g, uint32_t batch) {
    vpps_node logits[MOST_POSITIONS], nll[MOST_POSITIONS], terms[GOLDEN_BATCH * (MOST_POSITIONS + 1)];
    uint32_t n_terms = 0;
    vpps_graph_clear(g);
    for (uint32_t k = 0; k < GOLDEN_BATCH; k++) {
        const net_example *x = &from->examples[(batch * GOLDEN_BATCH + k) % from->n_examples];
        const uint32_t n = net_positions(type->kind, x);
        ck_assert_uint_le(n, MOST_POSITIONS);
        vpps_node cost = VPPS_NO_NODE;
        TEST_OK(type->add(net, g, x, NET_HEADS_LABELLED, &(net_scores){.logits = logits, .nll = nll, .cost = &cost}));
        if (cost != VPPS_NO_NODE) terms[n_terms++] = cost;
        for (uint32_t i = 0; i < n; i++)
            if (nll[i] != VPPS_NO_NODE) terms[n_terms++] = nll[i];
    }
    return vpps_scale(g, vpps_sum(g, n_terms, terms), 1.0f / GOLDEN_BATCH);
}

static void check_loss(float loss, double expected, const char *name, const vpps_options *o, uint32_t batch) {
    ck_assert_msg(fabs((double)loss - expected) <= 1e-5 * expected, "%s, %s, %u VPs, batch %u: loss %.8g, not %.8g",
                  name, o->optimizer.kind == VPPS_SGD ? "sgd" : "adam", o->vps, batch, (double)loss, expected);
}

/* A network with the golden parameters, and what trains it. */
typedef struct trained {
    const network *type;
    void *net;
    training of;
} trained;

static trained open_network(const golden *from, const vpps_options *o) {
    trained t = {network_find(from->network), NULL, training_of(1)};
    ck_assert_msg(t.type != NULL, "no network %s", from->network);
    TEST_OK(network_create(t.type, &t.net, t.of.model, &from->config));
    set_parameters(from, t.of.model);
    training_start(&t.of, o);
    return t;
}

static void close_network(trained *t) {
    network_destroy(t->net);
    training_end(&t->of);
}

static void check_losses(const golden *from, const double *expected, const vpps_options *o) {
    AT_END(close_network) trained t = open_network(from, o);
    for (uint32_t batch = 0; batch < GOLDEN_BATCHES; batch++) {
        float stale, latest;
        TEST_OK(vpps_fb(t.of.h, t.of.g, add_batch(from, t.type, t.net, t.of.g, batch), &stale));
        if (batch) check_loss(stale, expected[batch - 1], from->name, o, batch - 1); /* the preceding batch's loss */
        if (batch % 3 != 0 && batch + 1 < GOLDEN_BATCHES) continue;                  /* leaves this batch in flight */
        TEST_OK(vpps_sync_latest_loss(t.of.h, &latest));
        check_loss(latest, expected[batch], from->name, o, batch);
    }
}

static const vpps_optimizer sgd = {.kind = VPPS_SGD, .lr = 0.2f};
static const vpps_optimizer adam = {.kind = VPPS_ADAM, .lr = 0.03f, .beta1 = 0.9f, .beta2 = 0.999f, .epsilon = 1e-8f};

static void check_golden(int number, int options) {
    AT_END(vpps_arena_free) vpps_arena memory = {0};
    const golden of = golden_read(&memory, goldens[number].file, goldens[number].i), *from = &of;
    static const uint32_t vps[] = {1, 2, 3, 8};
    vpps_options o = default_options();
    o.vps = vps[options % 4];
    o.gradients = options & 4 ? VPPS_GRADIENTS_ACCUMULATE : VPPS_GRADIENTS_DEFERRED;
    o.portable = options & 1;
    o.pool_bytes = 64u << 20;
    o.optimizer = sgd;
    check_losses(from, from->sgd, &o);
    o.optimizer = adam;
    check_losses(from, from->adam, &o);
}

TEST_GROUP("golden losses", .seconds = 60);

/* Tests one network with all of the engine's options, and all networks, for their equations, with two sets of options. */
TEST_EACH(options_agree, 0, 8) { check_golden(0, _i); }

TEST_EACH(networks_agree, 0, N_GOLDENS) {
    check_golden(_i, 0);
    check_golden(_i, 5);
}

enum { PRECISE_BATCHES = 100 };

/* bf16x3 trains as fp32 does; bf16 differs slightly, otherwise it would be fp32 in disguise. */
TEST_EACH(precisions_agree, 0, 2 * N_GOLDENS) {
    static float losses[3][PRECISE_BATCHES];
    static const vpps_precision precisions[] = {VPPS_PRECISION_FP32, VPPS_PRECISION_BF16X3, VPPS_PRECISION_BF16};
    AT_END(vpps_arena_free) vpps_arena memory = {0};
    const golden of = golden_read(&memory, goldens[_i / 2].file, goldens[_i / 2].i), *from = &of;
    vpps_options o = default_options();
    o.vps = 1;
    o.no_tuning = true;           /* measured times must not choose the order of sums */
    o.caller = VPPS_CALLER_WORKS; /* does not wait for threads: there are hundreds of small batches */
    o.pool_bytes = 64u << 20;
    o.optimizer = _i % 2 ? adam : sgd;
    if (_i % 2) o.optimizer.lr = 0.002f; /* the command's rate; with adam's 0.03, any error grows with each batch */
    const bool grows = !strcmp(from->name, "act") || !strcmp(from->name, "lstm-nmt-input-feeding");
    if (grows && !(_i % 2)) o.optimizer.lr = 0.1f; /* with 0.2 any error grows with each batch, in act a thousandfold */
    const uint32_t batches = test_scaled(PRECISE_BATCHES);
    for (int p = 0; p < 3; p++) {
        o.precision = precisions[p];
        AT_END(close_network) trained t = open_network(from, &o);
        for (uint32_t batch = 0; batch < batches; batch++)
            losses[p][batch] = train_batch(t.of.h, t.of.g, add_batch(from, t.type, t.net, t.of.g, batch));
    }
    double most[3] = {0};
    for (uint32_t batch = 0; batch < batches; batch++)
        for (int p = 1; p < 3; p++)
            most[p] = fmax(most[p], fabs((double)losses[p][batch] / (double)losses[0][batch] - 1));
    ck_assert_msg(most[1] <= 1e-4, "%s, %s: bf16x3 is off by %g of fp32's loss", from->name, _i % 2 ? "adam" : "sgd",
                  most[1]);
    ck_assert_msg(most[2] > most[1], "%s: bf16 is off by %g, bf16x3 by %g", from->name, most[2], most[1]);
}
