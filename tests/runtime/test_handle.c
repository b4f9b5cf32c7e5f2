/* test_handle.c - what vpps.h promises of a handle: losses one batch late, errors one batch late, and nothing lost. */
#include "common/gpu_tests.h"
#include "common/testing.h"
#include "graph/model.h"
#include "models.h"
#include "runtime/small_network.h"

#include <dirent.h>
#include <malloc.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

/* Where a handle is: on the CPU, whose caller works as a VP or is free, or on a GPU. */
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

static void expect_same(const small_network *a, const small_network *b, bool same, const char *what) {
    size_t n, m;
    float *x = sn_values(a, &n), *y = sn_values(b, &m);
    ck_assert_uint_eq(n, m);
    ck_assert_msg(!memcmp(x, y, n * sizeof *x) == same, "%s: parameters %s", what, same ? "differ" : "are equal");
    free(x);
    free(y);
}

/* The loss alone decides nothing about parameters: an input, plus nothing of a parameter. */
static vpps_node known_loss(const small_network *n, float loss) {
    vpps_graph_clear(n->g);
    const vpps_node x = vpps_sum_elements(n->g, vpps_scale(n->g, vpps_parameter(n->g, n->b), 0));
    return vpps_add(n->g, x, vpps_input(n->g, 1, 1, &loss));
}

/* ---------------------------------------------------------------- losses */

START_TEST(losses_come_one_batch_late)
    {
        small_network n;
        vpps_handle *h;
        sn_open(&n, 1);
        vpps_options o = options_on(_i, 2, VPPS_SGD);
        TEST_OK(vpps_handle_create(&h, n.model, &o));
        float loss = 7, stale;
        bool done;
        TEST_FAILS(vpps_sync_latest_loss(h, &loss), VPPS_STATE, "batch");
        ck_assert_float_eq(loss, 7);
        const vpps_status early = vpps_poll_loss(h, &done, &loss);
        ck_assert_msg(early == VPPS_STATE || (early == VPPS_OK && !done), "poll before the first batch: %s",
                      vpps_status_name(early));
        for (uint32_t k = 1; k <= 12; k++) {
            stale = 3;
            TEST_OK(vpps_fb(h, n.g, known_loss(&n, (float)k), &stale));
            if (k == 1) ck_assert_float_nan(stale);
            if (k > 1) ck_assert_float_eq(stale, (float)(k - 1));
            if (k % 4 == 0) { /* asking in between changes nothing, however often */
                for (int i = 0; i < 3; i++) {
                    TEST_OK(vpps_sync_latest_loss(h, &loss));
                    ck_assert_float_eq(loss, (float)k);
                }
                TEST_OK(vpps_poll_loss(h, &done, &loss));
                ck_assert(done);
                ck_assert_float_eq(loss, (float)k);
            }
        }
        TEST_OK(vpps_fb(h, n.g, known_loss(&n, 50), NULL)); /* the stale loss may be ignored */
        vpps_stats stats = {.size = sizeof stats};
        TEST_OK(vpps_sync_latest_loss(h, &loss));
        ck_assert_float_eq(loss, 50);
        TEST_OK(vpps_handle_stats(h, &stats));
        ck_assert_str_eq(stats.device, o.device);
        ck_assert_uint_eq(stats.caller_works, _i == WORKS);
        ck_assert_uint_eq(stats.batches, 13);
        vpps_handle_destroy(h);
        sn_close(&n);
    }
END_TEST

/* A batch of some milliseconds: with threads of its own, vpps_fb and vpps_poll_loss return while it runs. */
START_TEST(polling_does_not_wait)
    {
        enum { SIZE = 256 };
        vpps_model *model;
        vpps_graph *g;
        vpps_handle *h;
        vpps_param W;
        const vpps_init identity = {.kind = VPPS_INIT_UNIFORM, .a = -0.05f, .b = 0.05f};
        TEST_OK(vpps_model_create(&model, 1));
        TEST_OK(vpps_add_matrix(model, &W, "W", SIZE, SIZE, &identity));
        TEST_OK(vpps_graph_create(&g, model));
        vpps_options o = sn_options(1, VPPS_SGD);
        o.pool_bytes = 256u << 20;
        o.verify = false;
        o.caller = VPPS_CALLER_FREE;
        o.portable = true;
        TEST_OK(vpps_handle_create(&h, model, &o));
        float data[SIZE] = {1}, loss = 7;
        vpps_node x = vpps_input(g, SIZE, 1, data);
        for (uint32_t i = 0; i < test_scaled(3000); i++) x = vpps_tanh(g, vpps_matvec(g, W, x));
        const vpps_node sum = vpps_sum_elements(g, x);
        uint32_t early = 0;
        for (int k = 0; k < 3; k++) {
            TEST_OK(vpps_fb(h, g, sum, NULL));
            bool done = true;
            TEST_OK(vpps_poll_loss(h, &done, &loss));
            if (!done) {
                early++;
                ck_assert_float_eq(loss, 7); /* untouched until it is known */
            }
            while (!done) {
                TEST_OK(vpps_poll_loss(h, &done, &loss));
                usleep(200);
            }
            ck_assert_float_ne(loss, 7);
            loss = 7;
        }
        ck_assert_msg(early > 0, "every poll right after vpps_fb found the batch done: it waits, or vpps_fb does");
        vpps_handle_destroy(h);
        vpps_graph_destroy(g);
        vpps_model_destroy(model);
    }
END_TEST

