/* test_steps.c - a training step in parts: vpps_backward, what can be done with gradients, vpps_update. */
#include "common/gpu_tests.h"
#include "common/reference.h"
#include "common/testing.h"
#include "graph/graph.h"
#include "runtime/handle.h"
#include "runtime/simt/fiber.h"
#include "runtime/small_network.h"

#include <math.h>

/* ---------------------------------------------------------------- networks and handles */

typedef struct setting {
    const char *device;
    uint32_t vps;
    vpps_caller caller;
    vpps_optimizer_kind optimizer;
    float clip;
    vpps_precision precision;
    vpps_gradients gradients;
    uint32_t waves;
} setting;

static const setting settings[] = {
    {"cpu", 1, VPPS_CALLER_WORKS, VPPS_SGD, 0, VPPS_PRECISION_FP32, VPPS_GRADIENTS_DEFERRED, 0},
    {"cpu", 2, VPPS_CALLER_FREE, VPPS_MOMENTUM, 0.5f, VPPS_PRECISION_FP32, VPPS_GRADIENTS_DEFERRED, 0},
    {"cpu", 3, VPPS_CALLER_WORKS, VPPS_ADAM, 0, VPPS_PRECISION_FP32, VPPS_GRADIENTS_ACCUMULATE, 0},
    {"cpu", 8, VPPS_CALLER_FREE, VPPS_ADAMW, 0.1f, VPPS_PRECISION_BF16, VPPS_GRADIENTS_DEFERRED, 0},
    {"cpu", 2, VPPS_CALLER_WORKS, VPPS_ADAGRAD, 0, VPPS_PRECISION_BF16X3, VPPS_GRADIENTS_DEFERRED, 2},
    {"simt", 2, VPPS_CALLER_AUTO, VPPS_ADAM, 0.5f, VPPS_PRECISION_FP32, VPPS_GRADIENTS_DEFERRED, 0},
    {"simt", 4, VPPS_CALLER_AUTO, VPPS_SGD, 0, VPPS_PRECISION_BF16, VPPS_GRADIENTS_ACCUMULATE, 0},
};
enum { SIMT_SETTINGS = 2 }; /* they are last */
enum { SETTINGS = VPPS_COUNT(settings) - (VPPS_SIMT_TSAN ? SIMT_SETTINGS : 0) };

static vpps_handle *open_handle(small_network *n, const setting *s) {
    vpps_options o = sn_options(s->vps, s->optimizer);
    vpps_handle *h;
    sn_open(n, 1);
    o.device = s->device;
    o.caller = s->caller;
    o.optimizer.clip = s->clip;
    if (s->optimizer == VPPS_SGD) o.optimizer.weight_decay = 0;
    o.precision = s->precision;
    o.gradients = s->gradients;
    o.waves = s->waves;
    TEST_OK(vpps_handle_create(&h, n->model, &o));
    return h;
}

static void close_handle(small_network *n, vpps_handle *h) {
    vpps_handle_destroy(h);
    sn_close(n);
}

/* Chains [first, first + count) of a fixed corpus, without dropout: a 32nd of the sum of their losses. */
static vpps_node build_chains(const small_network *n, uint32_t first, uint32_t count) {
    vpps_graph *g = n->g;
    vpps_node terms[64];
    vpps_graph_clear(g);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t random = (first + i) * 77 + 5;
        vpps_node h =
            vpps_tanh(g, vpps_affine1(g, n->b, n->W, vpps_lookup(g, n->E, vpps_random_below(&random, SN_WORDS))));
        for (uint32_t length = vpps_random_below(&random, 6); length > 0; length--) {
            const vpps_node x = vpps_lookup(g, n->E, vpps_random_below(&random, SN_WORDS));
            h = vpps_tanh(g, vpps_affine2(g, n->b, n->W, x, n->U, h));
        }
        terms[i] = vpps_cross_entropy(g, vpps_affine1(g, n->b_c, n->C, h), vpps_random_below(&random, SN_CLASSES));
    }
    return vpps_scale(g, vpps_sum(g, count, terms), 1.0f / 32);
}

/* ---------------------------------------------------------------- the same step */

