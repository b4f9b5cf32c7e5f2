/* header.h - the structs of a script: its header, tasks, blocks and tables. Host and kernel read this file, so it includes nothing. */
#ifndef VPPS_SCRIPT_HEADER_H
#define VPPS_SCRIPT_HEADER_H

/* The numbers of vpps_optimizer. */
#define VPPS_OPTIMIZER_NUMBERS(X) X(lr) X(momentum) X(beta1) X(beta2) X(epsilon) X(weight_decay) X(clip)

typedef struct vpps_task_header {
    unsigned magic, words;
    /* number of virtual processors (VPs); number of groups, of equally many consecutive VPs */
    unsigned n_vps, n_groups;
    unsigned n_barriers;
    unsigned pool_words;       /* words of memory that the script uses: highest offset + 1 */
    unsigned blocks, n_blocks; /* address and number of the blocks (vpps_block) */
    unsigned tables, n_tables; /* address and number of the tables (vpps_table) */
    unsigned update;           /* kind of the optimizer + 1; 0: inference */
    unsigned guard;            /* non-zero: no update when the loss or a gradient is not finite */
    /* Non-zero: the factors of gradients stay until the update, which may compute the gradients itself. */
    unsigned lasting;
    unsigned pairs;          /* non-zero: blocks list gradients as pairs of a vector and a scalar factor */
    unsigned step;           /* number of this update, from 1 */
    unsigned dropout_key[2]; /* key of dropout: low word, high word */
    /* Adam's bias corrections: zero in a script; a device fills them in, since it knows how often each state was updated. */
    float corrections[2];
    unsigned steps; /* address of a vpps_param_step for each parameter; 0: all parameters step by the numbers below */
#define X(name) float name;
    VPPS_OPTIMIZER_NUMBERS(X)
#undef X
} vpps_task_header;

/* A parameter's own numbers, which replace the header's. */
typedef struct vpps_param_step {
    float lr, momentum, weight_decay;
    float corrections[2]; /* Adam's bias corrections, as in the header */
} vpps_param_step;

typedef struct vpps_block {
    unsigned cell; /* number of the block's cell in the batch's list of compiled cells */
    unsigned group;
    unsigned n; /* number of vertices */
    unsigned members[4];
    unsigned kept[5]; /* offsets of the kept values of each axis; item i lies at offset + i * kept_words */
    unsigned arrays;  /* address of the block's arrays */
} vpps_block;

/* A task of a group: its VPs wait for a barrier, run the task, signal a barrier. A GPU loads four words at once: tasks are aligned to
 * it. */
typedef struct vpps_task {
    /* A row of tasks.def. In a GPU's copy, the kinds of stages and gradients are those of the kernel: runtime/gpu/script.c. */
    unsigned kind;
    unsigned operands[3];
    /* The task waits until the barrier `wait` has been signalled `signals` times; VPPS_NO_BARRIER: it does not wait. */
    unsigned wait, signals;
    unsigned signal; /* when the task is done, each VP adds one to this barrier's counter; VPPS_NO_BARRIER: to none */
    /* STAGE: number of the stage of the block's cell; offsets of the vertices' pass records and of the gradients that they contribute. */
    unsigned stage, pass_record, contributions;
    unsigned address; /* the task's address in the host's script, for messages */
    unsigned unused;
} vpps_task;

#define VPPS_NO_BARRIER 0xffffffffu

/* The entries of a lookup table that the batch trains. */
typedef struct vpps_table {
    unsigned param;
    unsigned n;         /* number of entries */
    unsigned gradients; /* offset of their gradients, entry after entry */
    unsigned rows;      /* address of rows[n], their numbers in the table */
} vpps_table;

#endif
