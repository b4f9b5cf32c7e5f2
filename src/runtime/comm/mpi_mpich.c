/* mpi_mpich.c - the binding for MPICH, and for MPI libraries with its binary interface, whose handles are numbers. */
#include "runtime/comm/mpich_abi.h"

#define HANDLE int
#define BINDING vpps_mpi_mpich
#define NAME "MPICH"
#define STATUS_IGNORE ((void *)(uintptr_t)MPICH_STATUS_IGNORE)

#include "runtime/comm/mpi_binding.h"

static bool find_constants(void *library, constants *k) {
    (void)library;
    *k = (constants){MPICH_COMM_WORLD, MPICH_BYTE, MPICH_ERRORS_RETURN, MPICH_ANY_SOURCE};
    return true;
}