START_TEST(backward_and_update_give_the_bits_of_fb)
    {
        small_network a, b;
        vpps_handle *whole = open_handle(&a, &settings[_i]), *parts = open_handle(&b, &settings[_i]);
        for (uint32_t k = 0; k < 6; k++) {
            float x, y;
            TEST_OK(vpps_fb(whole, a.g, sn_build(&a, k, 1), NULL));
            TEST_OK(vpps_backward(parts, b.g, sn_build(&b, k, 1), NULL));
            TEST_OK(vpps_sync_latest_loss(whole, &x));
            TEST_OK(vpps_sync_latest_loss(parts, &y));
            ck_assert_float_eq(x, y);
            if (k % 2) { /* inference in between takes nothing away */
                float value;
                TEST_OK(vpps_forward(parts, b.g, 1, (vpps_node[]){sn_build(&b, k + 10, 1)}, (float *[]){&value}));
            }
            TEST_OK(vpps_update(parts));
            TEST_OK(vpps_sync_latest_loss(parts, &y));
            ck_assert_float_eq(x, y);
        }
        sn_expect_alike(&a, whole, &b, parts, 0);
        vpps_stats stats = {.size = sizeof stats};
        TEST_OK(vpps_handle_stats(parts, &stats));
        ck_assert_uint_eq(stats.batches, 6);
        close_handle(&a, whole);
        close_handle(&b, parts);
    }
END_TEST

START_TEST(gradients_add_up)
    {
        setting s = settings[_i];
        s.optimizer = VPPS_MOMENTUM; /* Adam and Adagrad divide by a gradient's own size, and so enlarge its rounding */
        small_network a, b;
        vpps_handle *whole = open_handle(&a, &s), *parts = open_handle(&b, &s);
        const double errors[] = {
            [VPPS_PRECISION_FP32] = 1e-5, [VPPS_PRECISION_BF16X3] = 1e-5, [VPPS_PRECISION_BF16] = 2e-2};
        const double error = errors[settings[_i].precision];
        for (uint32_t k = 0; k < 4; k++) {
            float x, y;
            TEST_OK(vpps_fb(whole, a.g, build_chains(&a, 32 * k, 32), NULL));
            for (uint32_t part = 0; part < 4; part++)
                TEST_OK(vpps_backward(parts, b.g, build_chains(&b, 32 * k + 8 * part, 8), NULL));
            TEST_OK(vpps_update(parts));
            TEST_OK(vpps_sync_latest_loss(whole, &x));
            TEST_OK(vpps_sync_latest_loss(parts, &y));
            ck_assert_float_eq_tol(x, y, error * fabs((double)x));
        }
        sn_expect_alike(&a, whole, &b, parts, error);
        close_handle(&a, whole);
        close_handle(&b, parts);
    }
END_TEST

/* ---------------------------------------------------------------- gradients that are read and written */

