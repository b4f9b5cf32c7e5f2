/* nccl_api.h - declarations of the NCCL functions that VPPS calls, so that VPPS builds without NCCL (NCCL User Guide, API reference).
 * tests/comm/nccl_declarations.c compares them with NCCL's header if there is one. The library is opened at run time. */
#pragma once

#include "base/base.h"

typedef struct ncclComm *vpps_nccl_comm;
typedef struct CUstream_st *vpps_nccl_stream;
typedef struct vpps_nccl_id {
    char internal[128];
} vpps_nccl_id;

/* NCCL's constants as X(their name, our name, value). Its enums are declared as unsigned, which C treats as compatible. */
#define VPPS_NCCL_CONSTANTS(X)                                                                                         \
    X(ncclSuccess, VPPS_NCCL_SUCCESS, 0)                                                                               \
    X(ncclInProgress, VPPS_NCCL_IN_PROGRESS, 7)                                                                        \
    X(ncclSum, VPPS_NCCL_SUM, 0)                                                                                       \
    X(ncclFloat32, VPPS_NCCL_FLOAT32, 7)
enum {
#define X(theirs, ours, value) ours = (value),
    VPPS_NCCL_CONSTANTS(X)
#undef X
};

/* NCCL's functions as X(name, parameters); each returns an enum. */
#define VPPS_NCCL_FUNCTIONS(X)                                                                                         \
    X(ncclGetUniqueId, (vpps_nccl_id * id))                                                                            \
    X(ncclCommInitRank, (vpps_nccl_comm * comm, int size, vpps_nccl_id id, int rank))                                  \
    X(ncclCommDestroy, (vpps_nccl_comm comm))                                                                          \
    X(ncclCommAbort, (vpps_nccl_comm comm))                                                                            \
    X(ncclCommGetAsyncError, (vpps_nccl_comm comm, unsigned *error))                                                   \
    X(ncclAllReduce, (const void *from, void *to, size_t n, unsigned type, unsigned op, vpps_nccl_comm comm,           \
                      vpps_nccl_stream stream))

typedef struct vpps_nccl_api {
#define X(name, parameters) unsigned(*name) parameters;
    VPPS_NCCL_FUNCTIONS(X)
#undef X
    const char *(*ncclGetErrorString)(unsigned error);
} vpps_nccl_api;
