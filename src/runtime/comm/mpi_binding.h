/* mpi_binding.h - the calls of MPI for one implementation: a template, which a file mpi_*.c includes once, after defining
 *
 *   HANDLE              the type of its handles
 *   BINDING, NAME       the binding's identifier and name
 *   STATUS_IGNORE       MPI_STATUS_IGNORE and MPI_STATUSES_IGNORE
 *   find_constants      bool (void *library, constants *k) */
#include "base/library.h"
#include "runtime/comm/mpi.h"

#include <dlfcn.h>
#include <stdio.h>

enum {
    THREAD_SERIALIZED = 2,
    ERROR_STRING_BYTES = 1024,
    OUT_OF_MEMORY = -1 /* negative, unlike MPI's own error codes */
};

typedef HANDLE handle;

typedef struct constants {
    handle comm_world, type_byte, errors_return;
    int any_source;
} constants;

/* MPI's functions as X(name, parameters); all return an int. */
#define CALLS(X)                                                                                                       \
    X(MPI_Initialized, (int *flag))                                                                                    \
    X(MPI_Init_thread, (int *argc, char ***argv, int required, int *provided))                                         \
    X(MPI_Finalized, (int *flag))                                                                                      \
    X(MPI_Finalize, (void))                                                                                            \
    X(MPI_Abort, (handle comm, int error))                                                                             \
    X(MPI_Comm_dup, (handle comm, handle * out))                                                                       \
    X(MPI_Comm_free, (handle * comm))                                                                                  \
    X(MPI_Comm_rank, (handle comm, int *rank))                                                                         \
    X(MPI_Comm_size, (handle comm, int *size))                                                                         \
    X(MPI_Comm_set_errhandler, (handle comm, handle handler))                                                          \
    X(MPI_Error_string, (int error, char *text, int *len))                                                             \
    X(MPI_Isend, (const void *data, int n, handle type, int peer, int tag, handle comm, handle *request))              \
    X(MPI_Irecv, (void *data, int n, handle type, int peer, int tag, handle comm, handle *request))                    \
    X(MPI_Recv, (void *data, int n, handle type, int peer, int tag, handle comm, void *status))                        \
    X(MPI_Test, (handle * request, int *flag, void *status))                                                           \
    X(MPI_Request_free, (handle * request))                                                                            \
    X(MPI_Testall, (int n, handle *requests, int *flag, void *statuses))                                               \
    X(MPI_Iprobe, (int peer, int tag, handle comm, int *flag, void *status))

struct vpps_mpi {
    constants k;
    handle comm;
    bool initialized; /* whether `open` has initialised MPI */
    handle *requests;
    size_t n_requests;
#define X(name, parameters) int(*name) parameters;
    CALLS(X)
#undef X
};

static bool find_constants(void *library, constants *k);

static vpps_status find_functions(vpps_mpi *m, void *library) {
#define X(name, parameters) VPPS_TRY(vpps_library_find(NAME, library, #name, &m->name));
    CALLS(X)
#undef X
    if (find_constants(library, &m->k)) return VPPS_OK;
    return vpps_fail(VPPS_DEVICE, NAME ": its library lacks its constants");
}

static void describe(vpps_mpi *m, int error, char *text, size_t n) {
    char all[ERROR_STRING_BYTES] = "";
    int len = 0;
    if (error == OUT_OF_MEMORY) {
        snprintf(all, sizeof all, "out of memory");
    } else if (m->MPI_Error_string(error, all, &len) != 0 || len <= 0) {
        snprintf(all, sizeof all, "error %d", error);
    }
    snprintf(text, n, "%s", all);
}

static vpps_status check(vpps_mpi *m, const char *call, int error) {
    char text[200];
    if (!error) return VPPS_OK;
    describe(m, error, text, sizeof text);
    return vpps_fail(VPPS_DEVICE, NAME ": %s: %s", call, text);
}

