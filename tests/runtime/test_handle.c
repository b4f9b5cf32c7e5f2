/* test_handle.c - what vpps.h promises of handles: losses and errors come one batch late, and nothing is lost. (Handles in several threads:
 * comm/test_share.c, test_inference.c.) */
#include "common/gpu_tests.h"
#include "graph/model.h"
#include "models.h"
#include "runtime/simt/simt.h"
#include "runtime/small_network.h"

#include <dirent.h>
#include <malloc.h>
#include <unistd.h>

/* Where a handle runs: on the CPU, whose caller runs a virtual processor or is free, or on a GPU. */
enum { WORKS, FREE, GPU };

static vpps_options options_on(int where, uint32_t vps, vpps_optimizer_kind optimizer) {
    static const vpps_caller callers[] = {VPPS_CALLER_WORKS, VPPS_CALLER_FREE, VPPS_CALLER_AUTO};
    vpps_options o = sn_options(vps, optimizer);
    o.caller = callers[where];
    if (where != GPU) return o;
    o.device = test_gpu_device();
    o.no_tuning = true;
    if (!gpu_is_simulated()) o.vps = 0;
    return o;
}

/* Checks whether both networks have the same parameters and, if both have handles, the same optimiser states. */
static void expect_same(const small_network *a, const small_network *b, bool same, const char *what) {
    if (a->h) TEST_OK(vpps_read_parameters(a->h));
    if (b->h) TEST_OK(vpps_read_parameters(b->h));
    ck_assert_msg(models_are_equal(a->model, b->model, a->h && b->h) == same, "%s: parameters %s", what,
                  same ? "differ" : "are equal");
}

/* Makes a loss of known value that leaves the parameters unchanged: an input, plus 0 times a parameter. */
static vpps_node known_loss(const small_network *n, float loss) {
    vpps_graph_clear(n->g);
    const vpps_node x = vpps_sum_elements(n->g, vpps_scale(n->g, vpps_parameter(n->g, n->b), 0));
    return vpps_add(n->g, x, vpps_input(n->g, 1, 1, &loss));
}

/* ---------------------------------------------------------------- losses */

TEST_GROUP("handle", .seconds = 60);

TEST_EACH(losses_come_one_batch_late, WORKS, GPU) {
    vpps_options o = options_on(_i, 2, VPPS_SGD);
    AT_END(sn_close) small_network n = sn_with(1, &o);
    float loss = 7, stale;
    bool done;
    TEST_FAILS(vpps_sync_latest_loss(n.h, &loss), VPPS_STATE, "batch");
    ck_assert_float_eq(loss, 7);
    const vpps_status early = vpps_poll_loss(n.h, &done, &loss);
    ck_assert_msg(early == VPPS_STATE || (early == VPPS_OK && !done), "poll before the first batch: %s",
                  vpps_status_name(early));
    for (uint32_t k = 1; k <= 12; k++) {
        stale = 3;
        TEST_OK(vpps_fb(n.h, n.g, known_loss(&n, (float)k), &stale));
        if (k == 1) ck_assert_float_nan(stale);
        if (k > 1) ck_assert_float_eq(stale, (float)(k - 1));
        if (k % 4 == 0) { /* asking in between changes nothing, however often */
            for (int i = 0; i < 3; i++) {
                TEST_OK(vpps_sync_latest_loss(n.h, &loss));
                ck_assert_float_eq(loss, (float)k);
            }
            TEST_OK(vpps_poll_loss(n.h, &done, &loss));
            ck_assert(done);
            ck_assert_float_eq(loss, (float)k);
        }
    }
    TEST_OK(vpps_fb(n.h, n.g, known_loss(&n, 50), NULL)); /* the stale loss may be ignored */
    TEST_OK(vpps_sync_latest_loss(n.h, &loss));
    ck_assert_float_eq(loss, 50);
    const vpps_stats stats = stats_of(n.h);
    ck_assert_str_eq(stats.device, o.device);
    ck_assert_uint_eq(stats.caller_works, _i == WORKS);
    ck_assert_uint_eq(stats.batches, 13);
}

