/* test_share.c - vpps_fb in several processes (here threads): the same losses as in one, the same bits in every process and every run, and the same
 * failures everywhere. */
#include "comm/threads.h"
#include "common/folder.h"
#include "common/gpu_tests.h"
#include "common/training.h"
#include "runtime/gpu/gpu.h"
#include "runtime/handle.h"
#include "runtime/simt/simt.h"

enum { WORDS = 23, EMBED = 12, HIDDEN = 67, CLASSES = 5, EXAMPLES = 6, BATCHES = 5, MOST = 4 };
enum { MOST_EXAMPLES = 15 };

/* ---------------------------------------------------------------- a network, and its examples */

typedef struct net {
    vpps_model *model;
    vpps_graph *g;
    vpps_handle *h; /* NULL: none yet */
    vpps_param E, F, W, U, b, C, b_c, rare;
} net;

/* Makes a network. shards: communicator over whose processes tables are shared out; NULL: they are whole. */
static net net_of(const vpps_communicator *shards) {
    net n = {.h = NULL};
    TEST_OK(vpps_model_create(&n.model, 3));
    TEST_OK(vpps_shard_tables(n.model, shards));
    n.E = add_lookup(n.model, "E", WORDS, EMBED, 1);
    n.W = add_matrix(n.model, "W", HIDDEN, EMBED);
    n.rare = add_matrix(n.model, "rare", HIDDEN, EMBED);
    n.U = add_matrix(n.model, "U", HIDDEN, HIDDEN);
    n.b = add_vector(n.model, "b", HIDDEN);
    n.C = add_matrix(n.model, "C", CLASSES, HIDDEN);
    n.b_c = add_vector(n.model, "b_c", CLASSES);
    n.F = add_lookup(n.model, "F", 3, EMBED, 1);
    TEST_OK(vpps_graph_create(&n.g, n.model));
    return n;
}

static net net_with(const vpps_communicator *shards, const vpps_options *options) {
    net n = net_of(shards);
    TEST_OK(vpps_handle_create(&n.h, n.model, options));
    return n;
}

static void close_net(net *n) { training_end(&(training){n->model, n->g, n->h}); }

/* Adds example number `i` of a batch: a chain of words. Only the first of every second batch uses `rare` and F. The second one's loss also has the
 * elements of W. */
static vpps_node add_example(const net *n, uint32_t batch, uint32_t i, float factor) {
    vpps_graph *g = n->g;
    uint64_t random = batch * 1000 + i * 31 + 17;
    const bool is_rare = batch % 2 == 1 && i == 0;
    const vpps_node first =
        is_rare ? vpps_lookup(g, n->F, batch % 3) : vpps_lookup(g, n->E, vpps_random_below(&random, WORDS));
    vpps_node h = vpps_tanh(g, vpps_affine1(g, n->b, is_rare ? n->rare : n->W, first));
    for (uint32_t length = vpps_random_below(&random, 6); length > 0; length--) {
        const vpps_node x = vpps_lookup(g, n->E, vpps_random_below(&random, WORDS));
        h = vpps_tanh(g, vpps_affine2(g, n->b, n->W, x, n->U, h));
    }
    vpps_node loss = vpps_cross_entropy(g, vpps_affine1(g, n->b_c, n->C, h), vpps_random_below(&random, CLASSES));
    if (i == 1) loss = vpps_add(g, loss, vpps_sum_elements(g, vpps_square(g, vpps_parameter(g, n->W))));
    return vpps_scale_by(g, loss, vpps_input(g, 1, 1, &factor));
}

/* ---------------------------------------------------------------- runs */

/* What differs in process 1. */
typedef enum other { OTHER_NOTHING, OTHER_RATE, OTHER_RATE_OF_GROUP, OTHER_FROZEN, OTHER_PRECISION } other;

