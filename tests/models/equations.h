/* equations.h - the equations of every network in scalar loops: what the recorded cells have to compute. They are written
 * from the head comments of models/ and the papers cited there, not from the cells. */
#pragma once

#include "examples.h"
#include "scalar.h"

/* A network with its parameters' values. */
typedef struct subject {
    const net_config *config;
    const weights *w;
} subject;

/* Sets the logits of each position; where the network says nothing, they stay as they are. */
typedef void equations(const subject *s, const net_example *x, vec logits[MOST_POSITIONS]);

/* Those of the network with this name; the check fails where there are none. */
equations *equations_of(const char *name);

equations tree_lstm_equations, tree_lstm_2type_equations, tree_gru_equations, rvnn_equations, mv_rnn_equations,
    td_rnn_equations, td_lstm_equations, tree_fc_equations;
equations bilstm_tagger_equations, bilstm_char_tagger_equations, bilstm_classifier_equations, act_equations,
    lattice_lstm_equations, child_sum_tree_lstm_equations, transformer_tagger_equations;
equations gat_equations, gat_classifier_equations;
equations lstm_lm_equations, lstm_nmt_equations, lattice_gru_equations;

/* ---------------------------------------------------------------- what several networks have */

/* A vertex's h, and its c where the network has one. */
typedef struct vertex_state {
    vec h, c;
} vertex_state;

vertex_state start(uint32_t n); /* zeros */

/* A step of the LSTM, or GRU, whose parameters are NAME.W_i and so on. */
vertex_state lstm(const weights *w, const char *name, vec x, vertex_state before);
vertex_state gru(const weights *w, const char *name, vec x, vertex_state before);

/* NAME, or in layer 2 NAME2, and so on: what the names of a layer's parameters begin with. */
typedef struct layer_name {
    char text[32];
} layer_name;
layer_name name_of_layer(const char *name, uint32_t layer);

/* A step of all of a network's layers, each of which reads h of the one below. `at` has a vertex_state for each. */
typedef vertex_state step_equations(const weights *w, const char *name, vec x, vertex_state before);
vec step_layers(const subject *s, step_equations *step, const char *name, vec x, vertex_state at[MOST_LAYERS]);
void start_layers(const subject *s, vertex_state at[MOST_LAYERS]);

/* The name of a parameter of a layer: NAME2.W_q of (NAME2, ".W_q"). */
layer_name name_in_layer(const layer_name *layer, const char *parameter);

vec hidden_layer(const weights *w, vec h); /* tanh(W_h h + b_h) */
vec output_layer(const weights *w, vec h); /* W_s h + b_s */
