/* equation_tests.c - compares every network on the engine with its equations (equations.h), through the public interface alone: the logits of all
 * positions, the loss that is trained, and a training step. */
#include "equations.h"
#include "fixture.h"

enum { ODD_HIDDEN = 5, ODD_EMBED = 7, MOST_CLASSES = 9 };

/* A network on an engine, with parameters away from the symmetries of initial values. */
typedef struct trial {
    fixture f;
    drawn_examples drawn;
    weights w;
    vpps_handle *h;
} trial;

static void scatter_values(vpps_model *model) {
    uint64_t random = test_seed() + 29;
    for (vpps_param p = 0; p < vpps_param_count(model); p++) {
        vpps_param_info info = {.size = sizeof info};
        float *values = vpps_param_values(model, p);
        TEST_OK(vpps_param_describe(model, p, &info));
        const size_t n = (size_t)info.count * info.rows * info.cols;
        for (size_t i = 0; i < n; i++) values[i] += 1.6f * vpps_random_unit(&random) - 0.8f;
    }
}

/* Opens case i with hand-made or drawn examples. One plain SGD step subtracts the gradients from the parameters. */
static void trial_open(trial *t, int i, bool by_hand, float dropout) {
    vpps_options o = options_for("cpu");
    o.optimizer = (vpps_optimizer){.kind = VPPS_SGD, .lr = 1};
    if (!by_hand) draw_examples(&t->drawn, case_at(i).net->kind, test_seed() + 5);
    fixture_open(&t->f, i, by_hand ? NULL : &t->drawn.e, ODD_HIDDEN, ODD_EMBED, dropout);
    scatter_values(t->f.model);
    weights_copy(&t->w, t->f.model);
    TEST_OK(vpps_handle_create(&t->h, t->f.model, &o));
}

static void trial_close(trial *t) {
    vpps_handle_destroy(t->h);
    weights_free(&t->w);
    fixture_close(&t->f);
}

/* ---------------------------------------------------------------- logits and losses */

static void say(const trial *t, const net_example *x, vec logits[MOST_POSITIONS]) {
    const subject s = {&t->f.config, &t->w};
    equations_of(t->f.net->name)(&s, x, logits);
}

static double nll_of(vec logits, uint32_t label) {
    double sum = 0;
    for (uint32_t j = 0; j < logits.n; j++) sum += exp(logits.at[j]);
    return log(sum) - logits.at[label];
}

/* Returns whether the loss counts position k of n. */
static bool counts(const trial *t, const net_example *x, uint32_t k, uint32_t n, net_heads heads) {
    const bool roots = t->f.net->kind == NET_TREES && (heads == NET_HEADS_ROOT || roots_only(t->f.net));
    return example_label(t->f.net->kind, x, k) < t->f.config.classes && (!roots || k + 1 == n);
}

/* Returns the batch's loss: summed over each example, averaged over the examples. */
static double loss_of(const trial *t, net_heads heads) {
    double sum = 0;
    for (uint32_t i = 0; i < t->f.e->n; i++) {
        const net_example *x = &t->f.e->x[i];
        const uint32_t n = net_positions(t->f.net->kind, x);
        vec logits[MOST_POSITIONS];
        say(t, x, logits);
        for (uint32_t k = 0; k < n; k++)
            if (counts(t, x, k, n, heads)) sum += nll_of(logits[k], example_label(t->f.net->kind, x, k));
    }
    return sum / t->f.e->n;
}

/* Compares within the error of single precision and sums of some hundred terms. */
static void check_close(double got, double want, const trial *t, uint32_t i, uint32_t k, const char *what) {
    ck_assert_msg(fabs(got - want) <= 1e-5 * (1 + fabs(want)), "%s, example %u, position %u: %s %.8g, not %.8g",
                  t->f.name, i, k, what, got, want);
}

/* The engine's results at all positions of all examples. */
typedef struct said {
    float logits[MOST_EXAMPLES][MOST_POSITIONS][MOST_CLASSES], nll[MOST_EXAMPLES][MOST_POSITIONS];
} said;