/* How processes train. */
typedef struct way {
    uint32_t examples; /* a batch */
    uint32_t parts;    /* number of vpps_backward calls per batch; 0: vpps_fb */
    bool request;      /* each with a request, after one with only a request */
    bool halves;       /* each in two halves, with the loss's gradient given */
    bool freeze, shard;
    bool nccl; /* whether NCCL adds up between GPUs; else through the host */
} way;

typedef struct run {
    vpps_options options;
    way way;
    uint32_t bad_batch; /* batch in which one loss is multiplied by bad_factor; from 1, 0: none */
    float bad_factor;
    other other;
    const char *from; /* the checkpoint that it begins with; NULL: none */
    const char *file; /* file for sharded tables */
    /* results, of each process */
    float losses[MOST][BATCHES];
    vpps_status statuses[MOST][BATCHES];
    char messages[MOST][BATCHES][VPPS_MESSAGE_BYTES];
    float *values[MOST];
    size_t n_values;
    vpps_stats stats[MOST];
} run;

/* Reads whole tables from the file that all processes wrote together. */
static void read_file(vpps_handle *trained, run *r, uint32_t rank) {
    vpps_options options = r->options;
    TEST_OK(vpps_save(trained, rank ? "" : r->file, NULL, 0));
    AT_END(close_net) net n = net_with(NULL, &options);
    TEST_OK(vpps_load(n.h, r->file));
    r->values[rank] = model_values(n.model, rank ? &(size_t){0} : &r->n_values);
}

/* Adds the losses of every `size`-th example of a batch, from this process's first on, and of these every parts-th from `part` on. */
static vpps_node add_examples(const net *n, const run *r, uint32_t b, uint32_t rank, uint32_t size, uint32_t part) {
    vpps_node terms[MOST_EXAMPLES];
    uint32_t own = 0;
    vpps_graph_clear(n->g);
    for (uint32_t i = 0; i < r->way.examples; i++) {
        const bool bad = r->bad_batch == b + 1 && i == 1;
        if (i % size != rank || (r->way.parts && i / size % r->way.parts != part)) continue;
        terms[own++] = add_example(n, b, i, bad ? r->bad_factor : 1);
    }
    return own ? vpps_scale(n->g, vpps_sum(n->g, own, terms), 1.0f / (float)r->way.examples) : VPPS_NO_NODE;
}

/* Makes a part's step with a request for this process's own results. Without parameters' gradients nothing adds up. */
static vpps_status step_with_request(vpps_handle *h, const net *n, const run *r, vpps_node loss, bool no_parameters) {
    if (loss == VPPS_NO_NODE) return vpps_backward(h, n->g, loss, VPPS_REQUEST(.no_parameters = no_parameters));
    float value, sum = 0, of_sum = 0, word[64] = {0}, of_word[64] = {0};
    const vpps_node nodes[] = {loss, loss - 1, 0}; /* the sum of its terms; the first example's first word */
    const vpps_request request = {
        sizeof request, 3, nodes, (float *[]){&value, &sum, word}, 2, nodes + 1, (float *[]){&of_sum, of_word},
        no_parameters,  0, false};
    const vpps_status status = vpps_backward(h, n->g, loss, &request);
    float told;
    if (status != VPPS_OK) return status;
    TEST_OK(vpps_sync_latest_loss(h, &told));
    ck_assert_float_eq(value, told);
    ck_assert_float_eq_tol(sum, value * (float)r->way.examples, 1e-4f);
    ck_assert_float_eq(of_sum, 1.0f / (float)r->way.examples);
    ck_assert(word[0] != 0 && of_word[0] != 0);
    return VPPS_OK;
}

/* Makes a part's step in halves; a process without an example names no node. */
static vpps_status step_in_halves(vpps_handle *h, const net *n, vpps_node loss) {
    const uint32_t own = loss != VPPS_NO_NODE;
    const float one = 1;
    float value;
    const vpps_status status =
        vpps_step_forward(h, n->g, VPPS_REQUEST(.n_values = own, .values = &loss, .value_outs = (float *[]){&value}));
    return status == VPPS_OK ? vpps_step_backward(h, own, (const float *[]){&one}) : status;
}

