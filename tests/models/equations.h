/* equations.h - the equations of every network as scalar loops: what the recorded cells must compute. They are written from the head comments of
 * models/ and the papers cited there, not from the cells. */
#pragma once

#include "examples.h"
#include "scalar.h"

/* A network with its parameters' values. */
typedef struct subject {
    const net_config *config;
    const weights *w;
} subject;

/* Sets the logits of each position; those that the network does not compute stay as they are. */
typedef void equations(const subject *s, const net_example *x, vec logits[MOST_POSITIONS]);

/* Returns the equations of the network with this name; the check fails if there are none. */
equations *equations_of(const char *name);

equations tree_lstm_equations, tree_lstm_2type_equations, tree_gru_equations, rvnn_equations, mv_rnn_equations,
    td_rnn_equations, td_lstm_equations, tree_fc_equations;
equations bilstm_tagger_equations, bilstm_char_tagger_equations, bilstm_classifier_equations, act_equations,
    lattice_lstm_equations, child_sum_tree_lstm_equations, transformer_tagger_equations;
equations gat_equations, gat_classifier_equations;
equations lstm_lm_equations, lstm_nmt_equations, lattice_gru_equations;

/* A vertex's h, and its c if the network has one. */
typedef struct vertex_state {
    vec h, c;
} vertex_state;

vertex_state start(uint32_t n); /* zeros */

/* Computes a step of the LSTM or GRU whose parameters are NAME.W_i and so on. */
vertex_state lstm(const weights *w, const char *name, vec x, vertex_state before);
vertex_state gru(const weights *w, const char *name, vec x, vertex_state before);

/* The beginning of a layer's parameter names: NAME, in layer 2 NAME2, and so on. */
typedef struct layer_name {
    char text[32];
} layer_name;
layer_name name_of_layer(const char *name, uint32_t layer);

/* Computes a step of all layers of a network, each of which reads h of the layer below. `at` has a vertex_state for each. */
typedef vertex_state step_equations(const weights *w, const char *name, vec x, vertex_state before);
vec step_layers(const subject *s, step_equations *step, const char *name, vec x, vertex_state at[MOST_LAYERS]);
void start_layers(const subject *s, vertex_state at[MOST_LAYERS]);

/* Returns the name of a layer's parameter: NAME2.W_q for (NAME2, ".W_q"). */
layer_name name_in_layer(const layer_name *layer, const char *parameter);

vec hidden_layer(const weights *w, vec h); /* tanh(W_h h + b_h) */
vec output_layer(const weights *w, vec h); /* W_s h + b_s */
