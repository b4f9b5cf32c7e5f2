/* decoding_tests.c - predicting a target, or a text, word by word (encode and decode) gives what the whole gives (add). */
#include "fixture.h"

/* Returns what is made word by word: a target, or a text. */
static const vpps_sentence *made(const network *n, const net_example *x) {
    return n->kind == NET_TEXT ? &x->sentence : &x->target;
}

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

/* Checks a decoding after encode or decode. */
static void check_decoding(const fixture *f, const net_decoding *d) {
    ck_assert_uint_ge(d->n_states, 1);
    ck_assert_uint_le(d->n_states, NET_STATES);
    ck_assert_msg((d->n_memory > 0) == (f->config.attention || f->config.input_feeding), "%s: %u vectors of memory",
                  f->name, d->n_memory);
}

/* Makes one step from vectors that were computed before. */
static void step(fixture *f, vpps_handle *h, uint32_t word, const vectors *memory, vectors *states, vectors *logits) {
    vpps_node given[MOST_POSITIONS];
    net_decoding d = {.n_states = states->n, .memory = given, .n_memory = memory->n, .logits = VPPS_NO_NODE};
    vpps_graph_clear(f->g);
    give_back(f, states, d.states);
    give_back(f, memory, given);
    TEST_OK(f->net->decode(f->state, f->g, word, &d));
    check_decoding(f, &d);
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
    const vpps_sentence *words = made(f->net, x);
    static vectors whole, before, states, memory, logits;
    net_decoding d = {.n_states = 0};
    if (words->n_words < 2) return;
    vpps_graph_clear(f->g);
    add_example(f, i, x, NET_HEADS_ALL);
    compute(f, h, net_positions(f->net->kind, x), f->logits[i], &whole);

    vpps_graph_clear(f->g);
    if (f->net->encode) {
        TEST_OK(f->net->encode(f->state, f->g, x, &d));
        check_decoding(f, &d);
    }
    memory.n = states.n = 0;
    if (d.n_states) compute(f, h, d.n_states, d.states, &states);
    if (d.n_memory) compute(f, h, d.n_memory, d.memory, &memory);
    for (uint32_t k = 0; k + 1 < words->n_words; k++) {
        before = states;
        step(f, h, words->words[k], &memory, &states, &logits);
        check_logits(f, i, k, logits.values[0], whole.values[k]);
        check_use(f, h, words->words[k], &memory, &before, &logits);
    }
}

TEST_GROUP("decoding");

TEST_EACH(steps_go_on_from_states_given_back, 0, case_count()) {
    const vpps_options o = options_for("cpu");
    if (!case_at(_i).net->decode) return;
    AT_END(fixture_close) fixture f;
    fixture_open(&f, _i, NULL, 6, 5, 0);
    OWNED(vpps_handle) *h = new_handle(f.model, &o);
    for (uint32_t i = 0; i < f.e->n; i++) decode_stepwise(&f, h, i);
}
