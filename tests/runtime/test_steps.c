/* test_steps.c - a training step in parts: vpps_backward, uses of the gradients, vpps_update. */
#include "common/gpu_tests.h"
#include "common/reference.h"
#include "runtime/handle.h"
#include "runtime/small_network.h"

/* ---------------------------------------------------------------- networks and handles */

static const sn_setting settings[] = {
    {"cpu", 1, .caller = VPPS_CALLER_WORKS},
    {"cpu", 2, .caller = VPPS_CALLER_FREE, .optimizer = VPPS_MOMENTUM, .clip = 0.5f},
    {"cpu", 3, .caller = VPPS_CALLER_WORKS, .optimizer = VPPS_ADAM, .gradients = VPPS_GRADIENTS_ACCUMULATE},
    {"cpu", 8, .caller = VPPS_CALLER_FREE, .optimizer = VPPS_ADAMW, .clip = 0.1f, .precision = VPPS_PRECISION_BF16},
    {"cpu", 2, .waves = 2, .caller = VPPS_CALLER_WORKS, .optimizer = VPPS_ADAGRAD, .precision = VPPS_PRECISION_BF16X3},
    {"simt", 2, .optimizer = VPPS_ADAM, .clip = 0.5f},
    {"simt", 4, .precision = VPPS_PRECISION_BF16, .gradients = VPPS_GRADIENTS_ACCUMULATE},
};

/* Checks that all parameters except the given ones have changed; frees both arrays. */
static void expect_moved(const small_network *n, float *before, float *after, uint32_t n_still,
                         const vpps_param *still) {
    size_t at = 0;
    for (vpps_param p = 0; p < SN_PARAMS; p++) {
        const size_t elems = vpps_param_elems(&n->model->params[p]);
        bool stays = false;
        for (uint32_t i = 0; i < n_still; i++) stays |= still[i] == p;
        ck_assert_msg(!memcmp(before + at, after + at, elems * sizeof *after) == stays, "%s", n->model->params[p].name);
        at += elems;
    }
    free(before);
    free(after);
}

/* ---------------------------------------------------------------- the same step */

TEST_GROUP("steps", .seconds = 120);

SN_EACH(backward_and_update_give_the_bits_of_fb) {
    AT_END(sn_close) small_network a = sn_on(&settings[_i]), b = sn_on(&settings[_i]);
    for (uint32_t k = 0; k < 6; k++) {
        const float loss = sn_step(&a, k);
        TEST_OK(vpps_backward(b.h, b.g, sn_build(&b, k, 1), NULL));
        ck_assert_float_eq(latest_loss(b.h), loss);
        if (k % 2) infer(b.h, b.g, sn_build(&b, k + 10, 1)); /* does not change the sum */
        TEST_OK(vpps_update(b.h));
        ck_assert_float_eq(latest_loss(b.h), loss);
    }
    sn_expect_alike(&a, &b, 0);
    ck_assert_uint_eq(stats_of(b.h).batches, 6);
}

/* The norm by which gradients are clipped has the same bits however gradients are computed: in cells with few vertices, where a whole step's update
 * computes gradients of matrices, and with many; with any number of virtual processors and groups. */
TEST_EACH(clipped_steps_give_the_bits_of_fb, 0, 100) {
    uint64_t random = (uint64_t)_i + 7;
    const uint32_t vps = 1 + vpps_random_below(&random, 4);
    vpps_options o = sn_options(vps, (vpps_optimizer_kind)vpps_random_below(&random, VPPS_OPTIMIZERS));
    const vpps_precision precisions[] = {VPPS_PRECISION_FP32, VPPS_PRECISION_FP32, VPPS_PRECISION_BF16,
                                         VPPS_PRECISION_BF16X3};
    o.verify = false;
    o.optimizer.clip = 0.01f + vpps_random_unit(&random) / 2;
    o.precision = precisions[vpps_random_below(&random, VPPS_COUNT(precisions))];
    o.groups = vpps_random_below(&random, 2) * vps;
    o.portable = vpps_random_below(&random, 4) == 0;
    AT_END(sn_close) small_network a = sn_with(1, &o), b = sn_with(1, &o);
    for (uint32_t k = 0; k < 6; k++) {
        const uint32_t first = vpps_random_below(&random, 1000), count = 1 + vpps_random_below(&random, 8);
        TEST_OK(vpps_fb(a.h, a.g, sn_build_many(&a, first, count), NULL));
        sn_parts(&b, sn_build_many(&b, first, count));
    }
    sn_expect_alike(&a, &b, 0);
}