static vpps_status step_in_parts(vpps_handle *h, const net *n, const run *r, uint32_t b, uint32_t rank, uint32_t size) {
    for (uint32_t part = 0; part < r->way.parts; part++) {
        const vpps_node loss = add_examples(n, r, b, rank, size, part);
        if (r->way.request) TEST_OK(step_with_request(h, n, r, loss, true));
        const vpps_status status = r->way.request
                                       ? step_with_request(h, n, r, add_examples(n, r, b, rank, size, part), false)
                                   : r->way.halves ? step_in_halves(h, n, loss)
                                                   : vpps_backward(h, n->g, loss, NULL);
        if (status != VPPS_OK) return status;
    }
    return vpps_update(h);
}

static void train(vpps_communicator *c, void *argument) {
    run *r = argument;
    vpps_options options = r->options;
    const uint32_t rank = vpps_communicator_rank(c), size = vpps_communicator_size(c);
    options.communicator = c;
    const other differs = rank == 1 ? r->other : OTHER_NOTHING;
    if (differs == OTHER_PRECISION) options.precision = VPPS_PRECISION_BF16;
    if (differs == OTHER_RATE) options.optimizer.lr *= 2;
    AT_END(close_net) net n = net_of(r->way.shard ? c : NULL);
    if (r->way.freeze) {
        TEST_OK(vpps_freeze(n.model, n.U, true));
        TEST_OK(vpps_freeze(n.model, n.E, true));
    }
    if (differs == OTHER_FROZEN) TEST_OK(vpps_freeze(n.model, n.C, true));
    TEST_OK(vpps_handle_create(&n.h, n.model, &options));
    if (r->from) TEST_OK(vpps_load(n.h, r->from));
    const vpps_param_group group = {sizeof group, differs ? 0.1f : 0.2f, NAN, NAN};
    if (r->other == OTHER_RATE_OF_GROUP) TEST_OK(vpps_set_param_group(n.h, 1, &n.b, &group));
    for (uint32_t b = 0; b < BATCHES; b++) {
        r->statuses[rank][b] = r->way.parts ? step_in_parts(n.h, &n, r, b, rank, size)
                                            : vpps_fb(n.h, n.g, add_examples(&n, r, b, rank, size, 0), NULL);
        if (r->statuses[rank][b] == VPPS_OK) r->statuses[rank][b] = vpps_sync_latest_loss(n.h, &r->losses[rank][b]);
        /* gradients are exchanged while a CPU's virtual processors wait, and between a GPU's launches */
        const uint64_t waited = strcmp(n.h->stats.device, "cpu") ? 0 : n.h->latest.shared.exchange_ns;
        ck_assert_uint_eq(n.h->latest.own_ns + waited, n.h->latest.device_ns);
        snprintf(r->messages[rank][b], VPPS_MESSAGE_BYTES, "%s", vpps_error_message());
        if (r->statuses[rank][b] == VPPS_STATE) break;
    }
    r->stats[rank] = stats_of(n.h);
    if (!r->other) TEST_OK(vpps_read_parameters(n.h));
    if (r->way.shard && size > 1)
        read_file(n.h, r, rank);
    else
        r->values[rank] = model_values(n.model, rank ? &(size_t){0} : &r->n_values);
}

static void train_in(uint32_t processes, run *r) {
    if (processes)
        threads_run(processes, train, r);
    else
        train(NULL, r);
}

static void free_run(run *r) {
    for (uint32_t p = 0; p < MOST; p++) free(r->values[p]);
}

/* Returns a run on a device; a GPU's kernel runs under software SIMT. */
static run run_on(const char *device, uint32_t vps, vpps_optimizer_kind kind) {
    run r = {.options = default_options(), .way = {.examples = EXAMPLES}};
    r.options.device = device;
    r.options.vps = vps;
    r.options.threads = 64;
    r.options.rpw = 1;
    r.options.pool_bytes = 16u << 20;
    r.options.optimizer.kind = kind;
    r.options.optimizer.lr = 0.05f;
    r.options.optimizer.weight_decay = 0.01f;
    return r;
}

