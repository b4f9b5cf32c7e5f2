/* equations_trees.c - the equations of the networks on trees. */
#include "equations.h"

#include "common/testing.h"

typedef vertex_state leaf_equations(const weights *w, uint32_t word);
typedef vertex_state inner_equations(const weights *w, const vertex_state *l, const vertex_state *r);

static void each_node(const subject *s, const vpps_tree *tree, leaf_equations *leaf, inner_equations *inner,
                      vec logits[MOST_POSITIONS]) {
    vertex_state at[MOST_POSITIONS];
    for (uint32_t k = 0; k < tree->n_nodes; k++) {
        const vpps_tree_node *node = &tree->nodes[k];
        at[k] = node->left < 0 ? leaf(s->w, node->word) : inner(s->w, &at[node->left], &at[node->right]);
        logits[k] = output_layer(s->w, at[k].h);
    }
}

/* Combines every two neighbours, level by level. */
static void each_window(const subject *s, const vpps_tree *tree, leaf_equations *leaf, inner_equations *inner,
                        vec logits[MOST_POSITIONS]) {
    vertex_state level[MOST_POSITIONS][MOST_POSITIONS];
    uint32_t n = 0;
    for (uint32_t k = 0; k < tree->n_nodes; k++)
        if (tree->nodes[k].left < 0) level[0][n++] = leaf(s->w, tree->nodes[k].word);
    for (uint32_t a = 1; a < n; a++)
        for (uint32_t i = 0; i < n - a; i++) level[a][i] = inner(s->w, &level[a - 1][i], &level[a - 1][i + 1]);
    logits[tree->n_nodes - 1] = output_layer(s->w, hidden_layer(s->w, level[n - 1][0].h));
}

/* Computes b + U_l h_l + U_r h_r with the parameters named b, Ul and Ur, each followed by `kind`. */
static vec both(const weights *w, const char *b, const char *U, const char *kind, vec h_l, vec h_r) {
    char bias[16], left[16], right[16];
    snprintf(bias, sizeof bias, "%s%s", b, kind);
    snprintf(left, sizeof left, "%sl%s", U, kind);
    snprintf(right, sizeof right, "%sr%s", U, kind);
    return affine2(w, bias, left, h_l, right, h_r);
}

/* ---------------------------------------------------------------- tree-lstm: Tai, Socher and Manning 2015, eqs. 9 to 14 */

static vertex_state lstm_leaf(const weights *w, uint32_t word) {
    const vec x = entry(w, "embedding", word);
    const vec i = sigmoid_of(affine(w, "b_i", "W_i", x)), o = sigmoid_of(affine(w, "b_o", "W_o", x)),
              u = tanh_of(affine(w, "b_u", "W_u", x)), c = product_of(i, u);
    return (vertex_state){.h = product_of(o, tanh_of(c)), .c = c};
}

static vertex_state lstm_inner_of(const weights *w, const char *kind, const vertex_state *l, const vertex_state *r) {
    const vec i = sigmoid_of(both(w, "b_i", "U_i_", kind, l->h, r->h));
    const vec o = sigmoid_of(both(w, "b_o", "U_o_", kind, l->h, r->h));
    const vec f_l = sigmoid_of(both(w, "b_f", "U_f_l", kind, l->h, r->h));
    const vec f_r = sigmoid_of(both(w, "b_f", "U_f_r", kind, l->h, r->h));
    const vec u = tanh_of(both(w, "b_u", "U_u_", kind, l->h, r->h));
    const vec c = sum_of(product_of(i, u), sum_of(product_of(f_l, l->c), product_of(f_r, r->c)));
    return (vertex_state){.h = product_of(o, tanh_of(c)), .c = c};
}

static vertex_state lstm_inner(const weights *w, const vertex_state *l, const vertex_state *r) {
    return lstm_inner_of(w, "", l, r);
}

void tree_lstm_equations(const subject *s, const net_example *x, vec logits[MOST_POSITIONS]) {
    each_node(s, x->tree, lstm_leaf, lstm_inner, logits);
}