static void ask_engine(trial *t, said *to) {
    static vpps_node nodes[2 * MOST_EXAMPLES * MOST_POSITIONS];
    static float *outs[2 * MOST_EXAMPLES * MOST_POSITIONS];
    uint32_t n = 0;
    ck_assert_uint_le(t->f.config.classes, MOST_CLASSES);
    build(&t->f, NET_HEADS_ALL);
    for (uint32_t i = 0; i < t->f.e->n; i++) {
        for (uint32_t k = 0; k < net_positions(t->f.net->kind, &t->f.e->x[i]); k++) {
            if (t->f.logits[i][k] == VPPS_NO_NODE) continue;
            nodes[n] = t->f.logits[i][k];
            outs[n++] = to->logits[i][k];
            if (t->f.nll[i][k] == VPPS_NO_NODE) continue;
            nodes[n] = t->f.nll[i][k];
            outs[n++] = &to->nll[i][k];
        }
    }
    TEST_OK(vpps_forward(t->h, t->f.g, n, nodes, outs));
}

static void check_example(const trial *t, uint32_t i, const said *got) {
    vec want[MOST_POSITIONS];
    say(t, &t->f.e->x[i], want);
    for (uint32_t k = 0; k < net_positions(t->f.net->kind, &t->f.e->x[i]); k++) {
        if (t->f.logits[i][k] == VPPS_NO_NODE) continue;
        ck_assert_uint_eq(want[k].n, t->f.config.classes);
        for (uint32_t j = 0; j < want[k].n; j++)
            check_close((double)got->logits[i][k][j], want[k].at[j], t, i, k, "a logit is");
        if (t->f.nll[i][k] == VPPS_NO_NODE) continue;
        const uint32_t label = example_label(t->f.net->kind, &t->f.e->x[i], k);
        check_close((double)got->nll[i][k], nll_of(want[k], label), t, i, k, "the loss is");
    }
}

TEST_GROUP("equations");

/* Dropout is the identity if nothing is trained. */
TEST_EACH(logits_are_those_of_the_equations, 0, case_count()) {
    for (int by_hand = 0; by_hand < 2; by_hand++) {
        static trial t;
        static said got;
        trial_open(&t, _i, by_hand, by_hand ? 0.4f : 0);
        ask_engine(&t, &got);
        for (uint32_t i = 0; i < t.f.e->n; i++) check_example(&t, i, &got);
        trial_close(&t);
    }
}

/* ---------------------------------------------------------------- a step of training */

/* Moves the parameters from where they began by so much along a direction. */
static void move(const trial *t, double *const *from, double *const *direction, double by) {
    for (vpps_param p = 0; p < t->w.n; p++)
        for (size_t i = 0; i < t->w.elements[p]; i++) t->w.of[p][i] = from[p][i] + by * direction[p][i];
}

/* Compares two slopes of the loss along a random direction of all parameters: by the equations, and by the gradient of the engine's step. If they
 * agree, so do, except by accident, all elements of the gradient. */
static void check_slope(const trial *t, net_heads heads, uint64_t *random) {
    weights before, direction;
    double got = 0, size = 0;
    const double h = 1e-6;
    weights_copy(&before, t->f.model);
    weights_copy(&direction, t->f.model);
    for (vpps_param p = 0; p < t->w.n; p++) {
        for (size_t i = 0; i < t->w.elements[p]; i++) {
            const double after = before.of[p][i], change = t->w.of[p][i] - after;
            before.of[p][i] = t->w.of[p][i];
            direction.of[p][i] = (double)vpps_random_unit(random) - 0.5;
            got += direction.of[p][i] * change;
            size += fabs(direction.of[p][i] * change);
        }
    }
    move(t, before.of, direction.of, h);
    double want = loss_of(t, heads);
    move(t, before.of, direction.of, -h);
    want = (want - loss_of(t, heads)) / (2 * h);
    ck_assert_msg(fabs(got - want) <= 1e-6 * (1 + size), "%s: the slope of the loss is %.8g, the engine says %.8g",
                  t->f.name, want, got);
    weights_free(&before);
    weights_free(&direction);
}

static void check_step(int i, bool by_hand, net_heads heads) {
    static trial t;
    float loss;
    uint64_t random = test_seed();
    trial_open(&t, i, by_hand, 0);
    loss = train_batch(t.h, t.f.g, build(&t.f, heads));
    const double want = loss_of(&t, heads);
    ck_assert_msg(fabs((double)loss - want) <= 1e-5 * want, "%s: loss %.8g, not %.8g", t.f.name, (double)loss, want);
    TEST_OK(vpps_read_parameters(t.h));
    check_slope(&t, heads, &random);
    trial_close(&t);
}

TEST_EACH(a_step_follows_the_equations, 0, case_count()) {
    const network *n = case_at(_i).net;
    check_step(_i, false, NET_HEADS_LABELLED);
    if (n->kind == NET_TREES && !roots_only(n)) check_step(_i, true, NET_HEADS_ROOT);
}
