/* comm.h - communication of processes that train one model together: a small table of functions.
 *
 *   comm.c        sums, agreement and failures, for every row of the table
 *   mpi.c         the row MPI: finding the library, waiting for messages with a time limit
 *   mpi_*.c       what differs between the implementations of MPI
 *   nccl.c        the row NCCL, between GPUs
 *
 * Except for those on failures, all processes make the same calls in the same order, by one thread of each process at a time.
 */
#pragma once

#include "base/base.h"

#include <stdatomic.h>

enum { VPPS_HOST_BYTES = 64 };

/* Bytes for a process, or from it. */
typedef struct vpps_parcel {
    void *data;
    size_t bytes;
} vpps_parcel;

typedef struct vpps_comm_table {
    const char *name;

    /* data[i] becomes the sum of all processes' data[i], added in the order of ranks: the same bits everywhere, and in every
     * run with as many processes. */
    vpps_status (*allreduce)(vpps_communicator *c, float *data, size_t n);

    /* out[p] goes to process p; in[p] is filled with what p sends here. Both sides know the number of bytes. This process's own are not
     * moved. */
    vpps_status (*exchange)(vpps_communicator *c, const vpps_parcel *out, const vpps_parcel *in);

    vpps_status (*broadcast)(vpps_communicator *c, void *data, size_t bytes, uint32_t root);
    vpps_status (*barrier)(vpps_communicator *c);

    /* This process has failed. tell: reports the failure to the first process, whose next wait fails with it. end: ends all processes of
     * the run at once. */
    void (*tell)(vpps_communicator *c, const char *message);
    void (*end)(vpps_communicator *c, int exit_code);
    void (*close)(vpps_communicator *c);
} vpps_comm_table;

struct vpps_communicator {
    const vpps_comm_table *table;
    uint32_t rank, size;
    char (*hosts)[VPPS_HOST_BYTES]; /* of each process */
    uint64_t watchdog_ns;
    /* Set by all processes while they read, save or measure, which may take any time: a busy process then sends a sign of life now and
     * then, and a wait fails only when these stop, or after 60 times the watchdog's time. */
    atomic_bool patient;
    bool ended; /* another process has reported the failure, and ends the run */
    uint64_t sent_bytes;
    float *scratch;
    vpps_parcel *parcels; /* 2 * size, of comm.c's own exchanges */
};

/* Fills in the members that are the same for every row; to be called first when a row opens. Fails with MEMORY. */
vpps_status vpps_comm_init(vpps_communicator *c, const vpps_comm_table *table, uint32_t rank, uint32_t size,
                           uint32_t watchdog_ms);
/* Frees what vpps_comm_init made. */
void vpps_comm_free(vpps_communicator *c);

/* Tells every process every other's host. */
vpps_status vpps_comm_share_hosts(vpps_communicator *c, const char *host);

/* allreduce for rows without one of their own: every process adds up one part of the elements and sends it to all. Each sends 2 (P - 1) / P
 * of the data, which is the least there is (Patarasuk and Yuan 2009). */
vpps_status vpps_allreduce_by_exchange(vpps_communicator *c, float *data, size_t n);

/* all[p * bytes ...] becomes what process p gave as `own`. */
vpps_status vpps_comm_gather(vpps_communicator *c, const void *own, void *all, size_t bytes);

/* OK if all processes call it with OK; else all fail with the status and the message of the first process that did not, and the message
 * names it. */
vpps_status vpps_comm_agree(vpps_communicator *c, vpps_status status);

/* Do all have the same lines, "NAME VALUE" each, as the first process? Else all fail with ARGUMENT, naming the process, its
 * host, and the first line that differs. */
vpps_status vpps_comm_compare(vpps_communicator *c, const char *lines);

/* The sum of what all processes give, added in the order of ranks. n is at most VPPS_COMM_SUMS. */
enum { VPPS_COMM_SUMS = 64 };
vpps_status vpps_comm_sum(vpps_communicator *c, double *values, uint32_t n);

/* A stream of the calling thread's GPU, and whether it has done what it was given. */
typedef struct vpps_gpu_stream {
    struct CUstream_st *stream;
    vpps_status (*idle)(void *context, bool *is_idle);
    void *context;
} vpps_gpu_stream;

/* Opens a communicator between the GPUs of these processes, one of each, for data in the GPUs' memory. `processes` must outlive it. All
 * processes call it together. Sums are made in NCCL's order, the same in all processes. Fails with DEVICE, MEMORY, and as vpps_comm_agree
 * does. */
vpps_status vpps_nccl_open(vpps_communicator **out, vpps_communicator *processes, vpps_gpu_stream stream);

vpps_status vpps_mpi_open(vpps_communicator **out, const void *comm, uint32_t watchdog_ms);