void td_lstm_equations(const subject *s, const net_example *x, vec logits[MOST_POSITIONS]) {
    each_window(s, x->tree, lstm_leaf, lstm_inner, logits);
}

/* ---------------------------------------------------------------- tree-lstm-2type: the same, in two kinds */

/* Checkpoints do not store kinds: training depends on this very hash, SplitMix64's (Steele, Lea and Flood 2014). */
static uint64_t mixed(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

void tree_lstm_2type_equations(const subject *s, const net_example *x, vec logits[MOST_POSITIONS]) {
    const vpps_tree *tree = x->tree;
    vertex_state at[MOST_POSITIONS];
    for (uint32_t k = 0; k < tree->n_nodes; k++) {
        const int32_t l = tree->nodes[k].left, r = tree->nodes[k].right;
        if (l < 0) {
            at[k] = lstm_leaf(s->w, tree->nodes[k].word);
        } else {
            const bool second = mixed(mixed(tree->n_nodes) + ((uint64_t)k << 32) + (uint64_t)l) >> 63;
            at[k] = lstm_inner_of(s->w, second ? "_2" : "_1", &at[l], &at[r]);
        }
        logits[k] = output_layer(s->w, at[k].h);
    }
}

/* ---------------------------------------------------------------- tree-gru: Chen, Huang, Chiang and Chen 2017, 3.2 */

static vertex_state gru_leaf(const weights *w, uint32_t word) {
    const vec x = entry(w, "embedding", word);
    return (vertex_state){.h = product_of(sigmoid_of(affine(w, "b_z", "W_z", x)), tanh_of(affine(w, "b_u", "W_u", x)))};
}

static vertex_state gru_inner(const weights *w, const vertex_state *l, const vertex_state *r) {
    const vec r_l = sigmoid_of(both(w, "b_rl", "U_rl_", "", l->h, r->h));
    const vec r_r = sigmoid_of(both(w, "b_rr", "U_rr_", "", l->h, r->h));
    const vec z_l = sigmoid_of(both(w, "b_zl", "U_zl_", "", l->h, r->h));
    const vec z_r = sigmoid_of(both(w, "b_zr", "U_zr_", "", l->h, r->h));
    const vec z = sigmoid_of(both(w, "b_z", "U_z_", "", l->h, r->h));
    const vec u = tanh_of(both(w, "b_u", "U_u_", "", product_of(r_l, l->h), product_of(r_r, r->h)));
    return (vertex_state){.h = sum_of(product_of(z_l, l->h), sum_of(product_of(z_r, r->h), product_of(z, u)))};
}

void tree_gru_equations(const subject *s, const net_example *x, vec logits[MOST_POSITIONS]) {
    each_node(s, x->tree, gru_leaf, gru_inner, logits);
}

/* ---------------------------------------------------------------- one layer an inner vertex: rvnn, td-rnn, tree-fc */

static vertex_state embedded(const weights *w, uint32_t word) {
    return (vertex_state){.h = entry(w, "embedding", word)};
}

static vertex_state tanh_leaf(const weights *w, uint32_t word) {
    return (vertex_state){.h = tanh_of(affine(w, "b_leaf", "W_leaf", entry(w, "embedding", word)))};
}

static vertex_state tanh_inner(const weights *w, const vertex_state *l, const vertex_state *r) {
    return (vertex_state){.h = tanh_of(both(w, "b", "W_", "", l->h, r->h))};
}

static vertex_state relu_inner(const weights *w, const vertex_state *l, const vertex_state *r) {
    return (vertex_state){.h = relu_of(both(w, "b", "W_", "", l->h, r->h))};
}

void rvnn_equations(const subject *s, const net_example *x, vec logits[MOST_POSITIONS]) {
    each_node(s, x->tree, tanh_leaf, tanh_inner, logits);
}

void td_rnn_equations(const subject *s, const net_example *x, vec logits[MOST_POSITIONS]) {
    each_window(s, x->tree, embedded, tanh_inner, logits);
}

void tree_fc_equations(const subject *s, const net_example *x, vec logits[MOST_POSITIONS]) {
    each_node(s, x->tree, embedded, relu_inner, logits);
}

/* ---------------------------------------------------------------- mv-rnn: Socher, Huval, Manning and Ng 2012, 2.2 */

typedef struct meaning {
    vec a;
    double A[MOST_ELEMENTS][MOST_ELEMENTS];
} meaning;

static vec applied(const meaning *m, vec x) {
    vec y = zeros(x.n);
    for (uint32_t i = 0; i < x.n; i++)
        for (uint32_t j = 0; j < x.n; j++) y.at[i] += m->A[i][j] * x.at[j];
    return y;
}

/* A table's entry is stored column after column. */
static meaning of_word(const weights *w, uint32_t word) {
    vpps_param_info info = {.size = sizeof info};
    const double *values = values_of(w, "matrices", VPPS_LOOKUP, &info);
    meaning m = {.a = entry(w, "vectors", word)};
    for (uint32_t j = 0; j < m.a.n; j++)
        for (uint32_t i = 0; i < m.a.n; i++) m.A[i][j] = values[(word * m.a.n + j) * m.a.n + i];
    return m;
}

/* (2) p = tanh(W [B a; A b])      (3) P = W_M [A; B] */
static meaning of_phrase(const weights *w, const meaning *a, const meaning *b) {
    const uint32_t n = a->a.n;
    meaning p = {.a = tanh_of(sum_of(times(w, "W_l", applied(b, a->a)), times(w, "W_r", applied(a, b->a))))};
    vpps_param_info info = {.size = sizeof info};
    const double *W_M_l = values_of(w, "W_M_l", VPPS_MATRIX, &info), *W_M_r = values_of(w, "W_M_r", VPPS_MATRIX, &info);
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t j = 0; j < n; j++)
            for (uint32_t k = 0; k < n; k++) p.A[i][j] += W_M_l[i * n + k] * a->A[k][j] + W_M_r[i * n + k] * b->A[k][j];
    }
    return p;
}