SN_EACH(gradients_add_up) {
    sn_setting s = settings[_i];
    s.optimizer = VPPS_SGD; /* Adam and Adagrad divide by a gradient's own size, so its rounding errors grow */
    AT_END(sn_close) small_network a = sn_on(&s), b = sn_on(&s);
    const double error = sn_error(&s);
    for (uint32_t k = 0; k < 4; k++) {
        const float loss = train_batch(a.h, a.g, sn_build_many(&a, 36 * k, 36));
        for (uint32_t part = 0; part < 4; part++)
            TEST_OK(vpps_backward(b.h, b.g, sn_build_many(&b, 36 * k + 9 * part, 9), NULL));
        TEST_OK(vpps_update(b.h));
        ck_assert_float_eq_tol(latest_loss(b.h), loss, error * fabs((double)loss));
    }
    sn_expect_alike(&a, &b, error);
}

/* ---------------------------------------------------------------- gradients that are read and written */

/* Reads the gradient of the sum of two graphs' losses, and compares it with the reference's. */
SN_EACH(gradients_are_those_of_the_reference) {
    const sn_setting *s = &settings[_i];
    if (s->precision != VPPS_PRECISION_FP32) return;
    AT_END(sn_close) small_network n = sn_on(s);
    OWNED(ref_model) *m = ref_model_create(n.model);
    FREED double *want = doubles(m->first[m->n]);
    for (uint32_t part = 0; part < 2; part++) {
        const vpps_node loss = sn_build_many(&n, 9 * part, 9);
        const ref_mode mode = {.training = true};
        ref_run *r = ref_forward(n.g, m, &mode);
        ref_backward(r, m, loss);
        for (size_t i = 0; i < m->first[m->n]; i++) want[i] += r->param_grads[i];
        ref_run_destroy(r);
        TEST_OK(vpps_backward(n.h, n.g, sn_build_many(&n, 9 * part, 9), NULL));
    }
    TEST_OK(vpps_read_gradients(n.h));
    double squares = 0;
    for (vpps_param p = 0; p < SN_PARAMS; p++) {
        const vpps_parameter_data *data = &n.model->params[p];
        vpps_gradient gradient = {.size = sizeof gradient};
        TEST_OK(vpps_param_gradient(n.model, p, &gradient));
        const size_t words = (size_t)data->rows * data->cols, all = vpps_param_elems(data);
        FREED float *got = need(calloc(all, sizeof *got)); /* 0 for entries without a gradient */
        double of_param = 0;
        ck_assert_int_eq(gradient.entries != NULL, p == n.E);
        for (uint32_t i = 0; i < gradient.n; i++) {
            if (gradient.entries && i) ck_assert_uint_gt(gradient.entries[i], gradient.entries[i - 1]);
            memcpy(got + (gradient.entries ? gradient.entries[i] : 0) * words, gradient.values + i * words,
                   words * sizeof *got);
        }
        for (size_t k = 0; k < all; k++) {
            const double x = want[m->first[p] + k];
            ck_assert_double_eq_tol(x, (double)got[k], 1e-5);
            of_param += x * x;
        }
        double norm;
        TEST_OK(vpps_gradient_norm(n.model, p, &norm));
        ck_assert_double_eq_tol(norm, sqrt(of_param), 1e-4);
        squares += of_param;
    }
    double norm;
    TEST_OK(vpps_gradient_norm(n.model, VPPS_NO_PARAM, &norm));
    ck_assert_double_eq_tol(norm, sqrt(squares), 1e-4);
}

/* With plain SGD, doubled gradients make steps twice as long; entries and rows keep their places. */
SN_EACH(written_gradients_are_taken) {
    sn_setting s = settings[_i];
    s.optimizer = VPPS_SGD;
    s.clip = 0;
    AT_END(sn_close) small_network a = sn_on(&s), b = sn_on(&s);
    for (uint32_t k = 0; k < 3; k++) {
        TEST_OK(vpps_set_learning_rate(a.h, 0.2f));
        TEST_OK(vpps_set_learning_rate(b.h, 0.1f));
        TEST_OK(vpps_fb(a.h, a.g, sn_build_many(&a, 9 * k, 9), NULL));
        TEST_OK(vpps_backward(b.h, b.g, sn_build_many(&b, 9 * k, 9), NULL));
        TEST_OK(vpps_read_gradients(b.h));
        for (vpps_param p = 0; p < SN_PARAMS; p++) {
            vpps_gradient gradient = {.size = sizeof gradient};
            TEST_OK(vpps_param_gradient(b.model, p, &gradient));
            const size_t words = (size_t)b.model->params[p].rows * b.model->params[p].cols;
            for (size_t i = 0; i < gradient.n * words; i++) gradient.values[i] *= 2;
        }
        TEST_OK(vpps_write_gradients(b.h));
        TEST_OK(vpps_update(b.h));
    }
    sn_expect_alike(&a, &b, 0);
}

