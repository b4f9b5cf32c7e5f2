/* mpich_abi.h - constants of MPICH's binary interface (www.mpich.org/abi). */
#pragma once

/* MPICH's constants as X(their name, our name, value). */
#define VPPS_MPICH_CONSTANTS(X)                                                                                        \
    X(MPI_COMM_WORLD, MPICH_COMM_WORLD, 0x44000000)                                                                    \
    X(MPI_BYTE, MPICH_BYTE, 0x4c00010d)                                                                                \
    X(MPI_ERRORS_RETURN, MPICH_ERRORS_RETURN, 0x54000001)                                                              \
    X(MPI_ANY_SOURCE, MPICH_ANY_SOURCE, -2)

enum {
#define X(theirs, ours, value) ours = value,
    VPPS_MPICH_CONSTANTS(X)
#undef X
        MPICH_STATUS_IGNORE = 1
};