/* The graph may be cleared as soon as vpps_fb returns; waiting in between gives the same bits. */
START_TEST(pipelined_is_synchronous)
    {
        small_network a, b;
        vpps_handle *ha, *hb;
        vpps_options o = sn_options(3, VPPS_ADAM);
        sn_open(&a, 1);
        sn_open(&b, 1);
        o.caller = VPPS_CALLER_FREE;
        o.verify = false;
        TEST_OK(vpps_handle_create(&ha, a.model, &o));
        o.caller = VPPS_CALLER_WORKS;
        TEST_OK(vpps_handle_create(&hb, b.model, &o));
        float previous = NAN;
        for (uint32_t k = 0; k < 60; k++) {
            float stale, latest;
            const vpps_node x = sn_build(&a, k, 1);
            TEST_OK(vpps_fb(ha, a.g, x, &stale));
            sn_build(&a, k + 7, NAN); /* tramples over what was just given */
            const vpps_node y = sn_build(&b, k, 1);
            TEST_OK(vpps_fb(hb, b.g, y, NULL));
            TEST_OK(vpps_sync_latest_loss(hb, &latest));
            if (k) ck_assert_msg(stale == previous, "batch %u: %.9g, %.9g", k - 1, (double)stale, (double)previous);
            previous = latest;
        }
        TEST_OK(vpps_read_parameters(ha));
        TEST_OK(vpps_read_parameters(hb));
        expect_same(&a, &b, true, "pipelined against synchronous");
        vpps_handle_destroy(ha);
        vpps_handle_destroy(hb);
        sn_close(&a);
        sn_close(&b);
    }
END_TEST

/* ---------------------------------------------------------------- losses that are not finite */

static const float not_finite[] = {NAN, INFINITY, -INFINITY};

START_TEST(stops_at_a_nonfinite_loss)
    {
        for (int way = 0; way < 6; way++) {
            small_network n, witness;
            vpps_handle *h, *hw;
            vpps_options o = options_on(_i, 2, VPPS_MOMENTUM);
            sn_open(&n, 1);
            sn_open(&witness, 1);
            TEST_OK(vpps_handle_create(&h, n.model, &o));
            TEST_OK(vpps_handle_create(&hw, witness.model, &o));
            float loss;
            for (uint32_t k = 1; k <= 2; k++) {
                TEST_OK(vpps_fb(h, n.g, sn_build(&n, k, 1), NULL));
                TEST_OK(vpps_fb(hw, witness.g, sn_build(&witness, k, 1), NULL));
            }
            TEST_OK(vpps_fb(h, n.g, sn_build(&n, 3, not_finite[way % 3]), NULL)); /* nobody knows yet */
            if (way < 3) {
                float stale = 3;
                TEST_FAILS(vpps_fb(h, n.g, sn_build(&n, 4, 1), &stale), VPPS_NONFINITE, "batch 3");
            } else {
                TEST_FAILS(vpps_sync_latest_loss(h, &loss), VPPS_NONFINITE, "batch 3");
            }
            /* neither batch 3 nor batch 4 has left a trace */
            TEST_OK(vpps_read_parameters(h));
            TEST_OK(vpps_read_parameters(hw));
            expect_same(&n, &witness, true, "a batch that was not applied");
            /* the handle lives: the caller may mend the input and go on */
            TEST_OK(vpps_fb(h, n.g, sn_build(&n, 5, 1), NULL));
            TEST_OK(vpps_sync_latest_loss(h, &loss));
            ck_assert(isfinite(loss));
            vpps_handle_destroy(h);
            vpps_handle_destroy(hw);
            sn_close(&n);
            sn_close(&witness);
        }
    }
END_TEST

START_TEST(skips_a_nonfinite_loss)
    {
        for (int way = 0; way < 3; way++) {
            small_network n, witness;
            vpps_handle *h, *hw;
            vpps_options o = options_on(_i, 2, VPPS_MOMENTUM);
            o.nonfinite = VPPS_NONFINITE_SKIP;
            sn_open(&n, 1);
            sn_open(&witness, 1);
            TEST_OK(vpps_handle_create(&h, n.model, &o));
            TEST_OK(vpps_handle_create(&hw, witness.model, &o));
            float stale;
            for (uint32_t k = 1; k <= 3; k++)
                TEST_OK(vpps_fb(h, n.g, sn_build(&n, k, k == 3 ? not_finite[way] : 1), NULL));
            TEST_OK(vpps_fb(h, n.g, known_loss(&n, 4), &stale));
            ck_assert(!isfinite(stale));
            for (uint32_t k = 1; k <= 2; k++) TEST_OK(vpps_fb(hw, witness.g, sn_build(&witness, k, 1), NULL));
            TEST_OK(vpps_fb(hw, witness.g, known_loss(&witness, 4), NULL));
            vpps_stats stats = {.size = sizeof stats};
            TEST_OK(vpps_read_parameters(h));
            TEST_OK(vpps_read_parameters(hw));
            TEST_OK(vpps_handle_stats(h, &stats));
            ck_assert_uint_eq(stats.skipped, 1);
            ck_assert_uint_eq(stats.batches, 4);
            expect_same(&n, &witness, true, "a skipped batch");
            vpps_handle_destroy(h);
            vpps_handle_destroy(hw);
            sn_close(&n);
            sn_close(&witness);
        }
    }
END_TEST

/* Batch number k, whose loss is finite; its gradient of one parameter is not: the root has none at 0. */
static vpps_node poisoned(const small_network *n, uint32_t k, vpps_param p) {
    vpps_graph *g = n->g;
    const vpps_node loss = sn_build(n, k, 1), x = vpps_lookup(g, n->E, 0);
    const vpps_node y = p == n->b ? vpps_parameter(g, n->b) : p == n->E ? x : vpps_matvec(g, n->W, x);
    return vpps_add(g, loss, vpps_sum_elements(g, vpps_sqrt(g, vpps_scale(g, y, 0))));
}

static void expect_same_states(const small_network *a, const small_network *b) {
    for (uint32_t p = 0; p < SN_PARAMS; p++) {
        const vpps_parameter_data *x = &a->model->params[p], *y = &b->model->params[p];
        for (int s = 0; s < VPPS_MAX_STATES; s++) {
            ck_assert_int_eq(!x->states[s], !y->states[s]);
            ck_assert_msg(!x->states[s] || !memcmp(x->states[s], y->states[s], vpps_param_elems(x) * sizeof(float)),
                          "state %d of %s differs", s, x->name);
        }
    }
}