/* A program can write a gradient that the graph does not give: the parameter then makes a step. */
SN_EACH(gradients_of_unused_parameters) {
    AT_END(sn_close) small_network n = sn_on(&settings[_i]);
    vpps_graph_clear(n.g);
    const vpps_node loss = vpps_sum_elements(n.g, vpps_parameter(n.g, n.b_c)); /* uses b_c only */
    vpps_gradient gradient = {.size = sizeof gradient};
    TEST_FAILS(vpps_param_gradient(n.model, n.U, &gradient), VPPS_STATE, "vpps_read_gradients");
    TEST_OK(vpps_backward(n.h, n.g, loss, NULL));
    TEST_OK(vpps_read_gradients(n.h));
    size_t count, again;
    float *before = handle_values(n.model, n.h, &count);
    TEST_OK(vpps_param_gradient(n.model, n.U, &gradient));
    ck_assert_uint_eq(gradient.n, 0);
    for (uint32_t i = 0; i < SN_HIDDEN * SN_HIDDEN; i++) ck_assert_float_eq(gradient.values[i], 0);
    gradient.values[3 * SN_HIDDEN + 1] = 1;
    TEST_OK(vpps_param_gradient(n.model, n.E, &gradient));
    ck_assert_uint_eq(gradient.n, 0);
    TEST_OK(vpps_write_gradients(n.h));
    TEST_OK(vpps_update(n.h));
    float *after = handle_values(n.model, n.h, &again);
    const vpps_param still[] = {n.E, n.W, n.b, n.C};
    const size_t element = SN_WORDS * SN_EMBED + SN_HIDDEN * SN_EMBED + 3 * SN_HIDDEN + 1; /* of U */
    ck_assert_float_lt(after[element], before[element]);
    expect_moved(&n, before, after, 4, still);
}

/* ---------------------------------------------------------------- what is forgotten, frozen, not finite */

SN_EACH(zeroed_gradients_leave_nothing) {
    AT_END(sn_close) small_network a = sn_on(&settings[_i]), b = sn_on(&settings[_i]);
    TEST_OK(vpps_backward(a.h, a.g, sn_build(&a, 3, 1), NULL));
    TEST_OK(vpps_backward(a.h, a.g, sn_build(&a, 4, 1), NULL));
    TEST_OK(vpps_zero_gradients(a.h));
    TEST_FAILS(vpps_update(a.h), VPPS_STATE, "no gradients");
    TEST_FAILS(vpps_write_gradients(a.h), VPPS_STATE, "no gradients");
    TEST_OK(vpps_read_gradients(a.h));
    double norm;
    TEST_OK(vpps_gradient_norm(a.model, VPPS_NO_PARAM, &norm));
    ck_assert_double_eq(norm, 0);
    for (uint32_t k = 0; k < 2; k++) {
        sn_parts(&a, sn_build(&a, k, 1));
        sn_fb(&b, k);
    }
    sn_expect_alike(&a, &b, 0);
}

SN_EACH(frozen_between_backward_and_update) {
    AT_END(sn_close) small_network n = sn_on(&settings[_i]);
    const vpps_param frozen[] = {n.E, n.W, n.b};
    size_t count;
    float *before = handle_values(n.model, n.h, &count);
    TEST_OK(vpps_backward(n.h, n.g, sn_build_many(&n, 0, 9), NULL)); /* uses all */
    for (int i = 0; i < 3; i++) TEST_OK(vpps_freeze(n.model, frozen[i], true));
    TEST_OK(vpps_update(n.h));
    expect_moved(&n, before, handle_values(n.model, n.h, &count), 3, frozen);
}

/* What a script's cells do backward. */
typedef struct work {
    uint32_t n_backward;                                 /* cells with backward work */
    uint32_t n_outers, n_contributions, n_beside_outers; /* the last: contributions of cells with outer products */
    uint64_t gradient_in;
} work;

