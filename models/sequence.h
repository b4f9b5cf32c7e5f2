/* sequence.h - common parts of networks on sequences: embeddings, and the steps of recurrent networks. */
#ifndef VPPS_SEQUENCE_H
#define VPPS_SEQUENCE_H

#include "parts.h"

/* ---------------------------------------------------------------- embeddings */

/* A table of `count` vectors, with the network's dropout, as a cell that pushes one. */
typedef struct part_embedding {
    vpps_param table;
    vpps_cell cell;
} part_embedding;

vpps_status part_embedding_declare(part_embedding *e, vpps_model *model, const char *name, uint32_t count,
                                   uint32_t size);
vpps_status part_embedding_record(part_embedding *e, const net_config *config, vpps_model *model, const char *name);
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

#define PART_GATES 4

typedef struct part_recurrent {
    part_unit unit;
    uint32_t inputs, hidden;
    const net_config *dropout;                              /* has that of x; NULL: none */
    vpps_param W[PART_GATES], U[PART_GATES], b[PART_GATES]; /* in the order of the equations */
    vpps_cell cell;                                         /* child: the preceding step; pulls x; scatters h (and c) */
} part_recurrent;

/* Its parameters are NAME.W_i and so on. x has no dropout: set `dropout` before the cell is recorded. */
vpps_status part_recurrent_declare(part_recurrent *r, part_unit unit, vpps_model *model, const char *name,
                                   uint32_t inputs, uint32_t hidden);
vpps_status part_recurrent_record(part_recurrent *r, vpps_model *model, const char *name);

/* An LSTM's h and c, or a GRU's h: how many they are; and in a cell that is being recorded, those after a step that reads
 * x, in the place of those before it. */
uint32_t part_recurrent_states(const part_recurrent *r);
void part_recurrent_next(const part_recurrent *r, vpps_graph *recorder, vpps_node x, vpps_node *states);

/* The vertex before the first step: all zero. */
vpps_vertex part_recurrent_start(const part_recurrent *r, vpps_graph *g);
vpps_vertex part_recurrent_step(const part_recurrent *r, vpps_graph *g, vpps_vertex before, vpps_node x);

/* ---------------------------------------------------------------- layers of them
 *
 * Layer 1 reads x, layer l + 1 reads h of layer l. The parameters of layer 1 are NAME.W_i and so on, those of layer 2
 * NAME2.W_i and so on. A vertex of each layer, from the first to the last, stands for a step of all. */

typedef struct part_stack {
    uint32_t n; /* layers */
    part_recurrent layers[NET_LAYERS];
} part_stack;

typedef struct part_stack_shape {
    part_unit unit;
    uint32_t layers;           /* up to NET_LAYERS; 0: one */
    uint32_t inputs, between;  /* elements that the first layer reads, and that every other one reads */
    uint32_t hidden;           /* elements of each layer's h */
    const net_config *dropout; /* its dropout is applied to the inputs of layers above the first; NULL: none */
} part_stack_shape;

/* LSTMs as the options say: of `embed`, `hidden` and `layers`, with dropout between them. */
part_stack_shape part_lstm_layers(const net_config *c);
/* Fails with ARGUMENT where there are more layers than NET_LAYERS. */
vpps_status part_stack_declare(part_stack *s, vpps_model *model, const char *name, part_stack_shape shape);
vpps_status part_stack_record(part_stack *s, vpps_model *model, const char *name);

/* A vertex of each layer to go on from: with states of zero (start), or with part_stack_states() states of an earlier step (resume). */
void part_stack_start(const part_stack *s, vpps_graph *g, vpps_vertex *at);
void part_stack_resume(const part_stack *s, vpps_graph *g, const vpps_node *states, vpps_vertex *at);
/* Adds the step that reads x, and replaces the preceding step's vertices by its own. Its result is h of the last layer. */
vpps_node part_stack_step(const part_stack *s, vpps_graph *g, vpps_vertex *at, vpps_node x);

/* How many states all layers have, an LSTM's h and c or a GRU's h each, from the first layer to the last; and hands them
 * to a decoding. */
uint32_t part_stack_states(const part_stack *s);
void part_stack_keep(const part_stack *s, vpps_graph *g, const vpps_vertex *at, net_decoding *d);
/* As part_recurrent_next: x goes through all layers, whose states are replaced, with the dropout between them if it is wanted. Its
 * result is h of the last one. */
vpps_node part_stack_next(const part_stack *s, vpps_graph *recorder, bool dropout, vpps_node x, vpps_node *states);

#endif