/* A batch takes some milliseconds: with threads of its own, vpps_fb and vpps_poll_loss return while it runs. */
TEST(polling_does_not_wait) {
    enum { SIZE = 256 };
    vpps_param W;
    const vpps_init identity = {.kind = VPPS_INIT_UNIFORM, .a = -0.05f, .b = 0.05f};
    AT_END(training_end) training t = training_of(1);
    TEST_OK(vpps_add_matrix(t.model, &W, "W", SIZE, SIZE, &identity));
    vpps_options o = sn_options(1, VPPS_SGD);
    o.pool_bytes = 256u << 20;
    o.verify = false;
    o.caller = VPPS_CALLER_FREE;
    o.portable = true;
    training_start(&t, &o);
    float data[SIZE] = {1}, loss = 7;
    vpps_node x = vpps_input(t.g, SIZE, 1, data);
    for (uint32_t i = 0; i < test_scaled(1000); i++) x = vpps_tanh(t.g, vpps_matvec(t.g, W, x));
    const vpps_node sum = vpps_sum_elements(t.g, x);
    uint32_t early = 0;
    for (int k = 0; k < 3; k++) {
        TEST_OK(vpps_fb(t.h, t.g, sum, NULL));
        bool done = true;
        TEST_OK(vpps_poll_loss(t.h, &done, &loss));
        if (!done) {
            early++;
            ck_assert_float_eq(loss, 7); /* unchanged until the loss is known */
        }
        while (!done) {
            TEST_OK(vpps_poll_loss(t.h, &done, &loss));
            usleep(200);
        }
        ck_assert_float_ne(loss, 7);
        loss = 7;
    }
    ck_assert_msg(early > 0, "every poll right after vpps_fb found the batch done: it waits, or vpps_fb does");
}

/* The graph may be cleared as soon as vpps_fb returns; waiting between batches gives the same bits. */
TEST(pipelined_is_synchronous) {
    vpps_options o = sn_options(3, VPPS_ADAM);
    o.caller = VPPS_CALLER_FREE;
    o.verify = false;
    AT_END(sn_close) small_network a = sn_with(1, &o);
    o.caller = VPPS_CALLER_WORKS;
    AT_END(sn_close) small_network b = sn_with(1, &o);
    float previous = NAN;
    for (uint32_t k = 0; k < 60; k++) {
        float stale;
        TEST_OK(vpps_fb(a.h, a.g, sn_build(&a, k, 1), &stale));
        sn_build(&a, k + 7, NAN); /* overwrites the graph that was just given */
        const float latest = sn_step(&b, k);
        if (k) ck_assert_msg(stale == previous, "batch %u: %.9g, %.9g", k - 1, (double)stale, (double)previous);
        previous = latest;
    }
    expect_same(&a, &b, true, "pipelined against synchronous");
}

/* ---------------------------------------------------------------- losses that are not finite */

static const float not_finite[] = {NAN, INFINITY, -INFINITY};

/* Returns a network that has trained on two batches. */
static small_network begin(const vpps_options *o) {
    const small_network n = sn_with(1, o);
    for (uint32_t k = 1; k <= 2; k++) sn_fb(&n, k);
    return n;
}

TEST_EACH(stops_at_a_nonfinite_loss, WORKS, GPU) {
    for (int way = 0; way < 6; way++) {
        vpps_options o = options_on(_i, 2, VPPS_MOMENTUM);
        AT_END(sn_close) small_network n = begin(&o), witness = begin(&o);
        TEST_OK(vpps_fb(n.h, n.g, sn_build(&n, 3, not_finite[way % 3]), NULL)); /* nobody knows yet */
        if (way < 3) {
            float stale = 3;
            TEST_FAILS(vpps_fb(n.h, n.g, sn_build(&n, 4, 1), &stale), VPPS_NONFINITE, "batch 3");
        } else {
            TEST_FAILS(vpps_sync_latest_loss(n.h, NULL), VPPS_NONFINITE, "batch 3");
        }
        /* neither batch 3 nor batch 4 has changed anything */
        expect_same(&n, &witness, true, "a batch that was not applied");
        /* the handle still works: the caller may correct the input and continue */
        ck_assert(isfinite(sn_step(&n, 5)));
    }
}