/* The gradient of the sum of two graphs' losses, read, beside the reference's. */
START_TEST(gradients_are_those_of_the_reference)
    {
        small_network n;
        const setting *s = &settings[_i];
        if (s->precision != VPPS_PRECISION_FP32) return;
        vpps_handle *h = open_handle(&n, s);
        ref_model *m = ref_model_create(n.model);
        double *want = calloc(m->first[m->n], sizeof *want);
        for (uint32_t part = 0; part < 2; part++) {
            const vpps_node loss = build_chains(&n, 5 * part, 5);
            const ref_mode mode = {.training = true};
            ref_run *r = ref_forward(n.g, m, &mode);
            ref_backward(r, m, loss);
            for (size_t i = 0; i < m->first[m->n]; i++) want[i] += r->param_grads[i];
            ref_run_destroy(r);
            TEST_OK(vpps_backward(h, n.g, build_chains(&n, 5 * part, 5), NULL));
        }
        TEST_OK(vpps_read_gradients(h));
        double squares = 0;
        for (vpps_param p = 0; p < SN_PARAMS; p++) {
            vpps_param_info info = {.size = sizeof info};
            vpps_gradient gradient = {.size = sizeof gradient};
            TEST_OK(vpps_param_describe(n.model, p, &info));
            TEST_OK(vpps_param_gradient(n.model, p, &gradient));
            const size_t words = (size_t)info.rows * info.cols;
            const double *of_p = want + m->first[p];
            double of_param = 0;
            ck_assert_int_eq(gradient.entries != NULL, info.kind == VPPS_LOOKUP);
            uint32_t next = 0; /* entries that have none are zero in the reference */
            for (uint32_t i = 0; i < gradient.n; i++) {
                const uint32_t entry = gradient.entries ? gradient.entries[i] : 0;
                for (; next < entry; next++)
                    for (size_t k = 0; k < words; k++) ck_assert_double_eq(of_p[next * words + k], 0);
                for (size_t k = 0; k < words; k++) {
                    const double x = of_p[entry * words + k];
                    ck_assert_double_eq_tol(x, (double)gradient.values[i * words + k], 1e-5);
                    of_param += x * x;
                }
                next = entry + 1;
            }
            for (; next < info.count; next++)
                for (size_t k = 0; k < words; k++) ck_assert_double_eq(of_p[next * words + k], 0);
            double norm;
            TEST_OK(vpps_gradient_norm(n.model, p, &norm));
            ck_assert_double_eq_tol(norm, sqrt(of_param), 1e-4);
            squares += of_param;
        }
        double norm;
        TEST_OK(vpps_gradient_norm(n.model, VPPS_NO_PARAM, &norm));
        ck_assert_double_eq_tol(norm, sqrt(squares), 1e-4);
        free(want);
        ref_model_destroy(m);
        close_handle(&n, h);
    }
END_TEST

/* Gradients doubled are a step twice as long, by plain SGD; entries and rows keep their places. */
START_TEST(written_gradients_are_taken)
    {
        setting s = settings[_i];
        s.optimizer = VPPS_SGD;
        s.clip = 0;
        small_network a, b;
        vpps_handle *twice = open_handle(&a, &s), *doubled = open_handle(&b, &s);
        for (uint32_t k = 0; k < 3; k++) {
            TEST_OK(vpps_set_learning_rate(twice, 0.2f));
            TEST_OK(vpps_set_learning_rate(doubled, 0.1f));
            TEST_OK(vpps_fb(twice, a.g, build_chains(&a, 4 * k, 4), NULL));
            TEST_OK(vpps_backward(doubled, b.g, build_chains(&b, 4 * k, 4), NULL));
            TEST_OK(vpps_read_gradients(doubled));
            for (vpps_param p = 0; p < SN_PARAMS; p++) {
                vpps_param_info info = {.size = sizeof info};
                vpps_gradient gradient = {.size = sizeof gradient};
                TEST_OK(vpps_param_describe(b.model, p, &info));
                TEST_OK(vpps_param_gradient(b.model, p, &gradient));
                for (size_t i = 0; i < gradient.n * (size_t)info.rows * info.cols; i++) gradient.values[i] *= 2;
            }
            TEST_OK(vpps_write_gradients(doubled));
            TEST_OK(vpps_update(doubled));
        }
        sn_expect_alike(&a, twice, &b, doubled, 0);
        close_handle(&a, twice);
        close_handle(&b, doubled);
    }
END_TEST

/* A gradient that a graph does not give can be written: the parameter takes a step. */
START_TEST(gradients_of_unused_parameters)
    {
        small_network n;
        vpps_handle *h = open_handle(&n, &settings[_i]);
        vpps_graph_clear(n.g);
        const vpps_node loss = vpps_sum_elements(n.g, vpps_parameter(n.g, n.b_c)); /* uses b_c only */
        vpps_gradient gradient = {.size = sizeof gradient};
        TEST_FAILS(vpps_param_gradient(n.model, n.U, &gradient), VPPS_STATE, "vpps_read_gradients");
        TEST_OK(vpps_backward(h, n.g, loss, NULL));
        TEST_OK(vpps_read_gradients(h));
        size_t count, again;
        float *before = sn_handle_values(&n, h, &count);
        TEST_OK(vpps_param_gradient(n.model, n.U, &gradient));
        for (uint32_t i = 0; i < SN_HIDDEN * SN_HIDDEN; i++) ck_assert_float_eq(gradient.values[i], 0);
        gradient.values[3 * SN_HIDDEN + 1] = 1;
        TEST_OK(vpps_param_gradient(n.model, n.E, &gradient));
        ck_assert_uint_eq(gradient.n, 0);
        TEST_OK(vpps_write_gradients(h));
        TEST_OK(vpps_update(h));
        float *after = sn_handle_values(&n, h, &again);
        size_t at = 0;
        for (vpps_param p = 0; p < SN_PARAMS; p++) {
            const size_t elems = vpps_param_elems(&n.model->params[p]);
            const bool changed = memcmp(before + at, after + at, elems * sizeof *after) != 0;
            ck_assert_msg(changed == (p == n.U || p == n.b_c), "%s", n.model->params[p].name);
            if (p == n.U) ck_assert_float_lt(after[at + 3 * SN_HIDDEN + 1], before[at + 3 * SN_HIDDEN + 1]);
            at += elems;
        }
        free(before);
        free(after);
        close_handle(&n, h);
    }