static const char *stand_in; /* for NCCL */

/* Some sanitizers cannot run the device. */
#define NEED(device)                                                                                                   \
    if (strcmp(device, "cpu") != 0 && vpps_simt_check() != VPPS_OK) TEST_SKIP("software SIMT does not run here")

static void check_same_bits(const float *a, const float *b, size_t n, const char *what) {
    for (size_t i = 0; i < n; i++)
        if (memcmp(&a[i], &b[i], sizeof *a) != 0) ck_abort_msg("%s: %zu: %g, %g", what, i, (double)a[i], (double)b[i]);
}

static void check_close(const float *a, const float *b, size_t n, double tolerance, const char *what) {
    for (size_t i = 0; i < n; i++)
        if (!(fabs((double)a[i] - (double)b[i]) <= tolerance * (1 + fabs((double)b[i]))))
            ck_abort_msg("%s: %zu: %g, %g", what, i, (double)a[i], (double)b[i]);
}

/* Trains in one process, on the CPU if possible, and twice in `processes`: r has the results of the first of these. */
static void check_like_one(run *r, uint32_t processes) {
    AT_END(free_run) run one = *r, again = *r;
    one.way.parts = 0;
    if (r->options.gradients != VPPS_GRADIENTS_CUBLAS) one.options.device = "cpu"; /* it has no kernel to compile */
    if (r->way.nccl)
        setenv("VPPS_NCCL", stand_in, 1);
    else
        unsetenv("VPPS_NCCL");
    train_in(0, &one);
    train_in(processes, r);
    train_in(processes, &again);
    for (uint32_t p = 0; p < processes; p++) {
        const float none[BATCHES] = {0}; /* a step in halves has no loss of its own */
        check_close(r->losses[p], r->way.halves ? none : one.losses[0], BATCHES, 1e-5, "losses");
        check_close(r->values[p], one.values[0], r->n_values, 1e-4, "parameters");
        check_same_bits(r->losses[p], r->losses[0], BATCHES, "another process's losses");
        check_same_bits(r->values[p], r->values[0], r->n_values, "another process's parameters");
        check_same_bits(r->losses[p], again.losses[p], BATCHES, "another run's losses");
        check_same_bits(r->values[p], again.values[p], r->n_values, "another run's parameters");
        ck_assert_uint_eq(r->stats[p].rank, p);
        ck_assert_uint_eq(r->stats[p].processes, processes);
        if (processes > 1) ck_assert_uint_gt(r->stats[p].total_sent_bytes, 0);
    }
}

/* ---------------------------------------------------------------- tables that are shared out */

TEST_EACH(sharded_tables_train_alike, 0, VPPS_OPTIMIZERS) {
    folder_make();
    const bool any_number = _i == VPPS_ADAM; /* how tables are shared out does not depend on the optimizer */
    for (uint32_t processes = any_number ? 1 : 3; processes <= (any_number ? MOST : 3u); processes++) {
        AT_END(free_run) run r = run_on("cpu", 1 + processes % 2, (vpps_optimizer_kind)_i), whole = r;
        r.way.shard = true;
        r.file = folder_path("alike");
        check_like_one(&r, processes);
        train_in(processes, &whole); /* the order of sums is equal */
        check_same_bits(r.losses[0], whole.losses[0], BATCHES, "whole tables' losses");
        check_same_bits(r.values[0], whole.values[0], whole.n_values, "whole tables' parameters");
    }
}

TEST(any_number_of_processes_goes_on_from_shards) {
    folder_make();
    AT_END(free_run) run r = run_on("cpu", 1, VPPS_ADAM);
    r.way.shard = true;
    r.file = folder_path("first");
    train_in(3, &r);
    AT_END(free_run) run one = run_on("cpu", 1, VPPS_ADAM), two = one;
    one.from = two.from = r.file;
    two.way.shard = true;
    two.file = folder_path("next");
    train_in(0, &one);
    train_in(2, &two);
    check_close(two.losses[0], one.losses[0], BATCHES, 1e-5, "losses");
    check_close(two.values[1], one.values[0], one.n_values, 1e-4, "parameters");
    ck_assert_float_ne(two.losses[0][0], r.losses[0][0]);
}

