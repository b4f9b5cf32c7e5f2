/* sequence.h - functions that networks on sequences share: embeddings, and recurrent steps and layers. */
#ifndef VPPS_SEQUENCE_H
#define VPPS_SEQUENCE_H

#include "parts.h"

/* A lookup table of `count` vectors, and a cell that outputs one of the vectors with the network's dropout. */
typedef struct part_embedding {
    vpps_param table;
    vpps_cell cell;
} part_embedding;

vpps_status part_embedding_make(part_embedding *e, const net_config *config, vpps_model *model, const char *table,
                                uint32_t count, uint32_t size, const char *cell);
vpps_node part_embed(const part_embedding *e, vpps_graph *g, uint32_t index);

/* ---------------------------------------------------------------- recurrent steps
 *
 * LSTM (Hochreiter and Schmidhuber 1997, with the forget gate of Gers, Schmidhuber and Cummins 2000):
 *     i = sigmoid(W_i x + U_i h + b_i)   f = sigmoid(W_f x + U_f h + b_f)   o = sigmoid(W_o x + U_o h + b_o)
 *     u = tanh(W_u x + U_u h + b_u)      c' = i * u + f * c                 h' = o * tanh(c')
 * GRU (Cho et al. 2014):
 *     r = sigmoid(W_r x + U_r h + b_r)   z = sigmoid(W_z x + U_z h + b_z)
 *     u = tanh(W_u x + U_u (r * h) + b_u)                                   h' = z * h + (1 - z) * u
 * Parameters, with x of e elements and h of d: 4 d (e + d + 1) and 3 d (e + d + 1). */

typedef enum part_unit { PART_LSTM, PART_GRU } part_unit;

typedef struct part_recurrent {
    part_unit unit;
    uint32_t inputs, hidden;
    /* config whose dropout applies to the input x; NULL: no dropout */
    const net_config *dropout;
    part_gates gates; /* gates in the order of the unit's equations */
    vpps_cell cell;   /* cell of one step; inputs: the preceding step's states, x; outputs: h (and c) */
} part_recurrent;

/* Declares parameters NAME.W_i ... of *r, whose `unit`, `inputs`, `hidden`, `dropout` are set. `cell`: name of a step's cell to add; NULL: none. */
vpps_status part_recurrent_make(part_recurrent *r, vpps_model *model, const char *name, const char *cell);

/* Returns the number of a unit's states: 2 for an LSTM (h and c), 1 for a GRU (h). */
uint32_t part_recurrent_states(const part_recurrent *r);
/* Records a step that reads x in a cell that is being recorded, and replaces `states` by the states after the step. */
void part_recurrent_next(const part_recurrent *r, vpps_graph *recorder, vpps_node x, vpps_node *states);

/* Returns a vertex that stands before the first step, with zeros as its states. */
vpps_vertex part_recurrent_start(const part_recurrent *r, vpps_graph *g);
vpps_vertex part_recurrent_step(const part_recurrent *r, vpps_graph *g, vpps_vertex before, vpps_node x);

/* ---------------------------------------------------------------- layers of recurrent units
 *
 * Layer 1 reads x, layer l + 1 reads h of layer l. The parameters of layer 1 are NAME.W_i and so on, those of layer
 * 2 NAME2.W_i and so on. A step of all layers is an array of vertices, one per layer. */

typedef struct part_stack {
    uint32_t n; /* number of layers */
    part_recurrent layers[NET_LAYERS];
} part_stack;

typedef struct part_stack_shape {
    part_unit unit;
    uint32_t layers;           /* number of layers, up to NET_LAYERS; 0: one */
    uint32_t inputs, between;  /* elements of the first layer's input x, and of other layers' inputs */
    uint32_t hidden;           /* number of elements of each layer's output h */
    const net_config *dropout; /* config whose dropout applies to the inputs of layers 2, 3, ...; NULL: none */
} part_stack_shape;

/* Returns the shape of LSTM layers by the options embed, hidden and layers, with dropout between the layers. */
part_stack_shape part_lstm_layers(const net_config *c);
/* Declares the parameters of all layers and, if `cell` is not NULL, records their cells CELL, CELL2 and so on. Fails with ARGUMENT for more
 * than NET_LAYERS layers. */
vpps_status part_stack_make(part_stack *s, vpps_model *model, const char *name, const char *cell,
                            part_stack_shape shape);

/* Set at[] to a vertex for each layer from which the first step starts. The layers' states are zeros (_start), or come
 * from an earlier step: `states` then has part_stack_states(s) nodes (_resume). */
void part_stack_start(const part_stack *s, vpps_graph *g, vpps_vertex *at);
void part_stack_resume(const part_stack *s, vpps_graph *g, const vpps_node *states, vpps_vertex *at);
/* Adds a step that reads x, and replaces the vertices of the preceding step in at[]. Returns the last layer's h. */
vpps_node part_stack_step(const part_stack *s, vpps_graph *g, vpps_vertex *at, vpps_node x);

/* Returns the number of states of all layers. States are ordered from the first layer to the last, for LSTMs h before c. */
uint32_t part_stack_states(const part_stack *s);
/* Stores the recurrent states of all layers, as they are after a step, in the struct of a text or translation that is being generated
 * (net_decoding). */
void part_stack_keep(const part_stack *s, vpps_graph *g, const vpps_vertex *at, net_decoding *d);
/* Records, in a cell that is being recorded, a step of all layers that reads x, with dropout between layers if `dropout`.
 * Replaces the layers' states, and returns the last layer's h. */
vpps_node part_stack_next(const part_stack *s, vpps_graph *recorder, bool dropout, vpps_node x, vpps_node *states);

#endif
