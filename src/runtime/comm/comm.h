/* comm.h - communication between processes that train one model together: a table of functions.
 *
 *   comm.c        sums, agreement and failures, for every table
 *   mpi.c         the table for MPI: finding the library, waiting for messages with a time limit
 *   mpi_*.c       the differences between implementations of MPI
 *   nccl.c        sums over GPUs by NCCL
 *
 * All processes make the same calls in the same order, by one thread of each process at a time; calls about failures are exceptions. */
#pragma once

#include "base/base.h"

#include <stdatomic.h>

enum { VPPS_HOST_BYTES = 64 };

/* Bytes that are sent to a process or received from it. */
typedef struct vpps_parcel {
    void *data;
    size_t bytes;
} vpps_parcel;

typedef struct vpps_comm_table {
    /* Sends c->out[p] to each other process p, and fills c->in[p] with data from p. Both sides know the sizes. */
    vpps_status (*exchange)(vpps_communicator *c);

    /* Sends the message of this process's failure to the first process, whose next wait then fails with that message. */
    void (*tell)(vpps_communicator *c, const char *message);
    /* Ends all processes of the run at once. */
    void (*end)(vpps_communicator *c, int exit_code);
    void (*close)(vpps_communicator *c);
} vpps_comm_table;

struct vpps_communicator {
    const vpps_comm_table *table;
    uint32_t rank, size;
    char (*hosts)[VPPS_HOST_BYTES]; /* host names, indexed by process */
    uint64_t watchdog_ns;
    /* All processes set this flag while they read, save or measure, which may take any time. A busy process then sends signs of life, and a
     * wait for others fails only when these stop, or after 60 times the watchdog's time. */
    atomic_bool patient;
    bool ended; /* whether another process has announced that it ends all processes, after a failure */
    uint64_t sent_bytes;
    float *scratch;
    vpps_parcel *out,
        *in; /* for each process: data that the next exchange sends (out) and receives (in, which follows `out` in memory) */
};

/* Sets those members of a communicator that do not depend on the library, such as MPI. To be called first. Fails with MEMORY. */
vpps_status vpps_comm_init(vpps_communicator *c, const vpps_comm_table *table, uint32_t rank, uint32_t size,
                           uint32_t watchdog_ms);
void vpps_comm_free(vpps_communicator *c);

/* Tells every process the host names of all others. */
vpps_status vpps_comm_share_hosts(vpps_communicator *c, const char *host);

/* Replaces data[i] by the sum of all processes' data[i], added in the order of ranks: the same bits in all processes and runs. Each process
 * sums a part of the elements and sends the sums to all: 2 (P - 1) / P of the data, the least possible (Patarasuk and Yuan 2009). */
vpps_status vpps_comm_allreduce(vpps_communicator *c, float *data, size_t n);

/* Copies the data of process `root` to every other. */
vpps_status vpps_comm_broadcast(vpps_communicator *c, void *data, size_t bytes, uint32_t root);

/* In every process, sets all[p * bytes ...] to the `own` bytes of process p, for each p. */
vpps_status vpps_comm_gather(vpps_communicator *c, const void *own, void *all, size_t bytes);

/* Returns OK if all processes call this with OK. Otherwise fails in all with the status, message and name of the first failing process. */
vpps_status vpps_comm_agree(vpps_communicator *c, vpps_status status);

/* Compares this process's lines "NAME VALUE" with those of the first process. If any process's lines differ, fails in all with ARGUMENT;
 * the message names the process, its host, and the first different line. */
vpps_status vpps_comm_compare(vpps_communicator *c, const char *lines);

/* vpps_comm_sum replaces each of n <= VPPS_COMM_SUMS values by its sum over all processes, added in the order of ranks. */
enum { VPPS_COMM_SUMS = 64 };
vpps_status vpps_comm_sum(vpps_communicator *c, double *values, uint32_t n);

/* A CUDA stream of the calling thread's GPU, and a function that tells whether the work in the stream is done. */
typedef struct vpps_gpu_stream {
    struct CUstream_st *stream;
    vpps_status (*idle)(void *context, bool *is_idle);
    void *context;
} vpps_gpu_stream;

/* A connection of the GPUs of some processes, one GPU each, which sums data over them. */
typedef struct vpps_nccl vpps_nccl;

/* Connects the GPUs of the communicator's processes, one GPU each. `processes` must outlive the connection. All processes call this
 * together. Fails with DEVICE, MEMORY, and as vpps_comm_agree does. */
vpps_status vpps_nccl_open(vpps_nccl **out, vpps_communicator *processes, vpps_gpu_stream stream);
void vpps_nccl_close(vpps_nccl *m);
/* Replaces each of n > 0 numbers in GPU memory by its sum over all processes, in NCCL's order, which is the same in all. Fails with DEVICE,
 * STALL, and with STATE after an earlier failure. */
vpps_status vpps_nccl_sum(vpps_nccl *m, float *data, size_t n);

vpps_status vpps_mpi_open(vpps_communicator **out, const void *comm, uint32_t watchdog_ms);
