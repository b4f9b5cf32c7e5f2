/* mpi.h - an implementation of MPI, opened at run time.
 *
 * MPI has no common binary interface before its version 5: a communicator is a pointer in Open MPI and an int in MPICH and
 * what follows its ABI (Intel MPI, MVAPICH, Cray). A program linked with either runs with that one alone. So this library is
 * linked with none and compiled with no mpi.h: a binding declares the few functions that are used, with the handles and
 * constants of its implementation, and is chosen by the library that the launcher's processes have. (A shim per
 * implementation, compiled with its mpicc, would have to be built and installed wherever an MPI is.) The tests compare the
 * bindings with the headers of what is installed.
 */
#pragma once

#include "base/base.h"

/* A communicator as an implementation has it, and the requests that are under way on it. Functions return MPI's error
 * codes, 0 for success. */
typedef struct vpps_mpi vpps_mpi;

typedef struct vpps_mpi_binding {
    const char *name;
    /* A duplicate of *comm, or, if NULL, of MPI_COMM_WORLD; MPI is initialised where it is not. */
    vpps_status (*open)(vpps_mpi **out, void *library, const void *comm, int *rank, int *size);
    /* Frees it; finalises MPI, if open has initialised it. */
    void (*close)(vpps_mpi *m);
    /* Begins to send or to receive. */
    int (*start)(vpps_mpi *m, bool receive, void *data, int bytes, int peer, int tag);
    /* Are all requests done? Then there are none from here on. */
    int (*test)(vpps_mpi *m, bool *done);
    /* Is request i, in the order of starting, still under way? */
    bool (*pending)(vpps_mpi *m, uint32_t i);
    /* Sends what is small, and goes on. */
    int (*tell)(vpps_mpi *m, const void *data, int bytes, int peer, int tag);
    /* Has something come, from whomever? */
    int (*heard)(vpps_mpi *m, int tag, bool *there);
    int (*receive)(vpps_mpi *m, void *data, int bytes, int tag);
    void (*describe)(vpps_mpi *m, int error, char *text, size_t n);
    void (*end)(vpps_mpi *m, int exit_code);
} vpps_mpi_binding;

extern const vpps_mpi_binding vpps_mpi_open_mpi, vpps_mpi_mpich;
