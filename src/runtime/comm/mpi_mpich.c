/* mpi_mpich.c - MPICH and implementations with its ABI: handles are numbers. */
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
