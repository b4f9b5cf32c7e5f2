/* nccl.c - the communicator for NCCL, between GPUs: data in GPU memory, on a CUDA stream. Processes find each other, and report failures,
 * through a communicator between processes that exists already. */
#include "runtime/comm/comm.h"
#include "runtime/comm/nccl_api.h"

#include <dlfcn.h>

typedef struct nccl_row {
    vpps_communicator c;
    vpps_communicator *processes;
    vpps_nccl_api api;
    vpps_nccl_comm comm;
    vpps_gpu_stream stream;
} nccl_row;

/* Opens NCCL: the library that the environment variable VPPS_NCCL names, or libnccl.so.2. Fails with DEVICE. */
static vpps_status load_library(vpps_nccl_api *api) {
    const char *own = getenv("VPPS_NCCL");
    void *library = dlopen(own && *own ? own : "libnccl.so.2", RTLD_NOW | RTLD_LOCAL), *address;
    if (!library) {
        const char *why = dlerror();
        return vpps_fail(VPPS_DEVICE, "NCCL: %.300s; VPPS_NCCL can name it", why ? why : "no libnccl.so.2");
    }
    /* Addresses are copied into function pointers: POSIX lets them fit into void *, but ISO C has no conversion. */
#define FIND(name)                                                                                                     \
    address = dlsym(library, #name);                                                                                   \
    if (!address) return vpps_fail(VPPS_DEVICE, "NCCL: its library has no function " #name);                           \
    memcpy(&api->name, &address, sizeof address);
#define X(name, parameters) FIND(name)
    VPPS_NCCL_FUNCTIONS(X)
#undef X
    FIND(ncclGetErrorString)
#undef FIND
    return VPPS_OK;
}

static vpps_status check(const nccl_row *m, const char *call, unsigned result) {
    if (result == VPPS_NCCL_SUCCESS) return VPPS_OK;
    return vpps_fail(VPPS_DEVICE, "NCCL: rank %u on %s: %s: %s", m->c.rank, m->c.hosts[m->c.rank], call,
                     m->api.ncclGetErrorString(result));
}

static vpps_status need_open(const nccl_row *m) {
    return m->comm ? VPPS_OK : vpps_fail(VPPS_STATE, "NCCL: the communicator has failed before");
}

/* Waits until the stream's work is done. If a process is lost, NCCL reports an error or the stream never ends; the operation is then
 * aborted, and the communicator cannot be used again. */
static vpps_status finish(nccl_row *m) {
    const uint64_t begin = vpps_now_ns(), limit_ns = m->c.watchdog_ns * (atomic_load(&m->c.patient) ? 60 : 1);
    vpps_status status = VPPS_OK;
    bool idle = false;
    while (status == VPPS_OK && !idle) {
        unsigned error = VPPS_NCCL_SUCCESS;
        status = m->stream.idle(m->stream.context, &idle);
        if (status == VPPS_OK && !idle)
            status = check(m, "ncclCommGetAsyncError", m->api.ncclCommGetAsyncError(m->comm, &error));
        if (status == VPPS_OK && !idle && error != VPPS_NCCL_IN_PROGRESS) status = check(m, "an operation", error);
        if (status == VPPS_OK && !idle && vpps_now_ns() - begin > limit_ns)
            status = vpps_fail(VPPS_STALL, "NCCL: rank %u on %s waited %.1f s for other GPUs", m->c.rank,
                               m->c.hosts[m->c.rank], (double)limit_ns * 1e-9);
    }
    if (status == VPPS_OK) return VPPS_OK;
    m->api.ncclCommAbort(m->comm);
    m->comm = NULL;
    return status;
}

static vpps_status nccl_allreduce(vpps_communicator *c, float *data, size_t n) {
    nccl_row *m = (nccl_row *)c;
    VPPS_TRY(need_open(m));
    if (!n) return VPPS_OK;
    VPPS_TRY(check(m, "ncclAllReduce",
                   m->api.ncclAllReduce(data, data, n, VPPS_NCCL_FLOAT32, VPPS_NCCL_SUM, m->comm, m->stream.stream)));
    c->sent_bytes += n * sizeof *data;
    return finish(m);
}

static vpps_status exchange_with(nccl_row *m, uint32_t peer, const vpps_parcel *out, const vpps_parcel *in) {
    if (out->bytes) {
        VPPS_TRY(check(m, "ncclSend",
                       m->api.ncclSend(out->data, out->bytes, VPPS_NCCL_UINT8, (int)peer, m->comm, m->stream.stream)));
        m->c.sent_bytes += out->bytes;
    }
    if (!in->bytes) return VPPS_OK;
    return check(m, "ncclRecv",
                 m->api.ncclRecv(in->data, in->bytes, VPPS_NCCL_UINT8, (int)peer, m->comm, m->stream.stream));
}

static vpps_status nccl_exchange(vpps_communicator *c, const vpps_parcel *out, const vpps_parcel *in) {
    nccl_row *m = (nccl_row *)c;
    VPPS_TRY(need_open(m));
    VPPS_TRY(check(m, "ncclGroupStart", m->api.ncclGroupStart()));
    vpps_status status = VPPS_OK;
    for (uint32_t p = 0; p < c->size && status == VPPS_OK; p++)
        if (p != c->rank) status = exchange_with(m, p, &out[p], &in[p]);
    const vpps_status ended = check(m, "ncclGroupEnd", m->api.ncclGroupEnd());
    VPPS_TRY(status);
    VPPS_TRY(ended);
    return finish(m);
}

static vpps_status nccl_broadcast(vpps_communicator *c, void *data, size_t bytes, uint32_t root) {
    nccl_row *m = (nccl_row *)c;
    VPPS_TRY(need_open(m));
    if (!bytes) return VPPS_OK;
    VPPS_TRY(check(m, "ncclBroadcast",
                   m->api.ncclBroadcast(data, data, bytes, VPPS_NCCL_UINT8, (int)root, m->comm, m->stream.stream)));
    if (c->rank == root) c->sent_bytes += bytes;
    return finish(m);
}

static vpps_status nccl_barrier(vpps_communicator *c) {
    nccl_row *m = (nccl_row *)c;
    VPPS_TRY(need_open(m));
    VPPS_TRY(finish(m));
    return m->processes->table->barrier(m->processes);
}

static void nccl_tell(vpps_communicator *c, const char *text) {
    vpps_communicator *processes = ((nccl_row *)c)->processes;
    processes->table->tell(processes, text);
}

static void nccl_end(vpps_communicator *c, int exit_code) {
    vpps_communicator *processes = ((nccl_row *)c)->processes;
    processes->table->end(processes, exit_code);
}

static void nccl_close(vpps_communicator *c) {
    nccl_row *m = (nccl_row *)c;
    if (m->comm) m->api.ncclCommDestroy(m->comm);
    vpps_comm_free(c);
    free(m);
}

static const vpps_comm_table table = {.name = "nccl",
                                      .allreduce = nccl_allreduce,
                                      .exchange = nccl_exchange,
                                      .broadcast = nccl_broadcast,
                                      .barrier = nccl_barrier,
                                      .tell = nccl_tell,
                                      .end = nccl_end,
                                      .close = nccl_close};

/* Connects all processes in NCCL, by an identifier that the first process makes. */
static vpps_status join(nccl_row *m) {
    vpps_communicator *processes = m->processes;
    vpps_nccl_id id;
    memset(&id, 0, sizeof id);
    vpps_status status = load_library(&m->api);
    if (status == VPPS_OK && !m->c.rank) status = check(m, "ncclGetUniqueId", m->api.ncclGetUniqueId(&id));
    VPPS_TRY(vpps_comm_agree(processes, status));
    VPPS_TRY(processes->table->broadcast(processes, &id, sizeof id, 0));
    const unsigned result = m->api.ncclCommInitRank(&m->comm, (int)m->c.size, id, (int)m->c.rank);
    return vpps_comm_agree(processes, check(m, "ncclCommInitRank", result));
}

vpps_status vpps_nccl_open(vpps_communicator **out, vpps_communicator *processes, vpps_gpu_stream stream) {
    *out = NULL;
    nccl_row *m = calloc(1, sizeof *m);
    if (!m) return vpps_fail(VPPS_MEMORY, "communicator: out of memory");
    m->processes = processes;
    m->stream = stream;
    vpps_status status =
        vpps_comm_init(&m->c, &table, processes->rank, processes->size, (uint32_t)(processes->watchdog_ns / 1000000));
    if (status == VPPS_OK) {
        memcpy(m->c.hosts, processes->hosts, processes->size * sizeof *processes->hosts);
        status = join(m);
    }
    if (status == VPPS_OK) {
        *out = &m->c;
    } else {
        nccl_close(&m->c);
    }
    return status;
}
