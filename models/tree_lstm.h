/* tree_lstm.h - the cells of a Tree-LSTM, for networks that have more than one kind of them. Equations: tree_lstm.c. */
#ifndef VPPS_TREE_LSTM_H
#define VPPS_TREE_LSTM_H

#include "parts.h"

typedef struct tree_lstm_leaf {
    vpps_param embedding;
    vpps_param W_i, W_o, W_u; /* hidden x embed: the leaf's word */
    vpps_param b_i, b_o, b_u;
} tree_lstm_leaf;

typedef struct tree_lstm_inner {
    vpps_param U_i_l, U_i_r, U_o_l, U_o_r;     /* hidden x hidden: gate, child */
    vpps_param U_f_ll, U_f_lr, U_f_rl, U_f_rr; /* gate of child k, child l: U_kl of eq. 10 */
    vpps_param U_u_l, U_u_r;
    vpps_param b_i, b_o, b_f, b_u; /* hidden; eq. 10 has one b_f for both children */
} tree_lstm_inner;

/* A vertex scatters h and c, and classifies h, if there is a classifier. */
vpps_status tree_lstm_record_leaf(const tree_lstm_leaf *p, const net_config *config, const part_classifier *classifier,
                                  vpps_model *model, const char *name, vpps_cell *cell);
vpps_status tree_lstm_record_inner(const tree_lstm_inner *p, const net_config *config,
                                   const part_classifier *classifier, vpps_model *model, const char *name,
                                   vpps_cell *cell);

#endif