/* Builds batch k with a finite loss but a gradient of one parameter that is not: that of the square root at 0. */
static vpps_node poisoned(const small_network *n, uint32_t k, vpps_param p) {
    vpps_graph *g = n->g;
    const vpps_node loss = sn_build(n, k, 1), x = vpps_lookup(g, n->E, 0);
    const vpps_node y = p == n->b ? vpps_parameter(g, n->b) : p == n->E ? x : vpps_matvec(g, n->W, x);
    return vpps_add(g, loss, vpps_sum_elements(g, vpps_sqrt(g, vpps_scale(g, y, 0))));
}

/* Tests every optimiser and every kind of parameter, with and without clipping; on a GPU, momentum and a matrix. */
TEST_EACH(gradients_that_are_not_finite, 0, VPPS_OPTIMIZERS) {
    const bool gpu = _i == VPPS_OPTIMIZERS;
    for (uint32_t way = gpu ? 2 : 0; way < 12; way += gpu ? 3 : 1) {
        vpps_options o = options_on(gpu           ? GPU
                                    : way / 2 % 2 ? FREE
                                                  : WORKS,
                                    gpu ? 2 : 1 + way % 3, gpu ? VPPS_MOMENTUM : (vpps_optimizer_kind)_i);
        const bool stops = way % 2;
        o.nonfinite = stops ? VPPS_NONFINITE_STOP : VPPS_NONFINITE_SKIP;
        o.optimizer.clip = way < 6 ? 0 : 1;
        AT_END(sn_close) small_network n = begin(&o), witness = begin(&o);
        const vpps_param which[] = {n.b, n.E, n.W};
        float loss = 0;
        TEST_OK(vpps_fb(n.h, n.g, poisoned(&n, 3, which[way % 3]), NULL));
        if (stops) TEST_FAILS(vpps_fb(n.h, n.g, sn_build(&n, 4, 1), NULL), VPPS_NONFINITE, "batch 3: the gradient");
        if (!stops) TEST_OK(vpps_sync_latest_loss(n.h, &loss));
        ck_assert(isfinite(loss));
        ck_assert_uint_eq(stats_of(n.h).skipped, 1);
        expect_same(&n, &witness, true, "a batch that was not applied");
        sn_step(&n, 5); /* training goes on */
        expect_same(&n, &witness, false, "a good batch");
    }
}

/* Batches with numbers that are not finite, applied as the options say, leave no trace on the device once parameters and optimiser state are written
 * again. */
TEST_EACH(parameters_recover_when_they_are_pushed, VPPS_SGD, VPPS_ADAMW + 1) {
    small_network pair[2];
    for (int k = 0; k < 2; k++) {
        vpps_options o = sn_options(2, (vpps_optimizer_kind)_i);
        o.nonfinite = VPPS_NONFINITE_IGNORE;
        const small_network n = pair[k] = begin(&o);
        TEST_OK(vpps_read_parameters(n.h));
        for (uint32_t i = 2; i < 4; i++) TEST_OK(vpps_fb(n.h, n.g, sn_build(&n, i, k ? NAN : 1), NULL));
        TEST_OK(vpps_write_parameters(n.h));
        for (uint32_t i = 4; i < 6; i++) sn_fb(&n, i);
    }
    expect_same(&pair[0], &pair[1], true, "after NaN");
    for (int k = 0; k < 2; k++) sn_close(&pair[k]);
}

/* ---------------------------------------------------------------- calls that do not fit */

