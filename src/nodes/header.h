/* header.h - what a script begins with. Host and kernel read this file, so it includes nothing. */
#ifndef VPPS_NODES_HEADER_H
#define VPPS_NODES_HEADER_H

typedef struct vpps_script_header {
    unsigned magic; /* VPPS_SCRIPT_MAGIC */
    unsigned words; /* of the whole script */
    unsigned n_vps;
    unsigned row_block; /* see vpps_rows_of */
    unsigned n_barriers;
    unsigned pool_words;     /* highest offset used, + 1 */
    unsigned loss;           /* offset; VPPS_NO_OFFSET: inference */
    unsigned update;         /* optimiser kind + 1; 0: no update */
    unsigned guard;          /* non-zero: no update when the loss or the gradient's norm is not finite */
    unsigned nodes;          /* of the batch's graph */
    unsigned step;           /* number of this update, from 1 */
    unsigned dropout_key[2]; /* low, high word */
    unsigned bundles;        /* address of the pairs (bundle, vectors) that HOST is about */
    unsigned n_bundles;      /* 0: there is no HOST */
    float corrections[2];    /* 1 / (1 - beta^step) of both betas */
    float lr, momentum, beta1, beta2, epsilon, weight_decay, clip;
} vpps_script_header;

/* Does an update ask for the norm of the gradient? */
#define VPPS_TAKES_NORM(h) ((h)->guard || (h)->clip > 0.0f)

#endif