/* Trains with a batch's loss that is a sum of entries: entry `rank` of S, and all elements of entry `rank` of E. */
static void train_entries(vpps_communicator *c, const net *n, vpps_handle *h, const net *whole, vpps_param S) {
    float loss, expected = 0;
    const float *scalars = vpps_param_values(whole->model, S), *rows = vpps_param_values(whole->model, whole->E);
    for (uint32_t p = 0; p < c->size; p++) {
        expected += scalars[p];
        for (uint32_t i = 0; i < EMBED; i++) expected += rows[p * EMBED + i];
    }
    vpps_graph_clear(n->g);
    const vpps_node terms[] = {vpps_lookup(n->g, S, c->rank),
                               vpps_sum_elements(n->g, vpps_lookup(n->g, n->E, c->rank))};
    loss = train_batch(h, n->g, vpps_sum(n->g, 2, terms));
    check_close(&loss, &expected, 1, 1e-5, "the sum of entries");
}

/* Each process measures as often as it likes; reads entries and their sums. */
static void measure(vpps_communicator *c, void *argument) {
    vpps_options options = *(const vpps_options *)argument;
    vpps_param S;
    AT_END(close_net) net whole = net_of(NULL);
    TEST_OK(vpps_add_lookup(whole.model, &S, "S", 5, 1, 1, NULL));
    TEST_OK(vpps_handle_create(&whole.h, whole.model, &options));
    options.communicator = c;
    AT_END(close_net) net n = net_of(c);
    TEST_OK(vpps_add_lookup(n.model, &S, "S", 5, 1, 1, NULL));
    TEST_OK(vpps_handle_create(&n.h, n.model, &options));
    for (uint32_t k = 0; k < 3 * c->rank; k++) {
        float out[2][2 * EMBED + 1];
        for (int i = 0; i < 2; i++) {
            const net *x = i ? &whole : &n;
            vpps_graph_clear(x->g);
            const vpps_node entry = vpps_lookup(x->g, x->E, (5 * k + c->rank) % WORDS);
            const vpps_node nodes[] = {entry, vpps_add(x->g, entry, vpps_lookup(x->g, x->F, k % 3)),
                                       add_example(x, k, c->rank, 1)};
            float *const outs[] = {out[i], out[i] + EMBED, out[i] + 2 * EMBED};
            TEST_OK(vpps_forward(i ? whole.h : n.h, x->g, 3, nodes, outs));
        }
        check_same_bits(out[0], out[1], 2 * EMBED + 1, "what was computed of entries");
    }
    TEST_OK(vpps_forward_end(n.h));
    TEST_OK(vpps_forward_end(whole.h));
    train_entries(c, &n, n.h, &whole, S);
}

TEST(each_measures_as_often_as_it_likes) {
    run r = run_on("cpu", 2, VPPS_SGD);
    threads_run(3, measure, &r.options);
}

static void train_beside_measuring(vpps_communicator *c, void *argument) {
    (void)argument;
    vpps_options options = run_on("cpu", 1, VPPS_SGD).options;
    options.communicator = c;
    AT_END(close_net) net n = net_with(c, &options);
    if (c->rank) {
        TEST_FAILS(vpps_forward_end(n.h), VPPS_STATE, "rank 1 on host1 is done measuring, and rank 0 on host0 trains");
    } else {
        TEST_FAILS(vpps_fb(n.h, n.g, add_example(&n, 0, 0, 1), NULL), VPPS_STATE, "is done measuring");
    }
}

TEST(who_does_something_else_is_told) { threads_run(2, train_beside_measuring, NULL); }

