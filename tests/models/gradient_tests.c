/* gradient_tests.c - compares gradients in double precision with central differences, which checks the networks as recorded. The engine's own
 * gradients are checked through the losses of some steps (learning_tests.c). */
#include "fixture.h"

#include "runtime/simt/fiber.h"

#define SLOPE_ERROR 1e-6 /* h^2 times the third derivative, and the loss's rounding over h */

/* Returns how much a gradient differs from the slope of the loss in its element, by central differences over shorter and shorter distances, since a
 * relu's kink may be near. */
static double slope_error(const fixture *f, vpps_node loss, const ref_mode *mode, ref_model *m, size_t element,
                          double got) {
    const double old = m->values[element];
    double error = 0, h = 1e-5;
    for (int way = 0; way < 4; way++, h /= 10) {
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

/* Checks every fifth element of every parameter (small scale: every tenth; full scale: all), and that each parameter matters. */
static void check_slopes(int i, float dropout) {
    const ref_mode mode = {.training = true, .dropout_key = 99};
    const size_t stride = test_full() ? 1 : 10 / test_scaled(2); /* prime to the sizes 3 and 4 */
    AT_END(fixture_close) fixture f;
    fixture_open(&f, i, NULL, 4, 3, dropout);
    f.costs = true;
    const vpps_node loss = build(&f, NET_HEADS_LABELLED);
    OWNED(ref_model) *m = scattered_model(f.model);
    OWNED(ref_run) *r = run_forward(f.g, m, &mode);
    ref_backward(r, m, loss);
    for (uint32_t p = 0; p < m->n; p++) {
        const char *name = f.model->params[p].name;
        double largest = 0;
        for (size_t e = m->first[p]; e < m->first[p + 1]; e++) {
            const double got = r->param_grads[e];
            largest = fmax(largest, fabs(got));
            if (e % stride) continue;
            const double error = slope_error(&f, loss, &mode, m, e, got);
            ck_assert_msg(error < SLOPE_ERROR, "%s: gradient of %s[%zu] is %.9g, which is not the slope: off by %.3g",
                          f.name, name, e - m->first[p], got, error);
        }
        /* dropout may cut a small network in two */
        ck_assert_msg(dropout > 0 || largest > 1e-9, "%s: the loss does not depend on %s", f.name, name);
    }
}

TEST_GROUP("gradients", .left_out = VPPS_SIMT_TSAN ? "one thread makes those of the reference" : NULL);

TEST_EACH(gradients_are_slopes, 0, case_count()) { check_slopes(_i, 0); }

TEST_EACH(gradients_are_slopes_with_dropout, 0, case_count()) { check_slopes(_i, 0.3f); }

TEST_EACH(dropout_drops, 0, case_count()) {
    const net_case c = case_at(_i);
    if (!HAS_OPTION(c.net, dropout)) return;
    double losses[2][2];
    for (int drop = 0; drop < 2; drop++) {
        fixture f;
        fixture_open(&f, _i, NULL, 8, 8, drop ? 0.5f : 0);
        const vpps_node loss = build(&f, NET_HEADS_LABELLED);
        ref_model *m = scattered_model(f.model);
        for (int k = 0; k < 2; k++) {
            const ref_mode mode = {.training = true, .dropout_key = 5 + (uint64_t)k};
            losses[drop][k] = loss_value(f.g, m, &mode, loss);
        }
        ref_model_destroy(m);
        fixture_close(&f);
    }
    ck_assert_msg(losses[0][0] == losses[0][1], "%s: another mask without dropout", c.name);
    ck_assert_msg(fabs(losses[1][0] - losses[1][1]) > 1e-6, "%s: masks do not matter", c.name);
}