TEST(wrong_calls) {
    vpps_handle *second;
    const vpps_options o = sn_options(2, VPPS_SGD);
    AT_END(sn_close) small_network n = sn_with(1, &o), other = sn_of(2);
    TEST_FAILS(vpps_handle_create(&second, n.model, &o), VPPS_STATE, "handle");
    ck_assert_ptr_null(second);

    const vpps_node loss = sn_build(&n, 1, 1);
    TEST_FAILS(vpps_fb(n.h, n.g, vpps_lookup(n.g, n.E, 0), NULL), VPPS_SHAPE, "12 x 1");
    TEST_FAILS(vpps_fb(n.h, n.g, VPPS_NO_NODE, NULL), VPPS_ARGUMENT, "no loss given");
    TEST_FAILS(vpps_fb(n.h, n.g, 100000, NULL), VPPS_ARGUMENT, "100000");
    TEST_FAILS(vpps_fb(n.h, other.g, sn_build(&other, 1, 1), NULL), VPPS_ARGUMENT, "model");
    float value, *outs[1] = {&value};
    vpps_node node = 100000;
    TEST_FAILS(vpps_forward(n.h, n.g, 1, &node, outs), VPPS_ARGUMENT, "100000");
    node = VPPS_NO_NODE;
    ck_assert_int_eq(vpps_forward(n.h, n.g, 1, &node, outs), VPPS_ARGUMENT);
    TEST_FAILS(vpps_forward(n.h, n.g, 1, &node, (float *[]){NULL}), VPPS_ARGUMENT, "outs[0] is NULL");
    node = sn_build(&other, 1, 1);
    TEST_FAILS(vpps_forward(n.h, other.g, 1, &node, outs), VPPS_ARGUMENT, "model");
    TEST_OK(vpps_fb(n.h, n.g, loss, NULL)); /* none of these calls has left a trace */

    sn_build(&n, 1, 1);
    const vpps_node wrong = vpps_add(n.g, vpps_lookup(n.g, n.E, 0), vpps_parameter(n.g, n.b));
    TEST_FAILS(vpps_fb(n.h, n.g, wrong, NULL), VPPS_SHAPE, "add");
    TEST_FAILS(vpps_forward(n.h, n.g, 1, &wrong, outs), VPPS_SHAPE, "add");
    TEST_FAILS(vpps_disassemble(n.h, n.g, wrong, stdout), VPPS_SHAPE, "add");
    vpps_graph_clear(n.g);
    ck_assert_int_eq(vpps_fb(n.h, n.g, 0, NULL), VPPS_ARGUMENT); /* nothing there */
    const float bad[] = {-1, NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < VPPS_COUNT(bad); i++) ck_assert_int_eq(vpps_set_learning_rate(n.h, bad[i]), VPPS_ARGUMENT);
    vpps_handle_destroy(n.h);
    TEST_OK(vpps_handle_create(&n.h, n.model, &o)); /* the model can have a handle again */
    vpps_handle_destroy(NULL);
}

TEST(wrong_options) {
    vpps_handle *h;
    AT_END(sn_close) small_network n = sn_of(1);
    const vpps_options good = sn_options(1, VPPS_SGD);
    vpps_options o;
#define WRONG(change, status, text)                                                                                    \
    o = good;                                                                                                          \
    o.change;                                                                                                          \
    TEST_FAILS(vpps_handle_create(&h, n.model, &o), status, text);                                                     \
    ck_assert_ptr_null(h)
    WRONG(device = "abacus", VPPS_DEVICE, "abacus");
    WRONG(optimizer.kind = (vpps_optimizer_kind)77, VPPS_ARGUMENT, "an enumeration");
    WRONG(optimizer.lr = -1, VPPS_ARGUMENT, "lr");
    WRONG(optimizer.lr = NAN, VPPS_ARGUMENT, "lr");
    WRONG(optimizer.lr = INFINITY, VPPS_ARGUMENT, "lr");
    WRONG(optimizer.weight_decay = -1, VPPS_ARGUMENT, "weight decay");
    WRONG(optimizer.clip = NAN, VPPS_ARGUMENT, "clip");
    WRONG(optimizer.momentum = 2, VPPS_ARGUMENT, "momentum");
    WRONG(optimizer.beta1 = 1, VPPS_ARGUMENT, "beta1");
    WRONG(optimizer.beta2 = -0.5f, VPPS_ARGUMENT, "beta2");
    WRONG(gradients = (vpps_gradients)9, VPPS_ARGUMENT, "an enumeration");
    WRONG(nonfinite = (vpps_nonfinite)9, VPPS_ARGUMENT, "an enumeration");
    WRONG(caller = (vpps_caller)9, VPPS_ARGUMENT, "an enumeration");
    WRONG(precision = (vpps_precision)9, VPPS_ARGUMENT, "an enumeration");
    WRONG(vps = 1000000, VPPS_ARGUMENT, "1000000");
    WRONG(groups = 3, VPPS_ARGUMENT, "3 groups of 1 VPs");
    WRONG(pool_bytes = 1024, VPPS_POOL, "1024");
    ck_assert_int_eq(vpps_handle_create(&h, NULL, &good), VPPS_ARGUMENT);
    n.h = new_handle(n.model, NULL); /* the defaults */
}

