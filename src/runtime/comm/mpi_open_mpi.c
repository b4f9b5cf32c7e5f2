/* mpi_open_mpi.c - the binding for Open MPI, whose handles are pointers to objects that its library exports. */
#define HANDLE void *
#define BINDING vpps_mpi_open_mpi
#define NAME "Open MPI"
#define STATUS_IGNORE NULL

#include "runtime/comm/mpi_binding.h"

static bool find_constants(void *library, constants *k) {
    k->comm_world = dlsym(library, "ompi_mpi_comm_world");
    k->type_byte = dlsym(library, "ompi_mpi_byte");
    k->any_source = -1;
    k->errors_return = dlsym(library, "ompi_mpi_errors_return");
    return k->comm_world && k->type_byte && k->errors_return;
}
