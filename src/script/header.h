/* header.h - structs of a script (batch's program): header, tasks, vertex blocks, tables. Kernels read it: no includes. */
#ifndef VPPS_SCRIPT_HEADER_H
#define VPPS_SCRIPT_HEADER_H

/* The numeric members of vpps_optimizer, as X(member). */
#define VPPS_OPTIMIZER_NUMBERS(X) X(lr) X(momentum) X(beta1) X(beta2) X(epsilon) X(weight_decay) X(clip)

typedef struct vpps_task_header {
    unsigned magic, words;
    /* number of VPs (virtual processors: CTAs or threads); number of groups, each n_vps / n_groups consecutive VPs */
    unsigned n_vps, n_groups;
    unsigned n_barriers;
    unsigned pool_words; /* words of device memory (the pool) that the batch uses: highest offset + 1 */
    /* blocks: address of the first block of vertices (vpps_block); n_blocks: number of blocks */
    unsigned blocks, n_blocks;
    unsigned tables, n_tables; /* tables: address of the first lookup table (vpps_table); n_tables: number of tables */
    unsigned update;           /* 0: inference, no update; else the optimizer's kind (vpps_optimizer_kind) + 1 */
    unsigned guard;            /* not 0: no update when the loss or a gradient is not finite */
    /* Not 0: the vectors dy and x of parameters' gradients (sums of dy x^T) stay in memory until the update. */
    unsigned lasting;
    /* Gradients can have terms scalar * vector, in lists with two words per element. 1: offsets of both; 2 (VPPS_PAIRS_IN_RUNS):
     * the scalar's offset, and the address of a vpps_pair_run, terms at equal distances; 0: no such terms. */
    unsigned pairs;
    unsigned step;           /* number of the parameter update at the end of this batch, counted from 1 */
    unsigned dropout_key[2]; /* key of the dropout's random numbers: low word, high word */
    /* Adam's bias corrections: zero from the host; the device, which counts each parameter's updates, sets them */
    float corrections[2];
    /* address of an array with one vpps_param_step for each parameter; 0: all parameters use the settings in this header */
    unsigned steps;
#define X(name) float name;
    VPPS_OPTIMIZER_NUMBERS(X)
#undef X
} vpps_task_header;

/* A parameter's own optimizer settings, which replace those in vpps_task_header. */
typedef struct vpps_param_step {
    float lr, momentum, weight_decay;
    float corrections[2]; /* Adam's bias corrections for this parameter: zero from the host, set by the device */
} vpps_param_step;

typedef struct vpps_block {
    unsigned cell; /* the cell (function) that the block's vertices compute: index in the batch's list of cells */
    unsigned group;
    unsigned n; /* number of vertices */
    unsigned members[4];
    /* offset of the values kept for backward: [0] of the vertices; [d] of the members (nodes read) of list input d - 1, in order */
    unsigned kept[5];
    unsigned arrays; /* word of the batch's program at which the block's arrays (vpps_block_view) begin */
} vpps_block;

/* A task of a group of threads or CTAs. Each waits for a barrier, runs the task, signals a barrier. Aligned for GPUs. */
typedef struct vpps_task {
    /* What the task does: a row of tasks.def. In a GPU's copy of tasks that run a part of a cell (STAGE) or add up
     * parameters' gradients (OUTER): number of the task's case in the kernel's switch. */
    unsigned kind;
    unsigned operands[3];
    /* The task waits until the barrier `wait` has been signalled `signals` times; VPPS_NO_BARRIER: it does not wait. */
    unsigned wait, signals;
    /* barrier whose counter each thread or CTA increments after the task; VPPS_NO_BARRIER: none */
    unsigned signal;
    /* STAGE tasks. stage: number of the stage (part of the cell); pass_record: offset of values that only forward or only backward uses;
     * contributions: offset of the gradients that the stage computes for the vertices it reads. */
    unsigned stage, pass_record, contributions;
    unsigned address; /* for error messages: index of the task's first word in the batch's program on the host */
    unsigned unused;
} vpps_task;

#define VPPS_NO_BARRIER 0xffffffffu

/* The entries (rows) of a lookup table that the batch trains. */
typedef struct vpps_table {
    unsigned param;
    unsigned n;         /* number of entries */
    unsigned gradients; /* offset in device memory of the gradients of these n entries, one after the other */
    unsigned rows;      /* word of the batch's program at which the n entries' row numbers in table `param` begin */
} vpps_table;

#endif