/* Every optimiser, every kind of parameter, with and without clipping; on a GPU momentum, and a matrix. */
START_TEST(gradients_that_are_not_finite)
    {
        const bool gpu = _i == VPPS_OPTIMIZERS;
        for (uint32_t way = gpu ? 2 : 0; way < 12; way += gpu ? 3 : 1) {
            small_network n, witness;
            vpps_handle *h, *hw;
            vpps_options o = options_on(gpu           ? GPU
                                        : way / 2 % 2 ? FREE
                                                      : WORKS,
                                        gpu ? 2 : 1 + way % 3, gpu ? VPPS_MOMENTUM : (vpps_optimizer_kind)_i);
            const bool stops = way % 2;
            o.nonfinite = stops ? VPPS_NONFINITE_STOP : VPPS_NONFINITE_SKIP;
            o.optimizer.clip = way < 6 ? 0 : 1;
            sn_open(&n, 1);
            sn_open(&witness, 1);
            TEST_OK(vpps_handle_create(&h, n.model, &o));
            TEST_OK(vpps_handle_create(&hw, witness.model, &o));
            for (uint32_t k = 1; k <= 2; k++) {
                TEST_OK(vpps_fb(h, n.g, sn_build(&n, k, 1), NULL));
                TEST_OK(vpps_fb(hw, witness.g, sn_build(&witness, k, 1), NULL));
            }
            const vpps_param which[] = {n.b, n.E, n.W};
            float loss = 0;
            TEST_OK(vpps_fb(h, n.g, poisoned(&n, 3, which[way % 3]), NULL));
            if (stops) TEST_FAILS(vpps_fb(h, n.g, sn_build(&n, 4, 1), NULL), VPPS_NONFINITE, "batch 3: the gradient");
            if (!stops) TEST_OK(vpps_sync_latest_loss(h, &loss));
            ck_assert(isfinite(loss));
            vpps_stats stats = {.size = sizeof stats};
            TEST_OK(vpps_handle_stats(h, &stats));
            ck_assert_uint_eq(stats.skipped, 1);
            TEST_OK(vpps_read_parameters(h));
            TEST_OK(vpps_read_parameters(hw));
            expect_same(&n, &witness, true, "a batch that was not applied");
            expect_same_states(&n, &witness);
            TEST_OK(vpps_fb(h, n.g, sn_build(&n, 5, 1), NULL)); /* training goes on */
            TEST_OK(vpps_sync_latest_loss(h, &loss));
            TEST_OK(vpps_read_parameters(h));
            expect_same(&n, &witness, false, "a good batch");
            vpps_handle_destroy(h);
            vpps_handle_destroy(hw);
            sn_close(&n);
            sn_close(&witness);
        }
    }
END_TEST

START_TEST(ignores_a_nonfinite_loss_when_told)
    {
        small_network n;
        vpps_handle *h;
        vpps_options o = sn_options(2, VPPS_SGD);
        float stale;
        o.nonfinite = VPPS_NONFINITE_IGNORE;
        sn_open(&n, 1);
        TEST_OK(vpps_handle_create(&h, n.model, &o));
        TEST_OK(vpps_fb(h, n.g, sn_build(&n, 1, NAN), NULL));
        TEST_OK(vpps_fb(h, n.g, sn_build(&n, 2, 1), &stale));
        ck_assert_float_nan(stale);
        TEST_OK(vpps_read_parameters(h));
        ck_assert_float_nan(vpps_param_values(n.model, n.b)[0]);
        vpps_handle_destroy(h);
        sn_close(&n);
    }
END_TEST

/* Batches whose numbers are not finite, applied as told, leave nothing on the device once the parameters and the
 * optimiser's state are written anew. */
START_TEST(parameters_recover_when_they_are_pushed)
    {
        small_network pair[2];
        for (int k = 0; k < 2; k++) {
            small_network *n = &pair[k];
            vpps_handle *h;
            vpps_options o = sn_options(2, (vpps_optimizer_kind)_i);
            o.nonfinite = VPPS_NONFINITE_IGNORE;
            sn_open(n, 2);
            TEST_OK(vpps_handle_create(&h, n->model, &o));
            for (uint32_t i = 0; i < 2; i++) TEST_OK(vpps_fb(h, n->g, sn_build(n, i, 1), NULL));
            TEST_OK(vpps_read_parameters(h));
            for (uint32_t i = 2; i < 4; i++) TEST_OK(vpps_fb(h, n->g, sn_build(n, i, k ? NAN : 1), NULL));
            TEST_OK(vpps_write_parameters(h));
            for (uint32_t i = 4; i < 6; i++) TEST_OK(vpps_fb(h, n->g, sn_build(n, i, 1), NULL));
            TEST_OK(vpps_read_parameters(h));
            vpps_handle_destroy(h);
        }
        expect_same(&pair[0], &pair[1], true, "after NaN");
        for (int k = 0; k < 2; k++) sn_close(&pair[k]);
    }
END_TEST

/* ---------------------------------------------------------------- calls that do not fit */

