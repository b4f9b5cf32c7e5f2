/* equations.c - the table of networks, and the equations that several of them share. */
#include "equations.h"

#include "common/testing.h"

static const struct {
    const char *network;
    equations *equations;
} rows[] = {
    {"tree-lstm", tree_lstm_equations},
    {"tree-lstm-2type", tree_lstm_2type_equations},
    {"tree-gru", tree_gru_equations},
    {"rvnn", rvnn_equations},
    {"mv-rnn", mv_rnn_equations},
    {"td-rnn", td_rnn_equations},
    {"td-lstm", td_lstm_equations},
    {"tree-fc", tree_fc_equations},
    {"bilstm-tagger", bilstm_tagger_equations},
    {"bilstm-char-tagger", bilstm_char_tagger_equations},
    {"bilstm-classifier", bilstm_classifier_equations},
    {"act", act_equations},
    {"lstm-lm", lstm_lm_equations},
    {"lstm-lm-fixed", lstm_lm_equations},
    {"lstm-nmt", lstm_nmt_equations},
    {"lattice-lstm", lattice_lstm_equations},
    {"lattice-gru", lattice_gru_equations},
    {"child-sum-tree-lstm", child_sum_tree_lstm_equations},
    {"transformer-tagger", transformer_tagger_equations},
    {"gat", gat_equations},
    {"gat-classifier", gat_classifier_equations},
};

equations *equations_of(const char *name) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].network, name) == 0) return rows[i].equations;
    ck_abort_msg("what are the equations of %s? Write them, and name them here", name);
    return NULL;
}

/* ---------------------------------------------------------------- recurrent steps */

vertex_state start(uint32_t n) { return (vertex_state){zeros(n), zeros(n)}; }

/* W_k x + U_k h + b_k */
static vec gate(const weights *w, const char *name, char k, vec x, vec h) {
    char W[32], U[32], b[32];
    snprintf(W, sizeof W, "%s.W_%c", name, k);
    snprintf(U, sizeof U, "%s.U_%c", name, k);
    snprintf(b, sizeof b, "%s.b_%c", name, k);
    return affine2(w, b, W, x, U, h);
}

vertex_state lstm(const weights *w, const char *name, vec x, vertex_state before) {
    const vec i = sigmoid_of(gate(w, name, 'i', x, before.h)), f = sigmoid_of(gate(w, name, 'f', x, before.h)),
              o = sigmoid_of(gate(w, name, 'o', x, before.h)), u = tanh_of(gate(w, name, 'u', x, before.h));
    const vec c = sum_of(product_of(i, u), product_of(f, before.c));
    return (vertex_state){.h = product_of(o, tanh_of(c)), .c = c};
}

vertex_state gru(const weights *w, const char *name, vec x, vertex_state before) {
    const vec r = sigmoid_of(gate(w, name, 'r', x, before.h)), z = sigmoid_of(gate(w, name, 'z', x, before.h)),
              u = tanh_of(gate(w, name, 'u', x, product_of(r, before.h)));
    vertex_state after = before;
    for (uint32_t i = 0; i < u.n; i++) after.h.at[i] = z.at[i] * before.h.at[i] + (1 - z.at[i]) * u.at[i];
    return after;
}

/* ---------------------------------------------------------------- layers */

static uint32_t layers_of(const subject *s) { return s->config->layers ? s->config->layers : 1; }

layer_name name_of_layer(const char *name, uint32_t layer) {
    layer_name n;
    if (layer == 1) snprintf(n.text, sizeof n.text, "%s", name);
    if (layer != 1) snprintf(n.text, sizeof n.text, "%s%u", name, layer);
    return n;
}

layer_name name_in_layer(const layer_name *layer, const char *parameter) {
    layer_name n = *layer;
    strncat(n.text, parameter, sizeof n.text - strlen(n.text) - 1);
    return n;
}

void start_layers(const subject *s, vertex_state at[MOST_LAYERS]) {
    for (uint32_t l = 0; l < layers_of(s); l++) at[l] = start(s->config->hidden);
}

vec step_layers(const subject *s, step_equations *step, const char *name, vec x, vertex_state at[MOST_LAYERS]) {
    for (uint32_t l = 0; l < layers_of(s); l++) {
        at[l] = step(s->w, name_of_layer(name, l + 1).text, x, at[l]);
        x = at[l].h;
    }
    return x;
}

/* ---------------------------------------------------------------- the classifier */

vec hidden_layer(const weights *w, vec h) { return tanh_of(affine(w, "b_h", "W_h", h)); }

vec output_layer(const weights *w, vec h) { return affine(w, "b_s", "W_s", h); }
