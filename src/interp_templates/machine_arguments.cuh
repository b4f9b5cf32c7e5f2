/* machine_arguments.cuh - what host and kernel agree on beside the script: the kernel's one parameter, and how a launch ended. Read by
 * the host's C compiler, too. Addresses are of device memory. */
#ifndef VPPS_MACHINE_ARGUMENTS_CUH
#define VPPS_MACHINE_ARGUMENTS_CUH

typedef struct vpps_machine_arguments {
    unsigned long long pool, script, counters;
    unsigned long long matrices, gradients, states[2]; /* of all matrices, row after row; alike */
    unsigned long long scratch;                        /* scratch_words for each VP */
    unsigned long long outcome;
    unsigned long long watchdog_ns;
    unsigned norms; /* offset in the pool of the VPs' sums of squares */
    unsigned scratch_words;
} vpps_machine_arguments;

/* Zeroed before a launch. The first VP that fails says why. */
typedef struct vpps_machine_outcome {
    unsigned failed; /* a vpps_machine_failure */
    unsigned vp, address, value, have, wanted;
    float norm, loss;
} vpps_machine_outcome;

enum vpps_machine_failure { VPPS_MACHINE_RUNS, VPPS_MACHINE_STALL, VPPS_MACHINE_OPCODE };

/* Barrier counters lie so many words apart: a sector of the L2 cache each. */
enum { VPPS_MACHINE_COUNTER_WORDS = 8 };

#endif