static void save_where_there_is_nothing(vpps_communicator *c, void *argument) {
    (void)argument;
    vpps_options options = run_on("cpu", 1, VPPS_SGD).options;
    options.communicator = c;
    AT_END(close_net) net n = net_with(c, &options);
    TEST_FAILS(vpps_save(n.h, c->rank ? "" : "/nowhere/at/all", NULL, 0), VPPS_IO, "rank 0 on host0: /nowhere/at/all");
}

TEST(a_file_that_cannot_be_written_fails_in_all) { threads_run(3, save_where_there_is_nothing, NULL); }

static void declare_shards(vpps_communicator *c, void *argument) {
    (void)argument;
    vpps_param_info info = {.size = sizeof info};
    AT_END(close_net) net n = net_of(c);
    TEST_OK(vpps_param_describe(n.model, n.E, &info));
    ck_assert_uint_eq(info.count, WORDS);
    ck_assert_uint_eq(info.first, c->rank);
    ck_assert_uint_eq(info.step, c->size);
    TEST_OK(vpps_param_describe(n.model, n.W, &info));
    ck_assert_uint_eq(info.step, 1);
    ck_assert_uint_eq(vpps_entries_held(&n.model->params[n.E]), (WORDS + c->size - 1 - c->rank) / c->size);
    TEST_FAILS(vpps_shard_tables(n.model, c), VPPS_STATE, "E is declared already");
    TEST_FAILS(vpps_handle_create(&n.h, n.model, NULL), VPPS_ARGUMENT, "tables are shared out");
}

TEST(a_shard_has_every_so_manieth_entry) { threads_run(4, declare_shards, NULL); }

/* ---------------------------------------------------------------- tests */

/* A run in several processes equals a run in one: with every optimiser, and in every way. */
static const struct case_of_one {
    const char *device;
    uint32_t processes, vps;
    vpps_optimizer_kind kind;
    float clip;
    bool no_norm, by_level, in_waves, caller_free, cublas;
    way way; /* 0 examples: EXAMPLES */
} ways[] = {
#define ON_CPU(processes, vps, ...)                                                                                    \
    { "cpu", processes, vps, __VA_ARGS__ }
#define ON_GPU(processes, ...)                                                                                         \
    { "simt", processes, 2, __VA_ARGS__ }
    ON_CPU(1, 2, .kind = VPPS_SGD),
    ON_CPU(2, 1, .kind = VPPS_MOMENTUM, .way.freeze = true),
    ON_CPU(3, 2, .kind = VPPS_ADAGRAD),
    ON_CPU(4, 1, .kind = VPPS_ADAM),
    ON_CPU(2, 2, .kind = VPPS_ADAMW),
    ON_CPU(3, 2, .kind = VPPS_SGD, .clip = 0.3f),
    ON_CPU(4, 2, .kind = VPPS_ADAM, .way.examples = 2), /* some have none */
    ON_CPU(3, 2, .kind = VPPS_ADAM, .way.examples = 2, .no_norm = true),
    ON_CPU(2, 2, .kind = VPPS_SGD, .by_level = true),
    ON_CPU(2, 2, .kind = VPPS_SGD, .by_level = true, .in_waves = true),
    ON_CPU(4, 2, .kind = VPPS_MOMENTUM, .way.parts = 2), /* some parts of some processes have no example */
    ON_CPU(2, 2, .kind = VPPS_MOMENTUM, .way.parts = 2, .way.request = true),
    ON_CPU(3, 2, .kind = VPPS_MOMENTUM, .way.parts = 2, .way.request = true, .clip = 0.3f, .way.freeze = true),
    ON_CPU(3, 2, .kind = VPPS_MOMENTUM, .way.parts = 2, .way.request = true, .clip = 0.3f, .way.shard = true),
    ON_CPU(4, 2, .kind = VPPS_MOMENTUM, .way.parts = 2, .way.halves = true),
    ON_CPU(3, 2, .kind = VPPS_MOMENTUM, .way.parts = 2, .way.halves = true, .clip = 0.3f, .way.shard = true),
    ON_CPU(3, 2, .kind = VPPS_SGD, .clip = 0.3f, .way.shard = true),
    ON_CPU(2, 2, .kind = VPPS_SGD, .clip = 0.3f, .way.shard = true, .way.freeze = true),
    ON_CPU(4, 2, .kind = VPPS_SGD, .clip = 0.3f, .way.shard = true, .way.examples = 2, .caller_free = true),
    ON_GPU(2, .kind = VPPS_ADAM, .clip = 0.3f, .way.freeze = true, .way.nccl = true),
    ON_GPU(3, .kind = VPPS_ADAM, .clip = 0.3f, .way.examples = 2),
    ON_GPU(2, .kind = VPPS_MOMENTUM, .clip = 0.3f, .way.parts = 2, .way.nccl = true),
    ON_GPU(3, .kind = VPPS_SGD, .way.nccl = true),
    ON_GPU(2, .kind = VPPS_MOMENTUM, .clip = 0.3f, .way.parts = 2, .way.halves = true),
    ON_GPU(2, .kind = VPPS_ADAM, .in_waves = true, .cublas = true),
    ON_GPU(3, .kind = VPPS_MOMENTUM),
    ON_GPU(2, .kind = VPPS_ADAGRAD),
    ON_GPU(2, .kind = VPPS_ADAMW),
    ON_GPU(3, .kind = VPPS_ADAM, .clip = 0.3f, .way.examples = 2, .no_norm = true, .way.nccl = true),
    ON_GPU(2, .kind = VPPS_MOMENTUM, .clip = 0.3f, .way.parts = 2, .way.examples = 3),
    ON_GPU(2, .kind = VPPS_MOMENTUM, .clip = 0.3f, .way.parts = 2, .way.freeze = true, .cublas = true),
#undef ON_CPU
#undef ON_GPU
};
enum { EVERYDAY_WAYS = 22 }; /* all on the CPU, and three on software SIMT */

