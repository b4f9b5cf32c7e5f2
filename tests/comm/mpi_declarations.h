/* mpi_declarations.h - are MPI and NCCL declared as in the headers that are installed? */
#ifndef VPPS_TESTS_COMM_MPI_DECLARATIONS_H
#define VPPS_TESTS_COMM_MPI_DECLARATIONS_H

#include <stdbool.h>

extern const bool mpich_declarations_compared, open_mpi_declarations_compared, nccl_declarations_compared;

#endif