END_TEST

/* ---------------------------------------------------------------- what is forgotten, frozen, not finite */

START_TEST(zeroed_gradients_leave_nothing)
    {
        small_network a, b;
        vpps_handle *x = open_handle(&a, &settings[_i]), *y = open_handle(&b, &settings[_i]);
        TEST_OK(vpps_backward(x, a.g, sn_build(&a, 3, 1), NULL));
        TEST_OK(vpps_backward(x, a.g, sn_build(&a, 4, 1), NULL));
        TEST_OK(vpps_zero_gradients(x));
        TEST_FAILS(vpps_update(x), VPPS_STATE, "no gradients");
        TEST_FAILS(vpps_write_gradients(x), VPPS_STATE, "no gradients");
        TEST_OK(vpps_read_gradients(x));
        double norm;
        TEST_OK(vpps_gradient_norm(a.model, VPPS_NO_PARAM, &norm));
        ck_assert_double_eq(norm, 0);
        for (uint32_t k = 0; k < 2; k++) {
            TEST_OK(vpps_backward(x, a.g, sn_build(&a, k, 1), NULL));
            TEST_OK(vpps_update(x));
            TEST_OK(vpps_fb(y, b.g, sn_build(&b, k, 1), NULL));
        }
        sn_expect_alike(&a, x, &b, y, 0);
        close_handle(&a, x);
        close_handle(&b, y);
    }
END_TEST

START_TEST(frozen_between_backward_and_update)
    {
        small_network n;
        vpps_handle *h = open_handle(&n, &settings[_i]);
        size_t count;
        float *before = sn_handle_values(&n, h, &count);
        TEST_OK(vpps_backward(h, n.g, build_chains(&n, 0, 8), NULL)); /* uses all */
        TEST_OK(vpps_freeze(n.model, n.E, true));
        TEST_OK(vpps_freeze(n.model, n.W, true));
        TEST_OK(vpps_freeze(n.model, n.b, true));
        TEST_OK(vpps_update(h));
        float *after = sn_handle_values(&n, h, &count);
        size_t at = 0;
        for (vpps_param p = 0; p < SN_PARAMS; p++) {
            const size_t elems = vpps_param_elems(&n.model->params[p]);
            const bool frozen = p == n.E || p == n.W || p == n.b;
            ck_assert_msg(!memcmp(before + at, after + at, elems * sizeof *after) == frozen, "%s",
                          n.model->params[p].name);
            at += elems;
        }
        free(before);
        free(after);
        close_handle(&n, h);
    }
END_TEST

/* With a frozen embedding and encoder nothing of them runs backward, and the classifier contributes nothing to them; with all frozen
 * nothing runs backward at all. */