GPU_EACH(losses_are_those_of_one_process, EVERYDAY_WAYS, VPPS_COUNT(ways)) {
    const struct case_of_one *w = &ways[_i];
    folder_make();
    NEED(w->device);
    AT_END(free_run) run r = run_on(w->device, w->vps, w->kind);
    r.way = w->way;
    if (!r.way.examples) r.way.examples = EXAMPLES;
    r.file = folder_path("alike");
    r.options.optimizer.clip = w->clip;
    if (w->no_norm) r.options.nonfinite = VPPS_NONFINITE_IGNORE;
    if (w->by_level) r.options.gradients = VPPS_GRADIENTS_ACCUMULATE;
    if (w->cublas) r.options.gradients = VPPS_GRADIENTS_CUBLAS;
    if (w->in_waves) r.options.waves = 3, r.options.slices = r.options.groups = 2;
    if (w->caller_free) r.options.caller = VPPS_CALLER_FREE, r.options.verify = true;
    check_like_one(&r, w->processes);
}

/* Returns a run of three processes on a GPU whose kernels are those of one of the everyday `ways`. */
static run small_run_on_gpu(void) {
    run r = run_on("simt", 2, VPPS_ADAM);
    r.options.optimizer.clip = 0.3f;
    r.way.examples = 2;
    return r;
}

TEST_EACH(a_loss_that_is_not_finite_stops_all, 0, 3) {
    const bool gpu = _i == 2;
    NEED(gpu ? "simt" : "cpu");
    AT_END(free_run) run r = gpu ? small_run_on_gpu() : run_on("cpu", 2, VPPS_SGD);
    r.bad_batch = 3;
    r.bad_factor = _i == 1 ? INFINITY : NAN;
    train_in(3, &r);
    for (uint32_t p = 0; p < 3; p++) {
        for (uint32_t b = 0; b < BATCHES; b++) ck_assert_int_eq(r.statuses[p][b], b == 2 ? VPPS_NONFINITE : VPPS_OK);
        ck_assert_str_eq(r.messages[p][2], r.messages[0][2]);
        ck_assert_uint_eq(r.stats[p].skipped, 1);
        check_same_bits(r.values[p], r.values[0], r.n_values, "parameters");
    }
    for (size_t i = 0; i < r.n_values; i++) ck_assert(isfinite(r.values[0][i]));
}