static vpps_status set_up(vpps_mpi *m, void *library, const void *comm, int *rank, int *size) {
    int there, provided = 0;
    VPPS_TRY(find_functions(m, library));
    VPPS_TRY(check(m, "MPI_Initialized", m->MPI_Initialized(&there)));
    if (!there) {
        VPPS_TRY(check(m, "MPI_Init_thread", m->MPI_Init_thread(NULL, NULL, THREAD_SERIALIZED, &provided)));
        m->initialized = true;
        if (provided < THREAD_SERIALIZED)
            return vpps_fail(VPPS_DEVICE, NAME ": threads level %d; expected at least MPI_THREAD_SERIALIZED", provided);
    }
    handle from = m->k.comm_world;
    if (comm) memcpy(&from, comm, sizeof from);
    VPPS_TRY(check(m, "MPI_Comm_dup", m->MPI_Comm_dup(from, &m->comm)));
    VPPS_TRY(check(m, "MPI_Comm_set_errhandler", m->MPI_Comm_set_errhandler(m->comm, m->k.errors_return)));
    VPPS_TRY(check(m, "MPI_Comm_rank", m->MPI_Comm_rank(m->comm, rank)));
    return check(m, "MPI_Comm_size", m->MPI_Comm_size(m->comm, size));
}

static vpps_status open_binding(vpps_mpi **out, void *library, const void *comm, int *rank, int *size) {
    vpps_mpi *m = calloc(1, sizeof *m);
    if (!m) return vpps_fail(VPPS_MEMORY, NAME ": out of memory");
    const vpps_status status = set_up(m, library, comm, rank, size);
    if (status == VPPS_OK) {
        *out = m;
    } else {
        free(m);
    }
    return status;
}

static void close_binding(vpps_mpi *m) {
    int finalized = 0;
    m->MPI_Finalized(&finalized);
    if (!finalized) m->MPI_Comm_free(&m->comm);
    if (!finalized && m->initialized) m->MPI_Finalize();
    VPPS_FREE_ARRAYS(m->requests);
    free(m);
}

static int start(vpps_mpi *m, bool receive, void *data, int bytes, int peer, int tag) {
    if (!VPPS_RESERVE(m->requests, m->n_requests + 1)) return OUT_OF_MEMORY;
    handle *request = &m->requests[m->n_requests++];
    return receive ? m->MPI_Irecv(data, bytes, m->k.type_byte, peer, tag, m->comm, request)
                   : m->MPI_Isend(data, bytes, m->k.type_byte, peer, tag, m->comm, request);
}

static int test(vpps_mpi *m, bool *done) {
    int flag = 1;
    const int error = m->n_requests ? m->MPI_Testall((int)m->n_requests, m->requests, &flag, STATUS_IGNORE) : 0;
    *done = flag;
    if (error || flag) m->n_requests = 0;
    return error;
}

static bool pending(vpps_mpi *m, uint32_t i) {
    int flag = 1;
    return i < m->n_requests && m->MPI_Test(&m->requests[i], &flag, STATUS_IGNORE) == 0 && !flag;
}

static int tell(vpps_mpi *m, const void *data, int bytes, int peer, int tag) {
    int sent = 1;
    handle request;
    int error = m->MPI_Isend(data, bytes, m->k.type_byte, peer, tag, m->comm, &request);
    if (!error) error = m->MPI_Test(&request, &sent, STATUS_IGNORE);
    return error || sent ? error : m->MPI_Request_free(&request); /* MPI frees the request once the message is sent */
}

static int heard(vpps_mpi *m, int tag, bool *there) {
    int flag = 0;
    const int error = m->MPI_Iprobe(m->k.any_source, tag, m->comm, &flag, STATUS_IGNORE);
    *there = flag;
    return error;
}

static int receive(vpps_mpi *m, void *data, int bytes, int tag) {
    return m->MPI_Recv(data, bytes, m->k.type_byte, m->k.any_source, tag, m->comm, STATUS_IGNORE);
}

static void end(vpps_mpi *m, int exit_code) { m->MPI_Abort(m->comm, exit_code); }

const vpps_mpi_binding BINDING = {.name = NAME,
                                  .open = open_binding,
                                  .close = close_binding,
                                  .start = start,
                                  .test = test,
                                  .pending = pending,
                                  .tell = tell,
                                  .heard = heard,
                                  .receive = receive,
                                  .describe = describe,
                                  .end = end};
