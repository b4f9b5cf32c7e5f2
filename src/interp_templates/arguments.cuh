/* arguments.cuh - the kernel's one parameter. Addresses are device addresses. The host's C compiler reads this file, too. */
#ifndef VPPS_ARGUMENTS_CUH
#define VPPS_ARGUMENTS_CUH

typedef struct vpps_arguments {
    unsigned long long pool, script, counters;
    /* addresses of all matrices, row after row, and of their gradients and the optimiser's states in the same layout */
    unsigned long long matrices, gradients, states[2];
    /* address of scratch memory: VPPS_MEMORY_WEIGHTS words of weights for each virtual processor, then scratch_words of buffers for each */
    unsigned long long scratch;
    unsigned long long entries; /* address of the gradients of table entries, which the tasks NORM and UPDATE read */
    /* address of the packed vectors dy and x from which cuBLAS computes gradients of matrices */
    unsigned long long packed;
    /* addresses of the vpps_failure (how a launch ended) of this launch, of the preceding one, and of the launch after the next */
    unsigned long long failure, before, later;
    unsigned long long stale; /* address of the preceding launch's barrier counters, which this launch zeroes */
    unsigned long long end;   /* address of the launch's vpps_launch_end */
    unsigned long long watchdog_ns;
    /* address of the descriptions of the script's blocks of vertices; set by the kernel, to a copy in shared memory if there are few */
    unsigned long long blocks;
    unsigned norms; /* offset, in the pool, of an array with one sum of squared gradients for each virtual processor */
    unsigned scratch_words;
    unsigned words; /* number of words of the script */
    unsigned stale_words;
    unsigned resumes; /* not 0: the launch only updates parameters; the preceding launch has summed the batch's loss */
    unsigned finite;  /* not 0: the launch does nothing unless the preceding launch's loss and norm are finite */
    /* not 0: address, in the script, of an array that tells for each parameter whether earlier launches have computed a gradient */
    unsigned touched;
} vpps_arguments;

/* Replaces a task's kind that the host does not know; the task's first operand is then that unknown kind. */
#define VPPS_KERNEL_UNKNOWN 0xffffffffu

#endif
