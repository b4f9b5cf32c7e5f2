/* arguments.cuh - the kernel's one parameter. Addresses are device addresses. The host's C compiler reads this file, too. */
#ifndef VPPS_ARGUMENTS_CUH
#define VPPS_ARGUMENTS_CUH

typedef struct vpps_arguments {
    unsigned long long pool, script, counters;
    unsigned long long matrices, gradients,
        states[2]; /* addresses of matrices, their gradients and optimiser states, row after row */
    /* address of the virtual processors' scratch memory: VPPS_MEMORY_WEIGHTS words for each, then scratch_words for each */
    unsigned long long scratch;
    unsigned long long entries; /* address of the gradients of table entries, which the tasks NORM and UPDATE read */
    /* address of the packed vectors dy and x from which cuBLAS computes gradients of matrices */
    unsigned long long packed;
    /* addresses of the vpps_failure (how a launch ended) of this launch, of the preceding one, and of the launch after the next */
    unsigned long long failure, before, later;
    unsigned long long stale; /* address of the preceding launch's barrier counters, which this launch zeroes */
    unsigned long long end;   /* address of the launch's vpps_launch_end */
    unsigned long long watchdog_ns;
    /* address of the descriptions of the script's blocks of vertices, which the kernel sets (to shared memory, if they fit) */
    unsigned long long blocks;
    unsigned norms; /* offset, in the pool, of an array with one sum of squared gradients for each virtual processor */
    unsigned scratch_words;
    unsigned words; /* number of words of the script */
    unsigned stale_words;
    unsigned resumes; /* not 0: the launch is the second part of a batch, and the preceding one has summed the loss */
    unsigned finite;  /* not 0: the launch does nothing unless the preceding launch's loss and norm are finite */
    /* not 0: address, in the script, of an array that tells for each parameter whether it has a gradient */
    unsigned touched;
} vpps_arguments;

/* The kind of a task whose own kind is unknown; the task's first operand is then the unknown kind. */
#define VPPS_KERNEL_UNKNOWN 0xffffffffu

#endif
