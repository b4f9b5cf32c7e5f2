/* tree_lstm.h - the cells of a Tree-LSTM, for networks with several kinds of such cells. Equations: tree_lstm.c. */
#ifndef VPPS_TREE_LSTM_H
#define VPPS_TREE_LSTM_H

#include "parts.h"

typedef struct tree_lstm_leaf {
    vpps_param embedding;
    vpps_param W_i, W_o, W_u; /* hidden x embed matrices, applied to the embedding of the leaf's word */
    vpps_param b_i, b_o, b_u;
} tree_lstm_leaf;

typedef struct tree_lstm_inner {
    /* hidden x hidden matrices, named by the gate and the child whose h they multiply (l: left, r: right) */
    vpps_param U_i_l, U_i_r, U_o_l, U_o_r;
    /* U_kl of eq. 10 of Tai et al.: in the forget gate of child k (first letter), the matrix that multiplies h of child l (second
     * letter) */
    vpps_param U_f_ll, U_f_lr, U_f_rl, U_f_rr;
    vpps_param U_u_l, U_u_r;
    /* bias vectors of the gates; the forget gates of both children share b_f (eq. 10 of Tai et al.) */
    vpps_param b_i, b_o, b_f, b_u;
} tree_lstm_inner;

/* tree_lstm_record_leaf records the cell of leaves, tree_lstm_record_inner that of inner nodes. Both scatter (output) h and c; with a
 * classifier they also classify h. */
vpps_status tree_lstm_record_leaf(const tree_lstm_leaf *p, const net_config *config, const part_classifier *classifier,
                                  vpps_model *model, const char *name, vpps_cell *cell);
vpps_status tree_lstm_record_inner(const tree_lstm_inner *p, const net_config *config,
                                   const part_classifier *classifier, vpps_model *model, const char *name,
                                   vpps_cell *cell);

#endif
