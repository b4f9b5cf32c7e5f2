/* mpich_declarations.c - compares runtime/comm/mpich_abi.h and the template of calls with MPICH's header, if there is one. */
#include "runtime/comm/mpich_abi.h"

#include <stdbool.h>

#if __has_include(<mpi.h>)
#include <mpi.h>

#define X(theirs, ours, value) _Static_assert((theirs) == (ours), #theirs " has another value");
VPPS_MPICH_CONSTANTS(X)
#undef X

#define SAME(symbol, type)                                                                                             \
    _Static_assert(__builtin_types_compatible_p(__typeof__(symbol), type), #symbol " is declared otherwise")

SAME(MPI_Init_thread, int(int *, char ***, int, int *));
SAME(MPI_Comm_dup, int(int, int *));
SAME(MPI_Comm_set_errhandler, int(int, int));
SAME(MPI_Error_string, int(int, char *, int *));
SAME(MPI_Isend, int(const void *, int, int, int, int, int, int *));
SAME(MPI_Irecv, int(void *, int, int, int, int, int, int *));
SAME(MPI_Recv, int(void *, int, int, int, int, int, MPI_Status *));
SAME(MPI_Test, int(int *, int *, MPI_Status *));
SAME(MPI_Request_free, int(int *));
SAME(MPI_Testall, int(int, int *, int *, MPI_Status *));
SAME(MPI_Iprobe, int(int, int, int, int *, MPI_Status *));
SAME(MPI_Abort, int(int, int));
_Static_assert(MPI_THREAD_SERIALIZED == 2, "MPI_THREAD_SERIALIZED has another value");

const bool mpich_declarations_compared = true;
#else
const bool mpich_declarations_compared = false;
#endif
