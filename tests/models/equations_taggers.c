/* equations_taggers.c - the equations of the networks that tag words of sentences and characters of lattices, and that
 * classify sentences. */
#include "equations.h"

#include "common/testing.h"

/* ---------------------------------------------------------------- bilstm-tagger: Huang, Xu and Yu 2015, 2.2 */

static vec tag_layers(const subject *s, vec h) {
    return output_layer(s->w, s->config->mlp ? hidden_layer(s->w, h) : h);
}

/* h_f(k) and h_b(k) of x_1 .. x_n, in the layer of that number. */
static void both_ways(const subject *s, uint32_t layer, const vec *x, uint32_t n, vec *h_f, vec *h_b) {
    const layer_name from_left = name_of_layer("forward", layer), from_right = name_of_layer("backward", layer);
    vertex_state forward = start(s->config->hidden), backward = forward;
    for (uint32_t k = 0; k < n; k++) {
        forward = lstm(s->w, from_left.text, x[k], forward);
        h_f[k] = forward.h;
    }
    for (uint32_t k = n; k-- > 0;) {
        backward = lstm(s->w, from_right.text, x[k], backward);
        h_b[k] = backward.h;
    }
}

/* The same in the last layer. */
static void both_ways_up(const subject *s, const vec *x, uint32_t n, vec *h_f, vec *h_b) {
    vec joined[MOST_POSITIONS];
    both_ways(s, 1, x, n, h_f, h_b);
    for (uint32_t layer = 2; layer <= s->config->layers; layer++) {
        for (uint32_t k = 0; k < n; k++) joined[k] = concatenation(h_f[k], h_b[k]);
        both_ways(s, layer, joined, n, h_f, h_b);
    }
}

static void tag(const subject *s, const vec *x, uint32_t n, vec logits[MOST_POSITIONS]) {
    vec h_f[MOST_POSITIONS], h_b[MOST_POSITIONS];
    both_ways_up(s, x, n, h_f, h_b);
    for (uint32_t k = 0; k < n; k++) logits[k] = tag_layers(s, concatenation(h_f[k], h_b[k]));
}

static void embed_words(const subject *s, const vpps_sentence *sentence, vec words[MOST_POSITIONS]) {
    for (uint32_t k = 0; k < sentence->n_words; k++) words[k] = entry(s->w, "embedding", sentence->words[k]);
}

void bilstm_tagger_equations(const subject *s, const net_example *x, vec logits[MOST_POSITIONS]) {
    vec words[MOST_POSITIONS];
    embed_words(s, &x->sentence, words);
    tag(s, words, x->sentence.n_words, logits);
}

/* ---------------------------------------------------------------- bilstm-classifier: Graves and Schmidhuber 2005 */

void bilstm_classifier_equations(const subject *s, const net_example *x, vec logits[MOST_POSITIONS]) {
    vec words[MOST_POSITIONS], h_f[MOST_POSITIONS], h_b[MOST_POSITIONS];
    embed_words(s, &x->sentence, words);
    both_ways_up(s, words, x->sentence.n_words, h_f, h_b);
    logits[0] = tag_layers(s, concatenation(h_f[x->sentence.n_words - 1], h_b[0]));
}

/* ---------------------------------------------------------------- act: Graves 2016, section 2 */

/* s_t, from s_(t-1). */
static vec ponder(const subject *s, vec x, vec state) {
    const double epsilon = 0.01;
    vec mean = zeros(state.n);
    double halted = 0;
    for (uint32_t n = 1; n <= s->config->turns; n++) {
        vec sum = affine2(s->w, "b", "W", x, "U_s", state);
        if (n == 1) sum = sum_of(sum, vector(s->w, "w_1"));
        state = tanh_of(sum);
        const double h = sigmoid_of(affine(s->w, "b_p", "U_p", state)).at[0];
        const bool last = halted + h >= 1 - epsilon || n == s->config->turns;
        for (uint32_t i = 0; i < state.n; i++) mean.at[i] += (last ? 1 - halted : h) * state.at[i];
        halted += h;
        if (last) break;
    }
    return mean;
}

