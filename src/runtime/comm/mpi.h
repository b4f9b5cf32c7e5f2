/* mpi.h - the interface to an implementation of MPI, which is opened at run time.
 *
 * MPI has no common binary interface before its version 5: a communicator is a pointer in Open MPI, and an int in MPICH and in
 * implementations with its ABI (Intel MPI, MVAPICH, Cray). A program linked with either runs with that one alone. So this library is linked
 * with none and compiled without mpi.h: a "binding" declares the few functions that are used, with the handles and constants of its
 * implementation, and is chosen by the library that the launcher's processes have. (A shim per implementation, compiled with its mpicc,
 * would have to be built and installed wherever an MPI is.) Tests compare the bindings with the installed headers. */
#pragma once

#include "base/base.h"

/* A communicator of an implementation of MPI, with its pending requests. Functions return MPI's error codes, 0 for success. */
typedef struct vpps_mpi vpps_mpi;

typedef struct vpps_mpi_binding {
    const char *name;
    /* Duplicates *comm, or MPI_COMM_WORLD if `comm` is NULL. Initialises MPI if necessary. */
    vpps_status (*open)(vpps_mpi **out, void *library, const void *comm, int *rank, int *size);
    /* Frees the communicator, and finalises MPI if `open` has initialised it. */
    void (*close)(vpps_mpi *m);
    /* Starts to send or receive data. */
    int (*start)(vpps_mpi *m, bool receive, void *data, int bytes, int peer, int tag);
    /* Tests whether all started sends and receives are done; if so, forgets them. */
    int (*test)(vpps_mpi *m, bool *done);
    /* Returns whether send or receive number i, in the order of starting, is still pending. */
    bool (*pending)(vpps_mpi *m, uint32_t i);
    /* Sends a small message without waiting. */
    int (*tell)(vpps_mpi *m, const void *data, int bytes, int peer, int tag);
    /* Tests whether a small message from any process has arrived. */
    int (*heard)(vpps_mpi *m, int tag, bool *there);
    int (*receive)(vpps_mpi *m, void *data, int bytes, int tag);
    void (*describe)(vpps_mpi *m, int error, char *text, size_t n);
    void (*end)(vpps_mpi *m, int exit_code);
} vpps_mpi_binding;

extern const vpps_mpi_binding vpps_mpi_open_mpi, vpps_mpi_mpich;