START_TEST(what_is_frozen_costs_no_backward_work)
    {
        small_network n;
        vpps_handle *h = open_handle(&n, &settings[_i]);
        const vpps_param encoder[] = {n.E, n.W, n.U, n.b}, all[] = {n.E, n.W, n.U, n.b, n.C, n.b_c};
        const struct {
            const vpps_param *params;
            uint32_t n, backward; /* cells with backward work: the term of the loss, and the classifier */
        } frozen[] = {{encoder, 4, 2}, {all, 6, 0}};
        for (uint32_t k = 0; k < VPPS_COUNT(frozen); k++) {
            const vpps_batch *b;
            uint32_t n_backward = 0, n_outers = 0;
            for (uint32_t i = 0; i < frozen[k].n; i++) TEST_OK(vpps_freeze(n.model, frozen[k].params[i], true));
            TEST_OK(vpps_handle_batch(h, n.g, build_chains(&n, 0, 8), &b));
            for (uint32_t c = 0; c < b->n_cells; c++) {
                const vpps_compiled_cell *cell = b->cells[c];
                bool backward = false;
                for (uint32_t s = 0; s < cell->n_stages; s++) backward |= cell->stages[s].backward;
                n_backward += backward;
                n_outers += cell->n_outers;
                if (cell->n_outers) ck_assert_uint_eq(cell->n_contributions, 0);
            }
            ck_assert_uint_eq(n_backward, frozen[k].backward);
            ck_assert_uint_eq(n_outers, k == 0 ? 2 : 0);
            TEST_OK(vpps_fb(h, n.g, build_chains(&n, 0, 8), NULL));
        }
        close_handle(&n, h);
    }
END_TEST

/* A cell that reads a word, and says the next one: the encoder and the classifier. */
static vpps_cell record_step(const small_network *n, bool classifies) {
    vpps_cell cell;
    vpps_graph *g;
    TEST_OK(vpps_cell_begin(n->model, classifies ? "step" : "encoder", &g));
    const vpps_node x = vpps_lookup(g, n->E, vpps_pull_index(g)), before = vpps_gather(g, 0, 0, SN_HIDDEN, 1);
    const vpps_node h = vpps_tanh(g, vpps_affine2(g, n->b, n->W, x, n->U, before));
    TEST_OK(vpps_scatter(g, h));
    if (classifies) {
        const vpps_node scores = vpps_affine1(g, n->b_c, n->C, h);
        TEST_OK(vpps_push(g, vpps_cross_entropy(g, scores, vpps_pull_index(g))));
    }
    TEST_OK(vpps_cell_end(g, &cell));
    return cell;
}

static vpps_node build_steps(const small_network *n, vpps_cell cell, bool classifies, uint32_t batch) {
    enum { CHAINS = 5, MOST = 6 };
    vpps_node terms[CHAINS * MOST];
    vpps_graph *g = n->g;
    uint32_t count = 0;
    vpps_graph_clear(g);
    for (uint32_t i = 0; i < CHAINS; i++) {
        uint64_t random = batch * 31 + i;
        vpps_vertex v = vpps_source(g, 1, (vpps_node[]){vpps_zeros(g, SN_HIDDEN, 1)});
        for (uint32_t k = 0; k < 2 + i % (MOST - 1); k++) {
            const uint32_t indices[] = {vpps_random_below(&random, SN_WORDS), vpps_random_below(&random, SN_CLASSES)};
            v = vpps_apply(g, VPPS_APPLICATION(.cell = cell, .n_children = 1, .children = &v,
                                               .n_indices = 1 + classifies, .indices = indices));
            const vpps_node scores = classifies ? 0 : vpps_affine1(g, n->b_c, n->C, vpps_scattered(g, v, 0));
            terms[count++] = classifies ? vpps_pushed(g, v, 0) : vpps_cross_entropy(g, scores, indices[1]);
        }
    }
    return vpps_average(g, count, terms);
}

/* Nor where the classifier stands in the same cell: only what it is made of has a gradient, which is the state of no step. The same
 * training as by cells apart. */