/* Another learning rate, a group's rate, other frozen parameters, or another precision of products. */
TEST_EACH(who_trains_otherwise_is_told, 0, 5) {
    NEED(_i == 4 ? "simt" : "cpu");
    AT_END(free_run) run r = _i == 4 ? small_run_on_gpu() : run_on("cpu", 2, VPPS_SGD);
    r.other = _i == 4 ? OTHER_RATE : (other)(OTHER_RATE + _i);
    train_in(3, &r);
    const char *message = r.other == OTHER_PRECISION ? "rank 1 on host1 trains another model, or on another device, "
                                                       "with other VPs, instructions, precision or version"
                                                     : "rank 1 on host1 trains with other settings";
    for (uint32_t p = 0; p < 3; p++) {
        ck_assert_int_eq(r.statuses[p][0], VPPS_STATE);
        ck_assert_ptr_nonnull(strstr(r.messages[p][0], message));
    }
}

/* ---------------------------------------------------------------- GPUs */

/* Eight examples run in two groups of virtual processors, seven in one. */
GPU_EACH(gpus_of_other_groups_clip_alike, 1, 2) {
    NEED("simt");
    AT_END(free_run) run r = run_on("simt", 10, VPPS_ADAM);
    setenv("VPPS_SIMT_SMS", "10", 1); /* with fewer SMs, a virtual processor of a group would have too many rows */
    r.options.optimizer.clip = 0.3f;
    r.way.examples = MOST_EXAMPLES;
    r.way.nccl = _i;
    check_like_one(&r, 2);
    ck_assert_uint_eq(r.stats[0].groups, 2);
    ck_assert_uint_eq(r.stats[1].groups, 1);
}

static void open_with_shards(vpps_communicator *c, void *argument) {
    (void)argument;
    vpps_options options = run_on("simt", 2, VPPS_SGD).options;
    options.communicator = c;
    AT_END(close_net) net n = net_of(c);
    TEST_FAILS(vpps_handle_create(&n.h, n.model, &options), VPPS_DEVICE, "has whole lookup tables");
}

TEST(a_gpu_has_whole_tables) {
    NEED("simt");
    threads_run(2, open_with_shards, NULL);
}

static void train_on_different_devices(vpps_communicator *c, void *argument) {
    vpps_options options = c->rank ? run_on("simt", 2, VPPS_SGD).options : run_on("cpu", 2, VPPS_SGD).options;
    (void)argument;
    options.communicator = c;
    AT_END(close_net) net n = net_with(NULL, &options);
    vpps_status status = vpps_fb(n.h, n.g, add_example(&n, 0, 0, 1), NULL);
    if (status == VPPS_OK) status = vpps_sync_latest_loss(n.h, NULL);
    TEST_FAILS(status, VPPS_STATE, "rank 1 on host1 trains another model, or on another device");
}

TEST(all_train_on_the_same_kind_of_device) {
    NEED("simt");
    unsetenv("VPPS_NCCL");
    threads_run(2, train_on_different_devices, NULL);
}

TEST(processes_of_a_host_take_its_gpus_in_turn) {
    static char hosts[5][VPPS_HOST_BYTES] = {"a", "b", "a", "a", "b"};
    static const uint32_t numbers[] = {0, 0, 1, 2, 1};
    ck_assert_uint_eq(vpps_gpu_number(NULL), 0);
    for (uint32_t p = 0; p < 5; p++) {
        const vpps_communicator c = {.rank = p, .size = 5, .hosts = hosts};
        ck_assert_uint_eq(vpps_gpu_number(&c), numbers[p]);
    }
}

int main(void) {
    stand_in = test_beside("fake_nccl.so");
    setenv("VPPS_LIBCUBLAS", test_beside("fake_cublas.so"), 1);
    return test_main("share");
}
