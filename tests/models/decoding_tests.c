/* decoding_tests.c - predicting a target word by word (encode and decode) gives what the whole target gives (add). */
#include "fixture.h"

static bool makes_targets(const network *n) { return n->encode != NULL; }

/* Returns what is made word by word: a target, or a text. */
static const vpps_sentence *made(const network *n, const net_example *x) {
    return n->kind == NET_TEXT ? &x->sentence : &x->target;
}

/* Checks a decoding after encode or decode. */
static void check_decoding(const fixture *f, const net_decoding *d) {
    ck_assert_uint_ge(d->n_states, 1);
    ck_assert_uint_le(d->n_states, NET_STATES);
    ck_assert_msg((d->n_memory > 0) == (f->config.attention || f->config.input_feeding), "%s: %u vectors of memory",
                  f->name, d->n_memory);
}

/* ---------------------------------------------------------------- on one graph */

TEST_GROUP("decoding");

TEST_EACH(steps_are_those_of_the_whole, 0, case_count()) {
    fixture f, whole;
    if (!case_at(_i).net->decode) return;
    fixture_open(&f, _i, NULL, 6, 5, 0);
    fixture_open(&whole, _i, NULL, 6, 5, 0);
    ref_model *m = scattered_model(f.model);
    build(&whole, NET_HEADS_ALL);
    ref_run *all = run_forward(whole.g, m, &(ref_mode){.training = false});
    for (uint32_t i = 0; i < f.e->n; i++) {
        const net_example *x = &f.e->x[i];
        vpps_node logits[MOST_POSITIONS];
        const vpps_sentence *target = made(f.net, x);
        net_decoding d = {.n_states = 0};
        vpps_graph_clear(f.g);
        if (f.net->encode) TEST_OK(f.net->encode(f.state, f.g, x, &d));
        for (uint32_t k = 0; k + 1 < target->n_words; k++) {
            if (k || f.net->encode) check_decoding(&f, &d);
            TEST_OK(f.net->decode(f.state, f.g, target->words[k], &d));
            logits[k] = d.logits;
        }
        ref_run *r = run_forward(f.g, m, &(ref_mode){.training = false});
        for (uint32_t k = 0; k + 1 < target->n_words; k++) {
            const double off = difference(all, whole.logits[i][k], r, logits[k]);
            ck_assert_msg(off < 1e-12, "%s, example %u, word %u: off by %g", f.name, i, k, off);
        }
        ref_run_destroy(r);
    }
    ref_run_destroy(all);
    ref_model_destroy(m);
    fixture_close(&whole);
    fixture_close(&f);
}

/* ---------------------------------------------------------------- from what was computed */

enum { MOST_ELEMENTS = 32 };

/* Computed vectors, for later graphs. */
typedef struct vectors {
    uint32_t n, elements[MOST_POSITIONS];
    float values[MOST_POSITIONS][MOST_ELEMENTS];
} vectors;

/* Computes n nodes as vectors first, first + 1, .. of v. */
static void compute(fixture *f, vpps_handle *h, uint32_t n, const vpps_node *nodes, vectors *v) {
    float *outs[MOST_POSITIONS];
    ck_assert_uint_le(n, MOST_POSITIONS);
    for (uint32_t j = 0; j < n; j++) {
        uint32_t cols;
        TEST_OK(vpps_node_shape(f->g, nodes[j], &v->elements[j], &cols));
        ck_assert(cols == 1 && v->elements[j] <= MOST_ELEMENTS);
        outs[j] = v->values[j];
    }
    TEST_OK(vpps_forward(h, f->g, n, nodes, outs));
    v->n = n;
}

static void give_back(fixture *f, const vectors *v, vpps_node *nodes) {
    for (uint32_t j = 0; j < v->n; j++) nodes[j] = vpps_input(f->g, v->elements[j], 1, v->values[j]);
}

static void check_logits(const fixture *f, uint32_t i, uint32_t k, const float *got, const float *want) {
    for (uint32_t j = 0; j < f->config.classes; j++)
        ck_assert_msg(fabs((double)got[j] - (double)want[j]) < 1e-5, "%s, example %u, word %u: logit %u is %g, not %g",
                      f->name, i, k, j, (double)got[j], (double)want[j]);
}

/* Makes one step from vectors that were computed before. */
static void step(fixture *f, vpps_handle *h, uint32_t word, const vectors *memory, vectors *states, vectors *logits) {
    vpps_node given[MOST_POSITIONS];
    net_decoding d = {.n_states = states->n, .memory = given, .n_memory = memory->n, .logits = VPPS_NO_NODE};
    vpps_graph_clear(f->g);
    give_back(f, states, d.states);
    give_back(f, memory, given);
    TEST_OK(f->net->decode(f->state, f->g, word, &d));
    compute(f, h, 1, &d.logits, logits);
    compute(f, h, d.n_states, d.states, states);
}

/* Checks that every vector that is passed back matters. */
static void check_use(fixture *f, vpps_handle *h, uint32_t word, const vectors *memory, const vectors *states,
                      const vectors *logits) {
    static vectors other_memory, other_states, other;
    for (uint32_t j = 0; j < memory->n + states->n; j++) {
        double change = 0;
        other_memory = *memory;
        other_states = *states;
        (j < memory->n ? other_memory.values[j] : other_states.values[j - memory->n])[0] += 1;
        step(f, h, word, &other_memory, &other_states, &other);
        for (uint32_t i = 0; i < f->config.classes; i++)
            change = fmax(change, fabs((double)other.values[0][i] - (double)logits->values[0][i]));
        ck_assert_msg(change > 1e-5, "%s: %s %u of %u is not used", f->name, j < memory->n ? "memory" : "state",
                      j < memory->n ? j : j - memory->n, j < memory->n ? memory->n : states->n);
    }
}

static void decode_stepwise(fixture *f, vpps_handle *h, uint32_t i) {
    const net_example *x = &f->e->x[i];
    static vectors whole, before, states, memory, logits;
    net_decoding d;
    vpps_graph_clear(f->g);
    add_example(f, i, x, NET_HEADS_ALL);
    compute(f, h, net_positions(f->net->kind, x), f->logits[i], &whole);

    vpps_graph_clear(f->g);
    TEST_OK(f->net->encode(f->state, f->g, x, &d));
    check_decoding(f, &d);
    memory.n = 0;
    compute(f, h, d.n_states, d.states, &states);
    if (d.n_memory) compute(f, h, d.n_memory, d.memory, &memory);
    for (uint32_t k = 0; k + 1 < x->target.n_words; k++) {
        before = states;
        step(f, h, x->target.words[k], &memory, &states, &logits);
        check_logits(f, i, k, logits.values[0], whole.values[k]);
        check_use(f, h, x->target.words[k], &memory, &before, &logits);
    }
}

TEST_EACH(steps_go_on_from_states_given_back, 0, case_count()) {
    fixture f;
    vpps_options o = options_for("cpu");
    if (!makes_targets(case_at(_i).net)) return;
    fixture_open(&f, _i, NULL, 6, 5, 0);
    vpps_handle *h = new_handle(f.model, &o);
    for (uint32_t i = 0; i < f.e->n; i++) decode_stepwise(&f, h, i);
    vpps_handle_destroy(h);
    fixture_close(&f);
}
