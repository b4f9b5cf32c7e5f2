/* arguments.cuh - what host and kernel agree on: the kernel's one parameter, and the tables it finds its way by. Read by
 * the host's C compiler, too. Addresses are of device memory. */
#ifndef VPPS_ARGUMENTS_CUH
#define VPPS_ARGUMENTS_CUH

typedef struct vpps_arguments {
    unsigned long long pool, script, counters, master, gradients, states[2], tables, resume, failure;
    unsigned long long watchdog_ns;
    unsigned norms; /* offset in the pool of the VPs' sums of squares */
    unsigned part;  /* 0: from the start; 1: from where HOST stopped */
} vpps_arguments;

/* Of every parameter, in the model's order. Vectors and lookup tables: offsets into the pool; 0xffffffff: none. */
typedef struct vpps_param_entry {
    unsigned matrix; /* index of the matrix; 0xffffffff: it is none */
    unsigned rows, cols, values, gradient, states[2];
} vpps_param_entry;

/* Of every matrix, in the order of placing. */
typedef struct vpps_matrix_entry {
    unsigned rows, cols;
    unsigned row_words; /* in the tables: for each row, its first word in the master copy; a multiple of 32 rows, those
                           beyond the last being zeros */
    unsigned gradient;  /* first word of rows x cols in the gradients' buffer */
} vpps_matrix_entry;

#endif
