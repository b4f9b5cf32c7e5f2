/* nccl.c - a stand-in for NCCL: its processes are threads of one process, its memory is host memory, and an operation is done when its call returns.
 * With FAKE_NCCL_ERROR=N, ncclCommGetAsyncError returns N. */
#include "runtime/comm/nccl_api.h"

#include <pthread.h>

#define EXPORT __attribute__((visibility("default")))

/* The functions that the library exports. */
#define X(name, parameters) EXPORT unsigned name parameters;
VPPS_NCCL_FUNCTIONS(X)
#undef X
EXPORT const char *ncclGetErrorString(unsigned error);

enum { MOST = 8 };

struct ncclComm {
    int rank, size;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static unsigned arrived, turn;
static const void *given[MOST];

/* Waits for all; between two meetings every thread may read through `given`. */
static void meet(int size) {
    pthread_mutex_lock(&lock);
    const unsigned mine = turn;
    if (++arrived == (unsigned)size) {
        arrived = 0;
        turn++;
        pthread_cond_broadcast(&turned);
    }
    while (mine == turn) pthread_cond_wait(&turned, &lock);
    pthread_mutex_unlock(&lock);
}

unsigned ncclGetUniqueId(vpps_nccl_id *id) {
    memcpy(id->internal, "fake", 5);
    return VPPS_NCCL_SUCCESS;
}

unsigned ncclCommInitRank(vpps_nccl_comm *comm, int size, vpps_nccl_id id, int rank) {
    if (strcmp(id.internal, "fake") != 0 || size > MOST) return 4;
    *comm = calloc(1, sizeof **comm);
    **comm = (struct ncclComm){.rank = rank, .size = size};
    meet(size);
    return VPPS_NCCL_SUCCESS;
}

unsigned ncclCommDestroy(vpps_nccl_comm comm) {
    free(comm);
    return VPPS_NCCL_SUCCESS;
}
unsigned ncclCommAbort(vpps_nccl_comm comm) { return ncclCommDestroy(comm); }

unsigned ncclCommGetAsyncError(vpps_nccl_comm comm, unsigned *error) {
    (void)comm;
    const char *text = getenv("FAKE_NCCL_ERROR");
    *error = text ? (unsigned)strtoul(text, NULL, 10) : VPPS_NCCL_SUCCESS;
    return VPPS_NCCL_SUCCESS;
}

unsigned ncclAllReduce(const void *from, void *to, size_t n, unsigned type, unsigned op, vpps_nccl_comm comm,
                       vpps_nccl_stream stream) {
    (void)stream;
    if (type != VPPS_NCCL_FLOAT32 || op != VPPS_NCCL_SUM) return 4;
    float *sums = calloc(n, sizeof *sums);
    given[comm->rank] = from;
    meet(comm->size);
    for (int p = 0; p < comm->size; p++)
        for (size_t i = 0; i < n; i++) sums[i] += ((const float *)given[p])[i];
    meet(comm->size);
    memcpy(to, sums, n * sizeof *sums);
    free(sums);
    return VPPS_NCCL_SUCCESS;
}

const char *ncclGetErrorString(unsigned error) { return error == 6 ? "remote process has gone" : "an error"; }