static work work_of(const vpps_batch *b) {
    work w = {0};
    for (uint32_t i = 0; i < vpps_task_header_of(b->script)->n_blocks; i++) {
        const vpps_block *block = vpps_block_at(b->script, i);
        const vpps_compiled_cell *cell = b->cells[block->cell];
        if (block->group || (i && block[-1].cell == block->cell)) continue; /* another block of the same cell */
        bool backward = false;
        for (uint32_t s = 0; s < cell->n_stages; s++) backward |= cell->stages[s].backward;
        w.n_backward += backward;
        w.n_outers += cell->n_outers;
        w.n_contributions += cell->n_contributions;
        w.n_beside_outers += cell->n_outers ? cell->n_contributions : 0;
        w.gradient_in |= cell->needs.gradient_in;
    }
    return w;
}

/* If embedding and encoder are frozen, nothing of them runs backward, and the classifier contributes no gradients to them; if all is frozen, nothing
 * runs backward. */
SN_EACH(what_is_frozen_costs_no_backward_work) {
    AT_END(sn_close) small_network n = sn_on(&settings[_i]);
    const vpps_param encoder[] = {n.E, n.W, n.U, n.b}, all[] = {n.E, n.W, n.U, n.b, n.C, n.b_c};
    const struct {
        const vpps_param *params;
        uint32_t n, backward; /* cells with backward work: the loss's term, and the classifier */
    } frozen[] = {{encoder, 4, 2}, {all, 6, 0}};
    for (uint32_t k = 0; k < VPPS_COUNT(frozen); k++) {
        const vpps_batch *b;
        for (uint32_t i = 0; i < frozen[k].n; i++) TEST_OK(vpps_freeze(n.model, frozen[k].params[i], true));
        TEST_OK(vpps_handle_batch(n.h, n.g, sn_build_many(&n, 0, 9), &b));
        const work w = work_of(b);
        ck_assert_uint_eq(w.n_backward, frozen[k].backward);
        ck_assert_uint_eq(w.n_outers, k == 0 ? 2 : 0);
        ck_assert_uint_eq(w.n_beside_outers, 0);
        TEST_OK(vpps_fb(n.h, n.g, sn_build_many(&n, 0, 9), NULL));
    }
}

/* Records a cell that reads a word and predicts the next one. */
static vpps_cell record_step(const small_network *n) {
    vpps_graph *g = begin_cell(n->model, "step");
    const vpps_node x = vpps_lookup(g, n->E, vpps_pull_index(g)), before = vpps_gather(g, 0, 0, SN_HIDDEN, 1);
    const vpps_node h = vpps_tanh(g, vpps_affine2(g, n->b, n->W, x, n->U, before));
    TEST_OK(vpps_scatter(g, h));
    TEST_OK(vpps_push(g, vpps_cross_entropy(g, vpps_affine1(g, n->b_c, n->C, h), vpps_pull_index(g))));
    return end_cell(g);
}

/* Builds chains whose words are each followed by a class: by the cell, or by nodes of the graph. */
static vpps_node build_steps(const small_network *n, const vpps_cell *cell, uint32_t batch) {
    enum { CHAINS = 5, MOST = 6 };
    vpps_node terms[CHAINS * MOST];
    vpps_graph *g = n->g;
    uint32_t count = 0;
    vpps_graph_clear(g);
    for (uint32_t i = 0; i < CHAINS; i++) {
        uint64_t random = batch * 31 + i;
        vpps_node state = vpps_zeros(g, SN_HIDDEN, 1);
        vpps_vertex v = vpps_source(g, 1, &state);
        for (uint32_t k = 0; k < 2 + i % (MOST - 1); k++) {
            const uint32_t indices[] = {vpps_random_below(&random, SN_WORDS), vpps_random_below(&random, SN_CLASSES)};
            if (cell)
                v = APPLY(g, *cell, CHILDREN(1, &v), INDICES(2, indices));
            else
                state = sn_read(n, indices[0], state);
            terms[count++] = cell ? vpps_pushed(g, v, 0) : sn_loss(n, state, indices[1]);
        }
    }
    return vpps_average(g, count, terms);
}