START_TEST(wrong_calls)
    {
        small_network n, other;
        vpps_handle *h, *second;
        vpps_options o = sn_options(2, VPPS_SGD);
        sn_open(&n, 1);
        sn_open(&other, 2);
        TEST_OK(vpps_handle_create(&h, n.model, &o));
        TEST_FAILS(vpps_handle_create(&second, n.model, &o), VPPS_STATE, "handle");
        ck_assert_ptr_null(second);

        const vpps_node loss = sn_build(&n, 1, 1);
        TEST_FAILS(vpps_fb(h, n.g, vpps_lookup(n.g, n.E, 0), NULL), VPPS_SHAPE, "12 x 1");
        TEST_FAILS(vpps_fb(h, n.g, VPPS_NO_NODE, NULL), VPPS_ARGUMENT, "");
        TEST_FAILS(vpps_fb(h, n.g, 100000, NULL), VPPS_ARGUMENT, "100000");
        TEST_FAILS(vpps_fb(h, other.g, sn_build(&other, 1, 1), NULL), VPPS_ARGUMENT, "model");
        float value, *outs[1] = {&value};
        vpps_node node = 100000;
        TEST_FAILS(vpps_forward(h, n.g, 1, &node, outs), VPPS_ARGUMENT, "100000");
        node = VPPS_NO_NODE;
        ck_assert_int_eq(vpps_forward(h, n.g, 1, &node, outs), VPPS_ARGUMENT);
        TEST_FAILS(vpps_forward(h, n.g, 1, &node, (float *[]){NULL}), VPPS_ARGUMENT, "outs[0] is NULL");
        node = sn_build(&other, 1, 1);
        TEST_FAILS(vpps_forward(h, other.g, 1, &node, outs), VPPS_ARGUMENT, "model");
        TEST_OK(vpps_fb(h, n.g, loss, NULL)); /* none of these has left a mark */

        sn_build(&n, 1, 1);
        const vpps_node wrong = vpps_add(n.g, vpps_lookup(n.g, n.E, 0), vpps_parameter(n.g, n.b));
        TEST_FAILS(vpps_fb(h, n.g, wrong, NULL), VPPS_SHAPE, "add");
        TEST_FAILS(vpps_forward(h, n.g, 1, &wrong, outs), VPPS_SHAPE, "add");
        TEST_FAILS(vpps_disassemble(h, n.g, wrong, stdout), VPPS_SHAPE, "add");
        vpps_graph_clear(n.g);
        ck_assert_int_eq(vpps_fb(h, n.g, 0, NULL), VPPS_ARGUMENT); /* nothing there */
        const float bad[] = {-1, NAN, INFINITY, -INFINITY};
        for (size_t i = 0; i < VPPS_COUNT(bad); i++) {
            ck_assert_int_eq(vpps_set_learning_rate(h, bad[i]), VPPS_ARGUMENT);
        }
        vpps_handle_destroy(h);
        TEST_OK(vpps_handle_create(&h, n.model, &o)); /* the model is free again */
        vpps_handle_destroy(h);
        vpps_handle_destroy(NULL);
        sn_close(&n);
        sn_close(&other);
    }
END_TEST

START_TEST(wrong_options)
    {
        small_network n;
        vpps_handle *h;
        sn_open(&n, 1);
        const vpps_options good = sn_options(1, VPPS_SGD);
        vpps_options o;
#define WRONG(change, status, text)                                                                                    \
    o = good;                                                                                                          \
    o.change;                                                                                                          \
    TEST_FAILS(vpps_handle_create(&h, n.model, &o), status, text);                                                     \
    ck_assert_ptr_null(h)
        WRONG(device = "abacus", VPPS_DEVICE, "abacus");
        WRONG(optimizer.kind = (vpps_optimizer_kind)77, VPPS_ARGUMENT, "");
        WRONG(optimizer.lr = -1, VPPS_ARGUMENT, "lr");
        WRONG(optimizer.lr = NAN, VPPS_ARGUMENT, "lr");
        WRONG(optimizer.lr = INFINITY, VPPS_ARGUMENT, "lr");
        WRONG(optimizer.weight_decay = -1, VPPS_ARGUMENT, "weight decay");
        WRONG(optimizer.clip = NAN, VPPS_ARGUMENT, "clip");
        WRONG(optimizer.momentum = 2, VPPS_ARGUMENT, "momentum");
        WRONG(optimizer.beta1 = 1, VPPS_ARGUMENT, "beta1");
        WRONG(optimizer.beta2 = -0.5f, VPPS_ARGUMENT, "beta2");
        WRONG(gradients = (vpps_gradients)9, VPPS_ARGUMENT, "");
        WRONG(nonfinite = (vpps_nonfinite)9, VPPS_ARGUMENT, "");
        WRONG(caller = (vpps_caller)9, VPPS_ARGUMENT, "");
        WRONG(precision = (vpps_precision)9, VPPS_ARGUMENT, "");
        WRONG(vps = 1000000, VPPS_ARGUMENT, "1000000");
        WRONG(pool_bytes = 1024, VPPS_POOL, "1024");
        ck_assert_int_eq(vpps_handle_create(&h, NULL, &good), VPPS_ARGUMENT);
        TEST_OK(vpps_handle_create(&h, n.model, NULL)); /* the defaults */
        vpps_handle_destroy(h);
        sn_close(&n);
    }
END_TEST

START_TEST(pool_too_small_for_a_batch)
    {
        small_network n;
        vpps_handle *h;
        vpps_options o = sn_options(2, VPPS_SGD);
        o.pool_bytes = 256u << 10;
        sn_open(&n, 1);
        TEST_OK(vpps_handle_create(&h, n.model, &o));
        vpps_graph *g = n.g;
        vpps_graph_clear(g);
        static const float data[4096] = {0};
        vpps_node terms[64];
        for (int i = 0; i < 64; i++) terms[i] = vpps_sum_elements(g, vpps_tanh(g, vpps_input(g, 4096, 1, data)));
        const vpps_node all = vpps_square(g, vpps_sum(g, 64, terms)); /* waves cannot take it apart */
        const vpps_status status = vpps_fb(h, g, all, NULL);
        ck_assert_msg(status == VPPS_POOL, "%s: %s", vpps_status_name(status), vpps_error_message());
        unsigned long long numbers[8], asked = 0;
        int n_numbers = 0;
        for (const char *c = vpps_error_message(); *c && n_numbers < 8;) { /* what was asked, and what there is */
            char *end;
            numbers[n_numbers] = strtoull(c, &end, 10);
            if (end == c) {
                c++;
            } else {
                asked = numbers[n_numbers] > asked ? numbers[n_numbers] : asked;
                n_numbers++;
                c = end;
            }
        }
        ck_assert_msg(n_numbers >= 2 && asked > (256u << 10) / 4,
                      "the message does not say what was asked and what there is: %s", vpps_error_message());
        float loss;
        TEST_OK(vpps_fb(h, g, sn_build(&n, 1, 1), NULL)); /* a smaller one runs */
        TEST_OK(vpps_sync_latest_loss(h, &loss));
        ck_assert(isfinite(loss) && loss > 0);
        vpps_handle_destroy(h);
        sn_close(&n);
    }
