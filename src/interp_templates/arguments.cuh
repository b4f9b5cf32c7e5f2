/* arguments.cuh - what host and kernel agree on beside the script: the kernel's one parameter. Read by the host's C
 * compiler, too. Addresses are of device memory. */
#ifndef VPPS_ARGUMENTS_CUH
#define VPPS_ARGUMENTS_CUH

typedef struct vpps_arguments {
    unsigned long long pool, script, counters;
    unsigned long long matrices, gradients, states[2]; /* of all matrices, row after row; alike */
    unsigned long long scratch;                        /* scratch_words for each VP */
    unsigned long long entries;                        /* gradients of tables' entries, for norm and update */
    unsigned long long packed;                         /* factors of matrices' gradients, for cuBLAS */
    unsigned long long failure, before, later; /* vpps_failure: of this launch, the preceding one, the next but one */
    unsigned long long stale;                  /* counters of the preceding launch, which the next one needs zeroed */
    unsigned long long end;                    /* a vpps_launch_end */
    unsigned long long watchdog_ns;
    unsigned long long
        blocks;     /* the script's descriptions of blocks, which the kernel finds; in shared memory if they are few */
    unsigned norms; /* offset in the pool of the VPs' sums of squares */
    unsigned scratch_words;
    unsigned words; /* of the script */
    unsigned stale_words;
    unsigned resumes; /* the preceding launch was the first part of the same batch: its loss is this one's */
    unsigned finite;  /* nothing is done unless loss and norm of the preceding launch are finite */
    unsigned touched; /* address in the script: non-zero for each parameter that has a gradient already; 0: none has */
} vpps_arguments;

/* A task's kind in a kernel's script: it is none, and what stood there is its first operand. */
#define VPPS_KERNEL_UNKNOWN 0xffffffffu

#endif
