/* sequence.h - what networks on sequences share: embeddings, and the steps of recurrent networks. */
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
    vpps_param W[PART_GATES], U[PART_GATES], b[PART_GATES]; /* in the order of the equations */
    vpps_cell cell;                                         /* child: the step before; pulls x; scatters h (and c) */
} part_recurrent;

/* Its parameters are NAME.W_i and so on. */
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

#endif
