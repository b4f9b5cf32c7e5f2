/* mpi_declarations.h - tells whether our declarations of MPI and NCCL were compared with installed headers. */
#pragma once

#include <stdbool.h>

extern const bool mpich_declarations_compared, open_mpi_declarations_compared, nccl_declarations_compared;