TEST(pool_too_small_for_a_batch) {
    vpps_options o = sn_options(2, VPPS_SGD);
    o.pool_bytes = 256u << 10;
    AT_END(sn_close) small_network n = sn_with(1, &o);
    vpps_graph *g = n.g;
    vpps_graph_clear(g);
    static const float data[4096] = {0};
    vpps_node terms[64];
    for (int i = 0; i < 64; i++) terms[i] = vpps_sum_elements(g, vpps_tanh(g, vpps_input(g, 4096, 1, data)));
    const vpps_node all = vpps_square(g, vpps_sum(g, 64, terms)); /* waves cannot divide the batch */
    unsigned long long needed = 0;
    TEST_FAILS(vpps_fb(n.h, g, all, NULL), VPPS_POOL, "pool_bytes is 262144");
    ck_assert_int_eq(sscanf(vpps_error_message(), "the batch needs %llu bytes", &needed), 1);
    ck_assert_uint_gt(needed, o.pool_bytes);
    const float loss = sn_step(&n, 1); /* a smaller batch runs */
    ck_assert(isfinite(loss) && loss > 0);
}

/* ---------------------------------------------------------------- settings between batches */

TEST_EACH(settings_take_effect_with_the_next_batch, WORKS, GPU) {
    vpps_options o = options_on(_i, 2, VPPS_SGD);
    AT_END(sn_close) small_network still = sn_of(1), n = sn_with(1, &o);
    TEST_OK(vpps_set_learning_rate(n.h, 0));
    sn_fb(&n, 1);
    expect_same(&n, &still, true, "learning rate 0");

    TEST_OK(vpps_set_learning_rate(n.h, 0.1f));
    for (uint32_t p = 0; p < SN_PARAMS; p++) TEST_OK(vpps_freeze(n.model, p, p != n.U));
    sn_fb(&n, 3);
    TEST_OK(vpps_freeze(n.model, n.U, true)); /* the freeze does not apply to the running batch */
    TEST_OK(vpps_read_parameters(n.h));
    for (uint32_t p = 0; p < SN_PARAMS; p++) {
        const bool same = !memcmp(n.model->params[p].values, still.model->params[p].values,
                                  vpps_param_elems(&n.model->params[p]) * sizeof(float));
        ck_assert_msg(same == (p != n.U), "%s has %schanged", n.model->params[p].name, same ? "not " : "");
    }

    /* the model's copy reaches the device only when it is written */
    for (uint32_t p = 0; p < SN_PARAMS; p++) TEST_OK(vpps_freeze(n.model, p, true));
    const vpps_node loss = sn_build(&n, 2, 1);
    const float before = infer(n.h, n.g, loss);
    vpps_param_values(n.model, n.b_c)[0] += 1;
    const float without = infer(n.h, n.g, loss);
    TEST_OK(vpps_write_parameters(n.h));
    const float with = infer(n.h, n.g, loss);
    ck_assert_float_eq(before, without);
    ck_assert_float_ne(before, with);
}

/* A batch takes at most pool_bytes, to the word. */
TEST(the_pool_has_a_limit) {
    uint64_t needed = 0;
    for (int k = 0; k < 5; k++) {
        vpps_options o = sn_options(2, VPPS_SGD);
        const uint64_t limits[] = {o.pool_bytes, needed, needed - 4, needed * 3 / 4, needed / 2 + 64};
        o.pool_bytes = limits[k];
        AT_END(sn_close) small_network n = sn_with(1, &o);
        const vpps_status status = vpps_fb(n.h, n.g, sn_build(&n, 3, 1), NULL);
        if (k < 2) TEST_OK(status);
        if (status != VPPS_OK) ck_assert_int_eq(status, VPPS_POOL);
        const vpps_stats stats = stats_of(n.h);
        ck_assert_msg(stats.pool_bytes <= limits[k], "%llu bytes of %llu", (unsigned long long)stats.pool_bytes,
                      (unsigned long long)limits[k]);
        if (k == 0) needed = stats.pool_bytes;
    }
}

/* ---------------------------------------------------------------- several, and many */

static size_t entries(const char *folder) {
    DIR *d = opendir(folder);
    size_t n = 0;
    while (d && readdir(d)) n++;
    if (d) closedir(d);
    return n;
}

