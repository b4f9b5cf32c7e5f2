/* equations_words.c - the equations of the networks that predict words: language models and translation. */
#include "equations.h"

#include "common/testing.h"

/* ---------------------------------------------------------------- lstm-lm: Zaremba, Sutskever and Vinyals 2014, 3 */

void lstm_lm_equations(const subject *s, const net_example *x, vec logits[MOST_POSITIONS]) {
    vertex_state at[MOST_LAYERS];
    start_layers(s, at);
    for (uint32_t t = 0; t + 1 < x->sentence.n_words; t++) {
        const vec word = entry(s->w, "embedding", x->sentence.words[t]);
        logits[t] = output_layer(s->w, step_layers(s, lstm, "lstm", word, at));
    }
}

/* ---------------------------------------------------------------- decoders: Sutskever et al. 2014; Luong et al. 2015, 3 */

/* (5), (7), (8): tanh(W_a [sum_j a_j h_j; s]), a = softmax of the h_j . s */
static vec attended(const weights *w, const vec *memory, uint32_t n, vec s) {
    double total = 0;
    vec context = zeros(s.n);
    for (uint32_t j = 0; j < n; j++) total += exp(inner_product(memory[j], s));
    for (uint32_t j = 0; j < n; j++) {
        const double a = exp(inner_product(memory[j], s)) / total;
        for (uint32_t i = 0; i < s.n; i++) context.at[i] += a * memory[j].at[i];
    }
    return tanh_of(times(w, "W_a", concatenation(context, s)));
}

/* Predicts the target. With input feeding (3.3) the first layer reads the word and the preceding attentional vector, at first zeros. now: the
 * encoder's last states of each layer. h[0 .. n): h of its last layer; h[0] is the start's, which attention reads only if there is no other. */
static void say_target(const subject *s, step_equations *step, vertex_state now[MOST_LAYERS], const vec *h, uint32_t n,
                       const vpps_sentence *target, vec logits[MOST_POSITIONS]) {
    const vec *memory = n > 1 ? h + 1 : h;
    const bool feeding = s->config->input_feeding, attention = s->config->attention || feeding;
    vec said = zeros(s->config->hidden);
    for (uint32_t k = 0; k + 1 < target->n_words; k++) {
        const vec word = entry(s->w, "target", target->words[k]);
        const vec top = step_layers(s, step, "decoder", feeding ? concatenation(word, said) : word, now);
        said = attention ? attended(s->w, memory, n > 1 ? n - 1 : 1, top) : top;
        logits[k] = output_layer(s->w, said);
    }
}

/* ---------------------------------------------------------------- lstm-nmt */

void lstm_nmt_equations(const subject *s, const net_example *x, vec logits[MOST_POSITIONS]) {
    const vpps_sentence *source = &x->sentence;
    vertex_state at[MOST_LAYERS];
    vec h[MOST_POSITIONS] = {zeros(s->config->hidden)};
    start_layers(s, at);
    for (uint32_t j = 0; j < source->n_words; j++)
        h[j + 1] = step_layers(s, lstm, "encoder", entry(s->w, "source", source->words[j]), at);
    say_target(s, lstm, at, h, source->n_words + 1, &x->target, logits);
}

/* ---------------------------------------------------------------- lattice-gru: Su et al. 2017 */

/* Node e: h = sum_k g_k * h_k / sum_k g_k, g_k = sigmoid(U_g h_k + b_g), h_k a step along arc k from where it begins. */
static vertex_state merged(const subject *s, const vpps_lattice *l, uint32_t e, const vertex_state *at) {
    vec gates = zeros(s->config->hidden), shares = gates;
    for (uint32_t a = l->first_arc[e]; a < l->first_arc[e + 1]; a++) {
        const vpps_lattice_arc *arc = &l->arcs[a];
        const vec x = entry(s->w, arc->is_character ? "characters" : "words", arc->id);
        const vec h = gru(s->w, "encoder", x, at[arc->from]).h,
                  g = sigmoid_of(affine(s->w, "encoder.b_g", "encoder.U_g", h));
        gates = sum_of(gates, g);
        shares = sum_of(shares, product_of(g, h));
    }
    return (vertex_state){.h = quotient_of(shares, gates)};
}

void lattice_gru_equations(const subject *s, const net_example *x, vec logits[MOST_POSITIONS]) {
    const vpps_lattice *l = x->lattice;
    vertex_state at[MOST_POSITIONS] = {start(s->config->hidden)};
    vec h[MOST_POSITIONS] = {at[0].h};
    for (uint32_t e = 1; e < l->n_nodes; e++) {
        at[e] = merged(s, l, e, at);
        h[e] = at[e].h;
    }
    say_target(s, gru, &at[l->n_nodes - 1], h, l->n_nodes, &x->target, logits);
}