START_TEST(what_is_frozen_in_a_cell_costs_no_backward_work)
    {
        small_network a, b;
        vpps_handle *one = open_handle(&a, &settings[_i]), *apart = open_handle(&b, &settings[_i]);
        const vpps_cell step = record_step(&a, true), encoder = record_step(&b, false);
        const double error = settings[_i].precision == VPPS_PRECISION_BF16 ? 2e-2 : 1e-5;
        for (uint32_t k = 0; k < 4; k++) {
            const vpps_batch *batch;
            float x, y;
            for (uint32_t p = 0; p < 4; p++) { /* frozen in every second batch */
                TEST_OK(vpps_freeze(a.model, (vpps_param[]){a.E, a.W, a.U, a.b}[p], k % 2 == 0));
                TEST_OK(vpps_freeze(b.model, (vpps_param[]){b.E, b.W, b.U, b.b}[p], k % 2 == 0));
            }
            TEST_OK(vpps_handle_batch(one, a.g, build_steps(&a, step, true, k), &batch));
            uint32_t n_outers = 0, n_contributions = 0;
            uint64_t gradient_in = 0;
            for (uint32_t c = 0; c < batch->n_cells; c++) {
                n_outers += batch->cells[c]->n_outers;
                n_contributions += batch->cells[c]->n_contributions;
                gradient_in |= batch->cells[c]->needs.gradient_in;
            }
            if (k % 2 == 0) ck_assert(n_outers == 2 && n_contributions == 0 && gradient_in == 0);
            if (k % 2 == 1) ck_assert(n_outers == 5 && n_contributions > 0 && gradient_in != 0);
            TEST_OK(vpps_fb(one, a.g, build_steps(&a, step, true, k), NULL));
            TEST_OK(vpps_fb(apart, b.g, build_steps(&b, encoder, false, k), NULL));
            TEST_OK(vpps_sync_latest_loss(one, &x));
            TEST_OK(vpps_sync_latest_loss(apart, &y));
            ck_assert_float_eq_tol(x, y, error * fabs((double)x));
        }
        sn_expect_alike(&a, one, &b, apart, error);
        close_handle(&a, one);
        close_handle(&b, apart);
    }
END_TEST

START_TEST(gradients_that_are_not_finite_change_nothing)
    {
        small_network n;
        vpps_handle *h = open_handle(&n, &settings[_i]);
        size_t count, again;
        float *before = sn_handle_values(&n, h, &count), loss;
        TEST_OK(vpps_backward(h, n.g, sn_build(&n, 1, 1), NULL));
        TEST_OK(vpps_backward(h, n.g, sn_build(&n, 2, NAN), NULL));
        TEST_OK(vpps_sync_latest_loss(h, &loss));
        ck_assert_float_nan(loss);
        TEST_OK(vpps_update(h));
        TEST_FAILS(vpps_sync_latest_loss(h, &loss), VPPS_NONFINITE, "batch 1: the loss is");
        float *after = sn_handle_values(&n, h, &again);
        ck_assert_msg(!memcmp(before, after, count * sizeof *after), "parameters changed");
        TEST_FAILS(vpps_update(h), VPPS_STATE, "no gradients");
        TEST_OK(vpps_fb(h, n.g, sn_build(&n, 1, 1), NULL));
        TEST_OK(vpps_sync_latest_loss(h, &loss));
        ck_assert_float_finite(loss);
        free(before);
        free(after);
        close_handle(&n, h);
    }
END_TEST

/* ---------------------------------------------------------------- groups of parameters */