END_TEST

/* ---------------------------------------------------------------- settings between batches */

START_TEST(settings_take_effect_with_the_next_batch)
    {
        small_network n, still;
        vpps_handle *h;
        vpps_options o = options_on(_i, 2, VPPS_SGD);
        sn_open(&n, 1);
        sn_open(&still, 1);
        TEST_OK(vpps_handle_create(&h, n.model, &o));
        TEST_OK(vpps_set_learning_rate(h, 0));
        TEST_OK(vpps_fb(h, n.g, sn_build(&n, 1, 1), NULL));
        TEST_OK(vpps_read_parameters(h));
        expect_same(&n, &still, true, "learning rate 0");

        TEST_OK(vpps_set_learning_rate(h, 0.1f));
        for (uint32_t p = 0; p < SN_PARAMS; p++) TEST_OK(vpps_freeze(n.model, p, p != n.U));
        TEST_OK(vpps_fb(h, n.g, sn_build(&n, 3, 1), NULL));
        TEST_OK(vpps_freeze(n.model, n.U, true)); /* not of the batch that is under way */
        TEST_OK(vpps_read_parameters(h));
        for (uint32_t p = 0; p < SN_PARAMS; p++) {
            const bool same = !memcmp(n.model->params[p].values, still.model->params[p].values,
                                      vpps_param_elems(&n.model->params[p]) * sizeof(float));
            ck_assert_msg(same == (p != n.U), "%s has %schanged", n.model->params[p].name, same ? "not " : "");
        }

        /* the model's copy reaches the device when it is written, and only so */
        for (uint32_t p = 0; p < SN_PARAMS; p++) TEST_OK(vpps_freeze(n.model, p, true));
        float before, without, with;
        const vpps_node loss = sn_build(&n, 2, 1);
        float *out = &before;
        TEST_OK(vpps_forward(h, n.g, 1, &loss, &out));
        vpps_param_values(n.model, n.b_c)[0] += 1;
        out = &without;
        TEST_OK(vpps_forward(h, n.g, 1, &loss, &out));
        TEST_OK(vpps_write_parameters(h));
        out = &with;
        TEST_OK(vpps_forward(h, n.g, 1, &loss, &out));
        ck_assert_float_eq(before, without);
        ck_assert_float_ne(before, with);
        vpps_handle_destroy(h);
        sn_close(&n);
        sn_close(&still);
    }
END_TEST

/* Elements under dropout, one of each table entry's gradient: whatever the mask kept has moved. On the CPU and, by
 * another scheduler, on a GPU or software SIMT. */
START_TEST(masks_do_not_overlap)
    {
        enum { ROWS = 8, COLS = 8, N = ROWS * COLS, OVERLAP = 24 };
        const vpps_init zero = {.kind = VPPS_INIT_CONSTANT};
        vpps_model *model;
        vpps_graph *g;
        vpps_handle *h;
        vpps_param E;
        vpps_options o = options_on(_i, 2, VPPS_SGD);
        o.seed = test_seed();
        TEST_OK(vpps_model_create(&model, 1));
        TEST_OK(vpps_add_lookup(model, &E, "E", 2, ROWS, COLS, &zero));
        TEST_OK(vpps_graph_create(&g, model));
        TEST_OK(vpps_handle_create(&h, model, &o));
        vpps_node sums[2];
        for (uint32_t i = 0; i < 2; i++) {
            sums[i] = vpps_sum_elements(g, vpps_dropout(g, vpps_lookup(g, E, i), 0.5f));
        }
        TEST_OK(vpps_fb(h, g, vpps_sum(g, 2, sums), NULL));
        TEST_OK(vpps_read_parameters(h));
        const float *first = vpps_param_values(model, E), *second = first + N;
        int kept = 0;
        for (int i = 0; i < 2 * N; i++) kept += first[i] != 0;
        ck_assert(kept > N / 2 && kept < 2 * N - N / 2);
        for (int shift = OVERLAP - N; shift <= N - OVERLAP; shift++) { /* one mask is no part of the other */
            int same = 0, common = 0;
            for (int i = 0; i < N; i++) {
                if (i + shift < 0 || i + shift >= N) continue;
                same += (first[i + shift] != 0) == (second[i] != 0);
                common++;
            }
            ck_assert_msg(same < common, "the second mask is the first one, %d elements on", shift);
        }
        vpps_handle_destroy(h);
        vpps_graph_destroy(g);
        vpps_model_destroy(model);
    }
END_TEST

/* A batch takes no more than pool_bytes, to the word. */
START_TEST(the_pool_has_a_limit)
    {
        uint64_t needed = 0;
        for (int k = 0; k < 5; k++) {
            small_network n;
            vpps_handle *h;
            vpps_stats stats = {.size = sizeof stats};
            vpps_options o = sn_options(2, VPPS_SGD);
            const uint64_t limits[] = {o.pool_bytes, needed, needed - 4, needed * 3 / 4, needed / 2 + 64};
            o.pool_bytes = limits[k];
            sn_open(&n, 1);
            TEST_OK(vpps_handle_create(&h, n.model, &o));
            const vpps_status status = vpps_fb(h, n.g, sn_build(&n, 3, 1), NULL);
            if (k < 2) TEST_OK(status);
            if (status != VPPS_OK) ck_assert_int_eq(status, VPPS_POOL);
            TEST_OK(vpps_handle_stats(h, &stats));
            ck_assert_msg(stats.pool_bytes <= limits[k], "%llu bytes of %llu", (unsigned long long)stats.pool_bytes,
                          (unsigned long long)limits[k]);
            if (k == 0) needed = stats.pool_bytes;
            vpps_handle_destroy(h);
            sn_close(&n);
        }
    }
END_TEST

/* ---------------------------------------------------------------- several, and many */

typedef struct trainee {
    small_network n;
    vpps_status status;
    char message[VPPS_MESSAGE_BYTES];
    uint64_t seed;
} trainee;

