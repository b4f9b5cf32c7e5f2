/* arguments.cuh - the kernel's one parameter, shared by host and kernel; the host's C compiler reads this file, too.
 * Addresses are device addresses. */
#ifndef VPPS_ARGUMENTS_CUH
#define VPPS_ARGUMENTS_CUH

typedef struct vpps_arguments {
    unsigned long long pool, script, counters;
    unsigned long long matrices, gradients,
        states[2];              /* addresses of matrices, their gradients and optimiser states, row after row */
    unsigned long long scratch; /* scratch memory: scratch_words for each VP */
    unsigned long long entries; /* gradients of table entries, for norm and update */
    unsigned long long packed;  /* packed factors of matrices' gradients, for cuBLAS */
    /* addresses of the vpps_failure of this launch, of the preceding one, and of the launch after the next */
    unsigned long long failure, before, later;
    unsigned long long stale; /* counters of the preceding launch, which this launch zeroes for reuse */
    unsigned long long end;   /* address of the launch's vpps_launch_end */
    unsigned long long watchdog_ns;
    /* The script's descriptions of its blocks of vertices, set by the kernel: in shared memory if they are few. */
    unsigned long long blocks;
    unsigned norms; /* offset in the pool of the VPs' sums of squares */
    unsigned scratch_words;
    unsigned words; /* number of words of the script */
    unsigned stale_words;
    unsigned resumes; /* the preceding launch was the first part of the same batch, whose loss it has */
    unsigned finite;  /* the launch does nothing unless the preceding launch's loss and norm are finite */
    unsigned touched; /* address in the script: for each parameter a word, not 0 if it has a gradient; 0: none has */
} vpps_arguments;

/* The kind that replaces a task's unknown kind, which becomes the task's first operand. */
#define VPPS_KERNEL_UNKNOWN 0xffffffffu

#endif