/* A learning rate of 0 for some is as if they were frozen, whose state goes on; the optimizer's own numbers in a group change no bit. */
START_TEST(groups_step_by_their_own_numbers)
    {
        const setting *s = &settings[_i];
        small_network a, b;
        vpps_handle *x = open_handle(&a, s), *y = open_handle(&b, s);
        const vpps_options o = sn_options(s->vps, s->optimizer);
        const vpps_param still[] = {a.E, a.W, a.b}, rest[] = {a.U, a.C, a.b_c};
        const float decay = s->optimizer == VPPS_SGD ? 0 : o.optimizer.weight_decay;
        TEST_OK(vpps_set_param_group(
            x, 3, still,
            &(vpps_param_group){.size = sizeof(vpps_param_group), .lr = 0, .momentum = NAN, .weight_decay = NAN}));
        TEST_OK(vpps_set_param_group(
            x, 3, rest, &(vpps_param_group){sizeof(vpps_param_group), o.optimizer.lr, o.optimizer.momentum, decay}));
        size_t count;
        float *before = sn_handle_values(&a, x, &count);
        for (uint32_t k = 0; k < 3; k++) {
            TEST_OK(vpps_fb(x, a.g, build_chains(&a, 8 * k, 8), NULL));
            if (k == 0) TEST_OK(vpps_fb(y, b.g, build_chains(&b, 0, 8), NULL));
        }
        float *after = sn_handle_values(&a, x, &count);
        size_t at = 0;
        for (vpps_param p = 0; p < SN_PARAMS; p++) {
            const size_t elems = vpps_param_elems(&a.model->params[p]);
            const bool stays = p == a.E || p == a.W || p == a.b;
            ck_assert_msg(!memcmp(before + at, after + at, elems * sizeof *after) == stays, "%s",
                          a.model->params[p].name);
            at += elems;
        }
        free(before);
        free(after);
        close_handle(&a, x);
        /* one step: those of the rest are as without groups, to the bit */
        vpps_handle *z = open_handle(&a, s);
        TEST_OK(vpps_set_param_group(
            z, 3, still,
            &(vpps_param_group){.size = sizeof(vpps_param_group), .lr = 0, .momentum = NAN, .weight_decay = NAN}));
        TEST_OK(vpps_backward(z, a.g, build_chains(&a, 0, 8), NULL));
        TEST_OK(vpps_update(z));
        float *own = sn_handle_values(&a, z, &count), *all = sn_handle_values(&b, y, &count);
        at = 0;
        for (vpps_param p = 0; p < SN_PARAMS; p++) {
            const size_t elems = vpps_param_elems(&a.model->params[p]);
            const bool stays = p == a.E || p == a.W || p == a.b;
            ck_assert_msg(!memcmp(own + at, all + at, elems * sizeof *own) == !stays, "%s", a.model->params[p].name);
            at += elems;
        }
        free(own);
        free(all);
        close_handle(&a, z);
        close_handle(&b, y);
    }
END_TEST

/* A group's learning rate of 0.2 is that of a handle of 0.2; taken back, the handle's counts again. */
START_TEST(groups_are_like_handles)
    {
        const setting *s = &settings[_i];
        small_network a, b;
        vpps_handle *x = open_handle(&a, s), *y = open_handle(&b, s);
        const vpps_param all[] = {a.E, a.W, a.U, a.b, a.C, a.b_c};
        const vpps_param_group group = {sizeof group, 0.2f, 0.5f, 0.125f};
        TEST_OK(vpps_set_param_group(x, 6, all, &group));
        TEST_OK(vpps_set_learning_rate(y, group.lr));
        TEST_OK(vpps_set_momentum(y, group.momentum));
        TEST_OK(vpps_set_weight_decay(y, group.weight_decay));
        for (uint32_t k = 0; k < 3; k++) {
            TEST_OK(vpps_fb(x, a.g, build_chains(&a, 8 * k, 8), NULL));
            TEST_OK(vpps_fb(y, b.g, build_chains(&b, 8 * k, 8), NULL));
        }
        sn_expect_alike(&a, x, &b, y, 0);
        TEST_OK(vpps_set_param_group(x, 6, all, NULL));
        TEST_OK(vpps_set_learning_rate(x, group.lr));
        TEST_OK(vpps_set_momentum(x, group.momentum));
        TEST_OK(vpps_set_weight_decay(x, group.weight_decay));
        TEST_OK(vpps_fb(x, a.g, build_chains(&a, 0, 8), NULL));
        TEST_OK(vpps_fb(y, b.g, build_chains(&b, 0, 8), NULL));
        sn_expect_alike(&a, x, &b, y, 0);
        TEST_FAILS(vpps_set_param_group(x, 1, (vpps_param[]){77}, &group), VPPS_ARGUMENT, "77 is not a parameter");
        TEST_FAILS(vpps_set_param_group(x, 1, all, &(vpps_param_group){sizeof(vpps_param_group), -1, 0, 0}),
                   VPPS_ARGUMENT, "learning rate -1");
        TEST_FAILS(vpps_set_param_group(x, 1, all, &(vpps_param_group){sizeof(vpps_param_group), 0, 2, 0}),
                   VPPS_ARGUMENT, "momentum 2");
        TEST_FAILS(vpps_set_param_group(x, 1, all, &(vpps_param_group){sizeof(vpps_param_group), 0, 0, INFINITY}),
                   VPPS_ARGUMENT, "decay inf");
        TEST_FAILS(vpps_set_momentum(x, NAN), VPPS_ARGUMENT, "momentum nan");
        close_handle(&a, x);
        close_handle(&b, y);
    }