/* Without Check's assertions, which belong to the main thread. */
static void *train_one(void *argument) {
    trainee *t = argument;
    vpps_handle *h = NULL;
    vpps_options o = sn_options(2, VPPS_ADAM);
    o.caller = t->seed % 2 ? VPPS_CALLER_FREE : VPPS_CALLER_WORKS;
    t->status = vpps_handle_create(&h, t->n.model, &o);
    for (uint32_t k = 0; k < 40 && t->status == VPPS_OK; k++) {
        t->status = vpps_fb(h, t->n.g, sn_build(&t->n, k, 1), NULL);
    }
    if (t->status == VPPS_OK) t->status = vpps_read_parameters(h);
    snprintf(t->message, sizeof t->message, "%s", vpps_error_message());
    vpps_handle_destroy(h);
    return NULL;
}

START_TEST(models_in_threads_are_independent)
    {
        trainee alone[3], together[3];
        pthread_t threads[3];
        for (uint64_t i = 0; i < 3; i++) {
            alone[i].seed = together[i].seed = i;
            sn_open(&alone[i].n, i);
            sn_open(&together[i].n, i);
            train_one(&alone[i]);
            ck_assert_msg(alone[i].status == VPPS_OK, "%s", alone[i].message);
        }
        for (int i = 0; i < 3; i++) ck_assert_int_eq(pthread_create(&threads[i], NULL, train_one, &together[i]), 0);
        for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
        for (int i = 0; i < 3; i++) {
            ck_assert_msg(together[i].status == VPPS_OK, "%s", together[i].message);
            expect_same(&alone[i].n, &together[i].n, true, "alone against together");
            sn_close(&alone[i].n);
            sn_close(&together[i].n);
        }
    }
END_TEST

static size_t entries(const char *folder) {
    DIR *d = opendir(folder);
    size_t n = 0;
    while (d && readdir(d)) n++;
    if (d) closedir(d);
    return n;
}

/* Anonymous memory in KiB that is mapped, touched or not. */
static size_t mapped_kib(void) {
    size_t pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f && fscanf(f, "%zu", &pages) != 1) pages = 0;
    if (f) fclose(f);
    return pages * (size_t)sysconf(_SC_PAGESIZE) / 1024;
}

START_TEST(handles_leave_nothing_behind)
    {
        small_network n;
        sn_open(&n, 1);
        const vpps_options o = sn_options(3, VPPS_ADAM);
        size_t heap = 0, threads = 0, files = 0, mapped = 0;
        const int rounds = (int)test_scaled(200);
        for (int i = 0; i < rounds; i++) {
            vpps_handle *h;
            TEST_OK(vpps_handle_create(&h, n.model, &o));
            TEST_OK(vpps_fb(h, n.g, sn_build(&n, (uint32_t)i % 7, 1), NULL)); /* and destroyed while it runs */
            vpps_handle_destroy(h);
            if (i == rounds / 2) {
                heap = mallinfo2().uordblks;
                threads = entries("/proc/self/task");
                files = entries("/proc/self/fd");
                mapped = mapped_kib();
            }
        }
        ck_assert_msg(mallinfo2().uordblks < heap + 65536, "the heap grew from %zu to %zu bytes", heap,
                      (size_t)mallinfo2().uordblks);
        ck_assert_uint_le(entries("/proc/self/task"), threads + 3); /* threads that ended may linger a moment */
        ck_assert_uint_eq(entries("/proc/self/fd"), files);
        /* a leaked pool of 16 MiB a handle would be 1.6 GiB */
        ck_assert_msg(mapped_kib() < mapped + 200 * 1024, "mapped memory grew from %zu to %zu KiB", mapped,
                      mapped_kib());
        sn_close(&n);
    }
END_TEST

/* Two products one after the other: the gradient of the first is a product with a transposed matrix, of which VPs that share
 * rows out make a share each. */
static float *train_two_products(uint32_t vps) {
    enum { SIZE = 256 }; /* so large that rows are shared out */
    vpps_model *model;
    vpps_graph *g, *r;
    vpps_handle *h;
    vpps_param w[2];
    vpps_cell cell;
    float data[SIZE];
    for (uint32_t i = 0; i < SIZE; i++) data[i] = (float)(i % 7) / 7;
    vpps_options o = sn_options(vps, VPPS_SGD);
    o.verify = false; /* the numbers are to tell */
    TEST_OK(vpps_model_create(&model, 5));
    TEST_OK(vpps_add_matrix(model, &w[0], "W0", SIZE, SIZE, NULL));
    TEST_OK(vpps_add_matrix(model, &w[1], "W1", SIZE, SIZE, NULL));
    TEST_OK(vpps_cell_begin(model, "products", &r));
    TEST_OK(vpps_push(r, vpps_matvec(r, w[1], vpps_matvec(r, w[0], vpps_pull(r, SIZE, 1)))));
    TEST_OK(vpps_cell_end(r, &cell));
    TEST_OK(vpps_graph_create(&g, model));
    const vpps_node x = vpps_input(g, SIZE, 1, data);
    const vpps_application a = {.size = sizeof a, .cell = cell, .n_pulls = 1, .pulls = &x};
    const vpps_vertex v = vpps_apply(g, &a);
    TEST_OK(vpps_handle_create(&h, model, &o));
    TEST_OK(vpps_fb(h, g, vpps_scale(g, vpps_sum_elements(g, vpps_square(g, vpps_pushed(g, v, 0))), 0.01f), NULL));
    TEST_OK(vpps_sync_latest_loss(h, NULL));
    TEST_OK(vpps_read_parameters(h));
    float *values = malloc(SIZE * SIZE * sizeof *values);
    ck_assert_ptr_nonnull(values);
    memcpy(values, vpps_param_values(model, w[0]), SIZE * SIZE * sizeof *values);
    vpps_handle_destroy(h);
    vpps_graph_destroy(g);
    vpps_model_destroy(model);
    return values;
}

