/* arguments.cuh - what host and kernel agree on beside the script: the kernel's one parameter. Read by the host's C
 * compiler, too. Addresses are of device memory. */
#ifndef VPPS_ARGUMENTS_CUH
#define VPPS_ARGUMENTS_CUH

typedef struct vpps_arguments {
    unsigned long long pool, script, counters;
    unsigned long long matrices, gradients, states[2]; /* of all matrices, row after row; alike */
    unsigned long long scratch;                        /* scratch_words for each VP */
    unsigned long long failure;                        /* a vpps_failure */
    unsigned long long watchdog_ns;
    unsigned norms; /* offset in the pool of the VPs' sums of squares */
    unsigned scratch_words;
} vpps_arguments;

#endif
