/* header.h - the structs of a script: its header, tasks, blocks and tables. Host and kernel read this file, so it includes nothing. */
#ifndef VPPS_SCRIPT_HEADER_H
#define VPPS_SCRIPT_HEADER_H

/* The numeric members of vpps_optimizer, as X(member). */
#define VPPS_OPTIMIZER_NUMBERS(X) X(lr) X(momentum) X(beta1) X(beta2) X(epsilon) X(weight_decay) X(clip)

typedef struct vpps_task_header {
    unsigned magic, words;
    /* n_vps: number of virtual processors (VPs); n_groups: of groups of VPs; a group is n_vps / n_groups consecutive VPs */
    unsigned n_vps, n_groups;
    unsigned n_barriers;
    unsigned pool_words;       /* words of memory (the pool) that the script uses: highest offset + 1 */
    unsigned blocks, n_blocks; /* blocks: address of the first block (vpps_block); n_blocks: number of blocks */
    unsigned tables, n_tables; /* tables: address of the first lookup table (vpps_table); n_tables: number of tables */
    unsigned update;           /* kind of the optimizer + 1; 0: inference */
    unsigned guard;            /* non-zero: no update when the loss or a gradient is not finite */
    /* Non-zero: the vectors of which parameters' gradients are sums of products dy x^T stay in memory until the update. */
    unsigned lasting;
    unsigned pairs;          /* words of an element of lists of pairs (scalar, vector): 2, or 5 for runs; 0: no lists */
    unsigned step;           /* number of the script's update, counted from 1 */
    unsigned dropout_key[2]; /* key of the dropout's random numbers: low word, high word */
    /* Adam's bias corrections: zero in a script. The device fills them in, since it knows how often each parameter was updated. */
    float corrections[2];
    unsigned steps; /* address of an array of vpps_param_step, one per parameter; 0: all use the header's numbers */
#define X(name) float name;
    VPPS_OPTIMIZER_NUMBERS(X)
#undef X
} vpps_task_header;

/* A parameter's own optimizer numbers, which replace those of the header. */
typedef struct vpps_param_step {
    float lr, momentum, weight_decay;
    float corrections[2]; /* Adam's bias corrections for this parameter: zero in a script, filled in by the device */
} vpps_param_step;

typedef struct vpps_block {
    unsigned cell; /* index of the block's cell in the batch's list of compiled cells */
    unsigned group;
    unsigned n; /* number of vertices */
    unsigned members[4];
    unsigned kept[5]; /* for each axis: offset of the kept values; item i lies at offset + i * kept_words */
    unsigned arrays;  /* address in the script of the block's arrays */
} vpps_block;

/* A task of a group: the group's virtual processors wait for a barrier, run the task, signal a barrier. Tasks are aligned to four words for
 * GPUs. */
typedef struct vpps_task {
    /* Kind of the task, the number of a row of tasks.def; in a GPU's copy of STAGE and OUTER tasks, the number of the kernel's case. */
    unsigned kind;
    unsigned operands[3];
    /* The task waits until the barrier `wait` has been signalled `signals` times; VPPS_NO_BARRIER: it does not wait. */
    unsigned wait, signals;
    /* barrier whose counter each virtual processor increments after the task; VPPS_NO_BARRIER: none */
    unsigned signal;
    /* STAGE tasks: the stage's number in its cell; offsets of values that only one pass uses, and of the gradients that it contributes. */
    unsigned stage, pass_record, contributions;
    unsigned address; /* the task's address in the host's script, for error messages */
    unsigned unused;
} vpps_task;

#define VPPS_NO_BARRIER 0xffffffffu

/* The entries of a lookup table that the batch trains. */
typedef struct vpps_table {
    unsigned param;
    unsigned n;         /* number of entries */
    unsigned gradients; /* offset of the trained entries' gradients, entry after entry */
    unsigned rows;      /* address in the script of rows[n]: the entries' rows in the table */
} vpps_table;

#endif
