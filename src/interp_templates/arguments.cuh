/* arguments.cuh - what host and kernel agree on beside the script: the kernel's one parameter. Read by the host's C
 * compiler, too. Addresses are of device memory. */
#ifndef VPPS_ARGUMENTS_CUH
#define VPPS_ARGUMENTS_CUH

typedef struct vpps_arguments {
    unsigned long long pool, script, counters;
    unsigned long long matrices, gradients, states[2]; /* of all matrices, row after row; alike */
    unsigned long long scratch;                        /* scratch_words for each VP */
    unsigned long long entries;                        /* gradients of tables' entries, for norm and update */
    unsigned long long failure;                        /* a vpps_failure */
    unsigned long long watchdog_ns;
    unsigned long long blocks; /* the script's descriptions of blocks: the kernel finds them, and brings them near */
    unsigned norms; /* offset in the pool of the VPs' sums of squares */
    unsigned scratch_words;
    unsigned tasks;   /* address in the script: of every group, its tasks' address */
    unsigned words;   /* of the script, tasks included */
    unsigned touched; /* likewise: of every parameter, non-zero if it has a gradient already; 0: none has */
} vpps_arguments;

/* What a group's VPs do one after the other, as the kernel reads it: wait, a task, signal. Made of a script's instructions; stages
 * are numbered through, behind the tasks' codes, then cells whose gradients are summed up (codegen/kernel_plan.h). Records begin at multiples of four words. */
typedef struct vpps_kernel_task {
    unsigned task, operands[3]; /* VPPS_KERNEL_NOTHING: none. Of a stage: block, first, count */
    unsigned wait, wanted;      /* a barrier and its signals; VPPS_KERNEL_NOTHING: none */
    unsigned signal;            /* a barrier; VPPS_KERNEL_NOTHING: none */
    unsigned address;           /* of the script's instruction that waits, or of the task's */
} vpps_kernel_task;

#define VPPS_KERNEL_NOTHING 0xffffffffu
#define VPPS_KERNEL_UNKNOWN 0xfffffffeu /* a task: an instruction that is none, its first operand */

#endif
