/* tree_lstm.h - the cells of a Tree-LSTM, for networks with several kinds of such cells. Equations: tree_lstm.c. */
#ifndef VPPS_TREE_LSTM_H
#define VPPS_TREE_LSTM_H

#include "parts.h"

/* The gates. Each child has a forget gate of its own: TREE_F_L and TREE_F_R, with one bias b_f (eq. 10 of Tai et al.). */
enum { TREE_I, TREE_O, TREE_F_L, TREE_F_R, TREE_U, TREE_GATES };

typedef struct tree_lstm_leaf {
    vpps_param embedding;
    vpps_param W_i, W_o, W_u; /* hidden x embed matrices, applied to the embedding of the leaf's word */
    vpps_param b_i, b_o, b_u;
} tree_lstm_leaf;

typedef struct tree_lstm_inner {
    /* U[gate]: matrices for h of the left and the right child; U[TREE_F_L]: U_ll, U_lr of eq. 10 of Tai et al. 2015; U[TREE_F_R]: U_rl, U_rr */
    part_pair U[TREE_GATES];
    vpps_param b[TREE_GATES];
} tree_lstm_inner;

/* A Tree-LSTM with one kind of inner cell. */
typedef struct tree_lstm_net {
    part_net base;
    tree_lstm_leaf leaf;
    tree_lstm_inner inner;
} tree_lstm_net;

/* Declare parameters: embedding, W_i, W_o and W_u (declare_words); U_i_l and so on (declare_matrices); b_i, b_o, b_f and b_u
 * (declare_biases). The names of matrices U and of biases end with `suffix`. `forget`: initial values of b_f. */
vpps_status tree_lstm_declare_words(tree_lstm_leaf *p, vpps_model *model, const net_config *config,
                                    const vpps_init *embedding);
vpps_status tree_lstm_declare_matrices(tree_lstm_inner *p, vpps_model *model, uint32_t hidden, const char *suffix);
vpps_status tree_lstm_declare_biases(tree_lstm_inner *p, vpps_model *model, uint32_t hidden, const char *suffix,
                                     const vpps_init *forget);
/* Makes leaves use the biases of inner nodes. */
void tree_lstm_share_biases(tree_lstm_net *t);

/* tree_lstm_record_leaf records the cell of leaves, tree_lstm_record_inner that of inner nodes. Both scatter (output) h and c; with a
 * classifier they also classify h. */
vpps_status tree_lstm_record_leaf(const tree_lstm_leaf *p, const net_config *config, const part_classifier *classifier,
                                  vpps_model *model, const char *name, vpps_cell *cell);
vpps_status tree_lstm_record_inner(const tree_lstm_inner *p, const net_config *config,
                                   const part_classifier *classifier, vpps_model *model, const char *name,
                                   vpps_cell *cell);

#endif