/* Returns the KiB of mapped anonymous memory, touched or not. */
static size_t mapped_kib(void) {
    size_t pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f && fscanf(f, "%zu", &pages) != 1) pages = 0;
    if (f) fclose(f);
    return pages * (size_t)sysconf(_SC_PAGESIZE) / 1024;
}

/* Creates and destroys handles that ran nothing, or one batch, or still run a batch. */
static void live(vpps_options *o, small_network *n, uint32_t number) {
    TEST_OK(vpps_handle_create(&n->h, n->model, o));
    if (number % 4) sn_fb(n, 3);
    if (number % 4 == 1) TEST_OK(vpps_sync_latest_loss(n->h, NULL));
    vpps_handle_destroy(n->h);
    n->h = NULL;
}

TEST_EACH(handles_leave_nothing_behind, FREE, GPU) {
    vpps_options o = options_on(_i, 3, VPPS_ADAM);
    AT_END(sn_close) small_network n = sn_of(1);
    size_t heap = 0, threads = 0, files = 0, mapped = 0;
    const uint32_t rounds = test_scaled(100);
    for (uint32_t i = 0; i < rounds; i++) {
        live(&o, &n, i);
        if (i == rounds / 2) {
            heap = mallinfo2().uordblks;
            threads = entries("/proc/self/task");
            files = entries("/proc/self/fd");
            mapped = mapped_kib();
        }
    }
    ck_assert_msg(mallinfo2().uordblks < heap + 65536, "the heap grew from %zu to %zu bytes", heap,
                  (size_t)mallinfo2().uordblks);
    ck_assert_uint_le(entries("/proc/self/task"), threads + 3); /* ended threads may exist a moment longer */
    ck_assert_uint_eq(entries("/proc/self/fd"), files);
    /* a leaked pool of 16 MiB for each handle would be 0.8 GiB */
    ck_assert_msg(mapped_kib() < mapped + 200 * 1024, "mapped memory grew from %zu to %zu KiB", mapped, mapped_kib());
}

/* Two handles with a batch in flight each have the losses and parameters of each handle alone, to the bit. */
TEST_EACH(two_handles_in_flight, WORKS, GPU) {
    enum { BATCHES = 4 };
    const vpps_options o = options_on(_i, 2, VPPS_SGD);
    small_network alone[2], n[2];
    float losses[2][BATCHES], stale;
    for (uint32_t i = 0; i < 2; i++) {
        alone[i] = sn_with(i, &o);
        for (uint32_t b = 0; b < BATCHES; b++) losses[i][b] = sn_step(&alone[i], 3 + 2 * i);
    }
    for (uint32_t i = 0; i < 2; i++) n[i] = sn_with(i, &o);
    for (uint32_t b = 0; b <= BATCHES; b++) {
        for (uint32_t i = 0; i < 2; i++) {
            if (b < BATCHES) TEST_OK(vpps_fb(n[i].h, n[i].g, sn_build(&n[i], 3 + 2 * i, 1), &stale));
            if (b == BATCHES) TEST_OK(vpps_sync_latest_loss(n[i].h, &stale));
            if (b) ck_assert_float_eq(stale, losses[i][b - 1]);
        }
    }
    for (uint32_t i = 0; i < 2; i++) {
        expect_same(&n[i], &alone[i], true, "beside another handle");
        sn_close(&n[i]);
        sn_close(&alone[i]);
    }
}

/* ---------------------------------------------------------------- looking inside */

TEST(statistics_are_plausible) {
    const vpps_options o = sn_options(3, VPPS_SGD);
    vpps_stats s = {.size = sizeof s};
    AT_END(sn_close) small_network n = sn_with(1, &o);
    TEST_OK(vpps_handle_stats(n.h, &s));
    ck_assert(s.batches == 0 && s.vps == 3);
    uint64_t total = 0, peak = 0;
    for (uint32_t k = 1; k <= 5; k++) {
        sn_step(&n, k);
        TEST_OK(vpps_handle_stats(n.h, &s));
        total += vpps_graph_size(n.g);
        peak = s.pool_bytes > peak ? s.pool_bytes : peak;
        ck_assert_uint_eq(s.batches, k);
        ck_assert_uint_eq(s.nodes, vpps_graph_size(n.g));
        ck_assert_uint_eq(s.total_nodes, total);
        ck_assert(s.levels >= 5 && s.levels <= s.nodes);
        ck_assert(s.phases > 1);
        ck_assert(s.instructions > 10);
        ck_assert(s.script_bytes > 4 * s.instructions && s.script_bytes % 4 == 0);
        ck_assert(s.pool_bytes > 0 && s.pool_bytes <= o.pool_bytes);
        ck_assert_uint_eq(s.peak_pool_bytes, peak);
        ck_assert(s.host_ns > 0 && s.device_ns > 0);
        ck_assert(s.total_host_ns >= s.host_ns && s.total_device_ns >= s.device_ns);
    }
    ck_assert_uint_eq(s.skipped, 0);
}