END_TEST

/* ---------------------------------------------------------------- misuse */

START_TEST(calls_in_a_wrong_order)
    {
        small_network n;
        vpps_handle *h = open_handle(&n, &settings[_i]);
        vpps_gradient gradient = {.size = sizeof gradient};
        double norm;
        TEST_FAILS(vpps_update(h), VPPS_STATE, "vpps_backward");
        TEST_OK(vpps_backward(h, n.g, sn_build(&n, 2, 1), NULL));
        TEST_FAILS(vpps_fb(h, n.g, sn_build(&n, 2, 1), NULL), VPPS_STATE, "1 calls of vpps_backward");
        TEST_FAILS(vpps_backward(h, n.g, VPPS_NO_NODE, NULL), VPPS_ARGUMENT, "no loss");
        TEST_OK(vpps_update(h));
        TEST_OK(vpps_fb(h, n.g, sn_build(&n, 2, 1), NULL));
        TEST_FAILS(vpps_param_gradient(n.model, 99, &gradient), VPPS_ARGUMENT, "99 is not a parameter");
        TEST_FAILS(vpps_gradient_norm(n.model, 99, &norm), VPPS_ARGUMENT, "99 is not a parameter");
        close_handle(&n, h);
    }
END_TEST

/* Masks of dropout differ from call to call, and those of the first are vpps_fb's. */
START_TEST(dropout_differs_from_call_to_call)
    {
        small_network n;
        vpps_handle *h = open_handle(&n, &settings[_i]);
        float loss[3];
        for (uint32_t k = 0; k < 3; k++) {
            TEST_OK(vpps_backward(h, n.g, sn_build(&n, 3, 1), NULL));
            TEST_OK(vpps_sync_latest_loss(h, &loss[k]));
        }
        ck_assert_float_ne(loss[0], loss[1]);
        ck_assert_float_ne(loss[1], loss[2]);
        TEST_OK(vpps_zero_gradients(h));
        TEST_OK(vpps_backward(h, n.g, sn_build(&n, 3, 1), NULL));
        float again;
        TEST_OK(vpps_sync_latest_loss(h, &again));
        ck_assert_float_eq(loss[0], again);
        close_handle(&n, h);
    }
END_TEST

int main(void) {
    gpu_ask_compiler();
    Suite *suite = suite_create("steps");
    TCase *t = tcase_create("steps");
    tcase_set_timeout(t, 120);
    if (VPPS_SIMT_TSAN)
        TEST_LEFT_OUT("steps: %d settings of software SIMT: ThreadSanitizer cannot follow its stacks", SIMT_SETTINGS);
    tcase_add_loop_test(t, backward_and_update_give_the_bits_of_fb, 0, SETTINGS);
    tcase_add_loop_test(t, gradients_add_up, 0, SETTINGS);
    tcase_add_loop_test(t, gradients_are_those_of_the_reference, 0, SETTINGS);
    tcase_add_loop_test(t, written_gradients_are_taken, 0, SETTINGS);
    tcase_add_loop_test(t, gradients_of_unused_parameters, 0, SETTINGS);
    tcase_add_loop_test(t, zeroed_gradients_leave_nothing, 0, SETTINGS);
    tcase_add_loop_test(t, frozen_between_backward_and_update, 0, SETTINGS);
    tcase_add_loop_test(t, what_is_frozen_costs_no_backward_work, 0, SETTINGS);
    tcase_add_loop_test(t, what_is_frozen_in_a_cell_costs_no_backward_work, 0, SETTINGS);
    tcase_add_loop_test(t, gradients_that_are_not_finite_change_nothing, 0, SETTINGS);
    tcase_add_loop_test(t, groups_step_by_their_own_numbers, 0, SETTINGS);
    tcase_add_loop_test(t, groups_are_like_handles, 0, SETTINGS);
    tcase_add_test(t, calls_in_a_wrong_order);
    tcase_add_loop_test(t, dropout_differs_from_call_to_call, 0, SETTINGS);
    suite_add_tcase(suite, t);
    return test_main(suite);
}