START_TEST(shares_of_a_gradient_are_added_up)
    {
        enum { ELEMS = 256 * 256 };
        float *one = train_two_products(1), *two = train_two_products(2);
        for (uint32_t i = 0; i < ELEMS; i++)
            if (fabsf(one[i] - two[i]) > 1e-5f)
                ck_abort_msg("element %u is %g, not %g", i, (double)two[i], (double)one[i]);
        free(one);
        free(two);
    }
END_TEST

/* ---------------------------------------------------------------- looking inside */

START_TEST(statistics_are_plausible)
    {
        small_network n;
        vpps_handle *h;
        const vpps_options o = sn_options(3, VPPS_SGD);
        vpps_stats s = {.size = sizeof s};
        sn_open(&n, 1);
        TEST_OK(vpps_handle_create(&h, n.model, &o));
        TEST_OK(vpps_handle_stats(h, &s));
        ck_assert(s.batches == 0 && s.vps == 3);
        uint64_t total = 0, peak = 0;
        for (uint32_t k = 1; k <= 5; k++) {
            TEST_OK(vpps_fb(h, n.g, sn_build(&n, k, 1), NULL));
            TEST_OK(vpps_sync_latest_loss(h, &(float){0}));
            TEST_OK(vpps_handle_stats(h, &s));
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
        vpps_handle_destroy(h);
        sn_close(&n);
    }
END_TEST

/* VPs that end at the same moment: small batches, many of them. */
START_TEST(every_batch_took_some_time)
    {
        small_network n;
        vpps_handle *h;
        vpps_options o = options_on(_i, 2, VPPS_SGD);
        uint64_t total = 0;
        o.verify = false;
        sn_open(&n, 1);
        TEST_OK(vpps_handle_create(&h, n.model, &o));
        for (uint32_t k = 1; k <= test_scaled(5000); k++) {
            vpps_stats s = {.size = sizeof s};
            TEST_OK(vpps_fb(h, n.g, known_loss(&n, 1), NULL));
            TEST_OK(vpps_sync_latest_loss(h, NULL));
            TEST_OK(vpps_handle_stats(h, &s));
            total += s.device_ns;
            ck_assert_msg(s.device_ns > 0, "batch %u took no time", k);
            ck_assert_uint_eq(s.total_device_ns, total);
        }
        vpps_handle_destroy(h);
        sn_close(&n);
    }
END_TEST

START_TEST(disassembly_is_text_and_runs_nothing)
    {
        small_network n;
        vpps_handle *h;
        const vpps_options o = sn_options(2, VPPS_SGD);
        vpps_stats s = {.size = sizeof s};
        char *text = NULL;
        size_t size = 0;
        sn_open(&n, 1);
        TEST_OK(vpps_handle_create(&h, n.model, &o));
        FILE *f = open_memstream(&text, &size);
        ck_assert_ptr_nonnull(f);
        TEST_OK(vpps_disassemble(h, n.g, sn_build(&n, 3, 1), f));
        fclose(f);
        ck_assert_uint_gt(size, 500);
        for (size_t i = 0; i < size; i++) ck_assert(text[i] == '\n' || (text[i] >= ' ' && text[i] <= '~'));
        free(text);
        TEST_OK(vpps_handle_stats(h, &s));
        ck_assert_uint_eq(s.batches, 0);
        ck_assert_int_eq(vpps_sync_latest_loss(h, &(float){0}), VPPS_STATE);
        FILE *full = fopen("/dev/full", "w");
        if (full) {
            const vpps_status status = vpps_disassemble(h, n.g, sn_build(&n, 3, 1), full);
            ck_assert_msg(status == VPPS_IO || fflush(full) != 0, "writing to a full device: %s",
                          vpps_status_name(status));
            fclose(full);
        }
        vpps_handle_destroy(h);
        sn_close(&n);
    }
END_TEST

/* What an LSTM's operations would copy to run as one, so much a vertex: backward's, where values share places. */
START_TEST(conflicts_of_backward_are_counted)
    {
        const network *net = network_find("lstm-lm");
        const net_config config = {.words = 5, .classes = 5, .embed = 8, .hidden = 8};
        const uint32_t words[] = {0, 1, 2, 3};
        const net_example x = {.sentence = {.words = words, .n_words = 4}};
        vpps_options o;
        vpps_model *model;
        vpps_handle *h;
        vpps_graph *g;
        void *data;
        vpps_options_default(&o);
        o.vps = 1;
        TEST_OK(vpps_model_create(&model, 1));
        TEST_OK(net->create(&data, model, &config));
        TEST_OK(vpps_handle_create(&h, model, &o));
        TEST_OK(vpps_graph_create(&g, model));
        uint64_t bytes[3] = {0};
        for (uint32_t n = 1; n <= 2; n++) {
            vpps_node logits[3], nll[6];
            float loss, *out = &loss;
            vpps_stats stats = {.size = sizeof stats};
            vpps_graph_clear(g);
            for (uint32_t i = 0; i < n; i++)
                TEST_OK(net->add(data, g, &x, NET_HEADS_LABELLED, &(net_scores){.logits = logits, .nll = nll + 3 * i}));
            const vpps_node sum = vpps_sum(g, 3 * n, nll);
            TEST_OK(vpps_forward(h, g, 1, &sum, &out)); /* which is no training batch */
            TEST_OK(vpps_handle_stats(h, &stats));
            ck_assert_uint_eq(stats.gathered_bytes, bytes[n - 1]);
            TEST_OK(vpps_fb(h, g, sum, NULL));
            TEST_OK(vpps_sync_latest_loss(h, &loss));
            TEST_OK(vpps_handle_stats(h, &stats));
            bytes[n] = stats.gathered_bytes;
        }
        ck_assert_uint_eq(bytes[1],
                          3 * 320); /* `vpps cell lstm-lm --embed 8 --hidden 8 --vps 1 --batch 4` says 320 a vertex */
        ck_assert_uint_eq(bytes[2], 6 * 320);
        net->destroy(data);
        vpps_graph_destroy(g);
        vpps_handle_destroy(h);
        vpps_model_destroy(model);
    }
END_TEST

/* Values that training would overwrite in place can all be read, in any order, any number of times. */
START_TEST(forward_reads_every_node)
    {
        small_network n;
        vpps_handle *h;
        const vpps_options o = sn_options(2, VPPS_SGD);
        sn_open(&n, 1);
        TEST_OK(vpps_handle_create(&h, n.model, &o));
        vpps_graph *g = n.g;
        enum { STEPS = 8, SIZE = 100 };
        static float values[2 * STEPS][SIZE], x[SIZE];
        for (int i = 0; i < SIZE; i++) x[i] = 0.01f * (float)(i - 50);
        for (int rotate = 0; rotate < STEPS; rotate++) {
            vpps_graph_clear(g);
            vpps_node chain[STEPS], nodes[2 * STEPS];
            float *outs[2 * STEPS];
            chain[0] = vpps_input(g, SIZE, 1, x);
            chain[1] = vpps_negate(g, chain[0]);
            chain[2] = vpps_relu(g, chain[1]);
            chain[3] = vpps_scale(g, chain[2], 3);
            chain[4] = vpps_add(g, chain[3], chain[0]);
            chain[5] = vpps_square(g, chain[4]);
            chain[6] = vpps_dropout(g, chain[5], 0.5f); /* off: the identity */
            chain[7] = vpps_abs(g, chain[6]);
            for (int i = 0; i < 2 * STEPS; i++) {
                nodes[i] = chain[(i * 3 + rotate) % STEPS];
                outs[i] = values[i];
            }
            TEST_OK(vpps_forward(h, g, rotate % 2 ? 2 * STEPS : 3, nodes, outs));
            for (int i = 0; i < (rotate % 2 ? 2 * STEPS : 3); i++) {
                for (int e = 0; e < SIZE; e++) {
                    const float relu = x[e] < 0 ? -x[e] : 0, sum = 3 * relu + x[e];
                    const float want[STEPS] = {x[e], -x[e], relu, 3 * relu, sum, sum * sum, sum * sum, sum * sum};
                    const int node = (i * 3 + rotate) % STEPS;
                    ck_assert_msg(fabsf(values[i][e] - want[node]) <= 1e-6f,
                                  "node %d of the chain, element %d: %g, not %g", node, e, (double)values[i][e],
                                  (double)want[node]);
                }
            }
        }
        vpps_handle_destroy(h);
        sn_close(&n);
    }
END_TEST

START_TEST(forward_leaves_training_alone)
    {
        small_network a, b;
        vpps_handle *ha, *hb;
        vpps_options o = options_on(_i, 2, VPPS_ADAM);
        sn_open(&a, 1);
        sn_open(&b, 1);
        TEST_OK(vpps_handle_create(&ha, a.model, &o));
        TEST_OK(vpps_handle_create(&hb, b.model, &o));
        for (uint32_t k = 0; k < 20; k++) {
            float stale_a, stale_b, value;
            TEST_OK(vpps_fb(ha, a.g, sn_build(&a, k, 1), &stale_a));
            TEST_OK(vpps_fb(hb, b.g, sn_build(&b, k, 1), &stale_b));
            ck_assert(stale_a == stale_b || (isnan(stale_a) && isnan(stale_b)));
            const vpps_node other = sn_build(&a, k + 100, 1);
            float *out = &value, again, *out_again = &again;
            TEST_OK(vpps_forward(ha, a.g, 1, &other, &out)); /* waits for the batch in flight; its loss is not lost */
            TEST_OK(vpps_forward(ha, a.g, 1, &other, &out_again));
            ck_assert_float_eq(value, again);
        }
        TEST_OK(vpps_read_parameters(ha));
        TEST_OK(vpps_read_parameters(hb));
        expect_same(&a, &b, true, "with and without vpps_forward in between");
        vpps_handle_destroy(ha);
        vpps_handle_destroy(hb);
        sn_close(&a);
        sn_close(&b);
    }
END_TEST

int main(void) {
    Suite *s = suite_create("handle");
    TCase *t = tcase_create("handle");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, losses_come_one_batch_late, WORKS, GPU);
    tcase_add_test(t, polling_does_not_wait);
    tcase_add_test(t, pipelined_is_synchronous);
    tcase_add_loop_test(t, stops_at_a_nonfinite_loss, WORKS, GPU);
    tcase_add_loop_test(t, skips_a_nonfinite_loss, WORKS, GPU);
    tcase_add_loop_test(t, gradients_that_are_not_finite, 0, VPPS_OPTIMIZERS);
    tcase_add_test(t, ignores_a_nonfinite_loss_when_told);
    tcase_add_loop_test(t, parameters_recover_when_they_are_pushed, VPPS_SGD, VPPS_ADAMW + 1);
    tcase_add_test(t, wrong_calls);
    tcase_add_test(t, wrong_options);
    tcase_add_test(t, pool_too_small_for_a_batch);
    tcase_add_loop_test(t, settings_take_effect_with_the_next_batch, WORKS, GPU);
    tcase_add_test(t, masks_do_not_overlap);
    tcase_add_test(t, the_pool_has_a_limit);
    tcase_add_test(t, models_in_threads_are_independent);
    tcase_add_test(t, handles_leave_nothing_behind);
    tcase_add_test(t, shares_of_a_gradient_are_added_up);
    tcase_add_test(t, statistics_are_plausible);
    tcase_add_loop_test(t, every_batch_took_some_time, WORKS, GPU);
    tcase_add_test(t, conflicts_of_backward_are_counted);
    tcase_add_test(t, disassembly_is_text_and_runs_nothing);
    tcase_add_test(t, forward_reads_every_node);
    tcase_add_loop_test(t, forward_leaves_training_alone, WORKS, GPU);
    suite_add_tcase(s, t);
    gpu_add(s,
            (gpu_case[]){{losses_come_one_batch_late, GPU},
                         {stops_at_a_nonfinite_loss, GPU},
                         {skips_a_nonfinite_loss, GPU},
                         {gradients_that_are_not_finite, VPPS_OPTIMIZERS},
                         {masks_do_not_overlap, GPU}},
            5);
    return test_main(s);
}