/* The same with the classifier in the same cell: only its input has a gradient, no state has. It trains as with separate cells. */
SN_EACH(what_is_frozen_in_a_cell_costs_no_backward_work) {
    AT_END(sn_close) small_network a = sn_on(&settings[_i]), b = sn_on(&settings[_i]);
    const vpps_cell step = record_step(&a);
    const double error = sn_error(&settings[_i]);
    for (uint32_t k = 0; k < 4; k++) {
        const vpps_batch *batch;
        for (uint32_t p = 0; p < 4; p++) { /* frozen in every second batch */
            TEST_OK(vpps_freeze(a.model, (vpps_param[]){a.E, a.W, a.U, a.b}[p], k % 2 == 0));
            TEST_OK(vpps_freeze(b.model, (vpps_param[]){b.E, b.W, b.U, b.b}[p], k % 2 == 0));
        }
        TEST_OK(vpps_handle_batch(a.h, a.g, build_steps(&a, &step, k), &batch));
        const work w = work_of(batch);
        if (k % 2 == 0) ck_assert(w.n_outers == 2 && w.n_contributions == 0 && w.gradient_in == 0);
        if (k % 2 == 1) ck_assert(w.n_outers == 5 && w.n_contributions > 0 && w.gradient_in != 0);
        const float loss = train_batch(b.h, b.g, build_steps(&b, NULL, k));
        ck_assert_float_eq_tol(train_batch(a.h, a.g, build_steps(&a, &step, k)), loss, error * fabs((double)loss));
    }
    sn_expect_alike(&a, &b, error);
}

/* A loss that is not finite makes the update fail, not the backward pass, which still returns the requested values. */
SN_EACH(gradients_that_are_not_finite_change_nothing) {
    AT_END(sn_close) small_network n = sn_on(&settings[_i]);
    size_t count, again;
    FREED float *before = handle_values(n.model, n.h, &count);
    TEST_OK(vpps_backward(n.h, n.g, sn_build(&n, 1, 1), NULL));
    float right = NAN, value = 0;
    const vpps_node half = sn_build(&n, 2, 1), loss = vpps_scale(n.g, half, NAN), nodes[] = {half, loss};
    TEST_OK(vpps_backward(n.h, n.g, loss,
                          VPPS_REQUEST(.n_values = 2, .values = nodes, .value_outs = (float *[]){&right, &value})));
    ck_assert(isfinite(right) && isnan(value) && isnan(latest_loss(n.h)));
    TEST_OK(vpps_update(n.h));
    TEST_FAILS(vpps_sync_latest_loss(n.h, NULL), VPPS_NONFINITE, "batch 1: the loss is");
    FREED float *after = handle_values(n.model, n.h, &again);
    ck_assert_msg(!memcmp(before, after, count * sizeof *after), "parameters changed");
    TEST_FAILS(vpps_update(n.h), VPPS_STATE, "no gradients");
    ck_assert_float_finite(sn_step(&n, 1));
}

/* ---------------------------------------------------------------- groups of parameters */

/* A learning rate of 0 acts as freezing, but state goes on; a group with the optimizer's own numbers changes no bit. */
SN_EACH(groups_step_by_their_own_numbers) {
    const sn_setting *s = &settings[_i];
    AT_END(sn_close) small_network a = sn_on(s), b = sn_on(s), c = sn_on(s);
    const vpps_options o = sn_options_on(s);
    const vpps_param still[] = {a.E, a.W, a.b}, rest[] = {a.U, a.C, a.b_c};
    const vpps_param_group stays = {.size = sizeof stays, .lr = 0, .momentum = NAN, .weight_decay = NAN};
    const vpps_param_group own = {sizeof own, o.optimizer.lr, o.optimizer.momentum, o.optimizer.weight_decay};
    TEST_OK(vpps_set_param_group(a.h, 3, still, &stays));
    TEST_OK(vpps_set_param_group(a.h, 3, rest, &own));
    size_t count;
    float *before = handle_values(a.model, a.h, &count);
    for (uint32_t k = 0; k < 3; k++) TEST_OK(vpps_fb(a.h, a.g, sn_build_many(&a, 9 * k, 9), NULL));
    expect_moved(&a, before, handle_values(a.model, a.h, &count), 3, still);
    /* one step: the other parameters are as without groups, to the bit */
    TEST_OK(vpps_fb(b.h, b.g, sn_build_many(&b, 0, 9), NULL));
    TEST_OK(vpps_set_param_group(c.h, 3, still, &stays));
    sn_parts(&c, sn_build_many(&c, 0, 9));
    expect_moved(&b, handle_values(b.model, b.h, &count), handle_values(c.model, c.h, &count), 3, rest);
}