/* Virtual processors that end at the same moment: many small batches. */
TEST_EACH(every_batch_took_some_time, WORKS, GPU) {
    vpps_options o = options_on(_i, 2, VPPS_SGD);
    uint64_t total = 0;
    o.verify = false;
    AT_END(sn_close) small_network n = sn_with(1, &o);
    for (uint32_t k = 1; k <= test_scaled(1000); k++) {
        train_batch(n.h, n.g, known_loss(&n, 1));
        const vpps_stats s = stats_of(n.h);
        total += s.device_ns;
        ck_assert_msg(s.device_ns > 0, "batch %u took no time", k);
        ck_assert_uint_eq(s.total_device_ns, total);
    }
}

TEST(disassembly_is_text_and_runs_nothing) {
    const vpps_options o = sn_options(2, VPPS_SGD);
    char *text = NULL;
    size_t size = 0;
    AT_END(sn_close) small_network n = sn_with(1, &o);
    FILE *f = need(open_memstream(&text, &size));
    TEST_OK(vpps_disassemble(n.h, n.g, sn_build(&n, 3, 1), f));
    fclose(f);
    ck_assert_uint_gt(size, 500);
    for (size_t i = 0; i < size; i++) ck_assert(text[i] == '\n' || (text[i] >= ' ' && text[i] <= '~'));
    free(text);
    ck_assert_uint_eq(stats_of(n.h).batches, 0);
    ck_assert_int_eq(vpps_sync_latest_loss(n.h, NULL), VPPS_STATE);
    FILE *full = need(fopen("/dev/full", "w"));
    ck_assert(vpps_disassemble(n.h, n.g, sn_build(&n, 3, 1), full) == VPPS_IO || fflush(full) != 0);
    fclose(full);
}

TEST_EACH(forward_leaves_training_alone, WORKS, GPU) {
    vpps_options o = options_on(_i, 2, VPPS_ADAM);
    AT_END(sn_close) small_network a = sn_with(1, &o), b = sn_with(1, &o);
    for (uint32_t k = 0; k < 20; k++) {
        float stale_a, stale_b;
        TEST_OK(vpps_fb(a.h, a.g, sn_build(&a, k, 1), &stale_a));
        TEST_OK(vpps_fb(b.h, b.g, sn_build(&b, k, 1), &stale_b));
        ck_assert(stale_a == stale_b || (isnan(stale_a) && isnan(stale_b)));
        const vpps_node other = sn_build(&a, k + 100, 1);
        const float value = infer(a.h, a.g, other); /* waits for the batch in flight; its loss is not lost */
        ck_assert_float_eq(value, infer(a.h, a.g, other));
    }
    expect_same(&a, &b, true, "with and without vpps_forward in between");
}

TEST_GROUP(GPU_GROUP);
TEST_AGAIN(losses_come_one_batch_late, GPU, GPU + 1);
TEST_AGAIN(stops_at_a_nonfinite_loss, GPU, GPU + 1);
TEST_AGAIN(gradients_that_are_not_finite, VPPS_OPTIMIZERS, VPPS_OPTIMIZERS + 1);
TEST_AGAIN(two_handles_in_flight, GPU, GPU + 1);

TEST_EACH(handles_leave_nothing_on_a_gpu, GPU, GPU + 1) {
    vpps_options o = options_on(_i, 2, VPPS_SGD);
    AT_END(sn_close) small_network n = sn_of(1);
    for (uint32_t i = 0; i < 20; i++) live(&o, &n, i);
    if (gpu_is_simulated()) ck_assert_uint_eq(vpps_simt_live_allocations(), 0);
}
