/* mpi_declarations.h - are MPI and NCCL declared as in the headers that are installed? */
#pragma once

#include <stdbool.h>

extern const bool mpich_declarations_compared, open_mpi_declarations_compared, nccl_declarations_compared;
