/* header.h - what a script begins with, and what its tasks, blocks and tables are. Host and kernel read this file, so it includes nothing. */
#ifndef VPPS_SCRIPT_HEADER_H
#define VPPS_SCRIPT_HEADER_H

/* The numbers of vpps_optimizer. */
#define VPPS_OPTIMIZER_NUMBERS(X) X(lr) X(momentum) X(beta1) X(beta2) X(epsilon) X(weight_decay) X(clip)

typedef struct vpps_task_header {
    unsigned magic, words;
    unsigned n_vps, n_groups; /* equal groups of consecutive VPs */
    unsigned n_barriers;
    unsigned pool_words;       /* highest offset used, + 1 */
    unsigned blocks, n_blocks; /* addresses of the blocks' descriptions (vpps_block) */
    unsigned tables, n_tables; /* likewise (vpps_table) */
    unsigned update;           /* optimiser kind + 1; 0: inference */
    unsigned guard;            /* non-zero: no update when the loss or a gradient is not finite */
    unsigned
        lasting; /* non-zero: the factors of gradients stay until the update, which may compute the gradients itself */
    unsigned pairs;          /* non-zero: blocks have pairs of scaled contributions */
    unsigned step;           /* number of this update, from 1 */
    unsigned dropout_key[2]; /* low, high word */
    float corrections
        [2]; /* of Adam's means: zero in a script; a device fills them in, since it knows how often each state was updated */
    unsigned steps; /* address of a vpps_param_step for each parameter; 0: all parameters step by the numbers below */
#define X(name) float name;
    VPPS_OPTIMIZER_NUMBERS(X)
#undef X
} vpps_task_header;

/* A parameter's own numbers, in place of the header's. */
typedef struct vpps_param_step {
    float lr, momentum, weight_decay;
    float corrections[2]; /* as the header's */
} vpps_param_step;

typedef struct vpps_block {
    unsigned cell; /* number in the batch's list of compiled cells */
    unsigned group;
    unsigned n; /* vertices */
    unsigned members[4];
    unsigned kept[5]; /* offsets of the kept values of each axis: item i at + i * kept_words */
    unsigned arrays;  /* address */
} vpps_block;

/* A task of a group: its VPs wait for a barrier, run the task, and signal a barrier. Tasks lie at multiples of four words, which a GPU
 * loads at once. */
typedef struct vpps_task {
    unsigned
        kind; /* tasks.def. In a GPU's copy, kinds of stages and gradients are the kernel's: runtime/gpu/script.c */
    unsigned operands[3];
    unsigned wait,
        signals; /* the task waits until this barrier has been signalled `signals` times; VPPS_NO_BARRIER: it does not wait */
    unsigned signal; /* when the task is done, each VP adds one to this barrier's counter; VPPS_NO_BARRIER: to none */
    /* STAGE: the stage of the block's cell; offsets of its vertices' pass records, and of the gradients that it contributes */
    unsigned stage, pass_record, contributions;
    unsigned address; /* in the script that the host knows, for messages */
    unsigned unused;
} vpps_task;

#define VPPS_NO_BARRIER 0xffffffffu

/* Entries of a lookup table that the batch trains. */
typedef struct vpps_table {
    unsigned param;
    unsigned n;         /* entries */
    unsigned gradients; /* offset: entry after entry */
    unsigned rows;      /* address: rows[n] */
} vpps_table;

#endif