/* A group with learning rate 0.2 trains as a handle with 0.2; without the group, the handle's rate holds again. */
SN_EACH(groups_are_like_handles) {
    const sn_setting *s = &settings[_i];
    AT_END(sn_close) small_network a = sn_on(s), b = sn_on(s);
    const vpps_param all[] = {a.E, a.W, a.U, a.b, a.C, a.b_c};
    const vpps_param_group group = {sizeof group, 0.2f, 0.5f, 0.125f};
    TEST_OK(vpps_set_param_group(a.h, 6, all, &group));
    TEST_OK(vpps_set_learning_rate(b.h, group.lr));
    TEST_OK(vpps_set_momentum(b.h, group.momentum));
    TEST_OK(vpps_set_weight_decay(b.h, group.weight_decay));
    for (uint32_t k = 0; k < 3; k++) {
        TEST_OK(vpps_fb(a.h, a.g, sn_build_many(&a, 9 * k, 9), NULL));
        TEST_OK(vpps_fb(b.h, b.g, sn_build_many(&b, 9 * k, 9), NULL));
    }
    sn_expect_alike(&a, &b, 0);
    TEST_OK(vpps_set_param_group(a.h, 6, all, NULL));
    TEST_OK(vpps_set_learning_rate(a.h, group.lr));
    TEST_OK(vpps_set_momentum(a.h, group.momentum));
    TEST_OK(vpps_set_weight_decay(a.h, group.weight_decay));
    TEST_OK(vpps_fb(a.h, a.g, sn_build_many(&a, 0, 9), NULL));
    TEST_OK(vpps_fb(b.h, b.g, sn_build_many(&b, 0, 9), NULL));
    sn_expect_alike(&a, &b, 0);
    TEST_FAILS(vpps_set_param_group(a.h, 1, (vpps_param[]){77}, &group), VPPS_ARGUMENT, "77 is not a parameter");
    TEST_FAILS(vpps_set_param_group(a.h, 1, all, &(vpps_param_group){sizeof(vpps_param_group), -1, 0, 0}),
               VPPS_ARGUMENT, "learning rate -1");
    TEST_FAILS(vpps_set_param_group(a.h, 1, all, &(vpps_param_group){sizeof(vpps_param_group), 0, 2, 0}), VPPS_ARGUMENT,
               "momentum 2");
    TEST_FAILS(vpps_set_param_group(a.h, 1, all, &(vpps_param_group){sizeof(vpps_param_group), 0, 0, INFINITY}),
               VPPS_ARGUMENT, "decay inf");
    TEST_FAILS(vpps_set_momentum(a.h, NAN), VPPS_ARGUMENT, "momentum nan");
}

/* ---------------------------------------------------------------- misuse */

TEST(calls_in_a_wrong_order) {
    AT_END(sn_close) small_network n = sn_on(&settings[_i]);
    vpps_gradient gradient = {.size = sizeof gradient};
    double norm;
    TEST_FAILS(vpps_update(n.h), VPPS_STATE, "vpps_backward");
    TEST_OK(vpps_backward(n.h, n.g, sn_build(&n, 2, 1), NULL));
    TEST_FAILS(vpps_fb(n.h, n.g, sn_build(&n, 2, 1), NULL), VPPS_STATE, "1 calls of vpps_backward");
    TEST_FAILS(vpps_backward(n.h, n.g, VPPS_NO_NODE, NULL), VPPS_ARGUMENT, "no loss");
    TEST_OK(vpps_update(n.h));
    sn_fb(&n, 2);
    TEST_FAILS(vpps_param_gradient(n.model, 99, &gradient), VPPS_ARGUMENT, "99 is not a parameter");
    TEST_FAILS(vpps_gradient_norm(n.model, 99, &norm), VPPS_ARGUMENT, "99 is not a parameter");
}

/* Dropout masks differ between calls; the first call's are vpps_fb's. */
SN_EACH(dropout_differs_from_call_to_call) {
    AT_END(sn_close) small_network n = sn_on(&settings[_i]);
    float loss[4];
    for (uint32_t k = 0; k < 4; k++) {
        if (k == 3) TEST_OK(vpps_zero_gradients(n.h));
        TEST_OK(vpps_backward(n.h, n.g, sn_build(&n, 3, 1), NULL));
        loss[k] = latest_loss(n.h);
    }
    ck_assert_float_ne(loss[0], loss[1]);
    ck_assert_float_ne(loss[1], loss[2]);
    ck_assert_float_eq(loss[0], loss[3]);
}
