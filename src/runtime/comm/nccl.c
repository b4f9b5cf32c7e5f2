/* nccl.c - sums data in the memory of several processes' GPUs by NCCL, on a CUDA stream. Processes find each other, and report
 * failures, through a communicator between processes that exists already. */
#include "base/library.h"
#include "runtime/comm/comm.h"
#include "runtime/comm/nccl_api.h"

#include <dlfcn.h>

struct vpps_nccl {
    vpps_communicator *processes;
    vpps_nccl_api api;
    vpps_nccl_comm comm; /* NULL: an operation has failed, and the communicator cannot be used again */
    vpps_gpu_stream stream;
};

/* Opens NCCL: the library that the environment variable VPPS_NCCL names, or libnccl.so.2. Fails with DEVICE. */
static vpps_status load_library(vpps_nccl_api *api) {
    const char *own = getenv("VPPS_NCCL");
    void *library = dlopen(own && *own ? own : "libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *why = dlerror();
        return vpps_fail(VPPS_DEVICE, "NCCL: %.300s; VPPS_NCCL can name it", why ? why : "no libnccl.so.2");
    }
#define X(name, parameters) VPPS_TRY(vpps_library_find("NCCL", library, #name, &api->name));
    VPPS_NCCL_FUNCTIONS(X)
#undef X
    return vpps_library_find("NCCL", library, "ncclGetErrorString", &api->ncclGetErrorString);
}

static vpps_status check(const vpps_nccl *m, const char *call, unsigned result) {
    const vpps_communicator *c = m->processes;
    if (result == VPPS_NCCL_SUCCESS) return VPPS_OK;
    return vpps_fail(VPPS_DEVICE, "NCCL: rank %u on %s: %s: %s", c->rank, c->hosts[c->rank], call,
                     m->api.ncclGetErrorString(result));
}

/* Waits until the stream's work is done. If a process is lost, NCCL reports an error or the stream never ends; the operation is then
 * aborted, and the communicator cannot be used again. */
static vpps_status finish(vpps_nccl *m) {
    const vpps_communicator *c = m->processes;
    const uint64_t begin = vpps_now_ns();
    vpps_status status = VPPS_OK;
    bool idle = false;
    while (status == VPPS_OK && !idle) {
        unsigned error = VPPS_NCCL_SUCCESS;
        status = m->stream.idle(m->stream.context, &idle);
        if (status == VPPS_OK && !idle)
            status = check(m, "ncclCommGetAsyncError", m->api.ncclCommGetAsyncError(m->comm, &error));
        if (status == VPPS_OK && !idle && error != VPPS_NCCL_IN_PROGRESS) status = check(m, "an operation", error);
        if (status == VPPS_OK && !idle && vpps_now_ns() - begin > c->watchdog_ns)
            status = vpps_fail(VPPS_STALL, "NCCL: rank %u on %s waited %.1f s for other GPUs", c->rank,
                               c->hosts[c->rank], (double)c->watchdog_ns * 1e-9);
    }
    if (status == VPPS_OK) return VPPS_OK;
    m->api.ncclCommAbort(m->comm);
    m->comm = NULL;
    return status;
}

vpps_status vpps_nccl_sum(vpps_nccl *m, float *data, size_t n) {
    if (!m->comm) return vpps_fail(VPPS_STATE, "NCCL: the communicator has failed before");
    VPPS_TRY(check(m, "ncclAllReduce",
                   m->api.ncclAllReduce(data, data, n, VPPS_NCCL_FLOAT32, VPPS_NCCL_SUM, m->comm, m->stream.stream)));
    m->processes->sent_bytes += n * sizeof *data;
    return finish(m);
}

void vpps_nccl_close(vpps_nccl *m) {
    if (m && m->comm) m->api.ncclCommDestroy(m->comm);
    free(m);
}

/* Connects all processes in NCCL, by an identifier that the first process creates. */
static vpps_status join(vpps_nccl *m) {
    vpps_communicator *c = m->processes;
    vpps_nccl_id id;
    memset(&id, 0, sizeof id);
    vpps_status status = load_library(&m->api);
    if (status == VPPS_OK && !c->rank) status = check(m, "ncclGetUniqueId", m->api.ncclGetUniqueId(&id));
    VPPS_TRY(vpps_comm_agree(c, status));
    VPPS_TRY(status); /* only for static analyzers: with a failed status, vpps_comm_agree has failed */
    VPPS_TRY(vpps_comm_broadcast(c, &id, sizeof id, 0));
    const unsigned result = m->api.ncclCommInitRank(&m->comm, (int)c->size, id, (int)c->rank);
    return vpps_comm_agree(c, check(m, "ncclCommInitRank", result));
}

vpps_status vpps_nccl_open(vpps_nccl **out, vpps_communicator *processes, vpps_gpu_stream stream) {
    vpps_nccl *m = *out = calloc(1, sizeof *m);
    if (!m) return vpps_fail(VPPS_MEMORY, "communicator: out of memory");
    m->processes = processes;
    m->stream = stream;
    const vpps_status status = join(m);
    if (status == VPPS_OK) return VPPS_OK;
    vpps_nccl_close(m);
    *out = NULL;
    return status;
}
