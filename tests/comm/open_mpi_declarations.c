/* open_mpi_declarations.c - compares what the template of calls assumes with Open MPI's header, if there is one. */
#include <stdbool.h>

#if __has_include(<mpi.h>)
#include <mpi.h>

/* Handles are pointers; their objects have these names. */
_Static_assert(sizeof(MPI_Comm) == sizeof(void *), "MPI_Comm is no pointer");
_Static_assert(sizeof(MPI_Datatype) == sizeof(void *), "MPI_Datatype is no pointer");
_Static_assert(sizeof(MPI_Request) == sizeof(void *), "MPI_Request is no pointer");
_Static_assert(sizeof(MPI_Errhandler) == sizeof(void *), "MPI_Errhandler is no pointer");
_Static_assert(MPI_THREAD_SERIALIZED == 2, "MPI_THREAD_SERIALIZED has another value");

_Static_assert(MPI_ANY_SOURCE == -1, "MPI_ANY_SOURCE has another value");

#define SAME(symbol, type)                                                                                             \
    _Static_assert(__builtin_types_compatible_p(__typeof__(symbol), type), #symbol " is declared otherwise")

SAME(MPI_Init_thread, int(int *, char ***, int, int *));
SAME(MPI_Comm_dup, int(MPI_Comm, MPI_Comm *));
SAME(MPI_Comm_set_errhandler, int(MPI_Comm, MPI_Errhandler));
SAME(MPI_Isend, int(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *));
SAME(MPI_Irecv, int(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *));
SAME(MPI_Recv, int(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status *));
SAME(MPI_Test, int(MPI_Request *, int *, MPI_Status *));
SAME(MPI_Request_free, int(MPI_Request *));
SAME(MPI_Testall, int(int, MPI_Request *, int *, MPI_Status *));
SAME(MPI_Iprobe, int(int, int, MPI_Comm, int *, MPI_Status *));

const bool open_mpi_declarations_compared = true;
#else
const bool open_mpi_declarations_compared = false;
#endif
