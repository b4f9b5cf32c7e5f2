/* equations_taggers.c - the equations of taggers of words and of characters of lattices, and of classifiers of sentences. */
#include "equations.h"

#include "common/testing.h"

/* ---------------------------------------------------------------- bilstm-tagger: Huang, Xu and Yu 2015, 2.2 */

static vec tag_layers(const subject *s, vec h) {
    return output_layer(s->w, s->config->mlp ? hidden_layer(s->w, h) : h);
}

/* Computes h_f(k) and h_b(k) of x_1 .. x_n in the given layer. */
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

/* Computes the same in the last layer. */
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

/* Eqs. (13) and (14): adds a word, from b, the state at its first character; x is its last character. */
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

/* ---------------------------------------------------------------- transformer-tagger: Vaswani et al. 2017, Xiong et al. 2020 */

static vec normalised(const weights *w, const char *gain, const char *bias, vec x) {
    double mean = 0, variance = 0;
    for (uint32_t i = 0; i < x.n; i++) mean += x.at[i] / x.n;
    for (uint32_t i = 0; i < x.n; i++) variance += (x.at[i] - mean) * (x.at[i] - mean) / x.n;
    for (uint32_t i = 0; i < x.n; i++) x.at[i] = (x.at[i] - mean) / sqrt(variance + 1e-5);
    return sum_of(product_of(x, vector(w, gain)), vector(w, bias));
}

#define OF(layer, name) (name_in_layer(&(layer), (name)).text)

/* Computes one head for word `at`: the mean of values, weighted by the products of its query with all keys. */
static vec attend(vec q, const vec *keys, const vec *values, uint32_t n, uint32_t first, uint32_t size) {
    double sum = 0;
    vec mean = zeros(size);
    const vec query = slice_of(q, first, size);
    for (uint32_t j = 0; j < n; j++) {
        const double weight = exp(inner_product(query, slice_of(keys[j], first, size)) / sqrt(size));
        const vec v = slice_of(values[j], first, size);
        for (uint32_t i = 0; i < size; i++) mean.at[i] += weight * v.at[i];
        sum += weight;
    }
    for (uint32_t i = 0; i < size; i++) mean.at[i] /= sum;
    return mean;
}

static void transform(const subject *s, uint32_t number, vec *x, uint32_t n) {
    const weights *w = s->w;
    const uint32_t heads = s->config->heads, size = (s->config->hidden + heads - 1) / heads;
    const layer_name l = name_of_layer("layer", number);
    vec queries[MOST_POSITIONS], keys[MOST_POSITIONS], values[MOST_POSITIONS];
    for (uint32_t k = 0; k < n; k++) {
        const vec z = normalised(w, OF(l, ".gain_1"), OF(l, ".bias_1"), x[k]);
        queries[k] = affine(w, OF(l, ".b_q"), OF(l, ".W_q"), z);
        keys[k] = times(w, OF(l, ".W_k"), z);
        values[k] = affine(w, OF(l, ".b_v"), OF(l, ".W_v"), z);
    }
    for (uint32_t k = 0; k < n; k++) {
        vec all = attend(queries[k], keys, values, n, 0, size);
        for (uint32_t h = 1; h < heads; h++)
            all = concatenation(all, attend(queries[k], keys, values, n, h * size, size));
        const vec y = sum_of(x[k], affine(w, OF(l, ".b_o"), OF(l, ".W_o"), all));
        const vec z = normalised(w, OF(l, ".gain_2"), OF(l, ".bias_2"), y);
        const vec f = gelu_of(affine(w, OF(l, ".b_1"), OF(l, ".W_1"), z));
        x[k] = sum_of(y, affine(w, OF(l, ".b_2"), OF(l, ".W_2"), f));
    }
}

void transformer_tagger_equations(const subject *s, const net_example *x, vec logits[MOST_POSITIONS]) {
    const uint32_t n = x->sentence.n_words, d = s->config->hidden;
    vec at[MOST_POSITIONS];
    embed_words(s, &x->sentence, at);
    for (uint32_t k = 0; k < n; k++) {
        for (uint32_t i = 0; i < d; i++) {
            const double angle = k * pow(10000, -(double)(i & ~1u) / d);
            at[k].at[i] = sqrt(d) * at[k].at[i] + (i & 1 ? cos(angle) : sin(angle));
        }
    }
    for (uint32_t layer = 1; layer <= s->config->layers; layer++) transform(s, layer, at, n);
    for (uint32_t k = 0; k < n; k++) logits[k] = output_layer(s->w, normalised(s->w, "gain", "bias", at[k]));
}
