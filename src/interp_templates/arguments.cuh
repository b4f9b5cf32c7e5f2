/* arguments.cuh - the kernel's one parameter. Addresses are device addresses. The host's C compiler reads this file, too. */
#ifndef VPPS_ARGUMENTS_CUH
#define VPPS_ARGUMENTS_CUH

typedef struct vpps_arguments {
    unsigned long long pool, script, counters;
    /* addresses of all matrices, row after row, and of their gradients and the optimiser's states in the same layout */
    unsigned long long matrices, gradients, states[2];
    /* address of scratch memory: VPPS_MEMORY_WEIGHTS words of weights per CTA, then scratch_words of buffers per CTA */
    unsigned long long scratch;
    unsigned long long entries; /* address of the gradients of table entries, which the tasks NORM and UPDATE read */
    /* address of the packed vectors dy and x from which cuBLAS computes gradients of matrices */
    unsigned long long packed;
    /* addresses of the vpps_failure (how a launch ended) of this launch, of the preceding one, and of the launch after the next */
    unsigned long long failure, before, later;
    unsigned long long stale; /* address of the preceding launch's barrier counters, which this launch zeroes */
    unsigned long long end;   /* address where the kernel writes times, loss, norm and failure for the host */
    unsigned long long watchdog_ns;
    /* address of the batch's blocks (vpps_block: vertices of one cell); if they are few, of a copy in shared memory */
    unsigned long long blocks;
    unsigned norms; /* offset in the pool (the batch's memory) of an array: each CTA's sum of squared gradients */
    unsigned scratch_words;
    unsigned words; /* length of the script (the batch's program) in 32-bit words */
    unsigned stale_words;
    unsigned resumes; /* not 0: the launch only updates parameters; the preceding launch has summed the batch's loss */
    unsigned finite;  /* not 0: the launch does nothing unless the preceding launch's loss and norm are finite */
    /* not 0: address in the script (the batch's program) of flags: has a parameter a gradient of earlier launches? */
    unsigned touched;
} vpps_arguments;

/* Replaces a task's kind that the host does not know; the task's first operand is then that unknown kind. */
#define VPPS_KERNEL_UNKNOWN 0xffffffffu

#endif