void mv_rnn_equations(const subject *s, const net_example *x, vec logits[MOST_POSITIONS]) {
    meaning at[MOST_POSITIONS];
    for (uint32_t k = 0; k < x->tree->n_nodes; k++) {
        const vpps_tree_node *node = &x->tree->nodes[k];
        at[k] = node->left < 0 ? of_word(s->w, node->word) : of_phrase(s->w, &at[node->left], &at[node->right]);
        logits[k] = output_layer(s->w, at[k].a);
    }
}

/* ---------------------------------------------------------------- child-sum-tree-lstm: Tai, Socher and Manning 2015, eqs. 2 to 8 */

/* Computes word k, from 0, and all words below it. */
static vertex_state child_sum_word(const subject *s, const vpps_sentence *x, uint32_t k) {
    const weights *w = s->w;
    const vec word = entry(w, "embedding", x->words[k]);
    vec sum = zeros(s->config->hidden), kept = sum;
    for (uint32_t j = 0; j < x->n_words; j++) {
        if (x->heads[j] != k + 1) continue;
        const vertex_state child = child_sum_word(s, x, j);
        const vec f = sigmoid_of(affine2(w, "b_f", "W_f", word, "U_f", child.h));
        sum = sum_of(sum, child.h);
        kept = sum_of(kept, product_of(f, child.c));
    }
    const vec i = sigmoid_of(affine2(w, "b_i", "W_i", word, "U_i", sum)),
              o = sigmoid_of(affine2(w, "b_o", "W_o", word, "U_o", sum)),
              u = tanh_of(affine2(w, "b_u", "W_u", word, "U_u", sum));
    const vec c = sum_of(product_of(i, u), kept);
    return (vertex_state){.h = product_of(o, tanh_of(c)), .c = c};
}

void child_sum_tree_lstm_equations(const subject *s, const net_example *x, vec logits[MOST_POSITIONS]) {
    for (uint32_t k = 0; k < x->sentence.n_words; k++)
        logits[k] = output_layer(s->w, child_sum_word(s, &x->sentence, k).h);
}