void act_equations(const subject *s, const net_example *x, vec logits[MOST_POSITIONS]) {
    vec words[MOST_POSITIONS], state = zeros(s->config->hidden);
    embed_words(s, &x->sentence, words);
    for (uint32_t t = 0; t < x->sentence.n_words; t++) state = ponder(s, words[t], state);
    logits[0] = output_layer(s->w, state);
}

/* ---------------------------------------------------------------- bilstm-char-tagger: Ling et al. 2015 */

/* [g_f(l); g_b(1)] */
static vec spelled(const subject *s, const net_spelling *z) {
    const uint32_t q = s->config->embed / 2, p = s->config->embed - q;
    vertex_state forward = start(p), backward = start(q);
    for (uint32_t j = 0; j < z->n; j++) {
        forward = lstm(s->w, "spell_forward", entry(s->w, "characters", z->characters[j]), forward);
        backward = lstm(s->w, "spell_backward", entry(s->w, "characters", z->characters[z->n - 1 - j]), backward);
    }
    return concatenation(forward.h, backward.h);
}

void bilstm_char_tagger_equations(const subject *s, const net_example *x, vec logits[MOST_POSITIONS]) {
    vec words[MOST_POSITIONS];
    for (uint32_t k = 0; k < x->sentence.n_words; k++) {
        const bool rare = x->spellings[k].n > 0;
        words[k] = rare ? spelled(s, &x->spellings[k]) : entry(s->w, "embedding", x->sentence.words[k]);
    }
    tag(s, words, x->sentence.n_words, logits);
}

/* ---------------------------------------------------------------- lattice-lstm: Zhang and Yang 2018, 3.3 */

/* Adds exp(gate) * c to shares.c, and exp(gate) to shares.h. */
static void add_share(vertex_state *shares, vec gate, vec c) {
    shares->h = sum_of(shares->h, exp_of(gate));
    shares->c = sum_of(shares->c, product_of(exp_of(gate), c));
}

/* Eqs. (13) and (14): a word from the vertex_state at its first character, b; x is its last character. */
static void add_word(const weights *w, uint32_t word, const vertex_state *b, vec x, vertex_state *shares) {
    const vec x_w = entry(w, "words", word);
    const vec i = sigmoid_of(affine2(w, "word.b_i", "word.W_i", x_w, "word.U_i", b->h)),
              f = sigmoid_of(affine2(w, "word.b_f", "word.W_f", x_w, "word.U_f", b->h)),
              u = tanh_of(affine2(w, "word.b_u", "word.W_u", x_w, "word.U_u", b->h)),
              c_w = sum_of(product_of(i, u), product_of(f, b->c));
    add_share(shares, sigmoid_of(affine2(w, "word.b_l", "word.W_l", x, "word.U_l", c_w)), c_w);
}

void lattice_lstm_equations(const subject *s, const net_example *x, vec logits[MOST_POSITIONS]) {
    const vpps_lattice *l = x->lattice;
    const weights *w = s->w;
    vertex_state at[MOST_POSITIONS] = {start(s->config->hidden)};
    for (uint32_t e = 1; e < l->n_nodes; e++) {
        const vpps_lattice_arc *arc = &l->arcs[l->first_arc[e]], *end = &l->arcs[l->first_arc[e + 1]];
        const vec z = entry(w, "characters", arc->id), h = at[e - 1].h;
        at[e] = lstm(w, "char", z, at[e - 1]); /* (11) */
        if (end - arc > 1) {                   /* (15), (16) */
            const vec i = sigmoid_of(affine2(w, "char.b_i", "char.W_i", z, "char.U_i", h)),
                      o = sigmoid_of(affine2(w, "char.b_o", "char.W_o", z, "char.U_o", h)),
                      u = tanh_of(affine2(w, "char.b_u", "char.W_u", z, "char.U_u", h));
            vertex_state shares = start(h.n);
            add_share(&shares, i, u);
            while (++arc < end) add_word(w, arc->id, &at[arc->from + 1], z, &shares);
            at[e].c = quotient_of(shares.c, shares.h);
            at[e].h = product_of(o, tanh_of(at[e].c));
        }
        logits[e - 1] = tag_layers(s, at[e].h);
    }
}
